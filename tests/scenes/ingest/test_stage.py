import json
import re

import numpy as np
import pytest
import rasterio

from eigenscape import plan
from eigenscape.base.process.progress import Silent
from eigenscape.clusters import Threads
from eigenscape.errors import InputError, SceneError
from eigenscape.job.jobfile import load_job, parse_job
from eigenscape.scenes.ingest.stage import check_sizes, ingest_stage
from eigenscape.store.run import Run
from eigenscape.workflow.runner import StageRunner


@pytest.fixture
def ingested(tmp_path, write_job):
    """Run ingest on [scene]; return its summary and a reader of its arrays."""

    def work(threads=2, directory="run", **scene):
        job = load_job(write_job(scene=scene))
        run = Run(tmp_path / directory)
        record = StageRunner(run, Threads(threads), Silent()).run("ingest", "aa", ingest_stage, job)
        return record.summary, lambda name: run.open(name)[...]

    return work


def test_ingest_stage__valid_pixels_in_order(ingested, written, small):
    summary, read = ingested(labels="labels.tif")
    pixel = np.flatnonzero(~small.hole)
    np.testing.assert_array_equal(read("samples/pixel"), pixel)
    np.testing.assert_array_equal(read("samples/values"), small.cube.reshape(-1, 20)[pixel])
    np.testing.assert_array_equal(read("labels/given"), small.labels.ravel()[pixel])
    starts = np.concatenate([[0], np.cumsum((~small.hole).sum(axis=1))])
    np.testing.assert_array_equal(read("samples/row_start"), starts)
    assert summary["samples"] == len(pixel)
    counts = np.bincount(small.labels.ravel())
    assert summary["labelled"] == {str(n): int(counts[n]) for n in range(1, 5)}
    assert (summary["grid"]["height"], summary["grid"]["width"]) == (30, 40)
    assert "32633" in summary["grid"]["crs_wkt"]
    kinds = {name: read(name).dtype for name in ("samples/values", "samples/pixel", "labels/given")}
    assert [kind.str for kind in kinds.values()] == ["<f4", "<i8", "<u2"]


def test_ingest_stage__without_labels(ingested, written):
    summary, read = ingested()
    assert (summary["labelled"], summary["label_files"]) == ({}, [])
    with pytest.raises(FileNotFoundError):
        read("labels/given")


@pytest.mark.mostly_slow(3)
@pytest.mark.parametrize("kept", [0, 2**20])
@pytest.mark.parametrize("rows", [1, 3, 7, 30])
def test_ingest_stage__same_samples_for_any_strip(ingested, written, in_strips, rows, kept):
    expected = ingested(labels="labels.tif")
    in_strips(rows, kept)
    found = ingested(labels="labels.tif", directory="other")
    assert found[0] == expected[0]
    for name in ("samples/values", "samples/pixel", "samples/row_start", "labels/given"):
        np.testing.assert_array_equal(found[1](name), expected[1](name))


def test_ingest_stage__strips_and_rows_without_any_valid_pixel(
    ingested, write_tif, small, in_strips
):
    in_strips(4)
    hole = small.hole.copy()
    hole[8:17] = True
    hole[:, 11] = True
    write_tif("scene.tif", small.cube, hole=hole)
    summary, read = ingested()
    assert summary["samples"] == (~hole).sum()
    np.testing.assert_array_equal(read("samples/pixel"), np.flatnonzero(~hole))
    np.testing.assert_array_equal(read("samples/values"), small.cube[~hole])


@pytest.mark.parametrize("step", [50, 10**6])
def test_ingest_stage__cells_of_the_samples_of_several_lines(
    ingested, written, write_tif, small, in_strips, monkeypatch, step
):
    in_strips(4)
    monkeypatch.setattr("eigenscape.scenes.geometry.writing._STEP", step)
    moved = rasterio.Affine(30, 0, 364095 + 25 * 30, 0, -30, 5809965 - 12 * 30)
    write_tif("other.tif", small.cube[:20], hole=small.hole[:20], transform=moved)
    # Cells of 60 m: each shows one of four pixels.
    coarse = rasterio.Affine(60, 0, 364095, 0, -60, 5809965 - 40 * 30)
    write_tif("coarse.tif", small.cube[:6], transform=coarse)
    summary, read = ingested(path=["scene.tif", "other.tif", "coarse.tif"])
    width = summary["map"]["grid"]["width"]
    (row, column), (other_row, other_column) = (
        np.nonzero(~hole) for hole in (small.hole, small.hole[:20])
    )
    found = read("samples/place")
    first, second = len(row), len(row) + len(other_row)
    np.testing.assert_array_equal(found[:first], row * width + column)
    np.testing.assert_array_equal(found[first:second], (other_row + 12) * width + other_column + 25)
    # A pixel that several cells show lies in the first of them.
    row, column = np.divmod(np.arange(6 * 40), 40)
    np.testing.assert_array_equal(found[second:], (40 + 2 * row) * width + 2 * column)


@pytest.mark.parametrize("step", [50, 10**6])
def test_ingest_stage__pixels_that_no_cell_shows_lie_near_those_that_one_shows(
    ingested, written, write_tif, small, monkeypatch, step
):
    monkeypatch.setattr("eigenscape.scenes.geometry.writing._STEP", step)
    fine = rasterio.Affine(10, 0, 364095, 0, -10, 5809965 - 40 * 30)
    write_tif("fine.tif", small.cube, transform=fine)
    summary, read = ingested(path=["scene.tif", "fine.tif"])
    width = summary["map"]["grid"]["width"]
    row, column = np.divmod(read("samples/place")[-30 * 40 :].reshape(30, 40), width)
    assert np.abs(row - 40 - np.arange(30)[:, None] / 3).max() <= 1
    assert np.abs(column - np.arange(40) / 3).max() <= 1
    assert np.array_equal(row[1::3, 1::3], np.repeat(40 + np.arange(10), 13).reshape(10, 13))


def test_ingest_stage__several_blocks(ingested, write_tif, make_scene):
    scene = make_scene(110, 100, 3)
    write_tif("scene.tif", scene.cube, hole=scene.hole)
    _, read = ingested()
    np.testing.assert_array_equal(read("samples/values"), scene.cube[~scene.hole])


def test_ingest_stage__mask_and_bad_bands(ingested, written, write_tif, small):
    mask = np.ones((30, 40), np.uint8)
    mask[5:12, 20:] = 0
    write_tif("mask.tif", mask)
    _, read = ingested(mask="mask.tif", bad_bands=[2, "5-7"])
    kept = ~small.hole & (mask > 0)
    good = [band for band in range(20) if band not in (1, 4, 5, 6)]
    np.testing.assert_array_equal(read("samples/values"), small.cube[kept][:, good])


def test_ingest_stage__labels_are_counted_where_the_scene_is_valid(
    ingested, written, write_tif, small
):
    given = small.labels.copy()
    given[small.hole] = 3
    write_tif("labels.tif", given)
    summary, _ = ingested(labels="labels.tif")
    assert summary["labelled"]["3"] == (small.labels == 3).sum()


def test_ingest_stage__colours_are_those_of_classes(ingested, written, tmp_path):
    table = {number: (number, 90, 0) for number in range(256)}
    with rasterio.open(tmp_path / "labels.tif", "r+") as stored:
        stored.write_colormap(1, table)
    summary, _ = ingested(labels="labels.tif")
    assert summary["class_colors"] == {str(number): [number, 90, 0] for number in range(1, 5)}
    summary, _ = ingested(labels="labels.tif", classes={"9": "none yet"}, directory="named")
    assert summary["class_colors"]["9"] == [9, 90, 0]


def test_ingest_stage__one_labelled_class_is_no_error_of_its_own(
    ingested, written, write_tif, small
):
    write_tif("labels.tif", (small.labels == 2).astype(np.uint8) * 2)
    summary, _ = ingested(labels="labels.tif")
    assert list(summary["labelled"]) == ["2"]


def test_ingest_stage__identical_pixels(ingested, write_tif):
    write_tif("scene.tif", np.full((30, 40, 3), 7, np.float32))
    with pytest.raises(
        SceneError, match=r"scene\.tif: all valid pixels are identical.*scene\.mask"
    ):
        ingested()


def test_ingest_stage__one_constant_band_is_no_error(ingested, write_tif, small):
    cube = small.cube.copy()
    cube[..., 4] = 9
    write_tif("scene.tif", cube)
    assert ingested()[0]["samples"] == 1200


def test_ingest_stage__nothing_valid(ingested, write_tif, small):
    write_tif("scene.tif", small.cube, hole=np.ones((30, 40), bool))
    with pytest.raises(SceneError, match=r"no pixel is valid: .* of the 20 bands.*scene\.nodata"):
        ingested()


def test_ingest_stage__nan_band_is_named_with_its_cure(ingested, write_tif, small):
    cube = small.cube.copy()
    cube[..., [3, 11]] = np.nan
    write_tif("scene.tif", cube)
    with pytest.raises(SceneError, match=r"band 4, 12 is NaN.*scene\.bad_bands = \[4, 12\]"):
        ingested()
    assert ingested(bad_bands=[4, 12], directory="cured")[0]["samples"] == 1200
    with pytest.raises(SceneError, match=r"band 12 is NaN.*scene\.bad_bands = \[4, 12\]"):
        ingested(bad_bands=[4], directory="half")


@pytest.mark.parametrize("only_on_nodata", [True, False])
def test_ingest_stage__no_label_on_a_valid_pixel(
    ingested, written, write_tif, small, only_on_nodata
):
    given = np.zeros((30, 40), np.uint8)
    given[small.hole] = 2 * only_on_nodata
    write_tif("labels.tif", given)
    words = {
        True: rf"labels\.tif: all {small.hole.sum()} labelled pixels lie where the scene is nodata",
        False: r"labels\.tif: no pixel of the scene has a label",
    }
    with pytest.raises(SceneError, match=words[only_on_nodata]):
        ingested(labels="labels.tif")


def job(**tables):
    return parse_job({"scene": {"path": "x"}, **tables})


def test_check_sizes__accepts_the_limits():
    check_sizes(job(neighbors={"k": 99}, spectrum={"dimension": 99}), 100, {}, {}, 100)
    both = {1: 4, 2: 6}
    for train in (2, 9, "all", 0.5):
        tables = {"neighbors": {"k": 5}, "spectrum": {"dimension": 5}, "learn": {"train": train}}
        check_sizes(job(**tables), 100, both, {}, 100)


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"neighbors": {"k": 100}}, ["neighbors.k = 100", "100 valid pixels (of 120)", "to 99"]),
        (
            {"neighbors": {"k": 5}, "spectrum": {"dimension": 100}},
            ["spectrum.dimension = 100", "100 valid pixels", "at most 99", "to 99"],
        ),
        ({"learn": {"train": 10}}, ["learn.train = 10", "10 labels of 3", "3", "to 9"]),
        ({"learn": {"train": 2}}, ["learn.train = 2", "from 3", "to 9"]),
        ({"learn": {"train": 7, "split": "balanced"}}, ['7 with learn.split = "balanced"', "to 9"]),
        ({"learn": {"train": 6, "split": "balanced"}}, ["smallest class has 1", "to 3 or less"]),
    ],
)
def test_check_sizes__names_value_limit_and_fix(tables, words):
    small = {"neighbors": {"k": 5}, "spectrum": {"dimension": 5}}
    with pytest.raises(InputError) as caught:
        check_sizes(job(**{**small, **tables}), 100, {1: 3, 2: 6, 9: 1}, {}, 120)
    for word in words:
        assert word in str(caught.value)


def test_check_sizes__one_label_of_each_class_leaves_no_number_of_labels():
    small = {"neighbors": {"k": 5}, "spectrum": {"dimension": 5}, "learn": {"train": 2}}
    with pytest.raises(InputError, match=r'2 labels of 2 classes\. Give "all"\.'):
        check_sizes(job(**small), 100, {1: 1, 2: 1}, {}, 120)


def test_check_sizes__one_class():
    small = {"neighbors": {"k": 5}, "spectrum": {"dimension": 5}}
    with pytest.raises(
        SceneError, match=r"one class only: number 7 \(12 labelled\).* 0 means.*scene\.labels"
    ):
        check_sizes(job(**small), 100, {7: 12}, {}, 100)
    # A class with a name has a number that its file may not know.
    with pytest.raises(
        SceneError, match=r"one class only: meadow \(12 .*two or more\. Check scene"
    ):
        check_sizes(job(**small), 100, {7: 12}, {7: "meadow"}, 100)


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("fill", [-3.4028234663852886e38, 1e20])
def test_run__refuses_fill_values_that_nothing_marks(tmp_path, small, cli, write_job, fill):
    cube = small.cube.copy()
    cube[3, 4, 6] = fill
    np.save(tmp_path / "scene.npy", cube)
    np.save(tmp_path / "labels.npy", small.labels)
    keys = {"path": "scene.npy", "labels": "labels.npy"}
    result = cli("run", write_job(scene=keys), "--run-dir", tmp_path / "run")
    assert result.exit_code == 2
    assert f"band 7 holds {np.float32(fill):.10g}" in result.stderr
    found = re.search(r"scene\.nodata = (\S+)", result.stderr)
    fixed = write_job("fixed", scene={**keys, "nodata": float(found[1])})
    assert cli("run", fixed, "--run-dir", tmp_path / "fixed").exit_code == 0


def test_run__refuses_values_whose_squares_vanish(tmp_path, small, cli, write_job):
    np.save(tmp_path / "scene.npy", small.cube * np.float32(1e-30))
    np.save(tmp_path / "labels.npy", small.labels)
    keys = {"path": "scene.npy", "labels": "labels.npy"}
    result = cli("run", write_job(scene=keys), "--run-dir", tmp_path / "run")
    assert result.exit_code == 2
    found = re.search(r"Set scene\.scale, such as scene\.scale = (\S+);", result.stderr)
    fixed = write_job("fixed", scene={**keys, "scale": float(found[1])})
    assert cli("run", fixed, "--run-dir", tmp_path / "fixed").exit_code == 0


def test_plan__counts_a_file_that_is_read_whole(tmp_path, cli, write_job):
    cube = np.zeros((1000, 200, 60), np.float64)
    cube[0] = 1
    np.savez_compressed(tmp_path / "scene.npz", X=cube)
    np.save(tmp_path / "scene.npy", cube)
    peaks = []
    for name in ("scene.npz", "scene.npy"):
        planned = cli(
            "plan",
            write_job(scene={"path": name}, learn={"method": "spectral-clustering"}),
            "--json",
        )
        assert planned.exit_code == 0, planned.stderr
        peaks.append(json.loads(planned.stdout)["stages"][0]["peak_bytes"])
    assert peaks[0] - peaks[1] == cube.nbytes


def test_run__says_how_many_pixels_are_valid(cli, written, write_job, small):
    done = cli("run", write_job(scene={}))
    valid = np.count_nonzero(~small.hole)
    assert f"{valid:,} of 1,200 pixels are valid ({valid / 1200:.1%})" in done.stderr


@pytest.mark.slow
def test_run__tells_again_what_a_reused_ingest_left_out(cli, write_tif, write_job, make_scene):
    small = make_scene(40, 40, 6)
    write_tif("scene.tif", small.cube, hole=small.hole)
    labels = np.where(small.hole, 1, small.labels).astype(np.uint8)
    write_tif("labels.tif", labels, nodata=0)
    job = write_job(scene={"labels": "labels.tif"})
    first, second = cli("run", job), cli("run", job)
    for done in (first, second):
        lost, valid = np.count_nonzero(small.hole), np.count_nonzero(~small.hole)
        assert f"{lost} labelled pixels are left out: the scene is nodata" in done.stderr
        assert f"{valid:,} of 1,600 pixels are valid" in done.stderr
    assert "ingest: reused" in second.stderr


@pytest.mark.parametrize("origin", [0, 1e6])
def test_ingest_stage__warns_of_pixels_that_are_0_in_all_bands(
    ingested, write_tif, small, in_strips, origin
):
    cube = (small.cube + origin).astype(np.float64)
    cube[20:, :9] = 0
    write_tif("scene.tif", cube)
    in_strips(7)
    warning = "90 of 1,200 valid pixels (7.5%) are 0 in all bands. If nothing was measured there"
    assert warning in ingested()[0]["told"][-1]
    assert not any("0 in all" in text for text in ingested(nodata=0, directory="n")[0]["told"])
    cube[20:26] = 5
    write_tif("scene.tif", cube)
    assert not any("0 in all" in text for text in ingested(directory="few")[0]["told"])


@pytest.mark.parametrize("name", ["labels.tif", "labels.npy"])
def test_ingest_stage__warns_of_a_class_that_may_mean_no_label(
    ingested, written, write_tif, small, tmp_path, write_job, name
):
    labels = np.where(small.labels % 4 == 0, 255, small.labels)  # 4 is one of the classes
    write_tif("labels.tif", labels)
    np.save(tmp_path / "labels.npy", labels)
    count, total = np.count_nonzero((labels == 255) & ~small.hole), np.count_nonzero(~small.hole)
    told = ingested(labels=name)[0]["told"][-1]
    assert told.startswith(f"class 255 has {count} of {total:,} labelled pixels (")
    fix = f"gdal_edit.py -a_nodata 255 {tmp_path}" if name == "labels.tif" else "set it to 0"
    assert fix in told
    assert any("class 255 has" in note for note in plan(write_job(scene={"labels": name})).notes)
    # Declared, or not most of them, it is an ordinary value.
    write_tif("labels.tif", labels, nodata=255)
    few = np.where(small.labels == 1, 255, small.labels).astype(np.uint8)
    np.save(tmp_path / "labels.npy", few)
    assert not any("class 255" in text for text in ingested(labels=name, directory="b")[0]["told"])
