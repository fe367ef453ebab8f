import pytest

from eigenscape.job.jobfile import load_job
from inputs.jobtexts import SCENE, refuse, write


@pytest.mark.parametrize(
    ("override", "table", "key", "value"),
    [
        ("neighbors.k=8", "neighbors", "k", 8),
        (" neighbors.k = 8", "neighbors", "k", 8),
        ("spectrum.tolerance=1e-7", "spectrum", "tolerance", 1e-7),
        ("features.method=pca", "features", "method", "pca"),
        ('features.method="pca"', "features", "method", "pca"),
        ("features.standardize=true", "features", "standardize", True),
        ("scene.bad_bands=[1, '104-108']", "scene", "bad_bands", (1, "104-108")),
        ("scene.path=b = c.tif", "scene", "path", "b = c.tif"),
        ("learn.train=0.25", "learn", "train", 0.25),
        ("learn.train=50", "learn", "train", 50),
        ("limits.memory=500 MB", "limits", "memory", "500 MB"),
        ("output.formats=['png']", "output", "formats", ("png",)),
        ('output."formats"=["png"]', "output", "formats", ("png",)),
    ],
)
def test_load_job__override(tmp_path, override, table, key, value):
    job = load_job(write(tmp_path, SCENE + "[neighbors]\nk = 5\n"), [override])
    found = getattr(getattr(job, table), key)
    assert found == value
    assert type(found) is type(value)


def test_load_job__last_override_wins(tmp_path):
    assert load_job(write(tmp_path, SCENE), ["neighbors.k=8", "neighbors.k=9"]).neighbors.k == 9


@pytest.mark.parametrize(
    "override", ["neighbors.k", "k=8", "=8", "neighbors.=8", ".k=8", "a.b.c=8", "", "neighbors"]
)
def test_load_job__override_of_a_wrong_form(tmp_path, override):
    message = refuse(tmp_path, SCENE, override)
    assert f"--set {override}" in message
    assert "neighbors.k=8" in message


def test_load_job__override_of_an_unknown_key(tmp_path):
    assert "Did you mean neighbors.k?" in refuse(tmp_path, SCENE, "neighbors.kk=8")
    assert "not a table" in refuse(tmp_path, "scene = 'a.tif'", "scene.path=b.tif")


def test_load_job__names_the_override_that_is_wrong(tmp_path):
    message = refuse(tmp_path, SCENE, "neighbors.k=0")
    assert "--set" in message, message
