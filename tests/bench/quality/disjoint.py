"""How good is the choice where a benchmark gives separate files to learn from and to test on?

    python tests/bench/quality/disjoint.py [--data ../shared/data] [--scenes pines enmap ...]
                                           [--jobs FILE ...] [--shares 0.15 0.5] [--square 6] [--seed 5]
                                           [--only NAME ...] [--budget 5min]

Parts the labels of scenes by squares into one file that jobs learn from (`scene.labels`) and one that they
are tested on (`learn.test`), as published disjoint splits do, and runs the job of two lines, jobs with
given methods, and the best job of `eigenscape tune`, which chooses by the first file alone. A class of which
the first file has fewer than three pixels gives it its first eight. Beside them, a support vector machine
and a random forest of scikit-learn with a grid search by squares inside the first file, on the same
features. Prints a line of JSON for each: accuracy on the test file and seconds, those of the baselines
without their features.
"""

import argparse
import json
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from accuracy import NAMES, TENTH, feature_tables, forest, machine, our_tables, scene_of, scenes
from sklearn.metrics import recall_score
from sklearn.model_selection import PredefinedSplit

import eigenscape
from eigenscape.base.process.progress import Silent
from eigenscape.scenes.labels.sources import open_labels
from eigenscape.scenes.open import open_scene
from eigenscape.store.run import Run

_FEW, _AT_LEAST = 3, 8
_FOLDS = 3
TUNED = "tune"
BASELINES = {"SVM": machine, "forest": forest}
"""Classifiers that are given the features of the jobs whose names begin with ``svm``."""


def parted(
    labels: NDArray[np.uint16], share: float, square: int, seed: int
) -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
    """Return the labels to learn from and those to test on."""
    down, across = (-(-length // square) for length in labels.shape)
    drawn = np.random.default_rng(seed).random((down, across)) < share
    inside = np.kron(drawn, np.ones((square, square), np.bool_)).astype(np.bool_)
    train = inside[: labels.shape[0], : labels.shape[1]]
    for number in np.unique(labels[labels > 0]):
        members = labels == number
        if (members & train).sum() < _FEW:
            train.ravel()[np.flatnonzero(members)[:_AT_LEAST]] = True
    return np.where(train, labels, 0), np.where(train, 0, labels)


def tables(bands: int) -> dict[str, dict[str, Any]]:
    """Return the jobs, by name."""
    kinds = feature_tables(bands)
    guided = {**kinds["fractions"], "spatial": {"method": "guided"}}
    ours = {title: table for title, table in our_tables(bands).items() if title != TENTH}
    return {**ours, "svm, guided": {"features": guided, "learn": {"method": "svm"}}}


class Bench:
    """Measures on one scene, with one share of its squares to learn from."""

    def __init__(
        self,
        name: str,
        table: dict[str, Any],
        share: float,
        folder: Path,
        options: argparse.Namespace,
    ) -> None:
        self.name, self.share, self.folder, self.options = name, share, folder, options
        job = eigenscape.parse_job({"scene": table}, name=name)
        scene = open_scene(job.scene, job.resolve)
        given = open_labels(job.scene, scene, job.resolve)
        assert given is not None, "the scene has labels"
        self.bands, self.width = scene.bands.count, scene.grid.width
        labels = given.read(0, scene.grid.height)
        self.train, self.test = parted(labels, share, options.square, options.seed)
        paths = {part: str(folder / f"{part}.npy") for part in ("train", "test")}
        np.save(paths["train"], self.train)
        np.save(paths["test"], self.test)
        rest = {key: value for key, value in table.items() if not key.startswith("labels")}
        self.scene, self.tested = {**rest, "labels": paths["train"]}, {"test": paths["test"]}

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield a line for each job and each baseline."""
        for title, methods in tables(self.bands).items():
            kind, _, features = title.partition(", ")
            searches = {
                name: make
                for known, make in BASELINES.items()
                if kind == "svm" and self._wanted(name := f"{known}, {features}")
            }
            if self._wanted(title) or searches:
                start = time.perf_counter()
                result = eigenscape.run(self.job(methods), reporter=Silent())
                yield self._line(title, result.scores, start)
            for name, make in searches.items():
                yield self._baseline(name, make, result.path)
        if self._wanted(TUNED):
            start = time.perf_counter()
            tuned = eigenscape.tune(
                self.job({}), budget=self.options.budget, run_dir=self.folder / TUNED, reporter=Silent()
            )  # fmt: skip
            seconds = time.perf_counter() - start
            result = eigenscape.run(self.job(tomllib.loads(tuned.job.to_toml())), reporter=Silent())
            yield {**self._line(TUNED, result.scores, start), "tuning_seconds": round(seconds, 1)}

    def _wanted(self, title: str) -> bool:
        return not self.options.only or title in self.options.only

    def job(self, methods: dict[str, Any]) -> eigenscape.Job:
        """Return a job on the scene with its two files."""
        learn = {**methods.get("learn", {}), **self.tested}
        output = {"directory": str(self.folder / "runs"), "formats": []}
        whole = {**methods, "scene": self.scene, "learn": learn, "output": output}
        return eigenscape.parse_job(whole, name=self.name)

    def _baseline(self, title: str, make: Any, path: Path) -> dict[str, Any]:
        """Return the line of a classifier on the features of a run."""
        run = Run(path, create=False)
        values, pixel = (run.open(name)[...] for name in ("features/values", "samples/pixel"))
        given, wanted = self.train.ravel()[pixel], self.test.ravel()[pixel]
        row, column = np.divmod(pixel[given > 0], self.width)
        square = row // self.options.square * self.width + column // self.options.square
        _, square = np.unique(square, return_inverse=True)
        order = np.random.default_rng(self.options.seed).permutation(int(square.max()) + 1)
        start = time.perf_counter()
        search = make(self.options.seed, PredefinedSplit(order[square] % _FOLDS))
        search.fit(values[given > 0], given[given > 0])
        found, truth = search.predict(values[wanted > 0]), wanted[wanted > 0]
        scores = {
            "overall_accuracy": float((found == truth).mean()),
            "average_accuracy": recall_score(truth, found, average="macro", zero_division=0),
        }
        return self._line(title, scores, start)

    def _line(self, title: str, scores: Any, start: float) -> dict[str, Any]:
        return {
            "scene": self.name, "share": self.share, "job": title, "seed": self.options.seed,
            "accuracy": round(100 * scores["overall_accuracy"], 2),
            "average_accuracy": round(100 * scores["average_accuracy"], 2),
            "seconds": round(time.perf_counter() - start, 1),
        }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--scenes", nargs="*", choices=NAMES, default=[])
    parser.add_argument("--jobs", nargs="*", type=Path, default=[])
    parser.add_argument("--shares", nargs="*", type=float, default=[0.15, 0.5])
    parser.add_argument("--square", type=int, default=6)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--only", nargs="*", help="jobs and baselines by name")
    parser.add_argument("--budget", default="5min", help="of tune")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        known = scenes(options.data.resolve(), Path(temporary)) if options.scenes else {}
        chosen = {name: known[name] for name in options.scenes}
        chosen |= {path.stem: scene_of(path) for path in options.jobs}
        for name, table in chosen.items():
            for share in options.shares:
                with tempfile.TemporaryDirectory() as folder:
                    for line in Bench(name, table, share, Path(folder), options).lines():
                        print(json.dumps(line), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
