"""Shares, counts and lists as they are printed, and which of several shares comes first."""

from collections.abc import Iterable, Mapping
from typing import Any

INTERVAL = 1.96
"""Standard errors on each side of an estimate that its interval of 95 % spans."""


def percent(share: float | None, digits: int = 1, *, missing: str = "-") -> str:
    """Return a share in percent.

    Parameters
    ----------
    share
        From 0 to 1; None if it was not measured.
    digits
        Digits after the point.
    missing
        Text for None.

    Examples
    --------
    >>> percent(0.5894), percent(None, missing="not measured")
    ('58.9 %', 'not measured')
    """
    return missing if share is None else f"{100 * share:.{digits}f} %"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural unless it is one.

    Examples
    --------
    >>> counted(1, "list"), counted(1000, "list"), counted(2, "class")
    ('1 list', '1,000 lists', '2 classes')
    """
    return f"{count:,} {inflected(noun, count)}"


def inflected(noun: str, count: int) -> str:
    """Return a noun in the plural unless it stands for one.

    Examples
    --------
    >>> inflected("band", 1), inflected("band", 3), inflected("study", 2)
    ('band', 'bands', 'studies')
    """
    if count == 1:
        return noun
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun.removesuffix('y')}ies"
    return f"{noun}{'es' if noun.endswith('s') else 's'}"


def listed(words: Iterable[str], most: int, separator: str = ", ") -> str:
    """Return a list in a sentence, and how many are left out of it.

    Parameters
    ----------
    words
        What is listed.
    most
        How many are named at most.
    separator
        Text between two of them.

    Examples
    --------
    >>> listed(["a.tif", "b.tif"], 2), listed(["a.tif", "b.tif", "c.tif"], 2)
    ('a.tif, b.tif', 'a.tif, b.tif and 1 more')
    """
    words = list(words)
    named = separator.join(words[:most])
    return f"{named} and {len(words) - most:,} more" if len(words) > most else named


def recall_interval(found: Mapping[str, Any]) -> float | None:
    """Return half of the interval of a measured recall; None if there is none to print.

    Lists that all have the same recall tell nothing of how far others are from it, and of lists that were
    all tested there are no others.

    Parameters
    ----------
    found
        What `eigenscape.neighbors.search.recall.Truth.measure` returned.
    """
    low, high = found["recall_low"], found["recall_high"]
    return None if low is None or low == high else (high - low) / 2


def recall_basis(found: Mapping[str, Any], noun: str = "list") -> str:
    """Return what a recall was measured on, in words.

    Parameters
    ----------
    found
        As for `recall_interval`.
    noun
        What was tested.

    Examples
    --------
    >>> found = {"recall": 1.0, "recall_low": None, "recall_high": None, "recall_samples": 1000}
    >>> recall_basis(found)
    '1,000 lists tested against exact search: every neighbour was found'
    >>> recall_basis({**found, "recall": 0.98, "recall_low": 0.98, "recall_high": 0.98}, "pixel")
    'all 1,000 pixels tested against exact search'
    """
    tested = f"{counted(found['recall_samples'], noun)} tested against exact search"
    if found["recall"] == 1:
        return f"{tested}: every neighbour was found"
    return f"all {tested}" if found["recall_low"] == found["recall_high"] is not None else tested


def lead(held_out: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return the protocol whose figures come first: by squares of the scene where it measured anything.

    Neighbouring pixels are alike, so that other draws flatter. None where nothing was measured.

    Parameters
    ----------
    held_out
        What `summarize` returned, by protocol.
    """
    names = sorted(held_out, key=lambda name: name != "blocked")
    return next((name for name in names if held_out[name]["overall_accuracy"] is not None), None)


def tested_classes(scores: Mapping[str, Any]) -> str:
    """Return how many of the labelled classes were tested, in words; an empty text for all of them.

    Examples
    --------
    >>> tested_classes({"per_class": [0.9, None, 0.0]}), tested_classes({"per_class": [0.9, 0.0]})
    ('2 of 3 classes tested', '')
    """
    shares = scores.get("per_class", [])
    tested = sum(share is not None for share in shares)
    return f"{tested} of {len(shares)} classes tested" if tested < len(shares) else ""
