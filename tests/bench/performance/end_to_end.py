"""Scene file to class map: eigenscape against the best in-core composition of public libraries.

    python tests/bench/performance/end_to_end.py [--size HEIGHT WIDTH BANDS]

Both read the same synthetic scene in a fresh process and do the same work: random projection to
80 dimensions, 12 nearest neighbours, self-tuning weights, 55 eigenvectors of the normalised
Laplacian, the class mean at the smallest angle, a GeoTIFF. The peer is rasterio, scikit-learn's
projection, pynndescent (all samples in memory) and SciPy's `eigsh` at the same residual. The order is
eigenscape, peer, eigenscape; prints one JSON object.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PAIRS = 55


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", type=int, nargs=3, default=(679, 944, 110))
    parser.add_argument("--peer", type=Path, help="the peer alone, on this scene, in this process")
    given = parser.parse_args()
    if given.peer:
        print(json.dumps(peer(given.peer)))
        return
    height, width, bands = given.size
    with tempfile.TemporaryDirectory() as directory:
        scene = Path(directory) / "scene.tif"
        size = ["--height", str(height), "--width", str(width), "--bands", str(bands)]
        command([sys.executable, "-m", "eigenscape", "synth", str(scene), *size])
        (Path(directory) / "job.toml").write_text(
            'preset = "halevy-2011"\n[scene]\npath = "scene.tif"\nlabels = "scene_labels.tif"\n'
        )
        result = {
            "samples": height * width,
            "bands": bands,
            "eigenscape": [ours(Path(directory), 1)],
        }
        result["peer"] = timed([sys.executable, __file__, "--peer", str(scene)])
        result["eigenscape"].append(ours(Path(directory), 2))
    best = [run["seconds"] for run in result["eigenscape"]]
    result["ratio"] = [round(result["peer"]["seconds"] / seconds, 2) for seconds in best]
    print(json.dumps(result, indent=1))


def ours(directory: Path, number: int) -> dict:
    run = timed(
        [sys.executable, "-m", "eigenscape", "run", str(directory / "job.toml"), "--json",
         "--run-dir", str(directory / f"runs-{number}" / "run")]
    )  # fmt: skip
    return {
        "seconds": run["seconds"],
        "peak_anonymous_mib": max(stage["peak_bytes"] for stage in run["stages"]) >> 20,
        "stages": {stage["name"]: stage["seconds"] for stage in run["stages"]},
        "recall": run["neighbors"]["recall"],
        "max_residual": run["spectrum"]["max_residual"],
        "accuracy": run["scores"]["training_pixels"]["overall_accuracy"],
    }


def timed(arguments: list[str]) -> dict:
    start = time.perf_counter()
    output = command(arguments)
    seconds = round(time.perf_counter() - start, 1)
    return {**json.loads(output.splitlines()[-1]), "seconds": seconds}


def command(arguments: list[str]) -> str:
    """Run a command and return what it prints, the peak of all children added to its JSON."""
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        output = process.stdout.read()
    if process.returncode:
        raise SystemExit(f"{arguments} ended with status {process.returncode}")
    # The largest child so far: of interest for the peer, which is by far the largest.
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
    lines = output.splitlines()
    if lines and lines[-1].startswith("{"):
        lines[-1] = json.dumps({**json.loads(lines[-1]), "peak_rss_mib": peak})
    return "\n".join(lines)


def peer(scene: Path) -> dict:
    import numpy as np
    import rasterio
    import scipy.sparse as sparse
    from pynndescent import NNDescent
    from scipy.sparse.linalg import eigsh
    from sklearn.random_projection import GaussianRandomProjection

    seconds, start = {}, time.perf_counter()

    def lap(name: str) -> None:
        nonlocal start
        seconds[name] = round(time.perf_counter() - start, 1)
        start = time.perf_counter()

    with rasterio.open(scene) as source:
        cube, profile = source.read(), source.profile
    with rasterio.open(scene.with_name("scene_labels.tif")) as source:
        labels = source.read(1).ravel()
    values = cube.reshape(len(cube), -1).T.astype(np.float32)
    if values.shape[1] > 80:
        values = GaussianRandomProjection(80, random_state=0).fit_transform(values)
    values = np.ascontiguousarray(values, np.float32)
    lap("features")
    index, distance = NNDescent(values, n_neighbors=13, random_state=0).neighbor_graph
    index, distance = index[:, 1:], distance[:, 1:]
    lap("neighbors")
    rows = np.repeat(np.arange(len(index)), index.shape[1])
    scale = distance[:, -1]
    weight = np.exp(-(distance.ravel() ** 2) / (scale[rows] * scale[index.ravel()]))
    shape = (len(index), len(index))
    W = sparse.csr_array((weight.astype(np.float64), (rows, index.ravel())), shape=shape)
    W = W.maximum(W.T)
    root = sparse.diags_array(1 / np.sqrt(W.sum(axis=1)))
    S = (root @ W @ root).tocsr()
    lap("graph")
    eigenvalues, vectors = eigsh(S, PAIRS + 1, which="LA", tol=1e-6)
    residual = np.linalg.norm(S @ vectors - vectors * eigenvalues, axis=0).max()
    lap("spectrum")
    vectors = vectors[:, np.argsort(-eigenvalues)][:, 1:]
    classes = np.unique(labels[labels > 0])
    means = np.array([vectors[labels == number].mean(axis=0) for number in classes])
    means /= np.linalg.norm(means, axis=1)[:, None]
    called = classes[(vectors @ means.T).argmax(axis=1)]
    profile.update(count=1, dtype="uint8", nodata=0)
    with rasterio.open(scene.with_name("peer.tif"), "w", **profile) as target:
        target.write(called.reshape(1, *cube.shape[1:]).astype(np.uint8))
    lap("learn and export")
    accuracy = float((called == labels)[labels > 0].mean())
    return {"stages": seconds, "max_residual": float(residual), "accuracy": accuracy}


if __name__ == "__main__":
    main()
