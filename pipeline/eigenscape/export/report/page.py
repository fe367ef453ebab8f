"""The page itself: one HTML file without a request to anywhere, written part by part.

::

    facts/, figures  numbers of the manifest -> sentences, tables, SVG
    layers           arrays of the run, in strips -> packed pictures and spectra
    templates/       HTML, style sheet and script; Bokeh's own script for the map, inline

A policy in the page's head forbids the browser all that is not in the file: scripts are named by their
hash, so that no text of a scene or a job can become one.
"""

import base64
import hashlib
import time
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from eigenscape.base.files.whole import written_whole
from eigenscape.base.memory import format_bytes
from eigenscape.base.version import __version__
from eigenscape.export.report import figures
from eigenscape.export.report.facts.accuracy import accuracy
from eigenscape.export.report.facts.classes import areas, class_rows, confusion
from eigenscape.export.report.facts.clusters import clusters
from eigenscape.export.report.facts.eigenmaps import eigenvector_note, neighbor_facts
from eigenscape.export.report.facts.headline import head
from eigenscape.export.report.facts.stages import choice_lines, cost
from eigenscape.export.report.facts.words import product
from eigenscape.export.report.layers import (
    PICTURE_BYTES,
    PICTURE_PIXELS,
    Layer,
    gallery,
    map_layers,
    picture_step,
    plane,
    sampled_spectra,
)
from eigenscape.export.report.source import Source

if TYPE_CHECKING:
    import jinja2

REPORT = "report.html"
"""Name of the page among the outputs."""

_FIXED_BYTES = 24 * 2**20
_SCRIPTS = ("bokeh.min.js", "bokeh-api.min.js")


def report_bytes(samples: int) -> float:
    """Return the memory that the page of so many samples takes while it is made."""
    return _FIXED_BYTES + PICTURE_BYTES * min(samples, PICTURE_PIXELS)


def write_page(source: Source, path: Path) -> None:
    """Write the page about a run.

    Parameters
    ----------
    source
        The run.
    path
        The file, which is there once it is whole.
    """
    source.reporter.begin("writing the report", 1, 0)
    with written_whole(path) as temporary, temporary.open("w", encoding="utf-8") as stream:
        # Part by part: the pictures of a large scene are most of the page.
        for part in _render(source):
            stream.write(part)
    source.reporter.advance()
    source.reporter.end()


def _render(source: Source) -> Iterator[str]:
    drawn = _data(source)
    scripts = [*_libraries(), own_text("report.js")] if drawn else [own_text("page.js")]
    if drawn:
        scripts.append(own_text("page.js"))
    layers = drawn.pop("layers", ()) if drawn else ()
    yield from (
        environment()
        .get_template("report.html")
        .generate(
            source=source,
            things=source.grid.things,
            made=product(source),
            grouped="clusters" in source.scores,
            written=time.strftime("%d %B %Y, %H:%M"),
            version=__version__,
            scripts=[Markup(text) for text in scripts],
            policy=policy(scripts),
            style=Markup(own_text("report.css")),
            head=head(source),
            data=drawn,
            layers=layers,
            step=picture_step(source.grid.height, source.grid.width),
            accuracy=accuracy(source),
            class_rows=class_rows(source),
            confusion=confusion(source),
            areas=areas(source),
            clusters=clusters(source),
            gallery=gallery(source),
            eigenvector_note=eigenvector_note(source),
            spectrum=_spectrum(source),
            neighbors=neighbor_facts(source),
            cost=cost(source),
            choice=choice_lines(source),
            outputs=_outputs(source),
        )
    )


def _data(source: Source) -> dict[str, Any] | None:
    """Return what the script of the map, or of the plane of a table, reads; None where there is neither."""
    classes = [
        {"name": one.name, "color": list(one.color), "number": one.number} for one in source.classes
    ]
    if source.grid.is_table:
        points = plane(source)
        return None if points is None else {"kind": "plane", "classes": classes, "points": points}
    grid = source.grid
    step = picture_step(grid.height, grid.width)
    spectra, layers = sampled_spectra(source)
    return {
        "kind": "map",
        "classes": classes,
        "step": step,
        "height": -(-grid.height // step),
        "width": -(-grid.width // step),
        "columns": grid.width,
        "transform": list(grid.transform) if grid.transform else None,
        "spectra": spectra,
        "layers": _Chain(source, layers),
        "clusters": "clusters" in source.scores,
    }


class _Chain:
    """Layers that are made as the page is written, one after the other."""

    def __init__(self, source: Source, made: list[Layer]) -> None:
        self._source, self._made = source, made

    def __iter__(self) -> Iterator[Layer]:
        yield from map_layers(self._source)
        yield from self._made


def _spectrum(source: Source) -> dict[str, Any]:
    """Return the summary of the spectrum with its charts, which are None where there are no values."""
    found = source.summary("spectrum")
    values = [float(value) for value in found.get("values", [])]
    residuals, tolerance = _residuals(source), _tolerance(source)
    return {
        **found,
        "tolerance": tolerance,
        "gap": figures.largest_gap(values, found.get("null_vectors", 1)) if values else None,
        "eigenvalue_chart": figures.eigenvalue_chart(values, found["null_vectors"])
        if values
        else None,
        "residual_chart": figures.residual_chart(residuals, tolerance) if residuals else None,
    }


def _residuals(source: Source) -> list[float]:
    if not source.has("spectrum/residual"):
        return []
    return [float(value) for value in source.open("spectrum/residual")[...]]


def _tolerance(source: Source) -> float:
    import tomllib

    options = tomllib.loads(source.job_text).get("spectrum", {}) if source.job_text else {}
    return float(options.get("tolerance", 1e-5))


def _outputs(source: Source) -> list[tuple[str, str]]:
    """Return name and size of each file beside the page."""
    return [
        (file.name, format_bytes(file.stat().st_size))
        for file in sorted(source.outputs.iterdir())
        if file.is_file() and not file.name.startswith(".") and file.name != REPORT
    ]


@cache
def environment() -> "jinja2.Environment":
    """Return the templates; whatever is put into them is escaped."""
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FunctionLoader(own_text), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip


def own_text(name: str) -> str:
    """Return a file of ``templates/``."""
    return (files("eigenscape.export.report") / "templates" / name).read_text(encoding="utf-8")


@cache
def _libraries() -> tuple[str, ...]:
    """Return Bokeh's scripts, of which the package itself need not be loaded."""
    import importlib.util

    found = importlib.util.find_spec("bokeh")
    assert found is not None, "bokeh is installed with eigenscape"
    assert found.origin is not None, "it is a package of files"
    folder = Path(found.origin).parent / "server" / "static" / "js"
    return tuple((folder / name).read_text(encoding="utf-8") for name in _SCRIPTS)


def policy(scripts: list[str]) -> str:
    """Return the content security policy of a page that has these scripts and nothing from elsewhere."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for text in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
