"""Clusters of rows by a rotation of their eigenvectors, or by the nearest centre."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import blocks
from eigenscape.base.files.mapped import save_array
from eigenscape.context import Context
from eigenscape.learn.clustering.coordinates import Coordinates, join_blocks
from eigenscape.learn.clustering.embedding import (
    draw_rows,
    enough_rows,
    k_means,
    largest_entry,
    nearest_with_lead,
    qr_rotation,
)
from eigenscape.spectrum.scaled import StoredGraph


def assign_rows(
    context: Context, graph: StoredGraph, coordinates: Coordinates, by: str, seed: int, count: int
) -> NDArray[Any]:
    """Return the cluster of every row.

    Parameters
    ----------
    context
        Of the learn stage.
    graph
        Its blocks, by which the rows are assigned.
    coordinates
        Of the rows: eigenvectors, and the folder of what is computed.
    by
        "cluster-qr" or "k-means".
    seed
        Of what is drawn.
    count
        Number of clusters.
    """
    numbers = list(range(len(graph.paths)))
    find: Any = partial(_find_rotation, coordinates, count, seed)
    if by == "k-means":
        threads = min(context.executor.width, context.executor.tasks_per_process)
        find = partial(_find_centers, coordinates, count, seed, threads)
    context.map("model", find, ["all"], label=by)
    assign = partial(_assign, graph, coordinates, by, count)
    context.map("assign", assign, numbers, label="assigning clusters")
    return join_blocks(coordinates.folder, "cluster", numbers)


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
