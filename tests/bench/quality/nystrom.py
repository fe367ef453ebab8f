"""Eigenmaps of all pixels, of all pixels projected at random, and extended from a share of them.

    python tests/bench/quality/nystrom.py [indian-pines] [synthetic] [--share 0.2] [--dimension 55]
                                          [--draws 3]

The comparison of Halevy 2011, section 4.4 and table 4.1: LE, LERP, and "Improved Nystrom". That is
Zhang, Tsang and Kwok (2008): eigenvectors of a kernel on a few landmarks, which are the centres of
k-means, extended to all samples by the Nystrom formula. What the thesis measures by it is
understood as eigenmaps of a part, extended to the rest, and so it is done here on the graph: the
pixels of the part are drawn at random, their graph is solved, and `eigenscape.extend` does the
others. Each method gets the same parameters and is scored as the thesis does it, by the smallest angle
to the mean of a class (eigenvectors but the constant one): on the labelled pixels that made the
means, and held out (means from 10 % of each class, mean of 10 draws; the same pixels for every method).

Times are those of the stages after the scene was read: features, neighbours, graph, spectrum, and
extension. The extension compares all with all, where the neighbours stage searches approximately.
The compiled kernels are loaded before. Means over draws of the part and of the projection.
"""

import argparse
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import eigenscape
from eigenscape.base.process.progress import Silent
from eigenscape.clusters import Threads
from eigenscape.datasets.made.synthetic import synthesize
from eigenscape.job.jobfile import Job
from eigenscape.learn.classify.kernels.centroid import angle_scores, class_sums, unit_means
from eigenscape.scenes.ingest.stage import ingest_stage
from eigenscape.store.arrays import open_array
from eigenscape.store.manifest import Record
from eigenscape.store.run import Run
from eigenscape.workflow.runner import StageRunner
from eigenscape.workflow.stages import STAGES

MIDDLE = ("features", "neighbors", "graph", "spectrum")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scenes", nargs="*", default=["indian-pines", "synthetic"])
    parser.add_argument("--share", type=float, default=0.2)
    parser.add_argument("--dimension", type=int, default=55)
    parser.add_argument("--draws", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        warm = read(Path(directory), "warm")
        measure(warm, Path(directory), given.share, 10, 1)
        result = {
            "share": given.share,
            "dimension": given.dimension,
            "draws": given.draws,
            "scenes": {
                name: measure(
                    read(Path(directory), name), Path(directory), given.share, given.dimension,
                    given.draws,
                )
                for name in given.scenes
            },
        }  # fmt: skip
    print(json.dumps(result, indent=1))


def read(directory: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the samples of a scene and their labels, by the ingest stage."""
    scene = {"path": name}
    if name != "indian-pines":
        height, width, bands = (248, 253, 161) if name == "synthetic" else (30, 40, 90)
        path = directory / f"{name}.tif"
        synthesize(path, height=height, width=width, bands=bands, classes=22, seed=0)
        scene = {"path": str(path), "labels": str(path.with_name(f"{name}_labels.tif"))}
    job = Job.model_validate({"scene": scene})
    run = Run(directory / f"scene-{name}")
    StageRunner(run, Threads(1), Silent()).run("ingest", "key", ingest_stage, job)
    return run.open("samples/values")[...], run.open("labels/given")[...]


def measure(
    scene: tuple[np.ndarray, np.ndarray], directory: Path, share: float, dimension: int, draws: int
) -> dict:
    samples, labels = scene
    plain, projected = {"method": "none"}, {"method": "random-projection", "dimension": 80}
    tests = splits(labels)
    found: dict[str, list] = {name: [] for name in ("LE", "LERP", "Nystrom", "Nystrom + LERP")}
    for seed in range(draws):
        part = np.random.default_rng(seed).random(len(samples)) < share
        for name, features in (("LE", plain), ("LERP", projected)):
            run, seconds = solve(samples, directory, features, dimension, seed)
            vectors = run.open("spectrum/vector")[...]
            found[name].append({**score(vectors, labels, tests), **seconds})
        for name, features in (("Nystrom", plain), ("Nystrom + LERP", projected)):
            run, seconds = solve(samples[part], directory, features, dimension, seed)
            vectors = np.empty((len(samples), dimension + 1), np.float32)
            vectors[part] = run.open("spectrum/vector")[...]
            start = time.perf_counter()
            vectors[~part] = eigenscape.extend(run.path, samples[~part])
            seconds["extension"] = time.perf_counter() - start
            seconds["total"] += seconds["extension"]
            largest = float(run.open("spectrum/value")[-1])
            told = {**score(vectors, labels, tests), "largest_eigenvalue": largest}
            found[name].append({**told, **seconds})
    means = {
        name: {key: round(float(np.mean([one[key] for one in runs])), 4) for key in runs[0]}
        for name, runs in found.items()
    }
    return {"samples": len(samples), "labelled": int((labels > 0).sum()), **means}


def solve(
    samples: np.ndarray, directory: Path, features: dict, dimension: int, seed: int
) -> tuple[Run, dict]:
    """Run the stages up to the spectrum on samples in memory; return the run and its seconds."""
    job = Job.model_validate(
        {
            "scene": {"path": "none"},
            "features": {**features, "seed": seed},
            "spectrum": {"dimension": dimension},
        }
    )
    path = Path(tempfile.mkdtemp(dir=directory))
    run = Run(path)
    path.joinpath("job.toml").write_text(job.to_toml())
    workspace = run.workspace("ingest", "key")
    pixel = np.arange(len(samples))
    for name, values in (("samples/values", samples), ("samples/pixel", pixel)):
        open_array(workspace.create_array(name, values.shape, values.dtype))[...] = values
    record = Record("key", 0, 0, workspace.arrays(), (), {})
    bands = {"good": [True] * samples.shape[1]}
    run.commit("ingest", workspace, replace(record, summary={"bands": bands}))
    seconds = {}
    for stage in STAGES:
        if stage.name in MIDDLE:
            runner = StageRunner(run, Threads(2), Silent())
            seconds[stage.name] = runner.run(stage.name, "key", stage.work, job).seconds
    return run, {**seconds, "total": sum(seconds.values())}


def splits(labels: np.ndarray) -> np.ndarray:
    """Draw 10 % of the labelled pixels of each class (one at least), ten times."""
    rng = np.random.default_rng(0)
    draws = np.zeros((10, len(labels)), bool)
    for draw in draws:
        for number in np.unique(labels[labels > 0]):
            places = np.flatnonzero(labels == number)
            draw[rng.choice(places, max(1, len(places) // 10), replace=False)] = True
    return draws


def score(vectors: np.ndarray, labels: np.ndarray, tests: np.ndarray) -> dict:
    """Return the accuracy of the class-mean angle, on the same pixels and held out."""
    known = labels > 0
    classes = np.unique(labels[known], return_inverse=True)[1]
    coordinates = np.ascontiguousarray(vectors[known, 1:])
    train = np.concatenate([np.ones((1, len(classes)), bool), tests[:, known]])
    count = int(classes.max()) + 1
    means = [unit_means(class_sums(coordinates[fit], classes[fit], count)) for fit in train]
    called = np.array([angle_scores(coordinates, each).argmax(axis=1) for each in means])
    right = called == classes
    held = [right[1 + draw][~train[1 + draw]].mean() for draw in range(len(tests))]
    return {"same_pixels": float(right[0].mean()), "held_out": float(np.mean(held))}


if __name__ == "__main__":
    main()
