"""Keys of stages: they cover all code that a result can depend on."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import eigenscape
from eigenscape.base import fingerprint
from eigenscape.base.fingerprint import reachable_modules
from eigenscape.export.format import format_modules
from eigenscape.job.jobfile import parse_job
from eigenscape.job.options import REGISTRIES
from eigenscape.workflow import stages
from eigenscape.workflow.stages import NEUTRAL, STAGES, stage_keys

ROOT = Path(eigenscape.__file__).parent
FEATURES_ON = {"features", "neighbors", "graph", "spectrum", "learn", "export"}
ALL = {"ingest"} | FEATURES_ON


def name_of(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    (folder / "scene.bin").write_bytes(b"scene")
    return parse_job({"scene": {"path": str(folder / "scene.bin")}})


@pytest.fixture(scope="module")
def changed(job):
    """Return a function that gives the stages whose keys change with one line of a file."""
    digest, reachable = fingerprint._file_digest, cache(reachable_modules)
    before = stage_keys(job)

    def work(file):
        def other(path, time):
            return b"changed" if path == file else digest(path, time)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fingerprint, "_file_digest", other)
            # The imports of all files stay as they are.
            patch.setattr(stages, "reachable_modules", lambda *given: dict(reachable(*given)))
            stages._code.cache_clear()
            after = stage_keys(job)
        stages._code.cache_clear()
        return {name for name in ALL if before[name] != after[name]}

    return work


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("base/memory.py", ALL),
        ("base/blocks.py", ALL),
        ("store/arrays.py", ALL),
        ("store/rows.py", ALL),
        ("context.py", ALL),
        ("scenes/ingest/stage.py", ALL),
        ("features/kernels.py", FEATURES_ON),
        ("features/methods/random_projection.py", FEATURES_ON),
        ("features/methods/pca.py", set()),
        # The filter in space compares neighbouring pixels as the noise fractions do.
        ("features/noise.py", FEATURES_ON),
        ("features/methods/mnf.py", set()),
        ("neighbors/methods/lanczos_bisection.py", FEATURES_ON - {"features"}),
        ("neighbors/methods/landmarks.py", set()),
        ("learn/methods/centroid_angle.py", {"learn", "export"}),
        ("learn/methods/tikhonov.py", set()),
        ("neighbors/kernels/lists.py", FEATURES_ON - {"features"}),
        ("graph/kernels/weights.py", {"graph", "spectrum", "learn", "export"}),
        ("spectrum/iteration/kernels/filter.py", {"spectrum", "learn", "export"}),
        # Cuts of the graph compute eigenpairs of its parts, and this job makes none.
        ("spectrum/eigenpairs.py", set()),
        # A potential can be of the training labels.
        ("labels/splits.py", {"spectrum", "learn", "export"}),
        ("learn/decide/kernels/decisions.py", {"learn", "export"}),
        ("export/palette.py", {"export"}),
        ("export/formats/geotiff.py", {"export"}),
        ("export/formats/gpkg.py", set()),
        # Data that the code of the stage reads.
        ("export/legends/words.toml", {"export"}),
        ("export/report/templates/report.html", {"export"}),
        ("export/report/templates/report.css", {"export"}),
        ("export/report/templates/index.html", set()),
        ("datasets/catalog.toml", set()),
        ("clusters/start.py", set()),
        ("clusters/workers/dask.py", set()),
        ("base/process/progress.py", set()),
        ("job/study.py", set()),
        ("cli/app.py", set()),
        ("workflow/plan.py", set()),
        ("estimators/base.py", set()),
        ("applied/stage.py", set()),
    ],
)
def test_stage_keys__change_with_the_code_of_a_module(changed, module, expected):
    assert changed(ROOT / module) == expected


@pytest.mark.slow
def test_stage_keys__change_with_every_module_that_a_stage_reaches(job, changed):
    """One line of each module in turn: exactly the stages that reach it, and those after them."""
    follows = {
        "ingest": {"learn", "export"}, "features": FEATURES_ON,
        "neighbors": FEATURES_ON - {"features"}, "graph": {"graph", "spectrum", "learn", "export"},
        "spectrum": {"spectrum", "learn", "export"}, "learn": {"learn", "export"}, "export": {"export"},
    }  # fmt: skip
    reached = {stage.name: reachable_modules(stage.module, NEUTRAL) for stage in STAGES}
    for name in REGISTRIES:
        reached[name] |= reachable_modules(type(getattr(job, name)).__module__, NEUTRAL)
    for module in format_modules(job.output.formats):
        reached["export"] |= reachable_modules(module, NEUTRAL)
    for path in sorted(ROOT.rglob("*.py")):
        name = name_of(path)
        expected = {stage for stage in reached if name in reached[stage]}
        expected |= set().union(*(follows[stage] for stage in expected))
        if name in reached["ingest"]:
            expected = ALL  # the samples come from the code of ingest
        assert changed(path) == expected, name


LOAD = """
import json, os, sys
import dask, numba, numpy, pydantic, rasterio, scipy.sparse, sklearn.neighbors, zarr
assert "eigenscape" not in sys.modules
for module in sys.argv[1:]:
    if os.fork() == 0:
        __import__(module)
        names = [name for name in sys.modules if name.partition(".")[0] == "eigenscape"]
        print(json.dumps([module, names]), flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.fixture(scope="module")
def loaded_by():
    """Return what the import of each stage's module loads, in a process that has loaded nothing of ours."""
    modules = [stage.module for stage in STAGES]
    done = subprocess.run(
        [sys.executable, "-c", LOAD, *modules], capture_output=True, text=True, check=True,
        timeout=120,
    )  # fmt: skip
    return {module: {*names} for module, names in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_reachable_modules__hold_all_that_an_import_loads(stage, loaded_by):
    """Against the interpreter: what is loaded with the module of a stage is in its key, or neutral."""
    loaded = loaded_by[stage.module]
    assert stage.module in loaded
    neutral = {
        name for name in loaded if any(f"{name}.".startswith(f"{part}.") for part in NEUTRAL)
    }
    for name in neutral:
        neutral = neutral | {*reachable_modules(name)}
    assert loaded - neutral <= {*reachable_modules(stage.module, NEUTRAL)}


def test_reachable_modules__leave_out_what_is_for_types_alone():
    found = reachable_modules("eigenscape")
    assert "eigenscape.base.lazily" in found
    assert "eigenscape.workflow.spine" not in found
