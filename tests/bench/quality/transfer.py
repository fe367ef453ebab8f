"""How well does a run know another scene? Halves of scenes, learned on one and applied to the other.

    python tests/bench/quality/transfer.py [--data ../shared/data] [--only SCENE ...] [--jobs NAME ...]
                                           [--both] [--seed N] [--output FILE]

Cuts each scene into a left and a right half (EnMAP also into columns of tiles, each applied to the next),
learns on the left with all its labels and classifies the right: with the job of two lines, with each of
`JOBS`, with a support vector machine (radial basis functions) and a random forest on the bands,
standardised. C and gamma of the machine, and the leaves of the forest, come from a grid search on the
left in which squares of it are left out. Prints one line of JSON for each pair and a table at the end:
overall accuracy on the labels of the right half, %. --both learns on the right halves as well; --jobs runs
these jobs alone, without baselines unless "svm" and "forest" are among them.

`best` is the best of `JOBS` on the right half, known only afterwards: what a choice could have been, not
what one is told.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import loadmat
from shift import enmap, landsat
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import eigenscape
from eigenscape.datasets.made.pictures import urban_like

JOBS: dict[str, dict[str, dict[str, Any]]] = {
    "bands": {"features": {"method": "none"}},
    "standardized": {"features": {"method": "none", "standardize": True}},
    "mnf": {"features": {"method": "mnf", "dimension": 15}},
    "guided": {"features": {"method": "mnf", "dimension": 15, "spatial": {"method": "guided"}}},
    "tikhonov": {
        "features": {"method": "none", "standardize": True},
        "learn": {"method": "tikhonov", "gamma": 1e-3},
    },
    "smooth": {
        "features": {"method": "mnf", "dimension": 15, "spatial": {"method": "bilateral"}},
        "learn": {"method": "eigenfunctions", "gamma": 0.1},
        "spectrum": {"dimension": 55},
    },
    "k-nn": {"features": {"method": "none", "standardize": True}, "learn": {"method": "k-nn"}},
}
"""Our jobs, less what all of them have."""

COMMON: dict[str, dict[str, Any]] = {
    "graph": {"bandwidth": 0.25},
    "learn": {"method": "interpolated", "trials": 1},
    "spectrum": {"dimension": 10},
}

SEARCHED = 1500
"""Labelled pixels of which the grid search knows."""

SHARE = 0.05
"""Of the labels of the look-alike of Urban: all its pure pixels have one."""


def scenes(data: Path, seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield name, cube with NaN where there is no value, and labels."""
    with np.load(data / "indian-pines" / "indian_pines.npz") as file:
        yield "indian-pines", file["cube"].astype(np.float32), file["gt"].astype(np.uint8)
    with np.load(data / "urban-crop" / "urban_crop_with_abundances.npz") as file:
        yield "urban-crop", file["cube"].astype(np.float32), file["labels_argmax"].astype(np.uint8)
    parts = loadmat(data / "urban-abundances" / "end6_groundTruth.mat", variable_names=["A", "M"])
    cube, labels = urban_like(parts["A"], parts["M"], (307, 307))
    drawn = np.random.default_rng([seed, 1]).random(labels.shape) < SHARE
    yield "urban-like", cube.astype(np.float32), np.where(drawn, labels, 0)
    yield "enmap", *enmap(data / "enmap-potsdam")
    yield "landsat", *landsat(data / "landsat-nc")


def pairs(
    name: str, valid: np.ndarray, both: bool
) -> Iterator[tuple[str, str, np.ndarray, np.ndarray]]:
    """Yield scene, title, the part to learn on and the part to apply to."""
    column = np.indices(valid.shape)[1]
    left = column < valid.shape[1] // 2
    yield name, "left to right", left, ~left
    if both:
        yield name, "right to left", ~left, left
    if name == "enmap":
        tile = column // 32
        for number in range(int(tile.max())):
            title = f"column {number} to {number + 1}"
            yield "enmap-tiles", title, tile == number, tile == number + 1


def grid_search(
    model: Any,
    grid: dict[str, list[Any]],
    X: np.ndarray,
    y: np.ndarray,
    square: np.ndarray,
    seed: int,
) -> Any:
    """Return a model fitted to all samples, with the options that are best on squares left out."""
    rng = np.random.default_rng(seed)
    some = np.sort(rng.choice(len(y), min(len(y), SEARCHED), replace=False))
    folds = GroupKFold(min(4, len(np.unique(square[some]))))
    found = GridSearchCV(model, grid, cv=folds, refit=False, error_score=0.0)
    found.fit(X[some], y[some], groups=square[some])
    return model.set_params(**found.best_params_).fit(X, y), found.best_params_


def svm(X: np.ndarray, y: np.ndarray, square: np.ndarray, seed: int) -> Any:
    """Return a support vector machine, and its options."""
    usual = 1 / X.shape[1]
    grid = {"svc__C": [1, 10, 100, 1000], "svc__gamma": [0.1 * usual, 0.3 * usual, usual]}
    return grid_search(make_pipeline(StandardScaler(), SVC()), grid, X, y, square, seed)


def forest(X: np.ndarray, y: np.ndarray, square: np.ndarray, seed: int) -> Any:
    """Return a random forest, and its options."""
    grid = {"min_samples_leaf": [1, 3], "max_features": ["sqrt", 0.3]}
    return grid_search(RandomForestClassifier(100, random_state=seed), grid, X, y, square, seed)


BASELINES: dict[str, Callable[..., Any]] = {"svm": svm, "forest": forest}


def run_baseline(
    name: str, cube: np.ndarray, labels: np.ndarray, here: np.ndarray, there: np.ndarray, seed: int
) -> tuple[float, dict[str, Any]]:
    """Return the accuracy of a baseline on the other part, and its options."""
    valid = np.isfinite(cube).all(axis=2) & (labels > 0)
    row, column = np.indices(valid.shape)
    side = max(1, max(valid.shape) // 12)
    square = row // side * 1000 + column // side
    own, other = valid & here, valid & there
    model, chosen = BASELINES[name](cube[own], labels[own], square[own], seed)
    return float((model.predict(cube[other]) == labels[other]).mean()), chosen


def run_job(
    tables: dict[str, Any],
    cube: np.ndarray,
    labels: np.ndarray,
    here: np.ndarray,
    there: np.ndarray,
) -> tuple[float, dict[str, Any]]:
    """Return the accuracy of a job on the other part, and what `apply` said."""
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        for number, part in enumerate((here, there)):
            columns = np.flatnonzero(part.any(axis=0))
            cut = slice(columns[0], columns[-1] + 1)
            np.save(folder / f"scene-{number}.npy", cube[:, cut])
            np.save(folder / f"labels-{number}.npy", labels[:, cut])
        scene = {"path": str(folder / "scene-0.npy"), "labels": str(folder / "labels-0.npy")}
        job = eigenscape.parse_job({"scene": scene, **tables}, name="here", base=folder)
        run = eigenscape.run(job, run_dir=folder / "run")
        told = eigenscape.apply(
            run.path, folder / "scene-1.npy", labels=folder / "labels-1.npy",
            overrides=["output.formats=[]"], run_dir=folder / "applied",
        )  # fmt: skip
        shift = told.applied["shift"]
        said = {
            "how": told.applied["how"], "farther": round(shift["farther"], 3),
            "warns": shift["differs"], "far": told.applied["far"],
            "calibration_error": round(told.scores["expected_calibration_error"], 3),
            "machine": told.applied.get("machine"),
        }  # fmt: skip
        if not tables:
            import tomllib

            chosen = tomllib.loads((run.path / "job.toml").read_text(encoding="utf-8"))
            said["chosen"] = {name: chosen.get(name) for name in ("features", "graph", "learn")}
        return float(told.scores["overall_accuracy"]), said


def merged(tables: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the tables of a job of ours."""
    names = COMMON.keys() | tables.keys()
    return {name: {**COMMON.get(name, {}), **tables.get(name, {})} for name in names}


def main() -> None:
    """Print a line for each pair, and the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--jobs", nargs="*", choices=["default", *JOBS, *BASELINES])
    parser.add_argument("--both", action="store_true", help="learn on the right halves, too")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="append the lines to this file")
    given = parser.parse_args()
    names = given.jobs or ["default", *JOBS, *BASELINES]
    table = []
    for scene, cube, labels in scenes(given.data, given.seed):
        valid = np.isfinite(cube).all(axis=2)
        for name, title, here, there in pairs(scene, valid, given.both):
            if given.only and name not in given.only:
                continue
            known = np.isin(labels[there & valid], [0, *np.unique(labels[here & valid])])
            line: dict[str, Any] = {
                "scene": name, "pair": title, "learned": int((labels[here & valid] > 0).sum()),
                "tested": int((labels[there & valid] > 0).sum()), "unknown": int((~known).sum()),
                "accuracy": {}, "said": {}, "seconds": {},
            }  # fmt: skip
            for way in names:
                start = time.perf_counter()
                if way in BASELINES:
                    found = run_baseline(way, cube, labels, here, there, given.seed)
                else:
                    tables = {} if way == "default" else merged(JOBS[way])
                    found = run_job(tables, cube, labels, here, there)
                line["accuracy"][way] = round(100 * found[0], 1)
                line["said"][way] = found[1]
                line["seconds"][way] = round(time.perf_counter() - start, 1)
            ours = [line["accuracy"][way] for way in names if way in JOBS]
            if ours:
                line["accuracy"]["best"] = max(ours)
            print(json.dumps(line), flush=True)
            if given.output:
                with given.output.open("a", encoding="utf-8") as stream:
                    stream.write(json.dumps(line) + "\n")
            table.append(line)
    ways = list(table[0]["accuracy"]) if table else []
    print(f"\n| pair | {' | '.join(ways)} | warns |\n|{'---|' * (len(ways) + 2)}")
    for line in table:
        cells = " | ".join(str(line["accuracy"][way]) for way in ways)
        warns = {said["warns"] for said in line["said"].values() if "warns" in said}
        print(
            f"| {line['scene']}, {line['pair']} | {cells} | {'/'.join(map(str, sorted(warns)))} |"
        )
    means = [np.mean([line["accuracy"][way] for line in table]) for way in ways]
    print(f"| mean | {' | '.join(f'{mean:.1f}' for mean in means)} | |")


if __name__ == "__main__":
    main()
