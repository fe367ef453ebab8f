"""The scenes of the matrix: pixels of several sizes, a table, a sparse table, with all their files."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

CLASSES, BANDS = 4, 12

SIZES: dict[str, tuple[Literal["pixels", "table", "sparse"], tuple[int, int]]] = {
    "100": ("pixels", (10, 10)),
    "24x24": ("pixels", (24, 24)),
    "40x40": ("pixels", (40, 40)),
    "chunk": ("pixels", (200, 200)),
    "400x400": ("pixels", (400, 400)),
    "679x944": ("pixels", (679, 944)),
    "small-table": ("table", (600, 1)),
    "small-sparse": ("sparse", (600, 1)),
    "table": ("table", (160_000, 1)),
    "sparse": ("sparse", (160_000, 1)),
}
"""Kind, and rows and columns, of each scene."""


@dataclass(frozen=True)
class Scene:
    """Files in a folder, and what is in them.

    Attributes
    ----------
    name, kind, folder
        Of the scene.
    values : array or csr_array, shape (samples, bands)
    labels : array, shape (samples,)
        0 for none.
    shape
        Rows and columns.
    keys
        Keys of a job that this scene needs.
    radii
        A radius with a few neighbours, and one with many: of the samples themselves.
    """

    name: str
    kind: str
    folder: Path
    values: Any
    labels: NDArray[np.uint8]
    shape: tuple[int, int]
    keys: dict[str, Any] = field(default_factory=dict)
    radii: dict[str, float] = field(default_factory=dict)


def make(name: str, folder: Path) -> Scene:
    """Write the files of a scene, and return it."""
    kind, (height, width) = SIZES[name]
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(height * width)
    row, column = np.mgrid[:height, :width] if kind == "pixels" else _places(rng, height)
    wave = 1.5 * np.sin(3 * column / (width if kind == "pixels" else 1)) + row / height * CLASSES
    truth = np.clip(wave.astype(int), 0, CLASSES - 1)
    # Classes that touch: one connected cloud, whose graph falls apart only where few neighbours count.
    spectra = rng.uniform(1, 2, (CLASSES, BANDS))
    blend = 0.6 * spectra[truth] + 0.4 * spectra.mean(axis=0)
    cube = (blend + rng.normal(0, 0.12, (*truth.shape, BANDS))).astype(np.float32)
    share = 0.3 if height * width < 10_000 else 2000 / (height * width)
    labels = np.where(rng.random(truth.shape) < share, truth + 1, 0).astype(np.uint8)
    values, given = cube.reshape(-1, BANDS), labels.ravel()
    near = _spacing(rng, values)
    radii = {"$few": float(near[0]), "$many": float(near[1])}
    if kind == "pixels":
        _write_pixels(folder, cube, labels)
        return Scene(name, kind, folder, values, given, (height, width), {}, radii)
    np.save(folder / "labels.npy", given[:, None])
    keys: dict[str, Any] = {"scene.labels": "labels.npy"}
    if kind == "table":
        np.save(folder / "table.npy", values[:, None, :])
        np.save(folder / "flat.npy", values)
        names = ",".join(f"b{number}" for number in range(1, values.shape[1] + 1))
        np.savetxt(
            folder / "table.csv", values, delimiter=",", header=names, comments="", fmt="%.9g"
        )
        keys["scene.path"] = "table.npy"
        return Scene(name, kind, folder, values, given, (height, 1), keys, radii)
    words = sp.csr_array(np.where(values > 1.45, values, 0).repeat(3, axis=1).astype(np.float32))
    sp.save_npz(folder / "words.npz", sp.csr_matrix(words))
    keys["scene.path"] = "words.npz"
    near = _spacing(rng, words.toarray())
    radii = {"$few": float(near[0]), "$many": float(near[1])}
    return Scene(name, kind, folder, words, given, (height, 1), keys, radii)


def _places(rng: np.random.Generator, rows: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return where the samples of a table would lie if it were a picture."""
    return np.arange(rows)[:, None], rng.random((rows, 1))


def _spacing(rng: np.random.Generator, values: NDArray[Any]) -> NDArray[np.float64]:
    """Return radii within which half of the samples have 12 and 60 others, by some of them."""
    chosen = rng.choice(len(values), min(len(values), 100), replace=False)
    ranks = [min(12, len(values) - 1), min(60, len(values) - 1)]
    squares = [
        np.partition(((values - values[row]) ** 2).sum(axis=1), ranks)[ranks] for row in chosen
    ]
    return np.sqrt(np.median(squares, axis=0))


def _write_pixels(folder: Path, cube: NDArray[np.float32], labels: NDArray[np.uint8]) -> None:
    _write_tif(folder / "scene.tif", cube)
    for band in range(cube.shape[2]):
        _write_tif(folder / f"band-{band + 1}.tif", cube[..., band, None])
    _write_tif(folder / "labels.tif", labels[..., None], nodata=0)
    mask = np.ones_like(labels)
    mask[: len(mask) // 4, : len(mask) // 4] = 0
    _write_tif(folder / "mask.tif", mask[..., None])
    barrier = np.zeros(labels.shape, np.float32)
    barrier[len(barrier) // 2] = 2
    _write_tif(folder / "barrier.tif", barrier[..., None])
    np.savez(folder / "cube.npz", cube=cube, truth=labels)
    # Where the pixels of the cube are: 10 m apart, turned by 20 degrees.
    down, across = (10.0 * part for part in np.mgrid[: labels.shape[0], : labels.shape[1]])
    turn = np.radians(20)
    east = 5e5 + across * np.cos(turn) - down * np.sin(turn)
    north = 5.8e6 - across * np.sin(turn) - down * np.cos(turn)
    _write_tif(folder / "places.tif", np.dstack([east, north]), crs="EPSG:32633")
    _write_fields(folder / "fields.geojson", *labels.shape)
    third = np.arange(labels.size).reshape(labels.shape) % 3 == 0
    _write_tif(
        folder / "test.tif", np.where(third, labels, 0).astype(np.uint8)[..., None], nodata=0
    )
    rows, columns = np.nonzero(np.where(third, 0, labels))
    places = (_WEST + (columns + 0.5) * _PIXEL, _NORTH - (rows + 0.5) * _PIXEL)
    np.savetxt(
        folder / "points.csv", np.column_stack([*places, labels[rows, columns]]), delimiter=",",
        header="lon,lat,class", comments="", fmt=("%.9f", "%.9f", "%d"),
    )  # fmt: skip


_WEST, _NORTH, _PIXEL = 13.0, 52.0, 1e-4


def _write_tif(path: Path, cube: NDArray[Any], **profile: Any) -> None:
    import rasterio

    height, width, count = cube.shape
    with rasterio.open(
        path, "w", driver="GTiff", height=height, width=width, count=count, dtype=cube.dtype,
        transform=rasterio.Affine(_PIXEL, 0, _WEST, 0, -_PIXEL, _NORTH),
        **{"crs": "EPSG:4326", **profile},
    ) as dataset:  # fmt: skip
        dataset.write(np.moveaxis(cube, -1, 0))
        for band in range(1, count + 1) if count > 1 else ():
            dataset.update_tags(band, wavelength=400 + 10 * band, wavelength_units="nm")


def _write_fields(path: Path, height: int, width: int) -> None:
    """Write two polygons, an upper and a lower half."""
    features = []
    for number, (top, bottom) in enumerate(((0, height // 3), (height // 2, height)), 1):
        corners = [(0, top), (width, top), (width, bottom), (0, bottom), (0, top)]
        ring = [[_WEST + x * _PIXEL, _NORTH - y * _PIXEL] for x, y in corners]
        features.append(
            {
                "type": "Feature",
                "properties": {"kind": number},
                "geometry": {"type": "Polygon", "coordinates": [ring]},
            }
        )
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
