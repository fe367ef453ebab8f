"""Scores as tables: measures with their intervals, the confusion matrix, areas of the classes."""

from collections.abc import Iterable, Iterator
from typing import Any

from eigenscape.base.files.cells import csv_rows, to_cell
from eigenscape.context import Context
from eigenscape.learn.decide.kernels.scores import OF_ALL, OF_CLASSES
from eigenscape.scenes.types import Legend

_NAMES = {"per_class": "producers_accuracy"}
_AREAS = (
    "mapped", "area", "area_se", "proportion", "proportion_se", "users_accuracy", "users_accuracy_se",
    "producers_accuracy", "producers_accuracy_se",
)  # fmt: skip


def write_scores(
    context: Context, legend: Legend, classes: list[int], scores: dict[str, Any]
) -> dict[str, str]:
    """Write scores.csv, confusion.csv and, where they were estimated, areas.csv.

    Parameters
    ----------
    context
        Of the export stage.
    legend
        Names of the classes.
    classes
        Their numbers, in the order of the scores.
    scores
        Of a method that learns from labels: see `eigenscape.learn.stage`.

    Returns
    -------
    dict
        The files by what they are.
    """
    names = [to_cell(legend.names.get(number, "")) for number in classes]
    each = list(zip(classes, names, strict=True))
    outputs = {"scores": "scores.csv", "confusion": "confusion.csv"}
    head = ["protocol", "measure", "class", "name", "value", "low", "high"]
    _write(context, outputs["scores"], [head, *_measures(scores, each)])
    rows = [
        [number, name, *cells, sum(cells)]
        for (number, name), cells in zip(each, scores["confusion"], strict=True)
    ]
    _write(context, outputs["confusion"], [["class", "name", *classes, "no class", "all"], *rows])
    if "areas" in scores:
        outputs["areas"] = "areas.csv"
        _write(context, outputs["areas"], _area_rows(scores["areas"], each))
    return outputs


def _measures(scores: dict[str, Any], each: list[tuple[int, str]]) -> Iterator[list[Any]]:
    protocol, intervals = scores["protocol"], scores.get("intervals", {})
    for name in OF_ALL:
        low_high = intervals.get(name) or (None, None)
        yield [protocol, name, "", "", *map(_number, (scores[name], *low_high))]
    for name in OF_CLASSES:
        known = intervals.get(name) or [None] * len(each)
        for (number, text), value, pair in zip(each, scores[name], known, strict=True):
            cells = map(_number, (value, *(pair or (None, None))))
            yield [protocol, _NAMES.get(name, name), number, text, *cells]


def _area_rows(areas: dict[str, Any], each: list[tuple[int, str]]) -> Iterator[list[Any]]:
    unit = areas["unit"]
    yield ["class", "name", *(f"{name} ({unit})" if "area" in name or name == "mapped" else name
                              for name in _AREAS)]  # fmt: skip
    for place, (number, name) in enumerate(each):
        yield [number, name, *(_number(areas[key][place]) for key in _AREAS)]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _write(context: Context, name: str, rows: Iterable[list[Any]]) -> None:
    with csv_rows(context.workspace.file(name)) as table:
        table.writerows(rows)
