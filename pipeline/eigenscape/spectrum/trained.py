"""A finished run as new samples see it: features, neighbours, weights and eigenvectors."""

import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenscape.base.blocks import blocks
from eigenscape.base.memory import CHUNK_ROWS
from eigenscape.base.vectors import Vectors, unit_vectors
from eigenscape.errors import InputError
from eigenscape.features.method import FeatureMethod
from eigenscape.features.spectral.preparation import find_preparation
from eigenscape.graph.kernels import weights as kernels
from eigenscape.graph.lists import least_scale
from eigenscape.job.options import FeatureOptions, GraphOptions, NeighborOptions
from eigenscape.neighbors.kernels.hashes import hash_rows
from eigenscape.neighbors.kernels.metrics import chord_of, lengths
from eigenscape.neighbors.kernels.tiles import (
    QUERY_ROWS,
    TILE_ROWS,
    check_range,
    find_within,
    push_tiles,
    square_norms,
)
from eigenscape.neighbors.search.duplicates import choose_copies, most_equal
from eigenscape.neighbors.search.exhaustive import MOST_NEIGHBORS
from eigenscape.scenes.types import Bands
from eigenscape.store.arrays import open_memmap
from eigenscape.store.manifest import read_manifest
from eigenscape.store.rows import Rows
from eigenscape.store.run import Run

FlatNeighbors: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]
"""Where the list of each new sample begins; numbers of the neighbours, nearest first; distances."""

TWIN = 1e-6
"""Share of its length by which a projected or scaled vector may differ from its twin's: products
of blocks of other sizes round differently. For projected ones it is that of the sample, if longer."""

_RANGE_ROWS = CHUNK_ROWS // 2


@dataclass(frozen=True)
class Trained:
    """A finished run as new samples see it.

    Attributes
    ----------
    run
        The run directory.
    features, neighbors, graph
        Tables of its job.
    bands
        Of its scene; its samples have the good ones.
    rows
        Its features.
    """

    run: Run
    features: FeatureMethod
    neighbors: NeighborOptions
    graph: GraphOptions
    bands: Bands
    rows: Rows

    @classmethod
    def open(cls, path: Path, *, spatial: bool = False, finished: str = "spectrum") -> "Trained":
        """Open a run directory.

        Parameters
        ----------
        path
            Run directory.
        spatial
            Whether a graph with edges between neighbouring pixels, and features that were filtered among
            them, will do: samples without a place have neither, so that eigenvectors cannot be extended
            to them. These are refused otherwise.
        finished
            The stage that has to be finished: "spectrum", or "neighbors" for `project` and `nearest`.
        """
        stages = read_manifest(path)["stages"] if path.is_dir() else {}
        if not {"ingest", finished} <= stages.keys() or not (path / "job.toml").exists():
            raise InputError(
                f"{path}: no run directory, or a run that has no eigenvectors yet. Give a directory "
                "in which `eigenscape run` has finished the spectrum."
            )
        run = Run(path, create=False)
        job = tomllib.loads((path / "job.toml").read_text(encoding="utf-8"))
        features = FeatureOptions.model_validate(job.get("features", {}))
        assert isinstance(features, FeatureMethod), "every method of the table is one"
        if not features.extends:
            raise InputError(
                f'{path}: features.method = "{features.method}" is not a function of single samples, so '
                "that new ones have no features. Give a run with another features.method."
            )
        neighbors = NeighborOptions.model_validate(job.get("neighbors", {}))
        graph = GraphOptions(**job.get("graph", {}))
        if graph.spatial is not None and not spatial:
            raise InputError(
                f"{path}: its graph has edges between neighbouring pixels ([graph.spatial]), and new "
                "samples have no place in the scene. Extend a run without that table."
            )
        if features.spatial is not None and not spatial:
            raise InputError(
                f"{path}: its features are filtered among neighbouring pixels ([features.spatial]), and "
                "samples by themselves have no place in a scene. Give the scene to `eigenscape apply`, or "
                "take a run without that table."
            )
        return cls(
            run,
            features,
            neighbors,
            graph,
            Bands.from_json(stages["ingest"]["summary"]["bands"]),
            Rows(str(run.array_path("features/values")), unit=neighbors.metric == "angle"),
        )

    def project(self, samples: Vectors) -> Vectors:
        """Return the features of samples, less `origin`, as the features stage would."""
        return self.searched(self.unfiltered(samples))

    def unfiltered(self, samples: Vectors) -> Vectors:
        """Return the features of samples before a filter in space."""
        return csr_array(samples) if self.rows.sparse else self._extension(samples)

    def searched(self, vectors: Vectors) -> Vectors:
        """Return features as they are compared: scaled to length 1 for angles, of values within range."""
        vectors = unit_vectors(vectors, self.rows.origin) if self.rows.unit else vectors
        check_range(vectors)
        return vectors

    @cached_property
    def origin(self) -> NDArray[np.float64] | None:
        """Origin that was subtracted from the run's samples; None for nothing."""
        return self.run.read("samples/origin")

    def search(self, features: Vectors) -> FlatNeighbors:
        """Find the neighbours of new samples among those that have coordinates.

        All but one of many identical samples are passed over, as in the neighbors stage.
        """
        options = self.neighbors
        if options.reach is not None:
            chord = chord_of(options.reach, options.metric)
            starts, index, squared = self._within(features, chord)
        else:
            nearest, distance = _nearest(features, self._blocks(), options.k)
            starts = np.arange(features.shape[0] + 1, dtype=np.int64) * options.k
            index, squared = nearest.ravel(), distance.ravel()
        index = self.candidates[index]
        keep = self.degree[index] > 0
        starts = np.concatenate([[0], np.cumsum(keep)])[starts]
        return starts, index[keep], lengths(squared[keep], options.metric)

    def nearest(self, features: Vectors, k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the k nearest of all samples of the run to new ones, copies of each other included.

        Parameters
        ----------
        features
            As `project` returns them.
        k
            Neighbours of each, of samples of the run itself the first.

        Returns
        -------
        index : array, shape (m, k)
        distance : array, shape (m, k)
            Ascending; in radians where the run's metric is the angle.
        """
        step, rows = self.rows.step, self.rows.shape[0]
        every = ((start, self.rows.read(start, stop)) for start, stop in blocks(rows, step))
        index, squared = _nearest(features, every, k)
        return index, lengths(squared, self.neighbors.metric)

    def closest(self, features: Vectors, near: FlatNeighbors) -> FlatNeighbors:
        """Return lists that begin with the nearest of all samples of the graph, where twins are found.

        Parameters
        ----------
        features
            As `project` returns them.
        near
            Their lists, as `search` returns them: taken as they are, unless they hold landmarks alone.
        """
        if self.landmark is None:
            return near
        index, distance = self.nearest(features, 1)
        keep = self._held[index.ravel()]
        return np.concatenate([[0], np.cumsum(keep)]), index[keep, 0], distance[keep, 0]

    def _within(self, features: Vectors, chord: float) -> FlatNeighbors:
        queries = _no_numbers(features)
        found, left = [], MOST_NEIGHBORS * len(queries)
        for first, block in self._blocks():
            for tile in range(0, block.shape[0], TILE_ROWS):
                right = block[tile : tile + TILE_ROWS]
                for query in range(0, len(queries), QUERY_ROWS):
                    here = slice(query, query + QUERY_ROWS)
                    owner, index, squared = find_within(
                        features[here], queries[here], right, first + tile, chord
                    )
                    found.append((owner + query, index, squared))
                    left -= len(owner)
            if left < 0:
                raise InputError(
                    f"neighbors.radius = {self.neighbors.reach}: {len(queries)} new samples have "
                    f"more than {MOST_NEIGHBORS} neighbours each within it on average. Run the job "
                    "with a smaller neighbors.radius, or with the k nearest."
                )
        owner, index, squared = (np.concatenate(part) for part in zip(*found, strict=True))
        order = np.lexsort((index, squared, owner))
        counts = np.bincount(owner, minlength=len(queries))
        return np.concatenate([[0], np.cumsum(counts)]), index[order], squared[order]

    def twins(self, features: Vectors, near: FlatNeighbors) -> NDArray[np.int64]:
        """Return the old sample that each new one coincides with, -1 where there is none.

        Parameters
        ----------
        features
            As `project` returns them.
        near
            Their lists, as `closest` returns them.
        """
        starts, index, distance = near
        listed = np.flatnonzero(np.diff(starts))
        first = starts[listed]
        exact = self.rows.sparse or not self.projected
        lengths = np.sqrt(square_norms(features)[listed])
        if not exact:
            lengths = np.maximum(lengths, self._projected_length)
        slack = 0.0 if exact and not self.rows.unit else TWIN
        same = distance[first] <= slack * lengths
        twins = np.full(len(starts) - 1, -1, np.int64)
        twins[listed[same]] = index[first[same]]
        return twins

    @cached_property
    def _projected_length(self) -> float:
        """Length of a sample in its bands, about, from some features: products round by shares of that.

        The features of a sample near the mean are short, whatever its length.
        """
        some = self.rows.read(0, min(self.rows.step, self.rows.shape[0]))
        widening = np.sqrt(max(1.0, self.bands.count / self.rows.shape[1]))
        return float(np.sqrt(square_norms(some).mean()) * widening)

    @cached_property
    def landmark(self) -> NDArray[np.int64] | None:
        """Numbers of the landmarks, None for a run whose eigenvectors are those of all samples."""
        path = self.run.array_path("spectrum/landmark")
        return np.array(open_memmap(path)) if path.exists() else None

    def vectors(self) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Yield first sample and eigenvectors of each chunk of samples."""
        stored = self.run.open("spectrum/vector")
        for start, stop in blocks(stored.shape[0], stored.chunks[0]):
            yield start, stored[start:stop]

    @cached_property
    def degree(self) -> NDArray[np.float64]:
        """Degree of each sample in the graph whose eigenvectors they are; 0 for those outside of it."""
        stage = "graph" if self.landmark is None else "spectrum"
        samples = self.inside if self.landmark is None else self.landmark
        degree = np.zeros(self.rows.shape[0])
        degree[samples] = open_memmap(self.run.array_path(f"{stage}/degree"))
        return degree

    @cached_property
    def scale(self) -> tuple[NDArray[np.float32], float]:
        """Scale of each sample, as `eigenscape.graph.lists` defines it, and the least that counts."""
        scale = np.empty(self.rows.shape[0], np.float32)
        for start, part in self._lists():
            kernels.last_distances(*part, scale[start : start + len(part[0]) - 1])
        least = least_scale(scale[self.inside])
        return np.maximum(scale, np.float32(least)), least

    @cached_property
    def bandwidth(self) -> float:
        """The run's t: given, or as `eigenscape.graph.kernels.weights.WeightRule` says of "auto"."""
        if self.graph.bandwidth != "auto":
            return float(self.graph.bandwidth)
        if not kernels.WEIGHTS[self.graph.weights].squared:
            return 1.0
        total, count = 0.0, 0
        for start, (starts, index, distance) in self._lists():
            inside = np.repeat(self._held[start : start + len(starts) - 1], np.diff(starts))
            squares = distance[inside & (index >= 0)].astype(np.float64) ** 2
            total, count = total + float(squares.sum()), count + len(squares)
        return total / max(count, 1) or 1.0

    @property
    def inside(self) -> NDArray[np.int64]:
        """Numbers of the samples that the graph holds, in its order."""
        return open_memmap(self.run.array_path("graph/sample"))

    @cached_property
    def _held(self) -> NDArray[np.bool_]:
        """Which samples the graph holds."""
        held = np.zeros(self.rows.shape[0], np.bool_)
        held[self.inside] = True
        return held

    @cached_property
    def candidates(self) -> NDArray[np.int64]:
        """Numbers of the samples that are searched, ascending: all but copies of others."""
        if self.landmark is not None:
            return np.sort(self.landmark)
        searched = np.ones(self.rows.shape[0], bool)
        searched[self.copies[0]] = False
        return np.flatnonzero(searched)

    @cached_property
    def copies(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Samples that others represent, ascending, and who represents each, as in the neighbors stage."""
        least, most = self.neighbors.least_neighbors, most_equal(self.neighbors.k)
        return choose_copies(self.hashes, least, most)

    @cached_property
    def hashes(self) -> NDArray[np.uint64]:
        """Hash of the features of each sample: the same for identical ones."""
        hashes = np.empty(self.rows.shape[0], np.uint64)
        for start, stop in blocks(len(hashes), self.rows.step):
            hashes[start:stop] = hash_rows(self.rows.read(start, stop))
        return hashes

    @cached_property
    def projected(self) -> bool:
        """Whether its features are something else than its bands, scaled or not."""
        return bool(self.run.manifest["stages"]["features"]["summary"]["projected"])

    @cached_property
    def _extension(self) -> Callable[[Vectors], Vectors]:
        extension = self.features.extension(self.run, self.bands.count)
        prepare = find_preparation(self.features.spectral, self.bands, self.origin)
        return extension if prepare is None else lambda samples: extension(prepare(samples))

    def _blocks(self) -> Iterator[tuple[int, Vectors]]:
        """Yield place of the first candidate and features of each chunk of candidates."""
        for start, stop in blocks(self.rows.shape[0], self.rows.step):
            first, last = np.searchsorted(self.candidates, [start, stop])
            block = self.rows.read(start, stop)
            if last - first < stop - start:
                block = block[self.candidates[first:last] - start]
            yield int(first), block

    def _lists(self) -> Iterator[tuple[int, tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]]:
        """Yield first sample and flat lists of blocks of samples: starts, index, distance."""
        index, distance = self.run.open("neighbors/index"), self.run.open("neighbors/distance")
        pointers = self.run.array_path("neighbors/indptr")
        whole = open_memmap(pointers) if pointers.exists() else None
        step = index.chunks[0] if whole is None else _RANGE_ROWS
        for start, stop in blocks(self.rows.shape[0], step):
            if whole is None:
                starts = np.arange(stop - start + 1, dtype=np.int64) * index.shape[1]
                yield start, (starts, index[start:stop].ravel(), distance[start:stop].ravel())
            else:
                starts = np.array(whole[start : stop + 1])
                piece = slice(int(starts[0]), int(starts[-1]))
                yield start, (starts - starts[0], index[piece], distance[piece])


def _nearest(
    features: Vectors, blocks_of_rows: Iterable[tuple[int, Vectors]], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return numbers and squared distances of the k nearest rows, which come with their first number."""
    queries = _no_numbers(features)
    index = np.full((len(queries), k), -1, np.int64)
    squared = np.full(index.shape, np.inf, np.float32)
    for first, block in blocks_of_rows:
        read, stop = _reader(block, first), first + block.shape[0]
        push_tiles(features, queries, read, (first, stop), index, squared)
    return index, squared


def _no_numbers(features: Vectors) -> NDArray[np.int64]:
    """Return -1 for every new sample, so that no old sample is excluded."""
    return np.full(features.shape[0], -1, np.int64)


def _reader(block: Vectors, first: int) -> Callable[[int, int], Vectors]:
    """Return a function that reads candidates by their places from a block in memory."""
    return lambda start, stop: block[start - first : stop - first]
