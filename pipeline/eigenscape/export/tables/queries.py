"""The pixels that the learn stage proposes for labelling, as a table."""

import csv
import io

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.files.cells import to_cell
from eigenscape.base.files.whole import written_whole
from eigenscape.context import Context
from eigenscape.export.orthorectify import Map, open_map
from eigenscape.scenes.ingest.places import source_pixels
from eigenscape.scenes.types import Grid, Legend


def write_queries(context: Context, grid: Grid, legend: Legend, name: str) -> None:
    """Write the proposed pixels as CSV, the one to label first on top.

    Columns are order (from 1), row and column (from 0; of a table of which samples are drawn, the row among
    all), x and y of the centre of the pixel in the scene's coordinate system (empty without one), number and
    name of the class that it was given, its probability, number and name of the second most probable class.

    Parameters
    ----------
    context
        Of the export stage.
    grid, legend
        Of the scene. Of one in sensor geometry x and y are those of the first cell of its map that shows the
        pixel, empty where none does.
    name
        Of the file in ``outputs/``.
    """
    samples = context.open("labels/query")[...]
    found = open_map(context)
    shown = None if found is None else found.cells_of(samples)
    called, pixel = context.open("labels/class"), context.open("samples/pixel")
    confidence = context.open("labels/confidence")
    runner_up = context.open("labels/query_runner_up")[...]
    ingest = context.run.record("ingest")
    assert ingest is not None, "export follows ingest"
    taken = np.array([pixel[sample] for sample in samples.tolist()], np.int64)
    pixels = source_pixels(ingest.summary, taken)
    stream = io.StringIO(newline="")
    table = csv.writer(stream, lineterminator="\n")
    table.writerow(
        [
            "order",
            "row",
            "column",
            "x",
            "y",
            "class",
            "name",
            "probability",
            "second",
            "second_name",
        ]
    )
    for place, (sample, at) in enumerate(zip(samples.tolist(), pixels.tolist(), strict=True)):
        row, column = divmod(at, grid.width)
        first, second = int(called[sample]), int(runner_up[place])
        table.writerow(
            [
                place + 1, row, column, *_place(grid, row, column, found, shown, place),
                first, to_cell(legend.names.get(first, "")), f"{float(confidence[sample]):.4f}",
                second or "", to_cell(legend.names.get(second, "")) if second else "",
            ]
        )  # fmt: skip
    with written_whole(context.workspace.file(name)) as path:
        path.write_text(stream.getvalue(), encoding="utf-8")


def _place(
    grid: Grid,
    row: int,
    column: int,
    found: Map | None,
    shown: NDArray[np.int64] | None,
    number: int,
) -> tuple[str, str]:
    if found is None or shown is None:
        return _centre(grid, row, column)
    if shown[number] < 0:
        return "", ""
    return _centre(found.grid, *divmod(int(shown[number]), found.grid.width))


def _centre(grid: Grid, row: int, column: int) -> tuple[str, str]:
    """Return x and y of the centre of a pixel, empty without georeference."""
    if grid.transform is None:
        return "", ""
    a, b, c, d, e, f = grid.transform
    x, y = np.array([[a, b], [d, e]]) @ [column + 0.5, row + 0.5] + [c, f]
    return f"{x:.9g}", f"{y:.9g}"
