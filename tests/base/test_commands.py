import shlex
from pathlib import Path

import pytest

from eigenscape.base.commands import command_line


@pytest.mark.parametrize("path", ["/tmp/w 3 äöü/job.toml", "it's.toml", "plain.toml", "a$b*.tif"])
def test_command_line__is_read_back_by_a_shell(path):
    line = command_line("plan", Path(path), "--browser")
    assert shlex.split(line) == ["eigenscape", "plan", path, "--browser"]
    assert ("'" in line) == (path != "plain.toml")


@pytest.mark.slow
def test_messages__suggest_commands_that_can_be_copied(written, write_job, cli, tmp_path):
    job = write_job("my job", scene={"labels": "labels.tif"})
    assert f"`eigenscape run '{job}'` starts it" in cli("status", job).stderr
    path = tmp_path / "runs in a row" / "first"
    done = cli("run", job, "--run-dir", path, "--set", 'output.formats=["report"]')
    assert f"To open the report: eigenscape open '{path}' --browser" in done.stdout
    cli("run", job, "--run-dir", path)
    assert f"`eigenscape report '{path}'` writes one" in cli("open", path, "--browser").stderr
