"""Images of scenes side by side: class maps beside the labels given, eigenvectors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.errors import JobError
from eigenscape.export.palette import complete_legend, rgb
from eigenscape.study.pictures.panels import MOST_NAMES
from eigenscape.study.pictures.picture import INK, Panel, Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_GREY, _NONE = "#9aa2aa", "#eceff1"
_IMAGE, _LINE = 3.1, 0.2  # Inches: an image, a line of the legend.
_BELOW = 6
_MOST_PIXELS = 700
_WIDEST = 4


def draw_maps(picture: Picture) -> Figure:
    """Draw the labels given, if there are any, and the class map of each variant, with one legend.

    Raises
    ------
    JobError
        The samples are no image.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    panels = picture.panels
    first = panels[0].shown
    check_images(panels)
    images = []
    if first.labels("given") is not None:
        images = [("Labels given", first.image("labels/given", _MOST_PIXELS))]
    images += [(panel.title, panel.shown.image("labels/class", _MOST_PIXELS)) for panel in panels]
    present = {int(n) for _, image in images for n in np.unique(image[np.isfinite(image)])} - {0}
    legend = complete_legend(first.legend, present)
    figure, axes = _image_grid(Figure, images[0][1].shape, len(images), room=2.4)
    for one, (words, image) in zip(axes, images, strict=False):
        _show(one, words)
        one.imshow(_paint(image, legend.colors), interpolation="nearest")
    handles = [
        Patch(facecolor=rgb(legend.colors[n]), label=legend.names[n])
        for n in sorted(present)[:MOST_NAMES]
    ]
    handles.append(Patch(facecolor=_NONE, edgecolor=_GREY, linewidth=0.5, label="no class"))
    beside = len(handles) * _LINE <= figure.get_figheight() - 2 * _LINE
    if not beside:
        # More classes than the images are high: in columns below them.
        rows = -(-len(handles) // _BELOW)
        figure.set_figheight(figure.get_figheight() + rows * _LINE)
    figure.legend(
        handles=handles, loc="outside right upper" if beside else "outside lower center",
        ncols=1 if beside else _BELOW, frameon=False, fontsize=8.5,
    )  # fmt: skip
    figure.suptitle(picture.title, x=0.01, ha="left", fontsize=11, color=INK)
    return figure


def draw_eigenvectors(picture: Picture) -> Figure:
    """Draw eigenvectors as images: a row for each variant, a column for each eigenvector.

    Raises
    ------
    JobError
        The samples are no image.
    """
    from matplotlib.figure import Figure

    options, panels = picture.options, picture.panels
    check_images(panels)
    shape = panels[0].shown.image_shape(_MOST_PIXELS)
    figure, axes = _image_grid(
        Figure, shape, len(panels) * len(options.modes), width=len(options.modes), room=0.9
    )
    first: list[NDArray[np.float64]] = []
    places = [(panel, mode) for panel in panels for mode in options.modes]
    for number, (one, (panel, mode)) in enumerate(zip(axes, places, strict=False)):
        image = panel.shown.image("spectrum/vector", _MOST_PIXELS, panel.shown.mode(mode))
        # The middle 96 %: a few samples at an end would leave the others one grey.
        low, high = np.nanpercentile(image, [2, 98])
        image = np.clip((image - low) / max(high - low, 1e-30), 0, 1)
        if number < len(options.modes):
            first.append(image)
        elif _opposite(first[number % len(options.modes)], image):
            image = 1 - image
        _show(one, f"{panel.title}\neigenvector {mode}")
        one.imshow(image, cmap="viridis", vmin=0, vmax=1, interpolation="nearest")
    bar = figure.colorbar(axes[0].images[0], ax=list(axes), shrink=0.7, aspect=30, ticks=[0, 1])
    bar.ax.set_yticklabels(["low", "high"])
    bar.outline.set_visible(False)
    figure.suptitle(picture.title, x=0.01, ha="left", fontsize=11, color=INK)
    return figure


def check_images(panels: Sequence[Panel]) -> None:
    """Refuse tables of samples, of which there is no image."""
    for panel in panels:
        if panel.shown.grid.is_table:
            raise JobError(
                f"{panel.shown.job.name}: study.pictures: a table of samples is not an image. Set kind to "
                '"embedding".'
            )


def _opposite(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    if one.shape != other.shape:
        return False
    return float(np.nansum((one - np.nanmean(one)) * (other - np.nanmean(other)))) < 0


def _image_grid(
    figure_type: type[Figure],
    shape: tuple[int, ...],
    count: int,
    *,
    width: int | None = None,
    room: float,
) -> tuple[Figure, NDArray[Any]]:
    columns = width or math.ceil(count / math.ceil(count / _WIDEST))
    rows = -(-count // columns)
    high = _IMAGE * min(2.0, shape[0] / shape[1])
    size = (_IMAGE * columns + room, (high + 0.45) * rows + 0.4)
    figure = figure_type(figsize=size, dpi=160, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for one in axes[count:]:
        one.set_visible(False)
    return figure, axes


def _show(axes: Axes, words: str) -> None:
    axes.set_title(words, fontsize=9.5, color=INK)
    axes.set_xticks([])
    axes.set_yticks([])


def _paint(
    image: NDArray[np.float64], colors: Mapping[int, tuple[int, int, int]]
) -> NDArray[np.float64]:
    painted = np.full((*image.shape, 3), 1.0)
    painted[image == 0] = [int(_NONE[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    for number, color in colors.items():
        painted[image == number] = np.array(color) / 255
    return painted
