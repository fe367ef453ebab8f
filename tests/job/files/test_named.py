import pytest

from eigenscape.job.files.named import NAMED_FILES, job_with_files
from eigenscape.job.jobfile import parse_job
from eigenscape.job.study import flatten

POTENTIALS = {"labels": "own.tif"}, {"raster": "v.tif"}


@pytest.mark.parametrize("potential", POTENTIALS)
def test_job_with_files__changes_every_file_that_a_job_names(potential):
    table = {
        "scene": {
            "path": ["a.tif", "b.tif"], "labels": "labels.tif", "mask": ["clouds", "mask.tif"],
            "geometry": "scene_glt",
        },
        "graph": {"potential": potential},
        "learn": {"method": "k-nn", "train": "train.tif", "test": "test.tif"},
        "output": {"directory": "runs"},
    }  # fmt: skip
    job = job_with_files(parse_job(table), lambda path: f"/x/{path}")
    found = dict(flatten(job.model_dump(exclude_unset=True)))
    (name,) = potential
    assert {key: found[key] for key in NAMED_FILES if key in found} == {
        "scene.path": ("/x/a.tif", "/x/b.tif"),
        "scene.labels": "/x/labels.tif",
        "scene.mask": ("clouds", "/x/mask.tif"),
        "scene.geometry": "/x/scene_glt",
        "learn.train": "/x/train.tif",
        "learn.test": "/x/test.tif",
        f"graph.potential.{name}": f"/x/{potential[name]}",
        "output.directory": "/x/runs",
    }


def test_job_with_files__leaves_words_and_numbers():
    table = {
        "scene": {"path": "a.tif", "mask": "clouds"},
        "graph": {"potential": {"labels": "train"}},
        "learn": {"method": "k-nn", "train": 0.5},
    }
    job = parse_job(table)
    changed = job_with_files(job, lambda path: f"/x/{path}")
    assert changed.scene.path == "/x/a.tif"
    changed = changed.model_copy(update={"scene": job.scene})
    assert changed == job
    assert changed.to_toml() == job.to_toml()
