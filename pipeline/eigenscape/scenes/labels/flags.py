"""Classes as flags of the CF conventions: numbers, and a word for each (version 1.11, section 3.5)."""

import re
from collections.abc import Mapping
from typing import Any

from eigenscape.scenes.formats.rasters.metadata import braced_list
from eigenscape.scenes.labels.classnumbers import MOST_CLASSES

_NO_WORD = re.compile(r"[^\w.+@-]+")
"""What is neither a letter, a digit nor one of the signs that words of CF may have."""


def flag_word(name: str) -> str:
    """Return a name as a word of CF, "" where no letter is left.

    Examples
    --------
    >>> flag_word("tall grass (wet)"), flag_word("?")
    ('tall_grass_wet', '')
    """
    return _NO_WORD.sub("_", name).strip("_")


def flag_names(attributes: Mapping[str, Any]) -> dict[int, str]:
    """Return ``flag_meanings`` by ``flag_values``, from 0 to the largest class; none where flags are bits.

    Parameters
    ----------
    attributes
        Of an array, or of a band that GDAL read, where lists are texts.

    Examples
    --------
    >>> flag_names({"flag_values": "{0,1,2}", "flag_meanings": "unknown water bare_soil"})
    {0: 'unknown', 1: 'water', 2: 'bare_soil'}
    >>> flag_names({"flag_masks": [1, 2], "flag_meanings": "cloud shadow"})
    {}
    """
    if "flag_masks" in attributes:
        return {}
    values, words = (
        attributes.get("flag_values", ()),
        str(attributes.get("flag_meanings", "")).split(),
    )
    items = braced_list(values) if isinstance(values, str) else values
    try:
        numbers = [float(item) for item in (items if isinstance(items, list | tuple) else [items])]
    except (TypeError, ValueError):
        return {}
    if len(numbers) != len(words):
        return {}
    named = zip(numbers, words, strict=True)
    return {int(number): word for number, word in named if 0 <= number <= MOST_CLASSES}
