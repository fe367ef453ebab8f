"""The attribute of a vector file that holds the class, numbers of the classes and their names."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.errors import SceneError, did_you_mean
from eigenscape.scenes.labels.classnumbers import (
    MOST_CLASSES,
    label_out_of_range,
    texts_of_none,
    to_number,
)
from eigenscape.scenes.types import Legend

LIKELY = (
    "class", "label", "classes", "labels", "class_name", "classname", "class_id", "classid",
    "landcover", "land_cover", "lulc", "category", "fclass",
)  # fmt: skip
_PARTS = {"code", "id", "name", "nr", "number", "value"}
_NEVER = {"fid", "objectid", "ogc_fid", "gid", "gml_id"}


def classify(
    columns: Mapping[str, NDArray[Any]], field: str | None, path: str
) -> tuple[NDArray[np.uint16], Legend]:
    """Return the class number of every feature and the names of the classes.

    Parameters
    ----------
    columns : mapping of arrays, shape (features,)
        The attributes.
    field
        The one that holds the class; by default one with a telling name, or the only possible one.
    path
        What to name in messages.

    Returns
    -------
    numbers : array of uint16, shape (features,)
        0 where the attribute is empty.
    legend : Legend
        Texts are numbered in alphabetic order from 1, unless another column has their numbers; see
        `find_partner`.

    Raises
    ------
    SceneError
        There is no such attribute, several could be meant, or a value is no class number.
    """
    name = choose_attribute(columns, field, path)
    numeric, texts = _kinds(columns)
    if name in numeric:
        numbers = numeric[name]
        _check_range(numbers, name, path)
        partner = _partner(numeric, texts, name)
        names = _pairs(numbers, texts[partner] if partner else None)
        return numbers.astype(np.uint16), Legend(names)
    if name not in texts:
        values = columns[name]
        broken = next((value for value in values if not _is_whole(value)), None)
        if broken is None:
            raise SceneError(
                f"{path}: the attribute {name!r} gives no feature a class. Name another one in "
                "scene.labels_field."
            )
        raise label_out_of_range(broken, f"{path}: attribute {name}")
    words = texts[name]
    if partner := _partner(numeric, texts, name):
        numbers = np.where(words != "", numeric[partner], 0)
        return numbers.astype(np.uint16), Legend(_pairs(numbers, words))
    known = sorted(set(words.tolist()) - {""})
    if len(known) > MOST_CLASSES:
        raise label_out_of_range(len(known), f"{path}: attribute {name}, number of distinct texts")
    order = {word: number for number, word in enumerate(known, start=1)}
    numbered = np.array([order.get(word, 0) for word in words.tolist()], np.uint16)
    return numbered, Legend({number: word for word, number in order.items()}, alphabetical=True)


def without_texts_of_none(values: NDArray[Any]) -> tuple[NDArray[Any], list[str]]:
    """Return an attribute without the texts that mean no label, and these texts, once for each feature.

    Parameters
    ----------
    values : array, shape (features,)
    """
    texts = [value.strip() if isinstance(value, str) else "" for value in values.tolist()]
    none = texts_of_none({*texts}) - {""}
    if not none:
        return values, []
    kept = values.astype(object)
    kept[np.isin(texts, [*none])] = None
    return kept, [text for text in texts if text in none]


def find_partner(columns: Mapping[str, NDArray[Any]], name: str) -> str | None:
    """Return the attribute with the names of classes that are numbers, or the numbers of named ones.

    It stands for the class one to one. Where no class has two features any attribute would, such as the
    date or the area of each: there it must be called like one of a class.

    Parameters
    ----------
    columns : mapping of arrays, shape (features,)
        The attributes.
    name
        The one that holds the class.

    Returns
    -------
    str or None
        One that is called like one of a class before others; None where there is none.
    """
    return _partner(*_kinds(columns), name)


def _partner(
    numeric: Mapping[str, NDArray[np.float64]], texts: Mapping[str, NDArray[Any]], name: str
) -> str | None:
    if name in numeric:
        numbers = numeric[name]
        fit = [
            other
            for other, words in texts.items()
            # Booleans name no class that has a number.
            if not {*words.tolist()} <= {"", "False", "True"} and _one_to_one(numbers, words)
        ]
        distinct = _all_distinct(numbers[numbers != 0])
    else:
        words = texts[name]
        fit = [
            other
            for other, numbers in numeric.items()
            if _are_numbers(numbers[words != ""]) and _one_to_one(numbers, words)
        ]
        distinct = _all_distinct(words[words != ""])
    fit = [other for other in fit if other.lower() not in _NEVER]
    telling = [other for other in fit if _tells_class(other)]
    return next(iter(telling if telling or distinct else fit), None)


def _tells_class(name: str) -> bool:
    """Return whether an attribute is called like one of a class: "code", "class_name"."""
    stem, _, part = name.lower().rpartition("_")
    return name.lower() in {*LIKELY, "code", "name", "value"} or (stem in LIKELY and part in _PARTS)


def _all_distinct(values: NDArray[Any]) -> bool:
    return len(set(values.tolist())) == len(values)


def _are_numbers(numbers: NDArray[np.float64]) -> bool:
    """Return whether numbers can be those of classes, of which each feature has one."""
    return bool(numbers.size and numbers.min() > 0 and numbers.max() <= MOST_CLASSES)


def choose_attribute(columns: Mapping[str, NDArray[Any]], field: str | None, path: str) -> str:
    """Return the name of the attribute that holds the class; see `classify`.

    Raises
    ------
    SceneError
        There is no such attribute, or several could be meant.
    """
    if field is not None:
        if field not in columns:
            raise SceneError(
                f"{path}: has no attribute {field!r} (scene.labels_field).{did_you_mean(field, columns)} "
                f"Attributes: {', '.join(columns) or 'none'}."
            )
        return field
    numeric, texts = _kinds(columns)
    possible = _possible_classes(columns, {**numeric, **texts})
    by_name = {name.lower(): name for name in reversed(possible)}
    likely = [by_name[name] for name in LIKELY if name in by_name]
    if likely:
        return likely[0]
    if len(possible) == 1:
        return possible[0]
    words = [name for name in possible if name in texts]
    if len(possible) == 2 and len(words) == 1:
        other = next(name for name in possible if name != words[0])
        if _one_to_one(numeric[other], texts[words[0]]):
            # Text beside one code for each feature may be anything, such as a date.
            named = _partner(numeric, texts, other) is not None or not _tells_class(other)
            return words[0] if named else other
    if possible:
        raise SceneError(
            f"{path}: several attributes could hold the class: {', '.join(possible)}. Name one in "
            "scene.labels_field (--labels-field of `eigenscape init`), or leave the others out of the file."
        )
    unfit = "; ".join(f"{name} {_why_unfit(name, columns[name])}" for name in columns)
    raise SceneError(
        f"{path}: no attribute could hold the class, which is a whole number or a text: "
        f"{unfit or 'it has no attributes'}. Add an attribute with the class, or name one in "
        "scene.labels_field."
    )


def choose_mark(columns: Mapping[str, NDArray[Any]], field: str | None, path: str) -> str | None:
    """Return the attribute whose classes mark the features; None where each of them marks.

    That is so where no attribute is called `field`, or none could hold a class; see `choose_attribute`.

    Raises
    ------
    SceneError
        Several could be meant.
    """
    if field is None:
        without = not _possible_classes(columns, possible_attributes(columns))
    else:
        without = field not in columns
    return None if without else choose_attribute(columns, field, path)


def _possible_classes(columns: Iterable[str], usable: Collection[str]) -> list[str]:
    return [name for name in columns if name in usable and name.lower() not in _NEVER]


def possible_attributes(columns: Mapping[str, NDArray[Any]]) -> list[str]:
    """Return the names of the attributes of whole numbers, texts or booleans, in their order."""
    numeric, texts = _kinds(columns)
    return [name for name in columns if name in numeric or name in texts]


def _kinds(
    columns: Mapping[str, NDArray[Any]],
) -> tuple[dict[str, NDArray[np.float64]], dict[str, NDArray[Any]]]:
    """Return the attributes of whole numbers, and those of texts or booleans."""
    numeric = {name: numbers for name in columns if (numbers := _whole(columns[name])) is not None}
    texts = {
        name: words
        for name in columns
        if name not in numeric and (words := _words(columns[name])) is not None
    }
    return numeric, texts


def _why_unfit(name: str, column: NDArray[Any]) -> str:
    """Return why an attribute is not taken for the class."""
    values = [value for value in column.tolist() if value is not None and value == value]
    if not values:
        return "is empty"
    if name.lower() in _NEVER and all(map(_is_whole, values)):
        return "numbers the features"
    broken = next((value for value in values if not _is_whole(value)), values[0])
    return f"holds {broken!r}"


def _is_whole(value: Any) -> bool:
    if isinstance(value, bool):
        return False  # a class by its name, as in CSV and Parquet files
    try:
        return value is None or np.isnan(to_number(value)) or to_number(value).is_integer()
    except (TypeError, ValueError):
        return False


def _whole(column: NDArray[Any]) -> NDArray[np.float64] | None:
    """Return a column of whole numbers, empty entries as 0; None if it is none. Numerals count."""
    if column.dtype.kind not in "uifO" or not all(map(_is_whole, column.tolist())):
        return None
    numbers = np.array([np.nan if value is None else to_number(value) for value in column.tolist()])
    return None if np.isnan(numbers).all() else np.nan_to_num(numbers, nan=0.0)


def _words(column: NDArray[Any]) -> NDArray[Any] | None:
    """Return a column of texts or booleans as texts, empty entries as ""; None if it is none."""
    values: Sequence[Any] = column.tolist()
    if column.dtype.kind != "O" or not any(isinstance(value, str | bool) for value in values):
        return None
    if not all(value is None or isinstance(value, str | bool | float) for value in values):
        return None
    return np.array(
        [str(value).strip() if isinstance(value, str | bool) else "" for value in values]
    )


def _one_to_one(numbers: NDArray[np.float64], words: NDArray[Any]) -> bool:
    used = (numbers != 0) | (words != "")
    pairs = set(zip(numbers[used].tolist(), words[used].tolist(), strict=True))
    return len(pairs) == len({one for one, _ in pairs}) == len({other for _, other in pairs})


def _pairs(numbers: NDArray[np.float64], words: NDArray[Any] | None) -> dict[int, str]:
    if words is None:
        return {}
    pairs = zip(numbers.tolist(), words.tolist(), strict=True)
    return {int(number): word for number, word in sorted(set(pairs)) if number and word}


def _check_range(numbers: NDArray[np.float64], name: str, path: str) -> None:
    wrong = numbers[(numbers < 0) | (numbers > MOST_CLASSES)]
    if wrong.size:
        raise label_out_of_range(wrong[0], f"{path}: attribute {name}")
