"""The ingest stage: any scene to a table of valid samples, and its labels.

::

    read       row strips      values and labels of the valid pixels, each strip to its own file
    centre-0   row strips      read again, less their origin, where bands lie far from 0
    assemble   sample blocks   strips -> chunks of samples/values, samples/pixel, labels/given
    locate-0   rows of tiles   of a scene in sensor geometry: which sample each cell of its map shows

How many pixels of a strip are valid is known only once it is read, hence the two steps; the second
one only copies. A sparse table is one strip, since its file decompresses as a whole only.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block
from eigenscape.base.files.mapped import save_array
from eigenscape.base.process.progress import Reporter
from eigenscape.base.vectors import Vectors
from eigenscape.context import Context, Map
from eigenscape.job.jobfile import Job
from eigenscape.scenes.describe import describe_scene, notes_of
from eigenscape.scenes.formats.rasters.handles import kept_open
from eigenscape.scenes.formats.tables.sparse import SparseScene
from eigenscape.scenes.geometry.companions import locate
from eigenscape.scenes.geometry.located import Located
from eigenscape.scenes.geometry.writing import write_lookup
from eigenscape.scenes.ingest.content import (
    check_counts,
    check_labelled,
    check_train,
    check_two_classes,
    check_values,
    nothing_valid,
    told_fill,
    told_zeros,
    value_range,
)
from eigenscape.scenes.ingest.storage import Strips, strips_of
from eigenscape.scenes.ingest.strips import join, save_values, write_dense, write_sparse
from eigenscape.scenes.labels.renumbered import renumbered
from eigenscape.scenes.labels.sources import numbered_like, numbers_taken, open_labels
from eigenscape.scenes.open import open_scene
from eigenscape.scenes.types import Bands, Labels, Legend, Scene
from eigenscape.scenes.views.centred import centred, stored_type
from eigenscape.scenes.views.centring import find_origin
from eigenscape.scenes.views.masks import told_shares
from eigenscape.scenes.views.resampled import notes_of_bands, to_bands
from eigenscape.scenes.views.subset import subset_of

_FEW = 0.5
"""Share of valid pixels up to which the log says what leaves out the others."""
_MOST_CENTRED = 4
"""Times that a scene is read again; two are enough for double precision, and most need none."""


def ingest_stage(
    context: Context,
    origin: NDArray[np.float64] | None = None,
    bands: Bands | None = None,
    classes: Mapping[int, str] | None = None,
) -> dict[str, Any]:
    """Write ``samples/{values,pixel,row_start}`` and ``labels/given``.

    Of a sparse table ``samples/values`` are the three arrays of `eigenscape.store.rows.Rows`. Bands that
    lie far from 0, compared with their spread, are centred: ``samples/values`` are then what they
    have beyond ``samples/origin`` (band), which is 0 for all other bands.

    Parameters
    ----------
    context
        Of the stage.
    origin : array, shape (bands,), optional
        To be taken whatever the bands are: that of the run which is applied.
    bands
        To which the scene's are brought, where it is applied: see `eigenscape.scenes.views.resampled`.
    classes
        Names of the classes of that run, by number: labels with these names get these numbers.
    """
    scene, located, labels, notes = _open(context.job, bands, classes)
    told = _Told(context.reporter)
    told.say(*notes)
    scratch = context.workspace.folder("strips")
    cut = strips_of(scene, context.task_bytes)
    found, origin = _read(context, scene, labels, cut, scratch, origin)
    labelled = _count_labels(found)
    if not _total(found, "samples"):
        raise nothing_valid(scene, context.job.scene, context.job.resolve)
    check_values(scene, found, origin, told.say, applied=bands is not None)
    check_labelled(found, labels, labelled)
    told.say(*_notes_of_samples(scene, labels, found, labelled))
    strips = [strip for group in cut.groups for strip in group]
    counts = [part["samples"] for part in found]
    workspace = context.workspace
    if origin is not None:
        workspace.write_array("samples/origin", origin, dims=("band",))
    workspace.write_array("samples/row_start", _row_starts(scratch, strips), dims=("row",))
    write_values = write_sparse if isinstance(scene, SparseScene) else write_dense
    write_values(context, scratch, strips, counts, scene.bands.count)
    workspace.write_array(
        "samples/pixel", join(scratch, strips, "pixel").astype(np.int64), dims=("sample",)
    )
    if labels is not None:
        given = join(scratch, strips, "label").astype(np.uint16)
        workspace.write_array("labels/given", given, dims=("sample",))
    if located is not None:
        write_lookup(context, located, scratch, strips, counts)
    return {
        "samples": sum(counts),
        **_about_scene(scene, located),
        "labels_on_invalid": _total(found, "labels_on_invalid"),
        **_about_labels(labels, labelled),
        "files": list(scene.files),
        "label_files": list(labels.files) if labels else [],
        "told": told.texts,
    }


@dataclass(frozen=True)
class _Told:
    """What a user should know of the scene: logged at once, and kept for the summary."""

    reporter: Reporter
    texts: list[str] = field(default_factory=list)

    def say(self, *texts: str) -> None:
        """Log and keep some texts."""
        for text in texts:
            self.texts.append(text)
            self.reporter.note(text)


def _open(
    job: Job, bands: Bands | None, classes: Mapping[int, str] | None
) -> tuple[Scene, Located | None, Labels | None, tuple[str, ...]]:
    """Return the scene, its place if it is in sensor geometry, its labels, and notes about them.

    Parameters
    ----------
    job
        The job.
    bands, classes
        See `ingest_stage`.
    """
    scene = open_scene(job.scene, job.resolve)
    brought: tuple[str, ...] = ()
    compared: tuple[str, ...] = ()
    if bands is not None:
        scene = to_bands(scene, bands)
        brought = notes_of_bands(scene)
    located = locate(scene, job.scene)
    labels = open_labels(job.scene, scene, job.resolve)
    if labels is not None and classes is not None:
        # Names that the job gives are names, whatever the file is.
        labels = (renumbered if job.scene.classes else numbered_like)(labels, classes)
        compared = numbers_taken(labels, classes)
    about_labels = notes_of(labels) if labels else ()
    return scene, located, labels, (*describe_scene(scene), *brought, *about_labels, *compared)


def _notes_of_samples(
    scene: Scene, labels: Labels | None, found: list[dict[str, Any]], labelled: Mapping[int, int]
) -> Iterator[str]:
    """Yield what is left out, and values and labels that seem to mark missing ones."""
    samples, lost = _total(found, "samples"), _total(found, "labels_on_invalid")
    if lost:
        yield (
            f"{lost} labelled {scene.grid.things} are left out: the scene is nodata, masked or not "
            "finite there"
        )
    if samples < scene.grid.size:
        yield _told_missing(scene, samples)
    if zeros := told_zeros(scene, _total(found, "zero"), samples):
        yield zeros
    if labels and (fill := told_fill(labels, labelled)):
        yield fill


def _told_missing(scene: Scene, samples: int) -> str:
    """Return how many pixels or samples are valid; where few are, which flags leave the others out."""
    grid = scene.grid
    if grid.is_table:
        return (
            f"{grid.size - samples} samples are left out: masked, nodata or not finite in a column"
        )
    text = f"{samples:,} of {grid.size:,} pixels are valid ({samples / grid.size:.1%})"
    if samples > _FEW * grid.size:
        return text
    shares = told_shares(scene)
    return f"{text}; {shares or 'the others are nodata, masked, or not finite in a band'}"


def _about_scene(scene: Scene, located: Located | None) -> dict[str, Any]:
    """Return what the summary says of the scene: its grid, its map, what is cut out of it, its bands."""
    about: dict[str, Any] = {"grid": scene.grid.to_json()}
    if located is not None:
        about["map"] = {"grid": located.grid.to_json(), "lines": len(located.lines)}
    if subset := subset_of(scene):
        about["subset"] = asdict(subset)
    return {**about, "bands": asdict(scene.bands)}


def _about_labels(labels: Labels | None, labelled: Mapping[int, int]) -> dict[str, Any]:
    """Return what the summary says of the classes: their labelled pixels, names and colours."""
    legend = labels.legend if labels else Legend()
    # A colour table has entries for more numbers than there are classes.
    colors = {k: v for k, v in legend.colors.items() if k in legend.names or k in labelled}
    return {
        "labelled": {str(number): count for number, count in labelled.items()},
        "class_names": {str(k): v for k, v in legend.names.items()},
        "class_colors": {str(k): list(v) for k, v in colors.items()},
    }


def check_sizes(
    job: Job, samples: int, labelled: Mapping[int, int], names: Mapping[int, str], pixels: int
) -> None:
    """Refuse a job that its scene cannot serve, now that the number of samples is known.

    Parameters
    ----------
    job
        The job.
    samples, pixels
        Valid pixels, and all of them.
    labelled, names
        Labelled pixels of each class and names of classes, by their numbers.

    Raises
    ------
    InputError
        k, a dimension or the number of clusters is too large, or the labels cannot train a classifier.
    """
    check_counts(job, samples, f"{samples} valid pixels (of {pixels})")
    job.learn.check_clusters(len(labelled), job.spectrum.dimension)
    if job.learn.unsupervised:
        return
    check_two_classes(labelled, names)
    # The labels of a test file are not drawn from: what they leave is known when it is read.
    balanced = job.learn.split == "balanced" and job.learn.test is None
    check_train(job.learn.train, labelled, balanced=balanced)


def _read(
    context: Context,
    scene: Scene,
    labels: Labels | None,
    cut: Strips,
    scratch: Path,
    origin: NDArray[np.float64] | None,
) -> tuple[list[dict[str, Any]], NDArray[np.float64] | None]:
    """Read all strips to scratch; return what is known of each, and the origin, which may be given."""
    work = partial(_read_group, labels, scratch, cut.kept_bytes, context.executor.tasks_per_process)
    read = partial(_read_strips, context.map, cut, work)
    if origin is None:
        return _read_near_0(read, scene)
    return read("read", centred(scene, origin)), origin


def _read_near_0(
    read: Callable[[str, Scene], list[dict[str, Any]]], scene: Scene
) -> tuple[list[dict[str, Any]], NDArray[np.float64] | None]:
    """Read all strips, again where bands lie far from 0; return what is known of each, and the origin."""
    found, origin, dtype = read("read", scene), None, stored_type(scene)
    for attempt in range(_MOST_CENTRED):
        if not any(part["samples"] for part in found):
            break
        # Least and largest values in single precision say to 24 bits where the middle is, the next
        # time to 24 more.
        moved = find_origin(*value_range(found), dtype, exact=attempt > 0)
        if moved is None:
            break
        origin = moved if origin is None else origin + moved
        first, found = found, read(f"centre-{attempt}", centred(scene, origin))
        # Only values as they are stored are 0 where nothing was measured.
        found = [{**part, "zero": old["zero"]} for part, old in zip(found, first, strict=True)]
    return found, origin


def _read_strips(
    map_blocks: Map, cut: Strips, read_group: Callable[..., Any], name: str, scene: Scene
) -> list[dict[str, Any]]:
    """Read all strips in the step `name`; return what is to be known of each."""
    work = partial(read_group, scene)
    found = map_blocks(name, work, list(cut.groups), label="reading the scene")
    return [part for group in found for part in group]


def _read_group(
    labels: Labels | None,
    scratch: Path,
    kept: int,
    tasks: int,
    scene: Scene,
    group: Sequence[Block],
) -> list[dict[str, Any]]:
    """Read strips that share blocks, with the files open."""
    with kept_open(kept, tasks):
        return [_read_strip(scene, labels, scratch, strip) for strip in group]


def _read_strip(scene: Scene, labels: Labels | None, scratch: Path, block: Block) -> dict[str, Any]:
    start, stop = block
    values, valid = scene.read(start, stop)
    inside = np.flatnonzero(valid)
    kept = values.reshape(-1, scene.bands.count) if isinstance(values, np.ndarray) else values
    if len(inside) < kept.shape[0]:
        kept = kept[inside]
    save_array(scratch / f"{start}-pixel.npy", inside + start * scene.grid.width)
    save_array(scratch / f"{start}-rows.npy", valid.sum(axis=1))
    numbers, counts = np.zeros(0, np.uint16), np.zeros(0, np.int64)
    outside = 0
    if labels is not None:
        given = labels.read(start, stop).ravel()
        outside = int(np.count_nonzero(given))
        given = given[inside]
        outside -= int(np.count_nonzero(given))
        save_array(scratch / f"{start}-label.npy", given)
        numbers, counts = np.unique(given[given > 0], return_counts=True)
    save_values(scratch, start, kept)
    low, high = _extremes(kept) if len(inside) else (None, None)
    return {
        "samples": len(inside),
        "zero": _count_zero(kept),
        "low": low,
        "high": high,
        "labels": {int(n): int(c) for n, c in zip(numbers, counts, strict=True)},
        "labels_on_invalid": outside,
    }


def _count_zero(samples: Vectors) -> int:
    """Return the number of samples that are 0 in all bands; 0 for sparse ones, where that means nothing."""
    return int(np.count_nonzero(~samples.any(axis=1))) if isinstance(samples, np.ndarray) else 0


def _extremes(samples: Vectors) -> tuple[list[float], list[float]]:
    """Return the least and the largest value of each band."""
    if isinstance(samples, np.ndarray):
        return samples.min(axis=0).tolist(), samples.max(axis=0).tolist()
    low, high = (column.toarray().ravel() for column in (samples.min(axis=0), samples.max(axis=0)))
    return low.tolist(), high.tolist()


def _total(found: list[dict[str, Any]], key: str) -> int:
    """Return the sum of a number over all strips."""
    return sum(part[key] for part in found)


def _count_labels(found: list[dict[str, Any]]) -> dict[int, int]:
    total: dict[int, int] = {}
    for part in found:
        for number, count in part["labels"].items():
            total[int(number)] = total.get(int(number), 0) + count
    return dict(sorted(total.items()))


def _row_starts(scratch: Path, strips: list[Block]) -> NDArray[np.int64]:
    """Return the first sample of every row: which samples a window of rows holds."""
    per_row: NDArray[np.int64] = join(scratch, strips, "rows")
    return np.concatenate([[0], np.cumsum(per_row)]).astype(np.int64)
