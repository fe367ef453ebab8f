from eigenscape import parse_job
from eigenscape.base.files.tables import read_table
from eigenscape.study.tabulate import tabulate


def test_tabulate__rows_by_columns(finished):
    job, result = finished
    shown = tabulate(job, read_table(result.outputs["csv"]))
    assert shown.corner == "labelled pixels"
    assert shown.header == ("3", "8", "best k-NN")
    assert [name for name, _ in shown.lines] == ["12", "40"]
    (first, blank, baseline), (_, second, unpublished) = (cells for _, cells in shown.lines)
    assert first.endswith("/ 53.7")
    assert blank == ""
    assert baseline.endswith("/ 28.1")
    assert second.endswith("/ 12.9")
    assert "/" not in unpublished
    error = next(row for row in result.rows if row["main"])
    assert first.startswith(f"{error['error']:.1f} ± {error['error_se']:.1f}")
    assert shown.caption[0] == "error (%), mean ± standard error of 3 draws / published."
    assert shown.caption[1].startswith("eigenfunctions: as good as published or better in ")
    assert "of 3 cells" in shown.caption[1]


def test_tabulate__one_column_for_each_measure(tmp_path):
    study = {"variants": [{"name": "exact"}, {"name": "fast"}], "measure": ["accuracy", "seconds"]}
    job = parse_job({"scene": {"path": "a.npy"}, "study": study}, base=tmp_path)
    rows = [
        {"state": "finished", "main": "true", "variant": name, "accuracy": a, "seconds": s}
        for name, a, s in (("exact", "77.25", "2118"), ("fast", "80.01", "0.0004"))
    ]
    shown = tabulate(job, rows)
    assert shown.header == ("overall accuracy (%)", "time (s)")
    assert shown.lines == (("exact", ("77.2", "2118")), ("fast", ("80.0", "4.0e-04")))
    assert shown.caption == ()


def test_tabulate__what_else_varies_makes_lines_of_its_own(tmp_path):
    grid = {"learn.k": [1], "learn.train": [5], "neighbors.k": [4, 8]}
    study = {"grid": grid, "measure": "error", "rows": "learn.k", "columns": "learn.train"}
    job = parse_job({"scene": {"path": "a.npy"}, "study": study}, base=tmp_path)
    rows = [
        {"state": "finished", "main": "true", "learn.k": "1", "learn.train": "5", "neighbors.k": k,
         "error": k}
        for k in ("4", "8")
    ]  # fmt: skip
    assert tabulate(job, rows).lines == (
        ("1, neighbors.k 4", ("4.0",)), ("1, neighbors.k 8", ("8.0",)),
    )  # fmt: skip
