"""Comparison of a new scene with the one that a run learned from.

Judged pixel by pixel, a different scene seems similar: each pixel has some neighbour among thousands, and
yet it may be of another class. As a whole it is judged by distances to the nearest of some samples of the
run, compared with those that are usual between squares of the run's own scene: of a square, to the samples
outside of it. The comparison is that of Mann and Whitney, the share of all pairs in which the new distance
is the larger one: 0.5 where the new scene is to the run's as that is to itself, 1 where all of it is
farther away. Of one scene drawn twice it is below 0.5, as draws have their neighbours beside them.

A filter in space makes features on both sides of an edge of a square of the same pixels, which brings them
nearer to each other than features of two scenes are. So the samples around a square are left out, as far
as they have pixels in common with it; and where a filter reaches across the whole scene, features are
compared as they are before it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.files.mapped import save_array
from eigenscape.base.vectors import Vectors
from eigenscape.features.spatial.filters import make_filter
from eigenscape.learn.classify.kernels.nearest import nearest_rows
from eigenscape.scenes.types import Grid
from eigenscape.spectrum.trained import Trained
from eigenscape.store.rows import Rows

F4 = NDArray[np.float32]

LIMIT = 0.55
"""Share above which a scene differs. Every other square of a scene, or pixels at random, against the rest:
0.33 to 0.49 (Indian Pines, EnMAP, Urban, Landsat); tiles of EnMAP and halves of all, each by the other:
0.56 to 1, but where the half that was learned from holds what the other has (0.41 to 0.47 of two)."""

ACROSS = 4
"""Zones along each side of the scene, of as many samples each."""

LEAST_OUTSIDE = 0.5
"""Share of the samples that have to be left for a square to be compared with them: nearest ones of a few are
far away."""

MOST_SAMPLES = 4096
_MOST_VALUES, _LEAST_SAMPLES = 2**21, 256


def sample_size(columns: int) -> int:
    """Return how many samples of each scene are compared, which take 8 MiB at most."""
    return min(MOST_SAMPLES, max(_LEAST_SAMPLES, _MOST_VALUES // columns))


def draw(samples: int, size: int) -> NDArray[np.int64]:
    """Return the numbers of samples to compare, ascending: some, or all of fewer."""
    rng = np.random.default_rng([0, 11])
    return np.sort(rng.choice(samples, min(size, samples), replace=False))


def zones_of(pixels: NDArray[np.int64], width: int) -> NDArray[np.intp]:
    """Return the zone of each sample of a scene: `ACROSS` strips of rows, each in as many parts.

    Parameters
    ----------
    pixels : array of int, shape (m,)
        row * width + column.
    width
        Columns of the scene.
    """
    row, column = np.divmod(pixels, width)
    zone = np.empty(len(pixels), np.intp)
    for number, strip in enumerate(np.array_split(np.argsort(row, kind="stable"), ACROSS)):
        order = strip[np.argsort(column[strip], kind="stable")]
        for part, members in enumerate(np.array_split(order, ACROSS)):
            zone[members] = ACROSS * number + part
    return zone


def usual_distances(features: F4, pixels: NDArray[np.int64], width: int, gap: int = 0) -> F4:
    """Return the distance of each sample to the nearest one outside of its zone, ascending.

    Parameters
    ----------
    features : array, shape (m, d)
    pixels, width
        As of `zones_of`; the width of a table, each of whose samples is a zone, is 0.
    gap
        Rows and columns around a zone whose samples are left out. Zones beyond which less than
        `LEAST_OUTSIDE` of the samples lie then have no distances.
    """
    if not width:
        return np.sort(nearest(features, features, 2)[:, -1])
    zones, places = zones_of(pixels, width), np.divmod(pixels, width)
    found = [np.zeros(0, np.float32)]
    for zone in np.unique(zones):
        inside = zones == zone
        outside = ~inside
        if gap:
            outside = np.any([_beyond(place, inside, gap) for place in places], axis=0)
            if outside.mean() < LEAST_OUTSIDE:
                continue
        found.append(nearest(features[inside], features[outside])[:, 0])
    return np.sort(np.concatenate(found))


def _beyond(place: NDArray[np.int64], inside: NDArray[np.bool_], gap: int) -> NDArray[np.bool_]:
    """Return which rows or columns are more than a gap away from all of some samples."""
    own = place[inside]
    return np.asarray((place < own.min() - gap) | (place > own.max() + gap))


def nearest(queries: F4, among: F4, k: int = 1) -> F4:
    """Return the distances to the k nearest of some samples, inf where there are fewer."""
    return nearest_rows(queries, lambda start, stop: among[start:stop], len(among), k)[1]


def reach_of(trained: Trained) -> int | None:
    """Return how far features of a run depend on pixels around them; None where on the whole scene."""
    spatial = trained.features.spatial
    return 0 if spatial is None else make_filter(spatial).reach


@dataclass(frozen=True)
class Shift:
    """A comparison of two scenes. Small: its arrays lie in a folder.

    Attributes
    ----------
    folder
        ``reference.npy``, features of samples of the run; ``usual.npy``; ``compared.npy``, numbers
        of samples of the new scene.
    """

    folder: Path

    def prepare(self, trained: Trained, samples: int) -> None:
        """Write what every block needs; nothing of a sparse table, which has no squares.

        Parameters
        ----------
        trained
            The run.
        samples
            Of the new scene.
        """
        if trained.rows.sparse:
            return
        reach, source = reach_of(trained), trained.rows
        if reach is None:
            source = Rows(str(trained.run.array_path("samples/values")))
        size, columns = source.shape
        chosen = draw(size, sample_size(columns))
        ingest = trained.run.record("ingest")
        assert ingest is not None, "the run has eigenvectors"
        grid = Grid.from_json(ingest.summary["grid"])
        pixels = np.asarray(trained.run.open("samples/pixel")[...])[chosen]
        reference = source.take(chosen)
        if reach is None:
            reference = trained.project(reference)
        assert isinstance(reference, np.ndarray), "dense"
        # Of what lies within twice its reach two filtered pixels may have some in common.
        gap = 2 * (reach or 0)
        usual = usual_distances(reference, pixels, 0 if grid.is_table else grid.width, gap)
        self.keep(reference, usual, samples)

    def keep(self, reference: F4, usual: F4, samples: int) -> None:
        """Write features of samples of the run, what is usual among them, and what is compared."""
        save_array(self.folder / "reference.npy", reference)
        save_array(self.folder / "usual.npy", usual)
        save_array(self.folder / "compared.npy", draw(samples, sample_size(reference.shape[1])))

    def count(self, features: Vectors, first: int) -> list[int]:
        """Return in how many pairs a block's distances are the larger, twice, and of how many pairs.

        None of either without what `prepare` writes.

        Parameters
        ----------
        features : array, shape (m, d)
            Of a block of the new scene, before a filter that reaches across all of it.
        first
            Number of its first sample.
        """
        if not isinstance(features, np.ndarray):
            return [0, 0]
        reference, usual, compared = (
            np.load(self.folder / f"{name}.npy", mmap_mode="r")
            for name in ("reference", "usual", "compared")
        )
        own = slice(*np.searchsorted(compared, [first, first + len(features)]))
        found = nearest(features[compared[own] - first], reference)[:, 0]
        # Of equal distances one half counts; whole numbers, so that blocks do not matter.
        larger = sum(int(np.searchsorted(usual, found, side).sum()) for side in ("left", "right"))
        return [larger, len(found) * len(usual)]


def verdict(counted: list[list[int]]) -> dict[str, Any] | None:
    """Return how a scene compares, from the counts of all its blocks.

    Returns
    -------
    dict
        ``farther``: share of pairs in which the new scene is farther than usual, ``limit``,
        ``differs``, and ``message``, empty where it does not. None where nothing was compared: of sparse
        tables, and of runs whose scene is too small for its filter.
    """
    larger, pairs = (sum(part[place] for part in counted) for place in (0, 1))
    if not pairs:
        return None
    farther = larger / (2 * pairs)
    differs = farther > LIMIT
    message = (
        "This scene differs from the one that the model learned from: its samples are farther from "
        f"that scene than squares of that scene from each other, in {100 * farther:.0f} % of all "
        f"comparisons (50 % is usual, {100 * LIMIT:.0f} % the limit). Classes may be wrong "
        "even where their confidence is high. Label some of its pixels and run it by itself."
    )
    return {
        "farther": farther,
        "limit": LIMIT,
        "differs": differs,
        "message": message if differs else "",
    }
