import csv

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eigenscape.base.files.cells import from_cell, to_cell
from eigenscape.base.files.tables import read_table, write_csv
from eigenscape.export.sidecar import write_legend_csv
from eigenscape.scenes.types import Legend


@pytest.mark.slow
@given(st.one_of(st.text(), st.text("=+-@'\t\r1.e", max_size=4)))
@example("''=a")
def test_cells__no_formula_and_back(text):
    cell = to_cell(text)
    assert from_cell(cell) == text
    if cell[:1] in tuple("=+-@\t\r"):
        float(cell)


@pytest.mark.parametrize(
    "name", ['=HYPERLINK("http://x")', "@SUM(1)", "+cmd|' /C calc'!A0", "-a", "\t=1"]
)
def test_write_legend_csv__class_names_are_no_formulas(tmp_path, name):
    write_legend_csv(tmp_path / "legend.csv", Legend({1: name, 2: "corn-notill"}, {}))
    with (tmp_path / "legend.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["name"] for row in rows] == [f"'{name}", "corn-notill"]


def test_write_csv__what_is_read_again_is_what_was_written(tmp_path):
    row = {"scene": "=tiles", "reason": "-x", "seconds": -5.5, "run": "'=a"}
    write_csv(tmp_path / "t.csv", [row], list(row))
    assert (tmp_path / "t.csv").read_text().splitlines()[1] == "'=tiles,'-x,-5.5,''=a"
    assert read_table(tmp_path / "t.csv") == [{name: str(value) for name, value in row.items()}]
