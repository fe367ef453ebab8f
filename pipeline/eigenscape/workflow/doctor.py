"""Checks of the installation and of the machine, for `eigenscape doctor`."""

import os
import platform
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any

import psutil

from eigenscape.base.memory import format_bytes
from eigenscape.base.process.cores import usable_cores
from eigenscape.base.process.progress import Silent
from eigenscape.base.version import __version__, installed_version
from eigenscape.errors import EigenscapeError

SCHEMA = 1
"""Number of the form of `Diagnosis.to_json`: it rises when a key changes its meaning or goes."""

NEEDED_FORMATS = ("GTiff", "VRT", "ENVI")
"""Formats of GDAL without which scenes and outputs cannot be read and written."""

PRODUCT_FORMATS = {
    "GTiff": "EnMAP, DESIS, Landsat",
    "ENVI": "AVIRIS, HyMap, HySpex",
    "JP2OpenJPEG": "Sentinel-2",
    "netCDF": "NetCDF files that are not a known product",
    "HDF5": "HDF5 files that are not a known product",
    "HDF4": "HDF4 files",
}
"""Formats of GDAL and what is read by them. EMIT, PRISMA, NEON, PACE and AVIRIS-3 are read by h5py."""

_LEAST_MEMORY = 512 * 2**20
_REQUIREMENT = re.compile(r"([\w.-]+)(\[[\w,]+\])?")
_EXTRA = re.compile(r"extra == ['\"]([\w-]+)['\"]")
_FOR_USERS_NOT = {"test", "bench", "dev", "docs", "workflows"}


@dataclass
class Diagnosis:
    """What was found.

    Attributes
    ----------
    versions
        By package; None for one that is needed and not installed.
    formats
        Of GDAL: whether each of `PRODUCT_FORMATS` is there.
    machine
        Cores that this process may use, bytes of memory in all, free, and that control groups allow.
    kernels
        Whether they compile, in how many seconds, where they are kept, how many are there.
    extras
        By extra: the packages that it brings and their versions, None for one that is missing.
    directory
        Of the directory that was named: file system, free space, speeds, when files are seen.
    problems
        What has to be done before a job can run, a sentence each.
    remarks
        What is worth knowing.
    """

    versions: dict[str, str | None] = field(default_factory=dict)
    formats: dict[str, bool] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)
    kernels: dict[str, Any] = field(default_factory=dict)
    extras: dict[str, dict[str, str | None]] = field(default_factory=dict)
    directory: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return them as the one JSON object that ``--json`` prints."""
        return {"schema": SCHEMA, "ready": not self.problems, **asdict(self)}


def diagnose(directory: Path | None = None) -> Diagnosis:
    """Look at the installation and the machine.

    Parameters
    ----------
    directory
        Where runs will be: tried by two processes, which write and read files in turns.

    Examples
    --------
    >>> found = diagnose()
    >>> found.machine["cores"] > 0, found.formats["GTiff"]
    (True, True)
    """
    found = Diagnosis()
    _look_at_packages(found)
    _look_at_gdal(found)
    _look_at_machine(found)
    _look_at_kernels(found)
    if directory is not None:
        _look_at_directory(found, directory)
    return found


def compile_kernels() -> None:
    """Compile what a first run compiles, by runs on a small made scene: half a minute, once on a machine.

    Raises
    ------
    EigenscapeError
        A run fails.
    """
    import numpy as np

    from eigenscape.workflow.objects import job_for
    from eigenscape.workflow.spine import run

    generator = np.random.default_rng(0)
    # As many pixels as the iterative solver needs.
    labels = np.kron(generator.integers(1, 4, (9, 9)), np.ones((8, 8), int))
    spectra = generator.random((4, 12)) * 10
    cube = (spectra[labels] + generator.normal(size=(*labels.shape, 12))).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        # The choice may be one that spreads labels, in double for the map.
        for tables in (
            {"preset": "halevy-2011", "learn": {"trials": 1}},
            {"learn": {"trials": 1}},
            {"learn": {"trials": 1, "method": "interpolated"}},
        ):
            job = job_for(
                cube, labels, directory=folder, name="kernels", spectrum={"dimension": 8}, **tables
            )
            run(job, reporter=Silent())


def _look_at_packages(found: Diagnosis) -> None:
    found.versions = {"eigenscape": __version__, "python": platform.python_version()}
    found.versions["system"] = f"{platform.system()} {platform.release()} {platform.machine()}"
    if platform.system() != "Linux":
        found.problems.append(
            f"This system is {platform.system()}: memory is read from /proc, so jobs run only on Linux. "
            "Use a container or a virtual machine (cluster/containers)."
        )
    for package, extra in _requirements():
        installed = installed_version(package)
        if extra is None:
            found.versions[package] = installed
        elif extra not in _FOR_USERS_NOT:
            found.extras.setdefault(extra, {})[package] = installed
    if missing := [name for name, installed in found.versions.items() if installed is None]:
        found.problems.append(
            f"Required packages are missing: {', '.join(missing)}. "
            "Install them with: pip install eigenscape"
        )


def _requirements() -> Iterator[tuple[str, str | None]]:
    """Yield each package that eigenscape asks for, and the extra that brings it."""
    try:
        lines = requires("eigenscape") or []
    except PackageNotFoundError:
        return
    for line in lines:
        package = _REQUIREMENT.match(line)
        extra = _EXTRA.search(line)
        if package is not None and package[1] != "eigenscape":
            yield package[1], extra[1] if extra else None


def _look_at_gdal(found: Diagnosis) -> None:
    try:
        import rasterio

    except ImportError as error:
        found.problems.append(f"rasterio cannot be loaded: {error}. Reinstall it.")
        return
    found.versions["GDAL"] = rasterio.__gdal_version__
    with rasterio.Env() as env:
        names = set(env.drivers())
    found.formats = {name: name in names for name in PRODUCT_FORMATS}
    if missing := [name for name in NEEDED_FORMATS if name not in names]:
        found.problems.append(
            f"GDAL {rasterio.__gdal_version__} lacks the formats {', '.join(missing)}. Install rasterio "
            "from its wheel: pip install --force-reinstall --only-binary :all: rasterio"
        )
    for name, there in found.formats.items():
        if not there and name not in NEEDED_FORMATS:
            found.remarks.append(f"GDAL lacks {name}: {PRODUCT_FORMATS[name]} cannot be read.")


def _look_at_machine(found: Diagnosis) -> None:
    memory = psutil.virtual_memory()
    limit = memory_limit()
    found.machine = {
        "cores": usable_cores(),
        "cores_of_machine": os.cpu_count(),
        "memory_total": memory.total,
        "memory_available": memory.available,
        "memory_limit": limit,
    }
    least = min(memory.available, limit or memory.available)
    if least < _LEAST_MEMORY:
        found.problems.append(
            f"Only {format_bytes(least)} of memory is free: a small scene takes about 300 MiB, including "
            f"libraries. Provide {format_bytes(_LEAST_MEMORY)} or more."
        )
    elif least < 2 * 2**30:
        found.remarks.append(
            f"{format_bytes(least)} of memory is free, and limits.memory is 2 GiB by default: set it lower."
        )


def memory_limit() -> int | None:
    """Return the bytes that control groups allow this process, None for no limit."""
    found = []
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            root, name = Path("/sys/fs/cgroup"), "memory.max"
        elif "memory" in controllers.split(","):
            root, name = Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"
        else:
            continue
        place = root / group.lstrip("/")
        # A limit of a group above holds as well.
        for folder in (place, *place.parents):
            try:
                text = (folder / name).read_text(encoding="ascii").strip()
            except OSError:
                text = "max"
            # Version 1 writes no limit as a number of pages that no machine has.
            if text.isdigit() and int(text) < 2**60:
                found.append(int(text))
            if folder == root:
                break
    return min(found, default=None)


def _look_at_kernels(found: Diagnosis) -> None:
    import numpy as np

    begin = time.perf_counter()
    try:
        from eigenscape.graph.kernels.weights import place_lists

        one = np.zeros(1, np.int64)
        place_lists(
            np.array([0, 1]),
            one,
            np.ones(1, np.float32),
            one,
            one,
            one.copy(),
            np.ones(1, np.float32),
        )
    # numba raises errors of many kinds, of LLVM's too.
    except Exception as error:
        found.problems.append(
            f"Kernels cannot be compiled: {error}. If no cache can be written, set NUMBA_CACHE_DIR to "
            "a directory of your own; otherwise reinstall numba and llvmlite."
        )
        return
    folder = Path(place_lists.stats.cache_path)
    kept = [path for place in _cache_folders(folder) for path in place.glob("*.nbi")]
    found.kernels = {
        "seconds": round(time.perf_counter() - begin, 2),
        "cache": str(folder),
        "writable": os.access(folder, os.W_OK),
        "kept": len(kept),
    }
    if not found.kernels["writable"]:
        found.problems.append(
            f"{folder}: compiled kernels cannot be stored there, so each process would compile them (half "
            "a minute). Set NUMBA_CACHE_DIR to a directory of your own."
        )


def _cache_folders(folder: Path) -> Iterator[Path]:
    """Yield where kernels are kept: beside each module, or in one folder for each in a cache."""
    package = Path(__file__).resolve().parents[1]
    if package in folder.parents:
        yield from package.rglob("__pycache__")
    else:
        yield from folder.parent.iterdir()


def _look_at_directory(found: Diagnosis, directory: Path) -> None:
    from eigenscape.clusters.check import check_cluster
    from eigenscape.clusters.loading import parse_cluster

    directory = directory.resolve()
    new = not directory.exists()
    found.directory["path"] = str(directory)
    try:
        # A process of its own with other caches than ours in NumPy and zarr, on the same machine.
        findings = check_cluster(
            parse_cluster({"kind": "local", "workers": 1}, "doctor"), directory, 2**30
        )
    except (EigenscapeError, OSError) as error:
        found.problems.append(str(error))
        return
    free = shutil.disk_usage(directory).free
    found.directory |= {
        "file_system": findings.file_system,
        "free": free,
        "seen_after_s": max(findings.seen_there_s, findings.seen_here_s),
        "write_mib_s": findings.shared_write,
        "read_mib_s": findings.shared_read,
    }
    if new:
        with suppress(OSError):
            directory.rmdir()
    found.remarks.append(
        "The directory was tested with two processes of this machine. To test it from other machines, use "
        "`eigenscape cluster check FILE --run-dir DIR`."
    )
