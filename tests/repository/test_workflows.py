"""The examples of jobs/workflows with the programs that they are for, as their first lines say."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from eigenscape.datasets.made.synthetic import synthesize
from eigenscape.workflow.finished.result import result_schema

FOLDER = Path(__file__).resolve().parents[2] / "jobs" / "workflows"
TEMPLATE = """\
[scene]
path = "any.tif"
[spectrum]
dimension = 6
[learn]
method = "spectral-clustering"
clusters = 3
[output]
formats = ["geotiff"]
"""


@pytest.fixture
def tiles(tmp_path):
    """Return a directory with a job and three scenes, one of which is none."""
    (tmp_path / "tiles").mkdir()
    for seed in (1, 2):
        synthesize(
            tmp_path / "tiles" / f"t{seed}.tif", height=32, width=32, bands=12, classes=3, seed=seed
        )
        for labels in (tmp_path / "tiles").glob("*_labels*"):
            labels.unlink()
    (tmp_path / "tiles" / "bad.tif").write_text("no scene")
    (tmp_path / "template.toml").write_text(TEMPLATE)
    return tmp_path


def program(name):
    """Return a program that may live in an environment of its own, at the end of PATH."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: pip install {name} in an environment on PATH")
    return found


def check(path):
    jsonschema = pytest.importorskip("jsonschema")
    found = json.loads(path.read_text())
    jsonschema.validate(found, json.loads(result_schema()))
    assert Path(found["outputs"]["class_map"]).exists()
    return found


def call(*arguments, cwd, **environment):
    return subprocess.run(
        [*map(str, arguments)], cwd=cwd, capture_output=True, text=True, timeout=500, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip


@pytest.mark.exhaustive
@pytest.mark.slow
def test_snakemake__maps_what_can_be_mapped_and_nothing_twice(tiles):
    command = (
        program("snakemake"), "--snakefile", FOLDER / "Snakefile", "--cores", 1, "--keep-going",
        "--config", "scenes=tiles", "job=template.toml",
    )  # fmt: skip
    done = call(*command, cwd=tiles)
    assert done.returncode == 1, done.stderr
    for name in ("t1", "t2"):
        check(tiles / "maps" / f"{name}.json")
    assert not (tiles / "maps" / "bad.json").exists()
    assert "bad.tif" in (tiles / "maps" / "bad.log").read_text()
    (tiles / "tiles" / "bad.tif").unlink()
    again = call(*command, cwd=tiles)
    assert again.returncode == 0, again.stderr
    assert "Nothing to be done" in again.stderr + again.stdout


@pytest.mark.exhaustive
@pytest.mark.slow
def test_prefect__repeats_nothing_that_cannot_work(tiles):
    python = Path(program("prefect")).with_name("python")
    scenes = sorted((tiles / "tiles").glob("*.tif"))
    done = call(
        python, FOLDER / "prefect_flow.py", "--job", "template.toml", *scenes, cwd=tiles,
        PREFECT_HOME=str(tiles / "prefect"), PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS="180",
        PREFECT_SERVER_ANALYTICS_ENABLED="false",
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    for name in ("t1", "t2"):
        path = re.search(rf"^{name}: (.*class_map\.tif)$", done.stdout, re.MULTILINE)[1]
        assert (tiles / path).exists()
    assert re.search(r"^bad: .*bad\.tif", done.stdout, re.MULTILINE)
    assert "Retry" not in done.stderr


@pytest.mark.slow
def test_nextflow__its_script_maps_a_scene_and_hands_on_what_cannot_work(tiles):
    """Nextflow comes from no Python package: its script is run as it would write it."""
    text = (FOLDER / "main.nf").read_text()
    repeated = re.search(r"task\.exitStatus in \[([\d, ]+)\]", text)[1]
    assert not {"0", "2", "3"} & set(repeated.split(", "))
    script = re.search(r'    """\n(.*?)    """', text, re.DOTALL)[1]
    script = script.replace("\\\\", "\\").replace("\\$", "$")
    for expression, value in {
        "${scene.baseName}": "{stem}", "${scene}": "{scene}", "${job}": str(tiles / "template.toml"),
        "${params.runs}": str(tiles / "runs"), "${task.memory.toMega().intdiv(2)}": "2048",
        "${task.cpus}": "1", "'{scene}'": "'{scene}'",
    }.items():  # fmt: skip
        script = script.replace(expression, value)
    assert "${" not in script
    for stem, status in (("t1", 0), ("bad", 2)):
        work = tiles / "work" / stem
        work.mkdir(parents=True)
        scene = tiles / "tiles" / f"{stem}.tif"
        filled = script.replace("{stem}", stem).replace("{scene}", str(scene))
        done = call("bash", "-ue", "-c", filled, cwd=work)
        assert done.returncode == status, done.stderr
    assert check(tiles / "work" / "t1" / "t1.json")["run"] == str(tiles / "runs" / "t1")
