"""Scenes in sensor geometry that tests write: pixels on known ground, as ENVI files with an IGM or a GLT."""

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import rasterio
from rasterio.errors import NotGeoreferencedWarning

CRS = "EPSG:32633"
PIXEL = 10.0
BANDS = 6


@dataclass(frozen=True)
class Line:
    """A flightline on known ground.

    Attributes
    ----------
    height, width
        Of the scene.
    heading
        Degrees by which the track is turned.
    east, north
        Of the first pixel.
    sway
        Pixels by which the platform swings across the track.
    """

    height: int = 60
    width: int = 40
    heading: float = 25.0
    east: float = 500_000.0
    north: float = 5_800_000.0
    sway: float = 1.5

    @property
    def places(self):
        """Easting and northing of the centre of every pixel."""
        row, column = np.mgrid[: self.height, : self.width].astype(float)
        column = column + self.sway * np.sin(row / 9)
        angle = np.radians(self.heading)
        east = self.east + PIXEL * (column * np.cos(angle) - row * np.sin(angle))
        north = self.north - PIXEL * (column * np.sin(angle) + row * np.cos(angle))
        return east, north


def ground(east, north):
    """Return the class of the ground at some places: squares of 120 m, in four classes."""
    return (1 + (np.floor(east / 120) % 2) + 2 * (np.floor(north / 120) % 2)).astype(np.uint8)


def spectra(classes, rng, noise=0.01):
    """Return spectra of classes."""
    pure = np.random.default_rng(1).uniform(0.2, 0.8, (5, BANDS))
    return (pure[classes] + rng.normal(0, noise, (*classes.shape, BANDS))).astype(np.float32)


def cells(transform, east, north):
    """Return column and row of places on a grid."""
    a, b, c, d, e, f = tuple(transform)[:6]
    across, down = np.linalg.solve(
        [[a, b], [d, e]], np.stack([np.ravel(east) - c, np.ravel(north) - f])
    )
    return across.reshape(np.shape(east)), down.reshape(np.shape(east))


def places(transform, column, row):
    """Return easting and northing of places given by column and row."""
    a, b, c, d, e, f = tuple(transform)[:6]
    return a * column + b * row + c, d * column + e * row + f


def write_envi(path: Path, cube, **profile) -> Path:
    """Write an array (rows, columns, bands) as an ENVI file without an ending, with its header."""
    cube = np.asarray(cube)
    # Scenes in sensor geometry have no place on purpose.
    warnings.filterwarnings("ignore", category=NotGeoreferencedWarning)
    with rasterio.open(
        path, "w", driver="ENVI", height=cube.shape[0], width=cube.shape[1], count=cube.shape[2],
        dtype=cube.dtype, **profile,
    ) as dataset:  # fmt: skip
        dataset.write(np.moveaxis(cube, -1, 0))
    return path


def write_glt(path: Path, line: Line, **turned) -> Path:
    """Write the lookup table of a line as a GeoTIFF; ENVI headers know no grid that is south-up."""
    table, transform = make_glt(line, **turned)
    with rasterio.open(
        path, "w", driver="GTiff", height=table.shape[0], width=table.shape[1], count=2, dtype="int32",
        crs=CRS, transform=transform,
    ) as dataset:  # fmt: skip
        dataset.write(np.moveaxis(table, -1, 0))
    return path


def write_igm(path: Path, line: Line) -> Path:
    """Write the coordinates of the pixels of a line."""
    return write_envi(path, np.dstack(line.places), crs=CRS)


def make_glt(line: Line, *, heading: float = 0.0, south_up: bool = False):
    """Return columns and rows of the nearest pixels in the cells of a map, and its transform."""
    east, north = line.places
    turn, up = np.radians(heading), 1 if south_up else -1
    transform = rasterio.Affine(
        PIXEL * np.cos(turn), -up * PIXEL * np.sin(turn), float(east.min()),
        PIXEL * np.sin(turn), up * PIXEL * np.cos(turn), float(north.max()),
    )  # fmt: skip
    column, row = cells(transform, east, north)
    corner = places(transform, float(np.floor(column.min())), float(np.floor(row.min())))
    a, b, _, d, e, _ = tuple(transform)[:6]
    transform = rasterio.Affine(a, b, corner[0], d, e, corner[1])
    column, row = cells(transform, east, north)
    shape = int(np.ceil(row.max())) + 1, int(np.ceil(column.max())) + 1
    down, across = np.mgrid[: shape[0], : shape[1]] + 0.5
    apart = (down.ravel()[:, None] - row.ravel()) ** 2 + (
        across.ravel()[:, None] - column.ravel()
    ) ** 2
    nearest = apart.argmin(axis=1)
    there = apart.min(axis=1) <= 1
    x = np.where(there, nearest % line.width + 1, 0).reshape(shape)
    y = np.where(there, nearest // line.width + 1, 0).reshape(shape)
    return np.dstack([x, y]).astype(np.int32), transform


def inner(east, north):
    """Return whether places lie 15 m or more within a square of `ground`."""
    return (np.abs(east % 120 - 60) < 45) & (np.abs(north % 120 - 60) < 45)


def write_points(path: Path, line: Line, rng, count=200) -> Path:
    """Write classes of the ground at some places on a line, well inside of the squares."""
    east, north = (part.ravel() for part in line.places)
    chosen = rng.permutation(np.flatnonzero(inner(east, north)))[:count]
    table = np.column_stack([east, north, ground(east, north)])[chosen]
    np.savetxt(path, table, delimiter=",", header="x,y,class", comments="", fmt="%.3f")
    return path


def nearest_pixels(line: Line, transform, shape, farthest: float):
    """Return the nearest pixel to the centre of each cell, -1 beyond some cells; and how far it is."""
    column, row = cells(transform, *line.places)
    down, across = np.mgrid[: shape[0], : shape[1]] + 0.5
    apart = np.hypot(down.ravel()[:, None] - row.ravel(), across.ravel()[:, None] - column.ravel())
    found = np.where(apart.min(axis=1) < farthest, apart.argmin(axis=1), -1)
    return found.reshape(shape), apart.min(axis=1).reshape(shape)
