from typing import get_args

import matplotlib.image
import numpy as np
import pytest
from matplotlib.figure import Figure

from eigenscape import load_job, parse_job
from eigenscape.base.files.tables import read_table
from eigenscape.errors import JobError
from eigenscape.job.study import PictureOptions
from eigenscape.store.run import Run
from eigenscape.study.layout import Point
from eigenscape.study.pictures.variants import PICTURES, _wanted, draw_pictures
from eigenscape.study.results import write_results
from eigenscape.study.run import run_study


@pytest.fixture
def figures(monkeypatch):
    """Return the list of the figures that are saved from here on."""
    saved = []
    save = Figure.savefig
    monkeypatch.setattr(
        Figure,
        "savefig",
        lambda self, *args, **keys: saved.append(self) or save(self, *args, **keys),
    )
    return saved


@pytest.fixture
def draw(finished, tmp_path, figures):
    """Return a function that draws one picture of the finished study; it returns the figure."""
    job, result = finished

    def draw_one(**options):
        pictures = (PictureOptions(**options),)
        study = job.study.model_copy(update={"pictures": pictures})
        rows = read_table(result.outputs["csv"])
        job_here = job.model_copy(update={"study": study})
        (path,) = draw_pictures(tmp_path, job_here, rows, result.outcomes).values()
        assert path == tmp_path / f"{options.get('name') or options['kind']}.png"
        pixels = matplotlib.image.imread(path)[..., :3]
        assert (pixels.min(axis=2) < 0.9).mean() > 0.01
        return figures[-1]

    return draw_one


def titles(figure):
    return [axes.get_title() for axes in figure.axes if axes.get_visible() and axes.get_title()]


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_pictures__each_kind_of_the_job_file_has_one():
    kinds = get_args(PictureOptions.model_fields["kind"].annotation)
    assert tuple(PICTURES) == kinds


@pytest.mark.slow
def test_draw_pictures__a_panel_for_each_place_of_the_grid(draw):
    figure = draw(
        kind="embedding", rows="learn.train", columns="learn.eigenvectors", measures=["error"],
        where="variant == 'eigenfunctions'", training=True,
    )  # fmt: skip
    found = [title.split("\n") for title in titles(figure)]
    assert [first for first, _ in found] == [
        "12 labelled pixels, 3 learn.eigenvectors",
        "40 labelled pixels, 3 learn.eigenvectors",
        "40 labelled pixels, 8 learn.eigenvectors",
    ]
    assert all(second.startswith("error ") and second.endswith(" %") for _, second in found)
    assert legend(figure) == ["class 1", "class 2", "class 3", "large: label given"]
    (shown, *_) = [axes for axes in figure.axes if axes.get_visible()]
    assert (shown.get_xlabel(), shown.get_ylabel()) == ("eigenvector 1", "eigenvector 2")
    # Every labelled sample once, the twelve of the draw among the large ones.
    counts = [len(dots.get_offsets()) for dots in shown.collections]
    assert sum(counts) == 500
    assert sum(counts[4:]) == 12


@pytest.mark.slow
def test_draw_pictures__classes_look_the_same_in_every_panel(draw):
    figure = draw(kind="embedding", color="class", where="learn.train == 40")
    looks = [
        [tuple(dots.get_facecolor()[0]) for dots in axes.collections[1:4]]
        for axes in figure.axes if axes.get_visible()
    ]  # fmt: skip
    assert len(looks) == 3
    assert looks[0] == looks[1] == looks[2]
    assert len(set(looks[0])) == 3


@pytest.mark.slow
def test_draw_pictures__accuracy_of_classes_on_held_out_pixels(draw, finished):
    figure = draw(kind="classes", where="learn.train == 12")
    (axes,) = figure.axes
    assert axes.get_xlabel() == "accuracy of the class (%): pixels held out (blocked)"
    assert len(axes.lines) == len(legend(figure)) > 1
    runs = {outcome.path for outcome in finished[1].outcomes}
    found = [
        100 * np.array(scores["held_out"]["blocked"]["per_class"])
        for path in runs
        if (scores := Run(path, create=False).record("learn").summary["scores"])
    ]
    for line in axes.lines:
        assert any(np.allclose(line.get_xdata(), shares) for shares in found)


def test_draw_pictures__class_maps_beside_the_labels(draw, finished):
    figure = draw(kind="class-maps", where="learn.train == 12", measures=["accuracy"])
    first, *others = titles(figure)
    assert first == "Labels given"
    assert all("overall accuracy" in title for title in others)
    assert legend(figure)[-1] == "no class"
    given = np.load(finished[0].base / "labels.npy")
    image = figure.axes[0].images[0].get_array()
    assert image.shape == (20, 25, 3)
    # One colour for each class, and none of it elsewhere.
    for number in np.unique(given):
        colors = np.unique(image[given == number], axis=0)
        assert len(colors) == 1
        assert (image[given != number] != colors[0]).any(axis=1).all()


def test_draw_pictures__eigenvectors_as_images(draw):
    figure = draw(kind="eigenvectors", modes=[1, 3], where="learn.eigenvectors == 3")
    assert len([axes for axes in figure.axes if axes.images]) == 4
    first, _, again, _ = (axes.images[0].get_array() for axes in figure.axes[:4])
    assert first.shape == (20, 25)
    # All variants have one spectrum.
    np.testing.assert_array_equal(first, again)


def test_draw_pictures__words_need_names(draw):
    with pytest.raises(JobError, match=r"needs samples with names"):
        draw(kind="words", zooms=["of"])


def test_draw_pictures__of_a_table_and_on_the_page(tmp_path):
    study = {
        "measure": ["along", "isolation"],
        "mark": [10],
        "variants": [{"name": "map"}, {"name": "helix itself", "coordinates": "features"}],
        "pictures": [{"color": "along", "measures": ["isolation"]}],
    }
    table = {
        "scene": {"path": "helix", "samples": 150},
        "features": {"method": "none"},
        "neighbors": {"method": "exact", "k": 6},
        "spectrum": {"dimension": 2},
        "limits": {"threads": 1},
        "study": study,
    }
    job = parse_job(table, name="study", base=tmp_path)
    result = run_study(job, run_dir=tmp_path / "runs" / "study")
    rows = {row["variant"]: row for row in result.rows}
    # The map follows the helix, whose first coordinate goes round.
    assert rows["map"]["along"] > 0.9 > 0.5 > rows["helix itself"]["along"]
    assert all(row["isolation"] > 0 for row in rows.values())
    write_results([job], tmp_path / "RESULTS.md", tmp_path / "runs")
    assert "(results/study-embedding.png)" in (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    copied = tmp_path / "results" / "study-embedding.png"
    assert copied.read_bytes() == result.outputs["embedding"].read_bytes()
    wrong = job.study.model_copy(update={"pictures": (PictureOptions(kind="class-maps"),)})
    with pytest.raises(JobError, match=r"a table of samples is not an image"):
        draw_pictures(
            tmp_path, job.model_copy(update={"study": wrong}),
            read_table(result.outputs["csv"]), result.outcomes,
        )  # fmt: skip


@pytest.mark.slow
def test_draw_pictures__of_clusters_without_any_label(tmp_path, make_scene, figures):
    np.save(tmp_path / "scene.npy", make_scene(20, 25, 12, 3, hole=False).cube)
    kinds = ["embedding", "class-maps", "eigenvectors"]
    table = {
        "scene": {"path": "scene.npy"},
        "features": {"method": "none"},
        "neighbors": {"method": "exact", "k": 6},
        "spectrum": {"dimension": 4},
        "learn": {"method": "spectral-clustering", "clusters": 3},
        "limits": {"threads": 1},
        "study": {
            "measure": "max_residual",
            "variants": [{"name": "three"}],
            "pictures": [{"kind": kind, "color": "class", "training": True} for kind in kinds],
        },
    }
    job = parse_job(table, name="study", base=tmp_path)
    outputs = run_study(job, run_dir=tmp_path / "study").outputs
    for kind in kinds:
        pixels = matplotlib.image.imread(outputs[kind])[..., :3]
        assert (pixels.min(axis=2) < 0.9).mean() > 0.01, kind
    # No sample is drawn large, so that no legend has a line for labels.
    names = [name for figure in figures if figure.legends for name in legend(figure)]
    assert len(names) > 3
    assert "large: label given" not in names


@pytest.mark.parametrize(
    ("picture", "words"),
    [
        ({"kind": "maps"}, "class-maps"),
        ({"rows": "learn.trian"}, "learn.train"),
        ({"measures": ["eror"]}, "error"),
        ({"where": "learn.seed > 1"}, "a key of pictures.embedding.where = 'learn.seed'"),
        ({"name": "../up"}, "pattern"),
    ],
)
def test_pictures__are_checked_with_the_job(write_study, picture, words):
    study = {"grid": {"learn.train": [12]}, "pictures": [picture]}
    with pytest.raises(JobError) as caught:
        load_job(write_study(study=study))
    assert words in str(caught.value)


def test_pictures__two_of_one_name(write_study):
    study = {"grid": {"learn.train": [12]}, "pictures": [{}, {"title": "again"}]}
    with pytest.raises(JobError, match=r"'embedding' occurs twice"):
        load_job(write_study(study=study))


def test_wanted__a_division_by_zero_leaves_the_variant_out():
    options = PictureOptions(where="accuracy / kappa > 1")
    assert not _wanted(options, Point({"accuracy": "1", "kappa": "0"}))
    assert _wanted(options, Point({"accuracy": "1", "kappa": "0.5"}))
