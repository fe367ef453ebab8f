"""The table ``[scene]`` of a job file, and the base class of all tables."""

import ast
import inspect
import itertools
from functools import cache
from types import ModuleType
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, WithJsonSchema, field_validator

FLAGS = (
    "clouds", "cirrus", "haze", "cloud-shadows", "snow", "water", "saturated", "defective",
    "interpolated",
)  # fmt: skip
"""Flags of pixels in sensor products, by the names that ``scene.mask`` accepts."""

NO_FLAGS = "none"
"""Value of ``scene.mask`` with which no flag excludes a pixel."""

UNSAFE = ("clouds", "cirrus", "cloud-shadows", "saturated", "defective")
"""Flags that exclude pixels by default: the ground is not seen there."""


ClassNumber = Annotated[int, Field(ge=1, le=65535)]

# An empty path is refused by parse_job, in a message that says more than one on its length.
_Path = Annotated[str, WithJsonSchema({"type": "string", "minLength": 1})]
_Paths = Annotated[
    tuple[str, ...], WithJsonSchema({"type": "array", "items": {"type": "string"}, "minItems": 1})
]


class Options(BaseModel):
    """One table of a file that users write: frozen, and closed against unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def descriptions(cls) -> dict[str, str]:
        """Return the docstrings below the keys of the table, and of those that it inherits, by key.

        They are read from the source on demand: pydantic would read it at every start.
        """
        found: dict[str, str] = {}
        for kind in reversed(cls.__mro__):
            if issubclass(kind, Options) and kind is not Options:
                found.update(_docstrings(kind))
        return found

    @field_validator("*", mode="before")
    @classmethod
    def _no_word_is_a_number(cls, value: Any, info: ValidationInfo) -> Any:
        # Python takes true for 1.
        if (
            isinstance(value, bool)
            and cls.model_fields[str(info.field_name)].annotation is not bool
        ):
            raise ValueError("true and false are not valid values of this key")
        return value


@cache
def _docstrings(kind: type[Options]) -> dict[str, str]:
    """Return the docstrings below the attributes of a class, without those that it inherits."""
    module = inspect.getmodule(kind)
    body = [] if module is None else _tree(module).body
    for name in kind.__qualname__.replace("<locals>.", "").split("."):
        scopes = (node for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef))
        body = next((scope.body for scope in scopes if scope.name == name), [])
    return {
        before.target.id: inspect.cleandoc(after.value.value)
        for before, after in itertools.pairwise(body)
        if isinstance(before, ast.AnnAssign)
        and isinstance(before.target, ast.Name)
        and isinstance(after, ast.Expr)
        and isinstance(after.value, ast.Constant)
        and isinstance(after.value.value, str)
    }


@cache
def _tree(module: ModuleType) -> ast.Module:
    """Return the syntax tree of a module, an empty one where it has no source."""
    try:
        source = inspect.getsource(module)
    except (OSError, TypeError):
        source = ""
    return ast.parse(source)


class SceneOptions(Options):
    """``[scene]``: where the pixels, their labels and their mask come from."""

    path: _Path | _Paths
    """A file; a sensor product as downloaded (file, folder or zip); a list, pattern or folder of files (one
    band each, or flightlines with all bands); a URL that fsspec opens; or a registered data set."""
    layout: Literal["auto", "table", "image"] = "auto"
    """Interpretation of an array: with "auto", two axes are a table whose rows are samples, and three an
    image; with "image", two axes are an image of one band."""
    columns: Annotated[tuple[int | str, ...], Field(min_length=1)] | None = None
    """Feature columns of a CSV or Parquet file: names, numbers from 1, ranges "3-12"; all numeric columns by
    default."""
    variable: Annotated[str, Field(min_length=1)] | None = None
    """Name of the cube or table in a .mat, .npz, zarr, NetCDF or HDF file; by default the cube with the most
    bands."""
    labels: Annotated[str, Field(min_length=1)] | None = None
    """Classes: a raster (any CRS and grid), points or polygons of a vector file, an array, or a CSV or
    Parquet file. For an image, such a table holds points: columns x and y, easting and northing, lon and lat,
    or row and column from 0."""
    labels_variable: Annotated[str, Field(min_length=1)] | None = None
    """Name of the labels in a .mat, .npz, zarr, NetCDF or HDF file (the scene's own file unless ``labels`` is
    set)."""
    labels_field: Annotated[str, Field(min_length=1)] | None = None
    """Attribute of a vector file, or column of a CSV or Parquet file, with the class (numbers or names)."""
    labels_layer: Annotated[str, Field(min_length=1)] | None = None
    """Layer of a vector file, such as a GeoPackage; by default the only one that can hold labels."""
    labels_crs: Annotated[str, Field(min_length=1)] | None = None
    """Coordinate system of the points of a CSV or Parquet file, such as "EPSG:32633"; by default that of the
    scene, or EPSG:4326 for columns lon and lat."""
    classes: dict[ClassNumber, Annotated[str, Field(min_length=1)]] | None = None
    """Names of classes by their numbers in the labels, for legends and tables, in addition to those in the
    file of the labels or instead of them. Where the classes in a table or a vector file are names themselves,
    the numbers to give to these names: the same in all scenes of a batch."""
    geometry: Annotated[str, Field(min_length=1)] = "auto"
    """For a scene in sensor geometry: a GLT or IGM (a raster of two bands) that projects its maps. "auto"
    takes that of the product, or a file *_glt or *_igm next to the scene; with "none", maps stay in sensor
    geometry."""
    geometry_crs: Annotated[str, Field(min_length=1)] | None = None
    """Coordinate system of a GLT or IGM whose file does not contain one, such as "EPSG:32633"."""
    grid: Literal["finest", "coarsest"] | Annotated[float, Field(gt=0, le=1e6)] = "finest"
    """Common grid for bands of several resolutions: that of the "finest" or the "coarsest" bands, or pixels
    of the given size in metres."""
    mask: (
        Annotated[str, Field(min_length=1)] | tuple[Annotated[str, Field(min_length=1)], ...] | None
    ) = None
    """Excluded pixels: a raster or array on the scene's grid that is 0 or nodata there; a flag of a sensor
    product, such as "clouds"; or a list of these. By default, the flags of a product for clouds and other
    unusable pixels."""
    bad_bands: tuple[int | str, ...] = ()
    """Bands to drop in addition to those that the metadata marks: numbers from 1, or ranges such as
    "104-108"."""
    drop_wavelengths: Literal["auto", "none"] | tuple[str, ...] = "auto"
    """Wavelengths to drop: "water-vapour", "oxygen", "detector-ends", or ranges "1340-1460 nm". "auto" is
    "water-vapour" if the metadata has wavelengths (and "none" with preset = "halevy-2011")."""
    scale: Annotated[float, Field(gt=0, allow_inf_nan=False)] | Literal["auto"] = "auto"
    """Factor from stored to physical values; "auto" takes scale and offset from the metadata."""
    nodata: float | None = None
    """Stored value of missing pixels, in addition to that of the metadata."""
    samples: Annotated[int, Field(ge=2)] | None = None
    """Size of a random subset of the rows of a table, or of a generated data set."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    """Seed of the subset or of the generated data set; 0 by default."""
    check_input: Literal["samples", "full"] = "samples"
    """Detection of changed input files: "samples", by size, modification time, both ends and blocks in
    between; "full", by the whole content, without the time."""

    @property
    def mask_flags(self) -> tuple[str, ...]:
        """Return the flags of a sensor product that ``mask`` names."""
        return tuple(name for name in self._masks if name in (*FLAGS, NO_FLAGS))

    @property
    def mask_files(self) -> tuple[str, ...]:
        """Return the files that ``mask`` names."""
        return tuple(name for name in self._masks if name not in (*FLAGS, NO_FLAGS))

    @property
    def _masks(self) -> tuple[str, ...]:
        return (self.mask,) if isinstance(self.mask, str) else self.mask or ()
