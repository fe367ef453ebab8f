"""Recipes of packages and containers: what they name is there, and is what the package needs."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import eigenscape
from eigenscape import parse_job
from eigenscape.clusters import ClusterOptions
from eigenscape.errors import MissingExtraError
from eigenscape.scenes.labels.vectors import open as vectors
from eigenscape.scenes.types import Grid
from eigenscape.workflow import extras

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DOCKERFILE = (ROOT / "cluster/containers/Dockerfile").read_text(encoding="utf-8")
APPTAINER = (ROOT / "cluster/containers/apptainer.def").read_text(encoding="utf-8")
RECIPE = ROOT / "cluster/conda/recipe.yaml"
CONDA_NAMES = {"dask[array]": "dask", "matplotlib": "matplotlib-base"}


def sections():
    """Return the sections of the Apptainer definition by name."""
    parts = re.split(r"^%(\w+)\n", APPTAINER, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_conda__needs_what_the_package_needs():
    yaml = pytest.importorskip("yaml")
    recipe = yaml.safe_load(RECIPE.read_text(encoding="utf-8"))
    needs = set()
    for requirement in PROJECT["dependencies"]:
        name, limit = re.fullmatch(r"([\w.-]+(?:\[\w+\])?)(.*)", requirement).groups()
        needs.add(f"{CONDA_NAMES.get(name, name)} {limit}")
    given = recipe["requirements"]["run"]
    assert {text for text in given if not text.startswith(("python ", "__"))} == needs
    context = recipe["context"]
    assert context["version"] == PROJECT["version"]
    assert PROJECT["requires-python"] == f">={context['python_min']}"
    assert (RECIPE.parent / recipe["source"]["path"]).resolve() == ROOT
    (point,) = recipe["build"]["python"]["entry_points"]
    assert point == f"eigenscape = {PROJECT['scripts']['eigenscape']}"


@pytest.mark.parametrize("text", [DOCKERFILE, APPTAINER], ids=["docker", "apptainer"])
def test_containers__take_the_files_and_extras_that_there_are(text):
    copied = re.findall(r"^(?:COPY (?!--)|    (?=\S+ /source/))(.*)", text, re.MULTILINE)
    names = [name for line in copied for name in line.split()[:-1]]
    assert {"pyproject.toml", "README.md", "LICENSE", "pipeline"} == set(names)
    assert all((ROOT / name).exists() for name in names)
    extras = {name for found in re.findall(r"\[([\w,]+)\]\"", text) for name in found.split(",")}
    assert extras
    assert extras <= PROJECT["optional-dependencies"].keys()


@pytest.mark.parametrize("name", ["post", "runscript", "test", "environment"])
def test_apptainer__scripts_are_those_of_a_shell(name):
    assert APPTAINER.splitlines()[5:7] == ["Bootstrap: docker", "From: python:3.12-slim-bookworm"]
    done = subprocess.run(["sh", "-n"], input=sections()[name], text=True, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_docker__instructions_are_known():
    lines = re.sub(r"\\\n\s*", "", DOCKERFILE).splitlines()
    words = [line.split()[0] for line in lines if line and not line.startswith("#")]
    known = {"FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "ENTRYPOINT", "CMD"}
    assert set(words) <= known
    assert words[0] == "FROM"
    for line in lines:
        if line.startswith("RUN "):
            done = subprocess.run(["sh", "-n"], input=line[4:], text=True, capture_output=True)
            assert done.returncode == 0, done.stderr


def test_citation__is_of_this_version():
    yaml = pytest.importorskip("yaml")
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["cff-version"] == "1.2.0"
    assert (cited["version"], cited["license"]) == (PROJECT["version"], PROJECT["license"])
    assert cited["title"] == PROJECT["name"]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+).*\n+### Upgrading$", changes, re.MULTILINE)
    assert newest[1] == PROJECT["version"]


def test_vectors__without_their_extra_are_refused_with_its_name(monkeypatch):
    monkeypatch.setattr(vectors, "find_spec", lambda name: None)
    grid = Grid(4, 4, crs_wkt="EPSG:32633", transform=(1, 0, 0, 0, -1, 4))
    with pytest.raises(MissingExtraError, match=r"pip install 'eigenscape\[vectors\]'"):
        vectors.open_vector_labels("labels.gpkg", None, None, grid)
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == "geopandas" else name)
    job = parse_job({"scene": {"path": "scene.tif"}, "output": {"formats": ["gpkg"]}})
    with pytest.raises(
        MissingExtraError, match=r'output\.formats with "gpkg" needs the package geopandas'
    ):
        extras.require_extras(job, ClusterOptions())


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build the wheel and the sdist as they would be published."""
    target = tmp_path_factory.mktemp("dist")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    done = subprocess.run(
        [*pip, "wheel", "--no-deps", "--wheel-dir", target, ROOT], capture_output=True, text=True
    )
    if done.returncode and "hatchling" in done.stderr:
        pytest.skip("hatchling, which builds the package, cannot be installed")
    assert done.returncode == 0, done.stderr
    (wheel,) = target.glob("*.whl")
    return wheel


def lend_kernels(package):
    """Give an installed package the compiled kernels of ours, where its files are the same as ours."""
    own = Path(eigenscape.__file__).parent
    for file in package.rglob("*.py"):
        ours = own / file.relative_to(package)
        if ours.exists() and ours.read_bytes() == file.read_bytes():
            # They belong to a file of this time.
            os.utime(file, ns=(ours.stat().st_atime_ns, ours.stat().st_mtime_ns))
    for kernel in own.rglob("*.nb[ci]"):
        folder = package / kernel.parent.relative_to(own)
        folder.mkdir(exist_ok=True)
        shutil.copy(kernel, folder)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.long
def test_wheel__installs_in_a_fresh_environment_and_makes_a_map(built, tmp_path):
    """What it needs comes from here; the package itself does not."""
    names = zipfile.ZipFile(built).namelist()
    for name in (
        "py.typed",
        "workflow/finished/result.schema.json",
        "workflow/choice/candidates.toml",
    ):
        assert f"eigenscape/{name}" in names
    assert not [name for name in names if name.startswith(("tests", "jobs", "docs"))]
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    place = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    own = Path(pytest.__file__).parents[1]
    pip = [python, "-m", "pip", "install", "-q", "--no-deps", "--no-compile"]
    subprocess.run([*pip, built], check=True)
    lend_kernels(Path(place) / "eigenscape")
    (Path(place) / "needs.pth").write_text(f"{own}\n")
    command = tmp_path / "venv" / "bin" / "eigenscape"

    def call(*words):
        return subprocess.run(
            [command, *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env={"PATH": "/usr/bin:/bin"},
        )

    assert call("--version").stdout == f"eigenscape {PROJECT['version']}\n"
    where = [python, "-c", "import eigenscape; print(eigenscape.__file__)"]
    found = subprocess.run(where, cwd=tmp_path, capture_output=True, text=True, env={}, check=True)
    assert found.stdout.startswith(place)
    made = call(
        "synth", "scene.tif", "--height", "32", "--width", "32", "--bands", "8", "--classes", "3"
    )
    assert made.returncode == 0, made.stderr
    (tmp_path / "job.toml").write_text('preset = "halevy-2011"\n[scene]\npath = "scene.tif"\n')
    done = call("run", "job.toml", "--run-dir", "run")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "outputs" / "report.html").exists()


@pytest.mark.slow
def test_sdist__holds_what_a_checkout_needs(tmp_path):
    pytest.importorskip("hatchling", reason="hatchling, which builds the package, is not installed")
    code = "import sys; from hatchling.build import build_sdist; print(build_sdist(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path], cwd=ROOT, capture_output=True, text=True, check=True
    )
    with tarfile.open(tmp_path / done.stdout.splitlines()[-1]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in ("README.md", "LICENSE", "CITATION.cff", "pyproject.toml", "pipeline/docs/conf.py",
                 "jobs/indian-pines.toml", "cluster/slurm.toml", "tests/conftest.py"):  # fmt: skip
        assert name in names
    assert not [
        name for name in names if name.startswith(("runs/", "pipeline/docs/reference/api/"))
    ]
