"""The export stage: arrays of samples back onto the scene's grid, written in strips of rows.

One process writes each file from top to bottom: a GeoTIFF has one writer.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import blocks
from eigenscape.context import Context
from eigenscape.export.canvas import Canvas
from eigenscape.export.geotiff import write_raster
from eigenscape.export.palette import complete_legend
from eigenscape.export.queries import write_queries
from eigenscape.export.quicklook import choose_rgb_bands, stretch_rgb, write_quicklook
from eigenscape.export.report.stage import with_report
from eigenscape.export.scores import write_scores
from eigenscape.export.sidecar import write_categories, write_legend_csv
from eigenscape.export.tables import write_classes, write_embedding
from eigenscape.scenes.types import Grid, Legend

_FALSE_COLOR_PIXELS = 800
_CLASS_MAP = "class_map.tif"
_UNMATCHED_COLOR = (120, 120, 120)


@with_report
def export_stage(context: Context) -> dict[str, Any]:
    """Write the files of ``outputs/``: maps, images, quick-looks, legend."""
    ingest, learn = context.run.record("ingest"), context.run.record("learn")
    spectrum = context.run.record("spectrum")
    assert ingest is not None, "export follows ingest"
    assert learn is not None, "export follows learn"
    assert spectrum is not None, "export follows the spectrum"
    grid = Grid.from_json(ingest.summary["grid"])
    canvas = Canvas(context, grid)
    # A table of samples makes no picture: its classes are a table too, its eigenvectors a plane.
    formats = () if grid.is_table else context.job.output.formats
    outputs: dict[str, str] = {}
    first = spectrum.summary["null_vectors"]
    modes = min(context.job.output.eigenvectors, context.job.spectrum.dimension)
    if "geotiff" in formats and modes:
        outputs["eigenvectors"] = _write_eigenvectors(context, canvas, first, modes)
    if "png" in formats:
        outputs["eigenvectors_quicklook"] = _write_false_colors(context, canvas, first)
    legend, subtitle = None, ""
    if "classes" in learn.summary:
        known = _legend(ingest.summary)
        if "names" in learn.summary:
            # Clusters, which have no names or colours of classes.
            known = Legend(names={int(k): v for k, v in learn.summary["names"].items()}, colors={})
        legend = complete_legend(known, learn.summary["classes"])
        subtitle = describe_scores(learn.summary["scores"])
        outputs |= _write_classes(context, canvas, legend, learn.summary["scores"])
        if "held_out" in learn.summary["scores"]:
            outputs |= write_scores(
                context, legend, learn.summary["classes"], learn.summary["scores"]
            )
        if learn.summary.get("queries"):
            write_queries(context, grid, legend, "queries.csv")
            outputs["queries"] = "queries.csv"
    if grid.is_table and context.job.output.formats:
        outputs |= _write_embedding(context, legend, subtitle)
    return {"outputs": outputs}


@with_report
def export_applied_stage(context: Context) -> dict[str, Any]:
    """Write the files of ``outputs/`` of a run applied to a scene: its class map and what is with it."""
    ingest, extend = context.run.record("ingest"), context.run.record("extend")
    assert ingest is not None, "export follows ingest"
    assert extend is not None, "export follows extend"
    canvas = Canvas(context, Grid.from_json(ingest.summary["grid"]))
    known = extend.summary["legend"]
    names = {int(number): name for number, name in known["names"].items()}
    colors = {int(number): tuple(color) for number, color in known["colors"].items()}
    legend = complete_legend(Legend(names, colors), extend.summary["classes"])
    if not extend.summary["clusters"]:
        # Labels may have classes that the run has not; its own keep their colours.
        given = map(int, ingest.summary["labelled"])
        legend = complete_legend(legend, sorted({*extend.summary["classes"], *given}))
    return {"outputs": _write_classes(context, canvas, legend, extend.summary["scores"])}


def _write_classes(
    context: Context, canvas: Canvas, legend: Legend, scores: dict[str, Any]
) -> dict[str, str]:
    """Write legend and maps, of a table a table of classes; return the files by what they are."""
    formats = context.job.output.formats
    counts = _count_classes(context)
    write_legend_csv(context.workspace.file("legend.csv"), legend, counts)
    outputs = {"legend": "legend.csv"}
    if canvas.grid.is_table:
        if formats:
            write_classes(context, legend, "classes.csv")
            outputs["classes"] = "classes.csv"
        return outputs
    if "geotiff" in formats:
        outputs |= _write_maps(context, canvas, legend)
    if "png" in formats:
        outputs["quicklook"] = _write_quicklook(context, canvas, legend, counts, scores)
    return outputs


def _write_embedding(context: Context, legend: Legend | None, subtitle: str) -> dict[str, str]:
    outputs = {}
    if "png" in context.job.output.formats and context.job.spectrum.dimension > 1:
        write_embedding(context, legend, subtitle, "embedding.png")
        outputs["embedding"] = "embedding.png"
    return outputs


def _legend(summary: dict[str, Any]) -> Legend:
    return Legend(
        names={int(k): v for k, v in summary["class_names"].items()},
        colors={int(k): tuple(v) for k, v in summary["class_colors"].items()},
    )


def _count_classes(context: Context) -> dict[int, int]:
    array = context.open("labels/class")
    counts = np.zeros(2**16, np.int64)
    for start, stop in blocks(array.shape[0], array.chunks[0]):
        counts += np.bincount(array[start:stop], minlength=2**16)
    return {int(number): int(counts[number]) for number in np.flatnonzero(counts)}


def _write_maps(context: Context, canvas: Canvas, legend: Legend) -> dict[str, str]:
    kind = np.uint8 if max(legend.names, default=0) < 256 else np.uint16
    path = context.workspace.file(_CLASS_MAP)
    strips = canvas.strips("labels/class", 0, label="writing class map")
    write_raster(
        path,
        canvas.grid,
        ((start, strip.astype(kind)) for start, strip in strips),
        dtype=kind,
        nodata=0,
        band_names=("class",),
        tags=_tags(context),
        colormap=legend.colors,
    )
    write_categories(path, legend)
    outputs = {"class_map": _CLASS_MAP}
    for name in ("confidence", "entropy"):
        # Clusters have no probabilities, so no entropy.
        if (context.run.array_path(f"labels/{name}") / "zarr.json").exists():
            outputs[name] = f"{name}.tif"
            write_raster(
                context.workspace.file(outputs[name]),
                canvas.grid,
                canvas.strips(f"labels/{name}", np.nan, label=f"writing {name}"),
                dtype=np.float32,
                nodata=float("nan"),
                band_names=(name,),
                tags=_tags(context),
            )
    return outputs


def _write_eigenvectors(context: Context, canvas: Canvas, first: int, modes: int) -> str:
    name = "eigenvectors.tif"
    values = context.open("spectrum/value")[first : first + modes]
    columns = slice(first, first + modes)
    write_raster(
        context.workspace.file(name),
        canvas.grid,
        canvas.strips("spectrum/vector", np.nan, columns, label="writing eigenvectors"),
        count=modes,
        dtype=np.float32,
        nodata=float("nan"),
        band_names=[f"eig_{number:03d}" for number in range(1, modes + 1)],
        band_tags=[{"eigenvalue": f"{value:.9g}"} for value in values],
        tags=_tags(context),
    )
    return name


def _write_false_colors(context: Context, canvas: Canvas, first: int) -> str:
    """Write the first three eigenvectors as red, green and blue."""
    from matplotlib.image import imsave

    name = "eigenvectors.png"
    last = first + context.job.spectrum.dimension - 1
    columns = tuple(min(first + number, last) for number in range(3))
    picture, valid = canvas.thumbnail("spectrum/vector", columns)
    image = stretch_rgb(picture, valid)
    # A small scene is shown with larger pixels, not as a stamp.
    scale = max(1, _FALSE_COLOR_PIXELS // max(image.shape[:2]))
    image = image.repeat(scale, axis=0).repeat(scale, axis=1)
    imsave(
        context.workspace.file(name),
        image,
        metadata={"Software": "eigenscape"},
    )
    return name


def _write_quicklook(
    context: Context,
    canvas: Canvas,
    legend: Legend,
    counts: dict[int, int],
    scores: dict[str, Any],
) -> str:
    ingest = context.run.record("ingest")
    assert ingest is not None, "export follows ingest"
    name, bands = "class_map.png", ingest.summary["bands"]
    good = np.flatnonzero(bands["good"])
    wavelength = bands["wavelength"]
    centres = None if wavelength is None else np.array(wavelength, np.float64)[good]
    scene = stretch_rgb(*canvas.thumbnail("samples/values", choose_rgb_bands(centres, len(good))))
    class_map, _ = canvas.thumbnail("labels/class")
    given, given_title = None, "Given labels"
    if scores and ("clusters" not in scores or scores["agreement"]):
        given, _ = canvas.thumbnail("labels/given")
    if given is not None and "clusters" in scores:
        given_title = "Given labels, colours as matched"
        given, legend = _paint_matches(given, scores["agreement"], legend)
    write_quicklook(
        context.workspace.file(name),
        scene_rgb=scene,
        class_map=class_map,
        legend=legend,
        title=context.job.name,
        subtitle=describe_scores(scores),
        given_labels=given,
        given_title=given_title,
        counts=counts,
    )
    return name


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


def describe_scores(scores: dict[str, Any]) -> str:
    """Return the accuracy in one line that says what it was measured on, or what clusters cost."""
    if not scores:
        return "no labels to compare with"
    if "clusters" in scores:
        line = f"{scores['clusters']} clusters"
        if "ncut" in scores:
            line += f" ({scores['method']}), Ncut {scores['ncut']:.3g}"
        if agreed := scores["agreement"]:
            line += (
                f"; with the labels: ARI {agreed['ari']:.3f}, NMI {agreed['nmi']:.3f}, "
                f"best match {_percent(agreed['best_match_accuracy'])}"
            )
        return line
    if "held_out" not in scores:
        accuracy = _percent(scores["overall_accuracy"])
        return f"accuracy {accuracy} on {scores['samples']} labelled pixels: {scores['protocol']}"
    held_out = ", ".join(
        f"{'disjoint test file' if split == 'test' else f'{split} split'} "
        f"{_percent(result['overall_accuracy'])}"
        for split, result in scores["held_out"].items()
    )
    itself = _percent(scores["training_pixels"]["overall_accuracy"])
    return f"accuracy on held-out pixels: {held_out}; on training pixels {itself}"


def _percent(share: float | None) -> str:
    return "not measured" if share is None else f"{100 * share:.1f} %"


def _tags(context: Context) -> dict[str, str]:
    from eigenscape.base.version import __version__

    return {
        "TIFFTAG_SOFTWARE": f"eigenscape {__version__}",
        "EIGENSCAPE_RUN": context.run.path.name,
    }
