"""Colours of classes by what their names mean: water is blue, soil is brown, a road is dark grey.

The words and the colours are in ``words.toml`` beside this module.
"""

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from eigenscape.scenes.types import Color

_NEGATIONS = {"no", "non", "not", "un", "other", "others"}
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})


def meaning_of(name: str) -> str | None:
    """Return what a name of a class means, such as "water"; None if no word tells.

    Of several words the last one counts ("forest road" is a road), of several parts the first one that
    has a meaning ("Buildings-Grass-Trees-Drives" are buildings). Parts are what lies between hyphens,
    commas and other signs. A negation ("non-forest") leaves the name without a meaning.

    Examples
    --------
    >>> meaning_of("Lakes"), meaning_of("bare soil"), meaning_of("class 7")
    ('water', 'soil', None)
    """
    words = _words()
    for part in re.split(r"[^\w\s]|_", name.lower().translate(_UMLAUTS)):
        found = re.findall(r"[^\W\d_]+", part)
        if _NEGATIONS & {*found}:
            return None
        for word in reversed(found):
            if meaning := words.get(word) or words.get(word.removesuffix("s")):
                return meaning
    return None


def color_of(meaning: str) -> Color:
    """Return the colour of a meaning."""
    red, green, blue = _table()[meaning]["color"]
    return red, green, blue


@cache
def _words() -> dict[str, str]:
    return {word: meaning for meaning, entry in _table().items() for word in entry["words"]}


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
