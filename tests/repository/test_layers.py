"""Who may import whom: arrows point down, kernels know no dask, the command line starts light."""

import ast
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import eigenscape
from eigenscape.base.fingerprint import reachable_modules
from eigenscape.job.options import REGISTRIES

ROOT = Path(eigenscape.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
TESTS = Path(__file__).resolve().parents[1]

ROOMS = (
    "__main__", "cli", "schedule", "batch", "tuning", "study", "estimators", "theory", "__init__", "datasets",
    "applied", "workflow", "export", "learn", "spectrum", "graph", "neighbors", "features", "labels",
    "scenes", "context", "clusters", "store", "job", "base", "errors",
)  # fmt: skip
"""The rooms of the package in the order in which they may import each other: downwards."""

HEAVY = {"dask", "distributed", "zarr", "pydantic", "rich", "typer"}


def name_of(path):
    return str(path.relative_to(ROOT))


def room_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def module_of(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path, types=True):
    """Return every module that a file imports, anywhere in it; without those for types alone on demand."""
    return [name for name, for_types in _imports(path) if types or not for_types]


@cache
def _imports(path):
    """Return the modules that a file imports, and whether each is imported for types alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            names = [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        found += [(name, id(node) in for_types) for name in names]
    return found


def test_rooms__are_all_in_the_order():
    assert {room_of(path) for path in MODULES} == set(ROOMS)


def test_rooms__import_downwards_alone():
    upwards = []
    for path in MODULES:
        # The public names of the package are names for types alone until they are used.
        for name in imports(path, types=path.name != "__init__.py"):
            package, _, rest = name.partition(".")
            if package != "eigenscape" or not rest:
                continue
            there = rest.partition(".")[0]
            if there in ROOMS and ROOMS.index(there) < ROOMS.index(room_of(path)):
                upwards.append(f"{name_of(path)} imports {name}")
    assert not upwards


MOST_ARROWS = 170


def test_rooms__are_tied_by_few_arrows():
    arrows = {
        (room_of(path), there)
        for path in MODULES
        for name in imports(path)
        if name.startswith("eigenscape.")
        if (there := name.split(".")[1]) in ROOMS and there != room_of(path)
    }
    assert 100 < len(arrows) <= MOST_ARROWS


LEAVES = {"schedule", "batch", "tuning", "study", "estimators", "theory", "datasets", "applied"}
"""Rooms that only the command line uses: each can be read, and changed, without the others."""


def test_leaves__are_imported_by_the_command_line_alone():
    found = {
        (room_of(path), there)
        for path in MODULES
        for name in imports(path, types=path.name != "__init__.py")
        if (there := name.split(".")[1] if name.startswith("eigenscape.") else "") in LEAVES
        if room_of(path) not in {there, "cli"}
    }
    assert found == {("schedule", "batch")}, "a schedule runs batches"


MOST_FILES = 12


def test_folders__have_rooms_past_a_dozen_files():
    """Folders that are lists, one file for each method or verb, may be longer."""
    lists = {"methods", "kinds", "readers", "formats", "products", "verbs"}
    counts = Counter(
        path.parent
        for path in [*MODULES, *TESTS.rglob("*.py")]
        if path.name not in {"__init__.py", "conftest.py"} and path.parent.name not in lists
    )
    full = {str(folder): count for folder, count in counts.items() if count > MOST_FILES}
    assert not full, (
        f"more than {MOST_FILES} modules: divide them among folders (pipeline/README.md)"
    )


def heavy_below(module, banned):
    """Yield what a module reaches that imports a banned library."""
    for name, path in reachable_modules(module).items():
        for library in imports(path, types=False):
            if library.partition(".")[0] in banned:
                yield f"{module} reaches {name}, which imports {library}"


KERNELS = [path for path in MODULES if "kernels" in path.relative_to(ROOT).with_suffix("").parts]


def test_kernels__hold_all_compiled_loops():
    compiled = {path for path in MODULES if "numba" in {n.partition(".")[0] for n in imports(path)}}
    assert len(compiled) > 20
    assert not {name_of(path) for path in compiled.difference(KERNELS)}


def test_kernels__reach_no_dask_no_zarr_no_job():
    assert {room_of(path) for path in KERNELS} == {
        "labels", "features", "neighbors", "graph", "spectrum", "learn", "applied",
    }  # fmt: skip
    assert len(KERNELS) > 35
    found = [line for path in KERNELS for line in heavy_below(module_of(path), HEAVY)]
    assert not found


def test_base__reaches_no_dask_no_zarr_no_job():
    paths = [path for path in MODULES if room_of(path) == "base"]
    banned = HEAVY - {"rich"}  # progress bars
    assert not [line for path in paths for line in heavy_below(module_of(path), banned)]


def test_rooms__dask_stays_with_clusters():
    """Beside dask-ml's k-means, samples that come as dask arrays, and the lazy arrays of a finished run."""
    allowed = {"clusters", "estimators"}
    others = {
        name_of(path)
        for path in MODULES
        for name in imports(path)
        if name.partition(".")[0] in {"dask", "distributed"} and room_of(path) not in allowed
    }
    finished = {f"workflow/finished/{name}.py" for name in ("lazy", "xarrays")}
    assert others == {"learn/clustering/embedding.py", *finished}


@pytest.mark.slow
def test_rooms__print_on_the_command_line_alone():
    """Beside the bars that a user can ask for: a program that imports the library has no need of rich."""
    others = {
        name_of(path)
        for path in MODULES
        if room_of(path) != "cli"
        if {name.partition(".")[0] for name in imports(path)} & {"rich", "typer"}
    }
    assert others == {"base/process/bars.py", "base/process/progress.py"}
    code = "import sys, eigenscape; eigenscape.run; eigenscape.run_study; assert 'rich' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_modules__import_by_name_in_few_places_alone():
    """Lazy public names, work of stages, classes in the folder of a registry, data sets, dask-jobqueue."""
    dynamic = {
        name_of(path)
        for path in MODULES
        for name in ("import_module", "__import__")
        if name in path.read_text(encoding="utf-8")
    }
    assert dynamic == {
        "base/lazily.py", "base/registry.py", "clusters/queues.py", "scenes/registry.py",
        "workflow/stages.py",
    }  # fmt: skip
    for registry in REGISTRIES.values():
        assert registry.folder == f"eigenscape.{registry.table}.methods"
        assert registry.base.startswith(f"eigenscape.{registry.table}.")


def test_modules__import_no_source_root():
    for path in MODULES:
        assert not {name.partition(".")[0] for name in imports(path)} & {"pipeline", "tests"}, path


def heavy(code):
    """Return which heavy libraries a fresh interpreter has loaded after `code`."""
    names = ["dask", "distributed", "numba", "zarr", "scipy", "rasterio", "matplotlib", "geopandas"]
    report = (
        f"import sys; print(*[name for name in {names} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    return done.stderr.split()


@pytest.mark.mostly_slow(3)
@pytest.mark.parametrize(
    "code",
    [
        "import eigenscape",
        "import eigenscape.cli.app",
        "import eigenscape; eigenscape.load_job",
        """
from eigenscape.job.jobfile import parse_job
from eigenscape.job.options import REGISTRIES
for table, registry in REGISTRIES.items():
    for name in registry.names():
        assert registry.find(name) is not None
parse_job({"scene": {"path": "scene.tif"}})
""",
        """
import sys
from eigenscape.cli.app import main
for arguments in (["--help"], ["run", "--help"], ["--version"], ["schema"]):
    sys.argv = ["eigenscape", *arguments]
    try:
        main()
    except SystemExit as end:
        assert not end.code, end.code
""",
    ],
    ids=["package", "cli", "job", "methods", "help"],
)
def test_layers__light_things_load_nothing_heavy(code):
    assert heavy(code) == []


def test_layers__the_package_is_imported_in_a_moment():
    """The package itself, without Python's own start: the least of a few, for machines at work."""

    def seconds():
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-c", "import eigenscape"],
            capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
        last = done.stderr.splitlines()[-1].split("|")
        assert last[2].strip() == "eigenscape"
        return int(last[1]) / 1e6

    assert min(seconds() for _ in range(4)) < 0.3


def test_layers__public_names_are_there():
    for name in eigenscape.__all__:
        assert getattr(eigenscape, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = eigenscape.nothing


README = Path(__file__).resolve().parents[2] / "pipeline" / "README.md"


def test_readme__names_files_that_exist():
    text = README.read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[a-z]+/)*(?:[a-z_]+\.py)?)`", text)) - {"", "pipeline/"}
    # The files of the examples are no part of the package.
    named = {
        name for name in named if not name.endswith(("plain.py", "scratch.py", "asciigrid.py"))
    }
    named -= {"features/methods/band_differences.py"}
    assert len(named) > 25
    for name in named:
        top = README.parent.parent / name
        found = (ROOT / name).exists() or list(ROOT.glob(f"**/{name}")) or top.exists()
        assert found, f"pipeline/README.md names {name}"
