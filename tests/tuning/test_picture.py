import pytest

from eigenscape import parse_job
from eigenscape.tuning.picture import draw_tried, tried_figure
from eigenscape.workflow.choice.candidates import Candidate
from eigenscape.workflow.choice.tried import Tried


def candidate(**values):
    return Candidate(values, parse_job({"scene": {"path": "scene.tif"}}))


def draw(seconds):
    """The chosen job and the given one side by side, among others."""
    given, chosen = candidate(a=1), candidate(a=2)
    accuracy = [0.80, 0.82]
    tried = [
        Tried(given, "first", accuracy, 2, seconds[0]),
        Tried(chosen, "first", accuracy, 2, seconds[1]),
        Tried(candidate(a=3), "second", [0.5, 0.6], 2, seconds[2]),
    ]
    return tried, chosen, given, "title", "accuracy"


def rings(axes):
    """The place of each ring, by what the legend calls it."""
    return {
        ring.get_label(): ring.get_offsets()[0].tolist()
        for ring in axes.collections
        if not ring.get_label().startswith("_")
    }


def test_tried_figure__the_chosen_job_and_the_given_one_have_rings(tmp_path):
    parts = draw((1.2, 1.21, 1.3))
    figure = tried_figure(*parts)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    assert rings(axes) == {
        "chosen": pytest.approx([1.21, 81]),
        "as given": pytest.approx([1.2, 81]),
    }
    legend = axes.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == [
        "chosen", "as given", "first", "second",
    ]  # fmt: skip
    # No text covers a marker.
    assert not axes.texts
    assert not legend.get_window_extent().overlaps(axes.get_window_extent())
    draw_tried(tmp_path / "accuracy.png", *parts)
    assert (tmp_path / "accuracy.png").stat().st_size > 1000


def test_tried_figure__of_the_given_job_as_the_best_one_ring():
    tried, _, given, *rest = draw((1, 2, 3))
    (axes,) = tried_figure(tried, given, given, *rest).axes
    assert set(rings(axes)) == {"chosen, as given"}


@pytest.mark.parametrize("best", [[0.97, 1.0, 1.0], [1.0, 1.0, 1.0]])
def test_tried_figure__nothing_lies_above_100_percent(best):
    tried, *rest = draw((1, 2, 3))
    figure = tried_figure([*tried, Tried(candidate(a=4), "third", best, 3, 4)], *rest)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    low, high = axes.get_ylim()
    assert low < 40
    assert high == 100
    for bars in axes.collections:
        if bars.get_label().startswith("_"):
            assert max(segment[:, 1].max() for segment in bars.get_segments()) <= 100


@pytest.mark.parametrize("seconds", [(0.6, 0.7, 0.9), (0.4, 3, 20), (1, 90, 4000)])
def test_tried_figure__ticks_are_plain_numbers(seconds):
    figure = tried_figure(*draw(seconds))
    figure.draw_without_rendering()
    (axes,) = figure.axes
    low, high = axes.get_xlim()
    ticks = [
        tick.get_text() for tick in axes.get_xticklabels() if low <= tick.get_position()[0] <= high
    ]
    assert len(ticks) >= 3
    assert all(text.replace(".", "").isdigit() for text in ticks)
