import csv

from eigenscape.job.jobfile import load_job, parse_job
from eigenscape.tuning.report import write_job, write_tried
from eigenscape.workflow.choice.candidates import candidate
from eigenscape.workflow.choice.tried import Tried

SCENE = {"path": "scene.tif", "labels": "labels.tif"}


def written(tmp_path, table):
    """Return a job as it is read from the file that is written of it."""
    job = parse_job(table, base=tmp_path / "given")
    path = tmp_path / "best.toml"
    write_job(path, job, ["first", "second"])
    assert path.read_text().startswith("# first\n# second\n")
    return job, load_job(path)


def test_write_job__files_are_found_from_any_directory(tmp_path):
    table = {
        "scene": {**SCENE, "geometry": "scene_glt", "mask": ["clouds", "mask.tif"]},
        "graph": {"potential": {"labels": "own.tif"}},
        "learn": {"method": "k-nn", "test": "test.tif"},
    }
    _, found = written(tmp_path, table)
    given = tmp_path / "given"
    assert found.scene.geometry == str(given / "scene_glt")
    assert found.scene.mask == ("clouds", str(given / "mask.tif"))
    assert found.graph.potential.labels == str(given / "own.tif")
    assert found.learn.test == str(given / "test.tif")


def test_write_job__names_of_classes_may_have_dots(tmp_path):
    table = {
        "preset": "halevy-2011",
        "scene": {**SCENE, "classes": {1: "corn.min", 2: "soil"}, "bad_bands": [1, "3-4"]},
        "output": {"colors": {"corn.min": "#ff0000", "2": [0, 1, 2]}},
    }
    job, found = written(tmp_path, table)
    assert found.output.colors == job.output.colors
    assert found.scene.classes == job.scene.classes
    assert found.scene.bad_bands == (1, "3-4")
    assert found.preset == "halevy-2011"


def test_write_tried__a_job_whose_draws_test_nothing_was_tried(tmp_path):
    job = parse_job({"scene": SCENE})
    given, other = candidate(job, {}), candidate(job, {"neighbors.k": 4})
    tried = [Tried(given, "as given", drawn=4), Tried(other, "k")]
    write_tried(tmp_path / "table.csv", tried, given, given)
    with (tmp_path / "table.csv").open(encoding="utf-8", newline="") as stream:
        assert [row["state"] for row in csv.DictReader(stream)] == ["finished", "to do"]


def test_write_tried__says_of_what_is_far_behind_that_it_was_left(tmp_path):
    job = parse_job({"scene": SCENE})
    given, other = candidate(job, {}), candidate(job, {"learn.method": "svm"})
    left = Tried(other, "classifier", accuracy=[0.7, 0.6], drawn=2, far_behind=True)
    write_tried(tmp_path / "table.csv", [left], given, given)
    with (tmp_path / "table.csv").open(encoding="utf-8", newline="") as stream:
        (row,) = csv.DictReader(stream)
    assert (row["state"], row["draws"]) == ("far behind", "2")
