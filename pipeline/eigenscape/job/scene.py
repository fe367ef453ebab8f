"""``[scene]`` of a job file, and what all tables are: every key with its default and its limits."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

FLAGS = (
    "clouds", "cirrus", "haze", "cloud-shadows", "snow", "water", "saturated", "defective",
    "interpolated",
)  # fmt: skip
"""Marks of pixels that sensor products have, by the names that ``scene.mask`` takes."""

NO_FLAGS = "none"
"""In ``scene.mask``: no mark leaves a pixel out."""

UNSAFE = ("clouds", "cirrus", "cloud-shadows", "saturated", "defective")
"""Marks that leave pixels out where ``scene.mask`` is not given: nothing of the ground is measured there."""


class Options(BaseModel):
    """One table of a file that users write: frozen, and closed against unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    @field_validator("*", mode="before")
    @classmethod
    def _no_word_is_a_number(cls, value: Any, info: ValidationInfo) -> Any:
        # Python takes true for 1.
        if (
            isinstance(value, bool)
            and cls.model_fields[str(info.field_name)].annotation is not bool
        ):
            raise ValueError("true and false mean nothing here")
        return value


class SceneOptions(Options):
    """``[scene]``: where the pixels, their labels and their mask come from."""

    path: str | tuple[str, ...]
    """A file, a sensor product as downloaded (file, folder or zip), a list, pattern or folder of files (one
    band each, or flightlines of all bands), a URL that fsspec opens, or a registered data set."""
    layout: Literal["auto", "table", "image"] = "auto"
    """An array of two axes is a table, rows are samples; for "image" it is one band. Three are an image."""
    columns: Annotated[tuple[int | str, ...], Field(min_length=1)] | None = None
    """Features of a CSV or Parquet file: names, numbers from 1, ranges "3-12"; all numbers by default."""
    variable: Annotated[str, Field(min_length=1)] | None = None
    """Name of the cube or table in a .mat, .npz, zarr, NetCDF or HDF file; the cube of most bands else."""
    labels: Annotated[str, Field(min_length=1)] | None = None
    """Raster (any CRS or grid), vector points or polygons, array, CSV or Parquet file with the classes;
    on an image points: columns x and y, easting and northing, lon and lat, or row and column from 0."""
    labels_variable: Annotated[str, Field(min_length=1)] | None = None
    """Name of the labels in a .mat, .npz or zarr file (the scene's own file unless ``labels`` is set)."""
    labels_field: Annotated[str, Field(min_length=1)] | None = None
    """Attribute of a vector file, or column of a CSV or Parquet file, with the class (numbers or names)."""
    labels_crs: Annotated[str, Field(min_length=1)] | None = None
    """Coordinate system of the points of a CSV or Parquet file, such as "EPSG:32633"; by default the
    scene's, of columns lon and lat EPSG:4326."""
    geometry: Annotated[str, Field(min_length=1)] = "auto"
    """Of a scene in sensor geometry a GLT or IGM by which maps are made: a raster of two bands; "auto" takes
    what the product has, or a file *_glt or *_igm beside the scene; "none": maps in sensor geometry."""
    geometry_crs: Annotated[str, Field(min_length=1)] | None = None
    """Coordinate system of an IGM or GLT that does not say it, such as "EPSG:32633"."""
    grid: Literal["finest", "coarsest"] | Annotated[float, Field(gt=0, le=1e6)] = "finest"
    """Grid of bands of several resolutions: that of the "finest" or "coarsest", or pixels of so "
    "many metres."""
    mask: (
        Annotated[str, Field(min_length=1)] | tuple[Annotated[str, Field(min_length=1)], ...] | None
    ) = None
    """Raster or array on the scene's grid: pixels where it is 0 or nodata are left out; or marks of a sensor
    product, such as "clouds", or a list; by default a product's clouds and what else is not the ground."""
    bad_bands: tuple[int | str, ...] = ()
    """Bands to leave out besides those the metadata marks: numbers from 1, or ranges such as "104-108"."""
    drop_wavelengths: Literal["auto", "none"] | tuple[str, ...] = "auto"
    """Windows to leave out too: "water-vapour", "oxygen", "detector-ends", or ranges "1340-1460 nm"; "auto"
    is "water-vapour" where the metadata has wavelengths (nothing with preset = "halevy-2011")."""
    scale: Annotated[float, Field(gt=0, allow_inf_nan=False)] | Literal["auto"] = "auto"
    """Factor from stored to physical values; "auto" takes scale and offset from the metadata."""
    nodata: float | None = None
    """Stored value that marks missing pixels, for files whose metadata does not say it."""
    samples: Annotated[int, Field(ge=2)] | None = None
    """Take a random subset of this many rows of a table; of a data set that is made, make this many."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    """Seed of that subset, or of the data set that is made; 0 by default."""
    check_input: Literal["samples", "full"] = "samples"
    """How input files are told from earlier versions of themselves: by size, time of change, both ends and
    blocks between; or by all of their content, without the time."""

    @property
    def mask_flags(self) -> tuple[str, ...]:
        """Marks of a sensor product that ``mask`` names."""
        return tuple(name for name in self._masks if name in (*FLAGS, NO_FLAGS))

    @property
    def mask_files(self) -> tuple[str, ...]:
        """Files that ``mask`` names."""
        return tuple(name for name in self._masks if name not in (*FLAGS, NO_FLAGS))

    @property
    def _masks(self) -> tuple[str, ...]:
        return (self.mask,) if isinstance(self.mask, str) else self.mask or ()

    def with_mask_files(self, change: Callable[[str], str]) -> "str | tuple[str, ...] | None":
        """Return ``mask`` with its files changed, such as made absolute."""
        flags = (*FLAGS, NO_FLAGS)
        if isinstance(self.mask, str) or self.mask is None:
            return self.mask if self.mask is None or self.mask in flags else change(self.mask)
        return tuple(name if name in flags else change(name) for name in self.mask)
