"""Where which class is in a synthetic scene, as a function of coordinates and a seed alone.

A warped Voronoi diagram of patches, crossed by a creek (the zero line of smooth noise) and a net of
roads. All randomness is hashed lattice points and all arithmetic is +, *, / and square roots, so a
pixel comes out the same to the last bit whatever window of rows it is made in.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Hashes = NDArray[np.uint64]

FIRST_PATCH_CLASS = 3
"""Classes from here on make patches, if there are as many; 1 is the creek then, 2 the roads."""

_CELL = 30.0  # Pixels across a patch, of scenes that are large enough.
_CREEK_PERIOD, _ROAD_PERIOD = 420.0, 330.0
_UNLABELLED_PATCHES = 0.26


def _hash(x: NDArray[np.int64], y: NDArray[np.int64], salt: int) -> Hashes:
    """Return 64 mixed bits per lattice point (splitmix64's finaliser)."""
    bits = x.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    bits = bits ^ (y.astype(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F))
    bits = bits + np.uint64((salt * 0xD6E8FEB86659FD93 + 0x165667B19E3779F9) % 2**64)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def _share(bits: Hashes, part: int = 0) -> Floats:
    """Return one of two 24-bit halves of a hash as a number in [0, 1)."""
    field = (bits >> np.uint64(24 * part)) & np.uint64(0xFFFFFF)
    return field.astype(np.float32) * np.float32(2**-24)


def smooth_noise(start: int, stop: int, width: int, period: float, salt: int) -> Floats:
    """Return smooth noise in [-1, 1] of rows start ... stop-1, shape (rows, width), float32."""
    rows = np.arange(start, stop) / period
    columns = np.arange(width) / period
    y, x = np.floor(rows).astype(np.int64), np.floor(columns).astype(np.int64)
    lattice_y, lattice_x = np.arange(y[0], y[-1] + 2), np.arange(x[-1] + 2)
    lattice = 2 * _share(_hash(lattice_x, lattice_y[:, np.newaxis], salt)) - 1
    part_x, part_y = _smoothstep(columns - x), _smoothstep(rows - y)[:, np.newaxis]
    across = lattice[:, x] * (1 - part_x) + lattice[:, x + 1] * part_x
    y = y - lattice_y[0]
    return np.asarray(across[y] * (1 - part_y) + across[y + 1] * part_y, np.float32)


def _smoothstep(part: NDArray[np.float64]) -> Floats:
    return (part * part * (3 - 2 * part)).astype(np.float32)


@dataclass(frozen=True)
class Cover:
    """What covers some rows: arrays of shape (rows, width).

    Attributes
    ----------
    main
        Class of most of the pixel, from 1.
    other, mixed
        Class next to it, and its share of the pixel, 0 ... 0.5.
    labelled
        Where the scene's labels tell the class.
    """

    main: NDArray[np.int64]
    other: NDArray[np.int64]
    mixed: Floats
    labelled: NDArray[np.bool_]


@dataclass(frozen=True)
class Land:
    """Where each class is."""

    width: int
    classes: int
    cell: float
    salt: int

    @classmethod
    def make(cls, height: int, width: int, classes: int, seed: int) -> "Land":
        """Lay out a scene of a size; patches shrink in small scenes."""
        # At least six patches per class in small scenes, if they have the pixels.
        cell = min(_CELL, max(3.0, (height * width / (6 * classes)) ** 0.5))
        return cls(width, classes, cell, (seed * 0x9E3779B1 + 1) % 2**63)

    def labels(self, start: int, stop: int) -> NDArray[np.int64]:
        """Return the classes of rows start ... stop-1, 0 where they are not labelled."""
        cover = self.cover(start, stop)
        return np.where(cover.labelled, cover.main, 0)

    def cover(self, start: int, stop: int) -> Cover:
        """Return what covers rows start ... stop-1, arrays of shape (rows, width)."""
        near, near_2, bits, bits_2 = self._nearest_patches(start, stop)
        main, other = self._patch_class(bits), self._patch_class(bits_2)
        # Half the distance to the border between two patches, in pixels.
        edge = (near_2 - near) * np.float32(0.5)
        mixed = np.clip(0.5 - edge / 3, 0, 0.5)
        labelled = (_share(bits >> np.uint64(8), 1) >= _UNLABELLED_PATCHES) & (edge > 0.7)
        if self.classes > FIRST_PATCH_CLASS:
            for number, away, half in (
                (1, self._creek(start, stop), 3.5),
                (2, self._roads(start, stop), 1.8),
            ):
                inside = away < half
                fringe = np.clip(0.5 - np.abs(away - half) / 2, 0, 0.5)
                other = np.where(inside, main, np.where(fringe > mixed, number, other))
                main = np.where(inside, number, main)
                mixed = np.where(inside, fringe, np.maximum(mixed, fringe))
                labelled &= np.abs(away - half) > 0.5
        return Cover(main, other, np.asarray(mixed, np.float32), labelled)

    def _nearest_patches(self, start: int, stop: int) -> tuple[Floats, Floats, Hashes, Hashes]:
        """Return distance and hash of the nearest two points of a jittered, warped lattice."""
        rows = np.arange(start, stop, dtype=np.float64)[:, np.newaxis]
        columns = np.arange(self.width, dtype=np.float64)
        warp = [
            0.45
            * self.cell
            * smooth_noise(start, stop, self.width, 1.7 * self.cell, self.salt + axis)
            + 0.12
            * self.cell
            * smooth_noise(start, stop, self.width, 0.4 * self.cell, self.salt + axis + 2)
            for axis in (0, 1)
        ]
        y, x = (rows + warp[0]) / self.cell, (columns + warp[1]) / self.cell
        cell_y, cell_x = np.floor(y).astype(np.int64), np.floor(x).astype(np.int64)
        part_y, part_x = (y - cell_y).astype(np.float32), (x - cell_x).astype(np.float32)
        near = np.full(y.shape, np.inf, np.float32)
        near_2 = near.copy()
        bits, bits_2 = np.zeros(y.shape, np.uint64), np.zeros(y.shape, np.uint64)
        for down in (-1, 0, 1):
            for right in (-1, 0, 1):
                here = _hash(cell_x + right, cell_y + down, self.salt)
                away_y = down + _share(here, 0) - part_y
                away_x = right + _share(here, 1) - part_x
                away = away_y * away_y + away_x * away_x
                first, second = away < near, away < near_2
                near_2 = np.where(first, near, np.where(second, away, near_2))
                bits_2 = np.where(first, bits, np.where(second, here, bits_2))
                near, bits = np.where(first, away, near), np.where(first, here, bits)
        size = np.float32(self.cell)
        return np.sqrt(near) * size, np.sqrt(near_2) * size, bits, bits_2

    def _patch_class(self, bits: Hashes) -> NDArray[np.int64]:
        first = FIRST_PATCH_CLASS if self.classes > FIRST_PATCH_CLASS else 1
        share = _share(bits >> np.uint64(16), 1)
        # The square makes the first classes common and the last ones rare, as in real scenes.
        spread = share * (np.float32(0.5) + np.float32(0.5) * share)
        return first + (spread * np.float32(self.classes - first + 1)).astype(np.int64)

    def _creek(self, start: int, stop: int) -> Floats:
        """Return about the distance to the zero line of smooth noise, in pixels."""
        level = smooth_noise(start, stop, self.width, _CREEK_PERIOD, self.salt + 5)
        bend = smooth_noise(start, stop, self.width, _CREEK_PERIOD / 6, self.salt + 6)
        return np.abs(level + np.float32(0.12) * bend + np.float32(0.05)) * np.float32(200)

    def _roads(self, start: int, stop: int) -> Floats:
        """Return the distance to a slanted net of almost straight lines, in pixels."""
        rows = np.arange(start, stop, dtype=np.float64)[:, np.newaxis]
        columns = np.arange(self.width, dtype=np.float64)
        bend = 18 * smooth_noise(start, stop, self.width, 150.0, self.salt + 7).astype(np.float64)
        along, across = 0.94 * columns + 0.34 * rows, 0.94 * rows - 0.34 * columns
        away = [
            np.abs((line + bend) % period - period / 2)
            for line, period in ((along, _ROAD_PERIOD), (across, 1.4 * _ROAD_PERIOD))
        ]
        return np.minimum(*away).astype(np.float32)
