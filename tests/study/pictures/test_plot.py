import matplotlib.image
import numpy as np
import pytest

from eigenscape import parse_job
from eigenscape.base.files.tables import read_table
from eigenscape.study.pictures.plot import draw_plot


def rows_of(sizes, **measures):
    return [
        {"state": "finished", "main": "true", "variant": "a", "scene.samples": str(n),
         **{name: str(values[i]) for name, values in measures.items()}}
        for i, n in enumerate(sizes)
    ]  # fmt: skip


def job(tmp_path, **plot):
    study = {"grid": {"scene.samples": [10, 100, 1000]}, "plot": {"x": "scene.samples", **plot}}
    return parse_job({"scene": {"path": "a.npy"}, "study": study}, base=tmp_path)


def ink(path):
    """Return how much of a picture is not white, and how many colours are in it."""
    pixels = matplotlib.image.imread(path)[..., :3]
    colors = np.round(10 * pixels).astype(int) @ [1, 11, 121]
    return (pixels.min(axis=2) < 0.9).mean(), len(np.unique(colors))


@pytest.mark.exhaustive
@pytest.mark.slow
def test_draw_plot__shows_ours_and_theirs(finished, tmp_path):
    study, result = finished
    share, colors = ink(result.outputs["plot"])
    assert share > 0.01
    assert colors > 10
    # Without the published values there is less to see, on the same axes.
    rows = read_table(result.outputs["csv"])
    for name, keys in {"both": {}, "alone": {"published": None}}.items():
        options = study.study.model_copy(update={"protocol": "random", **keys})
        draw_plot(tmp_path / f"{name}.png", study.model_copy(update={"study": options}), rows)
    assert ink(tmp_path / "alone.png")[0] < ink(tmp_path / "both.png")[0]


@pytest.mark.mostly_slow(3)
@pytest.mark.parametrize(
    "plot",
    [
        {"y": "error"},
        {"y": ["error", "seconds"], "log": ["x", "y"]},
        {"y": "error", "right": "seconds", "log": ["right"]},
        {"x": "variant", "y": "error", "right": "seconds"},
        {"x": "samples", "y": "error", "lines": "variant"},
        {"x": "samples", "y": "error", "panels": "scene.samples"},
        {"x": "samples", "y": "error", "lines": "scene.samples", "panels": "variant"},
    ],
    ids=lambda plot: "-".join(plot),
)
def test_draw_plot__kinds(tmp_path, plot):
    rows = rows_of(
        (10, 100, 1000),
        error=(5, 4, 3),
        error_se=(1, 1, 0),
        seconds=(1, 10, 100),
        samples=(9, 99, 999),
    )
    assert draw_plot(tmp_path / "p.png", job(tmp_path, **plot), rows)["plot"].exists()
    assert ink(tmp_path / "p.png")[0] > 0.01


def test_draw_plot__slope_of_a_power_law(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    said = []
    legend = Figure.legend
    monkeypatch.setattr(
        Figure, "legend",
        lambda self, handles, **keys: said.extend(h.get_label() for h in handles)
        or legend(self, handles=handles, **keys),
    )  # fmt: skip
    rows = rows_of((10, 100, 1000), seconds=(1, 10**1.5, 1000), seconds_graph=(2, 2, 2))
    plot = {"y": ["seconds", "seconds_graph"], "log": ["x", "y"], "slope": True}
    draw_plot(tmp_path / "p.png", job(tmp_path, **plot), rows)
    assert said == ["time: ~ n$^{1.50}$", "time of graph: ~ n$^{0.00}$"]


def test_draw_plot__nothing_finished_nothing_drawn(tmp_path):
    assert draw_plot(tmp_path / "p.png", job(tmp_path), [{"state": "to do"}]) == {}
    assert list(tmp_path.iterdir()) == []


def test_draw_plot__panels_share_their_legend_and_variants_without_lines(tmp_path, monkeypatch):
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    drawn, said = [], []
    plot_line, legend = Axes.plot, Figure.legend
    monkeypatch.setattr(
        Axes, "plot",
        lambda self, x, y, *rest, **keys: drawn.append((keys["label"], keys["color"], list(y)))
        or plot_line(self, x, y, *rest, **keys),
    )  # fmt: skip
    monkeypatch.setattr(
        Figure, "legend",
        lambda self, handles, **keys: said.extend(h.get_label() for h in handles)
        or legend(self, handles=handles, **keys),
    )  # fmt: skip
    one = [{**row, "learn.k": "1"} for row in rows_of((10, 100), error=(5, 4))]
    other = [{**row, "learn.k": "1"} for row in rows_of((10, 100), error=(3, 2))]
    other = [{**row, "variant": "b"} for row in other]
    baseline = [{**row, "variant": "baseline"} for row in rows_of((10, 100), error=(9, 8))]
    grid = {"scene.samples": [10, 100], "learn.k": [1]}
    plot = {"x": "scene.samples", "y": "error", "lines": "learn.k", "panels": "variant"}
    study = {"grid": grid, "plot": plot, "labels": {"learn.k": "neighbours"}}
    made = parse_job({"scene": {"path": "a.npy"}, "study": study}, base=tmp_path)
    draw_plot(tmp_path / "p.png", made, [*one, *other, *baseline])
    lines = [(label, y) for label, _, y in drawn]
    assert lines == [
        ("1 neighbours", [5, 4]), ("baseline", [9, 8]),
        ("1 neighbours", [3, 2]), ("baseline", [9, 8]),
    ]  # fmt: skip
    assert drawn[0][1] == drawn[2][1] != drawn[1][1]
    assert said == ["1 neighbours", "baseline"]


@pytest.mark.parametrize(
    ("plot", "spread"),
    [
        ({"y": "isolation", "log": ["x", "y"]}, (0, 0, 0)),
        ({"y": "error", "right": "seconds"}, (1, 1, 3)),
        ({"y": "error", "lines": "variant"}, (0, 0, 0)),
    ],
    ids=["long title", "two axes", "no spread"],
)
def test_draw_plot__nothing_leaves_the_canvas_or_its_axes(tmp_path, monkeypatch, plot, spread):
    """Words stay on the canvas, markers within the axes, and the legend shows bars that there are."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.container import ErrorbarContainer
    from matplotlib.figure import Figure

    figures = []
    savefig = Figure.savefig
    monkeypatch.setattr(
        Figure, "savefig",
        lambda self, *rest, **keys: figures.append(self) or savefig(self, *rest, **keys),
    )  # fmt: skip
    sizes = (10, 100, 1000)
    rows = rows_of(
        sizes, isolation=(0.1, 1, 10), error=(5, 4, 9), error_se=spread, seconds=(5, 6, 7),
        seconds_se=spread,
    )  # fmt: skip
    rows += [{**row, "variant": "b"} for row in rows] if "lines" in plot else []
    draw_plot(tmp_path / "p.png", job(tmp_path, **plot), rows)
    (figure,) = figures
    drawer = FigureCanvasAgg(figure).get_renderer()
    for axes in figure.axes:
        for text in filter(_has_words, (axes.xaxis.label, axes.yaxis.label, axes.title)):
            box = text.get_window_extent(drawer)
            assert box.y0 >= 0
            assert box.x0 >= 0
            assert box.y1 <= figure.bbox.y1
        inside = axes.get_window_extent(drawer)
        low, high = axes.transData.inverted().transform(
            [(inside.x0, inside.y0), (inside.x1, inside.y1)]
        )
        half = 5.5 / 2 / 72 * figure.dpi  # of a marker, in pixels
        for line in axes.lines:
            ends = axes.transData.transform(np.c_[line.get_xdata(), line.get_ydata()].astype(float))
            assert (ends >= [inside.x0 + half, inside.y0 + half]).all()
            assert (ends <= [inside.x1 - half, inside.y1 - half]).all()
        assert (low < high).all()
        bars = [each for each in axes.containers if isinstance(each, ErrorbarContainer)]
        assert bool(bars) == any(spread)


def _has_words(text):
    return bool(text.get_text())
