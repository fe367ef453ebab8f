"""Who may import whom: kernels know no dask, the command line starts without heavy libraries."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import eigenscape

ROOT = Path(eigenscape.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
MOST_LINES = 320

GLUE = {"stage.py", "__init__.py", "ingest.py", "clusters.py"}
"""In the folders of the stages, every other module is a kernel; clusters.py calls dask-ml's k-means."""

FOLDERS = ("features", "graph", "learn", "neighbors", "spectrum")
KERNELS = [
    path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.py"))
    if path.name not in GLUE
]  # fmt: skip


def name_of(path):
    return str(path.relative_to(ROOT))


def imports(path):
    """Yield every module that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_layers__kernels_are_found():
    names = {path.name for path in KERNELS}
    assert {"kernels.py", "partition.py", "filter.py", "centroid.py", "scores.py"} <= names


@pytest.mark.parametrize("path", KERNELS, ids=name_of)
def test_layers__kernels_know_no_dask_no_zarr_no_job(path):
    banned = {"dask", "distributed", "zarr", "pydantic", "rich", "typer"}
    ours = {f"eigenscape.{name}" for name in ("job", "cluster", "progress", "workflow", "cli")}
    for name in imports(path):
        assert name.partition(".")[0] not in banned, name
        assert not any(name == other or name.startswith(f"{other}.") for other in ours), name


@pytest.mark.parametrize("path", sorted((ROOT / "scenes").glob("*.py")), ids=name_of)
def test_layers__readers_know_no_dask(path):
    for name in imports(path):
        assert name.partition(".")[0] not in {"dask", "distributed"}, name


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_layers__modules_stay_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_layers__nothing_imports_the_source_root(path):
    for name in imports(path):
        assert name.partition(".")[0] not in {"pipeline", "tests"}


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


@pytest.mark.parametrize(
    "code",
    [
        "import eigenscape",
        "import eigenscape.cli.app",
        "import eigenscape; eigenscape.load_job",
        """
import sys
from eigenscape.cli import main
for arguments in (["--help"], ["run", "--help"], ["--version"], ["schema"]):
    sys.argv = ["eigenscape", *arguments]
    try:
        main()
    except SystemExit as end:
        assert not end.code, end.code
""",
    ],
    ids=["package", "cli", "job", "help"],
)
def test_layers__light_things_load_nothing_heavy(code):
    assert heavy(code) == []


def test_layers__public_names_are_there():
    for name in eigenscape.__all__:
        assert getattr(eigenscape, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = eigenscape.nothing


README = Path(__file__).resolve().parents[1] / "pipeline" / "README.md"


def test_readme__names_files_that_exist():
    text = README.read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[a-z]+/)*(?:[a-z_]+\.py)?)`", text)) - {"", "pipeline/"}
    assert len(named) > 25
    for name in named:
        top = README.parent.parent / name
        found = (ROOT / name).exists() or list(ROOT.glob(f"*/{name}")) or top.exists()
        assert found, f"pipeline/README.md names {name}"
