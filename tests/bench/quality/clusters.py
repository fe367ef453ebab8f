"""How many clusters do the eigenvalues tell (`learn.clusters = "auto"` without labels)?

    python tests/bench/quality/clusters.py [--data ../shared/data] [--draws 2]

Prints one line of JSON for each data set: true classes, the number that the rule tells (null where it
refuses) and why, and what the largest relative gap alone would say; then how often each is right.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from sklearn.datasets import load_digits, make_blobs, make_circles, make_moons, make_swiss_roll

import eigenscape
from eigenscape.errors import InputError
from eigenscape.learn.clustering.numbers import choose_count
from eigenscape.learn.methods.spectral_clustering import SpectralClustering

MODES = 40


def points(data: Path, draws: int) -> Iterator[tuple[str, int, np.ndarray]]:
    for seed in range(draws):
        for classes in range(2, 21, 2):
            for spread, dimension in ((1, 10), (3, 10), (2, 5)):
                X, _ = make_blobs(
                    1000, dimension, centers=classes, cluster_std=spread,
                    random_state=100 * seed + classes,
                )  # fmt: skip
                yield f"blobs, sd {spread} in {dimension}", classes, X
    yield "moons", 2, make_moons(1500, noise=0.08, random_state=0)[0]
    yield "circles", 2, make_circles(1500, noise=0.05, factor=0.5, random_state=0)[0]
    yield "digits", 10, load_digits(return_X_y=True)[0]
    with np.load(data / "mnist" / "mnist.npz") as file:
        yield "mnist, 5000", 10, file["x_train"][:5000].reshape(5000, -1).astype(np.float32)
    rng = np.random.default_rng(0)
    yield "swiss roll", 1, make_swiss_roll(1500, random_state=0)[0]
    for dimension in (2, 5, 10):
        yield f"normal in {dimension}", 1, rng.standard_normal((1500, dimension))


def values_of(X: np.ndarray) -> np.ndarray:
    model = eigenscape.LaplacianEigenmaps(
        n_components=MODES, n_neighbors=12, laplacian="normalized", random_state=0
    )
    values = np.asarray(model.fit(X).eigenvalues_)
    return values if len(values) > MODES else np.append(0, values)


def scenes(data: Path, folder: Path) -> Iterator[tuple[str, int, dict[str, Any]]]:
    with np.load(data / "indian-pines" / "indian_pines.npz") as file:
        np.save(folder / "pines.npy", file["cube"])
    with np.load(data / "urban-crop" / "urban_crop_with_abundances.npz") as file:
        np.save(folder / "urban.npy", file["cube"])
    mnf = {"method": "mnf", "dimension": 15}
    pines, urban = ({"path": str(folder / f"{name}.npy")} for name in ("pines", "urban"))
    yield "Indian Pines", 16, {"scene": pines}
    yield "Indian Pines, mnf", 16, {"scene": pines, "features": mnf}
    yield "Indian Pines, spatial", 16, {"scene": pines, "graph": {"spatial": {"weight": 5.0}}}
    yield "Urban crop", 6, {"scene": urban}
    mosaic = data / "enmap-potsdam" / "enmap_potsdam_mosaic.tif"
    yield "EnMAP Potsdam", 6, {"scene": {"path": str(mosaic)}}
    for tile in sorted((data / "enmap-potsdam" / "tiles").glob("*.tif"))[::6]:
        labels = data / "enmap-potsdam" / "enmap_potsdam_mosaic_labels.tif"
        with rasterio.open(labels) as whole, rasterio.open(tile) as part:
            given = whole.read(1, window=whole.window(*part.bounds).round_offsets())
        yield tile.stem, len(np.unique(given[given > 0])), {"scene": {"path": str(tile)}}
    bands = [str(data / "landsat-nc" / f"lsat7_2000_{b}.tif") for b in (10, 20, 30, 40, 50, 70)]
    yield "Landsat", 7, {"scene": {"path": bands}}


def divided(tables: dict[str, Any], found: tuple[int | None, str, int]) -> tuple[Any, str, int]:
    """Return what is told once a scene has been divided, which may be that one part is too small."""
    try:
        if found[0]:
            tables = tables | {"learn": {"method": "spectral-clustering"}}
            eigenscape.run(eigenscape.parse_job(tables, name="divided"))
        return found
    except InputError as error:
        return None, str(error), found[2]


def told(values: np.ndarray, nulls: int) -> tuple[int | None, str, int]:
    alone = 2 + int((1 - values[1:-1] / np.maximum(values[2:], 1e-30)).argmax())
    try:
        options = SpectralClustering()
        return *choose_count(options, values, nulls, 0), alone
    except InputError as error:
        return None, str(error), alone


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--draws", type=int, default=2)
    options = parser.parse_args()
    counted: Counter[str] = Counter()

    def say(kind: str, name: str, true: int, found: tuple[int | None, str, int]) -> None:
        count, reason, alone = found
        counted[f"{kind}: " + ("refused" if count is None else f"off by {abs(count - true)}")] += 1
        counted[f"{kind}, the largest gap alone: off by {abs(alone - true)}"] += 1
        line = {"data": name, "true": true, "told": count, "largest gap": alone, "why": reason}
        print(json.dumps(line), flush=True)

    for name, true, X in points(options.data, options.draws):
        say("made" if name.startswith("blobs") else "points", name, true, told(values_of(X), 1))
    with tempfile.TemporaryDirectory() as folder:
        for name, true, tables in scenes(options.data, Path(folder)):
            tables |= {"output": {"directory": folder, "formats": []}}
            spectrum = eigenscape.run(eigenscape.parse_job(tables, name="scene")).spectrum
            found = told(np.array(spectrum["values"]), spectrum["null_vectors"])
            say("scenes", name, true, divided(tables, found))
    print(json.dumps(dict(sorted(counted.items())), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
