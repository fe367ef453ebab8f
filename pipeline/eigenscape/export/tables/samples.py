"""What a table of samples leaves: its classes as CSV, its samples in the plane of two eigenvectors."""

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import blocks
from eigenscape.base.files.cells import csv_rows, to_cell
from eigenscape.base.memory import CHUNK_ROWS
from eigenscape.context import Context
from eigenscape.export.arrays import RunDirectory
from eigenscape.export.pictures.scatter import MOST_POINTS, write_scatter
from eigenscape.scenes.ingest.places import source_pixels
from eigenscape.scenes.types import Legend

_CSV_ROWS = CHUNK_ROWS // 2


def write_classes(context: Context, legend: Legend, name: str) -> None:
    """Write row of the table (from 0), class number, class name and confidence of every sample as CSV.

    Parameters
    ----------
    context
        Of the export stage.
    legend
        Names of the classes.
    name
        Of the file in ``outputs/``.
    """
    arrays = [context.open(f"labels/{part}") for part in ("class", "confidence")]
    pixel = context.open("samples/pixel")
    ingest = context.run.record("ingest")
    assert ingest is not None, "export follows ingest"
    with csv_rows(context.workspace.file(name)) as table:
        table.writerow(["row", "class", "name", "confidence"])
        for start, stop in blocks(pixel.shape[0], _CSV_ROWS):
            rows = source_pixels(ingest.summary, pixel[start:stop]).tolist()
            numbers, shares = (array[start:stop].tolist() for array in arrays)
            table.writerows(
                (row, number, to_cell(legend.names.get(number, "")), f"{share:.4f}")
                for row, number, share in zip(rows, numbers, shares, strict=True)
            )


def write_embedding(context: Context, legend: Legend | None, subtitle: str, name: str) -> None:
    """Write the samples in the plane of the first two eigenvectors, coloured by label and class.

    Parameters
    ----------
    context
        Of the export stage.
    legend
        Names and colours of the classes; None without classes.
    subtitle
        Second line of the picture.
    name
        Of the file in ``outputs/``.
    """
    points, panels = embedding_parts(context.run, classified=legend is not None)
    write_scatter(
        context.workspace.file(name), points, panels, legend or Legend(), title=context.job.name,
        subtitle=subtitle,
    )  # fmt: skip


def embedding_parts(
    run: RunDirectory, *, classified: bool
) -> tuple[NDArray[np.float32], dict[str, NDArray[np.integer] | None]]:
    """Return points and panels as `eigenscape.export.pictures.scatter.draw_scatter` takes them.

    Every few samples are taken of many.

    Parameters
    ----------
    run
        The run directory.
    classified
        Whether it has classes.
    """
    spectrum = run.record("spectrum")
    assert spectrum is not None, "export follows the spectrum"
    # The lowest vector is constant, or under a potential nearly so.
    first = max(1, spectrum.summary["null_vectors"])
    last = run.open("spectrum/value").shape[0] - 1
    columns = [min(first, last - 1), min(first + 1, last)]
    samples = run.open("samples/pixel").shape[0]
    step = -(-samples // MOST_POINTS)
    panels: dict[str, NDArray[np.integer] | None] = {"Samples": None}
    if classified:
        panels = {"Classes": run.open("labels/class")[::step]}
        ingest = run.record("ingest")
        assert ingest is not None, "export follows ingest"
        # Clusters need no labels: without any there is no array of them.
        given = (
            run.open("labels/given")[::step]
            if ingest.summary["labelled"]
            else np.zeros(0, np.uint16)
        )
        if given.any():
            panels = {"Given labels": given, **panels}
    vectors = run.open("spectrum/vector")
    shown = [
        vectors[start:stop][-start % step :: step, columns]
        for start, stop in blocks(samples, vectors.chunks[0])
    ]
    return np.concatenate(shown), panels
