import json

import pytest

from eigenscape.cli.kinds import kind_of


@pytest.mark.parametrize(
    ("file", "name", "many"),
    [
        ("batch.csv", "batch", True),
        ("study.json", "study", True),
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
