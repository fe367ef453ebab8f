"""Lists of bands as people and headers write them: numbers, ranges, wavelengths with units."""

import math
import re
from collections.abc import Iterable, Sequence

from eigenscape.errors import SceneError

_NANOMETERS = {
    "nanometer": 1.0,
    "nm": 1.0,
    "micrometer": 1e3,
    "micron": 1e3,
    "um": 1e3,
    "angstrom": 0.1,
    "a": 0.1,
    "millimeter": 1e6,
    "mm": 1e6,
    "centimeter": 1e7,
    "cm": 1e7,
    "meter": 1e9,
    "m": 1e9,
}
_UNKNOWN = {"", "unknown", "unspecified", "undefined", "none", "null", "n/a", "na", "nan"}
"""Units that say nothing."""
_BESIDE_UNITS = {"wavelength", "wavelengths", "in"}
# No optical sensor has a band centre below 100 nm, none above 100 micrometres.
_LARGEST_MICROMETERS = 100.0

_NUMBER = r"[0-9]*\.?[0-9]+"
_RANGE = re.compile(rf"\s*({_NUMBER})(?:\s*-\s*({_NUMBER}))?\s*([^\s\d.-]*)\s*")


def unit_to_nanometers(unit: str) -> float | None:
    """Return the length of a unit of wavelength in nanometres, or None if it is not known.

    Examples
    --------
    >>> unit_to_nanometers("Micrometers"), unit_to_nanometers("nm"), unit_to_nanometers("ell")
    (1000.0, 1.0, None)
    >>> unit_to_nanometers("Wavelength, nanometers (nm)"), unit_to_nanometers("cm-1")
    (1.0, None)
    """
    name = unit.strip().lower().replace("µ", "u").replace("μ", "u").replace("å", "a")
    name = name.replace("metre", "meter").replace("(s)", "s")
    words = re.split(r"[\s,;:()\[\]]+", name)
    # The name itself ("nano meters"), or the same unit once or twice.
    found = {_length(re.sub(r"[\s_-]", "", name))} - {None}
    found = found or {_length(word) for word in words if word and word not in _BESIDE_UNITS}
    return found.pop() if len(found) == 1 else None


def _length(word: str) -> float | None:
    return _NANOMETERS.get(word) or _NANOMETERS.get(word.rstrip("s"))


def to_nanometers(
    values: Sequence[float], unit: str | None, *, like: Sequence[float] | None = None
) -> tuple[float, ...] | None:
    """Convert wavelengths or widths to nanometres.

    Parameters
    ----------
    values
        One number per band, NaN where unknown.
    unit
        Unit as the metadata names it. When it is missing or "unknown", numbers below 100 are taken
        as micrometres, others as nanometres.
    like
        Numbers in the same unit from which an unknown unit is guessed: a width of 10 nm alone
        would look like micrometres, beside its wavelength it does not.

    Returns
    -------
    tuple of float or None
        None when nothing is known, or when the unit is no length that is understood (a band index, a
        wavenumber, a frequency).
    """
    finite = [value for value in (like or values) if math.isfinite(value)]
    if not finite or all(not math.isfinite(value) for value in values):
        return None
    if unit is None or unit.strip().lower() in _UNKNOWN:
        factor: float | None = 1e3 if max(finite) < _LARGEST_MICROMETERS else 1.0
    else:
        factor = unit_to_nanometers(unit)
    return None if factor is None else tuple(value * factor for value in values)


def told_unit(unit: str | None) -> str:
    """Return what a user should know of wavelengths whose unit is not understood."""
    return f"wavelengths are not known: their unit, {unit!r}, is not a length such as nm or um"


def parse_bad_bands(
    entries: Iterable[int | str], count: int, wavelength: Sequence[float] | None = None
) -> frozenset[int]:
    """Return the zero-based indices of the bands that ``scene.bad_bands`` leaves out.

    Parameters
    ----------
    entries
        Band numbers from 1, ranges of them (``"104-108"``), or ranges of wavelength with their
        unit (``"1340-1460 nm"``); several may stand in one text, separated by commas.
    count
        Number of bands of the source.
    wavelength
        Band centres in nanometres, NaN where unknown.

    Raises
    ------
    SceneError
        An entry is not understood, or names bands that the source does not have.

    Examples
    --------
    >>> sorted(parse_bad_bands([1, "3-4"], 5))
    [0, 2, 3]
    """
    bad: set[int] = set()
    for entry in entries:
        for text in str(entry).split(","):
            bad |= _parse_entry(text.strip(), count, wavelength)
    return frozenset(bad)


def _parse_entry(text: str, count: int, wavelength: Sequence[float] | None) -> set[int]:
    match = _RANGE.fullmatch(text)
    if match is None:
        raise SceneError(
            f"scene.bad_bands: {text!r} is not understood. Give band numbers from 1 to {count}, "
            'ranges such as "104-108", or wavelengths such as "1340-1460 nm".'
        )
    low, high, unit = match.group(1), match.group(2) or match.group(1), match.group(3)
    if float(low) > float(high):
        raise SceneError(
            f"scene.bad_bands: {text!r} runs backwards. Write the smaller number first."
        )
    if unit:
        return _bands_between(text, float(low), float(high), unit, wavelength)
    if "." in low + high:
        raise SceneError(
            f"scene.bad_bands: {text!r} is not a band number. Band numbers are whole; "
            'for a wavelength add its unit, such as "1340-1460 nm".'
        )
    first, last = int(low), int(high)
    if first < 1 or last > count:
        raise SceneError(
            f"scene.bad_bands: {text!r} lies outside the scene, whose bands are numbered 1 to "
            f'{count}. Correct the number; for a wavelength add its unit, such as "{text} nm".'
        )
    return set(range(first - 1, last))


def _bands_between(
    text: str, low: float, high: float, unit: str, wavelength: Sequence[float] | None
) -> set[int]:
    factor = unit_to_nanometers(unit)
    if factor is None:
        raise SceneError(
            f"scene.bad_bands: {text!r} has the unknown unit {unit!r}. Use nm or um, "
            "or give band numbers without a unit."
        )
    known = [value for value in wavelength or () if math.isfinite(value)]
    if wavelength is None or not known:
        raise SceneError(
            f"scene.bad_bands: {text!r} is a wavelength, but the scene's metadata has none. "
            "Give band numbers instead."
        )
    low, high = low * factor, high * factor
    if high < min(known) or low > max(known):
        raise SceneError(
            f"scene.bad_bands: {text!r} lies outside the scene, whose bands reach from "
            f"{min(known):g} to {max(known):g} nm. Correct the range or its unit."
        )
    return {index for index, value in enumerate(wavelength) if low <= value <= high}
