import pytest

from eigenscape.base.files.names import own_path


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("link.tif", "link.tif"),
        ("folder/a.tif", "store/deep/a.tif"),
        ("folder/../b.tif", "store/b.tif"),
        ("folder/..", "store"),
        ("folder/", "folder"),
        ("loop", "loop"),
        ("none/./x", "none/x"),
    ],
)
def test_own_path__follows_links_among_the_folders_alone(tmp_path, monkeypatch, given, meant):
    (tmp_path / "store" / "deep").mkdir(parents=True)
    for name, target in (("folder", "store/deep"), ("link.tif", "store/1.tif"), ("loop", "loop")):
        (tmp_path / name).symlink_to(target)
    assert own_path(tmp_path / given) == str(tmp_path / meant)
    monkeypatch.chdir(tmp_path)
    assert own_path(given) == str(tmp_path / meant)
