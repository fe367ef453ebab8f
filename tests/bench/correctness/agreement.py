"""Do a job and the estimator of its method call the same class for every sample?

    python tests/bench/correctness/agreement.py [--data ../shared/data] [--only NAME ...]

20 data sets through both paths, from the same labels and seeds, by every method that both have.
Prints one JSON object: samples called differently, and how many each path calls rightly. Data sets
whose files are not there are named under ``missing``.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from sklearn.datasets import load_digits, make_blobs, make_circles, make_moons

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "helpers"))
from agreeing import METHODS, Problem, compare, few_labels

MOST_MBO = 32
"""Classes that PoissonMBO takes."""


def blobs(samples: int, classes: int, scale: float = 1.0, spread: float = 1.0) -> Problem:
    X, truth = make_blobs(samples, 20, centers=classes, cluster_std=spread, random_state=classes)
    return Problem(scale * X, truth, few_labels(truth, 5))


def plane(make: Callable[..., tuple[np.ndarray, np.ndarray]], samples: int) -> Problem:
    X, truth = make(samples, noise=0.08, random_state=1)
    return Problem(X, truth, few_labels(truth, 5))


def digits(each: int) -> Problem:
    X, truth = load_digits(return_X_y=True)
    return Problem(X, truth, few_labels(truth, each))


def mnist(data: Path, samples: int, each: int) -> Problem:
    with np.load(data / "mnist" / "mnist.npz") as file:
        images, truth = file["x_train"][:samples], file["y_train"][:samples].astype(np.int64)
    return Problem(images.reshape(samples, -1).astype(np.float32), truth, few_labels(truth, each))


def newsgroups(data: Path, samples: int) -> Problem:
    """Counts of the 3000 commonest words, compared by their angle."""
    import gzip

    from sklearn.feature_extraction.text import CountVectorizer

    texts, names = [], []
    with gzip.open(
        data / "20newsgroups" / "20news_bydate.jsonl.gz", "rt", encoding="utf-8"
    ) as file:
        for line in file:
            item = json.loads(line)
            text = [value for key, value in item.items() if key in ("text", "data", "body")]
            name = [value for key, value in item.items() if key in ("label", "target", "group")]
            texts.append(text[0])
            names.append(name[0])
    order = np.random.default_rng(0).permutation(len(texts))[:samples]
    X = csr_array(CountVectorizer(max_features=3000).fit_transform(texts)[order], dtype=np.float32)
    filled = np.flatnonzero(np.diff(X.indptr) > 0)
    truth = np.unique(np.array(names)[order], return_inverse=True)[1]
    options = (("metric", "neighbors.metric", "angle"),)
    return Problem(X[filled], truth[filled], few_labels(truth[filled], 20), None, options)


def scene(path: Path, cube: str, labels: str) -> Problem:
    """A scene all of whose pixels are samples."""
    with np.load(path) as file:
        X, given = file[cube].astype(np.float32), file[labels].astype(np.int64)
    truth = given.ravel() - 1
    truth = np.where(truth < 0, -1, np.searchsorted(np.unique(truth[truth >= 0]), truth))
    return Problem(X.reshape(truth.size, -1), truth, few_labels(truth, 20), X.shape[:2])


def data_sets(data: Path) -> dict[str, Callable[[], Problem]]:
    """Return what makes each data set."""
    return {
        **{f"blobs-{c}": partial(blobs, 3000, c) for c in (2, 3, 5, 10, 20, 50)},
        "blobs-5-wide": partial(blobs, 3000, 5, 1.0, 5.0),
        "blobs-20-wide": partial(blobs, 3000, 20, 1.0, 5.0),
        "blobs-10-small": partial(blobs, 2000, 10, 1e-3),
        "blobs-10-large": partial(blobs, 2000, 10, 1e3),
        "blobs-100-samples": partial(blobs, 100, 4),
        "blobs-20000-samples": partial(blobs, 20_000, 20),
        "moons": partial(plane, make_moons, 2000),
        "circles": partial(plane, partial(make_circles, factor=0.5), 2000),
        "digits-2": partial(digits, 2),
        "digits-20": partial(digits, 20),
        "mnist": partial(mnist, data, 10_000, 10),
        "newsgroups": partial(newsgroups, data, 4000),
        "indian-pines": partial(
            scene, data / "indian-pines" / "indian_pines.npz", "cube", "gt"
        ),
        "urban-crop": partial(
            scene, data / "urban-crop" / "urban_crop_with_abundances.npz", "cube", "labels_argmax"
        ),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    shared = Path(__file__).resolve().parents[4] / "shared" / "data"
    parser.add_argument("--data", type=Path, default=shared)
    parser.add_argument("--only", nargs="*")
    arguments = parser.parse_args()
    found: dict[str, dict[str, object]] = {}
    missing = []
    for name, make in data_sets(arguments.data).items():
        if arguments.only and name not in arguments.only:
            continue
        try:
            problem = make()
        except FileNotFoundError:
            missing.append(name)
            continue
        found[name] = {}
        for method in METHODS:
            if method == "poisson-mbo" and problem.count > MOST_MBO:
                continue
            start = time.perf_counter()
            with tempfile.TemporaryDirectory() as folder:
                found[name][method] = compare(problem, method, Path(folder))
            seconds = time.perf_counter() - start
            print(f"{name} {method} {seconds:.0f} s: {found[name][method]}", file=sys.stderr)
    different = sum(
        part["differing"] > 0
        for parts in found.values()
        for part in parts.values()  # type: ignore[index]
    )
    print(json.dumps({"differing": different, "missing": missing, "data_sets": found}, indent=1))


if __name__ == "__main__":
    main()
