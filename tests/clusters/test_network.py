"""What Dask listens on, on this machine: who may connect, where keys lie."""

import os
import stat
from urllib.request import urlopen

import pytest

from eigenscape.clusters.loading import parse_cluster
from eigenscape.clusters.network import private_directory, security_of, worker_security
from eigenscape.clusters.options import ClusterOptions, EncryptionKey
from eigenscape.clusters.registry import KINDS
from eigenscape.clusters.start import connect
from eigenscape.errors import ClusterError
from machines.strangers import check_strangers, http_answers, reaches

GIB = 2**30


@pytest.fixture
def state(tmp_path, monkeypatch):
    """The directory of the user's state, with blanks and quotes in its name."""
    path = tmp_path / "it's a home"
    monkeypatch.setenv("XDG_STATE_HOME", str(path))
    return path


def test_connect__local_workers_answer_nobody_else():
    with connect(ClusterOptions(kind="local", workers=1), None, GIB) as executor:
        addresses = check_strangers(executor._client)
        assert len(addresses) == 3  # scheduler, worker, nanny
        assert all(address.startswith("tls://127.0.0.1:") for address in addresses)
        assert http_answers("no other program") == ({"127.0.0.1"}, [])
        assert executor.dashboard == ""


@pytest.mark.slow
def test_connect__plain_traffic_and_a_dashboard_where_the_file_says_so():
    options = parse_cluster(
        {"kind": "local", "workers": 1, "tls": False, "dashboard_port": 0}, "local.toml"
    )
    said = []
    with connect(options, None, GIB, said.append) as executor:
        [address] = executor.addresses
        assert reaches(address)
        assert executor.dashboard.startswith("http://127.0.0.1:")
        assert f"Dask's dashboard: {executor.dashboard}" in said
        with urlopen(executor.dashboard, timeout=60) as answer:
            assert answer.status == 200
        ips, answers = http_answers("no other program")
        assert ips == {"127.0.0.1"}
        # The scheduler's alone.
        assert len({answer.partition("/")[0] for answer in answers}) == 1


def test_security_of__every_kind_that_opens_ports(monkeypatch):
    monkeypatch.setattr("distributed.security.Security.temporary", lambda: "certificates")
    for kind in KINDS.names():
        keys = {"existing": {"address": "tcp://127.0.0.1:1"}, "ssh": {"hosts": ["a"]}}.get(kind, {})
        options = parse_cluster({"kind": kind, **keys}, "c.toml")
        encrypted = kind not in ("threads", "existing")
        assert isinstance(options, EncryptionKey) is encrypted
        if encrypted:
            assert options.tls
    assert security_of(None, encrypted=True) == "certificates"
    assert security_of(None, encrypted=False) is None


def test_worker_security__files_that_nobody_else_reads_and_that_go(state):
    options = parse_cluster({"kind": "slurm"}, "c.toml")
    with worker_security(security_of(options.certificates, options.tls), options) as security:
        folder = state / "eigenscape" / "private"
        files = sorted(folder.iterdir())
        assert {security.tls_ca_file, security.tls_worker_cert, security.tls_worker_key} == {
            str(file) for file in files
        }
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert list(folder.iterdir()) == []


def test_private_directory__refuses_one_that_others_read(tmp_path, monkeypatch):
    options = parse_cluster({"kind": "slurm", "tls_directory": str(tmp_path / "keys")}, "c.toml")
    inner = tmp_path / "keys" / f"eigenscape-{os.geteuid()}"
    (tmp_path / "keys").mkdir(mode=0o755)
    assert private_directory(options) == str(inner)
    assert stat.S_IMODE((tmp_path / "keys").stat().st_mode) == 0o755  # of others, too
    (tmp_path / "file").touch()
    wrong = options.model_copy(update={"tls_directory": str(tmp_path / "file" / "keys")})
    with pytest.raises(ClusterError, match=r"cannot be made a directory for keys.*tls_directory"):
        private_directory(wrong)
    # As on file systems without permissions.
    inner.chmod(0o755)
    monkeypatch.setattr("pathlib.Path.chmod", lambda *_: None)
    with pytest.raises(ClusterError, match=r"others could read the keys there \(owner .*mode 755"):
        private_directory(options)


@pytest.mark.parametrize(
    ("change", "words"),
    [(lambda file: file.chmod(0o666), "everybody can write to it"),
     (lambda file: os.chown(file, 4321, 4321), "belongs to the user 4321")],
)  # fmt: skip
def test_connect__scheduler_file_that_somebody_else_may_have_written(tmp_path, change, words):
    if os.geteuid() != 0:
        pytest.skip("needs the right to give files away")
    file = tmp_path / "scheduler.json"
    file.write_text('{"address": "tcp://127.0.0.1:1"}')
    change(file)
    options = ClusterOptions(kind="existing", scheduler_file=str(file))
    with (
        pytest.raises(ClusterError, match=rf"{words}.*somebody else can run code as you"),
        connect(options, None, GIB),
    ):
        pass
