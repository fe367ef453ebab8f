"""How good is the choice where a benchmark gives separate files to learn from and to test on?

    python tests/bench/disjoint.py [--data ../shared/data] [--scenes pines enmap ...] [--jobs FILE ...]
                                   [--shares 0.15 0.5] [--square 6] [--seed 5] [--only NAME ...]

Parts the labels of scenes by squares into one file that jobs learn from (`scene.labels`) and one that they
are tested on (`learn.test`), as published disjoint splits do, and runs the job of two lines and jobs with
given methods. A class of which the first file has fewer than three pixels gives it its first eight. Prints a
line of JSON for each job: accuracy on the test file and seconds.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))

from accuracy import NAMES, feature_tables, our_tables, scene_of, scenes

import eigenscape
from eigenscape.base.process.progress import Silent
from eigenscape.scenes.labels.sources import open_labels
from eigenscape.scenes.open import open_scene

_FEW, _AT_LEAST = 3, 8


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
    return {**our_tables(bands), "svm, guided": {"features": guided, "learn": {"method": "svm"}}}


def measure(
    name: str, table: dict[str, Any], options: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Run the jobs on one scene."""
    job = eigenscape.parse_job({"scene": table}, name=name)
    scene = open_scene(job.scene, job.resolve)
    given = open_labels(job.scene, scene, job.resolve)
    assert given is not None, "the scene has labels"
    labels = given.read(0, scene.grid.height)
    for share in options.shares:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            paths = [folder / f"{part}.npy" for part in ("train", "test")]
            for path, part in zip(
                paths, parted(labels, share, options.square, options.seed), strict=True
            ):
                np.save(path, part)
            for title, methods in tables(scene.bands.count).items():
                if options.only and title not in options.only:
                    continue
                learn = {**methods.get("learn", {}), "test": str(paths[1])}
                whole = {
                    **methods, "scene": {"path": table["path"], "labels": str(paths[0])}, "learn": learn,
                    "output": {"directory": str(folder / "runs"), "formats": []},
                }  # fmt: skip
                start = time.perf_counter()
                result = eigenscape.run(eigenscape.parse_job(whole, name=name), reporter=Silent())
                yield {
                    "scene": name, "share": share, "job": title, "seed": options.seed,
                    "accuracy": round(100 * result.scores["overall_accuracy"], 2),
                    "average_accuracy": round(100 * result.scores["average_accuracy"], 2),
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
    parser.add_argument("--only", nargs="*", help="jobs by name")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        known = scenes(options.data.resolve(), Path(temporary)) if options.scenes else {}
        chosen = {name: known[name] for name in options.scenes}
        chosen |= {path.stem: scene_of(path) for path in options.jobs}
        for name, table in chosen.items():
            for line in measure(name, table, options):
                print(json.dumps(line), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
