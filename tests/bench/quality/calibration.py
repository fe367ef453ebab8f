"""How honest is the confidence of every method on the labelled scenes?

    python tests/bench/quality/calibration.py [--data ../shared/data] [--scenes pines enmap urban landsat]
                                              [--methods k-nn poisson ...] [--seeds 0 1] [--keep FOLDER]

Runs each method with the draws of each seed and prints one line of JSON for each: expected calibration
error in percent, random and blocked, as the run itself reports it (one half of the draws and of the
labelled pixels, measured with the calibration of the other half), and that of the calibration of the
first seed's draws on the blocked pixels of the other seeds' draws. Then the table for jobs/MEASUREMENTS.md.
It ends where any pixel with a class has a probability below 1 / classes.
Scores of the fits are kept in FOLDER, and read from there the next time.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import eigenscape
from eigenscape.learn import stage
from eigenscape.learn.decide.calibration import calibrate, measure
from eigenscape.learn.decide.kernels.calibrationfit import Calls, Fit, Sample
from eigenscape.learn.decide.sampling import Sampling
from eigenscape.store.run import Run

METHODS = (
    "interpolated", "eigenfunctions", "tikhonov", "poisson", "poisson-mbo", "centroid-angle",
    "k-nn", "geodesic-nn",
)  # fmt: skip
PROTOCOLS = ("random", "blocked")


def jobs(data: Path, folder: Path) -> dict[str, dict[str, Any]]:
    """Return the tables of a job for each scene, after writing what is read as plain arrays."""
    with np.load(data / "indian-pines" / "indian_pines.npz") as file:
        np.save(folder / "pines.npy", file["cube"])
        np.save(folder / "pines-labels.npy", file["gt"].astype(np.uint8))
    with np.load(data / "urban-crop" / "urban_crop_with_abundances.npz") as file:
        np.save(folder / "urban.npy", file["cube"])
        np.save(folder / "urban-labels.npy", file["labels_argmax"].astype(np.uint8))
    own = {
        name: {"path": str(folder / f"{name}.npy"), "labels": str(folder / f"{name}-labels.npy")}
        for name in ("pines", "urban")
    }
    enmap, landsat = data / "enmap-potsdam", data / "landsat-nc"
    tif = str(enmap / "enmap_potsdam_mosaic")
    bands = [str(landsat / f"lsat7_2000_{band}.tif") for band in (10, 20, 30, 40, 50, 70)]
    points = {"labels": str(landsat / "landsat96_points.shp"), "labels_field": "label"}
    return {
        "pines": {"scene": own["pines"], "features": {"method": "mnf", "dimension": 15}},
        "enmap": {"scene": {"path": f"{tif}.tif", "labels": f"{tif}_labels.tif"}},
        "landsat": {"scene": {"path": bands, **points}},
        "urban": {"scene": own["urban"]},
    }


def run(name: str, method: str, seed: int, job: dict[str, Any], folder: Path, target: Path) -> None:
    """Run a job and keep the scores of its fits at the labelled pixels."""
    calibrated = stage.calibrate_fits

    def whole(sampling, number):  # type: ignore[no-untyped-def]
        return np.arange(len(sampling.labelled.sample))

    def keep(source, sampling, zones):  # type: ignore[no-untyped-def]
        labelled = sampling.labelled
        fits = range(len(labelled.train))
        np.savez_compressed(
            target, train=labelled.train, classes=labelled.classes, zones=zones.count,
            S=np.array([source.at_labels(fit, whole(sampling, fit)) for fit in fits]),
            Z=np.array([zones.at_labels(fit) for fit in fits]),
            prot=json.dumps(sampling.protocols),
        )  # fmt: skip
        return calibrated(source, sampling, zones)

    share = 0.5 if name == "landsat" else 0.1
    tables = {
        **job, "learn": {"method": method, "train": share, "seed": seed},
        "output": {"directory": str(folder / "runs"), "formats": []},
    }  # fmt: skip
    with (
        mock.patch.object(stage, "calibrate_fits", keep),
        mock.patch.object(Sampling, "of_fit", whole),
    ):
        result = eigenscape.run(eigenscape.parse_job(tables, name=f"{name}-{method}-{seed}"))
    found = Run(result.path, create=False)
    sure, called = (
        np.asarray(found.open(f"labels/{part}")[...]) for part in ("confidence", "class")
    )
    least = float(sure[called > 0].min())
    classes = len(result.scores["per_class"])
    if least < 1 / classes - 1e-6:
        raise SystemExit(f"{name}, {method}, seed {seed}: probability {least} of {classes} classes")


def halves_of(path: Path, seed: int) -> tuple[dict[str, list[Sample]], int]:
    """Return both halves of the held-out pixels of each protocol, as `calibrate_fits` parts them."""
    with np.load(path) as file:
        scores, where, train, classes = (file[key] for key in ("S", "Z", "train", "classes"))
        protocols = json.loads(str(file["prot"]))
    second = np.random.default_rng([seed, 4]).random(len(classes)) < 0.5
    found: dict[str, list[Sample]] = {}
    for protocol, fits in protocols.items():
        found[protocol] = []
        for last in (False, True):
            parts = []
            for fit in fits[last::2]:
                held = np.flatnonzero(~train[fit] & (second == last))
                calls = Calls.of(scores[fit][~train[fit]])
                parts.append(calls.sample(scores[fit][held], classes[held], where[fit][held]))
            found[protocol].append(Sample.join(parts))
    return found, int(where.max()) + 1


def thinned(sample: Sample, most: int = 10_000) -> Sample:
    step = max(1, len(sample.classes) // most)
    return Sample(*(values[::step] for values in vars(sample).values()))


def assess(halves: dict[str, list[Sample]], zones: int) -> tuple[Fit, dict[str, float]]:
    parts = tuple(Sample.join([thinned(pair[last]) for pair in halves.values()]) for last in (0, 1))
    tests = {name: (pair[1], pair[0]) for name, pair in halves.items()}
    fit, report = calibrate((parts[0], parts[1]), tests, zones)
    error = {
        name: 100 * told["expected_calibration_error"] for name, told in report["after"].items()
    }
    return fit, error


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--scenes", nargs="*")
    parser.add_argument("--methods", nargs="*", default=METHODS)
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1])
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    table: dict[tuple[str, str], str] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        kept = (options.keep or folder).resolve()
        kept.mkdir(parents=True, exist_ok=True)
        found = jobs(options.data.resolve(), folder)
        for name in options.scenes or found:
            for method in options.methods:
                line: dict[str, Any] = {"scene": name, "method": method}
                fits: list[Fit] = []
                for seed in options.seeds:
                    path = kept / f"{name}-{method}-{seed}.npz"
                    if not path.exists():
                        run(name, method, seed, found[name], folder, path)
                    halves, zones = halves_of(path, seed)
                    fit, error = assess(halves, zones)
                    line[f"seed {seed}"] = {key: round(value, 1) for key, value in error.items()}
                    if fits:
                        other = thinned(Sample.join(halves["blocked"]))
                        share = measure(other, fits[0])["expected_calibration_error"]
                        line[f"first on {seed}, blocked"] = round(100 * share, 1)
                    fits.append(fit)
                print(json.dumps(line), flush=True)
                means = [
                    np.mean([line[f"seed {seed}"][key] for seed in options.seeds])
                    for key in PROTOCOLS
                ]
                others = [value for key, value in line.items() if key.startswith("first")]
                table[method, name] = " / ".join(f"{value:.1f}" for value in (*means, *others))
    names = list(dict.fromkeys(name for _, name in table))
    print("| method | " + " | ".join(names) + " |")
    for method in options.methods:
        print(f"| `{method}` | " + " | ".join(table[method, name] for name in names) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
