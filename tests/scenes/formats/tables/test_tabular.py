"""CSV and Parquet files as tables: columns by name, labels in a column, missing values refused."""

import gzip
import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eigenscape.errors import MissingExtraError, SceneError
from eigenscape.scenes.describe import describe_scene
from eigenscape.scenes.formats.tables import csvfiles, parquetfiles
from eigenscape.scenes.formats.tables.tabularfiles import open_tabular

ENDINGS = ["csv", "tsv", "parquet"]
TREES = np.array(["oak", "ash", "elm"])


def save(folder, name, frame):
    path = folder / name
    if path.suffix == ".parquet":
        frame.to_parquet(path, row_group_size=max(1, len(frame) // 3), index=False)
    else:
        frame.to_csv(path, sep="\t" if path.suffix == ".tsv" else ",", index=False)
    return path


@pytest.fixture
def small_blocks(monkeypatch):
    """Read files in many small parts."""
    monkeypatch.setattr(csvfiles, "_BLOCK", 64)
    monkeypatch.setattr(parquetfiles, "_BATCH", 7)
    csvfiles._open.cache_clear()


@pytest.fixture
def frame(rng):
    y = rng.integers(0, 3, 100)
    columns = {name: rng.normal(size=100) for name in "abc"}
    return pd.DataFrame({**columns, "tree": TREES[y], "code": y + 1, "d": rng.integers(0, 9, 100)})


@pytest.mark.mostly_slow(3)
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("shape", [(100, 3), (3000, 20), (140_000, 2)])
def test_rows_are_samples(tmp_path, scene, rng, shape, ending):
    X = rng.normal(size=shape).astype(np.float32)
    save(tmp_path, f"t.{ending}", pd.DataFrame(X, columns=[f"x{i}" for i in range(shape[1])]))
    opened = pickle.loads(pickle.dumps(scene(f"t.{ending}")))
    size = f"{shape[0]:,} samples x {shape[1]} features"
    assert describe_scene(opened) == [f"table of {size} (t.{ending})"]
    for start, stop in ((0, shape[0]), (7, 8), (shape[0] - 50, shape[0])):
        values, valid = opened.read(start, stop)
        np.testing.assert_array_equal(values[:, 0], X[start:stop])
        assert valid.all()


@pytest.mark.parametrize("ending", ENDINGS)
def test_columns_of_numbers_but_the_labels(tmp_path, scene, labels, frame, ending):
    save(tmp_path, f"t.{ending}", frame)
    whole = scene(f"t.{ending}")
    assert whole.bands.names == ("a", "b", "c", "code", "d")
    assert describe_scene(whole)[1:] == ["columns left out: tree (text)"]
    keys = {"labels_field": "tree"}
    assert scene(f"t.{ending}", **keys).bands.names == ("a", "b", "c", "code", "d")
    found = labels(f"t.{ending}", **keys)
    assert dict(found.legend.names) == {1: "ash", 2: "elm", 3: "oak"}
    names = np.array(["", "ash", "elm", "oak"])[found.read(10, 60)[:, 0]]
    np.testing.assert_array_equal(names, frame.tree[10:60])
    # Numbers are class numbers; the column of the labels is no feature.
    keys = {"labels": f"t.{ending}", "labels_field": "code"}
    assert scene(f"t.{ending}", **keys).bands.names == ("a", "b", "c", "d")
    np.testing.assert_array_equal(labels(f"t.{ending}", **keys).read(0, 100)[:, 0], frame.code)
    assert labels(f"t.{ending}") is None


@pytest.mark.parametrize("ending", ENDINGS)
def test_columns_by_name_number_and_range(tmp_path, scene, frame, ending):
    save(tmp_path, f"t.{ending}", frame)
    for columns, names in (
        (["d", "a"], "da"),
        ([3, "b"], "cb"),
        (["1-3"], "abc"),
        (["2 - 3", 1], "bca"),
    ):
        opened = scene(f"t.{ending}", columns=columns)
        assert opened.bands.names == tuple(names)
        expected = frame[list(names)].to_numpy(np.float32)
        np.testing.assert_array_equal(opened.read(5, 90)[0][:, 0], expected[5:90])
    left = scene(f"t.{ending}", columns=["d", "a", "c"], bad_bands=[2], scale=2)
    expected = 2 * frame[["d", "c"]].to_numpy()
    np.testing.assert_array_equal(left.read(0, 100)[0][:, 0], expected.astype(np.float32))
    for columns, words in (
        (["treee"], r"no column 'treee' \(scene.columns\). Did you mean tree\?"),
        (["tree"], "'tree' .*not a number"),
        (["a", "1-2"], "'a' twice"),
        ([7], "7 is not a range of columns.*1 to 6"),
        (["3-2"], "not a range"),
    ):
        with pytest.raises(SceneError, match=words):
            scene(f"t.{ending}", columns=columns)
    with pytest.raises(SceneError, match="'code' holds the labels"):
        scene(f"t.{ending}", columns=["a", "code"], labels_field="code")
    with pytest.raises(SceneError, match=r"no column 'cod' .*labels_field.*mean code"):
        scene(f"t.{ending}", labels_field="cod")


@pytest.mark.mostly_slow(2)
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.usefixtures("small_blocks")
def test_missing_values_are_refused(tmp_path, scene, frame, ending, value):
    frame.loc[70, "b"] = value
    save(tmp_path, f"t.{ending}", frame)
    what = "has no value" if np.isnan(value) else "is infinite"
    with pytest.raises(SceneError, match=rf"'b' {what} in row 71 .*scene.columns"):
        scene(f"t.{ending}").read(50, 100)
    opened = scene(f"t.{ending}", columns=["a", "c"])
    assert opened.read(0, 100)[1].all()
    assert scene(f"t.{ending}", bad_bands=[2], columns=["a", "c"]).bands.count == 1


@pytest.mark.usefixtures("small_blocks")
def test_a_parquet_null_is_missing_and_types_are_numbers(tmp_path, scene):
    frame = pd.DataFrame({
        "whole": pd.array([1, None, 3], "Int64"), "yes": [True, False, True],
        "half": np.array([1, 2, 3], np.float16), "day": pd.to_datetime(["2020-01-01"] * 3),
    })  # fmt: skip
    save(tmp_path, "t.parquet", frame)
    values, _ = scene("t.parquet", columns=["yes", "half"]).read(0, 3)
    np.testing.assert_array_equal(values[:, 0], [[1, 1], [0, 2], [1, 3]])
    with pytest.raises(SceneError, match="'whole' has no value in row 2"):
        scene("t.parquet").read(0, 3)
    with pytest.raises(SceneError, match="'day' is of type timestamp"):
        scene("t.parquet", columns=["day"])


def test_a_column_of_numbers_and_words_is_refused(tmp_path, scene, frame):
    frame["b"] = frame.b.astype(str)
    frame.loc[40, "b"] = "1,5"
    save(tmp_path, "t.csv", frame)
    with pytest.raises(SceneError, match=r"'b' holds '1,5' in row 41, and decimals need a point"):
        scene("t.csv")
    assert scene("t.csv", columns=["a", "c"]).bands.count == 2


@pytest.mark.parametrize("ending", ENDINGS)
def test_samples_draw_rows(tmp_path, scene, labels, frame, ending):
    save(tmp_path, f"t.{ending}", frame)
    keys = {"labels_field": "code", "samples": 30, "seed": 1}
    opened = scene(f"t.{ending}", **keys)
    rows = opened.subset.rows
    np.testing.assert_array_equal(opened.read(0, 30)[0][:, 0, 0], frame.a[rows].astype("f4"))
    np.testing.assert_array_equal(
        labels(f"t.{ending}", **keys).read(4, 9)[:, 0], frame.code[rows[4:9]]
    )


@pytest.mark.parametrize("ending", ENDINGS)
def test_labels_of_another_file(tmp_path, scene, labels, frame, ending):
    np.save(tmp_path / "t.npy", frame[["a", "b"]].to_numpy())
    save(tmp_path, f"t.{ending}", frame[["a", "tree"]])
    y = pd.DataFrame({"label": frame.tree, "other": frame.a})
    y.loc[[3, 5], "label"] = None
    save(tmp_path, f"y.{ending}", y)
    for path in ("t.npy", f"t.{ending}"):
        found = labels(path, labels=f"y.{ending}")
        given = found.read(0, 100)[:, 0]
        assert set(np.flatnonzero(given == 0)) == {3, 5}
        np.testing.assert_array_equal([found.legend.names[n] for n in given if n], y.label.dropna())
    # A column of that name in the scene is no feature, whoever has the labels.
    keys = {"labels": f"y.{ending}", "labels_field": "label"}
    save(tmp_path, f"both.{ending}", frame.assign(label=frame.code))
    assert "label" not in scene(f"both.{ending}", **keys).bands.names
    assert any("'label' is taken" in note for note in describe_scene(scene(f"both.{ending}")))
    save(tmp_path, f"short.{ending}", y[:99])
    with pytest.raises(SceneError, match=r"99 rows.*table of 100 samples"):
        labels("t.npy", labels=f"short.{ending}")
    np.save(tmp_path / "cube.npy", np.ones((10, 10, 2)))
    with pytest.raises(SceneError, match="image of 10 x 10"):
        labels("cube.npy", labels=f"y.{ending}")
    with pytest.raises(SceneError, match=r"scene\.mask is an array"):
        scene("t.npy", mask=f"y.{ending}")
    with pytest.raises(SceneError, match=r"none of its columns.*labels_field"):
        labels(f"t.{ending}", labels=f"t.{ending}")


@pytest.mark.parametrize(
    ("values", "numbers", "names"),
    [
        (["3", "", "1", "NA"], [3, 0, 1, 0], {}),
        (["1.0", "2", "nan", "0"], [1, 2, 0, 0], {}),
        (["b", "", "none", "b"], [1, 0, 2, 1], {1: "b", 2: "none"}),
        (["b", "0", "2", "0"], [3, 1, 2, 1], {1: "0", 2: "2", 3: "b"}),
        (["1_1", "11", "1_2", "11"], [2, 1, 3, 1], {1: "11", 2: "1_1", 3: "1_2"}),
        (["x 1", '"y, z"', "x 1 ", ""], [1, 2, 1, 0], {1: "x 1", 2: "y, z"}),
    ],
)
def test_texts_of_labels(tmp_path, labels, values, numbers, names):
    rows = "".join(f"{number},{value}\n" for number, value in enumerate(values))
    (tmp_path / "t.csv").write_text("a,y\n" + rows)
    found = labels("t.csv", labels_field="y")
    assert found.read(0, 4)[:, 0].tolist() == numbers
    assert found.legend.names == names
    assert bool(found.notes) == (values == ["1.0", "2", "nan", "0"])


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_missing_names_of_labels_are_told(tmp_path, labels, ending):
    frame = pd.DataFrame({"a": range(6), "y": ["wood", "NA", "Na", "NaN", "NA", ""]})
    if ending == "csv":
        frame.to_csv(tmp_path / "t.csv", index=False)
    else:
        frame.to_parquet(tmp_path / "t.parquet")
    found = labels(f"t.{ending}", labels_field="y")
    assert found.read(0, 6)[:, 0].tolist() == [2, 0, 1, 0, 0, 0]
    assert found.legend.names == {1: "Na", 2: "wood"}
    assert found.notes == (
        "NA, NaN in the column 'y' means no label (3 of 6 rows). If it is a class, give it another name",
    )


def test_codes_that_are_one_number_are_told(tmp_path, labels):
    codes = ["01", "1", "2", "3", "03", "04", "4", "5.0", "5", ""]
    (tmp_path / "t.csv").write_text("a,y\n" + "".join(f"7,{code}\n" for code in codes))
    found = labels("t.csv", labels_field="y")
    assert found.read(0, 10)[:, 0].tolist() == [1, 1, 2, 3, 3, 4, 4, 5, 5, 0]
    assert found.notes == (
        "01 and 1, 03 and 3, 04 and 4, ... in the column 'y' are numbers of the same class. If they are "
        "different classes, give them names",
    )


@pytest.mark.parametrize("ending", ENDINGS)
def test_columns_that_are_left_out_are_told_by_what_they_hold(tmp_path, scene, ending):
    columns = {"a": [1.5, 2, 3], "y": ["p", "q", "p"], "kind": pd.Categorical(["p", "q", "p"])}
    told = "y (text), kind (text)"
    if ending == "parquet":
        columns |= {"day": pd.date_range("2020", periods=3), "list": [[1], [2], [3]]}
        told += ", day (timestamp[ns]), list (list<element: int64>)"
    else:
        columns |= {"dry": [True, False, True], "odd": [True, False, "?"]}
        told += ", dry (booleans), odd (text)"
    save(tmp_path, f"t.{ending}", pd.DataFrame(columns))
    assert describe_scene(scene(f"t.{ending}"))[1:] == [f"columns left out: {told}"]


@pytest.mark.parametrize("mark", ["-1", "0", "None"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_marks_of_no_label_beside_names(tmp_path, labels, mark, ending):
    given = pd.DataFrame({"a": range(4), "y": ["wood", mark, "fen", mark]})
    save(tmp_path, f"t.{ending}", given)
    found = labels(f"t.{ending}", labels_field="y")
    assert found.read(0, 4)[:, 0].tolist() == [2, 0, 1, 0]
    assert found.notes == (
        f"{mark} in the column 'y' means no label (2 of 4 rows). If it is a class, give it another name",
    )


@pytest.mark.parametrize("values", [["1", "0.5"], ["-1", "1"], ["70000", "1"]])
def test_numbers_that_are_no_classes_are_refused(tmp_path, labels, values):
    rows = "".join(f"{number},{value}\n" for number, value in enumerate(values))
    (tmp_path / "t.csv").write_text("a,y\n" + rows)
    with pytest.raises(SceneError, match=r"column|attribute y: label value out of range"):
        labels("t.csv", labels_field="y")


def test_heads_of_csv_files(tmp_path, scene, rng):
    X = rng.normal(size=(50, 3)).astype(np.float32)
    np.savetxt(tmp_path / "bare.csv", X, delimiter=",")
    np.savetxt(tmp_path / "hash.csv", X, delimiter=",", header="a,b,c")
    body = "\r\n\r\n".join(" ; ".join(map(repr, row)) for row in X.tolist())
    (tmp_path / "windows.csv").write_text(f"\ufeff\r\n a;b;c\r\n{body}", encoding="utf-8")
    pd.DataFrame(X, columns=list("abc")).to_csv(tmp_path / "index.csv")
    for name in ("bare", "hash", "windows", "index"):
        opened = scene(f"{name}.csv")
        np.testing.assert_array_equal(opened.read(0, 50)[0][:, 0], X)
        assert opened.bands.names == (None if name == "bare" else tuple("abc"))
    assert "no name, an index" in describe_scene(scene("index.csv"))[1]
    np.testing.assert_array_equal(scene("bare.csv", columns=[3]).read(0, 50)[0][:, 0, 0], X[:, 2])


def test_an_index_of_pandas_is_no_feature(tmp_path, scene, labels):
    frame = pd.DataFrame({"a": [1.5, 2, 3], "b": [3, 2, 1.5], "y": ["p", "q", "p"]})
    plots = pd.Index([10, 11, 12], name="plot")
    sites = pd.MultiIndex.from_arrays([[1, 2, 3], [4, 5, 6]], names=["site", None])
    for index, told in (
        (plots, "y (text), plot (an index)"),
        (sites, "y (text), site (an index), column 5 (no name, an index)"),
        (pd.RangeIndex(3, name="plot"), "y (text)"),
        (plots.astype(str), "y (text), plot (text)"),
    ):
        frame.set_axis(index).to_parquet(tmp_path / "t.parquet")
        opened = scene("t.parquet")
        assert opened.bands.names == ("a", "b")
        assert describe_scene(opened)[1:] == [f"columns left out: {told}"]
    frame.set_axis(plots).to_parquet(tmp_path / "t.parquet")
    named = scene("t.parquet", columns=["b", "plot"])
    assert named.read(0, 3)[0][:, 0].tolist() == [[3, 10], [2, 11], [1.5, 12]]
    # An index may hold the labels.
    frame.set_index("y").to_parquet(tmp_path / "t.parquet")
    assert labels("t.parquet", labels_field="y").read(0, 3)[:, 0].tolist() == [1, 2, 1]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.usefixtures("small_blocks")
def test_row_numbers_are_told(tmp_path, scene, frame, ending):
    numbered = frame.assign(
        id=np.arange(100) + 10_000, half=np.arange(100) / 2, even=range(0, 200, 2)
    )
    save(tmp_path, f"t.{ending}", numbered)
    told = (
        "the column 'id' rises by 1 from row to row, as row numbers do, and is taken for a feature; to leave "
        "it out, add 6 to scene.bad_bands"
    )
    assert describe_scene(scene(f"t.{ending}"))[2:] == [told]
    assert told in describe_scene(scene(f"t.{ending}", samples=50))
    assert told not in describe_scene(scene(f"t.{ending}", bad_bands=[6]))
    assert describe_scene(scene(f"t.{ending}", columns=["a", "id"]))[1:] == []
    save(tmp_path, f"few.{ending}", numbered[["a", "id"]][:19])
    assert describe_scene(scene(f"few.{ending}"))[1:] == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "file is empty"),
        ("a,b\n", "no rows"),
        ("a,a\n1,2\n", "'a' stands twice"),
        ("a,b\nx,y\n", "no column holds numbers"),
        ("a,b\n1,2,3\n", "row 1 has 3 values, and the first line 2"),
        ("a,b\n1,2\n3,4,5\n", "rows have different numbers of values"),
        ("a,b\n1,2\n3\n", "'b' has no value in row 2"),
        ("a;b\n1,5;2\n", "'a' holds '1,5' in row 1"),
        ('a,b\n"1 000",2\n', "'a' holds '1 000' in row 1"),
        ("a,b\n1,True\n2,False\n", None),
    ],
)
def test_damaged_csv_files(tmp_path, scene, text, words):
    (tmp_path / "t.csv").write_text(text)
    if words is None:
        assert scene("t.csv").bands.names == ("a",)
        return
    with pytest.raises(SceneError, match=words):
        scene("t.csv").read(0, 1)


def test_another_encoding_is_refused(tmp_path, scene):
    (tmp_path / "t.csv").write_bytes("a,b\n1,\xe9t\xe9\n".encode("latin-1"))
    with pytest.raises(SceneError, match="not in UTF-8"):
        scene("t.csv")


@pytest.mark.parametrize("ending", ENDINGS)
def test_true_and_false_are_classes(tmp_path, labels, ending):
    save(tmp_path, f"t.{ending}", pd.DataFrame({"a": [1.0, 2.0, 3.0], "y": [True, False, True]}))
    found = labels(f"t.{ending}", labels_field="y")
    assert found.read(0, 3)[:, 0].tolist() == [2, 1, 2]
    assert [name.lower() for name in found.legend.names.values()] == ["false", "true"]


def test_other_files_are_refused(tmp_path, scene, monkeypatch):
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 not")
    with pytest.raises(SceneError, match="truncated or damaged"):
        scene("bad.parquet")
    with gzip.open(tmp_path / "t.csv.gz", "wt") as stream:
        stream.write("a,b\n1,2\n")
    with pytest.raises(SceneError, match="Unpack it"):
        scene("t.csv.gz")
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    for keys, words in (({"variable": "a"}, "scene.columns"), ({"layout": "image"}, "samples")):
        with pytest.raises(SceneError, match=words):
            scene("t.csv", **keys)
    monkeypatch.setattr(csvfiles, "_LONGEST_ROW", 100)
    (tmp_path / "quote.csv").write_text('a,b\n"1,2\n' + "3,4\n" * 100)
    with pytest.raises(SceneError, match="quote"):
        scene("quote.csv")
    monkeypatch.delitem(sys.modules, "eigenscape.scenes.formats.tables.parquetfiles")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"eigenscape\[tables\]"):
        scene("bad.parquet")


def test_a_file_that_changes_is_noticed(tmp_path, scene):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n" * 100)
    opened = scene("t.csv")
    path.write_text("a,b\n" + "1,2\n" * 50)
    with pytest.raises(SceneError, match="was changed"):
        opened.read(0, 100)
    assert scene("t.csv").grid.height == 50


CELLS = st.text(st.sampled_from('ab,;" \n\r'), max_size=4)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(rows=st.lists(st.tuples(st.floats(-1e6, 1e6, width=32), CELLS), min_size=1), data=st.data())
@pytest.mark.usefixtures("small_blocks")
def test_any_text_in_quotes_leaves_rows_whole(tmp_path, rows, data):
    """Blocks are cut between rows, whatever the values hold: as pandas reads the file at once."""
    frame = pd.DataFrame(rows, columns=["x", "word"])
    csvfiles._open.cache_clear()
    # Each value in quotes, so that none is a blank line.
    frame.to_csv(tmp_path / "t.csv", index=False, quoting=1, lineterminator="\n")
    file = open_tabular(str(tmp_path / "t.csv"))
    assert file.rows == len(rows)
    start = data.draw(st.integers(0, len(rows) - 1))
    stop = data.draw(st.integers(start + 1, len(rows)))
    found = np.concatenate(list(file.numbers([0], start, stop)))[:, 0]
    np.testing.assert_array_equal(found.astype(np.float32), frame.x[start:stop].astype(np.float32))
    words = np.concatenate(list(file.words(1, start, stop)))
    assert words.tolist() == [word.strip() for word in frame.word[start:stop]]
