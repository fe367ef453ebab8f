"""All-k-nearest-neighbours: time, recall and memory against pynndescent, ann-search, faiss and hnswlib.

    python tests/bench/performance/neighbors.py smith [--png curve.png]   640,976 x 40, k = 12 (synthetic)
    python tests/bench/performance/neighbors.py large                     2,500,000 x 40, k = 12 (synthetic)
    python tests/bench/performance/neighbors.py million                   1,000,000 x 50, k = 15 (synthetic)
    python tests/bench/performance/neighbors.py millions                  5,000,000 x 50, k = 15 (synthetic)
    python tests/bench/performance/neighbors.py mnist --data mnist.npz    60,000 x 100 (PCA), k = 8
    python tests/bench/performance/neighbors.py digits --data mnist.npz   60,000 x 784, k = 15
    python tests/bench/performance/neighbors.py growth                    0.1, 0.4, 1.6, 6.4 million x 48
    python tests/bench/performance/neighbors.py workers                   smith, on 1 and 2 worker processes

Every competitor runs in a process of its own on the same features, mapped from a file; those that
compile run twice in it, so that the first time is that of a fresh process and the second that of
compiled code. Ours reads the features from a run directory and writes the lists to it, in blocks,
under ``--memory`` (2GiB; growth: 1GiB). Recall is that of the same 1000 random samples for all,
against brute force; seconds are of the clock and, in ``processor``, of all cores; memory is the
anonymous memory (what no file backs) beyond what the process held before. Several settings per
competitor make the curve of the picture. Needs the extra ``bench``; prints one JSON object.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

QUERIES = 1000
SYNTHETIC = {
    # name: (rows and columns of the scene, features)
    "smith": ((679, 944), 40), "large": ((1250, 2000), 40),
    "million": ((1000, 1000), 50), "millions": ((2000, 2500), 50),
}  # fmt: skip
CASES = {
    # name: (k, settings of ours, the one to compare with first)
    "smith": (12, [{}, {"refine": 1}, {"refine": 0}, {"overlap": 0.2}, {"recall": 0.999}]),
    "large": (12, [{}]),
    "million": (15, [{}, {"refine": 1}]),
    "millions": (15, [{}]),
    "mnist": (8, [{"recall": 0.98}, {}, {"overlap": 0.2}, {"recall": 0.99}, {"method": "exact"}]),
    "digits": (15, [{}, {"recall": 0.98}, {"method": "exact"}]),
}
PEERS: dict[str, dict[str, list[dict[str, Any]]]] = {
    "pynndescent": {
        "smith": [{}, {"n_trees": 4, "n_iters": 3}, {"n_neighbors": 20}],
        "large": [{}],
        "million": [{}],
        "millions": [{}],
        "mnist": [{}, {"n_neighbors": 15}, {"n_neighbors": 25}],
        "digits": [{}],
    },
    "ann-search": {
        "smith": [{"index": "NNDescent"}, {"index": "Ivf"}],
        "large": [{"index": "NNDescent"}],
        "million": [{"index": "NNDescent"}, {"index": "Ivf"}],
        "millions": [{"index": "NNDescent"}],
        "mnist": [{"index": "NNDescent"}, {"index": "Ivf"}, {"index": "Kmknn"}],
        "digits": [{"index": "NNDescent"}, {"index": "Ivf"}],
    },
    "faiss": {
        "smith": [{"nprobe": 4}, {"nprobe": 16}],
        "mnist": [{"nprobe": 4}, {"nprobe": 16}, {"flat": True}],
    },
    "hnswlib": {
        "smith": [{"M": 12, "ef": 30}],
        "mnist": [{"M": 12, "ef": 30}, {"M": 16, "ef": 80}],
    },
    "scikit-learn": {"mnist": [{}]},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case", choices=[*CASES, "growth", "workers"])
    parser.add_argument("--data", type=Path, help="mnist.npz with x_train (60000, 28, 28)")
    parser.add_argument("--memory", default=None)
    parser.add_argument(
        "--only", nargs="*", help="competitors, of eigenscape and " + ", ".join(PEERS)
    )
    parser.add_argument("--png", type=Path, help="picture of recall over time")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        task = json.loads(options.task)
        print(json.dumps(globals()[task.pop("function")](**task)))
        return
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        if options.case == "growth":
            result = growth(folder, options.memory or "1GiB")
        elif options.case == "workers":
            result = workers(folder, options.memory or "2GiB")
        else:
            result = compare(options, folder)
    print(json.dumps(result, indent=1))
    if options.png and "runs" in result:
        draw(result, options.png)


def compare(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    k, settings = CASES[options.case]
    features = folder / "features.npy"
    if options.case in SYNTHETIC:
        size, columns = SYNTHETIC[options.case]
        in_child(function="make_scene", size=size, target=str(features), columns=columns)
    else:
        components = 100 if options.case == "mnist" else None
        source = str(options.data)
        in_child(function="make_mnist", source=source, target=str(features), components=components)
    rows, columns = np.load(features, mmap_mode="r").shape
    limits = in_child(function="truth", features=str(features), k=k)["limits"]
    (folder / "limits.json").write_text(json.dumps(limits))
    common = {"features": str(features), "k": k, "limits": str(folder / "limits.json")}
    memory = options.memory or "2GiB"
    work = [("eigenscape", given) for given in settings]
    work += [(peer, given) for peer in PEERS for given in PEERS[peer].get(options.case, [])]
    # Once more at the end: the machine may have become slower or faster meanwhile.
    work.append(("eigenscape", settings[0]))
    runs = []
    for name, given in work:
        if options.only and name not in options.only:
            continue
        extra = {"memory": memory, "folder": str(folder)} if name == "eigenscape" else {}
        run = in_child(function=f"run_{name.replace('-', '_')}", given=given, **common, **extra)
        runs.append({"name": name, "settings": given, **run})
        print(json.dumps(runs[-1]), file=sys.stderr)
    return {"case": options.case, "rows": rows, "columns": columns, "k": k, "runs": runs}


def growth(folder: Path, memory: str) -> dict[str, Any]:
    """Time and peak of ours for four sizes, and the exponent of the time."""
    sizes = {
        100_000: (250, 400),
        400_000: (500, 800),
        1_600_000: (1000, 1600),
        6_400_000: (2000, 3200),
    }
    runs = []
    for rows, size in sizes.items():
        features = folder / "features.npy"
        in_child(function="make_scene", size=size, target=str(features), columns=48)
        run = in_child(
            function="run_eigenscape", given={}, features=str(features), k=12, limits=None,
            memory=memory, folder=str(folder), times=1,
        )  # fmt: skip
        runs.append({"rows": rows, "input_mib": features.stat().st_size >> 20, **run})
        print(json.dumps(runs[-1]), file=sys.stderr)
    logs = np.log([[run["rows"], run["seconds"][0]] for run in runs]).T
    steps = np.diff(logs[1]) / np.diff(logs[0])
    return {
        "memory": memory,
        "exponent": round(float(np.polyfit(logs[0], logs[1], 1)[0]), 3),
        "exponent_by_step": [round(float(step), 3) for step in steps],
        "runs": runs,
    }


def workers(folder: Path, memory: str) -> dict[str, Any]:
    """Time ours on one and on two worker processes of one thread each, twice, in turn."""
    features = folder / "features.npy"
    in_child(function="make_scene", size=SYNTHETIC["smith"][0], target=str(features))
    runs = []
    for count in (1, 2, 1, 2):
        run = in_child(
            function="run_eigenscape", given={}, features=str(features), k=12, limits=None,
            memory=memory, folder=str(folder), workers=count,
        )  # fmt: skip
        runs.append({"workers": count, "seconds": run["seconds"]})
        print(json.dumps(runs[-1]), file=sys.stderr)
    # The first stage on a new worker also loads its compiled code.
    best = {
        count: min(run["seconds"][1] for run in runs if run["workers"] == count) for count in (1, 2)
    }
    return {"speed_up": round(best[1] / best[2], 2), "runs": runs}


def in_child(script: str = __file__, /, **task: Any) -> dict[str, Any]:
    """Call a function of a benchmark, of this one by default, in a fresh process."""
    arguments = [sys.executable, script, "smith", "--task", json.dumps(task)]
    output = subprocess.run(arguments, check=True, stdout=subprocess.PIPE, text=True).stdout
    return dict(json.loads(output.splitlines()[-1]))


def make_scene(size: tuple[int, int], target: str, columns: int = 40) -> dict[str, Any]:
    """Write the features of a synthetic scene of 110 bands, randomly projected."""
    import rasterio

    from eigenscape.features.kernels import orthoprojector, project

    height, width = size
    with tempfile.TemporaryDirectory() as directory:
        scene = Path(directory) / "scene.tif"
        synth = ["--height", str(height), "--width", str(width), "--bands", "110"]
        command = [sys.executable, "-m", "eigenscape", "synth", str(scene), *synth]
        subprocess.run(command, check=True, capture_output=True)
        basis = orthoprojector(110, columns, 0).astype(np.float32)
        shape = (height * width, columns)
        features = np.lib.format.open_memmap(target, "w+", np.float32, shape)
        with rasterio.open(scene) as source:
            for row in range(0, height, 64):
                window = rasterio.windows.Window(0, row, width, min(64, height - row))
                block = source.read(window=window).reshape(110, -1).T.astype(np.float32)
                first = row * width
                features[first : first + len(block)] = project(
                    np.ascontiguousarray(block), None, basis
                )
        features.flush()
    return {}


def make_mnist(source: str, target: str, components: int | None) -> dict[str, Any]:
    """Write the leading principal components of the 60,000 training digits; None for their pixels."""
    with np.load(source) as stored:
        pixels = stored["x_train"].reshape(60_000, -1).astype(np.float64) / 255
    if components is not None:
        pixels -= pixels.mean(axis=0)
        pixels = pixels @ np.linalg.eigh(pixels.T @ pixels)[1][:, ::-1][:, :components]
    np.save(target, np.ascontiguousarray(pixels, np.float32))
    return {}


def chosen(rows: int) -> np.ndarray:
    return np.sort(np.random.default_rng(7).choice(rows, min(rows, QUERIES), replace=False))


def truth(features: str, k: int) -> dict[str, Any]:
    """Return the squared distance of the k-th neighbour of the chosen samples, in double."""
    values = np.load(features, mmap_mode="r")
    queries = np.asarray(values[chosen(len(values))], np.float64)
    best = np.full((len(queries), k + 1), np.inf)
    for start in range(0, len(values), 20_000):
        block = np.asarray(values[start : start + 20_000], np.float64)
        squared = (queries**2).sum(1)[:, None] + (block**2).sum(1) - 2 * queries @ block.T
        best = np.partition(np.concatenate([best, squared], axis=1), k, axis=1)[:, : k + 1]
    return {"limits": np.sort(best, axis=1)[:, k].tolist()}


def recall_of(features: str, limits: str, index: np.ndarray) -> float:
    """Return the mean share of list entries that are as near as the k-th true neighbour."""
    values = np.load(features, mmap_mode="r")
    own = chosen(len(values))
    near = np.asarray(values[index[own].astype(np.int64)], np.float64)
    squared = ((near - np.asarray(values[own], np.float64)[:, None]) ** 2).sum(axis=2)
    limit = np.array(json.loads(Path(limits).read_text()))[:, None]
    known = (squared <= limit * (1 + 1e-5) + 1e-9) & (index[own] != own[:, None])
    return round(float(known.mean()), 4)


def measured(build: Any, times: int, features: str, limits: str | None) -> dict[str, Any]:
    """Time a builder and watch its memory; `build` returns lists without the sample itself."""
    from eigenscape.base import memory

    before, seconds, processor, peak = memory.anonymous_bytes(), [], [], 0
    for _ in range(times):
        start, worked = time.perf_counter(), time.process_time()
        with memory.watch() as watched:
            index = build()
        seconds.append(round(time.perf_counter() - start, 2))
        processor.append(round(time.process_time() - worked, 2))
        peak = max(peak, watched.bytes - before)
    recall = None if limits is None else recall_of(features, limits, index)
    return {
        "seconds": seconds, "processor": processor, "recall": recall, "peak_mib": peak >> 20,
    }  # fmt: skip


def without_self(found: np.ndarray, k: int) -> np.ndarray:
    """Leave each sample out of its own list; where it is not there, the last entry."""
    own = found == np.arange(len(found))[:, None]
    own[~own.any(axis=1), -1] = True
    # Only the first, should it be there twice.
    own &= np.cumsum(own, axis=1) == 1
    return found[~own].reshape(len(found), -1)[:, :k]


def run_eigenscape(
    given: dict[str, Any],
    features: str,
    k: int,
    limits: str | None,
    memory: str,
    folder: str,
    times: int = 2,
    workers: int | None = None,
) -> dict[str, Any]:
    sys.path.insert(0, str(Path(__file__).parents[2] / "helpers"))
    import shutil
    from contextlib import nullcontext

    from eigenscape.base.memory import parse_bytes
    from eigenscape.clusters import ClusterOptions, connect
    from eigenscape.store.arrays import open_array
    from harness import Harness

    run = Path(folder) / "run"
    cluster = nullcontext()
    if workers is not None:
        cluster = connect(ClusterOptions(kind="local", workers=workers), None, parse_bytes(memory))
    summary: dict[str, Any] = {}
    values = np.load(features, mmap_mode="r")

    def build() -> np.ndarray:
        nonlocal summary
        summary = harness.run("neighbors", executor)
        return harness["neighbors/index"] if limits else np.empty(0)

    result: dict[str, Any] = {"seconds": [], "processor": [], "peak_mib": 0}
    with cluster as executor:
        for _ in range(times):
            # The features are there before the clock starts, as they are for all others.
            shutil.rmtree(run, ignore_errors=True)
            harness = Harness(run, neighbors={"k": k, **given}, limits={"memory": memory})
            workspace = harness.run_directory.workspace("features", "given")
            path = workspace.create_array("features/values", values.shape, values.dtype)
            stored = open_array(path)
            for start in range(0, len(values), stored.chunks[0]):
                stored[start : start + stored.chunks[0]] = values[start : start + stored.chunks[0]]
            harness._commit("features", workspace, {})
            once = measured(build, 1, features, limits)
            result["seconds"] += once["seconds"]
            result["processor"] += once["processor"]
            result["recall"] = once["recall"]
            result["peak_mib"] = max(result["peak_mib"], once["peak_mib"])
    shutil.rmtree(run)
    return {**result, "own_estimate": summary["recall"], "steps": summary.get("steps")}


def run_pynndescent(given: dict[str, Any], features: str, k: int, limits: str) -> dict[str, Any]:
    def build() -> np.ndarray:
        from pynndescent import NNDescent

        values = np.load(features)
        settings = {"n_neighbors": k + 1, "random_state": 0, **given}
        return without_self(NNDescent(values, **settings).neighbor_graph[0], k)

    return measured(build, 2, features, limits)


def run_ann_search(given: dict[str, Any], features: str, k: int, limits: str) -> dict[str, Any]:
    """Search by an index of ann-search (Rust)."""
    import ann_search

    settings = dict(given)
    kind = getattr(ann_search, f"{settings.pop('index')}Index")

    def build() -> np.ndarray:
        index = kind(n_neighbors=k + 1, seed=0, **settings).fit(np.load(features))
        # The graph that was built is what is asked for; other indexes are searched for it.
        if hasattr(index, "extract_knn"):
            found = index.extract_knn()
        else:
            found = index.kneighbors(None, return_distance=True)
        return without_self(np.asarray(found[1]).astype(np.int64), k)

    return measured(build, 1, features, limits)


def run_faiss(given: dict[str, Any], features: str, k: int, limits: str) -> dict[str, Any]:
    import faiss

    def build() -> np.ndarray:
        values = np.load(features)
        if given.get("flat"):
            index = faiss.IndexFlatL2(values.shape[1])
        else:
            lists = int(2 * np.sqrt(len(values)))
            index = faiss.index_factory(values.shape[1], f"IVF{lists},Flat")
            index.train(values[:: max(1, len(values) // (50 * lists))])
            index.nprobe = given["nprobe"]
        index.add(values)
        return without_self(index.search(values, k + 1)[1], k)

    return measured(build, 1, features, limits)


def run_hnswlib(given: dict[str, Any], features: str, k: int, limits: str) -> dict[str, Any]:
    import hnswlib

    def build() -> np.ndarray:
        values = np.load(features)
        index = hnswlib.Index("l2", values.shape[1])
        index.init_index(len(values), M=given["M"], ef_construction=100, random_seed=0)
        index.add_items(values)
        index.set_ef(given["ef"])
        return without_self(index.knn_query(values, k + 1)[0].astype(np.int64), k)

    return measured(build, 1, features, limits)


def run_scikit_learn(given: dict[str, Any], features: str, k: int, limits: str) -> dict[str, Any]:
    from sklearn.neighbors import NearestNeighbors

    def build() -> np.ndarray:
        values = np.load(features)
        search = NearestNeighbors(n_neighbors=k, algorithm="brute", **given).fit(values)
        return search.kneighbors()[1]

    return measured(build, 1, features, limits)


FLOOR = 1e-4
"""What stands for a recall of 1, which has no logarithm, in the picture."""


def draw(result: dict[str, Any], path: Path) -> None:
    """Draw recall over time, one line for each competitor."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5), layout="constrained")
    # Colours of Okabe and Ito, told apart by the colour-blind; markers for print in grey.
    styles = {
        "eigenscape": ("#0072B2", "o"), "pynndescent": ("#D55E00", "s"), "faiss": ("#009E73", "^"),
        "hnswlib": ("#CC79A7", "D"), "scikit-learn": ("#000000", "v"), "ann-search": ("#E69F00", "P"),
    }  # fmt: skip
    for name, (colour, marker) in styles.items():
        runs = [run for run in result["runs"] if run["name"] == name]
        if not runs:
            continue
        # The faster of two runs with the same settings.
        points: dict[float, float] = {}
        for run in runs:
            missed = max(1 - run["recall"], FLOOR)
            points[missed] = min(run["seconds"][-1], points.get(missed, np.inf))
        missing = sorted(points, reverse=True)
        times = [points[missed] for missed in missing]
        axes.plot(times, missing, color=colour, marker=marker, label=name, linewidth=1.5)
        if len(runs[0]["seconds"]) > 1 and name == "pynndescent":
            fresh = sorted((run["seconds"][0], max(1 - run["recall"], FLOOR)) for run in runs)
            axes.plot(
                *zip(*fresh, strict=True), color=colour, marker=marker, linestyle=":",
                markerfacecolor="none", label=f"{name}, fresh process",
            )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="seconds, 2 cores", ylabel="recall")
    ticks = [0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0001]
    axes.set_yticks(
        ticks, [f"{1 - tick:.4g}" if tick > 1e-4 else "1" for tick in ticks], minor=False
    )
    axes.minorticks_off()
    most = max(1 - run["recall"] for run in result["runs"])
    axes.set_ylim(1.4 * most, FLOOR / 1.4)
    seconds = [run["seconds"][-1] for run in result["runs"]] + [
        run["seconds"][0] for run in result["runs"]
    ]
    marks = [mark for mark in (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)]
    marks = [mark for mark in marks if min(seconds) / 2 <= mark <= 2 * max(seconds)]
    axes.set_xticks(marks, [f"{mark:g}" for mark in marks])
    axes.grid(visible=True, color="0.9")
    axes.set_title(
        f"{result['rows']:,} samples x {result['columns']} features, k = {result['k']}", loc="left"
    )
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
