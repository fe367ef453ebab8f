"""Cubes and labels in memory, as arrays on a grid with what a file of them says."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np

from eigenscape.errors import SceneError
from eigenscape.scenes.formats.bandlists import to_nanometers, told_unit
from eigenscape.scenes.grids import COLUMN_AXES, ROW_AXES, even_steps, transform_of_centres
from eigenscape.scenes.labels.classnumbers import is_numeral, told_unnamed, unnamed
from eigenscape.scenes.labels.vectorclasses import classify
from eigenscape.scenes.types import Grid

_CUBE_AXES = 3
_SAMPLE_AXES = ("sample", "samples", "obs")
"""Names of the first axis of a table, in lower case."""
_EXACT_BYTES = 4
"""Whole numbers of as many bytes are exact as numbers of 64 bits."""


@dataclass(frozen=True)
class Raster:
    """An array on a grid, as a file of it is written.

    Attributes
    ----------
    values
        Array or dask array, shape (rows, columns, bands).
    grid
        Where its pixels are.
    wavelength
        Centre of each band in nanometres; None where they are not known.
    nodata
        Value that marks missing pixels; None for none.
    packing
        Scale and offset: a value is that of `values` times the scale, plus the offset. None for 1 and 0.
    """

    values: Any
    grid: Grid
    wavelength: tuple[float, ...] | None = None
    nodata: float | None = None
    packing: tuple[float, float] | None = None


def samples_of(given: Any) -> Any:
    """Return the table, or labels, of an `xarray.DataArray` whose first axis is samples; others as they are.

    A table whose features have texts as coordinates becomes a data frame of pandas with these as the names of
    its columns, any other the array that the `xarray.DataArray` holds.
    """
    first, *others = getattr(given, "dims", None) or (None,)
    if hasattr(given, "data_vars") or str(first).lower() not in _SAMPLE_AXES or len(others) > 1:
        return given
    # A line of an image has samples, too.
    if others and str(others[0]).lower() in ROW_AXES:
        return given
    names = [given.coords[name].values.tolist() for name in others if name in given.coords]
    if not names or not all(isinstance(name, str) for name in names[0]):
        return given.data
    # Commands that have no data in memory would load it for nothing.
    import pandas

    return pandas.DataFrame(given.values, columns=names[0])


def raster_of(given: Any, what: str = "scene") -> Raster:
    """Return a cube, or labels, with its georeference.

    Parameters
    ----------
    given
        `xarray.DataArray` or `xarray.Dataset` (its only variable of three axes, or each variable is a band)
        with two axes in space, whose coordinate system is that of rioxarray, a coordinate
        ``spatial_ref`` or a CF grid mapping; or a NumPy or dask array, shape (rows, columns, bands) or
        (rows, columns). What is masked is missing. Whole numbers with the attributes ``scale_factor`` and
        ``add_offset`` are packed, as rioxarray opens them.
    what
        What errors call it.

    Raises
    ------
    SceneError
        Its axes are not known, or its coordinates are no grid.
    """
    if hasattr(given, "data_vars"):
        given = _one_array(given, what)
    if not hasattr(given, "dims"):
        values, masked = filled(given)
        return Raster(*_cube(values, what), nodata=masked)
    rows, columns = _axis(given, ROW_AXES, what), _axis(given, COLUMN_AXES, what)
    others = [name for name in given.dims if name not in (rows, columns)]
    if len(others) > 1:
        raise SceneError(
            f"{what}: an array with the axes {', '.join(map(str, given.dims))}; two axes in space and one "
            "of bands are needed. Select from the others first, with .isel or .sel."
        )
    values, _ = filled(given.transpose(rows, columns, *others).data)
    values, grid = _cube(values, what)
    transform = _transform(given, rows, columns, what)
    grid = Grid(grid.height, grid.width, _crs(given, what), transform)
    wavelength = _wavelengths(given, others)
    return Raster(values, grid, wavelength, _nodata(given, what), _packing(given, what))


def filled(values: Any) -> tuple[Any, float | None]:
    """Return an array in which masked elements are NaN or, of whole numbers, a value that no other has.

    Parameters
    ----------
    values
        Array or dask array, with a mask or without; or a list.

    Returns
    -------
    values
        Array or dask array without a mask.
    nodata
        The value of masked elements; None for NaN, or if none is masked.
    """
    if hasattr(values, "dask"):
        if not isinstance(values._meta, np.ma.MaskedArray):
            return values, None
        # A free value is known only after all chunks are computed.
        return _without_mask(values.astype(_with_nan(values.dtype)), np.nan), None
    if not isinstance(values, np.ma.MaskedArray):
        return np.asarray(values), None
    if not np.ma.is_masked(values):
        return np.asarray(values.data), None
    if values.dtype.kind in "ui" and values.dtype.itemsize <= _EXACT_BYTES:
        limits = np.iinfo(values.dtype)
        for free in (limits.max, limits.min):
            if not (values == free).any():
                return values.filled(free), float(free)
    numbers: Any = values.astype(_with_nan(values.dtype))
    return numbers.filled(np.nan), None


def _with_nan(dtype: Any) -> Any:
    return dtype if dtype.kind == "f" else np.result_type(dtype, np.float32)


def _without_mask(values: Any, fill: Any) -> Any:
    """Return an array or dask array with a value in place of what is masked."""
    if not hasattr(values, "dask"):
        return np.ma.filled(values, fill)
    empty = np.empty((0,) * values.ndim, values.dtype)
    return values.map_blocks(np.ma.filled, fill, dtype=values.dtype, meta=empty)


def _unlabelled_filled(labels: Any) -> Any:
    """Return labels without a mask: what is masked has no label."""
    data: Any = labels.data if hasattr(labels, "dims") else labels
    if isinstance(getattr(data, "_meta", data), np.ma.MaskedArray):
        data = _without_mask(data, 0 if data.dtype.kind in "uifb" else "")
        return labels.copy(data=data) if hasattr(labels, "dims") else data
    return labels


def numbered(labels: Any) -> tuple[Any, dict[int, str]]:
    """Return labels that are names of classes as class numbers, in alphabetical order, and the names.

    Labels that are numbers are returned as they are, without names; names are numbered as those in a file.

    Parameters
    ----------
    labels
        Array, dask array, `xarray.DataArray`, list, or series of pandas. An empty name, None and NaN mean no
        label, and so do the texts that mean none in a file.

    Raises
    ------
    SceneError
        Names are mixed with other values.
    """
    labels = _unlabelled_filled(labels)
    given = labels.data if hasattr(labels, "dims") else labels
    if getattr(getattr(given, "dtype", None), "kind", "O") in "uifb":
        return labels, {}
    values = np.asarray(given)
    if values.dtype.kind not in "USO":
        return labels, {}
    # Commands that have no data in memory would load it for nothing.
    import pandas

    # Bytes are text in ASCII.
    values = (values.astype(str) if values.dtype.kind == "S" else values).astype(object)
    values[pandas.isna(values)] = ""
    kinds = {type(value) for value in values[values != ""].tolist()}
    if kinds != {str}:
        if kinds and all(issubclass(kind, Number) for kind in kinds):
            # As pandas keeps numbers beside missing ones.
            values = np.where(values == "", np.nan, values).astype(np.float64)
            return (labels.copy(data=values) if hasattr(labels, "dims") else values), {}
        if str in kinds:
            others = sorted(kind.__name__ for kind in kinds - {str})
            raise SceneError(
                f"labels: names of classes (str) are mixed with values of type {', '.join(others)}. Give "
                "names alone, with an empty one where there is no label, or numbers alone, with 0 there."
            )
        return labels, {}
    words = {*values.ravel().tolist()} - {""}
    if not all(map(is_numeral, words)) and (missing := unnamed(words)):
        found = np.isin(values, list(missing))
        told = told_unnamed(missing, "the array", f"{int(found.sum()):,} of {values.size:,} labels")
        warnings.warn(f"labels: {told}.", UserWarning, stacklevel=2)
        values[found] = ""
    numbers, legend = classify({"class": values.ravel()}, "class", "labels")
    numbers = numbers.reshape(values.shape)
    return (labels.copy(data=numbers) if hasattr(labels, "dims") else numbers), {**legend.names}


def _cube(values: Any, what: str) -> tuple[Any, Grid]:
    if values.ndim not in (2, 3) or not all(values.shape) or values.dtype.kind not in "uifb":
        raise SceneError(
            f"{what}: an array of type {values.dtype} and shape {tuple(values.shape)}; real numbers of shape "
            "(rows, columns, bands) or (rows, columns) are needed."
        )
    values = values[:, :, None] if values.ndim == 2 else values
    return values, Grid(*values.shape[:2])


def _axis(given: Any, names: Sequence[str], what: str) -> str:
    for name in given.dims:
        if str(name).lower() in names:
            return str(name)
    raise SceneError(
        f"{what}: none of its axes {', '.join(map(str, given.dims))} is called {' or '.join(names[:2])}. "
        f'Rename one: .rename({{"{given.dims[0]}": "{names[0]}"}}).'
    )


def _one_array(given: Any, what: str) -> Any:
    """Return a Dataset as one array: its only variable of three axes, or its variables as bands."""
    # xarray.open_dataset has what describes the coordinate system among the variables.
    mappings = [
        name for name, one in given.data_vars.items()
        if not one.dims and not {"crs_wkt", "spatial_ref", "grid_mapping_name"}.isdisjoint(one.attrs)
    ]  # fmt: skip
    given = given.set_coords(mappings)
    if not given.data_vars:
        raise SceneError(
            f"{what}: a Dataset without variables. Give one with a cube or with bands."
        )
    cubes = [name for name, one in given.data_vars.items() if one.ndim == _CUBE_AXES]
    if len(cubes) == 1:
        return given[cubes[0]]
    first, *others = given.data_vars.values()
    for one in others:
        if {*one.dims} != {*first.dims}:
            raise SceneError(
                f"{what}: a Dataset whose variables have different axes: {first.name} has "
                f"({', '.join(map(str, first.dims))}), {one.name} has ({', '.join(map(str, one.dims))}). "
                "Select the one that is the cube, or those that are its bands."
            )
    fills = {_nodata(one, what) for one in (first, *others)}
    packings = {_packing(one, what) for one in (first, *others)}
    if len(packings) > 1:
        raise SceneError(
            f"{what}: a Dataset whose variables are packed with different scale_factor and add_offset. Open "
            "it with mask_and_scale=True."
        )
    joined = given.to_dataarray("band")
    mapped = first.encoding.get("grid_mapping", first.attrs.get("grid_mapping"))
    joined.attrs |= {} if mapped is None else {"grid_mapping": mapped}
    # Of bands with several fill values none is that of all.
    joined.attrs |= {} if len(fills) > 1 or None in fills else {"_FillValue": fills.pop()}
    if (packing := packings.pop()) is not None:
        joined.attrs |= {"scale_factor": packing[0], "add_offset": packing[1]}
    return joined


def _nodata(given: Any, what: str) -> float | None:
    """Return the value that marks missing pixels of an `xarray.DataArray`."""
    kind = np.dtype(given.dtype)
    value = given.attrs.get("_FillValue", given.attrs.get("nodata"))
    # The encoding is that of the file: in decoded numbers what was missing is NaN, and one that equals the
    # fill value was measured.
    packed = {"scale_factor", "add_offset"} & given.encoding.keys()
    if kind.kind != "f" and not packed:
        value = given.encoding.get("_FillValue", value)
    if value is None:
        return None
    try:
        number = float(np.asarray(value).item())
    except (TypeError, ValueError):
        raise SceneError(
            f"{what}: its nodata value is {value!r}, not a number. Set the attribute _FillValue, or remove "
            "it and the attribute nodata."
        ) from None
    if kind.kind == "f":
        return number
    if np.isnan(number):
        return None  # whole numbers are never NaN
    limits = np.iinfo(np.uint8 if kind.kind == "b" else kind)
    if not number.is_integer() or not limits.min <= number <= limits.max:
        raise SceneError(
            f"{what}: its nodata value is {value!r}, which numbers of type {kind} cannot have. Set the "
            "attribute _FillValue to a value that marks the missing pixels, or remove it."
        )
    return number


def _packing(given: Any, what: str) -> tuple[float, float] | None:
    """Return scale and offset of whole numbers that are still packed: decoded ones are real numbers."""
    if np.dtype(given.dtype).kind not in "ui":
        return None
    attributes = [given.attrs.get("scale_factor", 1), given.attrs.get("add_offset", 0)]
    try:
        scale, offset = (float(np.asarray(value).item()) for value in attributes)
    except (TypeError, ValueError):
        raise SceneError(
            f"{what}: its scale_factor is {attributes[0]!r} and its add_offset {attributes[1]!r}, not two "
            "numbers. Correct the attributes, or remove them."
        ) from None
    return None if (scale, offset) == (1, 0) else (scale, offset)


def _mapping(given: Any) -> Any:
    """Return the attributes of the coordinate that describes the coordinate system."""
    for name in (
        given.encoding.get("grid_mapping"),
        given.attrs.get("grid_mapping"),
        "spatial_ref",
    ):
        if name in given.coords:
            return given.coords[name].attrs
    others = [one.attrs for one in given.coords.values() if "crs_wkt" in one.attrs]
    return others[0] if len(others) == 1 else {}


def _crs(given: Any, what: str) -> str | None:
    attributes = _mapping(given)
    found = attributes.get("crs_wkt") or attributes.get("spatial_ref")
    if found:
        return str(found)
    if "grid_mapping_name" in attributes:
        return _crs_of_cf(attributes, what)
    named = given.encoding.get("grid_mapping", given.attrs.get("grid_mapping"))
    if named is not None and named not in given.coords:
        warnings.warn(
            f"{what}: its coordinate system is lost: it is in the variable {named!r} of the Dataset that the "
            'array was taken from. Give the Dataset, or open it with decode_coords="all".',
            UserWarning,
            stacklevel=2,
        )
    return None


def _crs_of_cf(attributes: Mapping[str, Any], what: str) -> str:
    """Return the coordinate system that the parameters of a CF grid mapping describe."""
    try:
        from pyproj import CRS
        from pyproj.exceptions import CRSError
    except ImportError:
        raise SceneError(
            f"{what}: its grid mapping has no crs_wkt, and pyproj, which reads its parameters, is not "
            "installed. Run pip install pyproj, or set the attribute crs_wkt."
        ) from None
    try:
        return str(CRS.from_cf(dict(attributes)).to_wkt())
    except (CRSError, KeyError, ValueError) as error:
        raise SceneError(
            f"{what}: its grid mapping {attributes['grid_mapping_name']!r} cannot be read ({error}). Set "
            "its attribute crs_wkt."
        ) from error


def _transform(
    given: Any, rows: str, columns: str, what: str
) -> tuple[float, float, float, float, float, float] | None:
    """Return the affine coefficients that the coordinates of pixel centres stand for."""
    mapped = _mapping(given)
    told: tuple[float | None, float | None] = (None, None)
    if "GeoTransform" in mapped:
        # GDAL's order: x of the corner first.
        c, a, b, f, d, e = map(float, str(mapped["GeoTransform"]).split())
        if b or d or not {rows, columns} <= given.coords.keys():
            return (a, b, c, d, e, f)
        told = a, e
    if not {rows, columns} <= given.coords.keys():
        return None
    return transform_of_centres(_even(given, columns, what), _even(given, rows, what), told)


def _even(given: Any, axis: str, what: str) -> tuple[float, float | None]:
    """Return the first coordinate of an axis, and the step between them; see `even_steps`."""
    try:
        return even_steps(np.asarray(given.coords[axis], np.float64))
    except ValueError as error:
        raise SceneError(
            f"{what}: the coordinates of the axis {axis} are {error}. Reproject it first, with "
            ".rio.reproject."
        ) from None


def _wavelengths(given: Any, others: Sequence[Any]) -> tuple[float, ...] | None:
    """Return the wavelengths of a coordinate along the bands, in nanometres."""
    for name in ("wavelength", "wavelengths", *others):
        found = given.coords.get(name)
        if (
            found is None
            or not others
            or found.dims != (others[0],)
            or found.dtype.kind not in "uif"
        ):
            continue
        if "wave" not in str(name).lower() and "units" not in found.attrs:
            continue  # numbers of bands
        unit = found.attrs.get("units")
        centres = to_nanometers(np.asarray(found, float).tolist(), unit)
        if centres is None and unit is not None and "wave" in str(name).lower():
            warnings.warn(f"{name}: {told_unit(str(unit))}", UserWarning, stacklevel=2)
        return centres
    return None
