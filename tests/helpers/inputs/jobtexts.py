"""Job files of tests."""

import pytest

from eigenscape.errors import JobError
from eigenscape.job.jobfile import load_job

SCENE = '[scene]\npath = "a.tif"\n'


def write(tmp_path, text, name="job.toml"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def refuse(tmp_path, text, *overrides):
    """Return the message with which a job file is refused."""
    with pytest.raises(JobError) as caught:
        load_job(write(tmp_path, text), overrides)
    return str(caught.value)
