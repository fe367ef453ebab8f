"""Areas of one class as polygons, out of core: strip by strip, joined where they cross the border of one.

::

    strip    pixels of the same class that share an edge -> components -> a polygon of each
    border   components above and below with the same class -> one area, still open
    area     no part of it reaches the next strip: its parts are united, and it is done

Polygons are in whole pixels until they are done, so that parts meet exactly. What is held is the strip
and the open areas. If these have more than `MOST_CORNERS` corners together, they are cut at the border of a
strip, so that no map, however it is made, takes more.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray
from rasterio.features import shapes
from rasterio.transform import Affine
from scipy.ndimage import label as label_components

from eigenscape.export.vectors.sizes import Sizes

MOST_CORNERS = 1_000_000
"""Corners that open areas have at most: a few hundred bytes each while they are united."""


@dataclass
class Area:
    """Pixels of one class that hang together by their edges.

    Attributes
    ----------
    number
        Of the class.
    pixels, share
        How many pixels it has, and the sum of their confidence.
    size
        Sum of the sizes of its pixels.
    parts
        Polygons that make it up: x is a column and y a row, from 0 at the upper left corner of the map.
    """

    number: int
    pixels: int
    share: float
    size: float
    parts: list[Any]

    @property
    def polygon(self) -> Any:
        """The parts in one; corners on borders between strips where it goes straight on are gone."""
        if len(self.parts) == 1:
            return self.parts[0]
        return shapely.simplify(shapely.union_all(self.parts), 0)

    @property
    def corners(self) -> int:
        """Number of corners of the parts."""
        return int(shapely.get_num_coordinates(self.parts).sum())

    def take(self, other: "Area") -> None:
        """Make another area a part of this one."""
        self.pixels += other.pixels
        self.share += other.share
        self.size += other.size
        self.parts += other.parts


def trace_areas(
    strips: Iterable[tuple[int, NDArray[Any], NDArray[np.floating]]], sizes: Sizes
) -> Iterator[Area]:
    """Yield the areas of a class map.

    Parameters
    ----------
    strips
        First row, class numbers (0 is none) and confidence of each strip, both of shape (rows, width), from
        the top to the bottom.
    sizes
        Sizes of the pixels of some rows.

    Yields
    ------
    Area
        In the order in which they end.
    """
    opened: dict[int, Area] = {}
    # Which of them a pixel of the last row belongs to; -1 for none.
    last = np.zeros(0, np.int64)
    last_class = np.zeros(0, np.int64)
    count = 0
    for start, classes, share in strips:
        areas, labels = _components(start, classes, share, sizes(start, start + len(classes)))
        labels[labels >= 0] += count
        found = {count + place: area for place, area in enumerate(areas)}
        count += len(areas)
        joined: dict[int, int] = {}
        if len(last):
            both = (last >= 0) & (labels[0] >= 0) & (last_class == classes[0])
            pairs = np.unique(np.stack([last[both], labels[0][both]]), axis=1).T.tolist()
            joined = _join(opened, found, pairs)
        bottom = np.array([joined.get(each, each) for each in labels[-1].tolist()], np.int64)
        everything = opened | {key: area for key, area in found.items() if key not in joined}
        opened = {key: everything[key] for key in np.unique(bottom[bottom >= 0]).tolist()}
        yield from (area for key, area in everything.items() if key not in opened)
        if sum(area.corners for area in opened.values()) > MOST_CORNERS:
            yield from opened.values()
            opened, bottom = {}, np.full_like(bottom, -1)
        last, last_class = bottom, classes[-1].astype(np.int64)
    yield from opened.values()


def _join(
    opened: dict[int, Area], found: dict[int, Area], pairs: list[list[int]]
) -> dict[int, int]:
    """Join areas above a border with those below; return what each of them is now, if it is another.

    Those above that go into another one leave `opened`.
    """
    root: dict[int, int] = {}

    def top(key: int) -> int:
        while key in root:
            # Each looks past its parent next time.
            root[key], key = root.get(root[key], root[key]), root[key]
        return key

    for one, other in pairs:
        first, second = sorted((top(one), top(other)))
        if first != second:
            # The smaller number is one above.
            root[second] = first
    joined = {key: top(key) for key in root}
    for key, into in joined.items():
        gone = opened.pop(key) if key in opened else found[key]
        opened[into].take(gone)
    return joined


def _components(
    start: int, classes: NDArray[Any], share: NDArray[np.floating], sizes: NDArray[np.floating]
) -> tuple[list[Area], NDArray[np.int64]]:
    """Return the areas of a strip, and which of them each pixel belongs to, -1 for none."""
    height, width = classes.shape
    # Between two pixels of the same class is a bridge: then one call finds the components of all classes.
    bridged = np.zeros((2 * height - 1, 2 * width - 1), np.bool_)
    bridged[::2, ::2] = classes > 0
    bridged[1::2, ::2] = (classes[1:] == classes[:-1]) & (classes[1:] > 0)
    bridged[::2, 1::2] = (classes[:, 1:] == classes[:, :-1]) & (classes[:, 1:] > 0)
    labels, count = label_components(bridged, output=np.int32)
    labels = np.ascontiguousarray(labels[::2, ::2])
    flat = labels.ravel()
    pixels = np.bincount(flat, minlength=count + 1)
    shares = np.bincount(flat, np.nan_to_num(share).ravel(), count + 1)
    size = np.bincount(flat, np.broadcast_to(sizes, classes.shape).ravel(), count + 1)
    number = np.zeros(count + 1, np.int64)
    number[flat] = classes.ravel()
    polygons: list[Any] = [None] * (count + 1)
    below = Affine.translation(0, start)
    for outline, value in shapes(labels, mask=labels > 0, connectivity=4, transform=below):
        rings = outline["coordinates"]
        polygons[int(value)] = shapely.Polygon(rings[0], rings[1:])
    areas = [
        Area(
            int(number[one]),
            int(pixels[one]),
            float(shares[one]),
            float(size[one]),
            [polygons[one]],
        )
        for one in range(1, count + 1)
    ]
    return areas, labels.astype(np.int64) - 1
