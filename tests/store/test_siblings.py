from eigenscape.store.manifest import Record
from eigenscape.store.run import Run
from eigenscape.store.siblings import Siblings, beside


def commit(path, key, stage="graph"):
    run = Run(path)
    workspace = run.workspace(stage, key)
    run.commit(stage, workspace, Record(key, 0.0, 0, (), (), {}))
    return run


def found(siblings, key, exclude, stage="graph"):
    return [run.path.name for run in siblings.find(stage, key, exclude=exclude)]


def test_siblings__find_by_key_newest_first(tmp_path):
    for name in ("one", "two", "other"):
        commit(tmp_path / name, "other" if name == "other" else "key")
    (tmp_path / "no run").mkdir()
    siblings = beside(tmp_path / "new")
    assert found(siblings, "key", tmp_path / "new") == ["two", "one"]
    assert found(siblings, "key", tmp_path / "two") == ["one"]
    assert found(siblings, "key", tmp_path / "new", "spectrum") == []


def test_siblings__see_what_changed_since(tmp_path):
    siblings = beside(tmp_path / "new")
    assert found(siblings, "key", tmp_path / "new") == []
    run = commit(tmp_path / "one", "key")
    assert found(siblings, "key", tmp_path / "new") == ["one"]
    run.commit("graph", run.workspace("graph", "later"), Record("later", 0.0, 0, (), (), {}))
    assert found(siblings, "key", tmp_path / "new") == []
    assert found(siblings, "later", tmp_path / "new") == ["one"]
    (tmp_path / "one" / "manifest.json").write_text("{", encoding="utf-8")
    assert found(siblings, "later", tmp_path / "new") == []


def test_siblings__no_directory_yet(tmp_path):
    assert found(beside(tmp_path / "none" / "run"), "key", tmp_path) == []


def test_siblings__manifests_are_read_once(tmp_path, monkeypatch):
    from eigenscape.store import siblings as module

    commit(tmp_path / "one", "key")
    read, reads = module._keys, []
    monkeypatch.setattr(module, "_keys", lambda path: reads.append(path) or read(path))
    several = Siblings(tmp_path.iterdir)
    for _ in range(3):
        assert found(several, "no such key", tmp_path) == []
    assert len(reads) == 1


def test_siblings__a_manifest_that_names_a_key_in_vain_is_none(tmp_path):
    """Keys are sought in the text; whether they are those of finished stages is seen afterwards."""
    run = commit(tmp_path / "one", "key")
    manifest = run.path / "manifest.json"
    whole = manifest.read_text(encoding="utf-8")
    manifest.write_text(whole.replace('"key": "key"', '"key": "other"'), encoding="utf-8")
    assert found(beside(tmp_path / "new"), "other", tmp_path) == []
    manifest.write_text(whole, encoding="utf-8")
    assert found(beside(tmp_path / "new"), "key", tmp_path) == ["one"]
