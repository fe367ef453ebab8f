import geopandas
import numpy as np
import pytest
import rasterio
import shapely

from eigenscape import load_job, plan, run
from eigenscape.base.process.progress import Silent
from eigenscape.clusters import ClusterOptions
from eigenscape.errors import EigenscapeError, OutputError, SceneError
from eigenscape.job.jobfile import parse_job
from eigenscape.scenes.open import open_scene
from eigenscape.tuning.initial import find_bad_bands, job_text, write_new
from eigenscape.workflow.choice.kept import make_choice
from eigenscape.workflow.stages import stage_keys


@pytest.fixture
def written_job(tmp_path):
    """Return a function that writes the proposed job of a scene, and returns its text and the job."""

    def write(*scene, labels=None, name="new"):
        text = job_text([str(one) for one in scene], labels, base=tmp_path, name=name)
        path = tmp_path / f"{name}.toml"
        write_new(path, text, force=False)
        return text, load_job(path)

    return write


def test_job_text__plans_and_says_what_the_scene_is(written, written_job, tmp_path):
    text, job = written_job(tmp_path / "scene.tif", labels=str(tmp_path / "labels.tif"))
    assert "image of 30 rows x 40 columns x 20 bands" in text
    assert "4 classes" in text
    assert "Adjacent pixels are alike" in text
    assert job.open
    assert (job.scene.path, job.scene.labels) == ("scene.tif", "labels.tif")
    assert plan(job).bands == 20


def test_job_text__finds_labels_beside_the_scene(write_tif, small, written_job, tmp_path):
    write_tif("ground.tif", small.cube, hole=small.hole)
    write_tif("ground_labels.tif", small.labels, nodata=0)
    _, job = written_job(tmp_path / "ground.tif")
    assert job.scene.labels == "ground_labels.tif"


@pytest.mark.parametrize("another", [False, True])
def test_job_text__labels_beside_the_scene_that_cannot_be_read_are_told(
    write_tif, small, written_job, tmp_path, another
):
    write_tif("ground.tif", small.cube, hole=small.hole)
    squares = [
        shapely.box(364095 + west, 5809965 - 150, 364185 + west, 5809965 - 60)
        for west in range(60, 960, 90)
    ]
    attributes = {"code": [1, 2, 3, 1, 2] * 2, "name": ["a", "b"] * 5}
    geopandas.GeoDataFrame(attributes, geometry=squares, crs="EPSG:32633").to_file(
        tmp_path / "ground_labels.gpkg"
    )
    if another:
        write_tif("ground_gt.tif", small.labels, nodata=0)
    text, job = written_job(tmp_path / "ground.tif")
    told = "# ground_labels.gpkg: not used: several attributes could hold the class: code, name."
    assert told in text
    assert job.scene.labels == ("ground_gt.tif" if another else None)
    # What the reason says to do.
    text = job_text([str(tmp_path / "ground.tif")], None, base=tmp_path, name="new", field="name")
    assert 'labels = "ground_labels.gpkg"\nlabels_field = "name"' in text


def test_job_text__a_scenes_own_file_without_labels_is_not_told(small, written_job, tmp_path):
    np.savez(tmp_path / "cube.npz", cube=small.cube)
    text, job = written_job(tmp_path / "cube.npz")
    assert job.scene.labels is None
    assert "not used" not in text


def test_job_text__labels_of_one_class(write_tif, small, written_job, tmp_path):
    """No run could learn from them: what was found is left out, what was given is refused."""
    write_tif("ground.tif", small.cube, hole=small.hole)
    write_tif("ground_labels.tif", (small.labels == 2).astype(np.uint8), nodata=0)
    text, job = written_job(tmp_path / "ground.tif")
    assert job.scene.labels is None
    assert "# ground_labels.tif: not used: the labels hold one class only: number 1" in text
    assert plan(job).bands == 20
    with pytest.raises(SceneError, match="the labels hold one class only: number 1"):
        written_job(tmp_path / "ground.tif", labels=str(tmp_path / "ground_labels.tif"))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.full((9, 8, 3), np.nan), "no pixel is valid"),
        (np.full((9, 8, 3), 2.5), "all valid pixels are identical"),
        (np.arange(3.0)[None], "the scene has 1 valid sample: a graph needs two or more"),
    ],
)
def test_job_text__scenes_that_no_run_could_use_are_refused(tmp_path, values, words):
    np.save(tmp_path / "scene.npy", values)
    with pytest.raises(EigenscapeError, match=words):
        job_text([str(tmp_path / "scene.npy")], None, base=tmp_path, name="new")
    # A plan refuses them too, before the first stage.
    with pytest.raises(EigenscapeError, match=words):
        plan(parse_job({"scene": {"path": "scene.npy"}}, base=tmp_path))


def test_job_text__labels_without_names_show_how_to_name_them(
    write_tif, small, written_job, tmp_path
):
    write_tif("ground.tif", small.cube, hole=small.hole)
    write_tif("ground_labels.tif", small.labels, nodata=0)
    text, _ = written_job(tmp_path / "ground.tif")
    example = '# classes = {1 = "forest", 2 = "meadow"}'
    assert example in text
    (tmp_path / "named.toml").write_text(text.replace(example, example[2:]))
    named = load_job(tmp_path / "named.toml")
    assert named.scene.classes == {1: "forest", 2: "meadow"}
    assert "1 forest (" in " ".join(plan(named).notes)


def test_job_text__finds_labels_in_the_scenes_own_file(small, written_job, tmp_path):
    np.savez(tmp_path / "both.npz", cube=small.cube, gt=small.labels)
    _, job = written_job(tmp_path / "both.npz")
    assert job.scene.labels == "both.npz"
    assert plan(job).bands == 20


def test_job_text__without_labels(small, written_job, tmp_path):
    np.save(tmp_path / "scene.npy", small.cube)
    text, job = written_job(tmp_path / "scene.npy")
    assert job.scene.labels is None
    assert "spectral-clustering" in text
    assert plan(job).bands == 20


@pytest.mark.parametrize("image", [True, False])
def test_job_text__few_labels_are_left_to_the_choice_of_a_run(small, written_job, tmp_path, image):
    few = np.zeros_like(small.labels)
    for number in (1, 2, 3, 4):
        few.ravel()[np.flatnonzero(small.labels.ravel() == number)[:3]] = number
    np.save(tmp_path / "scene.npy", small.cube if image else small.cube.reshape(-1, 20))
    np.save(tmp_path / "labels.npy", few if image else few.reshape(-1, 1))
    text, job = written_job(tmp_path / "scene.npy", labels=str(tmp_path / "labels.npy"))
    things = "pixels" if image else "samples"
    assert f"# 12 labelled {things} of 4 classes are few: nothing is compared, and" in text
    told = '# graph.bandwidth = 0.25, learn.method = "poisson", learn.prior = "uniform"'
    assert told in text.splitlines()
    # The rule is that of a job of two lines.
    tables = {"scene": {"path": "scene.npy", "labels": "labels.npy"}}
    both = [job, parse_job(tables, base=tmp_path)]
    chosen = [
        make_choice(
            one, stage_keys(one), tmp_path / str(number), on=ClusterOptions(), reporter=Silent()
        )
        for number, one in enumerate(both)
    ]
    (ours, *_), (plain, *_) = chosen
    for table in ("features", "neighbors", "graph", "spectrum", "learn"):
        assert getattr(ours, table) == getattr(plain, table)
    assert ours.learn.prior == "uniform"


def test_job_text__pixels_out_of_place(small, written_job, tmp_path):
    pixels = np.random.default_rng(0).permutation(small.cube.reshape(-1, 20))
    np.save(tmp_path / "scene.npy", pixels.reshape(small.cube.shape))
    text, _ = written_job(tmp_path / "scene.npy")
    assert "Adjacent pixels are not alike" in text


def test_job_text__a_table(small, written_job, tmp_path):
    np.save(tmp_path / "samples.npy", small.cube.reshape(-1, 20))
    text, job = written_job(tmp_path / "samples.npy")
    assert "A table" in text
    assert plan(job).samples == 1200


def test_job_text__labels_that_do_not_fit_are_refused(small, tmp_path):
    np.save(tmp_path / "scene.npy", small.cube)
    np.save(tmp_path / "labels.npy", small.labels[:5])
    with pytest.raises(SceneError):
        job_text(
            [str(tmp_path / "scene.npy")], str(tmp_path / "labels.npy"), base=tmp_path, name="new"
        )


@pytest.mark.slow
def test_find_bad_bands__water_by_wavelength_constant_and_empty(
    write_tif, small, written_job, tmp_path
):
    cube = small.cube.copy()
    cube[..., 4] = 17
    cube[:, 5:, 7] = np.nan
    path = write_tif("scene.tif", cube)
    wavelengths = np.linspace(400, 2500, 20)
    with rasterio.open(path, "r+") as dataset:
        for band, centre in enumerate(wavelengths, 1):
            dataset.update_tags(band, wavelength=f"{centre:.1f}", wavelength_units="nm")
    job = parse_job({"scene": {"path": "scene.tif"}}, base=tmp_path)
    scene = open_scene(job.scene, job.resolve)
    assert scene.bands.wavelength is not None
    found = {each.reason.partition(" ")[0]: each.numbers for each in find_bad_bands(job, scene)}
    wet = [
        band for band, centre in enumerate(wavelengths, 1)
        if 1350 <= centre <= 1430 or 1800 <= centre <= 1960
    ]  # fmt: skip
    assert found == {"constant": (5,), "has": (8,)}
    assert [band for band in wet if scene.bands.good[band - 1]] == []
    text, job = written_job(path)
    assert job.scene.drop_wavelengths == ("water-vapour",)
    assert "left out: water vapour" in text
    assert plan(job).bands == 20 - len({*wet, 5, 8})


def test_find_bad_bands__a_constant_image_keeps_its_bands(tmp_path):
    np.save(tmp_path / "scene.npy", np.full((20, 20, 8), 3.0))
    job = parse_job({"scene": {"path": "scene.npy"}}, base=tmp_path)
    assert find_bad_bands(job, open_scene(job.scene, job.resolve)) == []


def test_find_bad_bands__columns_that_differ_in_few_samples(written_job, tmp_path):
    classes = np.random.default_rng(0).integers(0, 20, 5000)
    columns = np.column_stack([np.eye(20)[classes], np.full(5000, 7.0), classes / 9])
    lines = [",".join(f"f{number}" for number in range(22))]
    lines += [",".join(map(str, row)) for row in columns.tolist()]
    (tmp_path / "samples.csv").write_text("\n".join(lines) + "\n")
    text, job = written_job(tmp_path / "samples.csv")
    assert job.scene.bad_bands == (21,)
    assert "# Column 21: constant in all valid samples." in text


def test_find_bad_bands__row_numbers_behind_the_labels(written_job, tmp_path):
    rng = np.random.default_rng(0)
    columns = ("class", "id", "a", "five", "b")
    values = [rng.integers(1, 4, 90), np.arange(90) + 10_000, rng.normal(size=90), np.full(90, 5)]
    rows = np.column_stack([*values, rng.normal(size=90)]).astype(object)
    rows[:, [0, 1, 3]] = rows[:, [0, 1, 3]].astype(int)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "samples.csv").write_text("\n".join(lines) + "\n")
    text, job = written_job(tmp_path / "samples.csv")
    assert job.scene.labels_field == "class"
    assert "# Column 1: rises by 1 from row to row, as row numbers do." in text
    assert "# Column 3: constant in all valid samples." in text
    scene = open_scene(job.scene, job.resolve)
    good = [scene.bands.names[place] for place in scene.bands.good_index]
    assert good == ["a", "b"]
    assert "row numbers" not in " ".join(scene.notes)


def test_find_bad_bands__columns_without_values_in_fewer_than_half_of_the_samples(tmp_path):
    table = np.random.default_rng(0).normal(size=(5000, 3))
    table[::312, 0] = np.nan  # rows that are spread as those that an image is judged by
    table[2::10, 1] = np.nan
    for first in range(1, 7):
        table[first::10, 2] = np.nan
    np.save(tmp_path / "samples.npy", table)
    job = parse_job({"scene": {"path": "samples.npy"}}, base=tmp_path)
    (found,) = find_bad_bands(job, open_scene(job.scene, job.resolve))
    assert found.numbers == (3,)
    assert found.reason == "has no value in most samples where other columns have one"


@pytest.mark.parametrize("read_at_once", [2**10, 2**26])
def test_find_bad_bands__a_band_that_differs_in_a_few_pixels(
    write_tif, small, tmp_path, monkeypatch, read_at_once
):
    monkeypatch.setattr("eigenscape.tuning.initial._STRIP_BYTES", read_at_once)
    cube = np.tile(small.cube, (8, 3, 1))  # more rows than are looked at first
    cube[..., 4] = cube[..., 9] = 17
    cube[3:5, 10:20, 9] = 18
    write_tif("scene.tif", cube)
    job = parse_job({"scene": {"path": "scene.tif"}}, base=tmp_path)
    (found,) = find_bad_bands(job, open_scene(job.scene, job.resolve))
    assert (found.numbers, found.reason) == ((5,), "constant in all valid pixels")


def test_write_new__never_overwrites_unless_forced(tmp_path):
    path = tmp_path / "job.toml"
    write_new(path, "a", force=False)
    with pytest.raises(OutputError, match="--force"):
        write_new(path, "b", force=False)
    assert path.read_text() == "a"
    write_new(path, "b", force=True)
    assert path.read_text() == "b"


def test_init__command(written, cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = cli("init", "scene.tif", "--labels", "labels.tif")
    assert result.exit_code == 0, result.stderr
    assert "scene.toml: written" in result.stdout
    assert cli("plan", "scene.toml").exit_code == 0
    again = cli("init", "scene.tif")
    assert again.exit_code == 2
    assert "already exists" in again.stderr
    assert cli("init", "scene.tif", "--force", "--to", "scene.toml").exit_code == 0
    assert cli("init", "nothing.tif").exit_code == 2


def write_table(path, *columns, rows=12):
    """Write a CSV file with a feature and further columns, which are repeated."""
    lines = [",".join(["b0", *(name for name, _ in columns)])]
    for row in range(rows):
        cells = (values[row % len(values)] for _, values in columns)
        lines.append(",".join([f"{row / 7:.3f}", *cells]))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.slow
def test_job_text__the_only_text_column_of_a_table_is_the_class(written_job, tmp_path):
    path = write_table(tmp_path / "iris.csv", ("species", ["setosa", "", "virginica"]))
    text, job = written_job(path)
    assert job.scene.labels_field == "species"
    assert "'species' is the only one with text: taken for the class" in text
    assert "1 setosa (4), 2 virginica (4)" in text
    assert plan(job).bands == 1
    done = run(job)
    assert len(done.scores["per_class"]) == 2
    settled = load_job(done.path / "job.toml")
    assert (settled.neighbors.k, settled.spectrum.dimension) == (11, 11)


def test_job_text__a_table_of_few_samples_without_labels(written_job, tmp_path):
    text, job = written_job(write_table(tmp_path / "t.csv", ("b1", ["3", "4.5", "1"])))
    assert "As many as 12 valid samples allow." in text
    assert (job.neighbors.k, job.spectrum.dimension) == (11, 11)


def test_job_text__a_numeric_column_called_class(written_job, tmp_path):
    path = write_table(tmp_path / "t.csv", ("Class", ["1", "2"]), ("remark", ["x", "y", "z"]))
    text, job = written_job(path)
    assert job.scene.labels_field == "Class"
    assert "'Class' has a name that suggests classes" in text


@pytest.mark.parametrize(
    "columns",
    [
        [("site", ["a", "b"]), ("species", ["x", "y", "z"])],
        [("name", [f"sample {number}" for number in range(12)])],
        [("remark", ["good"])],
    ],
)
def test_job_text__columns_of_text_that_may_not_be_classes(written_job, tmp_path, columns):
    text, job = written_job(write_table(tmp_path / "t.csv", *columns))
    assert job.scene.labels_field is None
    assert f"May hold the class: {', '.join(repr(name) for name, _ in columns)}." in text
    assert "labels.tif" not in text


def test_job_text__a_column_of_0_and_1_has_one_class(written_job, tmp_path):
    text, job = written_job(write_table(tmp_path / "t.csv", ("label", ["0", "1"])))
    assert job.scene.labels_field is None
    assert "# May hold the class: 'label', but 0 means no label, so one class is left." in text


def test_job_text__a_table_without_text(written_job, tmp_path):
    text, job = written_job(write_table(tmp_path / "t.csv", ("b1", ["3", "4.5", "1"])))
    assert job.scene.labels_field is None
    assert '# labels_field = "NAME"     # column with the class' in text


@pytest.mark.slow
def test_init__names_the_attribute_and_the_layer(written, tmp_path, cli, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows, columns = np.mgrid[2:28:4, 12:38:4].reshape(2, -1)
    x, y = 364095 + 30 * (columns + 0.5), 5809965 - 30 * (rows + 0.5)
    levels = {"level_1": ["a", "b"], "level_2": ["c", "d", "e"], "name": ["x"]}
    frame = geopandas.GeoDataFrame(
        {name: np.resize(words, len(x)) for name, words in levels.items()},
        geometry=geopandas.points_from_xy(x, y), crs="EPSG:32633",
    )  # fmt: skip
    for layer in ("old", "new"):
        frame.to_file("points.gpkg", layer=layer)
    given = ("init", "scene.tif", "--labels", "points.gpkg", "--labels-layer", "new")
    done = cli(*given[:4])
    assert done.exit_code == 2
    assert "2 layers (old, new)" in done.stderr
    assert "--labels-layer" in done.stderr
    done = cli(*given)
    assert done.exit_code == 2
    assert "several attributes could hold the class: level_1, level_2, name." in done.stderr
    assert "--labels-field" in done.stderr
    assert not (tmp_path / "scene.toml").exists()
    done = cli(*given, "--labels-field", "level_2", "--to", "my scene.toml")
    assert done.exit_code == 0
    assert "`eigenscape plan 'my scene.toml'` checks it" in done.stdout
    scene = load_job(tmp_path / "my scene.toml").scene
    assert (scene.labels_layer, scene.labels_field) == ("new", "level_2")
    # An attribute that is chosen by its name is said.
    frame.rename(columns={"level_1": "class"}).to_file("told.gpkg")
    done = cli("init", "scene.tif", "--labels", "told.gpkg")
    assert "# the class is read from the attribute class (not level_2, name)" in done.stdout


def test_init__a_pattern_gives_the_job_a_plain_name(written, tmp_path, cli, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with rasterio.open("scene.tif") as scene:
        for number in (1, 2):
            profile = {**scene.profile, "count": 1}
            with rasterio.open(f"band_{number}.tif", "w", **profile) as band:
                band.write(scene.read([number]))
    done = cli("init", "band_*.tif")
    assert done.exit_code == 0, done.stderr
    assert load_job(tmp_path / "band.toml").scene.path == "band_*.tif"
