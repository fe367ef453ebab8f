"""Forks of tests/helpers/forks.py end and work as interpreters of their own do."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from forks import Fork, fork_python, serving, write_program
from waiting import wait_until

pytestmark = pytest.mark.slow

TELL = """\
import os, sys
print(*sys.argv, os.getcwd(), os.environ.get("TOLD"), sys.path[0], "eigenscape.cli.app" in sys.modules)
print(__name__, sys.stdin.read(), file=sys.stderr)
"""


def ended(*arguments, **files):
    """Give a command to an interpreter and to a fork; return what both came to, the fork last."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    own = subprocess.run([sys.executable, *arguments], text=True, check=False, **pipes, **files)
    return own, fork_python(*arguments, **files)


def test_fork__has_arguments_directory_environment_and_files(tmp_path):
    around = {**os.environ, "TOLD": "a b"}
    own, fork = ended("-c", TELL, "one", "-two", cwd=tmp_path, env=around)
    assert own.stdout == f"-c one -two {tmp_path} a b  False\n"
    assert fork.stdout == own.stdout.replace("False", "True")
    assert fork.stderr == own.stderr == "__main__ \n"
    (tmp_path / "told.py").write_text(TELL)
    own, fork = ended("-m", "told", "one", cwd=tmp_path, env=around)
    assert fork.stdout == own.stdout.replace("False", "True")


@pytest.mark.parametrize("code", [
    "", "import sys; sys.exit(3)", "import sys; sys.exit('no')", "1 / 0",
    "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "import os, signal; os.kill(os.getpid(), signal.SIGINT)",
    "import atexit; atexit.register(print, 'left'); exit(4)",
])  # fmt: skip
def test_fork__ends_as_an_interpreter_does(code):
    own, fork = ended("-c", code)
    assert (fork.returncode, fork.stdout) == (own.returncode, own.stdout)
    assert fork.stderr.splitlines()[-1:] == own.stderr.splitlines()[-1:]


def test_fork__command_line_and_its_errors(tmp_path):
    own, fork = ended("-m", "eigenscape", "status", tmp_path)
    assert fork.returncode == 2
    assert (fork.returncode, fork.stdout, fork.stderr) == (own.returncode, own.stdout, own.stderr)


def test_fork__signals_and_time():
    fork = Fork(["-c", "import time; print('here', flush=True); time.sleep(60)"],
                stdout=subprocess.PIPE)  # fmt: skip
    assert fork.stdout.readline() == "here\n"
    assert fork.poll() is None
    assert os.getsid(fork.pid) == fork.pid
    with pytest.raises(TimeoutError):
        fork.wait(0.1)
    fork.send_signal(signal.SIGTERM)
    assert fork.communicate(60) == ("", None)
    assert fork.returncode == fork.wait() == fork.poll() == -signal.SIGTERM


@pytest.mark.parametrize("change", [{"OPENBLAS_NUM_THREADS": "2"}, {"PYTHONUNBUFFERED": "x"}])
def test_fork__what_is_read_when_python_loads_gets_an_interpreter_of_its_own(change):
    code = "import os, sys; print('eigenscape' in sys.modules, *sys.argv)"
    done = fork_python("-c", code, "a", env={**os.environ, **change})
    assert done.stdout == "False -c a\n"


def test_fork__another_eigenscape_on_the_path_is_the_one_that_is_loaded(tmp_path):
    (tmp_path / "eigenscape").mkdir()
    (tmp_path / "eigenscape" / "__init__.py").write_text("")
    code = "import eigenscape; print(eigenscape.__file__)"
    done = fork_python("-c", code, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert done.stdout == f"{tmp_path}/eigenscape/__init__.py\n"


def test_program__gives_a_command_and_ends_it_when_it_is_killed(tmp_path):
    program = write_program(tmp_path / "told", "-c", TELL)
    done = subprocess.run([program, "a b"], input="x", capture_output=True, text=True, check=True)
    assert done.stdout.startswith("-c a b ")
    assert done.stderr == "__main__ x\n"
    code = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    program = write_program(tmp_path / "slow", "-c", code)
    with subprocess.Popen([program], stdout=subprocess.PIPE, text=True) as client:
        pid = int(client.stdout.readline())
        client.kill()
        assert client.stdout.read() == ""  # held open by the fork until its end
    wait_until(lambda: not Path(f"/proc/{pid}").exists())


def test_serve__goes_on_where_a_fork_and_who_gave_it_end_at_once():
    wait = "import time; print('here', flush=True); time.sleep(60)"
    with serving() as address:
        server = max(psutil.Process().children(), key=psutil.Process.create_time)
        with Fork(["-c", wait], stdout=subprocess.PIPE, address=address) as fork:
            assert fork.stdout.readline() == "here\n"
            server.suspend()
            fork.kill()
            wait_until(lambda: psutil.Process(fork.pid).status() == psutil.STATUS_ZOMBIE)
        server.resume()
        assert fork_python("-c", "exit(3)", address=address).returncode == 3
