import json
import os
import shutil

import filelock
import pytest

from eigenscape.errors import InputError
from eigenscape.schedule.prune import prune_runs
from eigenscape.store.manifest import changed_ns, date_after_others
from eigenscape.workflow.directories import status
from machines.users import another_user, shared_directory


def test_prune_runs__keeps_the_newest_finished_of_each_job(make_run, tmp_path):
    old = [make_run("a", key, minute) for minute, key in enumerate("12345")]
    other = make_run("b", "1", 0)
    begun = make_run("a", "6", 9, finished=False)
    pruned = prune_runs(tmp_path / "runs", 2)
    assert sorted(pruned.deleted) == old[:3]
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"a-4", "a-5", "a-6", "b-1"}
    assert (begun, "not finished") in pruned.kept
    assert (other, "among the newest") in pruned.kept
    assert prune_runs(tmp_path / "runs", 2).deleted == ()
    assert prune_runs(tmp_path / "runs", 1, names={"b"}).deleted == ()


def test_prune_runs__of_each_scene_of_a_name(make_run, tmp_path):
    north = [make_run("a", key, int(key), scene="/north/s.tif") for key in "12"]
    south = [make_run("a", key, int(key), scene=["/south/1.tif", "/south/2.tif"]) for key in "34"]
    unknown = [make_run("a", key, int(key)) for key in "56"]
    (unknown[0] / "job.toml").unlink()
    (unknown[1] / "job.toml").write_text("scene = 3")
    assert prune_runs(tmp_path / "runs", 1).deleted == (south[0], north[0])
    assert all(path.exists() for path in (north[1], south[1], *unknown))


def test_prune_runs__of_each_model_on_a_scene(make_run, tmp_path):
    early, late, other = (
        make_run(name, key, 0, parent="models")
        for name, key in (("m", "1"), ("m", "2"), ("o", "1"))
    )
    first, second, third = (
        make_run("map", str(minute), minute, applies={"run": str(model)})
        for minute, model in enumerate((early, late, other))
    )
    # A model that was trained again is that of the same job.
    assert prune_runs(tmp_path / "runs", 1).deleted == (first,)
    early.rename(early.with_name("gone"))
    late.rename(late.with_name("away"))
    lost = make_run("map", "9", 9, applies={"run": str(early)})
    assert prune_runs(tmp_path / "runs", 1).deleted == ()
    assert all(path.exists() for path in (second, third, lost))


def test_prune_runs__never_one_that_is_in_use_or_referred_to(make_run, tmp_path):
    held, linked, applied, old, newest = (make_run("a", key, int(key)) for key in "12345")
    make_run("map", "1", 0, applies={"run": str(applied)})
    (tmp_path / "runs" / "best").symlink_to(linked)
    with filelock.FileLock(held / "lock"):
        dry = prune_runs(tmp_path / "runs", 1, dry=True)
        assert old.exists()
        pruned = prune_runs(tmp_path / "runs", 1)
    assert dry == pruned
    assert pruned.deleted == (old,)
    kept = dict(pruned.kept)
    assert kept[held] == "in use"
    assert kept[linked] == kept[applied] == "referred to"
    assert newest.exists()
    assert all(path.exists() for path in (held, linked, applied))


@pytest.mark.parametrize("copied", [False, True])
def test_prune_runs__what_a_run_applies_stays_after_a_move(make_run, tmp_path, copied):
    model, old, newest = (make_run("a", key, int(key)) for key in "123")
    make_run("map", "1", 0, applies={"run": str(model)})
    moved = tmp_path / "moved"
    (shutil.copytree if copied else os.rename)(tmp_path / "runs", moved)
    pruned = prune_runs(moved, 1)
    assert pruned.deleted == (moved / old.name,)
    assert dict(pruned.kept)[moved / model.name] == "referred to"
    assert (moved / newest.name).exists()


def test_prune_runs__of_a_batch_what_its_table_names_stays(make_run, tmp_path):
    current = make_run("tile", "1", 1, parent="batch/scenes")
    newer = make_run("tile", "2", 2, parent="batch/scenes")
    newest = make_run("tile", "3", 3, parent="batch/scenes")
    (tmp_path / "batch" / "batch.csv").write_text(f"scene,state,run\ntile,done,{current}\n")
    (tmp_path / "batch").rename(tmp_path / "moved")
    scenes = tmp_path / "moved" / "scenes"
    assert prune_runs(tmp_path / "moved", 1).deleted == (scenes / newer.name,)
    assert {path.name for path in scenes.iterdir()} == {current.name, newest.name}


def test_prune_runs__finishes_what_was_cut_and_leaves_studies(make_run, tmp_path):
    half = make_run("a", "1", 1).rename(tmp_path / "runs" / ".a-1.discarded")
    study = make_run("v", "1", 1, parent="runs/study/variants")
    prune_runs(tmp_path / "runs", 0)
    assert not half.exists()
    assert study.exists()


def test_prune_runs__the_newest_is_the_last_where_the_clock_was_set_back(make_run, tmp_path):
    old, new = make_run("a", "1", 60), make_run("a", "2", 0)
    make_run("ab", "1", 90)
    date_after_others(new, "a")
    assert prune_runs(tmp_path / "runs", 1).deleted == (old,)
    date_after_others(new, "a")  # alone: nothing to do
    assert new.exists()


def test_prune_runs__the_newest_is_the_last_in_directories_of_any_name(make_run, tmp_path):
    old, new = (
        make_run("a", day, minute).rename(tmp_path / "runs" / day)
        for day, minute in (("mon", 60), ("tue", 0))
    )
    make_run("ab", "1", 90)  # of another job
    (make_run("c", "1", 90) / "manifest.json").write_text("{")
    date_after_others(new, "a")
    assert changed_ns(old) < changed_ns(new) < int((1.7e9 + 60 * 90) * 1e9)
    assert prune_runs(tmp_path / "runs", 1).deleted == (old,)


def test_prune_runs__names_as_long_as_a_file_system_takes(make_run, tmp_path):
    old, new = (make_run("a" * 253, key, minute) for minute, key in enumerate("12"))
    pruned = prune_runs(tmp_path / "runs", 1)
    assert (pruned.deleted, pruned.failed) == ((old,), ())
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [new.name]


def test_prune__says_what_it_would_do(make_run, tmp_path, cli):
    old, new = make_run("a", "1", 1), make_run("a", "2", 2)
    done = cli("prune", tmp_path / "runs", "--keep", 1, "--dry-run", "--json")
    assert json.loads(done.stdout) == {
        "deleted": [str(old)],
        "kept": [{"run": str(new), "because": "among the newest"}],
        "failed": [],
    }
    assert f"deleted  {old}" in cli("prune", tmp_path / "runs", "--keep", 1).stdout
    assert not old.exists()


@pytest.mark.parametrize(("where", "said"), [("none", "no such"), ("runs/a-1", "is a run itself")])
def test_prune_runs__refuses_what_holds_no_runs(make_run, tmp_path, where, said):
    make_run("a", "1", 1)
    with pytest.raises(InputError, match=said):
        prune_runs(tmp_path / where, 1)


def test_prune_runs__leaves_whole_what_another_user_may_not_delete(make_run, cli):
    with shared_directory() as shared:
        shared.chmod(0o777)
        own, readable, theirs, private, folder = (
            make_run("a", key, int(key), parent=shared) for key in "12345"
        )
        held, newest = (make_run("a", key, int(key), parent=shared) for key in "67")
        for lock in (readable / "lock", held / "lock"):
            lock.touch()
        for path in (own, folder, *folder.rglob("*"), *own.rglob("*")):
            os.chown(path, 65534, 65534)
        os.chown(folder / "outputs", 0, 0)
        private.chmod(0o700)
        with filelock.FileLock(held / "lock"), another_user():
            dry = prune_runs(shared, 1, dry=True)
            assert own.exists()
            pruned = prune_runs(shared, 1)
            assert status(held)["holder"] == "another process"
            again = cli("prune", shared, "--keep", 1)
        assert dry == pruned
        assert pruned.deleted == (own,)
        kept, failed = dict(pruned.kept), dict(pruned.failed)
        assert kept[held] == "in use"
        assert kept[newest] == "among the newest"
        assert kept[private] == f"{private}/manifest.json: Permission denied"
        assert failed == {
            readable: f"{readable}/lock cannot be written: it belongs to another user",
            theirs: f"{theirs} cannot be written: it belongs to another user",
            folder: f"{folder}/outputs cannot be written: it belongs to another user",
        }
        assert again.exit_code == 2
        assert f"not deleted  {theirs}: {theirs} cannot be written" in again.stdout
        assert "3 runs could not be deleted" in again.stderr
        assert all(status(path)["state"] == "finished" for path in failed)


def test_prune_runs__below_a_directory_that_cannot_be_written(make_run, cli):
    with shared_directory() as shared:
        run = make_run("a", "1", 1, parent=shared)
        for path in (run, *run.rglob("*")):
            os.chown(path, 65534, 65534)
        with another_user():
            ((path, why),) = prune_runs(shared, 0).failed
        assert (path, why) == (run, f"{shared} cannot be written: it belongs to another user")
        # As /tmp: who owns neither the directory nor the run may not rename it.
        shared.chmod(0o1777)
        os.chown(run, 12345, -1)
        run.chmod(0o777)
        with another_user():
            ((_, why),) = prune_runs(shared, 0).failed
        assert why == f"{run} belongs to another user, who alone may delete it"
        assert (run / "manifest.json").exists()
        shared.chmod(0o700)
        with another_user():
            refused = cli("prune", shared, "--keep", 0)
        assert refused.exit_code == 2
        assert (
            "the system refuses it (Permission denied). Give a path that you may" in refused.stderr
        )


def test_prune_runs__on_a_file_system_that_is_read_only(make_run, monkeypatch):
    run = make_run("a", "1", 1)
    (run / "lock").touch()

    class ReadOnly:
        f_flag = os.ST_RDONLY

    monkeypatch.setattr(os, "access", lambda path, mode, **_: not mode & os.W_OK)
    why = f"{run}/lock cannot be written"
    assert prune_runs(run.parent, 0).failed == ((run, why),)
    monkeypatch.setattr(os, "statvfs", lambda path: ReadOnly)
    assert prune_runs(run.parent, 0).failed == ((run, f"{why}: its file system is read-only"),)
