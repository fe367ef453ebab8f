"""Ladders of few rungs, so that tuning a small scene takes seconds."""

RUNGS = {
    "start": {"learn.method": "interpolated"},
    "rungs": [
        {
            "name": "features", "draws": 2, "keep": 2,
            "options": [
                {"keys": {"features.method": "pca", "features.dimension": 4}},
                {"keys": {"features.method": "mnf", "features.dimension": 4}, "needs": ["contiguous"]},
                {"keys": {"features.method": "none"}},
            ],
        },
        {
            "name": "classifier", "draws": 3, "keep": 2,
            "options": [
                {"keys": {}},
                {"keys": {"learn.method": "centroid-angle"}},
                {"keys": {"graph.spatial.weight": 2.0}, "needs": ["image"]},
            ],
        },
    ],
}  # fmt: skip

QUICK_RUNGS = {
    "start": {},
    "rungs": [
        {
            "name": "methods", "draws": 4, "keep": 1,
            "options": [{"keys": {"learn.method": "k-nn", "features.method": "none"}}],
        }
    ],
}  # fmt: skip

SCATTERED_RUNGS = {
    "start": {"learn.method": "eigenfunctions", "learn.gamma": 0.1},
    "rungs": [
        {
            "name": "roughness", "draws": 2, "keep": 1,
            "options": [{"keys": {}}, {"keys": {"learn.gamma": 0.3}}],
        }
    ],
}  # fmt: skip

CLUSTER_RUNGS = {
    "start": {"learn.method": "spectral-clustering", "learn.clusters": 4},
    "rungs": [
        {
            "name": "features", "draws": 2, "keep": 2,
            "options": [
                {"keys": {"features.method": "none"}},
                {"keys": {"features.method": "pca", "features.dimension": 4}},
            ],
        }
    ],
}  # fmt: skip
