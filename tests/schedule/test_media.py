import os
import shutil
import subprocess
from types import SimpleNamespace

import pytest

from eigenscape.batch.sources import Source
from eigenscape.clusters import ClusterOptions
from eigenscape.errors import InputError
from eigenscape.schedule import media
from eigenscape.schedule.cron import parse_cron
from eigenscape.schedule.entry import make_schedule, schedule_name
from eigenscape.schedule.tables import Crontab

MINE = b"# mine \xff\nMAILTO=me\n*/5 * * * * date +\\%F >/dev/null\n"


@pytest.fixture
def crontab():
    """The real crontab of this user with some entries in it; it is put back afterwards."""
    if shutil.which("crontab") is None:
        pytest.skip("crontab is not installed (Debian: apt-get install cron)")
    if os.geteuid() != 0:
        pytest.skip("only root's crontab is changed by tests")
    before = Crontab("crontab").read()
    subprocess.run(["crontab", "-"], input=MINE, check=True)

    def read():
        return subprocess.run(["crontab", "-l"], capture_output=True, check=True).stdout

    try:
        yield read
    finally:
        Crontab("crontab").write(before)


def test_schedule__installs_once_and_leaves_other_entries_alone(
    crontab, tiny_job, cli, monkeypatch
):
    monkeypatch.setattr(media, "_chains", list)  # SLURM may be there and not answer
    arguments = ["schedule", tiny_job, "--cron", "0 3 * * *"]
    printed = cli(*arguments)
    assert "eigenscape: not installed." in printed.stderr
    assert crontab() == MINE
    assert "runs next at" in cli(*arguments, "--install").stdout
    put = crontab()
    assert put == MINE + printed.stdout.encode()
    assert "already" in cli(*arguments, "--install").stdout
    assert crontab() == put
    assert str(tiny_job) in cli("schedule", "--list").stdout
    again = cli("schedule", tiny_job, "--cron", "@hourly", "--install").stdout
    assert again.endswith(f"\nIt replaces: {put.decode(errors='replace').splitlines()[-2]}\n")
    assert crontab().count(b"eigenscape schedule tiny-") == 2
    assert b"\n0 * * * * cd " in crontab()
    tiny_job.unlink()  # what is installed can be taken away all the same
    assert "is gone from crontab" in cli("schedule", tiny_job, "--remove").stdout
    assert crontab() == MINE
    assert "is not installed" in cli("schedule", tiny_job, "--remove").stdout


@pytest.fixture
def queue(monkeypatch, tmp_path):
    """A SLURM with the jobs of a chain as given: name, state, start and script; it tells what it is asked."""
    jobs, asked = [], []

    def answer(command, **_):
        asked.append(command)
        said = {"squeue": "".join(f"{'|'.join(job)}\n" for job in jobs), "sbatch": "7"}
        return subprocess.CompletedProcess(command, 0, said.get(command[0], ""), "")

    monkeypatch.setattr(media, "TABLES", ())
    monkeypatch.setattr(media.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(media.subprocess, "run", answer)
    return SimpleNamespace(jobs=jobs, asked=asked)


def test_chain__is_known_before_its_job_has_submitted_the_next_one(queue, tiny_job, tmp_path):
    name, script = schedule_name(tiny_job), tmp_path / "chain.sh"
    script.touch()
    runs = (f"eigenscape-{name}", "RUNNING", "2026-11-29T03:00:00", str(script))
    waits = (f"eigenscape-{name}", "PENDING", "2026-11-30T03:00:00", str(script))
    for jobs, text in (
        ([runs], "runs since 2026-11-29T03:00:00"),
        ([runs, waits], "waits in the queue until 2026-11-30T03:00:00"),
        ([waits, runs], "waits in the queue until 2026-11-30T03:00:00"),
    ):
        queue.jobs[:] = jobs
        (entry,) = media.installed(print)
        assert (entry.name, entry.text) == (name, text)
    queue.jobs[:] = [runs]
    assert "is gone from chain" in media.remove(tiny_job)
    # Without it, the job that runs cannot submit the next one.
    assert not script.exists()
    assert queue.asked[-1][:2] == ("scancel", "--state=PENDING")
    assert media.installed(print) == []
    assert "is not installed" in media.remove(tiny_job)


def test_chain__says_what_it_replaces(queue, tiny_job, monkeypatch):
    monkeypatch.chdir(tiny_job.parent)
    on = ClusterOptions(kind="slurm")
    nightly, other = (make_schedule(Source((tiny_job,)), keep=keep) for keep in (1, 2))
    cron = parse_cron("0 3 * * *")
    assert "It replaces" not in media.install(nightly, cron, on, "chain")
    script = nightly.directory / "chain.sh"
    name = f"eigenscape-{nightly.name}"
    queue.jobs.append((name, "PENDING", "2026-11-30T03:00:00", str(script)))
    assert media.install(nightly, cron, on, "chain") == f"{nightly.name} is in the queue already."
    said = media.install(other, cron, on, "chain")
    assert said.endswith(
        "\nIt replaces: the job that waits in the queue until 2026-11-30T03:00:00: "
        + nightly.line()
    )
    assert script.read_text().endswith(f"{other.line()}\n")


def test_crontab__is_as_it_was_when_the_program_refuses(crontab):
    with pytest.raises(InputError, match=r"crontab refuses \(.*bad minute"):
        Crontab("crontab").write("99 3 * * * date\n")
    assert crontab() == MINE


def test_crontab__one_that_is_not_installed():
    table = Crontab("scrontab-of-nowhere")
    assert not table.is_there
    with pytest.raises(InputError, match=r"is not installed here.*--chain"):
        table.read()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Give the job file"),
        (["JOB"], "--cron EXPR is missing"),
        (["JOB", "--cron", "0 3 * * *", "--crontab", "--chain"], "give one of them"),
        (["--list", "--remove"], "--list and --remove exclude each other: give one of them"),
        (["JOB", "--remove", "--install"], "--remove and --install exclude each other"),
        (["JOB", "--now", "--next"], "--now and --next exclude each other"),
        (["JOB", "--now", "--scrontab"], "--now and --scrontab exclude each other"),
        (["JOB", "--cron", "0 3 * * *", "--json"], "--json: only --list prints JSON"),
        (["--list", "--chain"], "--list and --chain exclude each other"),
        (["JOB", "--cron", "0 99 * * *"], "hour '99'"),
        (["--next", "--cron", "61 * * * *"], "minute '61'"),
    ],
)
def test_schedule__says_what_is_wrong(tiny_job, cli, arguments, said):
    done = cli("schedule", *[tiny_job if word == "JOB" else word for word in arguments])
    assert done.exit_code == 2
    assert said in done.stderr


def test_remove__says_that_the_queue_does_not_answer(tmp_path, monkeypatch):
    monkeypatch.setattr(media, "TABLES", ())
    monkeypatch.setattr(media.shutil, "which", lambda name: f"/usr/bin/{name}")
    refused = subprocess.CompletedProcess((), 1, "", "Unable to contact slurm controller\n")
    monkeypatch.setattr(media.subprocess, "run", lambda *_, **__: refused)
    with pytest.raises(InputError, match="Unable to contact slurm controller"):
        media.remove(tmp_path / "job.toml")
    monkeypatch.setattr(media.shutil, "which", lambda name: None)
    assert "is not installed" in media.remove(tmp_path / "job.toml")


def test_installed__says_that_the_queue_does_not_answer(monkeypatch):
    monkeypatch.setattr(media, "TABLES", ())
    monkeypatch.setattr(media.shutil, "which", lambda name: f"/usr/bin/{name}")
    refused = subprocess.CompletedProcess((), 1, "", "Unable to contact slurm controller\n")
    monkeypatch.setattr(media.subprocess, "run", lambda *_, **__: refused)
    told = []
    assert media.installed(told.append) == []
    assert "Unable to contact slurm controller" in told[0]
