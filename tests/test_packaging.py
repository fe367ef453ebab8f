"""Recipes of packages and containers: what they name is there, and is what the package needs."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
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
