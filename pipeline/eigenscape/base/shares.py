"""Accuracies as they are printed: shares in percent, and which of several comes first."""

from collections.abc import Mapping
from typing import Any


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
