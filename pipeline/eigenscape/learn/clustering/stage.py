"""The learn stage without labels: spectral clustering and recursive normalised cuts.

::

    coordinates  one task       eigenvectors of every row of the graph, mapped
    model        one task       a rotation or centres        (eigenscape.learn.clustering.assigning), or
    split        parts          the cheapest cut of each part          (eigenscape.learn.clustering.cutting)
    assign       row blocks     cluster and lead of every row
    weigh        row blocks     cut and volume of every cluster
    sweep        one task       the best two-way split, and Cheeger's bounds
    write        sample blocks  numbers in the order of size; counts of classes in clusters

Rows are those of the graph: samples outside of its largest component may not be among them, and get
no cluster. Nothing depends on the size of the blocks or on the number of workers.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from eigenscape.base.blocks import Block, blocks
from eigenscape.base.files.mapped import create_memmap, note_rows, save_array
from eigenscape.context import Context
from eigenscape.learn.classmap import ClassMap, class_numbers
from eigenscape.learn.clustering.coordinates import Coordinates, join_blocks
from eigenscape.learn.clustering.embedding import row_normalized
from eigenscape.learn.clustering.kernels.agreement import contingency
from eigenscape.learn.clustering.kernels.costs import ClusterCuts, block_cuts
from eigenscape.learn.clustering.kernels.cuts import sweep_cuts
from eigenscape.learn.clustering.numbers import by_size, check_shares, choose_count
from eigenscape.learn.clustering.report import Measured, report
from eigenscape.learn.method import Clustering
from eigenscape.spectrum.kernels.forms import FORMS
from eigenscape.spectrum.scaled import StoredGraph, sample_rows, stored_graph
from eigenscape.store.arrays import open_array, open_memmap


def cluster_stage(context: Context, method: Clustering) -> dict[str, Any]:
    """Write ``labels/class``, numbers from 1 by size, and ``labels/confidence``; return a report."""
    spectrum, ingest = context.run.record("spectrum"), context.run.record("ingest")
    assert spectrum is not None, "learn follows the spectrum"
    assert ingest is not None, "learn follows ingest"
    values = np.array(spectrum.summary["values"])
    nulls = spectrum.summary["null_vectors"]
    classes = sorted(int(number) for number in ingest.summary["labelled"])
    wanted, reason = choose_count(method, values, nulls, len(classes))
    graph = stored_graph(context.run)
    folder = context.workspace.folder("learn")
    columns = min(len(values), method.columns(wanted))
    form = method.form(context.job.graph.laplacian)
    coordinates = _store_coordinates(context, folder, graph, columns, form)
    numbers = list(range(len(graph.paths)))
    cluster = method.divide(context, graph, coordinates, folder, wanted)
    cluster = by_size(cluster)
    count = int(cluster.max()) + 1
    check_shares(method, len(classes), np.bincount(cluster, minlength=count))
    save_array(folder / "ranked.npy", cluster)
    weigh = partial(_weigh, graph, folder, count, method.leads_by_cuts)
    weighed = np.array(context.map("weigh", weigh, numbers, label="weighing cuts")).sum(axis=0)
    save_array(folder / "leads.npy", join_blocks(folder, "lead", numbers))
    sweep = partial(_sweep, graph, coordinates, nulls)
    splits = context.map("sweep", sweep, ["all"], label="sweeping") if nulls else [None]
    table = np.array(_write(context, folder, count, classes), np.int64).sum(axis=0)
    if count < wanted and not method.open_ended:
        context.reporter.note(f"{method.method}: {count} clusters found of {wanted} asked for")
    if count == wanted and method.open_ended:
        reason = "as many as there are eigenvectors"
        context.reporter.note(
            f"{method.method}: {count} clusters, {reason}: learn.ncut may allow more splits. Raise "
            "spectrum.dimension, lower learn.ncut, or set learn.clusters"
        )
    names = ingest.summary["class_names"]
    measured = Measured(
        np.bincount(cluster, minlength=count), ClusterCuts(*weighed), values,
        splits[0], table, classes, [names.get(str(number)) or f"class {number}" for number in classes],
        exact=nulls > 0 and FORMS[context.job.graph.laplacian].normalized,
    )  # fmt: skip
    return {
        "classes": list(range(1, count + 1)),
        "names": {str(number): f"cluster {number}" for number in range(1, count + 1)},
        "scores": report(method, measured, wanted, reason),
    }


def _store_coordinates(
    context: Context, folder: Path, graph: StoredGraph, columns: int, form: str
) -> Coordinates:
    """Put eigenvectors into the order of the rows, in the form that the method takes."""
    coordinates = Coordinates(folder, (graph.rows, columns))
    order, samples = context.memmap("graph/sample"), context.open("samples/pixel").shape[0]
    save_array(folder / "row.npy", sample_rows(order, samples))
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
        part = source[start:stop][row >= 0, : coordinates.shape[1]]
        row = row[row >= 0]
        if form == "unit":
            part = row_normalized(part)
        elif form == "per degree":
            part = part / np.sqrt(open_memmap(degree)[row])[:, None]
        target[row] = part
    note_rows(target)


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
