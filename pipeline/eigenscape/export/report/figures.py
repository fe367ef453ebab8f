"""Charts of a report as SVG: numbers become coordinates here, the page's style sheet gives the colours."""

import math
from collections.abc import Sequence

from markupsafe import Markup

_WIDTH, _LEFT, _RIGHT = 760, 64, 14
_MOST_DOTS = 600


def _number(value: float) -> str:
    return f"{value:.3g}"


def _ticks(low: float, high: float, count: int = 4) -> list[float]:
    """Return round numbers between two others."""
    span = high - low
    if span <= 0:
        return [low]
    step = 10 ** math.floor(math.log10(span / count))
    step *= next((factor for factor in (1, 2, 5, 10) if span / (step * factor) <= count), 10)
    first = math.ceil(low / step - 1e-9)
    return [step * number for number in range(first, math.floor(high / step + 1e-9) + 1)]


class _Plot:
    """A frame with axes, whose lines are gathered in order."""

    def __init__(self, count: int, low: float, high: float, top: int, height: int) -> None:
        self.count, self.low, self.high = count, low, high if high > low else low + 1
        self.top, self.height = top, height
        self.parts: list[str] = []

    def x(self, place: float) -> float:
        inner = _WIDTH - _LEFT - _RIGHT
        return _LEFT + inner * (place + 0.5) / max(self.count, 1)

    def y(self, value: float) -> float:
        return self.top + self.height * (1 - (value - self.low) / (self.high - self.low))

    def grid(self, labels: Sequence[tuple[float, str]]) -> None:
        for value, text in labels:
            y = self.y(value)
            self.parts.append(
                f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
                f'<text class="tick" x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'
            )

    def places(self, first: int) -> None:
        bottom = self.top + self.height
        shown = sorted({round(value) for value in _ticks(first, first + self.count - 1, 8)})
        for number in shown:
            x = self.x(number - first)
            self.parts.append(
                f'<text class="tick" x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{number}</text>'
            )

    def dots(self, values: Sequence[float], kinds: Sequence[str]) -> None:
        step = -(-len(values) // _MOST_DOTS)
        radius = 4 if len(values) <= 80 else 2
        for place in range(0, len(values), step):
            self.parts.append(
                f'<circle class="{kinds[place]}" cx="{self.x(place):.1f}" cy="{self.y(values[place]):.1f}" '
                f'r="{radius}"/>'
            )


def eigenvalue_chart(values: Sequence[float], null: int) -> Markup:
    """Draw eigenvalues in ascending order, the largest gap between neighbours marked.

    Parameters
    ----------
    values
        Ascending.
    null
        The first of them that belong to constant vectors.
    """
    plot = _Plot(len(values), min(0.0, min(values)), max(values), 16, 210)
    plot.grid([(value, _number(value)) for value in _ticks(plot.low, plot.high)])
    gap = largest_gap(values, null)
    text = f"{len(values)} eigenvalues from {_number(min(values))} to {_number(max(values))}"
    if gap is not None:
        place, size = gap
        left, right = plot.x(place), plot.x(place + 1)
        low, high = plot.y(values[place]), plot.y(values[place + 1])
        plot.parts.append(
            f'<rect class="gap" x="{left:.1f}" y="{plot.top}" width="{right - left:.1f}" '
            f'height="{plot.height}"/>'
            f'<line class="gapline" x1="{right:.1f}" x2="{right:.1f}" y1="{low:.1f}" y2="{high:.1f}"/>'
        )
        anchor = "start" if right < _WIDTH - 300 else "end"
        x = right + 8 if anchor == "start" else left - 8
        plot.parts.append(
            f'<text class="note" x="{x:.1f}" y="{plot.top + plot.height - 8}" text-anchor="{anchor}">'
            f"largest gap: {_number(size)}, after number {place}</text>"
        )
        text += f"; the largest gap follows number {place}"
    plot.dots(values, ["dot null" if place < null else "dot" for place in range(len(values))])
    plot.places(0)
    return _svg(plot.parts, 262, text, "number of the eigenvalue")


def largest_gap(values: Sequence[float], null: int) -> tuple[int, float] | None:
    """Return after which eigenvalue the largest gap is, and its size; None where there are too few.

    Gaps next to the constant vectors are left out: they are there in any graph.

    Examples
    --------
    >>> largest_gap([0.0, 0.1, 0.12, 0.5, 0.6], 1)
    (2, 0.38)
    """
    gaps = [
        (values[place + 1] - values[place], place) for place in range(max(null, 1), len(values) - 1)
    ]
    if not gaps:
        return None
    size, place = max(gaps)
    return place, size


def residual_chart(residuals: Sequence[float], tolerance: float) -> Markup:
    """Draw residuals of the eigenpairs on a logarithmic axis, with the tolerance as a line."""
    logs = [math.log10(max(value, 1e-17)) for value in residuals]
    limit = math.log10(tolerance)
    low = math.floor(min([*logs, limit]) - 0.2)
    high = math.ceil(max([*logs, limit]) + 0.2)
    plot = _Plot(len(logs), low, high, 16, 130)
    step = -(-(high - low) // 4) or 1
    plot.grid([(power, f"1e{power}") for power in range(low, high + 1, step)])
    y = plot.y(limit)
    plot.parts.append(
        f'<line class="limit" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text class="note" x="{_WIDTH - _RIGHT}" y="{y - 6:.1f}" text-anchor="end">'
        f"tolerance {_number(tolerance)}</text>"
    )
    kinds = ["dot bad" if value > tolerance else "dot" for value in residuals]
    plot.dots(logs, kinds)
    plot.places(0)
    worst = _number(max(residuals))
    return _svg(
        plot.parts,
        182,
        f"residuals up to {worst}, tolerance {_number(tolerance)}",
        "number of the eigenpair",
    )


def _svg(parts: Sequence[str], height: int, text: str, axis: str) -> Markup:
    # Numbers and words of ours alone: nothing of the user's is in here.
    label = (
        f'<text class="tick" x="{_WIDTH - _RIGHT}" y="{height - 2}" text-anchor="end">{axis}</text>'
    )
    return Markup(
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{text}">'
        f"{''.join(parts)}{label}</svg>"
    )
