"""A page about many runs: a card with a picture, the state and the accuracy of each."""

import base64
import io
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import numpy as np
from markupsafe import Markup

from eigenscape.base.files.whole import written_whole
from eigenscape.base.version import __version__
from eigenscape.export.canvas import Canvas
from eigenscape.export.report.layers import picture_step
from eigenscape.export.report.page import environment, own_text, policy
from eigenscape.export.report.source import Source

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

    def page(self, directory: Path) -> str | None:
        """Return where the report of the run is, as a link from a directory; None where there is none."""
        if self.run is None or not (self.run.outputs / "report.html").exists():
            return None
        file = (self.run.outputs / "report.html").resolve()
        return quote(Path(os.path.relpath(file, directory.resolve())).as_posix())

    def picture(self) -> str | None:
        """Return a small map as PNG in base64; None without a map."""
        source = self.run
        if source is None or source.grid.is_table or not source.classes:
            return None
        from PIL import Image

        step = picture_step(source.grid.height, source.grid.width, _PIXELS)
        classes, _ = Canvas(source, source.grid).thumbnail("labels/class", step=step)
        # More than 255 classes share colours here.
        places = np.zeros(2**16, np.uint8)
        palette = np.zeros((256, 3), np.uint8)
        for place, one in enumerate(source.classes):
            places[one.number] = 1 + place % 255
            palette[1 + place % 255] = one.color
        image = Image.fromarray(places[classes], mode="P")
        image.putpalette(palette.tobytes())
        stream = io.BytesIO()
        image.save(stream, format="PNG", transparency=0, optimize=True)
        return base64.b64encode(stream.getvalue()).decode("ascii")


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
