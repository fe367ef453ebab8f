"""Parts of a scene (grid, bands, legend), and the protocol that every reader fulfils."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from eigenscape.base.vectors import Vectors

Color = tuple[int, int, int]


@dataclass(frozen=True)
class Ties:
    """What ties pixels that lie on no map to the ground, for a program that rectifies them.

    Attributes
    ----------
    points
        Ground control points: row, column, x, y and height of each.
    crs_wkt
        Their coordinate reference system as WKT; None where unknown.
    rpc
        Rational polynomial coefficients, by GDAL's names of them.
    """

    points: tuple[tuple[float, float, float, float, float], ...] = ()
    crs_wkt: str | None = None
    rpc: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Ties":
        """Rebuild them from JSON values of their attributes."""
        points, rpc = (tuple(map(tuple, value[name])) for name in ("points", "rpc"))
        return cls(points, value["crs_wkt"], rpc)


@dataclass(frozen=True)
class Grid:
    """Where the pixels are: the one georeference object of the package.

    Attributes
    ----------
    height, width
        Rows and columns of the scene.
    crs_wkt
        Coordinate reference system as WKT, or None for a scene without one.
    transform
        Affine coefficients (a, b, c, d, e, f): x = a col + b row + c, y = d col + e row + f,
        for the upper left corner of a pixel. None for a scene without georeference. Rotated grids
        (b, d not 0) and south-up grids (e > 0) are kept as they are.
    ties
        Ground control points or coefficients that outputs keep, of a scene without a transform; None
        where there are none.
    """

    height: int
    width: int
    crs_wkt: str | None = None
    transform: tuple[float, float, float, float, float, float] | None = None
    ties: Ties | None = None

    @property
    def size(self) -> int:
        """Number of pixels, valid or not."""
        return self.height * self.width

    @property
    def is_table(self) -> bool:
        """Whether these are samples without a place: a table's rows, one below the other."""
        return self.width == 1 and self.transform is None

    @property
    def things(self) -> str:
        """The word for what a user calls one of them, in the plural: pixels, or samples of a table."""
        return "samples" if self.is_table else "pixels"

    def to_json(self) -> dict[str, Any]:
        """Return the grid as JSON values, the inverse of `from_json`."""
        return {
            "height": self.height,
            "width": self.width,
            "crs_wkt": self.crs_wkt,
            "transform": list(self.transform) if self.transform else None,
            **({"ties": asdict(self.ties)} if self.ties else {}),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Grid":
        """Rebuild a grid from `to_json`."""
        transform, ties = value["transform"], value.get("ties")
        return cls(
            value["height"],
            value["width"],
            value["crs_wkt"],
            tuple(transform) if transform else None,
            None if ties is None else Ties.from_json(ties),
        )


@dataclass(frozen=True)
class Bands:
    """What the bands are, for all bands of the file, good or bad.

    Attributes
    ----------
    good
        One flag per band of the source: False where the metadata's bad-band list or
        ``scene.bad_bands`` excludes it.
    wavelength, fwhm
        Centre and full width at half maximum in nanometres, NaN where unknown; None when the
        source says nothing.
    names
        The source's own band names, empty strings where it has none.
    colors
        Indices of the bands that the source calls red, green and blue; None where it has not all three.
    """

    good: tuple[bool, ...]
    wavelength: tuple[float, ...] | None = None
    fwhm: tuple[float, ...] | None = None
    names: tuple[str, ...] | None = None
    colors: tuple[int, int, int] | None = None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Bands":
        """Read them from the summary of an ingest stage."""
        found = {key: value and tuple(value) for key, value in data.items()}
        for key in ("wavelength", "fwhm"):
            if found.get(key):  # JSON has no NaN
                found[key] = tuple(np.nan if value is None else value for value in found[key])
        return cls(**found)

    @property
    def count(self) -> int:
        """Number of good bands: the length of a sample."""
        return sum(self.good)

    @property
    def good_index(self) -> NDArray[np.intp]:
        """Zero-based indices of the good bands."""
        return np.flatnonzero(np.asarray(self.good))


@dataclass(frozen=True)
class Legend:
    """Names and colours of the classes, by class number (1 ... 65535; 0 means no label).

    Attributes
    ----------
    names, colors
        By class number.
    alphabetical
        Whether the source names the classes alone, and the numbers are the order of the names.
    """

    names: Mapping[int, str] = field(default_factory=dict)
    colors: Mapping[int, Color] = field(default_factory=dict)
    alphabetical: bool = False


@dataclass(frozen=True)
class LookupArray:
    """One two-dimensional array of a geolocation lookup, as its file holds it.

    Attributes
    ----------
    path
        The file, or GDAL's address of it.
    band
        Name of the dataset in an HDF5 or NetCDF file ("location/glt_x"), or the number of the band,
        from 1, of a raster that GDAL opens.
    fill
        Stored value where nothing is known, besides 0 of a GLT and NaN; None where there is none.
    """

    path: str
    band: str | int
    fill: float | None = None


@dataclass(frozen=True)
class Geolocation:
    """Where the pixels of a scene in sensor geometry are: an attribute ``geolocation`` of such scenes.

    Attributes
    ----------
    kind
        "glt" (geographic lookup table): `x` and `y` have the shape of a map grid and hold for each of
        its cells the column and the row of the scene, counted from 1; 0 means none, and a negative number
        the nearest pixel where the sensor saw none itself (AVIRIS). "igm" (input geometry): `x` and `y` have
        the shape of the scene and hold the coordinates of the centre of each pixel.
    x, y
        Column or easting (longitude), row or northing (latitude).
    crs_wkt
        Coordinate reference system of the map grid, or of the coordinates, as WKT; None where unknown.
    transform
        Of the map grid of a GLT, as that of `Grid`; None for "igm".
    """

    kind: Literal["glt", "igm"]
    x: LookupArray
    y: LookupArray
    crs_wkt: str | None = None
    transform: tuple[float, float, float, float, float, float] | None = None


def geolocation_of(scene: Any) -> Geolocation | None:
    """Return the lookup of a scene in sensor geometry, through mask and subset; None of all others."""
    while not hasattr(scene, "geolocation") and hasattr(scene, "scene"):
        scene = scene.scene
    found: Geolocation | None = getattr(scene, "geolocation", None)
    return found


class Scene(Protocol):
    """A source of pixels that is read in windows of whole rows.

    Instances are small and pickle (they hold paths, not open files), so that a task on another
    process can read its own window.
    """

    @property
    def grid(self) -> Grid:
        """Grid of the scene."""
        ...

    @property
    def bands(self) -> Bands:
        """Bands of the source."""
        ...

    @property
    def files(self) -> tuple[str, ...]:
        """Every file that the scene is read from: if one changes, the run is computed again."""
        ...

    @property
    def row_step(self) -> int:
        """Rows per native storage block: windows that are multiples of it are cheapest to read."""
        ...

    def read(self, start: int, stop: int) -> "tuple[Vectors, NDArray[np.bool_]]":
        """Read rows start ... stop-1 of the good bands.

        Returns
        -------
        values : array, shape (stop - start, width, bands.count), float32
            Scaled values; whatever stands at invalid pixels is 0. Of a sparse table, whose width
            is 1, a csr_array of shape (stop - start, bands.count).
        valid : array of bool, shape (stop - start, width)
            True where every good band is finite, not nodata, and the mask (if any) keeps the pixel.
        """
        ...


class Labels(Protocol):
    """A source of class numbers on the grid of a scene."""

    @property
    def legend(self) -> Legend:
        """Names and colours, as far as the source has them."""
        ...

    @property
    def files(self) -> tuple[str, ...]:
        """Every file the labels are read from."""
        ...

    def read(self, start: int, stop: int) -> NDArray[np.uint16]:
        """Read the labels of rows start ... stop-1, shape (stop - start, width), 0 = none."""
        ...
