import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from eigenscape.base.files import tables as table
from eigenscape.base.files.tables import (
    number_of,
    read_table,
    text_of,
    write_csv,
    write_table,
)

ROWS = [
    {"variant": "a, b", "learn.eigenvectors": 5, "error": 1.5, "main": True, "x": 1},
    {"variant": "c", "learn.eigenvectors": "auto", "error": None, "main": False, "x": 2.5},
    {"variant": "d", "failed": 'line\nbreak "quoted"'},
]


def test_write_table__csv_and_parquet_say_the_same(tmp_path):
    files = write_table(tmp_path, ROWS)
    assert set(files) == {"csv", "parquet"}
    found = parquet.read_table(files["parquet"]).to_pylist()
    assert [row["error"] for row in found] == [1.5, None, None]
    assert [row["main"] for row in found] == [True, False, None]
    # One type for each column.
    assert [row["learn.eigenvectors"] for row in found] == ["5", "auto", None]
    assert [row["x"] for row in found] == [1.0, 2.5, None]
    texts = read_table(files["csv"])
    assert texts == [
        {name: text_of(value) for name, value in row.items() if value is not None} for row in ROWS
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["table.csv", "table.parquet"]


def test_write_table__without_pyarrow_csv_alone(tmp_path, monkeypatch):
    write_table(tmp_path, ROWS)
    monkeypatch.setattr(table, "find_spec", lambda name: None)
    assert set(write_table(tmp_path, ROWS)) == {"csv"}
    assert not (tmp_path / "table.parquet").exists()


def test_read_table__comments_and_blanks(tmp_path):
    (tmp_path / "a.csv").write_text("# source\nvariant,error\n k ,\n,2.0\n", encoding="utf-8")
    assert read_table(tmp_path / "a.csv") == [{"variant": "k"}, {"error": "2.0"}]


@pytest.mark.parametrize(("name", "separator"), [("a.csv", ";"), ("a.csv", "\t"), ("a.tsv", "\t")])
def test_read_table__of_other_separators(tmp_path, name, separator):
    lines = ("# source", separator.join(["scene.path", "k"]), separator.join(["a,b.tif", "5"]))
    (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")
    assert read_table(tmp_path / name) == [{"scene.path": "a,b.tif", "k": "5"}]


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**9), 10**9))
def test_text_of__numbers_come_back(value):
    assert number_of(text_of(value)) == pytest.approx(value)


def test_text_of__equal_numbers_have_one_text():
    assert text_of(5) == text_of(5.0) == "5"
    assert text_of(True) == "true"


def test_read_table__ignores_a_byte_order_mark(tmp_path):
    (tmp_path / "a.csv").write_bytes("scene.path,name\na.tif,ä\n".encode("utf-8-sig"))
    assert read_table(tmp_path / "a.csv") == [{"scene.path": "a.tif", "name": "ä"}]


def test_write_csv__a_row_that_begins_as_a_comment_comes_back(tmp_path):
    rows = [{"variant": '#1, "red"', "x": "2"}, {"variant": "#2"}, {"variant": "a", "x": "#"}]
    write_csv(tmp_path / "a.csv", rows, ["variant", "x"])
    assert read_table(tmp_path / "a.csv") == rows


def test_write_csv__bytes_that_are_not_utf_8_are_escaped(tmp_path):
    write_csv(tmp_path / "a.csv", [{"files": "a\udcff.tif"}], ["files"])
    assert read_table(tmp_path / "a.csv") == [{"files": "a\\udcff.tif"}]
