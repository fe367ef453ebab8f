"""Windows of wavelength that a scene is read without: names of them, and which bands lie there."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eigenscape.base.shares import inflected
from eigenscape.errors import SceneError, did_you_mean
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.formats.bandlists import parse_bad_bands
from eigenscape.scenes.types import Bands

WINDOWS: dict[str, tuple[tuple[tuple[float, float], ...], str]] = {
    "water-vapour": (
        ((1350.0, 1430.0), (1800.0, 1960.0)),
        "water vapour (its bands at 1.38 and 1.88 micrometres) leaves next to no sunlight there",
    ),
    "oxygen": (((757.0, 771.0),), "oxygen (its A band at 0.76 micrometres) absorbs there"),
    "detector-ends": (
        ((0.0, 420.0), (2450.0, 2600.0)),
        "silicon and mercury-cadmium-telluride detectors see little light there",
    ),
}
"""Windows in nanometres by name, and why they are left out; of water vapour the innermost parts alone."""

DEFAULT = ("water-vapour",)
"""What ``scene.drop_wavelengths = "auto"`` stands for where wavelengths are known."""


@dataclass(frozen=True)
class BadBands:
    """Bands to leave out.

    Attributes
    ----------
    numbers
        From 1.
    reason
        Why.
    """

    numbers: tuple[int, ...]
    reason: str


def find_windows(options: SceneOptions, bands: Bands) -> list[BadBands]:
    """Return the bands that lie in the windows of ``scene.drop_wavelengths``, marked bad already or not.

    Of a scene that would have no good band left, the default leaves out none.

    Raises
    ------
    SceneError
        A window is not understood, or the scene's wavelengths are not known.
    """
    wanted = options.drop_wavelengths
    if wanted == "none":
        return []
    names: Sequence[str] = DEFAULT if isinstance(wanted, str) else wanted
    if bands.wavelength is None:
        if isinstance(wanted, str) or not wanted:
            return []
        raise SceneError(
            f"scene.drop_wavelengths = {list(wanted)}: the scene's metadata has no wavelengths. Leave the "
            "key out, and name bands by their numbers in scene.bad_bands."
        )
    found = [_find(name, bands) for name in names]
    dropped = {number - 1 for each in found for number in each.numbers}
    if isinstance(wanted, str) and not set(bands.good_index.tolist()) - dropped:
        return []
    return [each for each in found if each.numbers]


def _find(name: str, bands: Bands) -> BadBands:
    assert bands.wavelength is not None, "they are known"
    if name in WINDOWS:
        windows, reason = WINDOWS[name]
        centre = np.array(bands.wavelength)
        inside = np.any([(centre >= low) & (centre <= high) for low, high in windows], axis=0)
        return BadBands(tuple(int(place) + 1 for place in np.flatnonzero(inside)), reason)
    if not any(mark.isalpha() for mark in name.rpartition("-")[2]) or not name[:1].isdigit():
        raise SceneError(
            f"scene.drop_wavelengths: {name!r} is not a window.{did_you_mean(name, WINDOWS)} Give "
            f'{", ".join(map(repr, WINDOWS))}, or wavelengths with their unit such as "1340-1460 nm".'
        )
    try:
        places = parse_bad_bands([name], len(bands.good), bands.wavelength)
    except SceneError as error:
        text = str(error).replace("scene.bad_bands", "scene.drop_wavelengths")
        raise SceneError(text) from None
    return BadBands(tuple(sorted(place + 1 for place in places)), "scene.drop_wavelengths names it")


def left_out_notes(
    options: SceneOptions,
    bands: Bands,
    windows: Sequence[BadBands],
    *,
    word: str,
    alpha: Sequence[int] = (),
    carried: Sequence[int] = (),
) -> tuple[str, ...]:
    """Return all bands that a scene is read without, and why: each band once, by its first reason.

    Parameters
    ----------
    options
        Of the scene.
    bands
        As its reader has them, before those in windows are left out.
    windows
        Of `find_windows`.
    word
        For a band: "band", or "column" of a table.
    alpha
        Numbers of the alpha bands, from 1.
    carried
        Numbers of the bands that are bad in another line of the scene, from 1.
    """
    keep = (
        ' (scene.drop_wavelengths = "none" keeps them)'
        if isinstance(options.drop_wavelengths, str)
        else ""
    )
    named = {
        place + 1 for place in parse_bad_bands(options.bad_bands, len(bands.good), bands.wavelength)
    }
    bad = {number for number, good in enumerate(bands.good, 1) if not good}
    reasons = [
        (named, "named in scene.bad_bands"),
        ({*alpha}, "alpha band: it marks missing pixels"),
        (bad, "marked as bad in the scene's own metadata"),
        *((set(each.numbers), f"{each.reason}{keep}") for each in windows),
        (set(carried), "bad in another line"),
    ]
    notes, told = [], set[int]()
    for numbers, reason in reasons:
        if new := sorted(numbers - told):
            notes.append(f"{_which(new, bands, word)} left out: {reason}")
        told |= numbers
    return tuple(notes)


def _which(numbers: Sequence[int], bands: Bands, word: str) -> str:
    """Return the numbers of bands, and their wavelengths where they are known."""
    which = f"{inflected(word, len(numbers))} {', '.join(map(str, band_ranges(numbers)))}"
    if bands.wavelength is None:
        return which
    centres = [bands.wavelength[number - 1] for number in numbers]
    known = [centre for centre in centres if math.isfinite(centre)]
    if not known:
        return which
    low, high = (f"{centre:.0f}" for centre in (min(known), max(known)))
    return f"{which} ({low if low == high else f'{low} to {high}'} nm)"


def band_ranges(numbers: Sequence[int]) -> list[int | str]:
    """Return band numbers as a job file says them.

    Examples
    --------
    >>> band_ranges([3, 4, 5, 9, 220])
    ['3-5', 9, 220]
    """
    ordered = np.unique(np.asarray(numbers, int))
    runs = np.split(ordered, np.flatnonzero(np.diff(ordered) > 1) + 1)
    return [f"{run[0]}-{run[-1]}" if len(run) > 1 else int(run[0]) for run in runs if len(run)]
