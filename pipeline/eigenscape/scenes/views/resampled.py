"""A scene brought to the bands of another one.

A band that the scene has too, at the same wavelength and of the same width, is taken as it is; for any
other, its spectra are seen through the response of the band.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.shares import listed
from eigenscape.base.vectors import Vectors
from eigenscape.errors import SceneError
from eigenscape.scenes.types import Bands, Scene
from eigenscape.scenes.views.centred import centred
from eigenscape.scenes.views.draws import Subset
from eigenscape.scenes.views.subset import subset_of
from eigenscape.scenes.views.wrapped import WrappedScene

F8 = NDArray[np.float64]

_LEAST_SPACING = 4.0
"""Nanometres: of bands that lie closer, or of one alone, as much is taken for their spacing."""

_SAME_WAVELENGTH = 0.1
"""Nanometres: bands that lie closer are taken for the same where the width of one is not known."""

_SAME_WIDTH = 0.25
"""Share of the width at half maximum by which two bands may differ that are taken for the same."""

_APART = 0.75
"""Share of the spacing from which on two bands are neighbours, not the same one on other wavelengths."""

_TOLD = 8
"""Wavelengths in a message."""

_REACH, _STEPS = 1.5, 120
"""Widths at half maximum to which a response is followed to either side, and steps in which."""


class Called(NamedTuple):
    """What messages call the scene that has the wanted bands, and the one that is brought to them."""

    wanted: str
    found: str


OF_RUN = Called("the run", "the scene")
OF_LINES = Called("the first line", "another line")


@dataclass(frozen=True)
class ResampledScene(WrappedScene):
    """A scene with the bands of another one: its own where it has them, the others resampled.

    To resample, the spectra are seen through the response of a band, a Gaussian of its centre and width; a
    spectrum is taken as linear between the scene's own bands.

    Attributes
    ----------
    target
        What it is brought to: centres and widths, all good.
    origin
        What is subtracted of each of them, None for nothing.
    called
        For notes.
    """

    target: Bands
    origin: tuple[float, ...] | None = None
    called: Called = OF_RUN

    @property
    def bands(self) -> Bands:
        """What it is brought to."""
        return self.target

    @property
    def subset(self) -> Subset | None:
        """What it is of a table."""
        return subset_of(self.scene)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know."""
        before, after = self.scene.bands.count, self.bands.count
        wanted, found = self.called
        taken = int((self._places >= 0).sum())
        if taken == after:
            return (_note_taken(after, self.scene.bands, self.called),)
        if not taken:
            return (
                f"spectra of {found} resampled from {before} bands to {wanted}'s {after}, Gaussians of their "
                "widths",
            )
        return (
            f"bands of {wanted}: {taken} taken from {found} as they are, {after - taken} resampled from its "
            f"{before}, Gaussians of their widths",
        )

    @property
    def _places(self) -> NDArray[np.intp]:
        return counterparts(self.scene.bands, self.bands)

    def less(self, origin: F8) -> "ResampledScene":
        """Return the scene less an origin, shape (bands,)."""
        given = self._given(origin)
        # Bands taken as they are lose it before they are rounded, as in a scene of these bands alone.
        scene = centred(self.scene, given) if given.any() else self.scene
        return replace(self, scene=scene, origin=tuple(origin.tolist()))

    def _given(self, origin: F8) -> F8:
        """Return what is subtracted of each of the scene's own bands: of those taken as they are."""
        places, given = self._places, np.zeros(self.scene.bands.count)
        given[places[places >= 0]] = origin[places >= 0]
        return given

    def read(self, start: int, stop: int) -> tuple[Vectors, NDArray[np.bool_]]:
        """Read rows start ... stop-1; see `Scene.read`.

        Raises
        ------
        SceneError
            A file is truncated, damaged or gone.
        """
        values, valid = self.scene.read(start, stop)
        taken = self._places >= 0
        found = np.empty((*values.shape[:2], self.bands.count), np.float32)
        weights = response_weights(self.scene.bands, self.bands)[:, ~taken]
        origin = np.zeros(self.bands.count) if self.origin is None else np.array(self.origin)
        given = self._given(origin)
        for row, line in enumerate(values):
            # A row at a time: the same sums whatever the window.
            found[row][:, taken] = line[:, self._places[taken]]
            if weights.size:
                found[row][:, ~taken] = (line.astype(np.float64) + given) @ weights - origin[~taken]
        found[~valid] = 0
        return found, valid


def to_bands(scene: Scene, wanted: Bands, called: Called = OF_RUN) -> Scene:
    """Return a scene with the good bands of another one: itself, or a view of it.

    It is the scene itself if it has these bands and no others. A view has each band that the scene has as
    it is (`counterparts`), and the others resampled.

    Parameters
    ----------
    scene
        With all bands that may be of use.
    wanted
        Bands of the other scene.
    called
        For notes and messages.

    Raises
    ------
    SceneError
        It has other bands and nothing says at what wavelengths, or none near one of those that are wanted.
    """
    found = scene.bands
    reason = _difference(scene.files[0], found, wanted, called.wanted)
    if not reason:
        return scene
    source, target = _known(found), _known(wanted)
    if not len(target[0]) or np.isnan(target[0]).any() or not np.isfinite(source[0]).any():
        raise SceneError(
            f"{reason} Wavelengths of both would allow to resample it; give a scene with as many bands, or "
            "with the good ones alone."
        )
    _check_covered(scene.files[0], source, target, called.wanted)
    centres, widths = (tuple(part.tolist()) for part in target)
    names = wanted.names and tuple(wanted.names[place] for place in wanted.good_index)
    target_bands = Bands((True,) * len(centres), centres, widths, names)
    return ResampledScene(scene, target_bands, called=called)


def notes_of_bands(scene: Scene) -> tuple[str, ...]:
    """Return what a user should know of the bands of a scene that `to_bands` returned.

    A view says so itself, among its notes.
    """
    bands = scene.bands
    if isinstance(scene, ResampledScene) or bands.count == len(bands.good):
        return ()
    return (_note_taken(bands.count, bands, OF_RUN),)


def _note_taken(count: int, source: Bands, called: Called) -> str:
    return (
        f"{called.wanted}'s {count} bands are {count} of {called.found}'s {len(source.good)}, taken as they "
        "are; none is resampled"
    )


def _difference(file: str, found: Bands, wanted: Bands, owner: str) -> str:
    """Return in which way the good bands of a scene are others than those wanted; empty if they are not."""
    if found.count != wanted.count:
        missing = ""
        if len(found.good) == len(wanted.good):
            pairs = enumerate(zip(found.good, wanted.good, strict=True), 1)
            lost = [number for number, (here, there) in pairs if there and not here]
            missing = f" Bands {', '.join(map(str, lost[:12]))} are marked bad in it."
        return (
            f"{file}: {found.count} good bands of {len(found.good)}; {owner} has "
            f"{wanted.count} of {len(wanted.good)}.{missing}"
        )
    if found.wavelength is None or wanted.wavelength is None:
        return ""
    here, there = _known(found)[0], _known(wanted)[0]
    away = np.abs(here - there)
    if not _differ(here, there):
        return ""
    worst = int(np.nanargmax(away))
    return (
        f"{file}: band {int(found.good_index[worst]) + 1} is centred at {here[worst]:.1f} nm; {owner}'s at "
        f"{there[worst]:.1f} nm."
    )


def same_sequence(one: Bands, other: Bands) -> bool:
    """Return whether two scenes have the same bands in the same order, good or bad.

    They have as many, and the centres of each pair are as near as those of one band; of scenes without
    wavelengths nothing says otherwise.
    """
    if len(one.good) != len(other.good):
        return False
    return not _differ(_stated(one)[0], _stated(other)[0])


def _differ(here: F8, there: F8) -> bool:
    """Return whether the centres of some pair of bands are more than a quarter of the least spacing apart."""
    order = np.sort(there[np.isfinite(there)])
    limit = max(float(np.diff(order).min(initial=np.inf)), _LEAST_SPACING) / 4
    limit = limit if np.isfinite(limit) else _LEAST_SPACING / 4
    return bool((np.abs(here - there) > limit).any())


@lru_cache(maxsize=8)
def counterparts(source: Bands, target: Bands) -> NDArray[np.intp]:
    """Return which good band of a scene is the same as each band that is wanted.

    The same are bands whose centres lie within a quarter of the spacing there, of the scene's bands or of
    those wanted, whichever is less, and whose widths differ by a quarter at most. Where a width is not
    known, the centres must agree to 0.1 nm.

    Parameters
    ----------
    source, target
        Bands of the scene, and those wanted.

    Returns
    -------
    array of int, shape (good bands of the target,)
        Places among the good bands of the source, each once at most; -1 for none.
    """
    (centres, widths), (wanted, width) = _stated(source), _stated(target)
    # The spacing is that of a sensor, whichever of its bands are left out.
    spacing = _spacing(centres)[source.good_index]
    apart = _spacing(wanted)[target.good_index, None]
    centres, widths = centres[source.good_index], widths[source.good_index]
    wanted, width = wanted[target.good_index, None], width[target.good_index, None]
    away = np.abs(wanted - centres)
    alike = np.abs(width - widths) <= _SAME_WIDTH * width
    unknown = ~((width > 0) & (widths > 0))
    near = away <= np.fmin(apart, spacing) / 4
    same = near & (alike | (unknown & (away <= _SAME_WAVELENGTH)))
    found = np.full(len(wanted), -1)
    # The nearest pairs first; of bands at one wavelength, the first with the first.
    for place, own in np.argwhere(same)[np.argsort(away[same], kind="stable")]:
        if found[place] < 0 and own not in found:
            found[place] = own
    return found


def lacking(source: Bands, target: Bands) -> NDArray[np.bool_]:
    """Return which of the bands that are wanted a scene of the same sensor does not have.

    Two scenes are of the same sensor if some bands are the same (`counterparts`) and no two of the others
    lie close together. For a scene of another sensor it is none: its bands can be resampled.

    Parameters
    ----------
    source, target
        Bands of the scene, and those wanted.

    Returns
    -------
    array of bool, shape (good bands of the target,)
        Bands without a wavelength are not looked for.
    """
    places = counterparts(source, target)
    if (places < 0).all():
        return np.zeros(len(places), np.bool_)
    own, wanted = source.good_index, target.good_index
    others = np.setdiff1d(np.arange(len(own)), places)
    (centres, _), (sought, _) = _stated(source), _stated(target)
    away = np.abs(sought[wanted, None] - centres[own])
    apart = np.fmin(_spacing(sought)[wanted, None], _spacing(centres)[own])
    lost = places < 0
    if (away < _APART * apart)[np.ix_(lost, others)].any():
        return np.zeros(len(places), np.bool_)
    found: NDArray[np.bool_] = lost & np.isfinite(sought[wanted])
    return found


def _known(bands: Bands) -> tuple[F8, F8]:
    """Return centres and widths of the good bands; NaN where unknown, of widths the spacing instead."""
    centres, widths = (part[bands.good_index] for part in _stated(bands))
    return centres, np.where(widths > 0, widths, _spacing(centres))


def _stated(bands: Bands) -> tuple[F8, F8]:
    """Return centres and widths of all bands, good or bad; NaN where unknown."""
    nothing = (np.nan,) * len(bands.good)
    centres, widths = (np.array(part or nothing, float) for part in (bands.wavelength, bands.fwhm))
    return centres, widths


def _spacing(centres: F8) -> F8:
    """Return the distance of each band to the nearest other one."""
    order = np.argsort(centres)
    step = np.concatenate([[np.inf], np.diff(centres[order]), [np.inf]])
    near = np.fmin(step[:-1], step[1:])
    found = np.empty_like(centres)
    found[order] = np.where(np.isfinite(near), np.maximum(near, _LEAST_SPACING), _LEAST_SPACING)
    return found


@lru_cache(maxsize=8)
def response_weights(source: Bands, target: Bands) -> F8:
    """Return the share of each good band of a scene in each band that is wanted.

    Of each that is wanted its response, a Gaussian cut at 1.5 widths at half maximum and at the ends of
    the scene's range, over the spectrum that is linear between the scene's bands: the trapezoidal sum
    of 121 places.

    Parameters
    ----------
    source, target
        Bands of the scene, and those wanted.

    Returns
    -------
    array, shape (good bands of the source, good bands of the target)
        Each column sums to 1.
    """
    centres, _ = _known(source)
    known = np.flatnonzero(np.isfinite(centres))
    # Of bands at one wavelength the first counts.
    _, first = np.unique(centres[known], return_index=True)
    order = known[first]
    line = centres[order]
    weights = np.zeros((len(centres), target.count))
    for number, (centre, width) in enumerate(zip(*_known(target), strict=True)):
        places = np.linspace(centre - _REACH * width, centre + _REACH * width, _STEPS + 1)
        places = np.clip(places, line[0], line[-1])
        response = np.exp(-4 * np.log(2) * ((places - centre) / width) ** 2)
        share = response * np.gradient(places)
        if not share.sum() > 0:
            share = (places == places[np.abs(places - centre).argmin()]).astype(float)
        share /= share.sum()
        after = np.clip(np.searchsorted(line, places), 1, len(line) - 1) if len(line) > 1 else None
        if after is None:
            weights[order[0], number] = 1
            continue
        along = (places - line[after - 1]) / (line[after] - line[after - 1])
        np.add.at(weights[:, number], order[after], share * along)
        np.add.at(weights[:, number], order[after - 1], share * (1 - along))
    return weights


def told_wavelengths(values: F8) -> str:
    """Return wavelengths in a message, eight at most."""
    return f"{listed((f'{value:.0f}' for value in values), _TOLD)} nm"


def _check_covered(file: str, source: tuple[F8, F8], target: tuple[F8, F8], owner: str) -> None:
    """Refuse a scene if one of the wanted bands overlaps none of its bands at half maximum."""
    centres, widths = source
    away = np.abs(target[0][:, None] - centres)
    reach = (target[1][:, None] + widths) / 2
    missing = target[0][~(away <= reach).any(axis=1)]
    if len(missing):
        low, high = np.nanmin(centres), np.nanmax(centres)
        raise SceneError(
            f"{file}: has no band near {len(missing)} of {owner}'s {len(target[0])}, at "
            f"{told_wavelengths(missing)}; its own reach from {low:.0f} to {high:.0f} nm. Give a scene that "
            f"covers them, or leave them out of {owner} (scene.bad_bands, scene.drop_wavelengths)."
        )


def bands_read(scene: Scene) -> int:
    """Return how many bands a scene has while it is read: of one that is resampled its own, if more."""
    own = len(scene.bands.good)
    return max(own, bands_read(scene.scene)) if isinstance(scene, ResampledScene) else own
