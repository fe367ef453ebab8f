import base64
import hashlib
import io
import json
import re
import zlib

import numpy as np
import pytest
import rasterio
from PIL import Image

import eigenscape
from eigenscape.errors import InputError
from eigenscape.export.report import layers
from eigenscape.export.report.page import _libraries, own_text
from eigenscape.workflow.finished.reports import report, report_many
from harness import Frail, KilledError


def layer(page, name):
    (attrs, text), *_ = [one for one in page.all("script") if one[0].get("id") == f"layer-{name}"]
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), attrs["data-kind"])


def test_page__asks_for_nothing_from_elsewhere(html, page):
    for tag, attrs, _ in page.elements:
        for name in ("src", "href", "action", "data", "srcset", "poster"):
            assert attrs.get(name, "#").startswith(("#", "data:image/png;base64,")), (tag, attrs)
    for _, style in page.all("style"):
        assert "@import" not in style
        assert "url(" not in style
    assert not page.all("link")
    assert not page.all("iframe")
    (policy,) = [
        attrs["content"] for attrs, _ in page.all("meta")
        if attrs.get("http-equiv") == "Content-Security-Policy"
    ]  # fmt: skip
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    # Each script that runs is named by its hash, and none besides.
    running = [text for attrs, text in page.all("script") if "type" not in attrs]
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in running]
    assert re.findall(r"sha256-([^']+)'", policy) == hashes
    assert len(running) == 4
    assert html.count("<script>alert") == 0


def test_page__names_of_classes_are_texts(page):
    data = json.loads(next(text for attrs, text in page.all("script") if attrs.get("id") == "data"))
    for name in (
        "<script>alert(1)</script>",
        'oak & "ash"',
        "</style><img src=x onerror=alert(2)>",
    ):
        assert page.text.count(name) >= 3  # legend, classes, confusion
        assert name in [one["name"] for one in data["classes"]]
    assert all("onerror" not in attrs for _, attrs, _ in page.elements)


def test_page__says_what_was_read(page, small):
    assert "What was read, and what was left out" in page.text
    rows, columns, bands = small.cube.shape
    assert f"image of {rows} rows x {columns} columns x {bands} bands (scene.tif)" in page.text


def test_page__has_every_section(page, result):
    assert page.ids() >= {
        "map", "accuracy", "classes", "confusion", "eigenvectors", "spectrum", "neighbours", "cost", "job",
        "legend", "opacity", "readout", "theme",
    }  # fmt: skip
    held_out = result.scores["held_out"]
    for split in ("random", "blocked"):
        assert f"{100 * held_out[split]['overall_accuracy']:.1f} %" in page.text
    assert result.scores["protocol"] in page.text
    assert f"{100 * result.neighbors['recall']:.1f} %" in page.text
    for name in ("ingest", "features", "neighbors", "graph", "spectrum", "learn", "export"):
        assert name in page.text
    assert 'method = "eigenfunctions"' in page.text
    pictures = [attrs for attrs, _ in page.all("img")]
    assert len(pictures) == 8  # eigenvectors but for the constant one
    assert all(attrs["alt"] for attrs in pictures)
    charts = [attrs for attrs, _ in page.all("svg")]
    assert [chart["role"] for chart in charts] == ["img", "img"]


def test_page__estimated_areas_or_why_there_are_none(make_run, parse_page, page, small, tmp_path):
    assert "areas" not in page.ids()

    def written(**keys):
        learn = {"method": "eigenfunctions", "trials": 1, "areas": True, **keys}
        with open(make_run("areas", learn=learn).outputs["report"], encoding="utf-8") as stream:
            shown = parse_page(stream.read())
        assert "areas" in shown.ids()
        return shown.text

    told = written(train=0.5, split="random")
    assert "Estimated, km\u00b2" in told
    assert "of all pixels are estimated to have the right class" in told
    one = np.where((small.labels == 1) & (np.indices(small.labels.shape)[0] % 2), 1, 0)
    np.save(tmp_path / "test.npy", one.astype(np.uint8))
    told = written(test=str(tmp_path / "test.npy"))
    assert (
        "Areas were not estimated: the map has the class 2, 3, 4, and no label lies there" in told
    )
    assert "Estimated, km\u00b2" not in told


def test_page__layers_are_the_outputs(page, result, small):
    with rasterio.open(result.outputs["class_map"]) as dataset:
        classes = dataset.read(1)
    with rasterio.open(result.outputs["confidence"]) as dataset:
        confidence = dataset.read(1)
    np.testing.assert_array_equal(layer(page, "class").reshape(classes.shape), classes)
    steps = layer(page, "confidence").reshape(classes.shape)
    np.testing.assert_allclose(steps[~small.hole] / 200, confidence[~small.hole], atol=0.0026)
    assert (steps[small.hole] == 255).all()
    given = layer(page, "given").reshape(classes.shape)
    np.testing.assert_array_equal(given[~small.hole], small.labels[~small.hole])
    opacity = layer(page, "scene").reshape(*classes.shape, 4)[..., 3]
    np.testing.assert_array_equal(opacity == 255, ~small.hole)
    data = json.loads(next(text for attrs, text in page.all("script") if attrs.get("id") == "data"))
    spots, told = layer(page, "spots"), data["spectra"]
    spectra = layer(page, "spectra").reshape(len(spots), len(told["bands"])) / 65535
    values = told["low"] + spectra * (told["high"] - told["low"])
    own = small.cube.reshape(-1, small.cube.shape[2])[spots]
    np.testing.assert_allclose(values, own, atol=1e-4 * (told["high"] - told["low"]))


def test_page__is_small_for_any_scene():
    """Numbers that nothing compresses, as many as there can be."""
    pixel = 4 + 1 + 1 + 1
    packed = 4 / 3 * (layers.PICTURE_PIXELS * pixel + layers.SPECTRA_BYTES)
    gallery = 4 / 3 * 12 * 70_000
    scripts = sum(len(text.encode()) for text in (*_libraries(), own_text("report.js")))
    # Opacity is 0 or 255, which takes next to nothing.
    packed -= 4 / 3 * layers.PICTURE_PIXELS
    assert packed + gallery + scripts < 14.5e6


def test_page__large_scenes_are_thinned(monkeypatch, result, tmp_path):
    monkeypatch.setattr(layers, "PICTURE_PIXELS", 400)
    text = report(result.path, tmp_path / "page.html").read_text(encoding="utf-8")
    assert '"step": 2' in text
    assert "one of every 2 rows and columns" in text


@pytest.mark.parametrize(
    ("name", "tables", "there", "missing"),
    [
        ("clusters", {"learn": {"method": "spectral-clustering"}}, {"accuracy", "legend"}, {"confusion"}),
        ("unlabelled", {"scene": None}, {"map", "spectrum"}, {"accuracy", "legend", "confusion"}),
        ("none", {"output": {"formats": ["geotiff"]}}, set(), set()),
    ],
    ids=["clusters", "no labels", "not wanted"],
)  # fmt: skip
def test_page__of_other_runs(make_run, scene, name, tables, there, missing):
    if tables.get("scene", 0) is None:
        tables = {"scene": {"path": scene["path"]}}
    result = make_run(name, **tables)
    if name == "none":
        assert "report" not in result.outputs
        assert not (result.path / "outputs" / "report.html").exists()
        return
    text = (result.path / "outputs" / "report.html").read_text(encoding="utf-8")
    ids = set(re.findall(r' id="([^"]+)"', text))
    assert ids >= there
    assert not ids & missing


@pytest.mark.slow
def test_page__of_an_applied_run_and_of_a_table(result, scene, tmp_path, make_run, rng):
    applied = eigenscape.apply(result.path, scene["path"], run_dir=tmp_path / "applied")
    text = (applied.path / "outputs" / "report.html").read_text(encoding="utf-8")
    assert "classes, not tested" in text
    assert "extend" in text
    classes = rng.integers(1, 4, 300)
    np.save(tmp_path / "rows.npy", rng.random((4, 12))[classes] + 0.05 * rng.random((300, 12)))
    np.save(tmp_path / "kinds.npy", classes.astype(np.uint8))
    table = {"path": str(tmp_path / "rows.npy"), "labels": str(tmp_path / "kinds.npy")}
    text = (make_run("table", scene=table).path / "outputs" / "report.html").read_text(
        encoding="utf-8"
    )
    assert "plane of two eigenvectors" in text
    assert "Training samples" in text


@pytest.mark.slow
def test_page__bands_of_a_spectrum_ascend(make_run, write_small, parse_page, small, tmp_path):
    """Two detectors that overlap: their bands are in the file one detector after the other."""
    scene = write_small(tmp_path)
    count = small.cube.shape[2]
    centres = 500.0 + 10 * np.arange(count)
    centres[count // 2 :] -= 45
    with rasterio.open(scene["path"], "r+") as dataset:
        for band, centre in enumerate(centres, 1):
            dataset.update_tags(band, wavelength=centre, wavelength_units="nm")
    text = report(make_run("detectors", scene=scene).path, tmp_path / "page.html")
    page = parse_page(text.read_text(encoding="utf-8"))
    data = json.loads(next(text for attrs, text in page.all("script") if attrs.get("id") == "data"))
    told = data["spectra"]
    assert (told["bands"], told["unit"]) == (sorted(centres), "nm")
    spots = layer(page, "spots")
    spectra = layer(page, "spectra").reshape(len(spots), count) / 65535
    values = told["low"] + spectra * (told["high"] - told["low"])
    own = small.cube.reshape(-1, count)[spots][:, np.argsort(centres)]
    np.testing.assert_allclose(values, own, atol=1e-4 * (told["high"] - told["low"]))


def test_page__full_names_are_in_the_titles_of_rows_that_are_cut(page):
    titles = [
        attrs["title"]
        for attrs, _ in page.all("th")
        if attrs.get("scope") == "row" and "title" in attrs
    ]
    assert titles.count('oak & "ash"') == 2  # class by class, confusion


def test_index__of_a_batch_that_was_repeated(make_run, parse_page, scene, result, tmp_path):
    bare = make_run("unlabelled", scene={"path": scene["path"]})
    rows = [
        {"name": "labelled", "state": "skipped", "run": result.path},
        {"name": "bare", "state": "skipped", "run": bare.path},
    ]
    text = report_many(tmp_path, None, "batch", rows).read_text(encoding="utf-8")
    index = parse_page(text)
    assert "skipped" not in index.text
    assert "no map" not in index.text
    assert "2 of 2 finished" in index.text
    assert [attrs["alt"] for attrs, _ in index.all("img")] == [
        "Class map of labelled", "Eigenvectors of bare",
    ]  # fmt: skip
    picture = index.all("img")[1][0]["src"].partition(",")[2]
    with Image.open(io.BytesIO(base64.b64decode(picture))) as image:
        assert image.mode == "RGBA"
        assert len(image.getcolors(10**6)) > 20


def test_report__replaces_the_page_of_a_run(result):
    before = (result.path / "outputs" / "report.html").read_text(encoding="utf-8")
    assert "wrote this page before its own time was known" in before
    page = eigenscape.report(result.path)
    assert page == result.path / "outputs" / "report.html"
    assert "wrote this page before" not in page.read_text(encoding="utf-8")
    assert eigenscape.verify(result.path)["whole"]


def test_report__refuses_runs_that_are_not_finished(tmp_path, scene):
    with pytest.raises(InputError, match=r"no manifest\.json"):
        report(tmp_path)
    job = eigenscape.parse_job({"scene": scene, "learn": {"method": "eigenfunctions"}})
    with pytest.raises(KilledError):
        eigenscape.run(job, run_dir=tmp_path / "run", executor=Frail(2))
    with pytest.raises(InputError, match="not finished"):
        report(tmp_path / "run")
    assert not (tmp_path / "run" / "outputs" / "report.html").exists()
