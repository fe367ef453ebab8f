import json

import pytest

from eigenscape.cli.kinds import kind_of
from eigenscape.store.run import Run


@pytest.mark.parametrize(
    ("file", "name", "many"),
    [
        ("batch.csv", "batch", True),
        ("study.json", "study", True),
        ("tune.json", "tuning", False),
        ("manifest.json", "run", False),
    ],
)
def test_kind_of__is_that_of_the_file_in_the_directory(tmp_path, file, name, many):
    assert kind_of(tmp_path) is None
    (tmp_path / file).write_text("")
    kind = kind_of(tmp_path)
    assert (kind.name, kind.rows is not None) == (name, many)


def test_follow__refuses_a_directory_of_many_runs(tmp_path, cli):
    (tmp_path / "batch.csv").write_text("scene,state\n")
    done = cli("status", tmp_path, "--follow")
    assert done.exit_code == 2
    assert "contains several runs, and --follow needs one" in done.stderr


def test_status_and_report__of_a_batch_without_scenes(tmp_path, cli):
    (tmp_path / "batch.csv").write_text("scene,state\n")
    assert f"no scene: {tmp_path / 'batch.csv'}" in cli("status", tmp_path).stdout
    assert json.loads(cli("status", tmp_path, "--json").stdout)["scenes"] == []
    assert str(tmp_path / "report.html") in cli("report", tmp_path).stdout
    assert (tmp_path / "report.html").exists()


def variant(path, *stages):
    path.mkdir(parents=True)
    (path / "log.jsonl").touch()
    run = Run(path)
    run.manifest["stages"] = {
        name: {"key": "aa", "seconds": 1, "peak_bytes": 1, "arrays": {}, "files": {}, "summary": {}}
        for name in stages
    }
    run.save_manifest()


def test_status_and_open__of_a_tuning(tmp_path, cli):
    tuned = tmp_path / "scene-tuned"
    variant(tuned / "variants" / "svm-1", "ingest", "choosing-blocked-0-4")
    variant(tuned / "variants" / "svm-2", "ingest")
    (tuned / "tune.json").write_text('{"spent_seconds": 12.3, "budget_seconds": 600}')
    shown = cli("status", tuned).stdout
    assert "tuning, unfinished: the same `eigenscape tune` continues it" in shown
    assert "1 job compared in 12 s of 600 s" in shown
    for command in ("open", "report"):
        refused = cli(command, tuned)
        assert refused.exit_code == 2
        assert "tuning unfinished: the same `eigenscape tune` continues it" in refused.stderr
    for name in ("best.toml", "table.csv", "accuracy.png"):
        (tuned / name).touch()
    found = json.loads(cli("status", tuned, "--json").stdout)
    assert (found["state"], found["compared"]) == ("finished", 1)
    outputs = json.loads(cli("open", tuned, "--json").stdout)["outputs"]
    assert outputs == found["outputs"]
    assert list(outputs) == ["job", "table", "plot"]
    assert f"{tuned}: tuning, finished" in cli("status", tmp_path).stdout.splitlines()
    with Run(tuned).lock(print):
        assert "works on it" in cli("status", tuned).stdout


def test_report_and_follow__of_a_tuning_say_what_to_do(tmp_path, cli):
    for name in ("tune.json", "best.toml"):
        (tmp_path / name).write_text("{}")
    refused = cli("report", tmp_path)
    assert refused.exit_code == 2
    assert "is the directory of a tuning, which has no report" in refused.stderr
    assert f"eigenscape run {tmp_path / 'best.toml'}" in refused.stderr
    refused = cli("status", tmp_path, "--follow")
    assert refused.exit_code == 2
    assert "--follow needs a run" in refused.stderr
