"""What a worker of a queue refuses before it starts."""

import pytest

from eigenscape.clusters.kinds.allocation import Step, step_command
from eigenscape.clusters.loading import parse_cluster
from eigenscape.clusters.workers.process import main


def test_main__certificates_that_the_node_does_not_see(tmp_path):
    (tmp_path / "a.pem").touch()
    arguments = ["tls://127.0.0.1:1", "--interface", "lo", "--tls-ca-file", str(tmp_path / "a.pem")]
    arguments += ["--tls-cert", str(tmp_path / "absent.pem"), "--tls-key", str(tmp_path / "a.pem")]
    with pytest.raises(
        SystemExit, match=r"absent\.pem: .* does not see this certificate.*tls_directory"
    ):
        main(arguments)


def test_step__braces_of_a_cluster_file_are_letters(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    table = {
        "kind": "allocation", "interface": "lo", "workers": 2, "cores": 1, "python": "~/{name.__class__}",
        "local_directory": "/x/{scheduler}",
    }  # fmt: skip
    command = step_command(parse_cluster(table, "c.toml"), 2**30)
    step = Step("tls://127.0.0.1:7", 3, command, tmp_path / "log")
    assert "/home/me/{name.__class__}" in step._command
    assert "/x/{scheduler}" in step._command
    assert "tls://127.0.0.1:7" in step._command
    assert step._command[step._command.index("--name") + 1] == "3-{task}"
