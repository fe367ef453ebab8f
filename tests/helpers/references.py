"""What a run stored, against the slow and obvious: dense matrices, brute force, NumPy and SciPy.

Whole matrices up to `DENSE` samples; of larger scenes a draw of samples, and residuals.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

import filtering
from eigenscape.graph.kernels.weights import WEIGHT_FLOOR
from eigenscape.job.jobfile import Job
from eigenscape.store.rows import Rows
from eigenscape.store.run import Run
from inputs import scenery

DENSE = 2000
_DRAWN = 200
_AT_ONCE = 25
"""Drawn samples whose distances to all others are in memory at a time."""


class Stored:
    """The arrays of a finished run, whole."""

    def __init__(self, path: Path) -> None:
        self.run = Run(path, create=False)

    def __getitem__(self, name: str) -> NDArray[Any]:
        return np.asarray(self.run.open(name)[...])

    def has(self, name: str) -> bool:
        """Whether an array was stored."""
        return (self.run.array_path(name) / "zarr.json").exists()

    def summary(self, stage: str) -> dict[str, Any]:
        """Return what a stage said of itself."""
        record = self.run.record(stage)
        assert record is not None
        return record.summary

    def rows(self, name: str) -> NDArray[np.float32]:
        """Return a table of vectors, dense."""
        rows = Rows(str(self.run.array_path(name)))
        found = rows.read(0, rows.shape[0])
        return found if isinstance(found, np.ndarray) else found.toarray()

    def graph(self) -> sp.csr_array:
        """Return W, rows in the order of the graph."""
        blocks, number = [], 0
        while self.has(f"graph/{number}/indptr"):
            parts = [self[f"graph/{number}/{name}"] for name in ("data", "indices", "indptr")]
            rows = self.summary("graph")["rows"]
            blocks.append(sp.csr_array(tuple(parts), shape=(len(parts[2]) - 1, rows)))
            number += 1
        return sp.csr_array(sp.vstack(blocks, format="csr")).astype(np.float64)


def check_run(path: Path, job: Job, scene: scenery.Scene, checked: set[str]) -> list[str]:
    """Return what is wrong with a finished run.

    Parameters
    ----------
    path, job, scene
        Of the run.
    checked
        Keys of stages that were right before, which are not looked at again; those of this run that
        are right join them.
    """
    stored = Stored(path)
    problems: list[str] = []
    for stage, check in _CHECKS.items():
        record = stored.run.record(stage)
        assert record is not None
        if record.key in checked:
            continue
        found = check(stored, job, scene)
        problems += [f"{stage}: {text}" for text in found]
        if not found:
            checked.add(record.key)
    problems += [
        f"output: {name} is missing"
        for name in stored.summary("export")["outputs"].values()
        if not (path / "outputs" / name).exists()
    ]
    return problems


def check_applied(path: Path, applied: Path) -> list[str]:
    """Return what is wrong with a run applied to its own scene."""
    own, other = Stored(path)["labels/class"], Stored(applied)["labels/class"]
    known = (own > 0) & (other > 0)
    agree = float((own == other)[known].mean()) if known.any() else 0.0
    said = [] if agree >= 0.75 else [f"apply: {agree:.3f} of the pixels agree with the run"]
    if known.mean() < 0.9 * (own > 0).mean():
        said.append(f"apply: {known.mean():.3f} of the pixels have a class")
    return said


def prepared_spectra(
    samples: NDArray[Any], wavelength: NDArray[np.float64] | None, steps: dict[str, bool]
) -> NDArray[np.float64]:
    """Return what ``[features.spectral]`` makes of spectra, one at a time."""
    places = np.arange(samples.shape[1]) if wavelength is None else wavelength
    order = np.argsort(places)
    x, found = places[order].astype(np.float64), np.asarray(samples, np.float64)[:, order]
    for line in found:
        if steps.get("continuum"):
            # The least concave function above: the highest chord over each band.
            hull = [
                max(
                    line[i]
                    if i == j
                    else line[i] + (line[j] - line[i]) * (x[b] - x[i]) / (x[j] - x[i])
                    for i in range(b + 1)
                    for j in range(b, len(x))
                )
                for b in range(len(x))
            ]
            line[:] = [v / h if h > 0 else 1 for v, h in zip(line, hull, strict=True)]
        if steps.get("normalize"):
            line /= np.linalg.norm(line) or 1
        if steps.get("derivative"):
            line[:] = np.gradient(line, x)
    back = np.empty_like(found)
    back[:, order] = found
    return back


def _draw(rows: int) -> NDArray[np.int64]:
    rng = np.random.default_rng(5)
    return np.sort(rng.choice(rows, min(rows, _DRAWN), replace=False))


def _check_features(stored: Stored, job: Job, scene: scenery.Scene) -> list[str]:
    samples, features = stored.rows("samples/values"), stored.rows("features/values")
    options = job.features
    filtered = features
    if options.spectral is not None:
        whole = stored.summary("ingest")["bands"]
        good = np.asarray(whole["good"], bool)
        known = whole["wavelength"]
        wavelength = None if known is None else np.asarray(known, float)[good]
        samples = prepared_spectra(samples, wavelength, options.spectral.model_dump())
        samples = samples.astype(np.float32)
    if options.spatial is not None:
        features = stored.rows("features/unfiltered")
    good = np.asarray(stored.summary("ingest")["bands"]["good"], bool)
    plain = options.spectral is None and not job.scene.mask
    if plain and job.scene.path in ("scene.tif", "table.npy", "words.npz"):
        given = scene.values if isinstance(scene.values, np.ndarray) else scene.values.toarray()
        scale = 1.0 if job.scene.scale == "auto" else job.scene.scale
        if job.scene.samples is None and not np.allclose(
            samples, given[:, good] * scale, rtol=1e-6
        ):
            return ["the samples are not those of the file"]
    if not np.isfinite(filtered).all():
        return ["not finite"]
    if options.spatial is not None and (found := _check_filter(stored, job, features, filtered)):
        return found
    if options.method == "none" and not options.standardize:
        same = np.allclose(features, samples, rtol=1e-5, atol=1e-6)
        exact = options.spectral is not None or np.array_equal(features, samples)
        return [] if same and exact else ["not the samples themselves"]
    # Any of them is linear in the samples.
    left = np.column_stack([samples, np.ones(len(samples))]).astype(np.float64)
    fit = left @ np.linalg.lstsq(left, features.astype(np.float64), rcond=None)[0]
    if np.abs(fit - features).max() > 1e-3 * np.abs(features).max():
        return ["not linear in the samples"]
    if options.method == "pca" and not options.standardize:
        centred = samples.astype(np.float64) - samples.mean(axis=0, dtype=np.float64)
        _, vectors = np.linalg.eigh(centred.T @ centred)
        scores = centred @ vectors[:, ::-1][:, : features.shape[1]]
        spread = np.linalg.norm(scores - scores.mean(axis=0), axis=1)
        moved = features - features.mean(axis=0, dtype=np.float64)
        if not np.allclose(np.linalg.norm(moved, axis=1), spread, rtol=1e-3, atol=1e-3):
            return ["not the principal components"]
    return []


def _check_filter(
    stored: Stored, job: Job, features: NDArray[Any], filtered: NDArray[Any]
) -> list[str]:
    """Compare filtered features with loops over pixels, of a draw of them on larger scenes."""
    options, grid = job.features.spatial, stored.summary("ingest")["grid"]
    assert options is not None
    pixels, shape = stored["samples/pixel"], (grid["height"], grid["width"])
    valid = np.zeros(shape, bool)
    valid.flat[pixels] = True
    cube = np.full((*shape, features.shape[1]), np.nan)
    cube[valid] = features
    unit = 1.0
    if job.features.method != "mnf" and options.method != "profiles":
        pairs = [cube[:, 1:] - cube[:, :-1], cube[1:] - cube[:-1]]
        squares = np.concatenate([(part**2).reshape(-1, cube.shape[2]) for part in pairs])
        unit = float(np.sqrt(np.nanmean(squares) / 2))
    if not np.isclose(stored.summary("features")["noise"], unit, rtol=1e-3):
        return [f"the noise of a feature is {unit:.4g}"]
    if options.method == "profiles":
        components = min(options.components, cube.shape[2])
        radii = options.radii if len(pixels) <= DENSE else options.radii[:1]
        expected = filtering.profile_images(cube, valid, radii, components)
        count = 2 * components * len(options.radii)
        kept = np.arange(count).reshape(-1, len(options.radii))[:, : len(radii)].ravel()
        given = filtered[:, cube.shape[2] :][:, kept]
        same = np.array_equal(filtered[:, : cube.shape[2]], features)
        return [] if same and np.array_equal(given, expected[valid]) else ["not the profiles"]
    for chosen in [valid] if len(pixels) <= DENSE else _single(pixels, shape):
        expected = filtering.filter_image(options, cube, valid, unit, chosen)[chosen]
        if not np.allclose(filtered[chosen[valid]], expected, rtol=1e-3, atol=1e-3 * unit):
            return ["features are not filtered as loops over pixels do it"]
    return []


def _single(pixels: NDArray[np.int64], shape: tuple[int, int]) -> Iterator[NDArray[np.bool_]]:
    """Yield masks of one pixel each."""
    for sample in _draw(len(pixels)):
        chosen = np.zeros(shape, bool)
        chosen.flat[pixels[sample]] = True
        yield chosen


def _unit(vectors: NDArray[Any]) -> NDArray[np.float64]:
    vectors = vectors.astype(np.float64)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300)


def _distances(job: Job, queries: NDArray[Any], others: NDArray[Any]) -> NDArray[np.float64]:
    angle = job.neighbors.metric == "angle"
    left, right = (_unit(part) if angle else part.astype(np.float64) for part in (queries, others))
    squares = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1) - 2 * left @ right.T
    chord = np.sqrt(np.maximum(squares, 0))
    return 2 * np.arcsin(np.minimum(chord / 2, 1)) if angle else chord


def _lists(stored: Stored) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    index, distance = stored["neighbors/index"], stored["neighbors/distance"]
    if stored.has("neighbors/indptr"):
        ends = stored["neighbors/indptr"][1:-1]
        return list(zip(np.split(index, ends), np.split(distance, ends), strict=True))
    return list(zip(index, distance, strict=True))


def _check_neighbors(stored: Stored, job: Job, scene: scenery.Scene) -> list[str]:
    features, options = stored.rows("features/values"), job.neighbors
    drawn, lists = _draw(len(features)), _lists(stored)
    if sorted(stored["neighbors/order"].tolist()) != list(range(len(features))):
        return ["the locality order is no permutation"]
    others = np.arange(len(features))
    if options.method == "landmarks":
        others = np.sort(stored["neighbors/landmark"])
    slack, found, wanted, off = 0.0, 0, 0, 0.0
    for row, sample in enumerate(drawn):
        if row % _AT_ONCE == 0:
            truth = _distances(job, features[drawn[row : row + _AT_ONCE]], features[others])
            slack = slack or 1e-3 * float(np.median(truth))
        truth[row % _AT_ONCE, others == sample] = np.inf
        near, length = lists[sample]
        exact = _distances(job, features[[sample]], features[near])[0]
        off = max(off, float(np.abs(exact - length).max(initial=0)))
        if options.method == "radius":
            low = int((truth[row % _AT_ONCE] < options.radius - slack).sum())
            high = int((truth[row % _AT_ONCE] <= options.radius + slack).sum())
            if not low <= len(near) <= high:
                return [f"sample {sample} has {len(near)} within the radius, not {low} to {high}"]
            continue
        rank = min(options.k, len(others)) - 1
        limit = np.partition(truth[row % _AT_ONCE], rank)[rank]
        found += int((exact <= limit + slack).sum())
        wanted += options.k
    said = [] if off <= slack else [f"distances are off by {off:.2g}"]
    least = {"exact": 1.0, "landmarks": 0.999}.get(
        options.method, 0.75 if getattr(options, "refine", 3) < 2 else 0.9
    )
    if wanted and found < least * wanted:
        said.append(f"recall {found / wanted:.4f} is less than {least}")
    return said


def _spectral_weights(stored: Stored, job: Job) -> NDArray[np.float64]:
    """Return the weights of the lists alone, by sample; 0 where there is no edge."""
    lists, n = _lists(stored), len(stored["neighbors/order"])
    length = np.full((n, n), np.nan)
    scale = np.zeros(n)
    for sample, (near, distance) in enumerate(lists):
        length[sample, near], length[near, sample] = distance, distance
        scale[sample] = distance.max(initial=0)
    positive = scale[scale > 0]
    scale = np.maximum(scale, 0.1 * np.median(positive) if len(positive) else 1.0)
    options, squares = job.graph, length**2
    t = 1.0 if options.bandwidth == "auto" else float(options.bandwidth)
    if options.weights == "binary":
        weights = np.where(np.isnan(length), 0, 1.0)
    elif options.weights == "heat":
        if options.bandwidth == "auto":
            t = float(np.mean(np.concatenate([d.astype(np.float64) for _, d in lists]) ** 2)) or 1.0
        weights = np.exp(-squares / t)
    else:
        weights = np.exp(-squares / (t * scale[:, None] * scale))
    return np.where(np.isnan(length), 0, np.maximum(np.nan_to_num(weights), WEIGHT_FLOOR))


def _spatial_weights(
    stored: Stored, job: Job, scene: scenery.Scene, bandwidth: float | str, count: int
) -> NDArray[np.float64]:
    pixel, features = stored["samples/pixel"], stored.rows("features/values")
    row, column = np.divmod(pixel, scene.shape[1])
    down, right = np.abs(row[:, None] - row), np.abs(column[:, None] - column)
    beside = (np.maximum(down, right) == 1) & ((count == 8) | (down + right == 1))
    squares = _distances(job, features, features) ** 2
    t = 2 * np.median(squares[beside]) or 1.0 if bandwidth == "auto" else float(bandwidth)
    return np.where(beside, np.maximum(np.exp(-squares / t), WEIGHT_FLOOR), 0)


def _check_graph(stored: Stored, job: Job, scene: scenery.Scene) -> list[str]:
    W, summary = stored.graph(), stored.summary("graph")
    if (W != W.T).nnz or W.diagonal().any() or not (W.data > 0).all():
        return ["not symmetric, not positive, or with loops"]
    if not np.allclose(stored["graph/degree"], W.sum(axis=1), rtol=1e-6):
        return ["degrees are no row sums"]
    parts = connected_components(W)[0]
    landmarks = job.neighbors.method == "landmarks"
    if job.graph.components != "each" and parts > 1 and not landmarks:
        return [f"{parts} components, one was asked for"]
    n = len(stored["neighbors/order"])
    if n > DENSE or landmarks:
        return []
    sample, expected = stored["graph/sample"], _spectral_weights(stored, job)
    bridges = np.zeros_like(expected, bool)
    found = np.zeros_like(expected)
    found[np.ix_(sample, sample)] = W.toarray()
    if spatial := job.graph.spatial:
        beside = _spatial_weights(stored, job, scene, spatial.bandwidth, spatial.neighbors)
        if job.graph.components == "largest":
            inside = np.isin(np.arange(n), sample)
            expected, beside = (part * inside[:, None] * inside for part in (expected, beside))
        bridges = (found > 0) & (expected == 0) & (beside == 0)
        total = expected.sum() + found[bridges].sum()
        expected = expected + spatial.weight * total / beside.sum() * beside
    else:
        if job.graph.components == "largest":
            inside = np.isin(np.arange(n), sample)
            expected = expected * inside[:, None] * inside
        bridges = (found > 0) & (expected == 0)
    if bridges.sum() != 2 * summary["bridges"]:
        return [f"{bridges.sum() / 2} edges that nothing explains, {summary['bridges']} bridges"]
    if not np.allclose(found[~bridges], expected[~bridges], rtol=2e-3, atol=1e-6):
        worst = float(np.abs(found - expected)[~bridges].max())
        return [f"weights are off by {worst:.2g}"]
    return []


def _laplacian(W: sp.csr_array, kind: str) -> sp.csr_array:
    degree = np.asarray(W.sum(axis=1)).ravel()
    L = sp.csr_array(sp.diags_array(degree) - W)
    if kind == "unnormalized":
        return L
    root = sp.diags_array(1 / np.sqrt(degree))
    return sp.csr_array(root @ L @ root)


def _check_spectrum(stored: Stored, job: Job, scene: scenery.Scene) -> list[str]:
    values, vectors = stored["spectrum/value"], stored["spectrum/vector"]
    sample = stored["graph/sample"]
    if (np.diff(values) < -1e-6).any() or not np.isfinite(values).all():
        return ["eigenvalues do not ascend"]
    if not np.isfinite(vectors[sample]).all():
        return ["eigenvectors are not finite"]
    if job.neighbors.method == "landmarks" or job.graph.potential is not None:
        return _check_barrier(stored, job, scene) if job.graph.potential is not None else []
    W, kind = stored.graph(), job.graph.laplacian
    return _compare_pairs(_laplacian(W, kind), W, kind, values, vectors[sample], job)


def _check_barrier(stored: Stored, job: Job, scene: scenery.Scene) -> list[str]:
    potential = job.graph.potential
    assert potential is not None
    sample, pixel = stored["graph/sample"], stored["samples/pixel"]
    if potential.kind != "barrier" or potential.labels == "train":
        return []
    if potential.raster:
        V = np.where(pixel // scene.shape[1] == scene.shape[0] // 2, 2.0, 0)
    elif potential.pixels:
        places = [p if isinstance(p, tuple) else (p, 0) for p in potential.pixels]
        V = np.isin(pixel, [row * scene.shape[1] + column for row, column in places]).astype(float)
    else:
        V = scene.labels[pixel] > 0
        if potential.classes:
            V = np.isin(scene.labels[pixel], potential.classes)
        V = V.astype(float)
    W, kind = stored.graph(), job.graph.laplacian
    L = _laplacian(W, kind)
    factor = potential.alpha
    if potential.relative:
        factor *= L.trace() / V[sample].sum()
    A = sp.csr_array(L + factor * sp.diags_array(V[sample]))
    vectors = stored["spectrum/vector"][sample]
    return _compare_pairs(A, W, kind, stored["spectrum/value"], vectors, job)


def _compare_pairs(
    A: sp.csr_array,
    W: sp.csr_array,
    kind: str,
    values: NDArray[Any],
    vectors: NDArray[Any],
    job: Job,
) -> list[str]:
    vectors = vectors.astype(np.float64)
    if kind == "random-walk":
        # As stored they are D^-1/2 times those of the normalised one.
        vectors = np.sqrt(np.asarray(W.sum(axis=1)).ravel())[:, None] * vectors
    length = np.linalg.norm(vectors, axis=0)
    residual = np.linalg.norm(A @ vectors - vectors * values, axis=0) / length
    scale = max(1.0, float(abs(A).sum(axis=1).max()) / 2)
    if residual.max() > 5 * max(job.spectrum.tolerance, 1e-6) * scale:
        return [f"residual {residual.max():.2g}"]
    if A.shape[0] > DENSE:
        return []
    expected = scipy.linalg.eigvalsh(A.toarray(), subset_by_index=[0, len(values) - 1])
    if not np.allclose(values, expected, atol=1e-3 * scale * max(1e-2, job.spectrum.tolerance)):
        return [f"eigenvalues are off by {np.abs(values - expected).max():.2g}"]
    return []


def _check_learn(stored: Stored, job: Job, scene: scenery.Scene) -> list[str]:
    classes = stored["labels/class"]
    outside = np.ones(len(classes), bool)
    outside[stored["graph/sample"]] = False
    unsupervised = job.learn.unsupervised
    if not unsupervised and job.learn.method != "k-nn" and (classes[~outside] == 0).mean() > 0.3:
        return [f"{(classes[~outside] == 0).sum()} pixels have no class"]
    sure = stored["labels/confidence"]
    known = sure[np.isfinite(sure)]
    if len(known) and not (known.min() >= -1e-6 and known.max() <= 1 + 1e-6):
        return [f"confidence from {known.min():.3g} to {known.max():.3g}"]
    tested = _tested(stored, job, scene)
    if tested.any():
        share = stored.summary("learn")["scores"]["overall_accuracy"]
        found = float((classes == tested)[tested > 0].mean())
        if abs(share - found) > 1e-9:
            return [f"accuracy on the test file {share:.4f}, by counting {found:.4f}"]
    expected = None
    if not unsupervised and job.learn.train == "all":
        expected = _expected_classes(stored, job, scene)
    if expected is None:
        return []
    both = (classes > 0) & (expected > 0)
    agree = float((classes == expected)[both].mean())
    return [] if agree >= 0.995 else [f"{agree:.4f} of the classes are those of the reference"]


def _tested(stored: Stored, job: Job, scene: scenery.Scene) -> NDArray[np.int64]:
    """Return the class of every sample that the file of ``learn.test`` has, 0 for none."""
    pixel = stored["samples/pixel"]
    third = pixel % 3 == 0
    chosen = {"test.tif": third, "points.csv": ~third}.get(str(job.learn.test), False)
    return np.where(chosen, scene.labels[pixel], 0).astype(int)


def _expected_classes(stored: Stored, job: Job, scene: scenery.Scene) -> NDArray[np.int64] | None:
    """Return the class of every sample by a dense solution, 0 for none; None where there is none."""
    given, options = stored["labels/given"].astype(int), job.learn
    given[_tested(stored, job, scene) > 0] = 0
    n = len(given)
    plain = getattr(options, "prior", "none") == "none" and job.neighbors.method != "landmarks"
    if n > DENSE or not plain:
        return None
    known, numbers = np.flatnonzero(given), np.unique(given[given > 0])
    onehot = (given[known, None] == numbers).astype(float)
    scores = np.full((n, len(numbers)), np.nan)
    sample, W = stored["graph/sample"], stored.graph()
    connected = connected_components(W)[0] == 1 and len(sample) == n
    if options.method == "k-nn":
        if job.learn.smoothing:
            return None
        features = stored.rows("features/values")
        away = _distances(job, features, features[known])
        if options.k > 1:
            return None  # votes that are equal are broken by distances
        return np.asarray(given[known[away.argmin(axis=1)]])
    if not connected or job.graph.potential is not None:
        return None
    L = _laplacian(W, "unnormalized").toarray()
    place = np.empty(n, int)
    place[sample] = np.arange(n)
    rows = place[known]
    if options.method == "interpolated":
        free = np.setdiff1d(np.arange(n), rows)
        f = np.empty((n, len(numbers)))
        f[rows] = onehot
        f[free] = np.linalg.solve(L[np.ix_(free, free)], -L[np.ix_(free, rows)] @ onehot)
    elif options.method == "poisson":
        source = np.zeros((n, len(numbers)))
        source[rows] = onehot - onehot.mean(axis=0)
        f = np.linalg.pinv(L, hermitian=True) @ source
        f -= np.diag(L) @ f / np.trace(L)
    elif options.method == "tikhonov" and options.kernel == "power":
        known_rows = np.zeros((n, n))
        known_rows[rows, rows] = 1
        S = np.linalg.matrix_power(L, options.power)
        right = np.zeros((n, len(numbers)))
        right[rows] = onehot - onehot.mean(axis=0)
        f = np.linalg.solve(known_rows + len(rows) * options.gamma * S, right)
    elif options.method == "centroid-angle":
        nulls = stored.summary("spectrum")["null_vectors"]
        vectors = stored["spectrum/vector"][:, nulls:].astype(float)
        unit = _unit(vectors)
        means = _unit(np.stack([vectors[given == number].mean(axis=0) for number in numbers]))
        f = (unit @ means.T)[sample]
    else:
        return None
    if options.smoothing:
        return None
    scores[sample] = f
    return np.asarray(numbers[scores.argmax(axis=1)])


_CHECKS = {
    "features": _check_features,
    "neighbors": _check_neighbors,
    "graph": _check_graph,
    "spectrum": _check_spectrum,
    "learn": _check_learn,
}
