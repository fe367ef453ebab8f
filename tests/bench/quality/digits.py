"""Digits in the plane: does it matter which Laplacian?

    python tests/bench/quality/digits.py

The 1797 digits of scikit-learn by their first two eigenvectors (12 neighbours). Prints one line of JSON for
each way: trustworthiness, and the accuracy of 5 neighbours in 5-fold cross-validation there. Then the
accuracy of `EigenfunctionClassifier` with 2, 5, 20 and 50 labels of each digit, mean of 5 draws, %.
"""

import json
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.manifold import SpectralEmbedding, trustworthiness
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

import eigenscape

K = 12


def draw(y: np.ndarray, each: int, seed: int) -> np.ndarray:
    """Return labels of which as many of every class are kept, -1 for the others."""
    rng, kept = np.random.default_rng(seed), np.full(len(y), -1)
    for digit in np.unique(y):
        own = rng.choice(np.flatnonzero(y == digit), each, replace=False)
        kept[own] = digit
    return kept


def embeddings(X: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    """Return the digits in the plane, by each way."""
    found: dict[str, np.ndarray] = {}
    for name in ("normalized", "random-walk", "unnormalized"):
        maps: Any = eigenscape.LaplacianEigenmaps(
            n_components=2, n_neighbors=K, laplacian=name, random_state=0
        )
        found[f"LaplacianEigenmaps, {name}"] = maps.fit_transform(X)
    given = draw(y, 5, 0)
    for name in ("normalized", "random-walk"):
        maps = eigenscape.SchroedingerEigenmaps(
            n_components=2,
            n_neighbors=K,
            laplacian=name,
            potential="identification",
            random_state=0,
        )
        found[f"SchroedingerEigenmaps, {name}"] = maps.fit_transform(X, given)
    maps = SpectralEmbedding(2, affinity="nearest_neighbors", n_neighbors=K, random_state=0)
    found["SpectralEmbedding of scikit-learn"] = maps.fit_transform(X)
    return found


def main() -> None:
    """Print the lines."""
    X, y = load_digits(return_X_y=True)
    for name, plane in embeddings(X, y).items():
        scores = cross_val_score(KNeighborsClassifier(5), plane, y, cv=5)
        trusted = trustworthiness(X, plane, n_neighbors=5)
        line = {
            "way": name,
            "trustworthiness": round(trusted, 3),
            "accuracy": round(scores.mean(), 3),
        }
        print(json.dumps(line), flush=True)
    for name in ("normalized", "random-walk"):
        told = {}
        for each in (2, 5, 20, 50):
            right = []
            for seed in range(5):
                given = draw(y, each, seed)
                model = eigenscape.EigenfunctionClassifier(laplacian=name, random_state=0)
                hidden = given < 0
                right.append((model.fit(X, given).transduction_[hidden] == y[hidden]).mean())
            told[each] = round(100 * float(np.mean(right)), 1)
        print(json.dumps({"way": f"EigenfunctionClassifier, {name}", "accuracy": told}), flush=True)


if __name__ == "__main__":
    main()
