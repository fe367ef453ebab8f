"""Runs applied to other scenes, through the command line and the library."""

import json
from pathlib import Path

import numpy as np
import pandas
import pytest
import rasterio

import eigenscape
import filtering
from eigenscape.applied import extending, footprint, index, supportvectors
from eigenscape.applied.model import applied_job, open_model
from eigenscape.applied.run import apply
from eigenscape.clusters import Threads
from eigenscape.errors import InputError, JobError, SceneError
from eigenscape.job.options import FilterOptions
from eigenscape.store.manifest import FORMAT, write_manifest
from eigenscape.store.run import Run
from harness import Frail, KilledError, Notes
from inputs.smallscene import make_small

WIDE = {"height": 36, "width": 60, "bands": 12, "labelled": 0.6}


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    """The left part of a scene, to learn from, and the right part, with labels in a file of their own."""
    folder = tmp_path_factory.mktemp("scenes")
    small = make_small(**WIDE)
    wavelength = np.linspace(400, 950, 12)
    for name, columns in (("left", slice(0, 40)), ("right", slice(40, 60))):
        transform = rasterio.Affine(30, 0, 364095 + 30 * columns.start, 0, -30, 5809965)
        for kind, cube in (("", small.cube), ("_labels", small.labels[..., None])):
            part = np.moveaxis(cube[:, columns], -1, 0)
            with rasterio.open(
                folder / f"{name}{kind}.tif", "w", driver="GTiff", height=36, width=part.shape[2],
                count=len(part), dtype=part.dtype, crs="EPSG:32633", transform=transform,
                nodata=0 if kind else -1,
            ) as dataset:  # fmt: skip
                dataset.write(part)
                if not kind:
                    for band, centre in enumerate(wavelength, 1):
                        dataset.update_tags(band, wavelength=f"{centre:.1f}", wavelength_units="nm")
    return folder


@pytest.fixture(scope="module")
def trained(scenes):
    """Run a job on the left part; runs are made once for each method."""
    made = {}

    def make(method, **tables):
        key = (method, str(tables))
        if key not in made:
            job = {
                "scene": {
                    "path": str(scenes / "left.tif"), "labels": str(scenes / "left_labels.tif"),
                    "bad_bands": [3],
                },
                "neighbors": {"k": 8, "method": "exact"}, "spectrum": {"dimension": 8},
                "learn": {"method": method}, "limits": {"threads": 2},
                "output": {"directory": str(scenes / "runs"), "formats": []},
            }  # fmt: skip
            if method not in ("spectral-clustering", "normalized-cut"):
                job["learn"]["trials"] = 2
            for name, table in tables.items():
                job[name] = {**job.get(name, {}), **table}
            made[key] = eigenscape.run(eigenscape.parse_job(job, name=method))
        return made[key].path

    return make


def arrays(path):
    run = Run(path, create=False)
    return [np.asarray(run.open(f"labels/{name}")[...]) for name in ("class", "confidence")]


SAY = ["output.formats=[]", "limits.threads=2"]


def test_apply__writes_the_class_map_of_another_scene(scenes, trained, tmp_path, cli):
    run, target = trained("centroid-angle"), tmp_path / "applied"
    arguments = [
        "apply", run, "--scene", scenes / "right.tif", "--labels", scenes / "right_labels.tif",
        "--run-dir", target, "--set", "limits.threads=2",
        "--set", 'output.formats=["geotiff", "png"]',
    ]  # fmt: skip
    done = cli(*arguments, "--json")
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert [stage["name"] for stage in told["stages"]] == ["ingest", "extend", "export"]
    shift = told["applied"].pop("shift")
    assert told["applied"] == {
        "how": "eigenvectors", "machine": None, "samples": 720, "without_class": 0, "far": 0,
    }  # fmt: skip
    assert shift["differs"] == (shift["farther"] > shift["limit"]) == bool(shift["message"])
    assert told["scores"]["overall_accuracy"] > 0.97
    assert "has not seen" in told["scores"]["protocol"]
    assert set(told["outputs"]) == {
        "class_map", "confidence", "confusion", "entropy", "legend", "quicklook", "scores",
    }  # fmt: skip
    rows = Path(told["outputs"]["scores"]).read_text().splitlines()
    assert any(row.endswith(f",{told['scores']['overall_accuracy']:.6g},,") for row in rows)
    with rasterio.open(told["outputs"]["class_map"]) as dataset:
        assert dataset.shape == (36, 20)
        assert dataset.transform.c == 364095 + 30 * 40
        assert dataset.read(1).min() >= 1
    with rasterio.open(told["outputs"]["confidence"]) as dataset:
        np.testing.assert_array_equal(dataset.read(1).ravel(), arrays(target)[1])
    # Nothing is computed twice, and status follows.
    again = json.loads(cli(*arguments, "--json").stdout.splitlines()[-1])
    assert all(stage["reused"] for stage in again["stages"])
    assert again["scores"] == told["scores"]
    found = json.loads(cli("status", target, "--json").stdout)
    assert (found["state"], len(found["stages"])) == ("finished", 3)
    assert "accuracy" in cli(*arguments).stdout
    with pytest.raises(InputError, match="is itself a run applied"):
        apply(target, scenes / "right.tif")


METHODS = [
    (
        "eigenfunctions",
        {"learn": {"prior": "uniform"}, "graph": {"laplacian": "unnormalized"}}, "eigenvectors",
    ),
    ("k-nn", {"neighbors": {"metric": "angle"}}, "support-vectors"),
    # A weight of roughness keeps functions to the samples of the run.
    ("eigenfunctions", {"learn": {"gamma": 0.1}}, "support-vectors"),
    ("tikhonov", {"graph": {"spatial": {}}}, "support-vectors"),
    # Fewer labels than a machine wants.
    (
        "centroid-angle",
        {"neighbors": {"method": "radius", "radius": 500.0}, "learn": {"train": 20}}, "neighbors",
    ),
]  # fmt: skip


@pytest.mark.mostly_exhaustive(2)
@pytest.mark.slow
@pytest.mark.parametrize(("method", "tables", "how"), METHODS)
def test_apply__every_kind_of_run_knows_its_own_scene_and_the_next(
    scenes, trained, tmp_path, method, tables, how
):
    run = trained(method, **tables)
    own = apply(run, scenes / "left.tif", overrides=SAY, run_dir=tmp_path / "own")
    assert (own.applied["how"], own.scores) == (how, {})
    classes, confidence = arrays(run)
    same, sure = arrays(own.path)
    assert (same == classes).mean() > 0.995
    assert np.abs(sure - confidence).mean() < 0.02
    other = apply(
        run, scenes / "right.tif", labels=scenes / "right_labels.tif", overrides=SAY,
        run_dir=tmp_path / "other",
    )  # fmt: skip
    assert other.scores["overall_accuracy"] > 0.95
    assert other.scores["unknown_classes"] == []


@pytest.mark.parametrize(("train", "how"), [("all", "support-vectors"), (20, "neighbors")])
def test_apply__a_smoothed_map_stays_as_it_is_on_its_own_scene(
    scenes, trained, tmp_path, train, how
):
    # The eigenvectors of a new sample give scores that nothing has smoothed; the calibration is of others.
    run = trained("centroid-angle", learn={"train": train, "smoothing": 20.0})
    own = apply(run, scenes / "left.tif", overrides=SAY, run_dir=tmp_path / "own")
    assert own.applied["how"] == how
    for one, two in zip(arrays(own.path), arrays(run), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-6)


@pytest.mark.parametrize(("train", "how"), [("all", "support-vectors"), (40, "neighbors")])
def test_apply__a_prior_moves_the_shares(scenes, trained, tmp_path, train, how):
    shares = {}
    for prior in ("none", (0.999997, 1e-6, 1e-6, 1e-6)):
        run = trained("k-nn", learn={"train": train, "prior": prior, "k": 30})
        found = apply(
            run, scenes / "right.tif", overrides=SAY, run_dir=tmp_path / str(prior == "none")
        )
        assert found.applied["how"] == how
        shares[prior] = (arrays(found.path)[0] == 1).mean()
    none, first = shares.values()
    assert first > none


def test_apply__compares_classes_by_name(scenes, trained, tmp_path):
    """Names in a file are numbered in alphabetical order, and a file may lack the first of them."""
    names = np.array(["", "ash", "birch", "cedar", "oak"])

    def points(name, start):
        with rasterio.open(scenes / f"{name}_labels.tif") as source:
            labels = source.read(1)
        row, column = np.nonzero(labels >= start)
        table = {"row": row, "column": column, "kind": names[labels[row, column]]}
        pandas.DataFrame(table).to_csv(tmp_path / f"{name}.csv", index=False)
        return str(tmp_path / f"{name}.csv")

    run = trained("centroid-angle", scene={"labels": points("left", 1), "labels_field": "kind"})
    right = str(scenes / "right.tif")
    whole, few = (
        apply(
            run, right, labels=points("right", start), overrides=SAY, run_dir=tmp_path / str(start)
        )
        for start in (1, 3)
    )
    assert whole.scores["overall_accuracy"] > 0.5
    assert few.scores["unknown_classes"] == []
    assert few.scores["confusion"][2:] == whole.scores["confusion"][2:]
    assert not np.any(few.scores["confusion"][:2])


def test_apply__a_raster_or_an_array_has_no_field_of_the_run(scenes, trained, tmp_path):
    table = {
        "row": [0, 1, 2, 3],
        "column": [0, 1, 2, 3],
        "kind": list("abab"),
        "other": [1, 2, 3, 4],
    }
    pandas.DataFrame(table).to_csv(tmp_path / "left.csv", index=False)
    labels = {"labels": str(tmp_path / "left.csv"), "labels_field": "kind"}
    run = trained("centroid-angle", scene=labels, learn={"train": "all"})
    raster = scenes / "right_labels.tif"
    with rasterio.open(raster) as source:
        array = source.read(1)
    for number, given in enumerate((raster, array)):
        applied = apply(
            run, scenes / "right.tif", labels=given, overrides=SAY, run_dir=tmp_path / str(number)
        )
        assert applied.scores["overall_accuracy"] is not None
    model = open_model(run)
    for name in ("right.csv", "right.gpkg"):
        job = applied_job(model, str(scenes / "right.tif"), {"labels": str(tmp_path / name)})
        assert job.scene.labels_field == "kind"


def test_apply__a_cube_is_written_beside_the_directory_of_the_run_that_applies(
    scenes, trained, tmp_path
):
    run = trained("centroid-angle")
    with rasterio.open(scenes / "right.tif") as source:
        cube = np.moveaxis(source.read(), 0, -1)
    before = set(run.parent.rglob("*"))
    applied = apply(run, cube, overrides=SAY, run_dir=tmp_path / "maps" / "right")
    assert set(run.parent.rglob("*")) == before
    assert {path.name for path in (tmp_path / "maps").iterdir()} == {"right", "scenes"}
    assert applied.path == tmp_path / "maps" / "right"


def test_apply__names_classes_that_the_run_has_not(scenes, trained, tmp_path):
    table = {"row": [1, 2], "column": [3, 4], "kind": ["moor", "moor"]}
    pandas.DataFrame(table).to_csv(tmp_path / "moor.csv", index=False)
    left = pandas.DataFrame({"row": [0, 1, 2, 3], "column": [0, 1, 2, 3], "kind": list("abab")})
    left.to_csv(tmp_path / "left.csv", index=False)
    labels = {"labels": str(tmp_path / "left.csv"), "labels_field": "kind"}
    run = trained("centroid-angle", scene=labels, learn={"train": "all"})
    said = Notes()
    applied = apply(
        run, str(scenes / "right.tif"), labels=str(tmp_path / "moor.csv"), overrides=SAY,
        run_dir=tmp_path / "applied", reporter=said,
    )  # fmt: skip
    assert applied.scores["overall_accuracy"] == 0
    assert applied.scores["unknown_classes"] == [3]
    assert any(text.endswith("count as wrong: moor") for text in said.notes)
    legend = (tmp_path / "applied" / "outputs" / "legend.csv").read_text(encoding="utf-8")
    assert "3,moor," in legend


def test_apply__clusters_are_those_of_the_run(scenes, trained, tmp_path):
    run = trained("spectral-clustering", learn={"clusters": 4})
    other = apply(
        run, scenes / "right.tif", labels=scenes / "right_labels.tif", run_dir=tmp_path / "other",
        overrides=SAY,
    )  # fmt: skip
    assert other.scores["clusters"] == 4
    assert other.scores["agreement"]["best_match_accuracy"] > 0.9


@pytest.mark.parametrize(
    ("method", "tables"),
    [
        # Features without a projection are compared to the bit, others but for rounding.
        ("k-nn", {"neighbors": {"method": "landmarks", "landmarks": 200}}),
        (
            "k-nn",
            {
                "neighbors": {"method": "landmarks", "landmarks": 200, "metric": "angle"},
                "features": {"method": "none"},
            },
        ),
        ("spectral-clustering", {"learn": {"clusters": 4}}),
        (
            "spectral-clustering",
            {
                "learn": {"clusters": 4},
                "neighbors": {"method": "landmarks", "landmarks": 200},
            },
        ),
    ],
)
@pytest.mark.parametrize("leaves", [1, 8])
def test_apply__pixels_of_the_run_get_its_result(
    scenes, trained, tmp_path, monkeypatch, method, tables, leaves
):
    run = trained(method, **tables)
    monkeypatch.setattr(index, "EXACT", 1600 // leaves)
    monkeypatch.setattr(index, "LEAF", 1600 // leaves)
    own = apply(run, scenes / "left.tif", overrides=SAY, run_dir=tmp_path / "own")
    for found, expected in zip(arrays(own.path), arrays(run), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.slow
def test_apply__is_the_same_for_any_block_and_goes_on_after_a_kill(
    scenes, trained, tmp_path, monkeypatch
):
    monkeypatch.setattr(index, "EXACT", 300)
    monkeypatch.setattr(index, "LEAF", 100)
    monkeypatch.setattr("eigenscape.base.blocks.rows_within", lambda *_, **__: 100)
    run = trained("interpolated")

    def start(name, executor):
        return apply(
            run, scenes / "right.tif", overrides=SAY, run_dir=tmp_path / name, executor=executor
        )

    frail = Frail(6, noted=False)
    with pytest.raises(KilledError):
        start("killed", frail)
    assert not Run(tmp_path / "killed", create=False).record("extend")
    rest = Frail()
    start("killed", rest)
    before = [entry for entry in frail.log[:-1] if entry[0] == "extend"]
    assert len(before) >= 2
    assert not set(before) & set(rest.log)
    assert {item for name, item in before + rest.log if name == "extend"} == {
        (first, min(first + 100, 720)) for first in range(0, 720, 100)
    }
    monkeypatch.setattr("eigenscape.base.blocks.rows_within", lambda *_, **__: 4096)
    start("whole", Threads(2))
    for one, two in zip(arrays(tmp_path / "killed"), arrays(tmp_path / "whole"), strict=True):
        np.testing.assert_array_equal(one, two)


def test_apply__is_not_sure_of_what_is_like_nothing_it_knows(scenes, trained, tmp_path, write_tif):
    run = trained("centroid-angle")
    with rasterio.open(scenes / "right.tif") as dataset:
        cube = np.moveaxis(dataset.read(), 0, -1)
    strange = cube.copy()
    strange[:10] = 9000 - strange[:10]
    write_tif("strange.tif", strange)
    found = apply(run, tmp_path / "strange.tif", overrides=SAY, run_dir=tmp_path / "strange")
    _, confidence = arrays(found.path)
    assert found.applied["far"] >= 200
    assert confidence[:200].max() < 0.4
    assert confidence[200:].mean() > 0.9


def test_apply__refuses_what_does_not_fit(scenes, trained, tmp_path, write_tif, monkeypatch):
    run = trained("centroid-angle")
    with rasterio.open(scenes / "right.tif") as dataset:
        cube = np.moveaxis(dataset.read(), 0, -1)
    few = write_tif("few.tif", cube[..., :5])
    with pytest.raises(SceneError, match=r"5 good bands of 5; the run has 11 of 12"):
        apply(run, few, run_dir=tmp_path / "no")
    shifted = write_tif("shifted.tif", cube)
    with rasterio.open(shifted, "r+") as dataset:
        for band in range(1, 13):
            dataset.update_tags(band, wavelength=f"{420 + 50 * band}", wavelength_units="nm")
    with pytest.raises(
        SceneError, match=r"no band near 1 of the run's 11, at 400 nm.*470 to 1020 nm"
    ):
        apply(run, shifted, run_dir=tmp_path / "no")
    with pytest.raises(JobError, match="what was learned stays"):
        apply(run, scenes / "right.tif", overrides=["learn.k=5"], run_dir=tmp_path / "no")
    with pytest.raises(InputError, match=r"limits.memory = 230.0 MiB: the stage"):
        apply(
            run, scenes / "right.tif", overrides=["limits.memory=230MiB"], run_dir=tmp_path / "no"
        )
    with pytest.raises(InputError, match="without a class map"):
        apply(tmp_path / "nothing", scenes / "right.tif")
    assert not (tmp_path / "no").exists()
    # The bands that the run left out need not be there.
    whole = write_tif("good.tif", np.delete(cube, 2, axis=2))
    assert footprint.row_bytes(eigenscape.applied.model.open_model(run)) > 0
    found = apply(run, whole, overrides=SAY, run_dir=tmp_path / "good")
    assert found.applied["samples"] == 720


def test_extend_footprint__counts_what_the_way_of_the_run_needs(trained):
    found = {}
    for method in ("centroid-angle", "k-nn"):
        model = eigenscape.applied.model.open_model(trained(method))
        needs = footprint.extend_footprint(model, 5000, 11, 64 * 2**20)
        assert needs.tasks == len(footprint.extend_blocks(model, 5000, 64 * 2**20))
        found[model.way.name] = needs, footprint.row_bytes(model)
    by_vectors, by_machine = found["eigenvectors"], found["support-vectors"]
    # Coordinates of nine eigenvectors, and the fit of a machine before all tasks.
    assert by_vectors[1] - by_machine[1] == 24 * 9
    assert by_machine[0].before > supportvectors.FIT_BYTES > by_vectors[0].before
    assert by_machine[0].disk == by_vectors[0].disk == 50_000


def test_apply__resamples_a_scene_of_other_bands(scenes, trained, tmp_path, write_tif):
    run = trained("centroid-angle")
    with rasterio.open(scenes / "right.tif") as dataset:
        cube = np.moveaxis(dataset.read(), 0, -1)
    own = np.linspace(400, 950, 12)
    finer = np.linspace(395, 955, 57)
    spectra = np.apply_along_axis(lambda line: np.interp(finer, own, line), 2, cube)
    path = write_tif("finer.tif", spectra.astype(np.float32))
    with rasterio.open(path, "r+") as dataset:
        for band, centre in enumerate(finer, 1):
            dataset.update_tags(band, wavelength=f"{centre:.1f}", wavelength_units="nm")
    found = apply(run, path, overrides=SAY, run_dir=tmp_path / "finer")
    itself = apply(run, scenes / "right.tif", overrides=SAY, run_dir=tmp_path / "itself")
    assert (arrays(found.path)[0] == arrays(itself.path)[0]).mean() > 0.9
    bands = Run(found.path, create=False).record("ingest").summary["bands"]
    assert len(bands["good"]) == 11
    assert bands["wavelength"] == pytest.approx(np.delete(own, 2).tolist(), abs=0.1)


def test_apply__takes_the_bands_of_the_run_from_a_scene_of_more(
    scenes, trained, tmp_path, write_tif, cli
):
    run = trained("centroid-angle")
    with rasterio.open(scenes / "right.tif") as dataset:
        cube = np.moveaxis(dataset.read(), 0, -1)
    itself = apply(run, scenes / "right.tif", overrides=SAY, run_dir=tmp_path / "itself")

    def write(name, wavelength, values):
        path = write_tif(name, values.astype(np.float32))
        with rasterio.open(path, "r+") as dataset:
            for band, centre in enumerate(wavelength, 1):
                dataset.update_tags(band, wavelength=f"{centre:.1f}", wavelength_units="nm")
        return path

    # Between every two bands two others; where one of these is missing, the run's are not.
    own = np.linspace(400, 950, 12)
    wavelength = np.sort(np.concatenate([own, own + 17, own + 34]))
    values = np.repeat(cube, 3, axis=2) + [0, 300, -300] * 12
    values[5:8, :, 1] = np.nan
    path = write("more.tif", wavelength, values)
    done = cli(
        "apply", run, "--scene", path, "--run-dir", tmp_path / "more",
        *(part for text in SAY for part in ("--set", text)),
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    assert "the run's 11 bands are 11 of the scene's 36, taken as they are; none is resampled" in (
        done.stderr
    )
    for name in ("samples/values", "labels/class", "labels/confidence"):
        one, two = (
            np.asarray(Run(folder, create=False).open(name)[...])
            for folder in (tmp_path / "more", itself.path)
        )
        np.testing.assert_array_equal(one, two)
    # A band that it has not is resampled, and the others are as they were.
    kept = np.delete(np.arange(36), [18, 1])
    path = write("fewer.tif", wavelength[kept], values[..., kept])
    found = apply(run, path, overrides=SAY, run_dir=tmp_path / "fewer")
    told = Run(found.path, create=False).record("ingest").summary["told"]
    assert told[1] == (
        "bands of the run: 10 taken from the scene as they are, 1 resampled from its 34, Gaussians of "
        "their widths"
    )
    before, after = (
        np.asarray(Run(result.path, create=False).open("samples/values")[...])
        for result in (itself, found)
    )
    np.testing.assert_array_equal((before == after).all(axis=0), np.arange(11) != 5)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["centroid-angle", "k-nn"])
def test_apply__leaves_the_training_samples_of_the_run_out_of_the_accuracy(
    scenes, trained, tmp_path, write_tif, cli, method
):
    run = trained(method)
    parts = [rasterio.open(scenes / f"{side}{kind}.tif").read()
             for kind in ("", "_labels") for side in ("left", "right")]  # fmt: skip
    both = np.moveaxis(np.concatenate(parts[:2], axis=2), 0, -1)
    labels = np.concatenate(parts[2:], axis=2)[0]
    path = write_tif("both.tif", both)
    trained_on = int(np.count_nonzero(parts[2]))

    def given(name, values):
        return ["--labels", write_tif(name, values[..., None], nodata=0)]

    def start(name, *labelled, scene=path):
        arguments = ["apply", run, "--scene", scene, "--run-dir", tmp_path / name, *labelled]
        overrides = ["--set", 'output.formats=["png", "report"]', "--set", "limits.threads=2"]
        done = cli(*arguments, *overrides, "--json")
        assert done.exit_code == 0, done.stderr
        found = json.loads(done.stdout.splitlines()[-1])
        page = (tmp_path / name / "outputs" / "report.html").read_text(encoding="utf-8")
        return found["scores"], cli(*arguments, *overrides), page

    # Of a scene that is the run's own in part, the other part alone is compared.
    scores, done, page = start("both", *given("labels.tif", labels))
    other, other_done, other_page = start(
        "right", "--labels", scenes / "right_labels.tif", scene=scenes / "right.tif"
    )
    assert (scores["left_out"], other["left_out"]) == (trained_on, 0)
    assert scores["samples"] == other["samples"] == np.count_nonzero(parts[3])
    assert scores["confusion"] == other["confusion"]
    assert scores["protocol"] == "the labels of this scene that the run has not learned from"
    left_out = f"{trained_on} labelled samples that coincide with training samples of the run"
    assert f"  left out   {left_out}" in done.stdout
    assert "  left out   " not in other_done.stdout
    assert f"{trained_on:,} more coincide with its training pixels and are left out" in page
    assert "this very scene" in page
    assert "this very scene" not in other_page

    # Of its own alone nothing is left, and no figure is given.
    labels[:, 40:] = 0
    scores, done, page = start("own", *given("left.tif", labels))
    why = "all labels of this scene are of samples that the run has learned from"
    assert scores == {
        "protocol": why, "left_out": trained_on, "overall_accuracy": None, "samples": 0,
    }  # fmt: skip
    assert f"accuracy     not measured: {why}" in done.stdout
    assert f"  left out   {left_out}" in done.stdout
    assert f"accuracy not measured: {why}" in page
    assert "so the accuracy on others is not known" in page
    assert "accuracy is the share of them" not in page


def test_apply__compares_what_the_run_has_but_has_not_learned_from(scenes, trained, tmp_path):
    path = trained("centroid-angle", learn={"train": 20})
    training = Run(path, create=False).open("learn/sample").shape[0]
    own = apply(
        path, scenes / "left.tif", labels=scenes / "left_labels.tif", overrides=SAY,
        run_dir=tmp_path / "own",
    )  # fmt: skip
    labelled = np.count_nonzero(rasterio.open(scenes / "left_labels.tif").read())
    assert (own.scores["left_out"], own.scores["samples"]) == (training, labelled - training)
    assert own.scores["protocol"] == (
        "the labels of the run's own scene that the run has not learned from"
    )


FILTERS = [
    {"method": "bilateral", "radius": [1, 3]},
    {"method": "guided", "radius": 2},
    {"method": "profiles", "radius": 2},
]


@pytest.mark.mostly_exhaustive(2)
@pytest.mark.slow
@pytest.mark.parametrize("metric", ["euclidean", "angle"])
@pytest.mark.parametrize("options", FILTERS, ids=lambda options: options["method"])
@pytest.mark.parametrize("method", ["mnf", "pca"])
def test_apply__filters_the_new_scene_by_the_basis_and_the_unit_of_the_run(
    scenes, trained, tmp_path, monkeypatch, method, options, metric
):
    features = {"method": method, "dimension": 4, "spatial": options}
    path = trained("interpolated", features=features, neighbors={"metric": metric})
    seen, found = [], extending.Extension._features
    monkeypatch.setattr(
        extending.Extension, "_features", lambda *given: seen.append(found(*given)) or seen[-1]
    )
    own = apply(path, scenes / "left.tif", overrides=SAY, run_dir=tmp_path / "own")
    run = Run(path, create=False)
    values = np.concatenate(seen)
    if metric == "euclidean":
        # To the last bit: its samples are told from new ones by that.
        np.testing.assert_array_equal(values, np.asarray(run.open("features/values")[...]))
    assert (arrays(own.path)[0] == arrays(path)[0]).mean() > 0.98

    seen.clear()
    given = {"labels": scenes / "right_labels.tif", "overrides": SAY, "run_dir": tmp_path / "new"}
    other = apply(path, scenes / "right.tif", **given, executor=Threads(1))
    assert other.scores["overall_accuracy"] > 0.97
    with rasterio.open(scenes / "right.tif") as dataset:
        cube = np.moveaxis(dataset.read(), 0, -1)
    valid = (cube != -1).all(axis=-1)
    cube = np.delete(cube, 2, axis=-1).astype(np.float64) - run.open("features/shift")[...]
    cube, spatial = cube @ run.open("features/basis")[...], FilterOptions(**options)
    if spatial.method == "profiles":
        profiles = filtering.profile_images(cube, valid, spatial.radii, 3)
        expected = np.concatenate([cube, profiles], axis=-1)[valid]
    else:
        unit = run.record("features").summary["noise"]
        assert (unit == 1) == (method == "mnf")
        expected = filtering.filter_image(spatial, cube, valid, unit, valid)[valid]
    if metric == "angle":
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    values = np.concatenate(seen)[:, : expected.shape[1]]
    np.testing.assert_allclose(values, expected, atol=1e-4 * np.abs(expected).max())


def drawn_fields(seed, size):
    """Fields of 8 x 8 pixels under noise, of four classes that all scenes have; and the classes."""
    rng, spectra = np.random.default_rng(seed), np.random.default_rng(99).uniform(0.2, 1, (4, 12))
    truth = np.kron(rng.integers(0, 4, (8, 8)), np.ones((8, 8), int))[:size, :size]
    cube = spectra[truth] + 0.3 * rng.standard_normal((*truth.shape, 12))
    return cube.astype(np.float32), truth + 1


@pytest.mark.parametrize(
    ("spatial", "size"),
    [({}, 64), ({"method": "profiles"}, 64), ({"method": "guided", "radius": 8}, 20)],
    ids=str,
)
def test_apply__a_scene_that_is_like_the_filtered_one_does_not_differ(tmp_path, spatial, size):
    cube, classes = drawn_fields(0, size)
    job = eigenscape.job_for(
        cube, np.where(np.random.default_rng(1).random(classes.shape) < 0.3, classes, 0),
        directory=tmp_path, features={"method": "mnf", "dimension": 4, "spatial": spatial},
        spectrum={"dimension": 5}, learn={"method": "k-nn", "trials": 1}, limits={"threads": 2},
        output={"formats": []},
    )  # fmt: skip
    run, notes = eigenscape.run(job), Notes()
    cube, _ = drawn_fields(12, size)
    found = apply(run, cube, overrides=SAY, run_dir=tmp_path / "other", reporter=notes)
    told = [note for note in notes.notes if "differs from the one" in note]
    if size < 64:
        assert found.applied["shift"] is None
        assert "is not known: the filter of [features.spatial] reaches across" in told[0]
        return
    assert (found.applied["shift"]["differs"], told) == (False, [])
    other = apply(run, cube + np.arange(12) / 10, overrides=SAY, run_dir=tmp_path / "changed")
    assert other.applied["shift"]["differs"]


@pytest.mark.slow
def test_apply__a_filter_needs_a_grid(scenes, trained, tmp_path):
    path = trained("interpolated", features={"spatial": {"radius": 2}})
    samples = np.asarray(Run(path, create=False).open("samples/values")[:50])
    np.save(tmp_path / "table.npy", samples)
    with pytest.raises(InputError, match=r"\[features.spatial\].*is a table of 50 samples"):
        apply(path, tmp_path / "table.npy", run_dir=tmp_path / "applied")
    for refused in (eigenscape.extend, eigenscape.classify_new):
        with pytest.raises(InputError, match=r"\[features.spatial\].*`eigenscape apply`"):
            refused(path, samples)
    job = eigenscape.parse_job(
        {"scene": {"path": str(tmp_path / "table.npy")}, "features": {"spatial": {}}}
    )
    with pytest.raises(InputError, match=r"\[features.spatial\]: .* is a table of 50 samples"):
        eigenscape.plan(job)


def test_apply__names_the_run_to_apply_where_it_is_now(tmp_path):
    applied = {"format": FORMAT, "stages": {}, "applies": {"run": "/before/model"}}
    (tmp_path / "map").mkdir()
    write_manifest(tmp_path / "map", applied)
    with pytest.raises(InputError, match="Apply /before/model, which"):
        apply(tmp_path / "map", "scene.tif")
    (tmp_path / "model").mkdir()
    write_manifest(tmp_path / "model", {"format": FORMAT, "stages": {}})
    with pytest.raises(InputError, match=f"Apply {tmp_path / 'model'}, which"):
        apply(tmp_path / "map", "scene.tif")
