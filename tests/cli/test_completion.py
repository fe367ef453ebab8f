"""Completion in the shell: what the shell asks the command, and the command's answer."""

import os
import subprocess
import sys

import pytest

COMMAND = "import sys; sys.argv[0] = 'eigenscape'; from eigenscape.cli.app import main; main()"


def answer(*arguments, **asked):
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments],
        capture_output=True, text=True, timeout=120, env={**os.environ, **asked}, check=False,
    )  # fmt: skip
    return done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_show_completion__is_a_script_for_the_shell(shell):
    # Outside a terminal there is no shell to be found.
    text = answer("--show-completion", shell, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert f"_EIGENSCAPE_COMPLETE=complete_{shell}" in text


@pytest.mark.parametrize(
    ("line", "expected"), [("eigenscape ver", "verify"), ("eigenscape run --run", "--run-dir")]
)
def test_completion__commands_and_options(line, expected):
    count = str(len(line.split()) - 1)
    text = answer(_EIGENSCAPE_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=count)
    assert text.split() == [expected]
