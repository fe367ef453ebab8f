"""Samples from which features are computed: spectra, prepared by ``[features.spectral]`` as they are read."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.vectors import Vectors
from eigenscape.context import Context
from eigenscape.errors import InputError
from eigenscape.job.options import SpectralOptions
from eigenscape.store.rows import Rows

if TYPE_CHECKING:
    from eigenscape.scenes.types import Bands


@dataclass(frozen=True)
class Preparation:
    """What is done to every spectrum: by the continuum, to length 1, to its slope, in this order.

    Attributes
    ----------
    options
        ``[features.spectral]``.
    places
        Wavelength of each good band in nanometres, or its number.
    measured
        Whether they are wavelengths.
    origin
        What was subtracted from the samples as they were read, None for nothing.
    """

    options: SpectralOptions
    places: tuple[float, ...]
    measured: bool
    origin: tuple[float, ...] | None = None

    def __call__(self, samples: Vectors) -> Vectors:
        """Return prepared samples, shape (samples, bands), float32."""
        from eigenscape.features.spectral.kernels import prepare

        assert isinstance(samples, np.ndarray), "sparse tables are refused"
        options, (origin, order, sorted_, weights) = self.options, self._arrays
        found: NDArray[np.float32] = prepare(
            np.ascontiguousarray(samples, np.float32), origin, order, sorted_, weights,
            options.continuum, options.normalize, options.derivative,
        )  # fmt: skip
        return found

    @cached_property
    def _arrays(self) -> tuple[NDArray[Any], ...]:
        from eigenscape.features.spectral.kernels import slope_weights

        places = np.array(self.places)
        order = np.argsort(places, kind="stable")
        weights = np.zeros((len(places), 3))
        if self.options.derivative:
            weights = slope_weights(places[order])
        origin = np.zeros(len(places)) if self.origin is None else np.array(self.origin)
        return origin, order, places[order], weights

    def notes(self) -> list[str]:
        """Return what a plan should say of it."""
        options = self.options
        unit = "nm" if self.measured else "band"
        steps = [
            text
            for text, wanted in (
                ("divided by its convex hull", options.continuum),
                ("scaled to length 1", options.normalize),
                (f"replaced by its slope per {unit}", options.derivative),
            )
            if wanted
        ]
        if not steps:
            return []
        over = options.continuum or options.derivative
        where = (
            "" if self.measured or not over else "; over band numbers, wavelengths are not known"
        )
        return [f"every spectrum is {', '.join(steps)}{where}"]


@dataclass(frozen=True)
class PreparedRows(Rows):
    """Samples on disk that are prepared as they are read.

    Attributes
    ----------
    prepare
        What is done to them, None for nothing.
    """

    prepare: Preparation | None = None

    def read(self, start: int, stop: int) -> Vectors:
        """Return rows start ... stop-1."""
        found = super().read(start, stop)
        return found if self.prepare is None else self.prepare(found)


def find_preparation(
    options: SpectralOptions | None,
    bands: "Bands",
    origin: NDArray[np.float64] | None = None,
    *,
    sparse: bool = False,
) -> Preparation | None:
    """Return what ``[features.spectral]`` does to the spectra of a scene; None for nothing.

    Parameters
    ----------
    options
        The table, None without one.
    bands
        Of the scene.
    origin
        What was subtracted from the samples.
    sparse
        Whether the scene is a sparse table.

    Raises
    ------
    InputError
        The samples are no spectra.
    """
    if options is None or not (options.continuum or options.normalize or options.derivative):
        return None
    if sparse:
        raise InputError(
            "[features.spectral]: the scene is a sparse table, whose rows are not spectra. Leave the table "
            'out; neighbors.metric = "angle" compares rows whatever their length.'
        )
    good = np.asarray(bands.good, bool)
    count = int(good.sum())
    if count < 2 and options.derivative:
        raise InputError(
            "features.spectral.derivative = true: the scene has one good band, and a slope needs two. Leave "
            "the key out."
        )
    known = bands.wavelength
    places = np.arange(count, dtype=np.float64)
    measured = False
    if known is not None:
        stated = np.array(known)[good]
        measured = bool(np.isfinite(stated).all())
        places = stated if measured else places
    if options.continuum or options.derivative:
        _check_apart(places, good)
    return Preparation(
        options,
        tuple(places.tolist()),
        measured,
        None if origin is None else tuple(origin.tolist()),
    )


def _check_apart(places: NDArray[np.float64], good: NDArray[np.bool_]) -> None:
    order = np.argsort(places, kind="stable")
    same = np.flatnonzero(np.diff(places[order]) == 0)
    if len(same):
        numbers = np.flatnonzero(good)[order[same[0] : same[0] + 2]] + 1
        raise InputError(
            f"[features.spectral]: bands {numbers[0]} and {numbers[1]} lie at the same wavelength, "
            f"{places[order[same[0]]]:g} nm, and a spectrum has one value there. Leave one of them out: "
            f"scene.bad_bands = [{numbers[1]}]."
        )


def sample_rows(context: Context, options: SpectralOptions | None) -> PreparedRows:
    """Return the samples of a run as features are computed from them.

    Parameters
    ----------
    context
        Of a stage after ingest.
    options
        ``[features.spectral]``, None without it.
    """
    path = context.path("samples/values")
    if options is None:
        return PreparedRows(path)
    from eigenscape.scenes.types import Bands

    ingest = context.run.record("ingest")
    assert ingest is not None, "features follow ingest"
    bands, origin = Bands.from_json(ingest.summary["bands"]), context.run.read("samples/origin")
    found = find_preparation(options, bands, origin, sparse=PreparedRows(path).sparse)
    return PreparedRows(path, prepare=found)
