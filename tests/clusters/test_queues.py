"""Submit scripts of every kind; no queue is needed for them."""

import re
import shlex
import signal
import sys
from pathlib import Path

import dask
import pytest

from eigenscape.clusters import load_cluster
from eigenscape.clusters.loading import parse_cluster
from eigenscape.clusters.queues import _job_class, lifetime
from eigenscape.clusters.registry import find_queue, queue_names
from eigenscape.errors import ClusterError, MissingExtraError

GIB = 2**30
QUEUES = queue_names()
FILES = Path(__file__).resolve().parents[2] / "cluster"


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    """The directory of the logs is made below the home."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def read(kind, **keys):
    table = {
        "kind": kind, "cores": 6, "processes": 2, "memory": "12GiB", "walltime": "1-02:30:00",
        "interface": "ib0", "environment": ["module load x", "export A='b c'"],
        **keys,
    }  # fmt: skip
    return parse_cluster(table, "cluster.toml")


HEADS = {
    "slurm": (
        {"queue": "long", "account": "a-1", "directives": ["--constraint=avx2"]},
        ["-p long", "-A a-1", "-n 1", "--cpus-per-task=6", "--mem=12G", "-t 26:30:00",
         "-J eigenscape", "--constraint=avx2"],
        "#SBATCH ",
    ),
    "pbs": (
        {"queue": "long", "account": "a-1", "directives": ["-j oe"]},
        ["-q long", "-A a-1", "-l select=1:ncpus=6:mem=12GB", "-l walltime=26:30:00",
         "-N eigenscape", "-j oe"],
        "#PBS ",
    ),
    "lsf": (
        {"queue": "long", "project": "p-1", "directives": ["-x"]},
        ["-q long", '-P "p-1"', "-n 6", '-R "span[hosts=1]"', "-M 12884902", "-W 26:30",
         "-J eigenscape", "-x"],
        "#BSUB ",
    ),
    "sge": (
        {"queue": "long", "project": "p-1", "resources": "mem_free=2G", "directives": ["-pe smp 6"]},
        ["-q long", "-P p-1", "-l mem_free=2G", "-l h_rt=26:30:00", "-N eigenscape", "-pe smp 6"],
        "#$ ",
    ),
    "oar": (
        {"queue": "long", "project": "p-1", "memory_property": "memcore", "directives": ["-t idle"]},
        ["-q long", "--project p-1", "-l /nodes=1/core=6,walltime=26:30:00", "-n eigenscape",
         "-p memcore>=2048", "-t idle"],
        "#OAR ",
    ),
    "htcondor": (
        {"disk": "2GiB", "directives": ["Requirements = (Arch == \"X86_64\")"]},
        ["MY.DaskWorkerCores = 6", f"MY.DaskWorkerMemory = {12 * GIB}",
         f"MY.DaskWorkerDisk = {2 * GIB}", 'Requirements = (Arch == "X86_64")',
         "periodic_remove = (JobStatus == 2) && (time() - EnteredCurrentStatus > 95400)"],
        "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", QUEUES)
def test_job_script__head_and_worker(kind):
    keys, head, mark = HEADS[kind]
    options = read(kind, **keys)
    lines = options.job_script(GIB).splitlines()
    for line in head:
        assert mark + line in lines, line
    [worker] = [line for line in lines if "eigenscape.clusters.workers.process" in line]
    for text in (
        f"{sys.executable} -m eigenscape.clusters.workers.process tls://SCHEDULER:PORT", "--nworkers 2",
        "--nthreads 3", "--memory-limit 6.00GiB", "--interface ib0",
        # 26.5 hours less a minute and 300 s, and up to 300 s more or less.
        "--lifetime 95040s", "--lifetime-stagger 300s", "/private/CA.pem", "/private/KEY.pem",
    ):  # fmt: skip
        assert text in worker
    if kind == "htcondor":
        assert "module load x; export A=''b c''; " in worker
    else:
        assert lines.index("export A='b c'") == lines.index("module load x") + 1
        assert lines.index("export A='b c'") < lines.index(worker)
    assert (options.process_threads(), options.process_memory()) == (3, 6 * GIB)


def condor_command(line):
    """Return what HTCondor hands to sh -c: macros filled in, then its doubled quotes undone."""
    filled = re.sub(r"\$\((\w+)\)", lambda found: {"DOLLAR": "$"}.get(found[1], ""), line)
    inner = filled.removeprefix('Arguments = "-c ').removesuffix('"')
    return inner.removeprefix("'").removesuffix("'").replace("''", "'").replace('""', '"')


@pytest.mark.parametrize("kind", QUEUES)
def test_driver_script__runs_the_command_after_the_set_up(kind):
    keys, head, mark = HEADS[kind]
    command = ["eigenscape", "run", "my job.toml", "--set", "name='$HOME'"]
    script = read(kind, **keys).driver_script(
        command, name="driver", memory="3GiB", walltime="00:20:00"
    )
    assert "eigenscape.clusters.workers.process" not in script
    lines = script.splitlines()
    [line] = [line for line in lines if "my job.toml" in line]
    if kind == "htcondor":
        assert f"MY.DaskWorkerMemory = {3 * GIB}" in lines
        assert "MY.DaskWorkerCores = 1" in lines
        assert shlex.split(condor_command(line).rpartition("; ")[2]) == command
    else:
        assert shlex.split(line) == command
        assert lines.index("module load x") < lines.index(line)
        assert any(text in script for text in ("00:20:00", "00:20"))
        assert mark + head[0] in lines  # its queue


@pytest.mark.parametrize(
    ("kind", "submit", "cancel"),
    [("slurm", "sbatch", "scancel"), ("pbs", "qsub", "qdel"), ("lsf", "bsub", "bkill"),
     ("sge", "qsub", "qdel"), ("oar", "oarsub", "oardel"),
     ("htcondor", "condor_submit", "condor_rm")],
)  # fmt: skip
def test_commands__of_each_kind(kind, submit, cancel):
    assert find_queue(kind).job_class().submit_command == submit
    assert find_queue(kind).job_class().cancel_command == cancel


def test_commands__importing_leaves_the_answer_to_interrupts():
    before = signal.getsignal(signal.SIGINT)
    _job_class.cache_clear()
    for name in [name for name in sys.modules if name.startswith("dask_jobqueue")]:
        del sys.modules[name]
    find_queue("slurm").job_class()
    assert signal.getsignal(signal.SIGINT) is before


def test_job_class__package_that_is_not_installed(monkeypatch):
    _job_class.cache_clear()
    monkeypatch.setitem(sys.modules, "dask_jobqueue", None)
    monkeypatch.delitem(sys.modules, "dask_jobqueue.slurm", raising=False)
    with pytest.raises(MissingExtraError, match=r"dask-jobqueue.*eigenscape\[hpc\]"):
        find_queue("slurm").job_class()
    _job_class.cache_clear()


def test_job_class__kind_without_a_queue():
    with pytest.raises(
        ClusterError, match=r"'local' submits no jobs\. Kinds that do: htcondor, lsf"
    ):
        find_queue("local")


@pytest.mark.parametrize("kind", QUEUES)
def test_job_script__plain_traffic_and_certificates_of_the_file(kind, tmp_path):
    text = read(kind, interface="ib0", tls=False).job_script(GIB)
    assert "tcp://SCHEDULER:PORT" in text
    assert "--tls-" not in text
    files = {key: str(tmp_path / key) for key in ("tls_ca_file", "tls_cert", "tls_key")}
    for path in files.values():
        Path(path).touch()
    text = read(kind, interface="ib0", **files).job_script(GIB)
    for name, path in zip(("ca-file", "cert", "key"), files.values(), strict=True):
        assert f"--tls-{name} {path}" in text


def test_job_script__what_the_file_leaves_out_the_dask_configuration_says():
    own = {"queue": "own", "memory": "3 GiB", "cores": 2, "interface": "eth7", "walltime": "01:00:00",
           "job-script-prologue": ["own set-up"], "job-extra-directives": ["--qos=own"]}  # fmt: skip
    with dask.config.set({f"jobqueue.slurm.{key}": value for key, value in own.items()}):
        text = parse_cluster({"kind": "slurm"}, "c.toml").job_script(GIB)
        for part in ("-p own", "--mem=3G", "--cpus-per-task=2", "--interface eth7", "-t 01:00:00"):
            assert part in text
        assert "own set-up" in text.splitlines()
        assert "#SBATCH --qos=own" in text.splitlines()
        table = {"kind": "slurm", "queue": "mine", "environment": ["mine"], "memory": "5GiB"}
        text = parse_cluster(table, "c.toml").job_script(GIB)
        assert "-p mine" in text
        assert "--mem=5G" in text
        assert "own set-up" not in text


def test_job_script__memory_follows_from_the_limit():
    options = parse_cluster({"kind": "slurm", "processes": 2, "interface": "lo"}, "c.toml")
    text = options.job_script(3 * GIB)
    assert "--mem=12G" in text
    assert "--memory-limit 6.00GiB" in text


def test_job_script__needs_an_interface():
    with pytest.raises(ClusterError, match=r"interface is missing.*ip -brief address"):
        parse_cluster({"kind": "slurm"}, "c.toml").job_script(GIB)


@pytest.mark.parametrize("seconds", [60, 600, 3600, 86400, 30 * 86400])
def test_lifetime__ends_before_the_job_and_is_spread(seconds):
    life, stagger = lifetime(seconds)
    assert stagger >= 5
    assert life - stagger > 0
    assert life + stagger <= seconds - min(60, seconds / 5)
    assert life >= 0.6 * seconds


SGE_HEAD = f"job-ID  prior  name  user  state  submit/start at  queue  slots\n{'-' * 60}\n"


@pytest.mark.parametrize(
    ("kind", "answer", "state"),
    [
        ("slurm", (0, "RUNNING\n", ""), "running"),
        ("slurm", (0, "PENDING\n", ""), "waiting"),
        ("slurm", (0, "", ""), "gone"),
        ("slurm", (1, "", "slurm_load_jobs error: Invalid job id specified"), "gone"),
        ("slurm", (1, "", "Unable to contact slurm controller (connect failure)"), "unknown"),
        (
            "pbs",
            (0, "Job id Name User Time Use S Queue\n7.srv  es  me  0  R  workq\n", ""),
            "running",
        ),
        (
            "pbs",
            (0, "Job id Name User Time Use S Queue\n7.srv  es  me  0  Q  workq\n", ""),
            "waiting",
        ),
        ("pbs", (153, "", "qstat: Unknown Job Id 7.srv"), "gone"),
        ("pbs", (35, "", "qstat: 7.srv Job has finished, use -x"), "gone"),
        ("lsf", (0, "PEND\n", ""), "waiting"),
        ("lsf", (0, "EXIT\n", ""), "gone"),
        ("lsf", (255, "", "Job <7> is not found"), "gone"),
        (
            "sge",
            (0, f"{SGE_HEAD}      7 0.5 es  me  r    1/1/26 10:00:00 all.q@n  1\n", ""),
            "running",
        ),
        (
            "sge",
            (0, f"{SGE_HEAD}      7 0.5 es  me  qw   1/1/26 10:00:00          1\n", ""),
            "waiting",
        ),
        (
            "sge",
            (0, f"{SGE_HEAD}      7 0.5 es  me  hRwq 1/1/26 10:00:00          1\n", ""),
            "waiting",
        ),
        (
            "sge",
            (0, f"{SGE_HEAD}      7 0.5 es  me  S    1/1/26 10:00:00 all.q@n  1\n", ""),
            "waiting",
        ),
        (
            "sge",
            (0, f"{SGE_HEAD}      7 0.5 es  me  Eqw  1/1/26 10:00:00          1\n", ""),
            "failed",
        ),
        (
            "sge",
            (0, f"{SGE_HEAD}     77 0.5 es  me  r    1/1/26 10:00:00 all.q@n  1\n", ""),
            "gone",
        ),
        ("sge", (0, "", ""), "gone"),
        ("sge", (1, "", "error: commlib error: got select error (Connection refused)"), "unknown"),
        ("oar", (0, "7: Running\n", ""), "running"),
        ("oar", (0, "7: Terminated\n", ""), "gone"),
        ("htcondor", (0, "2\n", ""), "running"),
        ("htcondor", (0, "", ""), "gone"),
    ],
)
def test_job_state__what_the_answers_of_the_queues_mean(kind, answer, state, monkeypatch, tmp_path):
    answering(tmp_path, monkeypatch, find_queue(kind).query[0], *answer)
    assert find_queue(kind).job_state("7") == state


def answering(tmp_path, monkeypatch, command, status, out, err=""):
    """Put a command of a queue's name in the way that answers as the queue does."""
    (tmp_path / "out").write_text(out, encoding="utf-8")
    (tmp_path / "err").write_text(err, encoding="utf-8")
    script = tmp_path / command
    script.write_text(f"#!/bin/sh\ncat {tmp_path}/out\ncat {tmp_path}/err >&2\nexit {status}\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")


@pytest.mark.parametrize(
    ("kind", "out", "reason"),
    [
        ("slurm", "PENDING: Resources\n", "PENDING: Resources"),
        ("slurm", "", ""),
        ("pbs", "Job Id: 7\n    job_state = Q\n    comment = Can Never Run: too many\n\tcpus\n"
         "    etime = now\n", "Can Never Run: too many cpus"),
        ("lsf", "The user has reached his/her job slot limit;\n",
         "The user has reached his/her job slot limit;"),
        ("sge", "job_number:    7\nerror reason          1:      can't open output file\n"
         "scheduling info:            Job is in error state\n                            dropped\n",
         "can't open output file"),
        ("sge", 'job_number:    7\nscheduling info:            cannot run in PE "smp" because it only\n'
         "                            offers 0 slots\n",
         'cannot run in PE "smp" because it only offers 0 slots'),
        ("sge", "job_number:    7\n", ""),
        ("oar", "Job_Id: 7\n    state = Waiting\n    message = R=8,W=1:0:0,J=B\n", "R=8,W=1:0:0,J=B"),
        ("htcondor", "Error from slot1: no such file\n", "Error from slot1: no such file"),
        ("htcondor", "undefined\n", ""),
    ],
)  # fmt: skip
def test_job_reason__in_the_words_of_the_queue(kind, out, reason, monkeypatch, tmp_path):
    answering(tmp_path, monkeypatch, find_queue(kind).reason[0][0], 0, out)
    assert find_queue(kind).job_reason("7") == reason


def test_job_script__bash_for_grid_engine_unless_another_shell_is_asked_for():
    assert "#$ -S /bin/bash" in read("sge").job_script(GIB).splitlines()
    text = read("sge", directives=["-S /bin/zsh"]).job_script(GIB)
    assert "#$ -S /bin/zsh" in text.splitlines()
    assert "/bin/bash" not in "".join(line for line in text.splitlines() if "-S" in line)


def test_job_state__no_queue_here(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_queue("slurm").job_state("7") == "unknown"
    with pytest.raises(ClusterError, match=r"sbatch: No such file.*has the command sbatch"):
        read("slurm").submit("#!/bin/sh\n")
    with pytest.raises(ClusterError, match=r"scancel 7: .*machine of the cluster"):
        find_queue("slurm").cancel("7")


@pytest.mark.parametrize("path", sorted(FILES.glob("*.toml")), ids=lambda path: path.stem)
def test_cluster_files__are_read_and_their_scripts_printed(path, cli):
    options = load_cluster(path)
    assert options.kind == path.stem
    result = cli("cluster", "script", path)
    if options.kind in QUEUES:
        assert result.exit_code == 0, result.stderr
        assert "eigenscape.clusters.workers.process" in result.stdout
    else:
        assert result.exit_code == 2
        assert "submits no jobs" in result.stderr
