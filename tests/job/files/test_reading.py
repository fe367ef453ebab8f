import pytest

from eigenscape.errors import JobError
from eigenscape.job.jobfile import load_job


def test_load_job__suggests_the_file_that_is_there(tmp_path):
    (tmp_path / "salinas.toml").write_text("[scene]\npath = 'a.tif'\n")
    with pytest.raises(JobError, match=r"no such job file\. Did you mean .*salinas\.toml\?"):
        load_job(tmp_path / "salinsa.toml")
    with pytest.raises(JobError, match=r"no such job file\. A job file is TOML"):
        load_job(tmp_path / "nowhere" / "x.toml")


def test_load_job__directory_and_other_encodings(tmp_path):
    with pytest.raises(JobError, match="is a directory"):
        load_job(tmp_path)
    (tmp_path / "latin.toml").write_bytes("[scene]\npath = 'größe.tif'".encode("latin-1"))
    with pytest.raises(JobError, match=r"latin\.toml: .*UTF-8"):
        load_job(tmp_path / "latin.toml")


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("labels = base_lab.tif", 'labels = "base_lab.tif"'),
        ("labels = 2020_lab.tif   # mine", 'labels = "2020_lab.tif"'),
        (r"labels = C:\data\lab.tif", r"labels = 'C:\data\lab.tif'"),
    ],
)
def test_load_job__a_text_without_quotes(tmp_path, line, fix):
    path = tmp_path / "job.toml"
    path.write_text(f'[scene]\npath = "base.tif"\n{line}\n')
    with pytest.raises(JobError, match=r"not valid TOML: .*at line 3") as error:
        load_job(path)
    assert str(error.value).endswith(f" A text needs quotes: {fix}.")


@pytest.mark.parametrize("line", ["k = ", "k = [1, 2", 'k = "a', "k = true true", "[scene"])
def test_load_job__other_mistakes_get_no_advice_on_quotes(tmp_path, line):
    path = tmp_path / "job.toml"
    path.write_text(f"{line}\n")
    with pytest.raises(JobError, match="not valid TOML") as error:
        load_job(path)
    assert ("needs quotes" in str(error.value)) == (line == "k = true true")


def test_load_job__ignores_a_byte_order_mark(tmp_path):
    path = tmp_path / "job.toml"
    path.write_bytes("scene.path = 'a.tif'".encode("utf-8-sig"))
    assert load_job(path).scene.path == "a.tif"
