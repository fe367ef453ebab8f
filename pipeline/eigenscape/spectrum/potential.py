"""The potential of a job: the samples that it chooses, and its term of the Laplacian.

Samples that are chosen by their labels shape the eigenvectors, so a classifier's result on
their labels proves nothing. With ``labels = "train"`` they are those that the first fit of the
learn stage learns from, and that stage makes this fit alone; with "all" nothing is held out.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import blocks
from eigenscape.base.memory import CHUNK_ROWS
from eigenscape.errors import InputError
from eigenscape.job.options import LearnOptions, PotentialOptions
from eigenscape.labels.training import plan_fits
from eigenscape.scenes.files.places import check_exists
from eigenscape.scenes.formats.arrays.arrayfiles import array_format
from eigenscape.scenes.formats.rasters.planes import Plane, find_plane, open_plane
from eigenscape.scenes.geometry.located import Located
from eigenscape.scenes.ingest.ingested import IngestedScene
from eigenscape.scenes.labels.sources import open_classes
from eigenscape.scenes.types import Grid, Scene
from eigenscape.scenes.views.draws import Subset
from eigenscape.scenes.views.subset import subset_of
from eigenscape.spectrum.kernels.forms import FORMS
from eigenscape.spectrum.kernels.ties import Ties
from eigenscape.spectrum.scaled import sample_rows

_STRIP_PIXELS = 32 * CHUNK_ROWS
_TABLE = "[graph.potential]"


@dataclass(frozen=True)
class Chosen:
    """Some rows of the graph, each with a number.

    Attributes
    ----------
    row : array of int, shape (chosen,)
    number : array, shape (chosen,)
        Of a raster the potential itself, otherwise the class.
    """

    row: NDArray[np.int64]
    number: NDArray[Any]


@dataclass(frozen=True)
class SceneSamples:
    """The samples of a scene, as a potential chooses among them.

    Attributes
    ----------
    pixel, place, given
        ``samples/pixel``, where they lie (`IngestedScene.places`), and ``labels/given``, which is
        None for a scene without labels.
    order : array, shape (rows,)
        ``graph/sample``: the sample of each row.
    scene
        Their scene.
    """

    pixel: Any
    place: Any
    given: Any
    order: NDArray[np.int64]
    scene: IngestedScene

    def at(self, pixels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sample at each pixel, -1 where there is none."""
        all_pixels = np.asarray(self.pixel[...])
        place = np.minimum(np.searchsorted(all_pixels, pixels), len(all_pixels) - 1)
        return np.where(all_pixels[place] == pixels, place, -1)


@dataclass(frozen=True)
class Potential:
    """The terms that a job adds to its Laplacian.

    Attributes
    ----------
    barrier : array, shape (rows,), optional
        The diagonal matrix, its factor included.
    ties
        The matrix that draws clusters together, its factor included.
    summary
        Its entry in the manifest: samples, clusters, and the factor of V.
    """

    barrier: NDArray[np.float64] | None = None
    ties: Ties | None = None
    summary: dict[str, Any] | None = None

    @property
    def pull(self) -> float:
        """Largest eigenvalue of the ties, 0 without them; D^-1 of a random walk lets it be less."""
        return 0.0 if self.ties is None else self.ties.most


def check_potential(
    options: PotentialOptions | None, learn: LearnOptions, grid: Grid, subset: Subset | None = None
) -> None:
    """Refuse a potential that the scene or the rest of the job rules out, before anything runs.

    Parameters
    ----------
    options, learn
        Tables of the job.
    grid, subset
        Of the scene, and which samples of a table it is.

    Raises
    ------
    InputError
        With the key, the limit and the fix.
    """
    if options is None:
        return
    if options.labels == "train" and learn.train == "all":
        raise InputError(
            f'{_TABLE} labels = "train": learn.train is "all", so the potential would be made of every '
            "label and none be left to test on. Set learn.train to a share, a number or a raster, or "
            'labels = "all" for a map that is not scored.'
        )
    _flat_pixels(options, grid, subset)


def check_potential_classes(options: PotentialOptions | None, labelled: Iterable[int]) -> None:
    """Refuse classes of a potential that the labels of the scene do not have.

    Parameters
    ----------
    options
        Table of the job.
    labelled
        Classes of the labels; without any, nothing is refused.

    Raises
    ------
    InputError
        A class has no label.
    """
    numbers = sorted(labelled)
    if options is not None and options.labels in ("train", "all") and numbers:
        _check_chosen(options, numbers)


def _check_chosen(options: PotentialOptions, numbers: Sequence[int]) -> None:
    """Refuse classes that are not among some class numbers."""
    if missing := sorted(set(options.classes) - set(numbers)):
        raise InputError(
            f"{_TABLE} classes: no chosen sample has the class {', '.join(map(str, missing))}. "
            f"There are {', '.join(map(str, numbers)) or 'none'}."
        )


def check_potential_files(
    options: PotentialOptions | None,
    scene: Scene,
    resolve: Callable[[str], str],
    located: Located | None = None,
) -> None:
    """Open the files that a potential is made of, by their headers.

    Parameters
    ----------
    options
        Table of the job.
    scene, resolve
        The scene, and the function that turns a path of the job into an absolute one.
    located
        Where its pixels are, of a scene in sensor geometry.

    Raises
    ------
    SceneError
        A file cannot be read, or is not of the scene's size.
    """
    if options is None:
        return
    if options.raster:
        _open_values(resolve(options.raster), scene.grid)
    elif options.labels and options.labels not in ("train", "all"):
        open_classes(resolve(options.labels), scene.grid, subset_of(scene), located)


def make_potential(
    options: PotentialOptions,
    learn: LearnOptions,
    samples: SceneSamples,
    degree: NDArray[np.float64],
    kind: str,
    note: Callable[[str], None],
) -> Potential:
    """Return a potential in the rows of a graph.

    Parameters
    ----------
    options, learn
        Tables of the job.
    samples
        Samples among which it chooses.
    degree : array, shape (rows,)
        Of the graph.
    kind
        Of the Laplacian.
    note
        Called with remarks for the user.

    Raises
    ------
    InputError
        Nothing is chosen, V is 0, or a number of it is negative, infinite or missing.
    """
    chosen = _choose(options, learn, samples, note)
    # Of the random walk's operator D^-1 (L + V), L is that of D - W.
    roughness = float(degree.sum() if FORMS[kind].constant else len(degree))
    if options.kind == "barrier":
        barrier = np.zeros(len(degree))
        barrier[chosen.row] = chosen.number if options.raster else 1.0
        trace = float(barrier.sum())
        if trace == 0:
            raise InputError(
                f"{_TABLE} raster = {options.raster!r}: V is 0 at all {len(degree)} samples of the "
                "graph. Give a raster with values above 0, or leave the table out."
            )
        factor = options.alpha * (roughness / trace if options.relative else 1)
        summary = {"samples": int(np.count_nonzero(barrier)), "factor": factor}
        return Potential(barrier=factor * barrier, summary=summary)
    member, starts = _clusters(chosen)
    if len(starts) == 1:
        raise InputError(
            f"{_TABLE}: of {len(chosen.row)} chosen samples in the graph no two have the same class, "
            "so there is nothing to identify. Choose two samples or more of a class."
        )
    trace = 2.0 * (len(member) - (len(starts) - 1))
    factor = options.alpha * (roughness / trace if options.relative else 1)
    ties = Ties(member, starts, np.full(len(member), np.sqrt(2 * factor)))
    summary = {"samples": len(member), "clusters": len(starts) - 1, "factor": factor}
    return Potential(ties=ties, summary=summary)


def _clusters(chosen: Chosen) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows, class by class, and where each class begins; no class of one sample."""
    _, which, sizes = np.unique(chosen.number, return_inverse=True, return_counts=True)
    kept = sizes[which] > 1
    order = np.lexsort((chosen.row[kept], which[kept]))
    starts = np.concatenate([[0], np.cumsum(sizes[sizes > 1])])
    return chosen.row[kept][order], starts.astype(np.int64)


def _choose(
    options: PotentialOptions,
    learn: LearnOptions,
    samples: SceneSamples,
    note: Callable[[str], None],
) -> Chosen:
    grid, subset = samples.scene.grid, samples.scene.subset
    check_potential(options, learn, grid, subset)
    if options.pixels:
        wanted = _flat_pixels(options, grid, subset)
        sample = samples.at(wanted)
        if (sample < 0).any():
            row, column = divmod(int(wanted[np.argmax(sample < 0)]), grid.width)
            raise InputError(
                f"{_TABLE} pixels: the scene has no valid pixel at [{row}, {column}]: it is nodata, "
                "masked or not finite there. Choose another."
            )
        number: NDArray[Any] = np.ones(len(sample), np.int64)
    elif options.raster is not None:
        sample, number = _read_values(options.raster, samples)
    else:
        sample, number = _read_classes(options, learn, samples, note)
    rows = sample_rows(samples.order, samples.pixel.shape[0])[sample]
    inside = rows >= 0
    if len(sample) and not inside.any():
        raise InputError(
            f"{_TABLE}: none of the {len(sample)} chosen samples is in the graph, which is the "
            'largest component. Choose others, or set graph.components = "connect".'
        )
    if not inside.all():
        note(
            f"potential: {int((~inside).sum())} chosen samples are not in the graph and are left out"
        )
    return Chosen(rows[inside], number[inside])


def _flat_pixels(options: PotentialOptions, grid: Grid, subset: Subset | None) -> NDArray[np.int64]:
    """Return the number of each pixel that is chosen by its place, ascending.

    Rows are those of the whole table, of which the pixels are the drawn ones.
    """
    grid = grid if subset is None else Grid(subset.total, 1)
    alone = [place for place in options.pixels if not isinstance(place, tuple)]
    if alone and grid.width > 1:
        raise InputError(
            f"{_TABLE} pixels: {alone[0]} is a row alone, which names a sample of a table; the scene has "
            f"{grid.height} x {grid.width} pixels (rows x columns). Give pairs, such as "
            f"pixels = [[{alone[0]}, 0]]."
        )
    places = [place if isinstance(place, tuple) else (place, 0) for place in options.pixels]
    for row, column in places:
        if grid.width == 1 and row >= grid.height:
            raise InputError(
                f"{_TABLE} pixels: there is no row {row} in a table of {grid.height} samples. Rows go from "
                f"0 to {grid.height - 1}."
            )
        if row >= grid.height or column >= grid.width:
            raise InputError(
                f"{_TABLE} pixels: [{row}, {column}] is outside of the scene of {grid.height} x "
                f"{grid.width} pixels (rows x columns). Rows go from 0 to {grid.height - 1}, columns "
                f"from 0 to {grid.width - 1}."
            )
    found = np.unique([row * grid.width + column for row, column in places]).astype(np.int64)
    if subset is None:
        return found
    if len(left := np.setdiff1d(found, subset.rows)):
        raise InputError(
            f"{_TABLE} pixels: row {left[0]} is not among the {subset.count:,} of {subset.total:,} rows that "
            "scene.samples draws. Choose rows of classes.csv of a run, or another scene.seed."
        )
    return np.searchsorted(subset.rows, found)


def _read_classes(
    options: PotentialOptions,
    learn: LearnOptions,
    samples: SceneSamples,
    note: Callable[[str], None],
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the samples that are chosen by their labels, and the class of each."""
    scene = samples.scene
    if options.labels in ("train", "all") and not scene.labelled:
        raise InputError(
            f"{_TABLE} labels = {options.labels!r}: the scene has no labels. Give scene.labels, or "
            "choose samples by pixels or by a raster."
        )
    if options.labels == "train":
        labelled = plan_fits(
            learn,
            samples.given[...],
            samples.pixel[...],
            samples.place[...],
            scene,
            first_only=True,
        ).labelled
        sample = labelled.sample[labelled.train[0]]
        number: NDArray[Any] = labelled.numbers[labelled.classes[labelled.train[0]]]
    elif options.labels == "all":
        given = np.asarray(samples.given[...])
        sample = np.flatnonzero(given)
        number = given[sample]
        note("potential: made of all labels, so that held-out accuracy proves nothing")
    else:
        marks, grid = scene.open_classes(str(options.labels)), scene.grid
        parts = []
        for start, stop in blocks(grid.height, max(1, _STRIP_PIXELS // grid.width)):
            flat = marks.read(start, stop).ravel()
            pixel = np.flatnonzero(flat)
            parts.append((pixel + start * grid.width, flat[pixel]))
        pixels, number = (np.concatenate(part) for part in zip(*parts, strict=True))
        sample = samples.at(pixels)
        sample, number = sample[sample >= 0], number[sample >= 0]
    if options.classes:
        _check_chosen(options, np.unique(number).tolist())
        kept = np.isin(number, options.classes)
        sample, number = sample[kept], number[kept]
    if not len(sample):
        raise InputError(
            f"{_TABLE} labels = {options.labels!r}: no valid pixel of the scene has a number above 0 "
            "there. Mark the samples to choose with their class numbers."
        )
    return sample, number


def _open_values(path: str, grid: Grid) -> Plane:
    check_exists(path)
    key = "graph.potential.raster"
    if array_format(path) is not None:
        return find_plane(path, None, grid, key=key)
    return open_plane(path, grid, key=key)


def _read_values(
    raster: str, samples: SceneSamples
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the samples where a raster is not 0, and its values; nodata counts as 0, but NaN is refused."""
    grid = samples.scene.grid
    plane = _open_values(samples.scene.resolve(raster), grid)
    pixels = np.asarray(samples.pixel[...])
    chosen, values = [np.zeros(0, np.int64)], [np.zeros(0)]
    for start, stop in blocks(grid.height, max(1, _STRIP_PIXELS // grid.width)):
        stored, given = plane.rows(start, stop)
        first, last = np.searchsorted(pixels, [start * grid.width, stop * grid.width])
        place = pixels[first:last] - start * grid.width
        value = np.asarray(stored, np.float64).ravel()[place]
        value[~given.ravel()[place] & ~np.isnan(value)] = 0
        wrong = ~(np.isfinite(value) & (value >= 0))
        if wrong.any():
            row, column = divmod(int(pixels[first + np.argmax(wrong)]), grid.width)
            raise InputError(
                f"{_TABLE} raster = {raster!r}: holds {value[wrong][0]} at row {row}, column {column}; "
                "a potential is finite and not negative. Write 0 where there is none."
            )
        chosen.append(first + np.flatnonzero(value))
        values.append(value[value != 0])
    return np.concatenate(chosen), np.concatenate(values)
