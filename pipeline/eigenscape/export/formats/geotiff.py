"""GeoTIFFs: class map, confidence, entropy and eigenvectors."""

from typing import ClassVar

import numpy as np

from eigenscape.base.footprint import Footprint
from eigenscape.export.format import Amounts, Format, Product
from eigenscape.export.geotiff import write_raster
from eigenscape.export.sidecar import write_categories


class GeoTiff(Format):
    """GeoTIFFs on the scene's own grid: class map, confidence, entropy, eigenvectors."""

    name: ClassVar[str] = "geotiff"
    arrays: ClassVar[tuple[str, ...]] = ("labels/class", "spectrum/vector")

    def write(self, product: Product) -> dict[str, str]:
        """Write a file for each of the arrays that are there."""
        outputs = {}
        if product.eigenvectors:
            outputs["eigenvectors"] = _write_eigenvectors(product)
        if product.legend is not None:
            outputs["class_map"] = _write_classes(product)
            for name in ("confidence", "entropy"):
                # Clusters have no probabilities, so no entropy.
                if product.has(f"labels/{name}"):
                    outputs[name] = _write_shares(product, name)
        return outputs

    def footprint(self, amounts: Amounts) -> Footprint:
        """Count the files; what is held are the strips that are read."""
        return Footprint(1, disk=amounts.cells * (5.0 + 4 * max(1, amounts.eigenvectors)))


def _write_classes(product: Product) -> str:
    assert product.legend is not None
    path, kind = product.path("class_map.tif"), product.class_dtype
    write_raster(
        path,
        product.grid,
        product.classes("writing class map"),
        dtype=kind,
        nodata=0,
        band_names=("class",),
        tags=product.tags,
        threads=product.threads,
        legend=product.legend,
    )
    write_categories(path, product.legend)
    return path.name


def _write_shares(product: Product, name: str) -> str:
    path = product.path(f"{name}.tif")
    write_raster(
        path,
        product.grid,
        product.shares(name, f"writing {name}"),
        dtype=np.float32,
        nodata=float("nan"),
        band_names=(name,),
        tags=product.tags,
        threads=product.threads,
    )
    return path.name


def _write_eigenvectors(product: Product) -> str:
    path, count = product.path("eigenvectors.tif"), product.eigenvectors
    columns = slice(product.first, product.first + count)
    values = product.context.open("spectrum/value")[columns]
    write_raster(
        path,
        product.grid,
        product.canvas.strips("spectrum/vector", np.nan, columns, label="writing eigenvectors"),
        count=count,
        dtype=np.float32,
        nodata=float("nan"),
        band_names=[f"eig_{number:03d}" for number in range(1, count + 1)],
        band_tags=[{"eigenvalue": f"{value:.9g}"} for value in values],
        tags=product.tags,
        threads=product.threads,
    )
    return path.name
