"""Words of cluster files and paths in submit scripts: a shell makes of them what was meant."""

import re
import string
from itertools import pairwise

import pytest
from distributed.security import Security
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eigenscape.clusters.loading import parse_cluster
from eigenscape.clusters.registry import find_queue, queue_names
from eigenscape.clusters.shellwords import check_plain, expanded, python_word, shell_word
from eigenscape.clusters.workers.refusals import noting_refusals
from eigenscape.errors import ClusterError
from machines.shells import breaks, make_teller, told, words

GIB = 2**30


@pytest.fixture(scope="module")
def teller(tmp_path_factory):
    """A program that tells its arguments, and is the Python that runs now."""
    folder = tmp_path_factory.mktemp("teller")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        patch.setattr("eigenscape.clusters.shellwords.sys.executable", str(make_teller(folder)))
        yield folder


def body(kind, script):
    """Return what a job of a queue gives to its shell."""
    if kind != "htcondor":
        return script
    [line] = re.findall(r"^Arguments = \"-c (.*)\"$", script, re.MULTILINE)
    filled = re.sub(r"\$\((\w+)\)", lambda found: {"DOLLAR": "$"}.get(found[1], ""), line)
    if filled.startswith("'"):
        filled = filled[1:-1].replace("''", "'")
    return filled.replace('""', '"')


names = st.text(
    string.ascii_letters + string.digits + "$./~{}:@%+=,*[]-_ü", min_size=1, max_size=15
)


@given(st.one_of(names, st.just("~/${ONE}$TWO/x"), st.just("$TWO*"), st.just("a$")))
def test_shell_word__variables_and_nothing_else(teller, value):
    environment = {"ONE": "1 '\"", "TWO": "* ?", "HOME": str(teller)}
    # A shell has variables of its own, and ways to change others.
    if re.search(r"\$\{(?!ONE\}|TWO\})|\$(?!ONE|TWO)\w|~\w", value):
        return
    with pytest.MonkeyPatch.context() as patch:
        for name, text in environment.items():
            patch.setenv(name, text)
        meant = expanded(value)
        program = python_word(None)
        assert told(f"{program} {shell_word(value)}", teller, **environment)[2:] == [meant]


@pytest.mark.parametrize("kind", queue_names())
@given(one=words, other=words)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_driver_script__every_word_arrives_as_it_is(teller, kind, one, other):
    options = parse_cluster({"kind": kind, "interface": "lo", "environment": ["x=1"]}, "c.toml")
    command = ["-m", "eigenscape.cli.driver", one, other]
    try:
        script = options.driver_script(command, before=[python_word(None)])
    except ClusterError:
        script = None
    if script is None:
        assert breaks(one, other)
    else:
        assert told(body(kind, script), teller)[2:] == command


@pytest.mark.parametrize("kind", queue_names())
@given(folder=words)
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_job_script__certificates_and_scratch_of_the_node(teller, kind, folder):
    table = {"kind": kind, "interface": "lo", "local_directory": "$SCRATCH/x", "memory": "1GiB"}
    options = parse_cluster(table, "c.toml")
    files = [f"/home/{folder}/{name}.pem" for name in ("a", "b", "c")]
    security = Security(tls_ca_file=files[0], tls_worker_cert=files[1], tls_worker_key=files[2])
    make = noting_refusals(find_queue(kind).job_class(), str)
    try:
        job = make("tls://127.0.0.1:1", name="w-0", security=security, **options.job_arguments(GIB))
    except ClusterError:
        job = None
    if job is None:
        assert breaks(folder)
        return
    found = told(body(kind, job.job_script()), teller, SCRATCH="/a * b")[2:]
    after = dict(pairwise(found))
    assert found[:3] == ["-m", "eigenscape.clusters.workers.process", "tls://127.0.0.1:1"]
    assert after["--local-directory"] == "/a * b/x"
    assert [after[f"--tls-{name}"] for name in ("ca-file", "cert", "key")] == files


@pytest.mark.parametrize("kind", queue_names())
def test_job_script__comments_of_set_up_lines_end_with_them(teller, kind):
    lines = ["# a comment, it's one", "x='a # b'  # another"]
    options = parse_cluster({"kind": kind, "interface": "lo", "environment": lines}, "c.toml")
    found = told(
        body(kind, options.driver_script(["-m", "y"], before=[python_word(None), '"$x"'])), teller
    )
    assert found[-3:] == ["a # b", "-m", "y"]


@pytest.mark.parametrize(
    "value", ["-x", "--wrap=x", "a b", "a\nb", "a`b`", "a$(b)", "a;b", "a'b", "a\\b", ""]
)
def test_words__what_no_name_of_a_queue_needs_is_refused(value):
    for key in ("queue", "account", "job_name", "python", "local_directory", "log_directory"):
        with pytest.raises(ClusterError, match="no shell code here"):
            parse_cluster({"kind": "slurm", key: value}, "c.toml")
    with pytest.raises(ClusterError, match="no shell code here"):
        parse_cluster({"kind": "ssh", "hosts": ["a", value]}, "c.toml")


@given(words)
def test_check_plain__heads_of_scripts(value):
    path = f"/home/{value}/runs"
    harmless = all(one.isalnum() or one in "./:@+=,~_-" for one in path)
    try:
        assert check_plain(path, "the run directory", "Move it.") == path
    except ClusterError as error:
        harmless, said = not harmless, str(error)
        assert said.endswith("Move it.")
        assert len(said.splitlines()) == 1 or breaks(value)
    assert harmless


def test_expanded__home_of_this_machine(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("NAME", "x")
    assert expanded("~/$NAME/python") == "/home/me/x/python"
    assert shell_word("~/$NAME/python") == '~/"$NAME/python"'
    assert shell_word("/usr/bin/python3.12") == "/usr/bin/python3.12"
