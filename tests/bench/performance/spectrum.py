"""Smallest eigenpairs of neighbour graphs: time, residual and memory against SciPy, PyAMG, scikit-learn.

    python tests/bench/performance/spectrum.py smith                      640,976 samples, k = 12 (synthetic)
    python tests/bench/performance/spectrum.py mnist --data mnist.npz     60,000 digits, PCA-100, k = 8
    python tests/bench/performance/spectrum.py product                    the sparse product and its limit
    python tests/bench/performance/spectrum.py workers                    smith, on 1 and 2 worker processes

The graph is made once, by the pipeline itself; then every competitor solves it in a process of its
own. Ours is the spectrum stage of a run (matrix and vectors on disk, under ``--memory``); ``eigsh``
gets the largest of D^-1/2 W D^-1/2 in double, LOBPCG smoothed aggregation from PyAMG, scikit-learn
``spectral_embedding`` with its ``amg`` solver. Residuals are |L v - lambda v| for |v| = 1, measured
the same way for all; memory is the anonymous memory beyond what the process held when the matrix
was loaded. ``--pairs`` and ``--only`` choose. Needs the extra ``bench``; prints one JSON object.
"""

import argparse
import json
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

import neighbors
from eigenscape.base.process.progress import Silent

CASES = {"smith": (12, 56, 1e-5), "mnist": (8, 1000, 1e-4)}
"""Neighbours, pairs with the constant one, residual to reach."""

PEERS = ("eigsh", "lobpcg", "scikit-learn")

in_child = partial(neighbors.in_child, __file__)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case", choices=[*CASES, "product", "workers"])
    parser.add_argument("--data", type=Path, help="mnist.npz with x_train (60000, 28, 28)")
    parser.add_argument("--memory", default="2GiB")
    parser.add_argument("--pairs", type=int, help="eigenpairs, the constant one included")
    parser.add_argument("--tolerance", type=float)
    parser.add_argument("--only", nargs="*", help="of eigenscape, " + ", ".join(PEERS))
    parser.add_argument("--folder", type=Path, help="keep graph and runs here, for the next time")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        task = json.loads(options.task)
        print(json.dumps(globals()[task.pop("function")](**task)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        graph = make_graph(folder, "mnist" if options.case == "mnist" else "smith", options.data)
        if options.case == "product":
            result = in_child(function="product", folder=str(folder))
        elif options.case == "workers":
            result = workers(folder, options.memory)
        else:
            result = compare(options, folder)
    print(json.dumps({"case": options.case, **graph, **result}, indent=1))


def make_graph(folder: Path, case: str, data: Path | None) -> dict[str, Any]:
    """Make features and graph with the pipeline; the matrix also as a SciPy file for the others."""
    if not (folder / "graph.npz").exists():
        features = str(folder / "features.npy")
        if case == "mnist":
            neighbors.make_mnist(str(data), features, 100)
        else:
            neighbors.make_scene((679, 944), features)
        in_child(function="build_graph", features=features, folder=str(folder), k=CASES[case][0])
    S = scipy.sparse.load_npz(folder / "graph.npz")
    return {"rows": S.shape[0], "entries": S.nnz}


def harness_on(folder: str, **tables: Any) -> Any:
    sys.path.insert(0, str(Path(__file__).parents[2] / "helpers"))
    from harness import Harness

    return Harness(Path(folder) / "run", **tables)


def build_graph(features: str, folder: str, k: int) -> dict[str, Any]:
    """Run the stages neighbors and graph, and write D^-1/2 W D^-1/2 as a SciPy file."""
    harness = harness_on(folder, neighbors={"k": k})
    values = np.load(features)
    harness.put("ingest", {"samples/pixel": np.arange(len(values))})
    harness.put("features", {"features/values": values})
    harness.run("neighbors")
    harness.run("graph")
    operator = operator_of(harness, np.float64)
    S = scipy.sparse.eye_array(operator.rows) - operator.matrix()
    scipy.sparse.save_npz(Path(folder) / "graph.npz", scipy.sparse.csr_array(S))
    root = scipy.sparse.diags_array(operator.null)
    scipy.sparse.save_npz(Path(folder) / "weights.npz", scipy.sparse.csr_array(root @ S @ root))
    return {}


def operator_of(harness: Any, dtype: Any) -> Any:
    """Return the normalised Laplacian of a run, in memory."""
    from eigenscape.spectrum.kernels.laplacian import laplacian
    from eigenscape.spectrum.kernels.operator import RowBlock
    from eigenscape.store.arrays import open_memmap

    run = harness.run_directory
    blocks: list[Any] = []
    rows = run.record("graph").summary["rows"]
    while (first := sum(len(block.indptr) - 1 for block in blocks)) < rows:
        names = (f"graph/{len(blocks)}/{part}" for part in ("indptr", "indices", "data"))
        parts = [open_memmap(run.array_path(name)) for name in names]
        blocks.append(RowBlock(first, *parts))
    degree = np.array(open_memmap(run.array_path("graph/degree")))
    return laplacian(blocks, degree, "normalized", dtype)


def compare(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    _, pairs, tolerance = CASES[options.case]
    pairs, tolerance = options.pairs or pairs, options.tolerance or tolerance
    common = {"folder": str(folder), "pairs": pairs, "tolerance": tolerance}
    # Once more at the end: the machine may have become slower or faster meanwhile.
    runs = []
    for name in ("eigenscape", *PEERS, "eigenscape"):
        if options.only and name not in options.only:
            continue
        extra = {"memory": options.memory} if name == "eigenscape" else {}
        run = in_child(function=f"run_{name.replace('-', '_')}", **common, **extra)
        runs.append({"name": name, **run})
        print(json.dumps(runs[-1]), file=sys.stderr)
    result: dict[str, Any] = {"pairs": pairs, "tolerance": tolerance, "runs": runs}
    if {"eigenscape", "eigsh"} <= {run["name"] for run in runs}:
        result |= in_child(function="differences", folder=str(folder), pairs=pairs)
    return result


def differences(folder: str, pairs: int) -> dict[str, Any]:
    """Compare with ``eigsh``: values, and the angle of its first 99 % of the vectors to our space."""
    (ours, U), (theirs, V) = (
        (np.load(f"{folder}/{name}-values.npy"), np.load(f"{folder}/{name}-vectors.npy"))
        for name in ("eigenscape", "eigsh")
    )
    inner = pairs - max(1, pairs // 100)
    Q, _ = np.linalg.qr(U.astype(np.float64))
    W, _ = np.linalg.qr(V[:, :inner].astype(np.float64))
    sines = np.linalg.svd(W - Q @ (Q.T @ W), compute_uv=False)
    return {
        "largest_difference_of_values": float(np.abs(ours - theirs).max()),
        "largest_principal_angle": float(np.arcsin(min(1.0, sines[0]))),
        "vectors_in_the_angle": inner,
    }


def run_eigenscape(
    folder: str, pairs: int, tolerance: float, memory: str, workers: int | None = None
) -> dict[str, Any]:
    import shutil
    from contextlib import nullcontext

    from eigenscape.base import memory as sizes
    from eigenscape.clusters import ClusterOptions, connect

    harness = harness_on(
        folder,
        spectrum={"dimension": pairs - 1, "tolerance": tolerance},
        limits={"memory": memory},
    )
    cluster = nullcontext()
    if workers is not None:
        on = ClusterOptions(kind="local", workers=workers)
        cluster = connect(on, None, sizes.parse_bytes(memory))
    # Nothing of an earlier solve is gone on with.
    shutil.rmtree(harness.run_directory.workspace("spectrum", "key").path)
    notes = Notes()
    with cluster as executor, sizes.watch() as peak:
        before, start = sizes.anonymous_bytes(), time.perf_counter()
        summary = harness.run("spectrum", executor, reporter=notes)
        seconds = time.perf_counter() - start
    np.save(f"{folder}/eigenscape-values.npy", harness["spectrum/value"])
    np.save(f"{folder}/eigenscape-vectors.npy", harness["spectrum/vector"][harness["graph/sample"]])
    told = {name: summary[name] for name in ("max_residual", "converged", "passes", "products")}
    return {
        "seconds": round(seconds, 1),
        "peak_mib": (peak.bytes - before) >> 20,
        **told,
        "steps": notes.steps,
        "notes": notes.notes,
    }


class Notes(Silent):
    """Keeps what the stage says, and the seconds of its steps."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.steps: dict[str, float] = {}
        self._step, self._since = "", 0.0

    def begin(self, label: str, total: int, done: int) -> None:
        self._step, self._since = label.partition(",")[0], time.perf_counter()

    def end(self) -> None:
        spent = self.steps.get(self._step, 0) + time.perf_counter() - self._since
        self.steps[self._step] = round(spent, 2)

    def note(self, text: str) -> None:
        self.notes.append(text)


def workers(folder: Path, memory: str) -> dict[str, Any]:
    """Time ours on one and on two worker processes of one thread each, twice, in turn."""
    runs = []
    for count in (1, 2, 1, 2):
        run = in_child(
            function="run_eigenscape", folder=str(folder), pairs=56, tolerance=1e-5,
            memory=memory, workers=count,
        )  # fmt: skip
        spent = sum(seconds for step, seconds in run["steps"].items() if step == "filter")
        runs.append({"workers": count, "seconds": run["seconds"], "filter": round(spent, 1)})
        print(json.dumps(runs[-1]), file=sys.stderr)
    best = {n: min(run["filter"] for run in runs if run["workers"] == n) for n in (1, 2)}
    return {"speed_up_of_the_filter": round(best[1] / best[2], 2), "runs": runs}


def product(folder: str) -> dict[str, Any]:
    """Time the product with a group of columns, and the memory that it cannot do without.

    Least traffic: every entry and its column once, every row of X read, of Z read and written once.
    The bandwidth is that of ``a[i] = s * a[i] + b[i]`` on arrays larger than the caches.
    """
    import numba

    from eigenscape.spectrum.kernels.gather import WIDTH

    operator = operator_of(harness_on(folder), np.float32)
    entries = sum(len(block.data) for block in operator.blocks)
    least = 8 * entries + 12 * operator.rows + 3 * operator.rows * WIDTH * 4

    @numba.njit(nogil=True, fastmath=True)
    def triad(a: Any, b: Any, factor: Any, first: int, last: int) -> None:
        for i in range(first, last):
            a[i] = factor * a[i] + b[i]

    def rate(work: Any, count: int, amount: float) -> float:
        """Return the best of several rates, in GB/s, of `count` threads doing `amount` each."""
        best = 0.0
        for _ in range(8):
            threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
            start = time.perf_counter()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            best = max(best, count * amount / (time.perf_counter() - start) / 1e9)
        return round(best, 2)

    size = 2**25
    a, b = np.ones(2 * size, np.float32), np.ones(2 * size, np.float32)
    rng = np.random.default_rng(0)
    groups = [rng.standard_normal((operator.rows, WIDTH), np.float32) for _ in range(2)]
    images = [np.zeros_like(group) for group in groups]
    triad(a, b, np.float32(0.5), 0, 1)
    operator.step(groups[0], images[0], 0.1, 0.2, 0.3)
    result: dict[str, Any] = {"columns": WIDTH, "least_traffic_mb": round(least / 1e6)}
    for count in (1, 2):
        bandwidth = rate(
            lambda number: triad(a, b, np.float32(0.5), number * size, (number + 1) * size),
            count,
            12 * size,
        )
        reached = rate(
            lambda number: operator.step(groups[number], images[number], 0.1, 0.2, 0.3),
            count,
            least,
        )
        result[f"{count}_threads"] = {
            "bandwidth_gb_s": bandwidth,
            "product_gb_s": reached,
            "share": round(reached / bandwidth, 3),
            "product_ms": round(least / reached / 1e6, 1),
        }
    return result


def finish(
    name: str, folder: str, solve: Any, tolerance: float, before: int, watch: Any
) -> dict[str, Any]:
    """Time a competitor, and measure its residuals as ours are."""
    start = time.perf_counter()
    with watch() as peak:
        vectors = solve()
    seconds = time.perf_counter() - start
    S = scipy.sparse.load_npz(f"{folder}/graph.npz")
    vectors = np.asarray(vectors, np.float64)
    vectors /= np.linalg.norm(vectors, axis=0)
    images = vectors - S @ vectors
    values = (vectors * images).sum(axis=0)
    residuals = np.linalg.norm(images - values * vectors, axis=0)
    rank = np.argsort(values)
    np.save(f"{folder}/{name}-values.npy", values[rank])
    np.save(f"{folder}/{name}-vectors.npy", vectors[:, rank].astype(np.float32))
    return {
        "seconds": round(seconds, 1),
        "peak_mib": (peak.bytes - before) >> 20,
        "max_residual": float(residuals.max()),
        "pairs_reached": int((residuals <= tolerance).sum()),
    }


def run_eigsh(folder: str, pairs: int, tolerance: float) -> dict[str, Any]:
    from scipy.sparse.linalg import eigsh

    from eigenscape.base import memory

    S = scipy.sparse.load_npz(f"{folder}/graph.npz")
    before = memory.anonymous_bytes()

    def solve() -> Any:
        # Relative to the eigenvalue, here at most 1.
        return eigsh(S, pairs, which="LA", tol=tolerance)[1]

    return finish("eigsh", folder, solve, tolerance, before, memory.watch)


def run_lobpcg(folder: str, pairs: int, tolerance: float) -> dict[str, Any]:
    import warnings

    import pyamg
    from scipy.sparse.linalg import lobpcg

    from eigenscape.base import memory

    S = scipy.sparse.csr_matrix(scipy.sparse.load_npz(f"{folder}/graph.npz"))
    L = scipy.sparse.csr_matrix(scipy.sparse.eye_array(S.shape[0]) - S)
    L.indices, L.indptr = L.indices.astype(np.int32), L.indptr.astype(np.int32)
    before = memory.anonymous_bytes()

    def solve() -> Any:
        hierarchy = pyamg.smoothed_aggregation_solver(L, symmetry="symmetric")
        start = np.random.default_rng(0).standard_normal((L.shape[0], pairs))
        warnings.simplefilter("ignore")
        _, vectors = lobpcg(
            L, start, M=hierarchy.aspreconditioner(), tol=tolerance, largest=False, maxiter=100
        )
        return vectors

    return finish("lobpcg", folder, solve, tolerance, before, memory.watch)


def run_scikit_learn(folder: str, pairs: int, tolerance: float) -> dict[str, Any]:
    import warnings

    from sklearn.manifold import spectral_embedding

    from eigenscape.base import memory

    # It normalises by itself, and gives D^-1/2 times the eigenvectors.
    S = scipy.sparse.csr_matrix(scipy.sparse.load_npz(f"{folder}/weights.npz"))
    degree = np.asarray(S.sum(axis=1)).ravel()
    before = memory.anonymous_bytes()

    def solve() -> Any:
        warnings.simplefilter("ignore")
        maps = spectral_embedding(
            S, n_components=pairs, eigen_solver="amg", eigen_tol=tolerance, drop_first=False,
            random_state=0,
        )  # fmt: skip
        return maps * np.sqrt(degree)[:, None]

    return finish("scikit-learn", folder, solve, tolerance, before, memory.watch)


if __name__ == "__main__":
    main()
