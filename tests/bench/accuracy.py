"""How accurate are maps beside baselines that learn from the same pixels?

    python tests/bench/accuracy.py [--data ../shared/data] [--scenes pines enmap ...] [--draws 10]
                                   [--quick] [--jobs FILE ...] [--only NAME ...] [--seed 0]
                                   [--keep FOLDER] [--lines FILE] [--page FILE]

On each scene classifiers learn from a tenth of the labelled pixels, drawn by squares of the scene and at
random, and are tested on the rest: the draws of `eigenscape run` (`eigenscape.labels.training.plan_fits`).

* Baselines: an RBF support vector machine and a random forest (scikit-learn) on the bands, on noise
  fractions, on these after the joint bilateral filter, and the machine on extended morphological profiles.
  Each draw has a grid search of its own, by squares of the scene inside its training pixels (`_SQUARE`
  pixels along). All training pixels are used: nothing is subsampled.
* Ours: the job of two lines (``learn.method = "auto"``), and jobs with methods that are given.

Prints a line of JSON for each classifier and split: overall accuracy in percent (mean over the draws,
standard error), wall and processor seconds (of a baseline without its features; of ours all stages, the map
and both splits); then a table. With --lines the lines are kept in a file, and what is in it is not run
again; with --page the tables are written as a page as well, jobs/BASELINES.md. --quick: 3 draws. With
--jobs the scenes and labels of job files are taken, and no others unless --scenes names them.
"""

import argparse
import json
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

sys.path.insert(0, str(Path(__file__).parent / "quality"))

from calibration import jobs

import eigenscape
from eigenscape.base.process.progress import Silent
from eigenscape.clusters import ClusterOptions, connect
from eigenscape.labels.training import Labelled, plan_fits
from eigenscape.scenes.ingest.ingested import IngestedScene
from eigenscape.store.siblings import Siblings
from eigenscape.workflow.choice.trials import run_candidate
from eigenscape.workflow.stages import STAGES

PROTOCOLS = ("blocked", "random")
_SQUARE = 5
_FOLDS = 3
USUAL_DRAWS = 10

NAMES = {
    "pines": "Indian Pines", "enmap": "EnMAP Potsdam", "points": "Landsat, points",
    "polygons": "Landsat, polygons", "urban": "Urban, crop",
}  # fmt: skip


TENTH = "two lines, a tenth"
"""The job of two lines that compares methods by as many labels as the draws learn from. By default it
compares them by half, because its map learns from all."""


def scenes(data: Path, folder: Path) -> dict[str, dict[str, Any]]:
    """Return the table ``[scene]`` of each."""
    found = {name: job["scene"] for name, job in jobs(data, folder).items()}
    points = found.pop("landsat")
    polygons = points["labels"].replace("points", "polygons")
    return {**found, "points": points, "polygons": {**points, "labels": polygons}}


def scene_of(path: Path) -> dict[str, Any]:
    """Return the table ``[scene]`` of a job file, its paths made absolute."""
    found: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))["scene"]

    def absolute(value: Any) -> Any:
        one = isinstance(value, str)
        return str((path.parent / value).resolve()) if one else [*map(absolute, value)]

    return found | {key: absolute(found[key]) for key in ("path", "labels", "mask") if key in found}


def feature_tables(bands: int) -> dict[str, dict[str, Any]]:
    """Return ``[features]`` of each kind of features, for a scene of so many bands."""
    fractions = {"method": "mnf", "dimension": min(15, bands - 1)}
    return {
        "bands": {"method": "none"},
        "standard": {"method": "none", "standardize": True},
        "fractions": fractions,
        "bilateral": {**fractions, "spatial": {"method": "bilateral"}},
        "profiles": {
            "method": "pca", "dimension": min(4, bands - 1),
            "spatial": {"method": "profiles", "components": 4, "radius": [2, 4, 6, 8]},
        },
    }  # fmt: skip


def our_tables(bands: int) -> dict[str, dict[str, Any]]:
    """Return the jobs of ours, by name."""
    kinds = feature_tables(bands)
    graph = {"bandwidth": 0.25}

    def job(features: str, method: str, **others: Any) -> dict[str, Any]:
        learn = {"method": method, **others.pop("learn", {})}
        return {"features": kinds[features], "graph": {**graph, **others}, "learn": learn}

    edges = {"spatial": {"weight": 5.0}}
    near = {"spatial": {"weight": 1.0}}
    smooth = {"gamma": 1e-3, "power": 2}
    return {
        "two lines": {},
        TENTH: {"learn": {"train": 0.1}},
        "interpolated, bands": job("bands", "interpolated"),
        "interpolated, fractions": job("fractions", "interpolated"),
        "interpolated, bilateral": job("bilateral", "interpolated"),
        "interpolated, fractions, edges": job("fractions", "interpolated", **edges),
        "tikhonov 2, fractions, edges": job("fractions", "tikhonov", learn=smooth, **edges),
        "eigenfunctions, bilateral": job("bilateral", "eigenfunctions", learn={"gamma": 0.1}),
        "eigenfunctions, bands, edges": job(
            "standard", "eigenfunctions", learn={"gamma": 0.3}, **near
        ),
        "svm, bands": job("bands", "svm"),
        "svm, bilateral": job("bilateral", "svm"),
        "svm, profiles": job("profiles", "svm"),
    }


def machine(seed: int, folds: Any) -> Any:
    """Return a support vector machine with a grid search."""
    grid = {"svc__C": [1, 10, 100, 1000], "svc__gamma": ["scale", 0.001, 0.01, 0.1]}
    return GridSearchCV(make_pipeline(StandardScaler(), SVC(random_state=seed)), grid, cv=folds)


def forest(seed: int, folds: Any) -> Any:
    """Return a random forest with a grid search."""
    grid = {"max_features": ["log2", "sqrt"], "min_samples_leaf": [1, 3]}
    return GridSearchCV(RandomForestClassifier(150, random_state=seed), grid, cv=folds)


BASELINES: dict[str, tuple[str, Callable[[int, Any], Any]]] = {
    "SVM, bands": ("bands", machine),
    "SVM, fractions": ("fractions", machine),
    "SVM, bilateral": ("bilateral", machine),
    "SVM, profiles": ("profiles", machine),
    "forest, bands": ("bands", forest),
    "forest, fractions": ("fractions", forest),
    "forest, bilateral": ("bilateral", forest),
}
"""Features and classifier of each."""


@dataclass(frozen=True)
class Drawn:
    """The labelled pixels of a scene and the draws.

    Attributes
    ----------
    labelled
        Training set of each fit.
    fits
        Fits of each protocol.
    square : array, shape (labelled,)
        In which small square each lies.
    """

    labelled: Labelled
    fits: dict[str, list[int]]
    square: np.ndarray

    def folds(self, train: np.ndarray, seed: int) -> PredefinedSplit:
        """Return folds of the training pixels, whole squares each."""
        _, square = np.unique(self.square[train], return_inverse=True)
        order = np.random.default_rng(seed).permutation(int(square.max()) + 1)
        return PredefinedSplit(order[square] % _FOLDS)


class Bench:
    """Runs what a scene asks for."""

    def __init__(
        self, name: str, scene: dict[str, Any], folder: Path, seed: int, draws: int
    ) -> None:
        self.name, self.scene, self.folder = name, scene, folder
        self.learn = {"trials": draws, "seed": seed}
        self.bands = eigenscape.plan(self._job("plan", {})).bands

    def _job(self, title: str, tables: dict[str, Any]) -> eigenscape.Job:
        found = {
            **tables, "scene": self.scene, "learn": {**self.learn, **tables.get("learn", {})},
            "output": {"directory": str(self.folder / "runs"), "formats": []},
        }  # fmt: skip
        return eigenscape.parse_job(
            found, name=f"{self.name}-{title}".replace(", ", "-").replace(" ", "-")
        )

    def features(self, kind: str) -> tuple[np.ndarray, Drawn]:
        """Return the features of the labelled pixels, and the draws."""
        job = self._job(
            kind, {"features": feature_tables(self.bands)[kind], "learn": {"method": "k-nn"}}
        )
        parent = self.folder / "features"
        parent.mkdir(parents=True, exist_ok=True)
        on, siblings = ClusterOptions(), Siblings(parent.iterdir)
        with connect(on, None, job.limits.memory_bytes) as executor:
            run, _, _ = run_candidate(
                job,
                STAGES[:2],
                parent / kind,
                on=on,
                reporter=Silent(),
                executor=executor,
                siblings=siblings,
            )
        record = run.record("ingest")
        assert record is not None, "it is finished"
        scene = IngestedScene.from_summary(record.summary, job.scene, job.resolve)
        given, pixel = (
            np.asarray(run.open(name)[...]) for name in ("labels/given", "samples/pixel")
        )
        planned = plan_fits(job.learn, given, pixel, pixel, scene, first_only=False)
        labelled, fits = planned.labelled, planned.protocols
        row, column = np.divmod(pixel[labelled.sample], scene.grid.width)
        square = row // _SQUARE * scene.grid.width + column // _SQUARE
        values = np.asarray(run.open("features/values")[...])[labelled.sample]
        return values, Drawn(labelled, fits, square)

    def baseline(self, title: str) -> Iterator[dict[str, Any]]:
        """Yield the line of each protocol."""
        kind, make = BASELINES[title]
        values, drawn = self.features(kind)
        classes = drawn.labelled.classes
        for protocol in PROTOCOLS:
            start, busy, shares = time.perf_counter(), time.process_time(), []
            for number in drawn.fits[protocol]:
                train = drawn.labelled.train[number]
                held = drawn.labelled.held(number)
                search = make(number, drawn.folds(train, number)).fit(values[train], classes[train])
                shares.append(float((search.predict(values[held]) == classes[held]).mean()))
            yield self._line(
                title, protocol, 100 * float(np.mean(shares)), 100 * float(np.std(shares, ddof=1)),
                len(shares), time.perf_counter() - start, time.process_time() - busy,
            )  # fmt: skip

    def ours(self, title: str) -> Iterator[dict[str, Any]]:
        """Yield the line of each protocol."""
        start, busy = time.perf_counter(), time.process_time()
        result = eigenscape.run(self._job(title, our_tables(self.bands)[title]))
        seconds, busy = time.perf_counter() - start, time.process_time() - busy
        for protocol in PROTOCOLS:
            found = result.scores["held_out"][protocol]
            yield self._line(
                title, protocol, 100 * found["overall_accuracy"], 100 * found["overall_accuracy_std"],
                found["trials"], seconds, busy,
            )  # fmt: skip

    def _line(
        self,
        title: str,
        protocol: str,
        mean: float,
        deviation: float,
        draws: int,
        wall: float,
        cpu: float,
    ) -> dict[str, Any]:
        return {
            "scene": self.name, "classifier": title, "split": protocol, "accuracy": round(mean, 2),
            "standard_error": round(deviation / np.sqrt(draws), 2), "draws": draws, **self.learn,
            "seconds": round(wall, 1), "cpu_seconds": round(cpu, 1),
        }  # fmt: skip


def scenes_in(lines: list[dict[str, Any]]) -> list[str]:
    """Return the scenes in the order of `NAMES`, then those of job files."""
    found = list(dict.fromkeys(line["scene"] for line in lines))
    return [*(name for name in NAMES if name in found), *(n for n in found if n not in NAMES)]


def table(lines: list[dict[str, Any]]) -> str:
    """Return the lines as a table, the best baseline and the best of ours of each column in bold."""
    names = scenes_in(lines)
    cells = {(line["classifier"], line["scene"], line["split"]): line for line in lines}
    titles = list(dict.fromkeys(line["classifier"] for line in lines))
    best = set()
    for group in (set(BASELINES), set(titles) - set(BASELINES)):
        for name in names:
            for split in PROTOCOLS:
                own = [key for key in cells if key[0] in group and key[1:] == (name, split)]
                best |= {max(own, key=lambda key: cells[key]["accuracy"])} if own else set()
    rows = [
        "| | " + " | ".join(NAMES.get(name, name) for name in names) + " |",
        "|---" * (len(names) + 1) + "|",
    ]
    for title in titles:
        row = []
        for name in names:
            parts = []
            for split in PROTOCOLS:
                if (key := (title, name, split)) in cells:
                    text = f"{cells[key]['accuracy']:.1f} ± {cells[key]['standard_error']:.1f}"
                    draws = cells[key]["draws"]
                    text += "" if draws == USUAL_DRAWS else f" ({draws})"
                    parts.append(f"**{text}**" if key in best else text)
            row.append(" / ".join(parts))
        rows.append(f"| {title} | " + " | ".join(row) + " |")
    return "\n".join(rows)


MARK = "\n## What they say\n"
"""Where the page goes on with what a person has written, which stays."""

PAGE = """\
# Comparison with baselines

Overall accuracy in %, mean and standard error over the draws: learned from a tenth of the labelled pixels,
drawn by squares of the scene / at random, and tested on the rest. The best baseline and the best of ours are
in bold. `tests/bench/accuracy.py` writes this page.

* **Draws**: the same for all classifiers of a column. Where there are fewer than {draws}, their number is in
  brackets, and they are the first ones.
* **SVM, forest**: support vector machines (RBF) and random forests (150 trees) of scikit-learn, with a grid
  search by squares of 5 pixels within the training pixels of each draw. No training set is subsampled.
* **Two lines**: compares methods by half of the labels, because its map learns from all of them. **A tenth**
  compares them by as many as the draws learn from (`learn.train = 0.1`).
* **svm** in small letters: `learn.method = "svm"`, with its own search.
* **Eigenfunctions**: smooth ones, with `learn.gamma` = 0.1 after the filter, and 0.3 on standardised bands
  with edges in space.
* **Fractions**: 15 noise fractions (5 of Landsat's six bands). **Bilateral**: these after the joint bilateral
  filter. **Profiles**: morphological profiles by reconstruction, of four principal components.

{table}

Ahead or behind, best of ours less best baseline, with the standard error of the difference as if both were
independent:

{differences}

Processor seconds, both splits: of baselines without the features, of ours all stages and the map.

{seconds}
"""


def differences(lines: list[dict[str, Any]]) -> str:
    """Return by how much the best of ours is ahead of the best baseline, as a table."""
    rows = [
        "| | split | best of ours | best baseline | two lines less best baseline | best of ours less it |"
    ]
    rows.append("|---" * 6 + "|")
    for name in dict.fromkeys(line["scene"] for line in lines):
        for split in PROTOCOLS:
            own = [line for line in lines if (line["scene"], line["split"]) == (name, split)]
            theirs = [line for line in own if line["classifier"] in BASELINES]
            ours = [line for line in own if line["classifier"] not in BASELINES]
            if not theirs or not ours:
                continue
            best, other = (max(part, key=lambda line: line["accuracy"]) for part in (ours, theirs))
            two = [line for line in ours if line["classifier"] == "two lines"]
            cells = [_gain(line, other) for line in (*two, best)]
            cells = cells if two else ["", *cells]
            rows.append(
                f"| {NAMES.get(name, name)} | {split} | {best['classifier']} | {other['classifier']} | "
                + " | ".join(cells) + " |"
            )  # fmt: skip
    return "\n".join(rows)


def _gain(ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    error = float(np.hypot(ours["standard_error"], theirs["standard_error"]))
    return f"{ours['accuracy'] - theirs['accuracy']:+.1f} ± {error:.1f}"


def seconds(lines: list[dict[str, Any]]) -> str:
    """Return the processor seconds as a table."""
    names = scenes_in(lines)
    taken: dict[tuple[str, str], float] = {}
    for line in lines:
        key = line["classifier"], line["scene"]
        both = taken.get(key, 0.0) + line["cpu_seconds"]
        taken[key] = both if line["classifier"] in BASELINES else line["cpu_seconds"]
    rows = [
        "| | " + " | ".join(NAMES.get(name, name) for name in names) + " |",
        "|---" * (len(names) + 1) + "|",
    ]
    for title in dict.fromkeys(title for title, _ in taken):
        row = [f"{taken[title, name]:.0f}" if (title, name) in taken else "" for name in names]
        rows.append(f"| {title} | " + " | ".join(row) + " |")
    return "\n".join(rows)


def page(lines: list[dict[str, Any]]) -> str:
    """Return the page of all lines."""
    order = [*BASELINES, *our_tables(100)]
    lines = sorted(lines, key=lambda line: order.index(line["classifier"]))
    names = scenes_in(lines)
    by_scene = sorted(lines, key=lambda line: names.index(line["scene"]))
    return PAGE.format(
        draws=USUAL_DRAWS,
        table=table(lines),
        differences=differences(by_scene),
        seconds=seconds(lines),
    )


def main() -> int:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--scenes", nargs="*", choices=NAMES)
    parser.add_argument("--jobs", nargs="*", type=Path, default=[])
    parser.add_argument("--only", nargs="*", help="classifiers by name")
    parser.add_argument("--draws", type=int, default=USUAL_DRAWS)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--lines", type=Path)
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    draws = 3 if options.quick else options.draws
    lines: list[dict[str, Any]] = []
    if options.lines and options.lines.exists():
        lines = [
            json.loads(line) for line in options.lines.read_text(encoding="utf-8").splitlines()
        ]
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.keep or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        tables = {path.stem: scene_of(path) for path in options.jobs}
        chosen = [*(options.scenes or []), *tables]
        if options.scenes or not tables:
            tables |= scenes(options.data.resolve(), folder)
        for name in chosen or NAMES:
            bench = Bench(name, tables[name], folder / name, options.seed, draws)
            for title in options.only or [*BASELINES, *our_tables(bench.bands)]:
                if any((line["scene"], line["classifier"]) == (name, title) for line in lines):
                    continue
                for line in (bench.baseline if title in BASELINES else bench.ours)(title):
                    lines.append(line)
                    print(json.dumps(line), flush=True)
                    if options.lines:
                        with options.lines.open("a", encoding="utf-8") as file:
                            print(json.dumps(line), file=file)
    print(table(lines))
    if options.page:
        before = options.page.read_text(encoding="utf-8") if options.page.exists() else ""
        kept = before.partition(MARK)[2]
        options.page.write_text(page(lines) + MARK + kept, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
