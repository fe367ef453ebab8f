"""The learn stage without labels: spectral clustering and recursive normalised cuts.

::

    coordinates  one task       eigenvectors of every row of the graph, mapped
    model        one task       a rotation (column QR), or centres (k-means)
    split        parts          the cheapest cut of each part          (eigenscape.learn.clustering.cutting)
    assign       row blocks     cluster and lead of every row
    weigh        row blocks     cut and volume of every cluster
    sweep        one task       the best two-way split, and Cheeger's bounds
    write        sample blocks  numbers in the order of size; counts of classes in clusters

Rows are those of the graph: samples outside of its largest component may not be among them, and get
no cluster. Nothing depends on the size of the blocks or on the number of workers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block, blocks
from eigenscape.base.mapped import attach_memmap, create_memmap, note_rows, save_array
from eigenscape.context import Context
from eigenscape.job.options import LearnOptions
from eigenscape.learn.classmap import ClassMap, class_numbers
from eigenscape.learn.clustering.cutting import cut_parts
from eigenscape.learn.clustering.embedding import (
    draw_rows,
    enough_rows,
    k_means,
    largest_entry,
    nearest_with_lead,
    qr_rotation,
    row_normalized,
)
from eigenscape.learn.clustering.numbers import by_size, choose_count
from eigenscape.learn.clustering.report import Clustering, report
from eigenscape.learn.kernels.agreement import contingency
from eigenscape.learn.kernels.costs import ClusterCuts, block_cuts
from eigenscape.learn.kernels.cuts import sweep_cuts
from eigenscape.spectrum.scaled import StoredGraph, sample_rows, stored_graph
from eigenscape.store.arrays import open_array, open_memmap

_RITZ_VECTORS = 16
"""Eigenvectors of which a part's vector is combined, at least; twice the number of parts if more."""


@dataclass(frozen=True)
class Coordinates:
    """Eigenvectors in the order of the graph's rows, mapped from scratch.

    Attributes
    ----------
    folder
        Where everything of this stage lies.
    shape
        Rows and columns.
    """

    folder: Path
    shape: tuple[int, int]

    def open(self, mode: str = "r") -> NDArray[np.float32]:
        """Map them."""
        return attach_memmap(self.folder / "coordinates", self.shape, np.float32, mode)


def cluster_stage(context: Context) -> dict[str, Any]:
    """Write ``labels/class``, numbers from 1 by size, and ``labels/confidence``; return a report."""
    spectrum, ingest = context.run.record("spectrum"), context.run.record("ingest")
    assert spectrum is not None, "learn follows the spectrum"
    assert ingest is not None, "learn follows ingest"
    options = context.job.learn
    values = np.array(spectrum.summary["values"])
    nulls = spectrum.summary["null_vectors"]
    classes = sorted(int(number) for number in ingest.summary["labelled"])
    wanted, reason = choose_count(options, values, nulls, len(classes))
    graph = stored_graph(context.run)
    folder = context.workspace.folder("learn")
    by_cuts = options.method == "normalized-cut"
    columns = min(len(values), max(2 * wanted, _RITZ_VECTORS) if by_cuts else max(wanted, 2))
    coordinates = _store_coordinates(context, folder, graph, columns)
    numbers = list(range(len(graph.paths)))
    if by_cuts:
        limit = np.inf if options.ncut is None else options.ncut
        cluster = cut_parts(context.map, graph, coordinates.open, folder, wanted, limit)
    else:
        threads = min(context.executor.width, context.executor.tasks_per_process)
        fit = _fit(options, coordinates, wanted, threads)
        context.map("model", fit, ["all"], label=options.assign)
        assign = partial(_assign, graph, coordinates, options.assign, wanted)
        context.map("assign", assign, numbers, label="assigning clusters")
        cluster = _join(folder, "cluster", numbers)
    cluster = by_size(cluster)
    count = int(cluster.max()) + 1
    save_array(folder / "ranked.npy", cluster)
    weigh = partial(_weigh, graph, folder, count, by_cuts)
    weighed = np.array(context.map("weigh", weigh, numbers, label="weighing cuts")).sum(axis=0)
    save_array(folder / "leads.npy", _join(folder, "lead", numbers))
    sweep = partial(_sweep, graph, coordinates, nulls)
    splits = context.map("sweep", sweep, ["all"], label="sweeping") if nulls else [None]
    table = np.array(_write(context, folder, count, classes), np.int64).sum(axis=0)
    if count < wanted and options.ncut is None:
        context.reporter.note(f"{options.method}: {count} clusters found of {wanted} asked for")
    names = ingest.summary["class_names"]
    found = Clustering(
        np.bincount(cluster, minlength=count), ClusterCuts(*weighed), values,
        splits[0], table, classes, [names.get(str(number)) or f"class {number}" for number in classes],
        exact=nulls > 0 and context.job.graph.laplacian != "unnormalized",
    )  # fmt: skip
    return {
        "classes": list(range(1, count + 1)),
        "names": {str(number): f"cluster {number}" for number in range(1, count + 1)},
        "scores": report(options, found, wanted, reason),
    }


def _store_coordinates(
    context: Context, folder: Path, graph: StoredGraph, columns: int
) -> Coordinates:
    """Put eigenvectors into the order of the rows, in the form that the method takes."""
    coordinates = Coordinates(folder, (graph.rows, columns))
    order, samples = context.memmap("graph/sample"), context.open("samples/pixel").shape[0]
    save_array(folder / "row.npy", sample_rows(order, samples))
    options = context.job.learn
    form = "plain"
    if options.method == "normalized-cut":
        form = "per degree" if context.job.graph.laplacian == "normalized" else "plain"
    elif options.assign == "k-means":
        form = "unit"
    degree = context.path("graph/degree")
    work = partial(_scatter, coordinates, context.path("spectrum/vector"), degree, form)
    # One task, since pages of a mapped file have one writer.
    context.map("coordinates", work, ["all"], label="coordinates")
    return coordinates


def _scatter(coordinates: Coordinates, vectors: str, degree: str, form: str, _: str) -> None:
    create_memmap(coordinates.folder / "coordinates", coordinates.shape, np.float32)
    target, source = coordinates.open("r+"), open_array(vectors)
    rows = np.load(coordinates.folder / "row.npy", mmap_mode="r")
    for start, stop in blocks(source.shape[0], source.chunks[0]):
        row = rows[start:stop]
        found = source[start:stop][row >= 0, : coordinates.shape[1]]
        row = row[row >= 0]
        if form == "unit":
            found = row_normalized(found)
        elif form == "per degree":
            found = found / np.sqrt(open_memmap(degree)[row])[:, None]
        target[row] = found
    note_rows(target)


def _fit(
    options: LearnOptions, coordinates: Coordinates, count: int, threads: int
) -> Callable[[str], None]:
    """Return the task that finds the centres, or the rotation, by which rows are assigned."""
    if options.assign == "k-means":
        return partial(_find_centers, coordinates, count, options.seed, threads)
    return partial(_find_rotation, coordinates, count, options.seed)


def _find_centers(coordinates: Coordinates, count: int, seed: int, threads: int, _: str) -> None:
    means = k_means(coordinates.open()[:, :count], count, seed=seed % 2**31, threads=threads)
    save_array(coordinates.folder / "model.npy", means.centers)


def _find_rotation(coordinates: Coordinates, count: int, seed: int, _: str) -> None:
    X = coordinates.open()[:, :count]
    leverage = np.concatenate(
        [np.square(X[slice(*tile)], dtype=np.float64).sum(axis=1) for tile in blocks(len(X), 2**16)]
    )
    size = enough_rows(count)
    # Rows in the order of the samples: `cluster_qr` of an estimator draws the same ones.
    row = np.load(coordinates.folder / "row.npy")
    chosen = row[row >= 0]
    if len(X) > size:
        chosen = chosen[draw_rows(leverage[chosen], size, np.random.default_rng(seed))]
    save_array(coordinates.folder / "model.npy", qr_rotation(X[chosen]))


def _assign(graph: StoredGraph, coordinates: Coordinates, by: str, count: int, number: int) -> None:
    X = np.array(coordinates.open()[slice(*graph.rows_of(number)), :count])
    model = np.load(coordinates.folder / "model.npy")
    cluster, lead = nearest_with_lead(X, model) if by == "k-means" else largest_entry(X, model)
    save_array(coordinates.folder / f"cluster-{number}.npy", cluster.astype(np.uint16))
    save_array(coordinates.folder / f"lead-{number}.npy", lead)


def _weigh(graph: StoredGraph, folder: Path, count: int, keep_lead: bool, number: int) -> Any:
    cluster = np.load(folder / "ranked.npy", mmap_mode="r")
    cuts, lead = block_cuts(graph.block(number), cluster, count)
    if keep_lead:
        save_array(folder / f"lead-{number}.npy", lead)
    return [cuts.cut.tolist(), cuts.volume.tolist()]


def _sweep(graph: StoredGraph, coordinates: Coordinates, nulls: int, _: str) -> Any:
    """Return the best splits by the first eigenvector that is not constant."""
    # Whatever the form of the coordinates, the constant vector is their first column.
    first, second = (np.array(coordinates.open()[:, column], np.float64) for column in (0, 1))
    vector = second / first if nulls == 1 else (first != 0).astype(np.float64)
    sweep = sweep_cuts(graph.open(), np.array(graph.degree()), vector)
    splits = {"cheeger": sweep.cheeger, "ncut": sweep.ncut, "sign": sweep.sign}
    return {
        name: {
            "samples": int(split.inside.sum()),
            **{key: getattr(split, key) for key in ("cut", "volume", "volume_outside")},
            "ncut": split.ncut,
            "cheeger": split.cheeger,
        }
        for name, split in splits.items()
        if split is not None
    }


def _write(context: Context, folder: Path, count: int, classes: list[int]) -> list[Any]:
    samples = context.open("samples/pixel").shape[0]
    class_map = ClassMap.create(context.workspace, samples, entropy=False)
    given = context.path("labels/given") if classes else None
    work = partial(_write_block, folder, count, classes, class_map, given)
    ranges = class_map.blocks(context.task_bytes, 32)
    return context.map("write", work, ranges, label="writing clusters")


def _write_block(
    folder: Path,
    count: int,
    classes: Sequence[int],
    class_map: ClassMap,
    given: str | None,
    block: Block,
) -> Any:
    row = np.load(folder / "row.npy", mmap_mode="r")[slice(*block)]
    inside = row >= 0
    cluster = np.full(len(row), -1, np.int64)
    cluster[inside] = np.load(folder / "ranked.npy", mmap_mode="r")[row[inside]]
    lead = np.zeros(len(row), np.float32)
    lead[inside] = np.load(folder / "leads.npy", mmap_mode="r")[row[inside]]
    class_map.write(block[0], class_numbers(cluster, range(1, count + 1)), lead)
    if given is None:
        return np.zeros((0, count), int).tolist()
    label = open_array(given)[slice(*block)]
    known = np.where(label > 0, np.searchsorted(classes, label), -1)
    return contingency(known, cluster, (len(classes), count)).tolist()


def _join(folder: Path, name: str, numbers: list[int]) -> NDArray[Any]:
    return np.concatenate([np.load(folder / f"{name}-{number}.npy") for number in numbers])
