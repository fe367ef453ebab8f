"""The script for the Processing toolbox of QGIS, run by QGIS itself where it is installed."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import rasterio

SCRIPT = Path(__file__).resolve().parents[2] / "jobs" / "qgis" / "eigenscape_run.py"
# Debian's qgis_process passes an option on that the program does not know.
PROGRAM = shutil.which("qgis_process.bin") or shutil.which("qgis_process")


def test_script__compiles_and_leaves_no_environment_of_qgis_to_the_command():
    text = SCRIPT.read_text(encoding="utf-8")
    compile(text, SCRIPT.name, "exec")
    assert {"PYTHONHOME", "PYTHONPATH", "PROJ_LIB"} <= set(re.findall(r'"([A-Z_]+)"', text))


@pytest.fixture
def process(tmp_path):
    """Return what runs qgis_process with the script in the profile of a user of its own."""
    if PROGRAM is None:
        pytest.skip("qgis_process is not installed (Debian's package qgis)")
    scripts = tmp_path / ".local/share/QGIS/QGIS3/profiles/default/processing/scripts"
    scripts.mkdir(parents=True)
    shutil.copy(SCRIPT, scripts)
    clean = {
        "HOME": str(tmp_path), "PATH": os.defpath, "QT_QPA_PLATFORM": "offscreen",
        "XDG_RUNTIME_DIR": str(tmp_path), "LANG": "C.UTF-8",
    }  # fmt: skip

    def run(*arguments):
        return subprocess.run(
            [PROGRAM, *map(str, arguments)], capture_output=True, text=True, env=clean, timeout=600
        )

    return run


@pytest.mark.slow
def test_script__makes_a_class_map(process, write_tif, small, tmp_path):
    scene = write_tif("scene.tif", small.cube, hole=small.hole)
    labels = write_tif("labels.tif", small.labels, nodata=0)
    # The command of this environment, whatever QGIS has on its paths.
    command = tmp_path / "eigenscape"
    source = Path(__file__).resolve().parents[2] / "pipeline"
    command.write_text(
        f'#!/bin/sh\nPYTHONPATH={source} exec {sys.executable} -m eigenscape "$@"\n',
        encoding="utf-8",
    )
    command.chmod(0o755)
    arguments = {
        "SCENE": scene, "LABELS": labels, "COMMAND": command, "POLYGONS": "true",
        "OUTPUT": tmp_path / "made",
        "SETTINGS": "spectrum.dimension=4; learn.method=centroid-angle; learn.trials=1",
    }  # fmt: skip
    done = process(
        "--json", "run", "script:eigenscape_run", "--",
        *(f"{key}={value}" for key, value in arguments.items()),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads(done.stdout)["results"]
    with rasterio.open(results["CLASS_MAP"]) as found, rasterio.open(scene) as given:
        assert (found.shape, found.crs, found.transform) == (
            given.shape,
            given.crs,
            given.transform,
        )
    assert Path(results["CONFIDENCE"]).exists()
    assert Path(results["CLASS_POLYGONS"]).exists()
    # What is wrong is said in QGIS as it is on a terminal.
    wrong = {**arguments, "SETTINGS": "learn.method=nonsense", "OUTPUT": tmp_path / "other"}
    done = process(
        "run", "script:eigenscape_run", "--", *(f"{key}={value}" for key, value in wrong.items())
    )
    assert done.returncode != 0
    assert "no such method" in done.stdout + done.stderr
