import pytest
import typer

from eigenscape.batch.run import batch_directory
from eigenscape.batch.sources import Source
from eigenscape.cli.app import app
from eigenscape.cli.arguments import exit_status
from eigenscape.job.jobfile import load_job
from eigenscape.study.outcomes import study_directory
from eigenscape.tuning.run import tuning_directory
from eigenscape.workflow.directories import run_directory


def help_of(command, option):
    (found,) = [
        one for one in typer.main.get_command(app).commands[command].params if option in one.opts
    ]
    return found.help


def test_run_dir__each_command_names_its_own_default(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file, template = tmp_path / "<name>.toml", tmp_path / "<template>.toml"
    for path in (file, template):
        path.write_text('scene.path = "scene.tif"', encoding="utf-8")
    job = load_job(file)

    def shown(path):
        return str(path.relative_to(tmp_path))

    run = shown(run_directory(job, {"export": "<key>"}, None))
    study, tuned = shown(study_directory(job, None)), shown(tuning_directory(job, None))
    batch = shown(batch_directory(Source(template=template, scenes="*.tif"), None))
    jobs = shown(batch_directory(Source(jobs=(file,)), None))
    expected = {
        "run": (run, study), "plan": (run, study), "submit": (run,), "tune": (tuned,),
        "batch": (batch, jobs), "schedule": (run, study, batch),
    }  # fmt: skip
    for command, defaults in expected.items():
        _, told = help_of(command, "--run-dir").removesuffix(").").split("default: ")
        assert [word.rstrip(",;") for word in told.split() if "/" in word] == list(defaults)


@pytest.mark.parametrize("table", ["scene", "output", "limits"])
def test_set__of_apply_names_the_tables_that_it_accepts(table):
    assert f"[{table}]" in help_of("apply", "--set")
    assert "neighbors" not in help_of("apply", "--set")


def test_exit_status__kernels_that_cannot_be_stored(capsys):
    refusal = RuntimeError("cannot cache function 'step': no locator available for file '/x.py'")
    with pytest.raises(typer.Exit) as ended, exit_status():
        raise refusal
    assert ended.value.exit_code == 2
    assert "Set NUMBA_CACHE_DIR to a directory of your own." in capsys.readouterr().err
    with pytest.raises(RuntimeError, match="another"), exit_status():
        raise RuntimeError("another")
