import json
import os
import subprocess
import sys

import numpy as np
import pytest
import rasterio

from eigenscape.store.run import Run
from eigenscape.workflow.finished.result import result_schema
from eigenscape.workflow.stages import STAGES

NAMES = [stage.name for stage in STAGES]
KEYS = [
    "schema", "run", "converged", "warnings", "stages", "scores", "neighbors", "spectrum", "outputs",
]  # fmt: skip


@pytest.fixture
def job(written, write_job):
    """The job file of the small labelled scene."""
    return write_job(scene={"labels": "labels.tif"})


def command(*arguments, **keys):
    return subprocess.run(
        [sys.executable, "-c", "from eigenscape.cli.app import main; main()", *map(str, arguments)],
        capture_output=True, text=True, timeout=120, check=False, **keys,
    )  # fmt: skip


# --- what is printed


@pytest.mark.slow
def test_run__json_is_the_last_line_of_stdout_and_progress_is_on_stderr(written, write_job, cli):
    formats = ["geotiff", "png", "report"]
    job = write_job(scene={"labels": "labels.tif"}, output={"formats": formats})
    done = command("run", job, "--json")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1
    found = json.loads(done.stdout)
    assert list(found) == KEYS
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(found, json.loads(result_schema()))
    assert json.loads(result_schema())["properties"]["schema"]["const"] == found["schema"]
    assert [stage["name"] for stage in found["stages"]] == NAMES
    for stage in found["stages"]:
        assert set(stage) == {"name", "seconds", "reused", "peak_bytes"}
        assert stage["seconds"] >= 0
        assert 20 * 2**20 < stage["peak_bytes"] < 2**30
    assert {"overall_accuracy", "average_accuracy", "kappa", "per_class"} <= found["scores"].keys()
    assert 0.9 < found["neighbors"]["recall"] <= 1
    assert {"values", "max_residual", "converged"} <= found["spectrum"].keys()
    assert len(found["spectrum"]["values"]) == 9
    assert found["spectrum"]["converged"] is True
    for name in ("class_map", "confidence", "eigenvectors", "legend", "quicklook"):
        assert os.path.isabs(found["outputs"][name])
        assert os.path.exists(found["outputs"][name])
    for name in NAMES:
        assert f"{name}: running" in done.stderr
    assert "\x1b" not in done.stderr
    again = cli("run", job, "--json")
    assert all(stage["reused"] for stage in json.loads(again.stdout)["stages"])
    assert "spectrum: reused" in again.stderr


def test_run__says_what_came_out(job, cli):
    result = cli("run", job)
    assert result.exit_code == 0
    for word in (
        "recall",
        "largest residual",
        "kappa",
        "held out",
        "random split",
        "class_map.tif",
    ):
        assert word in result.stdout
    assert "reused" in cli("run", job).stdout


def test_run__without_labels(written, write_job, cli):
    result = cli("run", write_job())
    assert result.exit_code == 0
    assert "eigenvectors.tif" in result.stdout
    assert "kappa" not in result.stdout
    assert json.loads(cli("run", write_job(), "--json").stdout)["scores"] == {}


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("method", ["spectral-clustering", "normalized-cut"])
def test_run__clusters_of_a_scene_without_labels(written, write_job, cli, method):
    job = write_job(learn={"method": method, "clusters": 4})
    result = cli("run", job)
    assert result.exit_code == 0, result.stderr
    for word in ("cluster", "Ncut", "two-way cut", "h <= ", "class_map.tif", "dimension"):
        assert word in result.stdout
    assert "agreement" not in result.stdout
    found = json.loads(cli("run", job, "--json").stdout)
    assert found["scores"]["clusters"] == 4
    sizes = [row["samples"] for row in found["scores"]["per_cluster"]]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(sizes) == (~written.hole).sum()
    with rasterio.open(found["outputs"]["class_map"]) as dataset:
        assert dataset.crs.to_epsg() == 32633
        assert np.bincount(dataset.read(1).ravel())[1:].tolist() == sizes
    assert "dimension" in cli("status", found["run"]).stdout


def test_run__clusters_agree_with_labels(job, finished_run, cli):
    result = cli("run", job, "--set", "learn.method=spectral-clustering")
    assert result.exit_code == 0, result.stderr
    for word in ("the classes of the labels", "ARI", "best match", "labelled samples"):
        assert word in result.stdout


def test_run__one_class_is_enough_for_clusters(job, cli, write_tif, small):
    write_tif("labels.tif", (small.labels == 2).astype(np.uint8))
    result = cli("run", job, "--set", "learn.method=normalized-cut", "--json")
    assert json.loads(result.stdout)["scores"]["clusters"] >= 2


@pytest.mark.slow
def test_run__says_what_lies_within_a_radius(job, finished_run, cli):
    result = cli("run", job, "--set", "neighbors.method=radius", "--set", "neighbors.radius=700")
    assert result.exit_code == 0, result.stderr
    assert "all within 700" in result.stdout


def test_run__when_nothing_is_held_out(job, finished_run, cli, write_tif):
    write_tif("marks.tif", np.ones((30, 40), np.uint8))
    result = cli("run", job, "--set", "learn.train=marks.tif")
    assert result.exit_code == 0, result.stderr
    assert "accuracy" in result.stdout


@pytest.mark.slow
def test_run__not_converged_keeps_the_results(job, finished_run, cli, monkeypatch):
    from eigenscape.spectrum.iteration import chebyshev, solvers

    monkeypatch.setattr(chebyshev, "MOST_PASSES", 1)
    monkeypatch.setattr(solvers, "DENSE_ROWS", 10)
    monkeypatch.setattr(solvers, "INERTIA_ROWS", 10)
    keys = ("spectrum.tolerance=1e-12", "spectrum.solver=chebyshev")
    for _ in range(2):
        result = cli("run", job, *(part for key in keys for part in ("--set", key)), "--json")
        assert result.exit_code == 3
        found = json.loads(result.stdout.splitlines()[-1])
        assert found["spectrum"]["converged"] is False
        assert found["spectrum"]["max_residual"] > 1e-12
        assert os.path.exists(found["outputs"]["class_map"])
        message = result.stderr.splitlines()[-1]
        for word in ("not converged", "largest residual", "spectrum.tolerance", "are kept"):
            assert word in message
    path = found["run"]
    assert json.loads(cli("status", path, "--json").stdout)["converged"] is False
    shown = cli("status", path, "--follow")
    assert shown.exit_code == 0
    assert "converged    no: the eigenvectors have not reached spectrum.tolerance" in shown.stdout
    listed = cli("status", os.path.dirname(path)).stdout
    assert f"{path}: run, finished, not converged" in listed.splitlines()
    entries = json.loads(cli("status", os.path.dirname(path), "--json").stdout)["runs"]
    assert sorted(one["converged"] for one in entries) == [False, True]


@pytest.mark.slow
def test_run__says_that_fields_have_not_converged(job, finished_run, cli, monkeypatch):
    from eigenscape.learn.propagate.fields import Fields

    monkeypatch.setattr(Fields, "warning", "the fields of the classes have not converged")
    arguments = ("run", job, "--set", "learn.method=tikhonov")
    shown = cli(*arguments)
    assert shown.exit_code == 0, shown.stderr
    assert "warning      the fields of the classes have not converged" in shown.stdout
    found = json.loads(cli(*arguments, "--json").stdout)
    assert found["warnings"] == ["the fields of the classes have not converged"]


def test_run__where_and_what_can_be_set(job, cli, tmp_path):
    result = cli(
        "run", job, "--run-dir", tmp_path / "here", "--set", "spectrum.dimension=5",
        "--set", "neighbors.method=exact", "--json",
    )  # fmt: skip
    found = json.loads(result.stdout)
    assert found["run"] == str(tmp_path / "here")
    assert len(found["spectrum"]["values"]) == 6
    assert found["neighbors"]["method"] == "exact"


def test_run__default_directory_is_below_the_working_directory(job, cli, tmp_path, monkeypatch):
    job.write_text(job.read_text().replace('directory = "runs"\n', ""))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    found = json.loads(cli("run", job, "--json").stdout)
    assert found["run"].startswith(str(tmp_path / "elsewhere" / "runs" / "job-"))


def test_run__on_a_cluster_file(job, cli, tmp_path):
    (tmp_path / "cluster.toml").write_text('kind = "threads"\n')
    result = cli("run", job, "--on", tmp_path / "cluster.toml", "--json")
    assert result.exit_code == 0


def test_plan__says_what_a_run_needs_and_reuses(job, cli):
    first = json.loads(cli("plan", job, "--json").stdout)
    assert [stage["name"] for stage in first["stages"]] == NAMES
    assert not any(stage["reused"] for stage in first["stages"])
    assert first["peak_bytes"] == max(stage["peak_bytes"] for stage in first["stages"])
    assert not os.path.exists(first["run"])
    cli("run", job)
    second = json.loads(cli("plan", job, "--json", "--set", "learn.train=0.5").stdout)
    reused = {stage["name"] for stage in second["stages"] if stage["reused"]}
    assert reused == set(NAMES) - {"learn", "export"}
    text = cli("plan", job).stdout
    for word in (
        "projected peak",
        "1200 samples x 20 bands -> 10 features",
        "eigensolver",
        "reused",
    ):
        assert word in text


def test_plan__refuses_what_cannot_fit(job, cli):
    result = cli("plan", job, "--set", "limits.memory=64MiB")
    assert result.exit_code == 2
    assert "limits.memory = 64.0 MiB" in result.stderr
    assert "projected peak" in result.stdout


def test_status__finished_unfinished_and_none(job, cli, tmp_path):
    cli("run", job, "--run-dir", tmp_path / "here")
    found = json.loads(cli("status", tmp_path / "here", "--json").stdout)
    assert found["state"] == "finished"
    assert [stage["state"] for stage in found["stages"]] == ["finished"] * 7
    assert "finished" in cli("status", tmp_path / "here").stdout
    run = Run(tmp_path / "here")
    del run.manifest["stages"]["export"], run.manifest["stages"]["learn"]
    run.save_manifest()
    run.workspace("learn", "aa")
    found = json.loads(cli("status", tmp_path / "here", "--json").stdout)
    assert [stage["state"] for stage in found["stages"]][-2:] == ["begun", "to do"]
    assert "unfinished" in found["state"]
    (tmp_path / "empty").mkdir()
    result = cli("status", tmp_path / "empty")
    assert result.exit_code == 2
    assert "no run directory" in result.stderr


def test_synth__writes_a_scene_that_runs(cli, tmp_path, write_job):
    result = cli("synth", "--height", 40, "--width", 50, "--bands", 12, "--classes", 3, "--seed", 1,
                 tmp_path / "s.tif")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert "40 x 50 x 12" in result.stdout
    with rasterio.open(tmp_path / "s.tif") as dataset:
        assert (dataset.height, dataset.width, dataset.count) == (40, 50, 12)
    job = write_job(scene={"path": "s.tif", "labels": "s_labels.tif"})
    assert cli("run", job).exit_code == 0


def test_schema_data_and_version(cli):
    assert "scene" in json.loads(cli("schema").stdout)["properties"]
    assert json.loads(cli("schema", "result").stdout) == json.loads(result_schema())
    listed = json.loads(cli("data", "list", "--json").stdout)
    assert "indian-pines" in {item["name"] for item in listed}
    assert "indian-pines" in cli("data", "list").stdout
    assert cli("--version").stdout.startswith("eigenscape ")


def test_help__names_every_command(cli):
    text = cli("--help").stdout
    for name in ("run", "plan", "status", "synth", "schema", "data"):
        assert name in text


# --- what is refused


def refuse(cli, job, *arguments):
    """Run a job that cannot work; return the message on stderr."""
    result = cli("run", job, *arguments, "--json")
    assert result.exit_code == 2, (result.exit_code, result.stdout, result.stderr)
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    messages = [line for line in result.stderr.splitlines() if line.startswith("eigenscape: ")]
    assert len(messages) == 1
    assert result.stderr.splitlines()[-1] == messages[0], (
        "the message is not one line, or not the last"
    )
    assert not list(job.parent.rglob("outputs"))
    return messages[0]


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("scene.path=scenes.tif", ["scene.path = 'scenes.tif'", "Did you mean scene.tif?"]),
        ("scene.labels=lables.tif", ["scene.labels = 'lables.tif'", "Did you mean labels.tif?"]),
        ("scene.mask=nomask.tif", ["scene.mask = 'nomask.tif'", "no such file"]),
        ("learn.train=nomarks.tif", ["learn.train = 'nomarks.tif'", "no such file"]),
        ("neighbors.kk=3", ["unknown key neighbors.kk", "neighbors.k?"]),
        ("spectrum.dimension=1172", ["spectrum.dimension = 1172", "1171 or less"]),
        ("limits.memory=100MiB", ["limits.memory = 100.0 MiB", "Set limits.memory to"]),
        ("scene.bad_bands=[21]", ["'21'", "1 to 20", "scene.bad_bands"]),
        ("scene.bad_bands=['1-20']", ["bad_bands", "20"]),
        ("scene.variable=cube", ["scene.variable = 'cube'"]),
        ("scene.nodata=nan", ["unused"]),
        ("learn.train=100000", ["learn.train = 100000", "labels of 4 classes"]),
        ("learn.train=3", ["learn.train = 3", "4"]),
    ],
)  # fmt: skip
def test_run__refuses_a_value(job, cli, override, words):
    if words == ["unused"]:
        # Unusual, but it works.
        assert cli("run", job, "--set", override).exit_code == 0
        return
    message = refuse(cli, job, "--set", override)
    for word in words:
        assert word in message, message


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("name", ["run", "plan", "tune", "submit"])
def test_commands__import_no_stage_for_a_typing_error(job, name):
    """What is wrong in a job file is printed at once."""
    arguments = [name, str(job), "--set", "learn.methd=k-nn"]
    arguments += ["--on", "ssh.toml"] if name == "submit" else []
    code = (
        "import sys; from eigenscape.cli.app import main\n"
        f"sys.argv = ['eigenscape', *{arguments}]\n"
        "try: main()\n"
        "finally: print([m for m in ('dask', 'numba', 'rasterio', 'scipy', 'zarr') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Did you mean learn.method?" in done.stderr
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("clusters", "words"),
    [(20, ["learn.clusters = 20", "dimension to 19"]), (1, ["learn.clusters = 1", "equal to 2"])],
)
def test_run__refuses_a_number_of_clusters(job, cli, write_job, clusters, words):
    job = write_job(learn={"method": "spectral-clustering", "clusters": clusters})
    message = refuse(cli, job)
    for word in words:
        assert word in message


def test_run__refuses_too_many_neighbours(cli, write_tif, write_job, make_scene):
    scene = make_scene(6, 7, 5)
    write_tif("scene.tif", scene.cube)
    message = refuse(cli, write_job(), "--set", "neighbors.k=42")
    for word in ("neighbors.k = 42", "the scene has 42 pixels", "41 or less"):
        assert word in message


@pytest.mark.parametrize("keep", [100, 0.5, 0.97])
def test_run__refuses_a_truncated_scene(job, cli, tmp_path, keep):
    path = tmp_path / "scene.tif"
    whole = path.read_bytes()
    path.write_bytes(whole[: keep if isinstance(keep, int) else int(keep * len(whole))])
    assert str(path) in refuse(cli, job)


def test_run__refuses_what_is_no_scene(job, cli, tmp_path):
    (tmp_path / "scene.tif").write_text("these are words")
    assert "scene.tif" in refuse(cli, job)
    (tmp_path / "scene.tif").write_bytes(b"")
    assert "scene.tif" in refuse(cli, job)


def test_run__refuses_a_scene_without_data(job, cli, write_tif, small):
    write_tif("scene.tif", small.cube, hole=np.ones((30, 40), bool))
    message = refuse(cli, job)
    for word in ("scene.tif", "no pixel is valid", "20 bands", "scene.nodata"):
        assert word in message


def test_run__refuses_a_band_without_data(job, cli, write_tif, small):
    cube = small.cube.copy()
    cube[..., 6] = np.nan
    write_tif("scene.tif", cube)
    assert "scene.bad_bands = [7]" in refuse(cli, job)


def test_run__refuses_identical_pixels(job, cli, write_tif):
    write_tif("scene.tif", np.full((30, 40, 3), 5, np.float32))
    assert "all valid pixels are identical" in refuse(cli, job)


def test_run__refuses_one_class(job, cli, write_tif, small):
    write_tif("labels.tif", (small.labels == 2).astype(np.uint8))
    message = refuse(cli, job)
    for word in ("one class only", "number 1", "two or more", "scene.labels"):
        assert word in message


def test_run__refuses_labels_elsewhere(job, cli, write_tif, small):
    far = rasterio.Affine(30, 0, 964095, 0, -30, 809965)
    write_tif("labels.tif", small.labels, transform=far)
    assert "do not overlap the scene" in refuse(cli, job)


@pytest.mark.parametrize(("value", "kind"), [(-1, "int16"), (70000, "int32"), (1.5, "float32")])
def test_run__refuses_a_label_that_is_no_class_number(job, cli, write_tif, small, value, kind):
    labels = small.labels.astype(kind)
    labels[20, 20] = value
    write_tif("labels.tif", labels)
    message = refuse(cli, job)
    assert str(value) in message
    assert "65535" in message


def test_run__refuses_an_output_that_is_a_file(job, cli, tmp_path):
    (tmp_path / "runs").write_text("in the way")
    message = refuse(cli, job)
    for word in (str(tmp_path / "runs"), "cannot be written", "output.directory"):
        assert word in message


def test_run__refuses_a_crs_that_cannot_be_read(job, cli, tmp_path, small):
    small.cube.tofile(tmp_path / "scene.img")
    (tmp_path / "scene.hdr").write_text(
        "ENVI\nsamples = 40\nlines = 30\nbands = 20\nheader offset = 0\ndata type = 4\n"
        "interleave = bip\nbyte order = 0\n"
        "map info = {Arbitrary, 1, 1, 0, 0, 1, 1, units=Meters}\n"
        'coordinate system string = {PROJCS["nonsense"}\n'
    )
    result = cli("run", job, "--set", "scene.path=scene.img", "--set", "scene.labels=")
    assert result.exit_code in (0, 2)
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('kind = "kubernetes"', ["kind = 'kubernetes'", "existing, htcondor, local"]),
        ('kind = "local"\nworkers = "two"', ["workers = 'two'", "integer"]),
        ("kind", ["cannot be read as a cluster file"]),
        ('kind = "existing"\nscheduler_file = "/no/such.json"', ["/no/such.json", "no such"]),
    ],
)
def test_run__refuses_a_cluster_file(job, cli, tmp_path, text, words):
    (tmp_path / "cluster.toml").write_text(text)
    message = refuse(cli, job, "--on", tmp_path / "cluster.toml")
    for word in words:
        assert word in message


@pytest.mark.slow
def test_run__refuses_a_scheduler_that_does_not_answer(job, cli):
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        message = refuse(cli, job, "--on", address)
    for word in (address, "no scheduler answers", "dask scheduler"):
        assert word in message


def test_run__refuses_a_damaged_run_directory(job, cli, tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "manifest.json").write_text("{")
    result = cli("run", job, "--run-dir", tmp_path / "here")
    assert result.exit_code == 1
    assert "Delete the run directory" in result.stderr


def test_plan__refuses_what_run_refuses(job, cli):
    for override in ("neighbors.k=0", "scene.path=absent.tif", "scene.bad_bands=[99]"):
        result = cli("plan", job, "--set", override)
        assert result.exit_code == 2
        assert result.stderr.startswith("eigenscape: ")


LONG = f"{'x' * 300}/scene"


@pytest.mark.parametrize("key", ["path", "labels", "mask"])
def test_paths__too_long_for_the_file_system(tmp_path, cli, written, write_job, key):
    done = cli("plan", write_job(scene={key: LONG}))
    assert done.exit_code == 2
    assert f"eigenscape: {tmp_path}" in done.stderr
    assert "longer than the file system allows" in done.stderr


@pytest.mark.parametrize("command", ["plan", "run", "status", "report", "verify"])
def test_paths__of_commands_too_long_for_the_file_system(cli, command):
    done = cli(command, LONG)
    assert done.exit_code == 2
    assert "longer than the file system allows" in done.stderr
