"""New samples into the eigenvectors of a finished run, by the Nystrom formula on its graph.

::

    project    the run's own shift and basis
    search     nearest among the run's samples, or all within its radius, tile by tile
    weigh      the run's own rule: W(x, j), and d(x) their sum
    extend     the eigenvector equation of the Laplacian, read at x      (eigenvectors by chunks)

Each entry of an eigenvector follows from those of its neighbours; at a new sample x that is a
formula (Bengio et al. 2004, *Out-of-sample extensions for LLE, Isomap, MDS, Eigenmaps, and spectral
clustering*; Halevy 2011, section 4.4, compares with it)::

    normalized     v(x) = sum_j W(x, j) v_j / sqrt(d(x) d_j)  /  (1 - lambda)
    random-walk    f(x) = sum_j W(x, j) f_j / d(x)            /  (1 - lambda)
    unnormalized   f(x) = sum_j W(x, j) f_j                   /  (d(x) - lambda)
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, issparse

from eigenscape.base.blocks import blocks
from eigenscape.base.memory import ROW_TILE, format_bytes, parse_bytes, rows_within
from eigenscape.base.vectors import Vectors
from eigenscape.errors import InputError, MemoryLimitError, did_you_mean
from eigenscape.graph.kernels import weights as kernels
from eigenscape.job.options import Laplacian, Weights
from eigenscape.neighbors.search.exhaustive import MOST_NEIGHBORS
from eigenscape.scenes.types import Bands
from eigenscape.scenes.views.centring import centre
from eigenscape.scenes.writing import as_pandas, has_named_columns
from eigenscape.spectrum.kernels.forms import FORMS
from eigenscape.spectrum.trained import FlatNeighbors, Trained
from eigenscape.store.manifest import HasPath, path_of
from eigenscape.store.verification import require_whole

LEAST_SHARE = 0.05
"""Smallest allowed 1 - lambda (for the unnormalised Laplacian, 1 - lambda / d). The formula divides by it, so
smaller values amplify errors; such modes change from sample to sample and do not follow from the
neighbours."""

_WORK_BYTES = 64 * 2**20
_SAMPLE_BYTES = 64
_ENTRY_BYTES = 64


def extend(run: str | Path | HasPath, samples: Any, *, memory: str = "1GiB") -> NDArray[np.float32]:
    """Return the coordinates of new samples in the eigenvectors of a run.

    Parameters
    ----------
    run
        Run directory whose spectrum is finished, or the result of a run.
    samples : array, sparse array or data frame, shape (m, bands)
        Samples in the units of the scene, with its scale applied: as ``samples/values``, plus
        ``samples/origin`` if the run has one. The bands are the good bands of the run, or all bands of its
        scene; the bad ones are then dropped. If both the columns and the bands of the run have names, the
        good bands are taken by name, in whatever order and among whatever others they are. Any object with
        a shape that can be sliced by rows, such as a memory map, is read in blocks.
    memory
        Limit of the anonymous memory, in addition to `samples` and the result.

    Returns
    -------
    array, shape (m, modes), float32
        Columns as in ``spectrum/vector``. NaN for samples that are not finite, that have no neighbour
        within the run's radius, or whose neighbours all lie outside of the component that was
        solved; with the unnormalised Laplacian also where d(x) - lambda < 0.05 d(x).

    Raises
    ------
    InputError
        There is no finished spectrum; the number of bands is wrong, or a band is missing by its name; or an
        eigenvalue is above 0.95, where the formula divides by almost 0, and a sample is not one of the run
        (not with the unnormalised Laplacian).
    MemoryLimitError
        `memory` is too small for the run.
    StoreError
        A file of the run is damaged.

    Notes
    -----
    A sample that coincides with a sample of the run (its twin) takes over the coordinates of the twin. The
    formula alone would give slightly different ones: the graph of the run is symmetrised, so the twin also
    has edges to samples that list it as a neighbour, while the new sample has an edge to the twin, with the
    largest weight. On Indian Pines, the coordinates by the formula differ by 7 % (median; 55 modes,
    normalised), nearly all of it in their length; the median cosine is 0.9998, so angles to class means
    hardly change.

    A potential of the run is 0 at new samples: the formula holds there as it stands.

    New samples do not influence each other. Each is compared with all samples of the run, so the time is
    proportional to the product of the two numbers of samples.

    Examples
    --------
    >>> import eigenscape
    >>> scene = {"path": "scene.tif", "labels": "scene_labels.tif"}
    >>> job = eigenscape.parse_job({"preset": "halevy-2011", "scene": scene})
    >>> path = eigenscape.run(job).path
    >>> samples = eigenscape.open_run(path)["values"][:5].to_numpy()
    >>> eigenscape.extend(path, samples).shape[0]
    5
    """
    path = path_of(run)
    trained = Trained.open(path)
    require_whole(path, exclude="export")
    samples = as_pandas(samples, "samples")
    if issparse(samples):
        samples = csr_array(samples)
    elif not hasattr(samples, "shape"):
        samples = np.asarray(samples)
    bands = band_numbers(trained.bands, samples)
    values = np.asarray(trained.run.open("spectrum/value")[...])
    coordinates = np.full((samples.shape[0], len(values)), np.nan, np.float32)
    step = _block_rows(trained, memory, len(values))
    for start, stop in blocks(samples.shape[0], step):
        given = read_rows(samples, start, stop, bands, trained.origin)
        finite = finite_rows(given)
        if len(finite):
            features = trained.project(given[finite])
            near = trained.search(features)
            twins = trained.twins(features, trained.closest(features, near))
            if (twins < 0).any():
                _check_values(trained, values)
            weights = weigh(near, trained.graph.weights, trained.scale, trained.bandwidth)
            table = csr_array((weights, near[1], near[0]), (len(finite), trained.rows.shape[0]))
            coordinates[start + finite] = nystrom(
                table, twins, trained.degree, values, trained.vectors(), trained.graph.laplacian
            )
    return coordinates


def weigh(
    near: FlatNeighbors,
    name: Weights,
    scale: tuple[NDArray[np.float32], float],
    bandwidth: float,
) -> NDArray[np.float32]:
    """Return the weight of each entry of the lists of new samples.

    Parameters
    ----------
    near
        The lists.
    name
        Of the rule: see `eigenscape.job.options.GraphOptions`.
    scale : array, shape (n,), and float
        Scale of each sample of the run, and the least that a new one has.
    bandwidth
        t in the weights.
    """
    starts, index, distance = near
    rule, both = kernels.WEIGHTS[name], None
    if rule.scaled:
        own = np.empty(len(starts) - 1, np.float32)
        kernels.last_distances(starts, index, distance, own)
        both = np.concatenate([scale[0], np.maximum(own, np.float32(scale[1]))])
    return rule.weigh(len(scale[0]), starts, index, distance, both, bandwidth)


def nystrom(
    weights: csr_array,
    twins: NDArray[np.int64],
    degree: NDArray[np.float64],
    values: NDArray[np.float64],
    vectors: Iterable[tuple[int, NDArray[np.float32]]],
    laplacian: Laplacian,
) -> NDArray[np.float64]:
    """Extend eigenvectors to new samples: the formula at the head of this module.

    Parameters
    ----------
    weights : csr_array, shape (m, n)
        Weights of the edges from each new sample to the old ones.
    twins : array, shape (m,)
        The old sample whose coordinates a new one takes over, -1 for the formula.
    degree : array, shape (n,)
        Degrees of the old samples in their own graph.
    values : array, shape (modes,)
        Eigenvalues.
    vectors
        First sample and eigenvectors of each chunk of old samples, each of shape (rows, modes).
    laplacian
        The Laplacian to which the eigenvectors belong.

    Returns
    -------
    array, shape (m, modes)
        NaN for samples without weights.
    """
    form = FORMS[laplacian]
    total = kernels.row_sums(weights.indptr, weights.data)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = 1 - (values if form.normalized else values / total[:, None])
        factor = 1 / np.where(share >= LEAST_SHARE, share, np.nan)
        scale = 1 / (total if form.constant else np.sqrt(total))
    factor = np.where(total[:, None] > 0, factor, np.nan)
    rows = np.repeat(np.arange(len(total)), np.diff(weights.indptr))
    entries = weights.data * scale[rows]
    if not form.constant:
        entries /= np.sqrt(degree[weights.indices])
    # A twin is the only neighbour, of weight 1, and nothing is divided.
    has = np.flatnonzero(twins >= 0)
    entries[twins[rows] >= 0] = 0
    factor[has] = 1
    entries = np.concatenate([entries, np.ones(len(has))])
    places = (np.concatenate([rows, has]), np.concatenate([weights.indices, twins[has]]))
    # By columns, so that each chunk of the eigenvectors is read once and only if it is named.
    table = csc_array((entries, places), weights.shape)
    table.eliminate_zeros()
    coordinates = np.zeros(factor.shape)
    for first, chunk in vectors:
        part = table[:, first : first + len(chunk)]
        if part.nnz:
            coordinates += part @ chunk.astype(np.float64)
    return np.asarray(coordinates * factor)


def band_numbers(bands: Bands, samples: Any) -> NDArray[np.intp] | None:
    """Return the columns of samples that are the good bands of a run, None for all as they are.

    Raises
    ------
    InputError
        There are too many or too few, or one of their names is missing.
    """
    given = _column_names(samples)
    wanted = [] if bands.names is None else [bands.names[place] for place in bands.good_index]
    # Bands of a raster may have no names, or the same one.
    if given and wanted and all(wanted) and len({*wanted}) == len(wanted):
        return _places(given, wanted)
    shape, good = tuple(samples.shape), bands.good
    if len(shape) == 2 and shape[1] == bands.count:
        return None
    if len(shape) == 2 and shape[1] == len(good):
        return bands.good_index
    told = f"{bands.count} bands (the good bands of the run's scene)"
    if not all(good):
        told += f" or {len(good)} (all of its bands)"
    fix = "Reshape an image to (pixels, bands)" if len(shape) > 2 else "Bring them to these bands"
    raise InputError(f"samples of shape {shape}: the run takes (samples, bands) of {told}. {fix}.")


def _column_names(samples: Any) -> list[str]:
    """Return the names of the columns of a data frame or an `xarray.DataArray`; none for other samples."""
    if has_named_columns(samples):
        return [*samples.columns]
    *_, axis = getattr(samples, "dims", None) or (None,)
    if axis is not None and axis in samples.coords:
        names = samples.coords[axis].values.tolist()
        return names if all(isinstance(name, str) for name in names) else []
    return []


def _places(given: Sequence[str], wanted: Sequence[str]) -> NDArray[np.intp]:
    """Return where the wanted ones of given names stand."""
    for name in wanted:
        if (found := given.count(name)) != 1:
            hint = "" if found else did_you_mean(name, given)
            raise InputError(
                f"samples: {found or 'none'} of the {len(given)} columns {'are' if found else 'is'} called "
                f"{name!r}, and the run takes its bands by name.{hint} Rename the columns, or give their "
                "values (.to_numpy()) in the order of the run's bands."
            )
    return np.array([given.index(name) for name in wanted], np.intp)


def read_rows(
    samples: Any,
    start: int,
    stop: int,
    bands: NDArray[np.intp] | None = None,
    origin: NDArray[np.float64] | None = None,
) -> Vectors:
    """Return some bands of some samples, dense or sparse, in single precision.

    `origin` is subtracted from dense ones first; what is then too large becomes infinite. Masked values
    are NaN.
    """
    if hasattr(samples, "iloc"):
        # A data frame: plain brackets mean labels of rows there, and names of columns.
        rows = samples.iloc[start:stop] if bands is None else samples.iloc[start:stop, bands]
        return centre(rows.to_numpy(np.float64, na_value=np.nan), origin)
    rows = samples[start:stop]
    rows = rows.data if hasattr(rows, "dims") else rows
    rows = rows.compute() if hasattr(rows, "dask") else rows
    if np.ma.is_masked(rows):
        rows = np.ma.filled(rows.astype(np.result_type(rows.dtype, np.float32)), np.nan)
    rows = rows if bands is None else rows[:, bands]
    return csr_array(rows, dtype=np.float32) if issparse(rows) else centre(rows, origin)


def finite_rows(samples: Vectors) -> NDArray[np.intp]:
    """Return the numbers of the rows that are finite throughout."""
    if isinstance(samples, np.ndarray):
        return np.flatnonzero(np.isfinite(samples).all(axis=1))
    rows = np.repeat(np.arange(samples.shape[0]), np.diff(samples.indptr))
    wrong = np.bincount(rows, ~np.isfinite(samples.data), samples.shape[0])
    return np.flatnonzero(wrong == 0)


def count_extended(values: NDArray[np.float64], laplacian: Laplacian) -> int:
    """Return how many of the lowest eigenvectors extend to new samples, by their eigenvalues."""
    return int((values <= 1 - LEAST_SHARE).sum()) if FORMS[laplacian].normalized else len(values)


def _check_values(trained: Trained, values: NDArray[np.float64]) -> None:
    """Refuse eigenvalues by which the formula would divide by almost nothing."""
    few = count_extended(values, trained.graph.laplacian)
    if few == len(values):
        return
    nulls = trained.run.manifest["stages"]["spectrum"]["summary"]["null_vectors"]
    refused = (
        f"largest eigenvalue is {values.max():.4g}; new samples have coordinates for eigenvalues up to "
        f"{1 - LEAST_SHARE}. Set spectrum.dimension to {max(1, few - nulls)} or less and"
    )
    raise InputError(
        f"{trained.run.path}: its {refused} run the job again: only its spectrum is computed anew.",
        f"the {refused} fit again.",
    )


def _block_rows(trained: Trained, memory: str, modes: int) -> int:
    """Return how many new samples to take at a time."""
    limit = parse_bytes(memory)
    samples, columns = trained.rows.shape
    longest = trained.neighbors.k if trained.neighbors.reach is None else MOST_NEIGHBORS
    row = 12 * len(trained.bands.good) + 16 * columns + 24 * modes + _ENTRY_BYTES * longest
    chunks = 12 * modes * trained.run.open("spectrum/vector").chunks[0]
    chunks += 8 * columns * trained.rows.step
    fixed = _WORK_BYTES + _SAMPLE_BYTES * samples + chunks
    if (needed := fixed + ROW_TILE * row) > limit:
        refused = (
            f"to extend {modes} eigenvectors of {samples} samples takes {format_bytes(needed)}."
        )
        raise MemoryLimitError(
            f"memory = {memory}: {refused} Give as much.",
            # The share of the libraries is taken off the parameter.
            f"memory leaves {format_bytes(limit)}: {refused} Give memory the difference more.",
        )
    return rows_within(limit - fixed, row)
