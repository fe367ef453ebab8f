import os
import resource
import subprocess
import sys

import pytest

from eigenscape.base.process import addresses
from eigenscape.base.process.addresses import check_address_space, mapped_bytes
from eigenscape.clusters import connect, load_cluster
from eigenscape.errors import MemoryLimitError

GIB = 2**30


def limited(monkeypatch, limit):
    monkeypatch.setattr(addresses.resource, "getrlimit", lambda _: (limit, resource.RLIM_INFINITY))


def test_check_address_space__no_limit_and_one_that_suffices(monkeypatch):
    for limit in (resource.RLIM_INFINITY, mapped_bytes(2) + GIB):
        limited(monkeypatch, limit)
        assert check_address_space(GIB, 2) == ""


def test_check_address_space__names_the_limit_and_what_to_set(monkeypatch):
    monkeypatch.setattr(addresses, "usable_cores", lambda: 2)
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    enough = f"`ulimit -v {(mapped_bytes(2) + GIB) // 1024}`"
    limited(monkeypatch, mapped_bytes(2) + GIB // 2)
    note = check_address_space(GIB, 2)
    assert "limited to 1.3 GiB (`ulimit -v`)" in note
    assert "816.0 MiB" in note
    assert enough in note
    assert "limits.memory to 512 MiB" in note
    limited(monkeypatch, mapped_bytes(2) + GIB // 8)
    with pytest.raises(
        MemoryLimitError, match=r"limited to 944\.0 MiB .* at least 1\.0 GiB"
    ) as caught:
        check_address_space(GIB, 2)
    assert enough in str(caught.value)


def test_mapped_bytes__counts_the_threads_of_blas_that_the_environment_allows(monkeypatch):
    monkeypatch.setattr(addresses, "usable_cores", lambda: 128)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    one = mapped_bytes(1)
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    # OpenBLAS of wheels has at most 64.
    assert mapped_bytes(1) - one == 63 * 80 * 2**20


def test_connect__threads_without_room(monkeypatch):
    said = []
    for room, notes in ((GIB, 0), (GIB - 1, 1)):
        limited(monkeypatch, mapped_bytes(1) + room)
        with connect(load_cluster(None), 1, GIB, said.append):
            assert len(said) == notes
    limited(monkeypatch, mapped_bytes(1))
    with (
        pytest.raises(MemoryLimitError, match="ulimit -v"),
        connect(load_cluster(None), 1, GIB, said.append),
    ):
        pass


@pytest.mark.parametrize("verb", ["run", "plan", "tune"])
def test_command_line__refuses_before_libraries_are_loaded(tmp_path, verb):
    job = tmp_path / "job.toml"
    job.write_text('scene.path = "scene.tif"', encoding="utf-8")
    limit = 400_000 * 1024
    done = subprocess.run(
        [sys.executable, "-m", "eigenscape", verb, str(job)],
        capture_output=True, text=True, timeout=120, check=False, env=os.environ,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith(
        "eigenscape: the address space of a process is limited to 390.6 MiB"
    )
