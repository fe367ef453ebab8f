import os
import shlex
import subprocess
import sys
from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings

from eigenscape.batch.sources import Source
from eigenscape.clusters import ClusterOptions
from eigenscape.errors import InputError
from eigenscape.schedule.cron import parse_cron
from eigenscape.schedule.entry import (
    Schedule,
    chain_script,
    crontab_block,
    environment,
    job_options,
    make_schedule,
    schedule_name,
    scrontab_block,
)
from machines.shells import breaks, cron_command, make_teller, told, words

NIGHTLY = parse_cron("0 3 * * *")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A working directory whose name a shell and a crontab could misread."""
    path = tmp_path / "100% mine; [x]"
    (path / "tiles").mkdir(parents=True)
    (path / "many.toml").write_text("[output]\ndirectory = 'runs'\n")
    (path / "one.toml").write_text('[scene]\npath = "tiles/a.tif"\n')
    monkeypatch.chdir(path)
    return path


def spoken(line):
    """Return the words that a shell makes of the command in a line of a crontab."""
    command = line.split(" ", 5)[5].replace(r"\%", "%")
    words = shlex.split(command.partition(" -m eigenscape ")[2])
    return command, words


def test_crontab_block__holds_wherever_it_is_started(home):
    source = Source(template=home / "many.toml", scenes="tiles/*.tif", overrides=("neighbors.k=9",))
    schedule = make_schedule(source, keep=3, at_once=4)
    (line,) = crontab_block(schedule, NIGHTLY).lines
    assert line.startswith("0 3 * * * cd ")
    assert "%" not in line.replace(r"\%", "")
    command, words = spoken(line)
    pattern = str(home).replace("[", "[[]") + "/tiles/*.tif"
    assert words == [
        "schedule", str(home / "many.toml"), "--now", "--set=neighbors.k=9",
        f"--scenes={pattern}", "--at-once=4", "--keep", "3",
    ]  # fmt: skip
    assert f" {sys.executable} -m " in command
    shown = subprocess.run(
        ["/bin/sh", "-c", command.partition("&&")[0] + "&& pwd"],
        capture_output=True, text=True, check=True, cwd="/", env={},
    )  # fmt: skip
    assert shown.stdout == f"{home}\n"
    assert schedule.command()[2:6] == ["eigenscape", "batch", "--template", str(home / "many.toml")]
    assert schedule.directory == home / "runs/many/schedules" / schedule.name


def test_make_schedule__of_a_linked_job_file_runs_the_link(home):
    (home / "site").mkdir()
    (home / "site" / "one.toml").symlink_to("../one.toml")
    linked = make_schedule(Source(jobs=(home / "site" / "one.toml",)))
    assert linked.job == home / "site" / "one.toml"
    assert linked.name != make_schedule(Source(jobs=(home / "one.toml",))).name


def test_environment__has_what_runs_read_and_no_more(home):
    secret = {"AWS_SECRET_ACCESS_KEY": "x", "PASSWORD": "y", "HOME": "/h"}
    assert "x" not in str(environment(secret))
    found = environment({**secret, "EIGENSCAPE_DATA": "data", "SLURM_CONF": "/etc/slurm.conf"})
    assert found["EIGENSCAPE_DATA"] == str(home / "data")
    assert found["SLURM_CONF"] == "/etc/slurm.conf"
    assert "PYTHONPATH" not in found
    import eigenscape

    source = os.path.dirname(os.path.dirname(eigenscape.__file__))
    assert environment({"PYTHONPATH": f"/x:{source}"})["PYTHONPATH"] == source


@pytest.mark.slow
def test_scrontab_and_chain__ask_for_what_the_cluster_file_says(home):
    on = ClusterOptions(
        kind="slurm", queue="day", account="eo", directives=("--qos=low",), walltime="01:00:00",
        driver={"cores": 2, "memory": "3GiB"},
    )  # fmt: skip
    schedule = make_schedule(Source(jobs=(home / "one.toml",)))
    *options, line = scrontab_block(schedule, NIGHTLY, on).lines
    assert f"#SCRON --job-name=eigenscape-{schedule.name}" in options
    asked = ["cpus-per-task=2", "mem=3072M", "time=01:00:00", "partition=day", "account=eo"]
    assert options[-6:] == [f"#SCRON --{option}" for option in [*asked, "qos=low"]]
    assert f"cd '{home}'" in line  # where a % means nothing
    script = chain_script(schedule, NIGHTLY, on)
    assert "#SBATCH --dependency=singleton\n" in script
    assert subprocess.run(["sh", "-n"], input=script, text=True, check=False).returncode == 0
    assert script.index("sbatch --begin") < script.index("--now")
    # The successor knows when it is due, whatever the clock of its node says.
    fake = f'squeue() {{ :; }}\nsbatch() {{ echo "$@" > {shlex.quote(str(home / "said"))}; }}\n'
    due = (datetime.now() + timedelta(hours=1)).replace(microsecond=0).isoformat()
    lines = "\n".join(script.splitlines()[:-1])
    around = {**os.environ, "EIGENSCAPE_DUE": due}
    subprocess.run(["sh"], input=fake + lines, text=True, check=True, env=around)
    began, exported, _ = (home / "said").read_text().split(maxsplit=2)
    at = began.removeprefix("--begin=")
    assert exported == f"--export=ALL,EIGENSCAPE_DUE={at}"
    assert at == NIGHTLY.next_after(datetime.fromisoformat(due)).isoformat()


def test_make_schedule__refuses_what_cannot_work(home):
    one = Source(jobs=(home / "one.toml",))
    with pytest.raises(InputError, match="--keep 2: --run-dir has one directory"):
        make_schedule(one, run_dir=home / "x", keep=2)
    with pytest.raises(InputError, match="alone is one scene"):
        make_schedule(one, at_once=2)
    with pytest.raises(InputError, match="cannot be read as a cluster file"):
        make_schedule(one, on="nowhere.toml")
    with pytest.raises(InputError, match="no such job file"):
        make_schedule(Source(jobs=(home / "none.toml",)))
    assert schedule_name(home / "one.toml") != schedule_name(home.parent / "one.toml")


@pytest.fixture(scope="module")
def teller(tmp_path_factory):
    """A program in a directory of its own that tells its arguments."""
    return make_teller(tmp_path_factory.mktemp("teller"))


@pytest.mark.slurm
def test_job_options__slurm_finds_the_log(slurm, tmp_path):
    home = tmp_path / "a 'b' \"c\" 100%j $HOME `d` ü;"
    schedule = Schedule(home / "one.toml", (), False, home, home / "runs")
    schedule.directory.mkdir(parents=True)
    options = job_options(schedule, ClusterOptions(kind="slurm"))
    script = "".join(["#!/bin/sh\n", *(f"#SBATCH {option}\n" for option in options), "echo told\n"])
    subprocess.run(["sbatch", "--wait"], input=script, text=True, check=True, capture_output=True)
    assert (schedule.directory / "job.log").read_text() == "told\n"


def unless_refused(make, *arguments):
    try:
        return make(*arguments)
    except InputError:
        return None


@given(words, words, words)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_crontab_and_chain__every_value_arrives_as_it_is(teller, name, value, data):
    name = name.replace("/", "-").strip(".") or "x"
    home = teller.parent / name
    home.mkdir(exist_ok=True)
    schedule = Schedule(
        home / "one.toml",
        (f"--set=output.name={value}", f"--run-dir={home}"),
        False,
        home,
        home / "runs",
    )
    on = ClusterOptions(kind="slurm")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("eigenscape.schedule.entry.sys", SimpleNamespace(executable=str(teller)))
        patch.setattr("eigenscape.schedule.entry.shutil.which", lambda _: None)
        patch.setenv("EIGENSCAPE_DATA", str(home / data))
        arguments = [
            "-m",
            "eigenscape",
            "schedule",
            str(home / "one.toml"),
            "--now",
            *schedule.arguments,
        ]
        meant = [str(home), str((home / data).resolve()), *arguments]
        block = unless_refused(crontab_block, schedule, NIGHTLY)
        if block is None:
            assert breaks(name, value, data) or "\\" in name + value + data
        else:
            (line,) = block.lines
            command = line.removeprefix(f"{NIGHTLY.text} ")
            for takes in (False, True):
                assert told(cron_command(command, takes_backslashes=takes), teller.parent) == meant
        block = unless_refused(scrontab_block, schedule, NIGHTLY, on)
        script = unless_refused(chain_script, schedule, NIGHTLY, on)
    if block is None or script is None:
        assert breaks(name, value, data) or "\\" in name
        return
    line = block.lines[-1]
    assert told(line.removeprefix(f"{NIGHTLY.text} "), teller.parent) == meant
    fake = "squeue() { echo 1; }\n"  # a successor waits
    assert told(fake + script, teller.parent) == meant
