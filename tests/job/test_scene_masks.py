"""``scene.mask``: names of flags and of files in one key."""

import json

import pytest

from eigenscape.job.files.named import with_files
from eigenscape.job.scene import FLAGS, SceneOptions


@pytest.mark.parametrize(
    ("mask", "flags", "files"),
    [
        (None, (), ()),
        ("clouds", ("clouds",), ()),
        ("none", ("none",), ()),
        ("m.tif", (), ("m.tif",)),
        ("./clouds", (), ("./clouds",)),
        (["snow", "m.tif", "cirrus"], ("snow", "cirrus"), ("m.tif",)),
    ],
)
def test_mask__flags_and_files(mask, flags, files):
    options = SceneOptions(path="scene.tif", mask=mask)
    assert (options.mask_flags, options.mask_files) == (flags, files)
    moved = with_files("scene.mask", options.mask, lambda name: f"/x/{name}")
    again = SceneOptions(path="scene.tif", mask=moved)
    assert again.mask_flags == flags
    assert again.mask_files == tuple(f"/x/{name}" for name in files)
    assert SceneOptions.model_validate_json(options.model_dump_json()) == options


def test_flags__are_named_in_the_page_of_products():
    from pathlib import Path

    page = (Path(__file__).parents[2] / "jobs" / "SENSORS.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in page for name in FLAGS), json.dumps(FLAGS)
