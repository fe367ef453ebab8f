"""One picture of a run: the scene, the given labels, the class map and its legend."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from eigenscape.export.palette import complete_legend
from eigenscape.export.sidecar import output_error, replacing
from eigenscape.scenes.types import Legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_UNCLASSIFIED_COLOR = (236, 236, 236)
_INK, _FAINT, _DPI = "#1d2329", "#68727d", 160

# Inches.
_MARGIN, _GAP, _LABEL, _ENTRY = 0.3, 0.16, 0.26, 0.205
_SWATCH, _SHARE = 0.15, 0.55
_PANEL_AREA, _PANEL_LONGEST, _PANEL_SHORTEST = 11.0, 9.0, 1.0

_LONGEST_NAME, _MOST_ENTRIES, _FEWEST_LINES = 40, 80, 12

# Where red, green and blue are: in nanometres, and as a share of the bands.
_RGB_WAVELENGTHS = (650.0, 550.0, 470.0)
_RGB_SHARES = (0.20, 0.10, 0.05)
_FEW_BANDS = 32

_LEGEND_TITLE = "Class and share of the map"


@dataclass(frozen=True)
class _Entry:
    """One line of the legend."""

    name: str
    color: tuple[float, float, float]
    share: str


@dataclass(frozen=True)
class _Canvas:
    """A figure on which positions are inches from its upper left corner."""

    figure: Figure
    width: float
    height: float

    def axes(self, left: float, top: float, width: float, height: float) -> Axes:
        corner = (left / self.width, 1 - (top + height) / self.height)
        return self.figure.add_axes((*corner, width / self.width, height / self.height))

    def text(self, left: float, top: float, text: str, **style: object) -> None:
        where = (left / self.width, 1 - top / self.height)
        # Class names and titles are not ours: a dollar sign in them is no formula.
        self.figure.text(*where, text, va="center", parse_math=False, **style)  # type: ignore[arg-type]


def write_quicklook(
    path: str | Path,
    *,
    scene_rgb: NDArray[np.uint8],
    class_map: NDArray[np.uint16],
    legend: Legend,
    title: str,
    subtitle: str = "",
    given_labels: NDArray[np.uint16] | None = None,
    given_title: str = "Given labels",
    counts: Mapping[int, int] | None = None,
) -> None:
    """Write a PNG of the scene beside its labels and its class map, with a legend.

    Panels stand side by side, legend at their right; those of wide scenes lie above each other,
    legend below. The same input gives the same bytes.

    Parameters
    ----------
    path
        The PNG file.
    scene_rgb : array, shape (height, width, 3)
        The scene, decimated to about 1200 pixels.
    class_map : array, shape (height, width)
        Class numbers, 0 = unclassified (light grey).
    legend
        Names and colours; missing ones are filled in by `complete_legend`.
    title, subtitle
        First and second line, such as the name of the run and its accuracy.
    given_labels : array, shape (height, width), optional
        Labels, 0 = none.
    given_title
        What stands above them.
    counts
        Pixels per class of the full map, for the shares in the legend; else those of `class_map`.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    from matplotlib.figure import Figure

    if counts is None:
        numbers, sizes = np.unique(class_map, return_counts=True)
        counts = dict(zip(numbers.tolist(), sizes.tolist(), strict=True))
    present = {int(n) for n in np.unique(given_labels)} if given_labels is not None else set()
    present |= {number for number, pixels in counts.items() if pixels}
    legend = complete_legend(legend, present)
    entries = _entries(legend, sorted(present - {0}), counts)
    panels = [("Scene", scene_rgb)]
    if given_labels is not None:
        panels.append((given_title, paint_classes(given_labels, legend)))
    panels.append(("Class map", paint_classes(class_map, legend)))

    wide = class_map.shape[1] > 1.7 * class_map.shape[0]
    width, height = _panel_size(class_map.shape)
    header = _MARGIN + 0.36 + (0.3 if subtitle else 0.0)
    step_x, step_y = (0.0, height + _LABEL + _GAP) if wide else (width + _GAP, 0.0)
    panels_width = width + step_x * (len(panels) - 1)
    panels_bottom = header + _LABEL + height + step_y * (len(panels) - 1)
    room = panels_width if wide else panels_bottom - header - _LABEL
    columns = _columns(entries, room, below=wide)
    legend_left = _MARGIN + (0.0 if wide else panels_width + 2 * _GAP)
    legend_top = panels_bottom + _GAP if wide else header
    columns_width = sum(_width(column) + _GAP for column in columns) - _GAP
    # Ten points against the nine that are measured.
    legend_right = legend_left + max(columns_width, _text_width(_LEGEND_TITLE) * 10 / 9)
    legend_bottom = legend_top + _LABEL + _ENTRY * max(map(len, columns))
    text_right = _MARGIN + max(0.125 * len(title), 0.085 * len(subtitle))
    right = max(_MARGIN + panels_width, legend_right, text_right)

    size = (right + _MARGIN, max(panels_bottom, legend_bottom) + _MARGIN)
    canvas = _Canvas(Figure(figsize=size, dpi=_DPI, facecolor="white"), *size)
    canvas.text(_MARGIN, _MARGIN + 0.06, title, size=15, weight="bold", color=_INK)
    canvas.text(_MARGIN, _MARGIN + 0.38, subtitle, size=10, color=_FAINT)
    for index, (label, image) in enumerate(panels):
        left, top = _MARGIN + index * step_x, header + index * step_y
        canvas.text(left, top + _LABEL / 2 - 0.02, label, size=10, color=_INK)
        axes = canvas.axes(left, top + _LABEL, width, height)
        # Classes are never blended: two colours mixed are a third class.
        smooth = "auto" if image is scene_rgb else "nearest"
        axes.imshow(image, interpolation=smooth, aspect="auto")
        axes.set_axis_off()
    middle = legend_top + _LABEL / 2 - 0.02
    canvas.text(legend_left, middle, _LEGEND_TITLE, size=10, color=_INK)
    for column in columns:
        for index, entry in enumerate(column):
            middle = legend_top + _LABEL + (index + 0.5) * _ENTRY
            _draw_entry(canvas, legend_left, middle, _width(column), entry)
        legend_left += _width(column) + _GAP
    save_figure(canvas.figure, Path(path))


def paint_classes(classes: NDArray[np.uint16], legend: Legend) -> NDArray[np.uint8]:
    """Return class numbers as colours, shape (height, width, 3); light grey where there is none."""
    table = np.full((65536, 3), _UNCLASSIFIED_COLOR, np.uint8)
    for number, color in legend.colors.items():
        table[number] = color
    return table[classes]


def stretch_rgb(bands: NDArray[np.floating], valid: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Return three bands as a picture: each from its 2nd to its 98th percentile.

    Parameters
    ----------
    bands : array, shape (height, width, 3)
        Red, green and blue in any unit.
    valid : array of bool, shape (height, width)
        Pixels that count; the others become light grey.

    Returns
    -------
    array of uint8, shape (height, width, 3)
    """
    picture = np.full(bands.shape, _UNCLASSIFIED_COLOR, np.uint8)
    usable = valid & np.isfinite(bands).all(axis=-1)
    if usable.any():
        values = bands[usable].astype(np.float64)
        low, high = np.percentile(values, (2, 98), axis=0)
        # A band of one value is mid-grey, not a division by zero.
        span = np.where(high > low, high - low, 1.0)
        share = np.where(high > low, (values - low) / span, 0.5)
        picture[usable] = np.rint(np.clip(share, 0, 1) * 255).astype(np.uint8)
    return picture


def choose_rgb_bands(
    wavelength_nm: NDArray[np.floating] | None, good_count: int
) -> tuple[int, int, int]:
    """Return which good bands to show as red, green and blue.

    Parameters
    ----------
    wavelength_nm : array, shape (good_count,), optional
        Centres of the good bands in nanometres, NaN where unknown.
    good_count
        Number of good bands, at least 1.

    Returns
    -------
    red, green, blue
        Indices among the good bands: those nearest to 650, 550 and 470 nm when they are all
        covered; else 20, 10 and 5 % of the way, where sensors of the visible to the short-wave
        infrared have them; of few bands the last, the middle and the first.

    Examples
    --------
    >>> choose_rgb_bands(None, 200), choose_rgb_bands(None, 4)
    ((40, 20, 10), (3, 2, 0))
    """
    if wavelength_nm is not None:
        centers = np.asarray(wavelength_nm, np.float64)
        known = np.flatnonzero(np.isfinite(centers))
        if known.size:
            away = np.abs(centers[known] - np.array(_RGB_WAVELENGTHS)[:, np.newaxis])
            nearest = known[away.argmin(axis=1)].tolist()
            if len(set(nearest)) == 3 and away.min(axis=1).max() <= 40:
                return nearest[0], nearest[1], nearest[2]
    if good_count < _FEW_BANDS:
        return good_count - 1, good_count // 2, 0
    red, green, blue = (int(share * good_count) for share in _RGB_SHARES)
    return red, green, blue


def _entries(legend: Legend, numbers: list[int], counts: Mapping[int, int]) -> list[_Entry]:
    total = sum(pixels for number, pixels in counts.items() if number) or 1
    entries = []
    for number in numbers[:_MOST_ENTRIES]:
        name = " ".join(legend.names[number].split())
        if len(name) > _LONGEST_NAME:
            name = name[: _LONGEST_NAME - 1].rstrip() + "…"
        red, green, blue = (part / 255 for part in legend.colors[number])
        share = counts.get(number, 0) / total
        entries.append(_Entry(name, (red, green, blue), _percent(share)))
    if len(numbers) > _MOST_ENTRIES:
        entries.append(_Entry(f"and {len(numbers) - _MOST_ENTRIES} more", (1.0, 1.0, 1.0), ""))
    return entries


def _percent(share: float) -> str:
    return "< 0.1 %" if 0 < share < 0.0005 else f"{100 * share:.1f} %"


def _panel_size(shape: tuple[int, ...]) -> tuple[float, float]:
    """Return width and height of a panel in inches: about the same area for every shape."""
    scale = min((_PANEL_AREA / (shape[0] * shape[1])) ** 0.5, _PANEL_LONGEST / max(shape))
    # A sliver is drawn stretched rather than too thin to see.
    return max(scale * shape[1], _PANEL_SHORTEST), max(scale * shape[0], _PANEL_SHORTEST)


def _columns(entries: list[_Entry], room: float, *, below: bool) -> list[list[_Entry]]:
    """Cut the legend into columns that fill the width below the panels, or the height beside."""
    if below:
        count = min(len(entries), int((room + _GAP) / (_width(entries) + _GAP)))
    else:
        count = -(-len(entries) // max(_FEWEST_LINES, int(room / _ENTRY)))
    lines = max(1, -(-len(entries) // max(count, 1)))
    return [entries[i : i + lines] for i in range(0, len(entries), lines)] or [[]]


def _width(entries: list[_Entry]) -> float:
    """Return the width of a column of the legend in inches."""
    longest = max((_text_width(entry.name) for entry in entries), default=0.0)
    return longest + _SWATCH + 0.1 + _SHARE


@functools.lru_cache(maxsize=1024)
def _text_width(text: str) -> float:
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        # A dollar sign would start a formula here.
        shape = TextPath((0, 0), text.replace("$", "S"), prop=FontProperties(size=9))
        return float(shape.get_extents().x1) / 72


def _draw_entry(canvas: _Canvas, left: float, middle: float, width: float, entry: _Entry) -> None:
    from matplotlib.patches import Rectangle

    corner = (left / canvas.width, 1 - (middle + _SWATCH / 2) / canvas.height)
    size = (_SWATCH / canvas.width, _SWATCH / canvas.height)
    patch = Rectangle(corner, *size, facecolor=entry.color, transform=canvas.figure.transFigure)
    canvas.figure.add_artist(patch)
    canvas.text(left + _SWATCH + 0.1, middle, entry.name, size=9, color=_INK)
    canvas.text(left + width, middle, entry.share, size=8.5, color=_FAINT, ha="right")


def save_figure(figure: Figure, path: Path) -> None:
    """Write a PNG that is whole if it is there.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    try:
        # A name in a script that the font lacks shows boxes; that is no reason to stop.
        with replacing(path) as temporary, warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing")
            figure.savefig(temporary, format="png", metadata={"Software": None})
    except OSError as error:
        raise output_error(path, error) from error
