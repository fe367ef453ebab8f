"""Workers by ssh: a server on loopback."""

import getpass
import os
import signal
import subprocess
import sys
from pathlib import Path

import asyncssh
import pytest

from eigenscape.clusters.loading import parse_cluster
from eigenscape.clusters.start import connect
from eigenscape.errors import ClusterError
from machines.strangers import check_strangers, http_answers
from waiting import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The folder of a server: see sshserver.py."""
    folder = tmp_path_factory.mktemp("ssh")
    process = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("sshserver.py"), folder], start_new_session=True
    )
    wait_until(lambda: (folder / "port").exists() or process.poll() is not None)
    assert process.poll() is None
    yield folder
    os.killpg(process.pid, signal.SIGKILL)  # and the workers that it started
    process.wait()


def read(server, **keys):
    port = int((server / "port").read_text())
    table = {
        "kind": "ssh", "hosts": ["127.0.0.1"], "port": port, "username": getpass.getuser(),
        "private_key": str(server / "key"), "known_hosts": str(server / "known"),
        "cores": 2, "processes": 2, "memory": "2GiB", "interface": "lo", **keys,
    }  # fmt: skip
    return parse_cluster(table, "ssh.toml")


def test_connect__machine_by_ssh(server):
    with connect(read(server), None, 2**29) as executor:
        # The first process of a machine is enough to begin.
        wait_until(lambda: executor.width >= 2)
        assert (executor.width, executor.tasks_per_process) == (2, 1)
        found = {}
        executor.run(abs, [-3, -4], lambda index, result, _: found.update({index: result}))
        assert found == {0: 3, 1: 4}
        addresses = check_strangers(executor._client)
        assert all(address.startswith("tls://127.0.0.1:") for address in addresses)
        assert http_answers("dask_spec") == ({"127.0.0.1"}, [])
    commands = (server / "commands").read_text("utf-8").splitlines()
    [command] = [command for command in commands if "dask_spec" in command]
    assert "PRIVATE KEY" not in command


def test_connect__machine_that_ssh_does_not_reach(server, tmp_path):
    other = asyncssh.generate_private_key("ssh-ed25519")
    other.write_private_key(tmp_path / "other")
    with (
        pytest.raises(
            ClusterError, match=r"hosts = 127\.0\.0\.1: no worker starts there.*private_key"
        ),
        connect(read(server, private_key=str(tmp_path / "other")), None, 2**29),
    ):
        pass


def test_connect__python_that_is_not_there(server):
    with (
        pytest.raises(ClusterError, match=r"no worker starts there \(Worker failed to start"),
        connect(read(server, python="/nowhere/python"), None, 2**29),
    ):
        pass
