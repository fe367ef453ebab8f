"""Does the shift measure of `eigenscape apply` tell far scenes from draws of one scene?

    python tests/bench/quality/shift.py [--data ../shared/data] [--only NAME ...]

Applies a run of one part of a scene to another part: halves, tiles of one flight, and, which must not
warn, squares of a checkerboard and pixels drawn at random. Prints one line of JSON for each pair: the
share of comparisons in which the new part is farther than usual, whether it warns, samples that are
flagged far one by one, and the accuracy of the map on the labels of the new part.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import rasterio

import eigenscape


def landsat(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    bands = []
    for number in (10, 20, 30, 40, 50, 70):
        with rasterio.open(folder / f"lsat7_2000_{number}.tif") as source:
            band = source.read(1).astype(np.float32)
            bands.append(np.where(band == source.nodata, np.nan, band))
    with rasterio.open(folder / "landsat96_labelled_pixels.tif") as source:
        labels = source.read(1)
    return np.stack(bands, axis=-1), np.where(labels == source.nodata, 0, labels).astype(np.uint8)


def enmap(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    with rasterio.open(folder / "enmap_potsdam_mosaic.tif") as source:
        good = [band for band in source.indexes if source.tags(band).get("bbl") != "0"]
        cube = source.read(good).astype(np.float32).transpose(1, 2, 0)
        cube[(cube == source.nodata).any(axis=2)] = np.nan
    with rasterio.open(folder / "enmap_potsdam_mosaic_labels.tif") as source:
        return cube, np.maximum(source.read(1), 0).astype(np.uint8)


def scenes(data: Path) -> Iterator[tuple[str, np.ndarray, np.ndarray, dict[str, object]]]:
    with np.load(data / "indian-pines" / "indian_pines.npz") as file:
        pines = file["cube"].astype(np.float32), file["gt"].astype(np.uint8)
    yield "pines-mnf", *pines, {"method": "mnf", "dimension": 15}
    yield "pines-bands", *pines, {"method": "none"}
    with np.load(data / "urban-crop" / "urban_crop_with_abundances.npz") as file:
        yield "urban", file["cube"].astype(np.float32), file["labels_argmax"].astype(np.uint8), {}
    yield "enmap", *enmap(data / "enmap-potsdam"), {}
    yield "landsat", *landsat(data / "landsat-nc"), {}


def pairs_of(name: str, valid: np.ndarray) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    height, width = valid.shape
    row, column = np.indices(valid.shape)
    left, top = column < width // 2, row < height // 2
    for title, part in (("left to right", left), ("top to bottom", top)):
        yield title, part, ~part
        yield " ".join(reversed(title.split())), ~part, part
    if name == "enmap":
        tile = row // 32 * 100 + column // 32
        whole = [t for t in np.unique(tile) if valid[tile == t].mean() > 0.99]
        for number in range(0, len(whole), 4):
            here, there = whole[number], whole[-1 - number]
            yield f"tile {here} to tile {there}", tile == here, tile == there
    for side in (max(height, width) // 12, max(height, width) // 6):
        squares = (row // side + column // side) % 2 == 0
        yield f"same scene, squares of {side}", squares, ~squares
    drawn = np.random.default_rng(0).random(valid.shape) < 0.5
    yield "same scene, pixels", drawn, ~drawn


def measure(folder: Path, cube: np.ndarray, labels: np.ndarray, features: dict[str, object],
            here: np.ndarray, there: np.ndarray) -> dict[str, object]:  # fmt: skip
    for number, part in enumerate((here, there)):
        np.save(folder / f"scene-{number}.npy", np.where(part[..., None], cube, np.nan))
        np.save(folder / f"labels-{number}.npy", np.where(part, labels, 0))
    if len(np.unique(labels[here])) < 3:
        return {"skipped": "fewer than two classes to learn from"}
    job = {
        "scene": {"path": str(folder / "scene-0.npy"), "labels": str(folder / "labels-0.npy")},
        "features": features, "spectrum": {"dimension": 10},
        "learn": {"method": "k-nn", "trials": 1}, "output": {"formats": []},
    }  # fmt: skip
    run = eigenscape.run(eigenscape.parse_job(job, name="here"), run_dir=folder / "run")
    told = eigenscape.apply(
        run.path, folder / "scene-1.npy", labels=folder / "labels-1.npy",
        overrides=["output.formats=[]"], run_dir=folder / "applied",
    )  # fmt: skip
    shift = told.applied["shift"]
    accuracy = told.scores.get("overall_accuracy")
    return {
        "farther": round(shift["farther"], 3), "warns": shift["differs"],
        "far_one_by_one": told.applied["far"], "samples": told.applied["samples"],
        "accuracy": None if accuracy is None else round(accuracy, 3),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    wrong = 0
    for name, cube, labels, features in scenes(options.data):
        if options.only and name not in options.only:
            continue
        for title, here, there in pairs_of(name, np.isfinite(cube).all(axis=2)):
            with tempfile.TemporaryDirectory() as folder:
                found = measure(Path(folder), cube, labels, features, here, there)
            wrong += title.startswith("same") and bool(found.get("warns"))
            print(json.dumps({"scene": name, "pair": title, **found}), flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
