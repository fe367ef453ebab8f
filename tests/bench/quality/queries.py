"""Do the pixels that `learn.queries` proposes teach more than as many random ones?

    python tests/bench/quality/queries.py [--data ../shared/data] [--only NAME ...] [--repeats 10]
                                          [--each 3] [--batch 20] [--batches 5] [--samples 3000]

Active learning on graphs of labelled samples (12 neighbours, self-tuning weights of bandwidth 0.25, harmonic
functions): some labels of each class to begin with, then batches that are asked for and answered. Half
of the samples, drawn anew in each repeat, can be asked for; accuracy is that of the other half, the same
one for all ways to ask: "random", "ambiguous" (the most ambiguous ones) and "queries" (those of
`eigenscape.learn.decide.queries`). Prints for each data set and way the accuracy in % after each batch, mean
over the repeats, and the gain over random: of the mean over all batches, and of the last one, with its
standard error over the repeats.
"""

import argparse
import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import eigsh
from shift import enmap, landsat
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

from eigenscape.learn.decide.queries import ambiguity, exploration, local_maxima, posterior
from eigenscape.spectrum.kernels.operator import RowBlock

NEIGHBORS, BANDWIDTH, MODES = 12, 0.25, 55
WAYS = ("random", "ambiguous", "queries")


def standardized(cube: np.ndarray) -> np.ndarray:
    """Return an image of bands of mean 0 and variance 1."""
    values = cube[np.isfinite(cube).all(axis=2)]
    return (cube - values.mean(axis=0)) / (values.std(axis=0) + 1e-9)


def noise_fractions(cube: np.ndarray, count: int) -> np.ndarray:
    """Return an image of minimum noise fractions (Green and others 1988)."""
    steps = np.concatenate([np.diff(cube, axis=axis).reshape(-1, cube.shape[2]) for axis in (0, 1)])
    own, vectors = np.linalg.eigh(np.cov(steps, rowvar=False) / 2)
    white = vectors / np.sqrt(own)
    _, turned = np.linalg.eigh(
        white.T @ np.cov(cube.reshape(-1, cube.shape[2]), rowvar=False) @ white
    )
    return (cube - cube.mean(axis=(0, 1))) @ (white @ turned)[:, ::-1][:, :count]


def sets(data: Path) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield name, features and labels of the labelled samples."""
    yield "digits", *load_digits(return_X_y=True)
    with np.load(data / "mnist" / "mnist.npz") as file:
        X, y = file["x_train"][:10_000].reshape(10_000, -1) / 255, file["y_train"][:10_000]
    yield "mnist", PCA(50, random_state=0).fit_transform(X), y
    with np.load(data / "indian-pines" / "indian_pines.npz") as file:
        cube, labels = noise_fractions(file["cube"].astype(float), 15), file["gt"]
    yield "indian-pines", cube[labels > 0], labels[labels > 0]
    with np.load(data / "urban-crop" / "urban_crop_with_abundances.npz") as file:
        cube, labels = standardized(file["cube"].astype(float)), file["labels_argmax"]
    yield "urban-crop", cube[labels > 0], labels[labels > 0]
    for name, (cube, labels) in (
        ("enmap", enmap(data / "enmap-potsdam")), ("landsat", landsat(data / "landsat-nc"))
    ):  # fmt: skip
        known = np.isfinite(cube).all(axis=2) & (labels > 0)
        yield name, standardized(cube)[known], labels[known]


class Graph:
    """A graph, and its first eigenvectors."""

    def __init__(self, X: np.ndarray) -> None:
        self.n = len(X)
        search = NearestNeighbors(n_neighbors=NEIGHBORS).fit(X)
        distance, index = search.kneighbors()
        scale = np.maximum(distance[:, -1], 1e-9)
        weights = np.exp(-(distance**2) / (BANDWIDTH * scale[:, None] * scale[index]))
        starts = np.arange(self.n + 1) * NEIGHBORS
        W = csr_array((weights.ravel(), index.ravel(), starts), shape=(self.n, self.n))
        self.W = csr_array(W.maximum(W.T))
        self.degree = np.asarray(self.W.sum(axis=1)).ravel() + 1e-9
        root = diags_array(1 / np.sqrt(self.degree))
        self.normalized = csr_array(root @ self.W @ root)
        self.block = RowBlock(0, self.W.indptr, self.W.indices, self.W.data)

    @cached_property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Its first eigenvalues, and its eigenvectors scaled to variance 1."""
        own, vectors = eigsh(
            self.normalized, k=min(MODES, self.n // 10), which="LA", v0=np.ones(self.n)
        )
        order = np.argsort(-own)
        rows = (vectors[:, order] * np.sqrt(self.n)).astype(np.float32)
        return np.maximum(1 - own[order], 0), rows

    def spread(self, known: np.ndarray, y: np.ndarray, count: int) -> np.ndarray:
        """Return harmonic functions with the labels as values, by conjugate gradients."""
        free = np.ones((self.n, 1), bool)
        free[known] = False
        given = np.zeros((self.n, count))
        given[known, y] = np.sqrt(self.degree[known])
        residual = np.where(free, self.normalized @ given, 0)
        X, step = np.zeros_like(residual), residual.copy()
        square = (residual**2).sum(axis=0)
        first = np.maximum(square, 1e-30)
        for _ in range(300):
            image = np.where(free, step - self.normalized @ step, 0) + 1e-7 * step
            length = square / np.maximum((step * image).sum(axis=0), 1e-30)
            X += length * step
            residual -= length * image
            new = (residual**2).sum(axis=0)
            if (new < 1e-7 * first).all():
                break
            step = residual + new / np.maximum(square, 1e-30) * step
            square = new
        found = X / np.sqrt(self.degree)[:, None]
        found[known] = np.eye(count)[y]
        return found.astype(np.float32)


def ask(
    way: str, graph: Graph, scores: np.ndarray, known: np.ndarray, closed: np.ndarray, size: int,
    rng: np.random.Generator,
) -> np.ndarray:  # fmt: skip
    """Return the samples to label next; those that are closed cannot be asked for."""
    if way == "random":
        return rng.choice(np.flatnonzero(~closed), size, replace=False)
    acquired = ambiguity(scores)
    if way == "ambiguous":
        acquired[closed] = -1
        return np.argsort(-acquired, kind="stable")[:size]
    values, rows = graph.pairs
    own = rows[known].astype(np.float64)
    acquired = acquired * exploration(rows, posterior(values, own.T @ own))
    acquired[closed] = np.nan
    return local_maxima(acquired, np.arange(graph.n), [graph.block], size)


def curve(
    way: str, graph: Graph, y: np.ndarray, start: np.ndarray, tested: np.ndarray, batch: int, batches: int,
    seed: int,
) -> list[float]:  # fmt: skip
    """Return the accuracy at the beginning and after each batch, %."""
    rng = np.random.default_rng([seed, 1])
    known, accuracy, count = start, [], int(y.max()) + 1
    for number in range(batches + 1):
        scores = graph.spread(known, y[known], count)
        accuracy.append(100 * float((scores.argmax(axis=1) == y)[tested].mean()))
        if number < batches:
            closed = tested.copy()
            closed[known] = True
            known = np.concatenate([known, ask(way, graph, scores, known, closed, batch, rng)])
    return accuracy


def main() -> None:
    """Print a line for each data set and way."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--only", nargs="*")
    for name, value in (
        ("repeats", 10),
        ("each", 3),
        ("batch", 20),
        ("batches", 5),
        ("samples", 3000),
    ):
        parser.add_argument(f"--{name}", type=int, default=value)
    given = parser.parse_args()
    for name, features, labels in sets(given.data):
        if given.only and name not in given.only:
            continue
        some = np.random.default_rng(0).permutation(len(labels))[: given.samples]
        y = np.unique(labels[some], return_inverse=True)[1]
        graph = Graph(np.asarray(features, np.float32)[some])
        curves: dict[str, list[list[float]]] = {way: [] for way in WAYS}
        for seed in range(given.repeats):
            rng = np.random.default_rng(seed)
            tested = rng.random(len(y)) < 0.5
            open_ = [np.flatnonzero(~tested & (y == c)) for c in range(y.max() + 1)]
            start = np.concatenate([rng.permutation(own)[: given.each] for own in open_])
            for way in WAYS:
                curves[way].append(
                    curve(way, graph, y, start, tested, given.batch, given.batches, seed)
                )
        random = np.array(curves["random"])
        for way in WAYS:
            found = np.array(curves[way])
            gains = {"mean": (found - random)[:, 1:].mean(axis=1), "last": (found - random)[:, -1]}
            told = {
                f"{part}_gain": [round(g.mean(), 2), round(g.std(ddof=1) / np.sqrt(len(g)), 2)]
                for part, g in gains.items()
            }
            line = {
                "data": name,
                "way": way,
                "accuracy": found.mean(axis=0).round(1).tolist(),
                **told,
            }
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
