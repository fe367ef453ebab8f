import json

import pytest

from eigenscape import load_job, tune
from eigenscape.tuning import run as tuning
from eigenscape.tuning.status import tuning_status
from harness import Counted

pytestmark = pytest.mark.usefixtures("short_ladder")


@pytest.mark.parametrize("stopped", ["in a stage", "before any"])
def test_tuning_status__a_job_of_before_does_not_end_a_changed_tuning(
    write_tunable, monkeypatch, stopped
):
    path = write_tunable(learn={"method": "k-nn"})
    first = tune(load_job(path), budget=0.001)
    assert tuning_status(first.path)["state"] == "finished"
    changed = load_job(write_tunable(learn={"method": "k-nn", "k": 5}))
    with monkeypatch.context() as patch:
        if stopped == "in a stage":
            Counted(patch, 2)
        else:
            patch.setattr(tuning, "window_of", stop)
        with pytest.raises(KeyboardInterrupt):
            tune(changed, budget=0.001)
    found = tuning_status(first.path)
    assert found["state"] == "unfinished: the same `eigenscape tune` continues it"
    assert tune(changed, budget=0.001).path == first.path
    assert tuning_status(first.path)["state"] == "finished"


def stop(*args, **named):
    raise KeyboardInterrupt


def test_tuning_status__of_an_earlier_version(tmp_path):
    (tmp_path / "tune.json").write_text(json.dumps({"spent_seconds": 1, "budget_seconds": 2}))
    (tmp_path / "best.toml").touch()
    assert tuning_status(tmp_path)["state"] == "finished"
