"""A page about many runs: a card with a picture, the state and the accuracy of each."""

import base64
import io
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np
from markupsafe import Markup

from eigenscape.base.files.whole import written_whole
from eigenscape.base.version import __version__
from eigenscape.export.canvas import Canvas
from eigenscape.export.pictures.quicklook import first_columns, stretch_rgb
from eigenscape.export.report.layers import picture_step
from eigenscape.export.report.page import environment, own_text, policy
from eigenscape.export.report.source import Source

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_PICTURES = 400
"""Cards with a picture, at most: a page of more would be too large to send."""

_PIXELS = 40_000


@dataclass(frozen=True)
class Entry:
    """One run of many.

    Attributes
    ----------
    name, state
        Of the scene or variant; "finished", "done", "skipped", "failed", "to do" or a sentence.
    run
        What is finished of it, None for nothing.
    figure
        Its accuracy, or another figure, and what this was measured on.
    reason
        Why it failed, or is to be looked at with care.
    """

    name: str
    state: str
    run: Source | None = None
    figure: str = ""
    reason: str = ""

    @property
    def good(self) -> bool:
        """Whether it is finished."""
        return self.state in ("done", "skipped", "finished")

    @property
    def shown_state(self) -> str:
        """The state for a reader of the page, to whom it is one when a run was finished."""
        return "done" if self.state == "skipped" else self.state

    def page(self, directory: Path) -> str | None:
        """Return where the report of the run is, as a link from a directory; None where there is none."""
        if self.run is None or not (self.run.outputs / "report.html").exists():
            return None
        file = (self.run.outputs / "report.html").resolve()
        return quote(Path(os.path.relpath(file, directory.resolve())).as_posix())

    @property
    def pictured(self) -> str:
        """What `picture` shows."""
        return "Class map" if self.run is not None and self.run.classes else "Eigenvectors"

    def picture(self) -> str | None:
        """Return a small map as PNG in base64, without classes of the eigenvectors; None of a table."""
        source = self.run
        if source is None or source.grid.is_table:
            return None
        step = picture_step(source.grid.height, source.grid.width, _PIXELS)
        image = _class_map(source, step) if source.classes else _eigenvectors(source, step)
        if image is None:
            return None
        stream = io.BytesIO()
        options = {"transparency": 0} if image.mode == "P" else {}
        image.save(stream, format="PNG", optimize=True, **options)
        return base64.b64encode(stream.getvalue()).decode("ascii")


def _class_map(source: Source, step: int) -> "Image":
    from PIL import Image

    classes, _ = Canvas(source, source.grid).thumbnail("labels/class", step=step)
    # More than 255 classes share colours here.
    places = np.zeros(2**16, np.uint8)
    palette = np.zeros((256, 3), np.uint8)
    for place, one in enumerate(source.classes):
        places[one.number] = 1 + place % 255
        palette[1 + place % 255] = one.color
    image = Image.fromarray(places[classes], mode="P")
    image.putpalette(palette.tobytes())
    return image


def _eigenvectors(source: Source, step: int) -> "Image | None":
    """Return the first three eigenvectors as red, green and blue, transparent where there are none."""
    from PIL import Image

    if not source.has("spectrum/vector"):
        return None
    columns = first_columns(
        source.summary("spectrum")["null_vectors"], source.open("spectrum/value").shape[0]
    )
    picture, valid = Canvas(source, source.grid).thumbnail("spectrum/vector", columns, step)
    opacity = 255 * valid.astype(np.uint8)[..., None]
    return Image.fromarray(np.concatenate([stretch_rgb(picture, valid), opacity], axis=-1))


def write_index(path: Path, title: str, kind: str, entries: Sequence[Entry]) -> None:
    """Write the page about many runs.

    Parameters
    ----------
    path
        The file, which is there once it is whole.
    title, kind
        Name of the batch or study, and which of both it is.
    entries
        The runs, in their order.
    """
    scripts = [own_text("page.js")]
    directory = path.parent

    def cards() -> Iterator[dict[str, object]]:
        for number, entry in enumerate(entries):
            yield {
                "entry": entry, "link": entry.page(directory),
                "picture": entry.picture() if number < MOST_PICTURES else None,
            }  # fmt: skip

    with written_whole(path) as temporary, temporary.open("w", encoding="utf-8") as stream:
        for part in environment().get_template("index.html").generate(
            title=title, kind=kind, cards=cards(), count=len(entries),
            finished=sum(entry.good for entry in entries), version=__version__,
            made=time.strftime("%d %B %Y, %H:%M"), policy=policy(scripts),
            style=Markup(own_text("report.css")),
            scripts=[Markup(text) for text in scripts],
        ):  # fmt: skip
            stream.write(part)
