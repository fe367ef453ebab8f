"""Pictures of a run for its page: packed so that the browser can colour them and read a pixel."""

import base64
import io
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import blocks
from eigenscape.export.canvas import Canvas
from eigenscape.export.pictures.quicklook import choose_rgb_bands, stretch_rgb
from eigenscape.export.report.source import Source
from eigenscape.scenes.ingest.places import source_pixels

PICTURE_PIXELS = 1_200_000
"""Pixels of the page's pictures, at most: of larger scenes every few rows and columns are taken."""

PICTURE_BYTES = 64
"""Memory of one pixel while the pictures are made: three bands in single and in double precision."""

SPECTRA_BYTES = 3 * 2**19
"""Of the spectra in the page, at most."""

BANDS = 256
"""Bands of a spectrum in the page, at most."""

_GALLERY, _GALLERY_PIXELS = 12, 70_000
_CONFIDENCE_STEPS, _UNKNOWN = 200, 255
_POINTS = 4000
# Blue, light grey, red: ColorBrewer's RdBu, which red-green blind people tell apart.
_DIVERGING = ((33, 102, 172), (146, 197, 222), (247, 247, 247), (244, 165, 130), (178, 24, 43))


@dataclass(frozen=True)
class Layer:
    """An array in the page.

    Attributes
    ----------
    name
        Of the element that holds it.
    kind
        Type of its numbers, as NumPy and JavaScript name it.
    data
        Its numbers: deflated, base64.
    """

    name: str
    kind: str
    data: str

    @classmethod
    def of(cls, name: str, values: NDArray[Any]) -> "Layer":
        """Pack an array."""
        packed = zlib.compress(np.ascontiguousarray(values).tobytes(), 6)
        return cls(name, values.dtype.name, base64.b64encode(packed).decode("ascii"))


@dataclass(frozen=True)
class Thumbnail:
    """A picture of the gallery.

    Attributes
    ----------
    title, value
        Number of the eigenvector, and its eigenvalue.
    data
        PNG, base64.
    width, height
        In pixels of the picture.
    """

    title: str
    value: float
    data: str
    width: int
    height: int


def picture_step(height: int, width: int, most: int | None = None) -> int:
    """Return every how many rows and columns a picture of at most `most` pixels is made of.

    By default as many as `PICTURE_PIXELS`.

    Examples
    --------
    >>> picture_step(679, 944), picture_step(5000, 3000)
    (1, 4)
    """
    most = most or PICTURE_PIXELS
    step = max(1, math.isqrt(height * width // most))
    while -(-height // step) * -(-width // step) > most:
        step += 1
    return step


def map_layers(source: Source) -> Iterator[Layer]:
    """Yield the layers of the map: the scene, classes, confidence and given labels, as far as there are any.

    Numbers of ``class`` and ``given`` are places in the legend from 1, 0 where there is none.
    """
    canvas = Canvas(source, source.grid)
    step = picture_step(source.grid.height, source.grid.width)
    yield Layer.of("scene", _scene(source, canvas, step))
    if not source.classes:
        return
    places = np.zeros(2**16, np.uint8 if len(source.classes) < 255 else np.uint16)
    places[[one.number for one in source.classes]] = np.arange(1, len(source.classes) + 1)
    classes, _ = canvas.thumbnail("labels/class", step=step)
    yield Layer.of("class", places[classes])
    del classes
    if source.has("labels/confidence"):
        shares, valid = canvas.thumbnail("labels/confidence", step=step)
        steps = np.rint(np.nan_to_num(shares) * _CONFIDENCE_STEPS).astype(np.uint8)
        steps[~valid | np.isnan(shares)] = _UNKNOWN
        yield Layer.of("confidence", steps)
    if source.scores and "clusters" not in source.scores:
        given, _ = canvas.thumbnail("labels/given", step=step)
        if given.any():
            yield Layer.of("given", places[given])


def _scene(source: Source, canvas: Canvas, step: int) -> NDArray[np.uint8]:
    """Return red, green, blue and opacity of the scene, shape (height, width, 4)."""
    shown = choose_rgb_bands(source.summary("ingest")["bands"])
    picture, valid = canvas.thumbnail("samples/values", shown, step)
    image = stretch_rgb(picture, valid)
    return np.concatenate([image, (255 * valid.astype(np.uint8))[..., None]], axis=-1)


def _bands(source: Source) -> tuple[NDArray[Any], str]:
    """Return wavelengths of the good bands and "nm", or where one is not known their numbers and "band"."""
    bands = source.summary("ingest")["bands"]
    good = np.flatnonzero(bands["good"])
    if bands["wavelength"] is not None:
        centres = np.array(bands["wavelength"], np.float64)[good]
        if np.isfinite(centres).all():
            return np.round(centres, 1), "nm"
    return good + 1, "band"


def sampled_spectra(source: Source) -> tuple[dict[str, Any], list[Layer]]:
    """Return spectra of some pixels in a regular grid, and the mean of each class among them.

    Returns
    -------
    dict
        ``bands``, ascending, ``unit`` of these ("nm" or "band"), ``low`` and ``high`` of all values, and
        ``count``.
    list of Layer
        ``spectra`` (pixel, band) and ``means`` (class, band) in steps of 1 / 65535 from low to high;
        ``spots``: places of the pixels in the grid.
    """
    values = source.open("samples/values")
    known, unit = _bands(source)
    # Detectors overlap: in the order of the file the line of a spectrum would go back.
    thin = np.argsort(known, kind="stable")[:: -(-len(known) // BANDS)]
    most = SPECTRA_BYTES // (2 * len(thin))
    step = picture_step(source.grid.height, source.grid.width, most)
    spots, samples = Canvas(source, source.grid).spots(step)
    if not len(spots):
        return {}, []
    spectra = _rows_of(values, samples)[:, thin].astype(np.float64)
    if source.has("samples/origin"):
        spectra += np.asarray(source.open("samples/origin")[...])[thin]
    low, high = float(spectra.min()), float(spectra.max())
    span = high - low or 1.0

    def packed(rows: NDArray[np.float64]) -> NDArray[np.uint16]:
        return np.rint((rows - low) / span * 65535).astype(np.uint16)

    layers = [
        Layer.of("spectra", packed(spectra)),
        Layer.of("spots", spots.astype(np.uint32)),
    ]
    present = []
    if source.classes:
        own = _rows_of(source.open("labels/class"), samples)
        present = [place for place, one in enumerate(source.classes) if (own == one.number).any()]
        means = [spectra[own == source.classes[place].number].mean(axis=0) for place in present]
        if means:
            layers.append(Layer.of("means", packed(np.array(means))))
    return {
        "bands": known[thin].tolist(), "unit": unit,
        "low": low, "high": high, "count": len(spectra), "step": step, "with_mean": present,
    }, layers  # fmt: skip


def _rows_of(array: Any, samples: NDArray[np.int64]) -> NDArray[Any]:
    """Return rows of an array of samples, a chunk of it at a time."""
    found = np.empty((len(samples), *array.shape[1:]), array.dtype)
    for start, stop in blocks(array.shape[0], array.chunks[0]):
        here = np.flatnonzero((samples >= start) & (samples < stop))
        if len(here):
            found[here] = np.asarray(array[start:stop])[samples[here] - start]
    return found


def gallery(source: Source) -> list[Thumbnail]:
    """Return pictures of the first eigenvectors that are not constant: blue low, red high, 2 to 98 %."""
    from PIL import Image

    if source.grid.is_table or not source.has("spectrum/vector"):
        return []
    values = np.asarray(source.open("spectrum/value")[...])
    first = int(source.summary("spectrum")["null_vectors"])
    columns = tuple(range(first, min(first + _GALLERY, len(values))))
    if not columns:
        return []
    grid = source.grid
    step = picture_step(grid.height, grid.width, _GALLERY_PIXELS)
    pictures, valid = Canvas(source, grid).thumbnail("spectrum/vector", columns, step)
    found = []
    for number, column in enumerate(columns):
        image = Image.fromarray(_diverging(pictures[..., number], valid), mode="P")
        image.putpalette(_palette().tobytes())
        stream = io.BytesIO()
        image.save(stream, format="PNG", transparency=0, optimize=True)
        data = base64.b64encode(stream.getvalue()).decode("ascii")
        height, width = valid.shape
        found.append(Thumbnail(f"{number + 1}", float(values[column]), data, width, height))
    return found


def _diverging(picture: NDArray[np.floating], valid: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Return the place of each pixel in the palette: 1 low, 255 high, 0 none."""
    places = np.zeros(picture.shape, np.uint8)
    inside = picture[valid].astype(np.float64)
    if len(inside):
        low, high = np.percentile(inside, (2, 98))
        share = (
            np.clip((inside - low) / (high - low), 0, 1)
            if high > low
            else np.full_like(inside, 0.5)
        )
        places[valid] = 1 + np.rint(254 * share).astype(np.uint8)
    return places


def _palette() -> NDArray[np.uint8]:
    stops = np.linspace(0, 1, len(_DIVERGING))
    places = np.linspace(0, 1, 255)
    colors = np.stack(
        [np.interp(places, stops, channel) for channel in np.array(_DIVERGING, float).T], axis=-1
    )
    return np.concatenate([[[0, 0, 0]], np.rint(colors)]).astype(np.uint8)


def plane(source: Source) -> dict[str, list[Any]] | None:
    """Return some samples in the plane of the first two eigenvectors, with row, class and confidence.

    None where there are not two of them.
    """
    if not source.has("spectrum/vector"):
        return None
    vectors, pixel = source.open("spectrum/vector"), source.open("samples/pixel")
    first = max(1, int(source.summary("spectrum")["null_vectors"]))
    if vectors.shape[1] < first + 2:
        return None
    step = -(-pixel.shape[0] // _POINTS)

    def taken(array: Any, *columns: int) -> NDArray[Any]:
        parts = []
        for start, stop in blocks(array.shape[0], array.chunks[0]):
            part = np.asarray(array[start:stop])[-start % step :: step]
            parts.append(part[:, list(columns)] if columns else part)
        return np.concatenate(parts)

    at = taken(vectors, first, first + 1)
    found: dict[str, list[Any]] = {
        "x": np.round(at[:, 0].astype(np.float64), 8).tolist(),
        "y": np.round(at[:, 1].astype(np.float64), 8).tolist(),
        "row": source_pixels(source.summary("ingest"), taken(pixel)).tolist(),
    }
    if source.classes:
        places = {one.number: place for place, one in enumerate(source.classes, 1)}
        found["class"] = [
            places.get(number, 0) for number in taken(source.open("labels/class")).tolist()
        ]
        if source.has("labels/confidence"):
            shares = taken(source.open("labels/confidence"))
            found["confidence"] = [
                None if math.isnan(share) else round(share, 4) for share in shares.tolist()
            ]
    return found
