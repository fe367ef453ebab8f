"""The export stage: arrays of samples back onto the scene's grid, written in strips of rows.

One process writes each file from top to bottom: a GeoTIFF has one writer.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.rasters.geotiff import write_raster
from eigenscape.rasters.palette import complete_legend
from eigenscape.rasters.quicklook import choose_rgb_bands, stretch_rgb, write_quicklook
from eigenscape.rasters.sidecar import write_categories, write_legend_csv
from eigenscape.rows import Rows
from eigenscape.scenes.types import Grid, Legend
from eigenscape.stage import Block, Context, blocks

QUICKLOOK_PIXELS = 1200
"""Longest side of the quick-look's pictures."""

STRIP_BYTES = 2**25
"""Bytes of an array that are read at a time."""
_FALSE_COLOR_PIXELS = 800
_CLASS_MAP = "class_map.tif"


class _Canvas:
    """Reads arrays of samples as strips of the scene's grid.

    Parameters
    ----------
    context
        The export stage's.
    grid
        The scene's grid.
    """

    def __init__(self, context: Context, grid: Grid) -> None:
        self._context = context
        self.grid = grid
        self._row_start = context.open("samples/row_start")[...]
        self._pixel = context.open("samples/pixel")

    def strips(
        self, name: str, fill: float, columns: slice | None = None, *, label: str
    ) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield first row and values, (rows, width) or (columns, rows, width), of each strip.

        Parameters
        ----------
        name
            Array of samples.
        fill
            Value where there is no sample.
        columns
            Which columns of a two-dimensional array.
        label
            What the progress bar says.
        """
        array = self._context.open(name)
        width = self.grid.width
        ranges = self._ranges(array)
        self._context.reporter.begin(label, len(ranges), 0)
        for start, stop in ranges:
            values, place = self.samples(array, start, stop)
            values = values if columns is None else values[:, columns].T
            strip = np.full((*values.shape[:-1], (stop - start) * width), fill, array.dtype)
            strip[..., place - start * width] = values
            yield start, strip.reshape(*values.shape[:-1], stop - start, width)
            self._context.reporter.advance()
        self._context.reporter.end()

    def samples(self, array: Any, start: int, stop: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the values and flat pixels of the samples in some rows."""
        first, last = int(self._row_start[start]), int(self._row_start[stop])
        return array[first:last], self._pixel[first:last]

    def _ranges(self, array: Any) -> list[Block]:
        """Cut the rows of the grid so that a strip of the array takes about 32 MiB."""
        pixel_bytes = array.dtype.itemsize * int(np.prod(array.shape[1:], dtype=np.int64))
        return blocks(self.grid.height, max(1, STRIP_BYTES // (self.grid.width * pixel_bytes)))

    def thumbnail(
        self, name: str, columns: tuple[int, ...] | None = None
    ) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return an array as a picture of at most `QUICKLOOK_PIXELS` a side, and where it is valid.

        Every few rows and columns are taken: classes have no mean.
        """
        grid = self.grid
        step = -(-max(grid.height, grid.width) // QUICKLOOK_PIXELS)
        shape = (-(-grid.height // step), -(-grid.width // step))
        array = self._context.open(name)
        depth = () if columns is None else (len(columns),)
        picture = np.zeros((*shape, *depth), array.dtype)
        valid = np.zeros(shape, np.bool_)
        for start, stop in self._ranges(array):
            values, place = self.samples(array, start, stop)
            row, column = place // grid.width, place % grid.width
            taken = (row % step == 0) & (column % step == 0)
            at = row[taken] // step, column[taken] // step
            picture[at] = values[taken] if columns is None else values[taken][:, list(columns)]
            valid[at] = True
        return picture, valid


def export_stage(context: Context) -> dict[str, Any]:
    """Write the files of ``outputs/``: maps, images, quick-looks, legend."""
    ingest, learn = context.run.record("ingest"), context.run.record("learn")
    spectrum = context.run.record("spectrum")
    assert ingest is not None, "export follows ingest"
    assert learn is not None, "export follows learn"
    assert spectrum is not None, "export follows the spectrum"
    canvas = _Canvas(context, Grid.from_json(ingest.summary["grid"]))
    formats = context.job.output.formats
    outputs: dict[str, str] = {}
    first = spectrum.summary["null_vectors"]
    modes = min(context.job.output.eigenvectors, context.job.spectrum.dimension)
    if "geotiff" in formats and modes:
        outputs["eigenvectors"] = _write_eigenvectors(context, canvas, first, modes)
    if "png" in formats:
        outputs["eigenvectors_quicklook"] = _write_false_colors(context, canvas, first)
    if "classes" in learn.summary:
        legend = complete_legend(_legend(ingest.summary), learn.summary["classes"])
        counts = _count_classes(context)
        write_legend_csv(context.workspace.file("legend.csv"), legend, counts)
        outputs["legend"] = "legend.csv"
        if "geotiff" in formats:
            outputs |= _write_maps(context, canvas, legend)
        if "png" in formats:
            scores = learn.summary["scores"]
            outputs["quicklook"] = _write_quicklook(
                context, canvas, legend, counts, ingest.summary["bands"], scores
            )
    return {"outputs": outputs}


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


def _write_maps(context: Context, canvas: _Canvas, legend: Legend) -> dict[str, str]:
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
    write_raster(
        context.workspace.file("confidence.tif"),
        canvas.grid,
        canvas.strips("labels/confidence", np.nan, label="writing confidence"),
        dtype=np.float32,
        nodata=float("nan"),
        band_names=("confidence",),
        tags=_tags(context),
    )
    return {"class_map": _CLASS_MAP, "confidence": "confidence.tif"}


def _write_eigenvectors(context: Context, canvas: _Canvas, first: int, modes: int) -> str:
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


def _write_false_colors(context: Context, canvas: _Canvas, first: int) -> str:
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
        stretch_rgb(picture, valid),
        metadata={"Software": "eigenscape"},
    )
    return name


def _write_quicklook(
    context: Context,
    canvas: _Canvas,
    legend: Legend,
    counts: dict[int, int],
    bands: dict[str, Any],
    scores: dict[str, Any],
) -> str:
    name = "class_map.png"
    scene = None
    if not Rows(context.path("samples/values")).sparse:
        good = np.flatnonzero(bands["good"])
        wavelength = bands["wavelength"]
        centres = None if wavelength is None else np.array(wavelength, np.float64)[good]
        scene = stretch_rgb(
            *canvas.thumbnail("samples/values", choose_rgb_bands(centres, len(good)))
        )
    class_map, _ = canvas.thumbnail("labels/class")
    given, _ = canvas.thumbnail("labels/given")
    write_quicklook(
        context.workspace.file(name),
        scene_rgb=scene,
        class_map=class_map,
        legend=legend,
        title=context.job.name,
        subtitle=describe_scores(scores),
        given_labels=given,
        counts=counts,
    )
    return name


def describe_scores(scores: dict[str, Any]) -> str:
    """Return the accuracy in one line that says what it was measured on."""
    held_out = ", ".join(
        f"{split} split {_percent(result['overall_accuracy'])}"
        for split, result in scores["held_out"].items()
    )
    itself = _percent(scores["training_pixels"]["overall_accuracy"])
    return f"accuracy on the training pixels {itself}; held out: {held_out}"


def _percent(share: float | None) -> str:
    return "not measured" if share is None else f"{100 * share:.1f} %"


def _tags(context: Context) -> dict[str, str]:
    from eigenscape import __version__

    return {
        "TIFFTAG_SOFTWARE": f"eigenscape {__version__}",
        "EIGENSCAPE_RUN": context.run.path.name,
    }
