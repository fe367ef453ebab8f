"""Pictures: the quick-look of the class map, eigenvectors as colours; of a table a scatter plot."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.footprint import Footprint
from eigenscape.export.arrays import RunDirectory
from eigenscape.export.canvas import QUICKLOOK_PIXELS, Canvas
from eigenscape.export.format import Amounts, Format, Product
from eigenscape.export.pictures.quicklook import (
    choose_rgb_bands,
    first_columns,
    stretch_rgb,
    write_eigenvectors,
    write_quicklook,
)
from eigenscape.export.tables.samples import write_embedding
from eigenscape.scenes.types import Legend

_FALSE_COLOR_PIXELS = 800
_UNMATCHED_COLOR = (120, 120, 120)


class Png(Format):
    """A PNG quick-look with its legend, and one of the first eigenvectors; of a table a scatter plot."""

    name: ClassVar[str] = "png"
    arrays: ClassVar[tuple[str, ...]] = ("labels/class", "spectrum/vector")
    tables: ClassVar[bool] = True

    def write(self, product: Product) -> dict[str, str]:
        """Write the pictures."""
        if product.grid.is_table:
            return _write_plane(product)
        outputs = {}
        if product.has("spectrum/vector"):
            outputs["eigenvectors_quicklook"] = _write_false_colors(product)
        if product.legend is not None:
            outputs["quicklook"] = _write_quicklook(product)
        return outputs

    def footprint(self, amounts: Amounts) -> Footprint:
        """Count the pixels of the pictures."""
        return Footprint(1, shared=30.0 * min(amounts.cells, QUICKLOOK_PIXELS**2))


def _write_plane(product: Product) -> dict[str, str]:
    if not product.has("spectrum/vector") or product.context.job.spectrum.dimension < 2:
        return {}
    write_embedding(product.context, product.legend, product.subtitle, "embedding.png")
    return {"embedding": "embedding.png"}


def _write_false_colors(product: Product) -> str:
    """Write the first three eigenvectors as red, green and blue."""
    name, first = "eigenvectors.png", product.first
    columns = first_columns(first, first + product.context.job.spectrum.dimension)
    picture, valid = product.canvas.thumbnail("spectrum/vector", columns)
    image = stretch_rgb(picture, valid)
    # A small scene is shown with larger pixels, not as a stamp.
    scale = max(1, _FALSE_COLOR_PIXELS // max(image.shape[:2]))
    image = image.repeat(scale, axis=0).repeat(scale, axis=1)
    numbers = ", ".join(str(column - first + 1) for column in dict.fromkeys(columns))
    write_eigenvectors(product.path(name), image, product.context.job.name, numbers)
    return name


def _write_quicklook(product: Product) -> str:
    assert product.legend is not None
    name = "class_map.png"
    write_quicklook(
        product.path(name),
        **quicklook_parts(product.context.run, product.canvas, product.scores, product.legend),
        title=product.context.job.name,
        subtitle=product.subtitle,
        counts=product.counts,
    )
    return name


def quicklook_parts(
    run: RunDirectory, canvas: Canvas, scores: Mapping[str, Any], legend: Legend
) -> dict[str, Any]:
    """Return the pictures of a quick-look, as `draw_quicklook` takes them.

    Parameters
    ----------
    run
        The run directory.
    canvas
        Of its arrays.
    scores
        Of its classes or clusters, empty without labels to compare with.
    legend
        Names and colours of the classes.
    """
    ingest = run.record("ingest")
    assert ingest is not None, "export follows ingest"
    shown = choose_rgb_bands(ingest.summary["bands"])
    scene = stretch_rgb(*canvas.thumbnail("samples/values", shown))
    class_map, _ = canvas.thumbnail("labels/class")
    given, given_title = None, "Given labels"
    if scores and ("clusters" not in scores or scores["agreement"]):
        given, _ = canvas.thumbnail("labels/given")
    if given is not None and "clusters" in scores:
        given_title = "Given labels, colours as matched"
        given, legend = _paint_matches(given, scores["agreement"], legend)
    return {
        "scene_rgb": scene,
        "class_map": class_map,
        "legend": legend,
        "given_labels": given,
        "given_title": given_title,
    }


def _paint_matches(
    given: NDArray[np.uint16], agreement: dict[str, Any], legend: Legend
) -> tuple[NDArray[np.uint16], Legend]:
    """Give every class the number of the cluster that matches it, and one more to the others."""
    other = max(legend.names) + 1
    numbers = np.zeros(2**16, np.uint16)
    numbers[agreement["classes"]] = other
    for cluster, match in enumerate(agreement["matches"], 1):
        if match is not None:
            numbers[match] = cluster
    names = {**legend.names, other: "classes without a cluster"}
    return numbers[given], Legend(names, {**legend.colors, other: _UNMATCHED_COLOR})
