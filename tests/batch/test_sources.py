import json
from pathlib import Path

import pytest

from eigenscape.batch.sources import Source
from eigenscape.errors import InputError, JobError

TABLE = """\
# of the campaign in May
name,scene.path,scene.labels,neighbors.k,learn.train
east,tiles/a.npy,,7,0.5
,tiles/b.npy,,,all
west,,,5,
north,"[""tiles/a.npy"", ""/data/b.npy""]",,many,split.npy
,indian-pines,,,
"""


@pytest.fixture(scope="module")
def scenes(write_scenes):
    return write_scenes()


def find(source):
    return source.find(Path("runs", "many")).scenes


def test_find__a_pattern_gives_sorted_scenes_with_names_of_their_own(scenes, source_of):
    (scenes / "tiles" / "more").mkdir()
    (scenes / "tiles" / "more" / "a.npy").touch()
    found = find(source_of(scenes, scenes=str(scenes / "tiles" / "**" / "*.npy")))
    names = [scene.name for scene in found]
    assert names[1:3] == ["b", "c"]
    assert len(set(names)) == 4
    assert names[0].startswith("a-")
    assert names[3].startswith("a-")
    assert found[1].job.scene.path == str(scenes / "tiles" / "b.npy")
    assert found[1].job.resolve(found[1].job.scene.labels) == str(scenes / "labels.npy")
    # One that is alone with its stem keeps its name when others arrive.
    assert [scene.name for scene in find(source_of(scenes))] == ["a", "b", "c"]
    assert find(source_of(scenes, overrides=("neighbors.k=9",)))[0].job.neighbors.k == 9


def test_find__long_names_leave_room_for_what_is_added(tmp_path, scenes, source_of):
    stems = ["大" * 80 + "东", "大" * 80 + "西", "ж" * 90, "a" * 200]
    for stem in stems:
        (tmp_path / f"{stem}.npy").touch()
    found = find(source_of(scenes, scenes=str(tmp_path / "*.npy")))
    names = [scene.name for scene in found]
    assert len({*names}) == 4
    assert {"ж" * 80, "a" * 80} < {*names}
    for name in names:
        (tmp_path / f"{name}-0123456789-choice").mkdir()


def test_find__results_are_no_scenes_of_a_pattern(tmp_path, scenes, source_of):
    batch, run = tmp_path / "runs" / "many", tmp_path / "other" / "scene-0123456789"
    for folder in (tmp_path, tmp_path / "runs", batch / "failures", run / "outputs"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{folder.name}.npy").touch()
    (run / "manifest.json").touch()
    source = source_of(scenes, scenes=str(tmp_path / "**" / "*.npy"))
    # What has a manifest alone may be of another program.
    assert source.find(batch).left_out == 1
    (run / "store.zarr").mkdir()
    found = source.find(batch)
    assert found.left_out == 2
    assert [Path(scene.job.scene.path).parent for scene in found.scenes] == [
        tmp_path / "runs",
        tmp_path,
    ]


def test_find__a_link_is_a_scene_under_its_own_name_unless_to_a_result(tmp_path, scenes, source_of):
    for name, target in (("b2020", scenes / "tiles" / "a.npy"), ("map", tmp_path / "many" / "c")):
        (tmp_path / f"{name}.npy").symlink_to(target)
    (tmp_path / "sites.csv").write_text("scene.path\nb2020.npy\n")
    pattern = source_of(scenes, scenes=str(tmp_path / "*.npy"))
    table = source_of(scenes, scenes=None, table=tmp_path / "sites.csv")
    for source in (pattern, table):
        (found,) = source.find(tmp_path / "many").scenes
        assert found.name == "b2020"
        assert found.job.resolve(found.job.scene.path) == str(tmp_path / "b2020.npy")


def test_find__a_table_gives_keys_and_paths_relative_to_itself(scenes, source_of):
    table = scenes / "scenes.csv"
    table.write_text(TABLE)
    found = {s.name: s for s in find(source_of(scenes, scenes=None, table=table))}
    assert list(found) == ["east", "b", "west", "north", "indian-pines"]
    assert found["east"].job.scene.path == str(scenes / "tiles" / "a.npy")
    assert found["east"].job.neighbors.k == 7
    assert found["east"].job.learn.train == 0.5
    assert found["b"].job.learn.train == "all"
    assert found["b"].job.neighbors.k == 6
    assert found["b"].job.name == "b"
    assert found["west"].error.endswith("the row has no scene.path.")
    assert found["north"].job is None
    assert "neighbors.k = 'many'" in found["north"].error
    assert found["indian-pines"].job.scene.path == "indian-pines"


def test_find__a_table_of_a_spreadsheet_may_have_semicolons(scenes, source_of):
    table = scenes / "semicolons.csv"
    table.write_text("scene.path;neighbors.k\ntiles/a.npy;7\n")
    (found,) = find(source_of(scenes, scenes=None, table=table))
    assert (found.name, found.job.neighbors.k) == ("a", 7)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("scene.path,neighbors.kk\na,1\n", r"column neighbors.kk: unknown key.*neighbors.k\?"),
        ("scene.labels\na\n", "has no column scene.path"),
        ("name,scene.path\nx,a\nx,b\n", "name 'x' stands in 2 rows"),
    ],
)
def test_find__refuses_a_table_that_is_wrong_for_all(scenes, source_of, text, said):
    table = scenes / "wrong.csv"
    table.write_text(text)
    with pytest.raises(InputError, match=said):
        find(source_of(scenes, scenes=None, table=table))


def test_find__of_job_files_a_wrong_one_fails_alone(scenes):
    good = scenes / "good.toml"
    good.write_text(f"[scene]\npath = {json.dumps(str(scenes / 'tiles' / 'a.npy'))}\n")
    wrong, study = scenes / "wrong.toml", scenes / "study.toml"
    wrong.write_text("[scene]\npath = 3\n")
    study.write_text('[scene]\npath = "a"\n[study.grid]\nneighbors.k = [1, 2]\n')
    found = find(Source(jobs=(good, wrong, study)))
    assert [scene.name for scene in found] == ["good", "wrong", "study"]
    assert found[0].error is None
    assert "scene.path = 3" in found[1].error
    assert "is a study" in found[2].error
    with pytest.raises(JobError, match="is a study"):
        Source(template=study, scenes="*").first_job()


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({}, "No scenes"),
        ({"scenes": "*.tif"}, "--scenes needs --template"),
        ({"template": "t.toml"}, "given are neither"),
        ({"template": "t.toml", "scenes": "*", "table": "t.csv"}, "scenes and table"),
        ({"template": "t.toml", "scenes": "a.tif", "jobs": ("b.tif",)}, "put it in quotes"),
    ],
)
def test_source__says_what_goes_together(keys, said):
    with pytest.raises(InputError, match=said):
        Source(**keys)


def test_find__a_table_may_name_the_geometry_of_each_scene(scenes, source_of):
    table = scenes / "scenes.csv"
    table.write_text("scene.path,scene.geometry\ntiles/a.npy,a_glt\ntiles/b.npy,none\n")
    first, second = find(source_of(scenes, scenes=None, table=table))
    assert first.job.scene.geometry == str(scenes / "a_glt")
    assert second.job.scene.geometry == "none"
