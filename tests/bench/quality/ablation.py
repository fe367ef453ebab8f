"""What loses accuracy on another scene: features, the extension, guessed classes, or the classifier?

    python tests/bench/quality/ablation.py [--data ../shared/data] [--only SCENE ...] [--each N] [--seed N]

Learns on the left half of a scene with all its labels and classifies the right one, in memory, in two kinds
of vectors: the bands, standardised, and 15 noise fractions, both by the left half. Prints a line of JSON
for each: overall accuracy on the labels of the right half, %, by

    svm, forest    as in transfer.py
    nearest        the nearest label
    map            the classes of a harmonic map of the left half, by the 12 nearest of its samples and the
                   weights of the graph (what `apply` did before it had a machine)
    labels         the same, by the 12 nearest labels
    wide           the map by weights four times as wide
    joint          harmonic functions on the graph of both halves
    centred        the nearest label, with the mean of the right half moved to that of the left one

With --each N it learns from N labels of each class, drawn by --seed.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from queries import BANDWIDTH, NEIGHBORS, Graph
from sklearn.neighbors import NearestNeighbors
from transfer import forest, scenes, svm

MOST = 12_000
"""Samples without a label of each half that a graph holds."""


def noise_fractions(cube: np.ndarray, part: np.ndarray, count: int) -> np.ndarray:
    """Return minimum noise fractions of an image by the noise and the variance of a part of it."""
    own = part & np.isfinite(cube).all(axis=2)
    steps = [(cube[:, 1:] - cube[:, :-1])[own[:, 1:] & own[:, :-1]]]
    steps.append((cube[1:] - cube[:-1])[own[1:] & own[:-1]])
    values, vectors = np.linalg.eigh(np.cov(np.concatenate(steps).astype(float), rowvar=False) / 2)
    white = vectors / np.sqrt(np.maximum(values, 1e-10 * values[-1]))
    _, turned = np.linalg.eigh(white.T @ np.cov(cube[own].astype(float), rowvar=False) @ white)
    return (cube - cube[own].mean(axis=0)) @ (white @ turned)[:, ::-1][:, :count]


def vote(
    queries: np.ndarray, among: np.ndarray, shares: np.ndarray, scale: np.ndarray, width: float
) -> np.ndarray:
    """Return the classes of new samples by the weights of the nearest of a graph's."""
    k = min(NEIGHBORS, len(among))
    distance, index = NearestNeighbors(n_neighbors=k).fit(among).kneighbors(queries)
    own = np.maximum(distance[:, -1:], 1e-9)
    weights = np.exp(-(distance**2) / (width * own * np.maximum(scale[index], 1e-9)))
    return np.einsum("ij,ijc->ic", weights, shares[index]).argmax(axis=1)


def ablate(
    left: np.ndarray, right: np.ndarray, y: np.ndarray, truth: np.ndarray, square: np.ndarray
) -> dict[str, float]:
    """Return the accuracy of each way.

    Parameters
    ----------
    left, right : array, shape (samples, features)
        Vectors of both halves.
    y, truth : array of int, shape (samples,)
        Labels of both, 0 for none.
    square : array of int, shape (samples,)
        Square of each sample of the left half.
    """
    rng = np.random.default_rng(0)
    numbers = np.unique(y[y > 0])

    def some(labels: np.ndarray) -> np.ndarray:
        free = rng.permutation(np.flatnonzero(labels == 0))[:MOST]
        return np.sort(np.concatenate([np.flatnonzero(labels), free]))

    kept, also = some(y), some(truth)
    left, y, square, right, truth = left[kept], y[kept], square[kept], right[also], truth[also]
    tested, known = truth > 0, np.flatnonzero(y)
    place, count = np.searchsorted(numbers, y[known]), len(numbers)
    queries, found = right[tested], {}
    for name, fit in (("svm", svm), ("forest", forest)):
        found[name] = fit(left[known], y[known], square[known], 0)[0].predict(queries)
    nearest = NearestNeighbors(n_neighbors=1).fit(left[known])
    found["nearest"] = y[known][nearest.kneighbors(queries)[1][:, 0]]
    shifted = queries - right.mean(axis=0) + left.mean(axis=0)
    found["centred"] = y[known][nearest.kneighbors(shifted)[1][:, 0]]

    def last(X: np.ndarray) -> np.ndarray:
        k = min(NEIGHBORS, len(X) - 1)
        return np.asarray(NearestNeighbors(n_neighbors=k).fit(X).kneighbors()[0][:, -1])

    guessed = Graph(left).spread(known, place, count).argmax(axis=1)
    shares, scale = np.eye(count)[guessed], last(left)
    for name, width in (("map", BANDWIDTH), ("wide", 4 * BANDWIDTH)):
        found[name] = numbers[vote(queries, left, shares, scale, width)]
    own = np.eye(count)[place]
    found["labels"] = numbers[vote(queries, left[known], own, last(left[known]), BANDWIDTH)]
    joint = Graph(np.concatenate([left, right])).spread(known, place, count)[len(left) :]
    found["joint"] = numbers[joint[tested].argmax(axis=1)]
    right_ones = {name: float((called == truth[tested]).mean()) for name, called in found.items()}
    return {name: round(100 * share, 1) for name, share in right_ones.items()}


def few(labels: np.ndarray, each: int | None, seed: int) -> np.ndarray:
    """Return labels of which as many of every class are kept, all of them for None."""
    if each is None:
        return labels
    rng, kept = np.random.default_rng(seed), np.zeros_like(labels)
    for number in np.unique(labels[labels > 0]):
        own = rng.permutation(np.flatnonzero(labels == number))[:each]
        kept[own] = number
    return kept


def main() -> None:
    """Print a line for each scene and kind of vectors."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--each", type=int)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for scene, cube, labels in scenes(given.data, 0):
        if given.only and scene not in given.only:
            continue
        valid = np.isfinite(cube).all(axis=2)
        row, column = np.indices(valid.shape)
        here, there = (
            valid & part for part in (column < valid.shape[1] // 2, column >= valid.shape[1] // 2)
        )
        square = row // (max(valid.shape) // 12) * 1000 + column // (max(valid.shape) // 12)
        mean, deviation = cube[here].mean(axis=0), cube[here].std(axis=0) + 1e-9
        kinds = {"bands": (cube - mean) / deviation}
        if cube.shape[2] > 15:
            kinds["noise fractions"] = noise_fractions(cube, here, 15)
        for kind, image in kinds.items():
            halves = (np.asarray(image[part], np.float32) for part in (here, there))
            found = ablate(
                *halves, few(labels[here], given.each, given.seed), labels[there], square[here]
            )
            print(json.dumps({"scene": scene, "vectors": kind, **found}), flush=True)


if __name__ == "__main__":
    main()
