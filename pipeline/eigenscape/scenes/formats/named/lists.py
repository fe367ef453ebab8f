"""Lists along the axis of bands: wavelengths, their widths, and which bands are good."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eigenscape.scenes.formats.bandlists import to_nanometers, told_unit, unit_to_nanometers
from eigenscape.scenes.formats.named.arrays import Known, NamedArray, stored_axes

_WAVELENGTHS = ("wavelength", "wavelengths")
_WIDTHS = ("fwhm",)
_FLAGS = ("good_wavelengths", "bbl")


@dataclass(frozen=True)
class BandLists:
    """What a file says of the bands of an array, one entry per band.

    Attributes
    ----------
    wavelength, fwhm
        In nanometres, NaN where unknown; None where nothing is known.
    good
        False where a list of good bands says 0.
    notes
        What a user should know of lists that are not used.
    """

    wavelength: tuple[float, ...] | None
    fwhm: tuple[float, ...] | None
    good: tuple[bool, ...]
    notes: tuple[str, ...] = ()


def band_lists(array: NamedArray, known: Known) -> BandLists | None:
    """Return the lists along the bands of an array; None for one whose axis of bands is not known.

    Parameters
    ----------
    array
        The cube.
    known
        The arrays of the file.
    """
    order = stored_axes(array, known)
    if array.axes is None or order is None or "b" not in order:
        return None
    axis, count = array.axes[order.index("b")], array.shape[order.index("b")]
    along = [
        one for one in known.values()
        if one.axes == (axis,) and one.shape == (count,) and one.dtype.kind in "uifb"
    ]  # fmt: skip
    centres = _first(along, array, _WAVELENGTHS) or _own_coordinate(along, axis)
    stored = None if centres is None else _numbers(centres)
    unit = None if centres is None else _unit(centres)
    wavelength = None if stored is None else to_nanometers(stored, unit)
    fwhm = None
    if (widths := _first(along, array, _WIDTHS)) is not None:
        fwhm = to_nanometers(_numbers(widths), _unit(widths) or unit, like=stored)
    flags = _first(along, array, _FLAGS)
    good = (True,) * count if flags is None else tuple(flag != 0 for flag in _numbers(flags))
    notes = () if stored is None or wavelength is not None or unit is None else (told_unit(unit),)
    return BandLists(wavelength, fwhm, good, notes)


def _first(
    along: Sequence[NamedArray], array: NamedArray, names: Sequence[str]
) -> NamedArray | None:
    """Return the array of one of some names, rather in the group of the cube than in another."""
    folder = array.name.rpartition("/")[0]
    found = [one for one in along if one.name.rpartition("/")[2].lower() in names]
    found.sort(key=lambda one: one.name.rpartition("/")[0] != folder)
    return found[0] if found else None


def _own_coordinate(along: Sequence[NamedArray], axis: str) -> NamedArray | None:
    """Return the coordinate of the axis, if its unit is a length: others number the bands."""
    for one in along:
        unit = _unit(one)
        if one.name.rpartition("/")[2] == axis and unit and unit_to_nanometers(unit) is not None:
            return one
    return None


def _numbers(array: NamedArray) -> list[float]:
    return [float(value) for value in np.asarray(array.load(), np.float64)]


def _unit(array: NamedArray) -> str | None:
    unit = array.attributes.get("units")
    return None if unit is None else str(unit)
