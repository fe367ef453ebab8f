"""Colours of classes by what their names mean: water is blue, soil is brown, a road is dark grey.

The words and the colours are in ``words.toml`` beside this module.
"""

import re
import tomllib
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any

from eigenscape.scenes.types import Color

_NEGATIONS = {"no", "non", "not", "un", "other", "others"}
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})
_GERMAN_ENDINGS = ("", "e", "er", "n", "en", "s")


def meaning_of(name: str) -> str | None:
    """Return what a name of a class means, such as "water"; None if no word tells.

    Of several words the last one counts ("forest road" is a road), of several parts the first one that
    has a meaning ("Buildings-Grass-Trees-Drives" are buildings). Parts are what lies between hyphens,
    commas and other signs. A negation ("non-forest") leaves the name without a meaning.

    Examples
    --------
    >>> meaning_of("Lakes"), meaning_of("bare soil"), meaning_of("class 7"), meaning_of("Bäume")
    ('water', 'soil', None, 'forest')
    """
    for part in re.split(r"[^\w\s]|_", _plain(name)):
        found = re.findall(r"[^\W\d_]+", part)
        if _NEGATIONS & {*found}:
            return None
        for word in reversed(found):
            if meaning := _meaning_of_word(word):
                return meaning
    return None


def _plain(name: str) -> str:
    """Return a name in lower case, with umlauts as two letters and without other accents."""
    # An umlaut may be one character or a letter with a mark after it.
    letters = unicodedata.normalize("NFC", name).lower().translate(_UMLAUTS)
    return "".join(
        one for one in unicodedata.normalize("NFD", letters) if not unicodedata.combining(one)
    )


def _meaning_of_word(word: str) -> str | None:
    words, german = _words("words"), _words("german")
    if meaning := words.get(word) or words.get(word.removesuffix("s")):
        return meaning
    # A plural may have an umlaut that its singular has not: Baum and Bäume, Wald and Wälder.
    singular = word.replace("ae", "a").replace("oe", "o").replace("ue", "u")
    for form in (word, singular):
        for ending in _GERMAN_ENDINGS:
            if form.endswith(ending) and (meaning := german.get(form.removesuffix(ending))):
                return meaning
    return None


def color_of(meaning: str) -> Color:
    """Return the colour of a meaning."""
    red, green, blue = _table()[meaning]["color"]
    return red, green, blue


@cache
def _words(key: str) -> dict[str, str]:
    return {word: meaning for meaning, entry in _table().items() for word in entry.get(key, ())}


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
