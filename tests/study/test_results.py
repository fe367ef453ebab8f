import re

import pytest

from eigenscape import load_job, parse_job
from eigenscape.errors import InputError
from eigenscape.study.results import write_results
from eigenscape.study.run import run_study


def test_write_results__a_section_for_each_study(finished, write_study, tmp_path):
    job, result = finished
    other = load_job(write_study("not-run"))
    page = tmp_path / "jobs" / "RESULTS.md"
    page.parent.mkdir()
    assert write_results([job, other], page) == ["not-run"]
    text = page.read_text(encoding="utf-8")
    for word in (
        "## Error against labels", "A thesis, Table 1.", "| labelled pixels | 3 | 8 | best k-NN |",
        "/ 53.7", "7 variants, ", " s of computing. Machine: ", "of 3 draws / published",
        "Not run yet: `eigenscape run jobs/studies/not-run.toml`",
    ):  # fmt: skip
        assert word in text
    # Every link leads to a file.
    links = re.findall(r"\]\((.+?)\)", text)
    assert sorted(links) == ["results/finished.csv", "results/finished.png"]
    for link in links:
        assert (page.parent / link).stat().st_size > 1000
    seconds = float(re.search(r"([0-9]+) s of computing", text).group(1))
    single = {row["run"]: row for row in result.rows}
    learn = sum(row["seconds_learn"] + row["seconds_export"] for row in single.values())
    shared = sum(
        next(iter(single.values()))[f"seconds_{stage}"]
        for stage in ("ingest", "features", "neighbors", "graph", "spectrum")
    )
    assert seconds == pytest.approx(learn + shared, abs=1)


def test_write_results__same_input_same_page(finished, tmp_path):
    job, _ = finished
    pages = []
    for _ in range(2):
        write_results([job], tmp_path / "RESULTS.md")
        pages.append((tmp_path / "RESULTS.md").read_bytes())
    assert pages[0] == pages[1]


@pytest.mark.slow
def test_write_results__a_small_version_says_so(write_study, tmp_path):
    job = load_job(write_study(), small=True)
    run_study(job)
    write_results([job], tmp_path / "RESULTS.md")
    text = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    assert "This is the small version" in text
    assert "`jobs/studies/study.toml --small`" in text


def test_write_results__a_job_that_is_no_study(tmp_path):
    job = parse_job({"scene": {"path": "a.npy"}}, name="plain")
    with pytest.raises(InputError, match=r"plain: has no table \[study\]"):
        write_results([job], tmp_path / "RESULTS.md")


def test_cli__results(finished, cli, tmp_path):
    job, result = finished
    page = tmp_path / "RESULTS.md"
    path = job.base / "finished.toml"
    done = cli("results", path, "--page", page, "--runs", result.path.parent)
    assert done.exit_code == 0, done.stderr
    assert done.stdout == f"{page}: 1 study\n"
    assert "## Error against labels" in page.read_text(encoding="utf-8")
    missing = cli("results", path, "--page", page, "--runs", tmp_path / "elsewhere")
    assert missing.exit_code == 0
    assert "finished has not run yet" in missing.stderr
