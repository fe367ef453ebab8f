"""Classes as flags of the CF conventions: numbers, and a word for each (version 1.11, section 3.5)."""

from collections.abc import Mapping
from typing import Any

from eigenscape.scenes.labels.flags import flag_word


def class_flags(names: Mapping[int, str]) -> dict[str, Any]:
    """Return ``flag_values`` and ``flag_meanings`` of classes, by their numbers.

    Examples
    --------
    >>> class_flags({1: "tall grass", 2: "tall_grass", 3: "?"})
    {'flag_values': [1, 2, 3], 'flag_meanings': 'tall_grass tall_grass_2 class_3'}
    """
    numbers = sorted(names)
    words: list[str] = []
    for number in numbers:
        # No two alike.
        stem = word = flag_word(names[number]) or f"class_{number}"
        again = 1
        while word in words:
            again += 1
            word = f"{stem}_{again}"
        words.append(word)
    return {"flag_values": numbers, "flag_meanings": " ".join(words)}
