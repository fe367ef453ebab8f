"""What machines see of each other's files; with several caches in test_glusterfs.py."""

import os

import pytest

from eigenscape.clusters.directories import mounts, sharing
from eigenscape.clusters.directories.mounts import Mount, mount_of
from eigenscape.clusters.directories.sharing import Shared, probe_sharing
from eigenscape.errors import ClusterError, OutputError

PLACES = {"this machine": 0}


@pytest.fixture(scope="module")
def client():
    from distributed import Client

    with Client(
        processes=False, n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0",
        protocol="tcp://", host="127.0.0.1", set_as_default=False,
    ) as client:  # fmt: skip
        yield client


@pytest.fixture
def hosts(client):
    return {address: f"worker {n}" for n, address in enumerate(client.scheduler_info()["workers"])}


def test_probe_sharing__of_one_file_system_leaves_nothing(client, hosts, tmp_path):
    probe_sharing(client, tmp_path, hosts)
    assert list(tmp_path.iterdir()) == []


def test_probe_sharing__on_a_machine_too_slow_to_see_what_is_kept_ends(
    client, hosts, tmp_path, monkeypatch
):
    monkeypatch.setattr(sharing, "_CACHED_S", 0)
    monkeypatch.setattr(sharing, "_PATIENCE_S", 0.5)
    probe_sharing(client, tmp_path, hosts)
    assert list(tmp_path.iterdir()) == []


# A stale file may be seen as it is by chance, and is found in a later turn.
@pytest.mark.parametrize("at", [2, 4])
def test_probe_sharing__names_who_reads_what_and_what_to_change(
    client, hosts, tmp_path, monkeypatch, at
):
    real = sharing._differs

    def stale(file, turn, size, **options):
        # As a cache would that keeps pages: what was there in the turn before.
        return real(file, turn, size, **options) or (
            "read as it had been before" if file.name == "replaced" and turn == at else None
        )

    monkeypatch.setattr(sharing, "_differs", stale)
    monkeypatch.setattr(sharing, "mount_of", lambda _: Mount("nfs4", "server:/x", "rw,nocto"))
    with pytest.raises(
        ClusterError,
        match=r"worker 0 does not see .* a file that this machine put in the place of another was read "
        r"as it had been before\. It is on nfs4 \(server:/x\), mounted with rw,nocto\. .* without nocto",
    ):
        probe_sharing(client, tmp_path, hosts)
    assert list(tmp_path.iterdir()) == []


def test_probe_sharing__a_directory_that_cannot_be_written(client, hosts, tmp_path):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(OutputError, match="cannot be written"):
        probe_sharing(client, file, hosts)


def test_shared__every_machine_is_probed_once_for_every_file_system(tmp_path, monkeypatch):
    probed = []
    monkeypatch.setattr(
        sharing, "probe_sharing", lambda client, path, hosts: probed.append((path, sorted(hosts)))
    )
    shared = Shared(None)
    shared.probe({"tcp://10.0.0.1:1": "10.0.0.1"})
    assert probed == []  # there is no directory yet
    shared.add(tmp_path)
    shared.probe({"tcp://127.0.0.1:1": "127.0.0.1", "tcp://10.0.0.1:1": "10.0.0.1"})
    shared.probe({"tcp://10.0.0.1:2": "10.0.0.1", "tcp://10.0.0.2:1": "10.0.0.2"})
    (tmp_path / "more").mkdir()
    shared.add(tmp_path / "more")
    shared.probe({"tcp://10.0.0.1:2": "10.0.0.1", "tcp://10.0.0.2:1": "10.0.0.2"})
    assert probed == [(tmp_path, ["tcp://10.0.0.1:1"]), (tmp_path, ["tcp://10.0.0.2:1"])]


@pytest.mark.parametrize("name", ["rewritten", "replaced", "recreated", "mapped"])
@pytest.mark.parametrize(
    ("content", "seen"),
    [(1, "read as it had been before"), (0, "read as zeros"), (None, "not found")],
    ids=["old", "zeros", "missing"],
)
def test_read__what_is_not_what_was_written(tmp_path, name, content, seen, monkeypatch):
    monkeypatch.setattr(sharing, "_LAG_S", 0.2)
    for turn in (1, 2):
        assert sharing._write(str(tmp_path), turn, PLACES) is None
        if turn == 1:
            assert sharing._read(str(tmp_path), turn, PLACES) is None
    file = tmp_path / name
    if content is None:
        file.unlink()
    else:
        file.write_bytes(bytes([content]) * file.stat().st_size)
    fault = sharing._read(str(tmp_path), 2, PLACES)
    assert fault.name == name
    assert fault.seen.startswith(seen)


def test_mount_of__the_nearest_and_last_mount(tmp_path, monkeypatch):
    table = tmp_path / "mountinfo"
    table.write_text(
        "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        "40 22 0:50 / /home rw,relatime - nfs4 server:/home rw,vers=4.2,nocto\n"
        "41 22 0:51 / /home\\040two rw - fuse.glusterfs s:vol rw,allow_other\n"
        "42 22 0:52 / /home rw,noatime - cifs //server/home rw,cache=loose\n"
    )
    monkeypatch.setattr(mounts, "_MOUNTS", table)
    assert mount_of("/homes") == Mount("ext4", "/dev/sda1", "rw,relatime")
    assert mount_of("/home/me") == Mount("cifs", "//server/home", "rw,noatime,cache=loose")
    assert "cache=none" in mount_of("/home").advice
    assert "--fopen-keep-cache=off" in mount_of("/home two/x").advice
    assert "nothing of a file is kept" in mount_of("/").advice
    assert "kernel_cache" in Mount("fuse.other", "x", "rw").advice
    monkeypatch.setattr(mounts, "_MOUNTS", tmp_path / "absent")
    assert mount_of("/").kind == "unknown"


def test_mount_of__this_machine():
    assert mount_of("/proc").kind == "proc" or os.uname().sysname != "Linux"
