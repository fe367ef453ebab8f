"""Fixtures and settings that all tests share."""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

# Before NumPy: the processes that share the tests would wait for each other's BLAS threads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Processes that tests start would compile the package anew, each of them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

import numpy as np
import pytest
import tomlkit
from hypothesis import HealthCheck, settings

import forks
from eigenscape.base.memory import collected_quickly
from inputs.smallscene import Small, make_small
from machines.glusterfs import GlusterFS
from machines.glusterfs import why_not as glusterfs_why_not
from machines.gridengine import GridEngine
from machines.gridengine import why_not as gridengine_why_not
from machines.slurm import Slurm
from machines.slurm import why_not as slurm_why_not

settings.register_profile("default", max_examples=25, deadline=None)
settings.register_profile(
    "ci", max_examples=25, deadline=None, derandomize=True, print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
settings.load_profile("ci" if os.environ.get("CI") else "default")


SLOW = ("slurm", "gridengine", "glusterfs", "shared_data", "exhaustive")
"""Marks of tests that are slow as well."""

_OF_WORKERS = ("OPENBLAS_", "OMP_", "MKL_", "NUMBA_", "MALLOC_TRIM_", "PYTHONHASHSEED")
_GIVEN = {name: value for name, value in os.environ.items() if name.startswith(_OF_WORKERS)}
"""What the tests were started with of the variables that workers are given."""


@pytest.hookimpl(trylast=True)  # with the options read
def pytest_configure(config: pytest.Config) -> None:
    # Once for all processes that share the tests.
    if not hasattr(config, "workerinput"):
        server = forks.serving()
        os.environ[forks.VARIABLE] = server.__enter__()
        config.add_cleanup(lambda: server.__exit__(None, None, None))


@pytest.hookimpl(tryfirst=True)  # before fixtures
def pytest_runtest_setup() -> None:
    # distributed changes these for good when it starts workers. A command that is given them could not be a
    # fork of a process that has loaded its libraries without.
    for name in [name for name in os.environ if name.startswith(_OF_WORKERS)]:
        del os.environ[name]
    os.environ.update(_GIVEN)


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what is slow
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in _mostly("exhaustive", items):
        item.add_marker(pytest.mark.exhaustive)
    for item in items:
        if any(item.get_closest_marker(name) for name in SLOW):
            item.add_marker(pytest.mark.slow)
    for item in _mostly("slow", items):
        item.add_marker(pytest.mark.slow)
    # Nobody waits for a long one in the end; what compiles itself in each process comes in one of them.
    items.sort(
        key=lambda item: (
            not re.search("descent|umap", item.nodeid),
            item.get_closest_marker("long") is None,
        )
    )


def _mostly(kind: str, items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield the cases of tests of which most are of a kind: all but some at even distances."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker(f"mostly_{kind}"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for own in cases.values():
        (count,) = own[0].get_closest_marker(f"mostly_{kind}").args
        kept = {number * len(own) // count for number in range(count)}
        yield from (item for number, item in enumerate(own) if number not in kept)


@pytest.fixture(scope="session", autouse=True)
def _quick_collections() -> Iterator[None]:
    """Leave what is there already out of `memory.release`, which every stage calls: a third of a run."""
    with collected_quickly():
        yield


@pytest.fixture(scope="module", autouse=True)
def _further_quick_collections(_quick_collections: None) -> Iterator[None]:
    """The same with what a module has imported since."""
    with collected_quickly():
        yield


@pytest.fixture(scope="session", autouse=True)
def _unsynced() -> Iterator[None]:
    """Leave it to the system when files reach the disk: a killed process loses nothing that it wrote."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Directory of the real scenes, beside the checkout."""
    path = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not path.is_dir():
        pytest.skip(f"the real scenes are not here ({path})")
    return path


Started = TypeVar("Started", Slurm, GridEngine, GlusterFS)


@contextmanager
def _started(reason: str | None, name: str, make: Callable[[Path], Started]) -> Iterator[Started]:
    """Start a service of this test process alone, unless there is a reason not to."""
    if reason:
        pytest.skip(reason)
    # Not below tmp_path: the paths of sockets are short.
    service = make(Path(tempfile.mkdtemp(prefix=f"{name}-", dir="/tmp")))
    try:
        service.start()
        yield service
    finally:
        service.stop()


def _reached(service: Slurm | GridEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in service.environment.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="session")
def _slurm() -> Iterator[Slurm]:
    with _started(slurm_why_not(), "slurm", Slurm) as service:
        yield service


@pytest.fixture
def slurm(_slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    """Return a SLURM of this test process alone; its commands are in the environment."""
    _reached(_slurm, monkeypatch)
    return _slurm


@pytest.fixture(scope="session")
def _gridengine() -> Iterator[GridEngine]:
    with _started(gridengine_why_not(), "sge", GridEngine) as service:
        yield service


@pytest.fixture
def gridengine(_gridengine: GridEngine, monkeypatch: pytest.MonkeyPatch) -> GridEngine:
    """Return a Grid Engine of this test process alone; its commands are in the environment.

    What has to connect to its workers runs inside, with `GridEngine.inside`.
    """
    _reached(_gridengine, monkeypatch)
    return _gridengine


@contextmanager
def _mounted(*, close_to_open: bool) -> Iterator[GlusterFS]:
    make = partial(GlusterFS, close_to_open=close_to_open)
    with _started(glusterfs_why_not(), "gluster", make) as volume:
        yield volume


@pytest.fixture(scope="module")
def stale_files() -> Iterator[GlusterFS]:
    """Return a network file system as it comes, which keeps what others have changed for a while."""
    with _mounted(close_to_open=False) as volume:
        yield volume


@pytest.fixture(scope="module")
def shared_files() -> Iterator[GlusterFS]:
    """Return a network file system mounted so that opening a file shows what was closed elsewhere."""
    with _mounted(close_to_open=True) as volume:
        yield volume


@pytest.fixture
def data_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Directory of data sets of a user who has none; the cache is empty too."""
    home = tmp_path / "data"
    monkeypatch.setenv("EIGENSCAPE_DATA", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return home


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261121)


@pytest.fixture(scope="session")
def small() -> Small:
    """Return 30 x 40 x 20, four classes, a corner without data, half of the pixels labelled."""
    return make_small()


@pytest.fixture(scope="session")
def make_scene() -> Callable[..., Small]:
    return make_small


@pytest.fixture
def write_job(tmp_path: Path) -> Callable[..., Path]:
    """Write a job file: one table for each keyword; small numbers unless they are given."""

    def write(name: str = "job", **tables: dict[str, Any]) -> Path:
        learn = tables.get("learn", {})
        potential = tables.get("graph", {}).get("potential", {})
        drawn = not isinstance(learn.get("train"), str) and potential.get("labels") != "train"
        if "labels" in tables.get("scene", {}) and drawn:
            tables["learn"] = {"trials": 3, **learn}
        defaults: dict[str, dict[str, Any]] = {
            "scene": {"path": "scene.tif"},
            "features": {"dimension": 10},
            "neighbors": {"k": 8},
            "spectrum": {"dimension": 8},
            # A picture takes longer than all the rest of a small run: tests of pictures ask for them.
            "output": {"directory": "runs", "eigenvectors": 3, "formats": ["geotiff"]},
            "limits": {"threads": 2},
        }
        merged = {
            key: {**defaults.get(key, {}), **tables.get(key, {})} for key in {**defaults, **tables}
        }
        if merged["features"].get("method") == "none":
            merged["features"] = tables["features"]  # it reads no dimension
        path = tmp_path / f"{name}.toml"
        path.write_text(tomlkit.dumps(merged), encoding="utf-8")
        return path

    return write


@pytest.fixture
def write_tif(tmp_path: Path) -> Callable[..., Path]:
    """Write rows x columns (x bands) as a GeoTIFF with a CRS; NaN where `hole` is given."""
    import rasterio

    def write(
        name: str, array: np.ndarray, *, hole: np.ndarray | None = None, **profile: Any
    ) -> Path:
        array = array.copy()
        if hole is not None:
            array[hole] = np.nan
        cube = array[..., None] if array.ndim == 2 else array
        transform = rasterio.Affine(30, 0, 364095, 0, -30, 5809965)
        options = {"crs": "EPSG:32633", "transform": transform, **profile}
        height, width, count = cube.shape
        path = tmp_path / name
        with rasterio.open(
            path, "w", driver="GTiff", height=height, width=width, count=count,
            dtype=cube.dtype, **options,
        ) as dataset:  # fmt: skip
            dataset.write(np.moveaxis(cube, -1, 0))
        return path

    return write


@pytest.fixture
def written(write_tif, small) -> Small:
    """Write the small scene to scene.tif and its labels to labels.tif."""
    write_tif("scene.tif", small.cube, hole=small.hole)
    write_tif("labels.tif", small.labels, nodata=0)
    return small


@pytest.fixture(scope="session")
def _kept_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept") / "all"


@pytest.fixture
def finished_run(
    written: Small, write_job: Callable[..., Path], tmp_path: Path, _kept_run: Path
) -> Path:
    """Put a finished run of the small labelled scene beside those of the test; return its job file.

    It is computed once, and each test has a copy of its own.
    """
    from eigenscape import load_job, run

    path = write_job(scene={"labels": "labels.tif"})
    if _kept_run.exists():
        shutil.copytree(_kept_run, tmp_path, dirs_exist_ok=True)
    else:
        run(load_job(path))
        shutil.copytree(tmp_path, _kept_run)
    return path


@pytest.fixture
def cli() -> Callable[..., Any]:
    """Call the command line in this process; the result has exit_code, stdout and stderr."""
    from typer.testing import CliRunner

    from eigenscape.cli.app import app

    def call(*arguments: Any) -> Any:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return call
