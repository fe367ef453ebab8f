"""The quick-look of a finished run as a figure that notebooks show."""

import io
import warnings
from pathlib import Path

from matplotlib.figure import Figure

from eigenscape.base.process.progress import Silent
from eigenscape.errors import InputError
from eigenscape.export.canvas import Canvas
from eigenscape.export.formats.png import quicklook_parts
from eigenscape.export.pictures.quicklook import draw_quicklook
from eigenscape.export.pictures.scatter import draw_scatter
from eigenscape.export.report.source import Source
from eigenscape.export.stage import describe_scores
from eigenscape.export.tables.samples import embedding_parts
from eigenscape.scenes.types import Legend
from eigenscape.workflow.finished.reports import source_of

_SHOWN_DPI = 80


class Picture(Figure):
    """A figure of matplotlib that notebooks show, whether pyplot is loaded or not."""

    def _repr_png_(self) -> bytes:
        stream = io.BytesIO()
        with warnings.catch_warnings():
            # A name in a script that the font lacks shows boxes.
            warnings.filterwarnings("ignore", message="Glyph .* missing")
            self.savefig(stream, format="png", dpi=_SHOWN_DPI, bbox_inches="tight", pad_inches=0.2)
        return stream.getvalue()


def draw(path: Path) -> Picture:
    """Draw the quick-look of a finished run: see `eigenscape.Result.plot`.

    Parameters
    ----------
    path
        The run directory.

    Raises
    ------
    InputError
        It is not finished, or has nothing to show.
    """
    source = source_of(path, Silent())
    legend = _legend_of(source)
    subtitle = describe_scores(source.scores, source.grid.things)
    figure: Figure
    if source.grid.is_table:
        record = source.run.record("spectrum")
        if record is None or source.open("spectrum/value").shape[0] < 2:
            raise InputError(
                f"{path}: a run of a table whose method computes no eigenvectors has no picture. Its "
                "classes are in outputs/classes.csv."
            )
        points, panels = embedding_parts(source.run, classified=legend is not None)
        figure = draw_scatter(
            points, panels, legend or Legend(), title=source.name, subtitle=subtitle, kind=Picture
        )
    elif legend is None:
        raise InputError(
            f"{path}: the run has no classes, so there is no class map to show. Its eigenvectors are "
            "images: result.eigenvectors."
        )
    else:
        canvas = Canvas(source, source.grid)
        parts = quicklook_parts(source.run, canvas, source.scores, legend)
        counts = {one.number: one.pixels for one in source.classes}
        figure = draw_quicklook(
            **parts, title=source.name, subtitle=subtitle, counts=counts, kind=Picture
        )
    assert isinstance(figure, Picture), "drawn as one"
    return figure


def _legend_of(source: Source) -> Legend | None:
    """Return names and colours of the classes; None of a run without a class map."""
    if not source.has("labels/class"):
        return None
    return Legend(
        {one.number: one.name for one in source.classes},
        {one.number: one.color for one in source.classes},
    )
