"""One picture of a run: the scene, the given labels, the class map and its legend."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.shares import percent
from eigenscape.export.palette import complete_legend, rgb
from eigenscape.export.sidecar import output_error, replacing
from eigenscape.scenes.types import Legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_UNCLASSIFIED_COLOR = (236, 236, 236)
_INK, _FAINT, _DPI = "#1d2329", "#68727d", 160

# Inches; points.
_MARGIN, _GAP, _LABEL, _LINE = 0.3, 0.16, 0.26, 0.195
_PANEL_AREA, _PANEL_LONGEST, _PANEL_SHORTEST = 11.0, 9.0, 1.0
_WIDE, _WIDE_AREA = 1.7, 26.0  # Panels above each other: as wide as the second line over them.
_TITLE, _SUBTITLE = 55, 34
_LOWER = 8  # Without the names of panels.

_LONGEST_NAME, _MOST_ENTRIES, _FEWEST_LINES = 40, 80, 12
_COLUMN = 2.3  # Inches of a column of the legend below the panels: more of long names.

# Where red, green and blue are: in nanometres, and as a share of the bands.
_RGB_WAVELENGTHS = (650.0, 550.0, 470.0)
_RGB_SHARES = (0.20, 0.10, 0.05)
_FEW_BANDS = 32
_PLAIN_BANDS = (3, 4)  # Red, green, blue, and near infrared: the order of most such files.


def draw_quicklook(
    *,
    scene_rgb: NDArray[np.uint8],
    class_map: NDArray[np.uint16],
    legend: Legend,
    title: str,
    subtitle: str = "",
    given_labels: NDArray[np.uint16] | None = None,
    given_title: str = "Given labels",
    counts: Mapping[int, int] | None = None,
    kind: type[Figure] | None = None,
) -> Figure:
    """Draw the scene beside its labels and its class map, with a legend.

    Panels stand side by side, legend at their right; those of wide scenes lie above each other,
    legend below.

    Parameters
    ----------
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
    kind
        Class of the figure: matplotlib's own by default.
    """
    from matplotlib.figure import Figure

    if counts is None:
        numbers, sizes = np.unique(class_map, return_counts=True)
        counts = dict(zip(numbers.tolist(), sizes.tolist(), strict=True))
    present = {int(n) for n in np.unique(given_labels)} if given_labels is not None else set()
    present |= {number for number, pixels in counts.items() if pixels}
    legend = complete_legend(legend, present)
    panels = [("Scene", scene_rgb)]
    if given_labels is not None:
        panels.append((given_title, paint_classes(given_labels, legend)))
    panels.append(("Class map", paint_classes(class_map, legend)))

    wide = class_map.shape[1] > _WIDE * class_map.shape[0]
    width, height = _panel_size(class_map.shape, wide=wide)
    rows, columns = (len(panels), 1) if wide else (1, len(panels))
    # The panels alone: the picture is cut around what stands over and beside them.
    apart = _GAP + _LABEL * wide
    size = (columns * (width + apart) - apart, rows * (height + apart) - apart)
    figure = (kind or Figure)(figsize=size, dpi=_DPI, facecolor="white")
    spaces = {"wspace": apart / width, "hspace": apart / height}
    axes = figure.subplots(
        rows, columns, squeeze=False,
        gridspec_kw={"left": 0, "right": 1, "bottom": 0, "top": 1, **spaces},
    ).ravel()  # fmt: skip
    for one, (label, image) in zip(axes, panels, strict=True):
        # Classes are never blended: two colours mixed are a third class.
        smooth = "auto" if image is scene_rgb else "nearest"
        one.imshow(image, interpolation=smooth, aspect="auto")
        one.set_axis_off()
        one.set_title(label, loc="left", size=10, color=_INK, parse_math=False)
    _write(axes[0], _TITLE if subtitle else _SUBTITLE, title, size=15, weight="bold", color=_INK)
    _write(axes[0], _SUBTITLE, subtitle, size=10, color=_FAINT)
    _draw_legend(axes[-1], size, legend, sorted(present - {0}), counts, below=wide)
    return figure


def write_quicklook(path: str | Path, **parts: Any) -> None:
    """Write a PNG of what `draw_quicklook` draws. The same input gives the same bytes.

    Parameters
    ----------
    path
        The PNG file.
    parts
        Its parameters.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    save_figure(draw_quicklook(**parts), Path(path))


def write_eigenvectors(
    path: str | Path, picture: NDArray[np.uint8], title: str, numbers: str
) -> None:
    """Write a PNG of the first eigenvectors as red, green and blue.

    Parameters
    ----------
    path
        The PNG file.
    picture : array, shape (height, width, 3)
        The eigenvectors, stretched.
    title
        Name of the run.
    numbers
        Which eigenvectors they are.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    from matplotlib.figure import Figure

    height, width = picture.shape[:2]
    figure = Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI, facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.imshow(picture, interpolation="nearest", aspect="auto")
    axes.set_axis_off()
    _write(axes, _SUBTITLE - _LOWER, title, size=15, weight="bold", color=_INK)
    colors = f"Eigenvectors {numbers} as red, green and blue"
    _write(axes, _SUBTITLE - _LOWER - 17, colors, size=10, color=_FAINT)
    save_figure(figure, Path(path))


def first_columns(nulls: int, count: int) -> tuple[int, int, int]:
    """Return the columns of three eigenvectors that are not constant, the last one again where few are.

    Parameters
    ----------
    nulls, count
        Number of constant eigenvectors, which come first, and of all.
    """
    first, second, third = (min(nulls + place, count - 1) for place in range(3))
    return first, second, third


def _write(axes: Axes, above: float, text: str, **style: Any) -> None:
    """Write a line so many points above the left corner of a panel."""
    # Class names and titles are not ours: a dollar sign in them is no formula.
    axes.annotate(
        text, (0, 1), (0, above), xycoords="axes fraction", textcoords="offset points",
        annotation_clip=False, parse_math=False, **style,
    )  # fmt: skip


def _draw_legend(
    axes: Axes,
    size: tuple[float, float],
    legend: Legend,
    numbers: list[int],
    counts: Mapping[int, int],
    *,
    below: bool,
) -> None:
    """Draw colour, share and name of each class beside the last panel, or below it."""
    from matplotlib.patches import Patch
    from matplotlib.transforms import ScaledTranslation

    total = sum(pixels for number, pixels in counts.items() if number) or 1
    shown = numbers[:_MOST_ENTRIES]
    shares = [_percent(counts.get(number, 0) / total) for number in shown]
    # Aligned at their ends: this blank is as wide as a digit.
    longest = max(map(len, shares), default=0)
    shares = [share.rjust(longest, "\N{FIGURE SPACE}") for share in shares]
    handles = [
        Patch(facecolor=rgb(legend.colors[n]), label=f"{share}  {_shortened(legend.names[n])}")
        for n, share in zip(shown, shares, strict=True)
    ]
    if len(numbers) > _MOST_ENTRIES:
        handles.append(Patch(facecolor="none", label=f"and {len(numbers) - _MOST_ENTRIES} more"))
    if not handles:
        return
    lines = max(_FEWEST_LINES, int(size[1] / _LINE) - 1)
    columns = int(size[0] / _COLUMN) if below else -(-len(handles) // lines)
    # Its title is level with those of the panels beside it.
    right, up = (0.0, -_GAP) if below else (2 * _GAP, _LABEL - 0.03)
    figure = axes.get_figure(root=True)
    assert figure is not None, "drawn in one"
    drawn = axes.legend(
        handles=handles, title="Share of the map", alignment="left", loc="upper left",
        bbox_to_anchor=(0, 0) if below else (1, 1),
        bbox_transform=axes.transAxes + ScaledTranslation(right, up, figure.dpi_scale_trans),
        ncols=max(1, min(columns, len(handles))), frameon=False, fontsize=9, title_fontsize=10,
        labelcolor=_INK, handlelength=1.2, handleheight=1.1, handletextpad=0.6, labelspacing=0.45,
        columnspacing=1.8, borderaxespad=0, borderpad=0,
    )  # fmt: skip
    drawn.get_title().set_color(_INK)
    for text in drawn.get_texts():
        text.set_parse_math(False)


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


def choose_rgb_bands(bands: Mapping[str, Any]) -> tuple[int, int, int]:
    """Return which good bands to show as red, green and blue.

    Parameters
    ----------
    bands
        ``good``, ``wavelength`` and ``colors`` of all bands, as `eigenscape.scenes.types.Bands` has them.

    Returns
    -------
    red, green, blue
        Indices among the good bands: those nearest to 650, 550 and 470 nm when they are all
        covered; else those that the file calls so; of three or four bands without wavelengths the first
        three; else 20, 10 and 5 % of the way, where sensors of the visible to the short-wave
        infrared have them; of few bands the last, the middle and the first.

    Examples
    --------
    >>> choose_rgb_bands({"good": [True] * 200, "wavelength": None})
    (40, 20, 10)
    >>> choose_rgb_bands({"good": [True, False, True, True], "wavelength": None, "colors": [2, 3, 0]})
    (1, 2, 0)
    """
    good, wavelength = np.flatnonzero(bands["good"]), bands["wavelength"]
    good_count = len(good)
    if wavelength is not None:
        centers = np.array(wavelength, np.float64)[good]
        known = np.flatnonzero(np.isfinite(centers))
        if known.size:
            away = np.abs(centers[known] - np.array(_RGB_WAVELENGTHS)[:, np.newaxis])
            nearest = known[away.argmin(axis=1)].tolist()
            if len(set(nearest)) == 3 and away.min(axis=1).max() <= 40:
                return nearest[0], nearest[1], nearest[2]
    colors = bands.get("colors")
    if colors and np.isin(colors, good).all():
        return tuple(np.searchsorted(good, colors).tolist())
    if wavelength is None and good_count in _PLAIN_BANDS:
        return 0, 1, 2
    if good_count < _FEW_BANDS:
        return good_count - 1, good_count // 2, 0
    red, green, blue = (int(share * good_count) for share in _RGB_SHARES)
    return red, green, blue


def _shortened(name: str) -> str:
    name = " ".join(name.split())
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1].rstrip() + "…"


def _percent(share: float) -> str:
    return "< 0.1 %" if 0 < share < 0.0005 else percent(share)


def _panel_size(shape: tuple[int, ...], *, wide: bool) -> tuple[float, float]:
    """Return width and height of a panel in inches: about the same area for scenes side by side."""
    area = _WIDE_AREA if wide else _PANEL_AREA
    scale = min((area / (shape[0] * shape[1])) ** 0.5, _PANEL_LONGEST / max(shape))
    # A sliver is drawn stretched rather than too thin to see.
    return max(scale * shape[1], _PANEL_SHORTEST), max(scale * shape[0], _PANEL_SHORTEST)


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
            # `bbox_inches="tight"` would draw all images once more to find the same box.
            if (engine := figure.get_layout_engine()) is not None:
                engine.execute(figure)
                figure.set_layout_engine("none")  # or it would move what was measured
            box = figure.get_tightbbox().padded(_MARGIN)
            figure.savefig(temporary, format="png", metadata={"Software": None}, bbox_inches=box)
    except OSError as error:
        raise output_error(path, error) from error
