"""Class map and confidence as CF / GeoZarr: Zarr v2, which xarray and every GDAL from 3.4 on open.

GDAL before 3.11 cannot read Zarr v3 as it was finally written (3.10.3, tried: "Unsupported codec: bytes").
Classes are a variable with ``flag_values`` and ``flag_meanings`` (CF conventions 1.11, section 3.5), the
coordinate system a grid mapping ``spatial_ref`` with ``crs_wkt`` (section 5.6) and, for GDAL and rioxarray,
``GeoTransform``; ``_CRS`` is for GDAL before 3.9. The attributes ``spatial:`` and ``proj:`` are those of the
Zarr conventions of these names (zarr-conventions/spatial and zarr-conventions/geo-proj, v1), which GDAL
reads from 3.13 on.
"""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import zarr
from numcodecs import Zlib
from numpy.typing import NDArray
from rasterio.crs import CRS

from eigenscape.base.files.whole import whole_directory
from eigenscape.base.footprint import Footprint
from eigenscape.export.format import Amounts, Format, Product
from eigenscape.export.legends.flags import class_flags
from eigenscape.export.sidecar import UNCLASSIFIED
from eigenscape.export.strips import cut_blocks
from eigenscape.scenes.types import Grid, Legend

_CHUNK = (256, 2048)
_CONVENTIONS = [
    {
        "name": "spatial", "uuid": "689b58e2-cf7b-45e0-9fff-9cfc0883d6b4",
        "schema_url": "https://raw.githubusercontent.com/zarr-conventions/spatial/refs/tags/v1/schema.json",
        "spec_url": "https://github.com/zarr-conventions/spatial/blob/v1/README.md",
        "description": "Spatial coordinate information",
    },
    {
        "name": "proj", "uuid": "f17cb550-5864-4468-aeb7-f3180cfb622f",
        "schema_url": "https://raw.githubusercontent.com/zarr-conventions/geo-proj/refs/tags/v1/schema.json",
        "spec_url": "https://github.com/zarr-conventions/geo-proj/blob/v1/README.md",
        "description": "Coordinate reference system information for geospatial data",
    },
]  # fmt: skip


class GeoZarr(Format):
    """Class map, confidence and entropy as CF / GeoZarr in the directory ``class_map.zarr``."""

    name: ClassVar[str] = "zarr"

    def write(self, product: Product) -> dict[str, str]:
        """Write the arrays, rows of whole chunks at a time."""
        assert product.legend is not None
        path = product.path("class_map.zarr")
        with whole_directory(path) as temporary:
            group = zarr.create_group(
                store=str(temporary), zarr_format=2, attributes=_about(product)
            )
            placed = _write_grid(group, product.grid)
            classes = product.classes("writing class map (zarr)")
            kind, flags = product.class_dtype, _flags(product.legend)
            _write_array(group, "class", product, classes, kind, {**placed, **flags})
            for name in ("confidence", "entropy"):
                if product.has(f"labels/{name}"):
                    shares = product.shares(name, f"writing {name} (zarr)")
                    about = {"long_name": f"{name} of the class", "units": "1", **placed}
                    _write_array(group, name, product, shares, np.dtype(np.float32), about)
            zarr.consolidate_metadata(str(temporary), zarr_format=2)
        return {"class_map_zarr": path.name}

    def footprint(self, amounts: Amounts) -> Footprint:
        """Count the files; rows of chunks are no more than the strips that are read."""
        return Footprint(1, shared=2.0**26, disk=10 * amounts.cells)


def _about(product: Product) -> dict[str, Any]:
    return {
        "Conventions": "CF-1.11", "title": product.context.job.name,
        "source": product.tags["TIFFTAG_SOFTWARE"], "run": product.tags["EIGENSCAPE_RUN"],
        **_conventions(product.grid),
    }  # fmt: skip


def _conventions(grid: Grid) -> dict[str, Any]:
    """Return where the pixels lie, in the attributes of the Zarr conventions."""
    if grid.transform is None:
        return {}
    found: dict[str, Any] = {
        "zarr_conventions": _CONVENTIONS[: 1 + (grid.crs_wkt is not None)],
        "spatial:dimensions": ["y", "x"],
        "spatial:shape": [grid.height, grid.width],
        "spatial:transform": list(grid.transform),
    }
    if grid.crs_wkt is not None:
        found["proj:wkt2"] = CRS.from_wkt(grid.crs_wkt).to_wkt(version="WKT2_2019")
    return found


def _write_grid(group: zarr.Group, grid: Grid) -> dict[str, Any]:
    """Write coordinates and grid mapping; return the attributes of what lies on the grid."""
    if grid.transform is None:
        return {}
    a, b, c, d, e, f = grid.transform
    about: dict[str, Any] = {"GeoTransform": " ".join(map(repr, map(float, (c, a, b, f, d, e))))}
    system = None
    if grid.crs_wkt is not None:
        system = CRS.from_wkt(grid.crs_wkt)
        about["crs_wkt"] = about["spatial_ref"] = system.to_wkt(version="WKT2_2019")
    _create(group, "spatial_ref", (), np.dtype(np.int32), about)[...] = 0
    placed = {"grid_mapping": "spatial_ref", **_conventions(grid)}
    if "crs_wkt" in about:
        placed["_CRS"] = {"wkt": about["crs_wkt"]}
    if b == d == 0:
        # Rows and columns of other grids have no x and no y of their own.
        _write_axis(group, "x", c + a * (np.arange(grid.width) + 0.5), system)
        _write_axis(group, "y", f + e * (np.arange(grid.height) + 0.5), system)
    return placed


def _write_axis(
    group: zarr.Group, name: str, values: NDArray[np.floating], system: CRS | None
) -> None:
    about = {"axis": name.upper()}
    if system is not None and system.is_geographic:
        word, unit = {"x": ("longitude", "degrees_east"), "y": ("latitude", "degrees_north")}[name]
        about |= {"standard_name": word, "units": unit}
    elif system is not None and system.is_projected:
        about |= {"standard_name": f"projection_{name}_coordinate", "units": _length(system)}
    _create(group, name, values.shape, np.dtype(np.float64), about, dimensions=[name])[...] = values


def _length(system: CRS) -> str:
    """Return the unit of length of a projected coordinate system, as UDUNITS reads it."""
    _, metres = system.linear_units_factor
    return "m" if metres == 1 else f"{metres:.15g} m"


def _flags(legend: Legend) -> dict[str, Any]:
    """Return the classes as CF flags, and their colours; 0 is no class."""
    names, colors = {0: UNCLASSIFIED, **legend.names}, {0: (0, 0, 0), **legend.colors}
    return {
        "long_name": "class",
        **class_flags(names),
        "flag_colors": " ".join(
            "#{:02x}{:02x}{:02x}".format(*colors[number]) for number in sorted(names)
        ),
    }


def _write_array(
    group: zarr.Group,
    name: str,
    product: Product,
    strips: Iterator[tuple[int, NDArray[Any]]],
    kind: np.dtype[Any],
    about: dict[str, Any],
) -> None:
    shape, rows = (product.grid.height, product.grid.width), min(_CHUNK[0], product.grid.height)
    # In xarray a fill value would make numbers of classes floats.
    fill = None if kind.kind == "u" else float("nan")
    array = _create(group, name, shape, kind, about, dimensions=["y", "x"], fill=fill)
    for start, block in cut_blocks(strips, (1, *shape), kind, rows):
        array[start : start + block.shape[1]] = block[0]


def _create(
    group: zarr.Group,
    name: str,
    shape: tuple[int, ...],
    kind: np.dtype[Any],
    about: dict[str, Any],
    *,
    dimensions: Sequence[str] = (),
    fill: float | None = None,
) -> Any:
    """Create an array, whose dimensions are named where xarray and GDAL look in Zarr v2."""
    return group.create_array(
        name, shape=shape, dtype=kind, fill_value=fill,
        chunks=tuple(map(min, shape, _CHUNK)) if len(shape) == 2 else shape,
        attributes={"_ARRAY_DIMENSIONS": list(dimensions), **about},
        # GDAL has it in every build.
        compressors=Zlib(level=5) if shape else None,
        # A chunk without a file would be whole whatever happened to it.
        config={"write_empty_chunks": True},
    )  # fmt: skip
