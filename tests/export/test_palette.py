"""Every class has a name and a colour that can be told from the others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.export.legends.meanings import _table, meaning_of
from eigenscape.export.palette import cielab, complete_legend
from eigenscape.scenes.types import Legend


def _nearest(colors) -> float:
    lab = cielab(np.array(list(colors), float))
    away = np.linalg.norm(lab[:, None] - lab[None], axis=-1)
    np.fill_diagonal(away, np.inf)
    return away.min()


@pytest.mark.parametrize(("count", "least"), [(7, 25), (16, 20), (22, 20), (64, 10), (256, 3)])
def test_complete_legend__colors_differ(count, least):
    colors = complete_legend(Legend(), range(1, count + 1)).colors
    assert _nearest(colors.values()) > least
    assert _nearest([*colors.values(), (255, 255, 255)]) > 3


def test_complete_legend__keeps_what_is_given():
    given_colors = {2: (0, 114, 178), 9: (10, 200, 10)}
    legend = complete_legend(Legend({2: "oats", 3: " "}, given_colors), [0, 5, 3, 2])
    assert dict(legend.names) == {2: "oats", 3: "class 3", 5: "class 5", 9: "class 9"}
    assert {number: legend.colors[number] for number in given_colors} == given_colors
    assert _nearest(legend.colors.values()) > 15


@given(st.lists(st.integers(0, 65535), max_size=40), st.randoms())
def test_complete_legend__order_does_not_matter(classes, random):
    other = list(classes)
    random.shuffle(other)
    legend = complete_legend(Legend(), classes)
    assert legend == complete_legend(Legend(), other)
    assert set(legend.names) == set(legend.colors) == set(classes) - {0}


def test_complete_legend__more_classes_than_colors():
    legend = complete_legend(Legend(), range(1, 1001))
    assert len(legend.colors) == 1000
    assert len(set(legend.colors.values())) == 256


def test_cielab__known_values():
    lab = cielab(np.array([[255.0, 255, 255], [0, 0, 0], [255, 0, 0]]))
    np.testing.assert_allclose(lab, [[100, 0, 0], [0, 0, 0], [53.24, 80.09, 67.20]], atol=0.02)


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("Water", "water"), ("Lakes", "water"), ("water_deep", "water"), ("forest road", "road"),
        ("Bare Soil", "soil"), ("Buildings-Grass-Trees-Drives", "urban"), ("forest, old", "forest"),
        ("Grünland", "grass"), ("Straße", "road"), ("non-forest", None), ("other crops", None),
        ("Bäume", "forest"), ("BAEUME", "forest"), ("Ba\u0308ume", "forest"), ("Laubwälder", "forest"),
        ("Wiesen", "grass"), ("Äcker", "crop"), ("Flüsse", "water"), ("Dächer", "roof"),
        ("Straßen", "road"), ("Gebäude", "urban"), ("Forêt", "forest"), ("Eisen", None), ("blue", None),
        ("class 7", None), ("cluster 3", None), ("", None), ("seaside", None),
    ],
)  # fmt: skip
def test_meaning_of__the_words_that_count(name, meaning):
    assert meaning_of(name) == meaning


def test_words__belong_to_one_meaning_and_its_colours_differ():
    words = [
        word
        for entry in _table().values()
        for key in ("words", "german")
        for word in entry.get(key, ())
    ]
    assert len(words) == len(set(words))
    assert _nearest(entry["color"] for entry in _table().values()) > 12


def test_complete_legend__colours_by_meaning():
    names = {1: "water", 2: "river", 3: "forest", 4: "thing", 5: "urban", 6: "bare soil"}
    colors = complete_legend(Legend(names, {5: (9, 9, 9)}), names).colors
    assert colors[1] == tuple(_table()["water"]["color"])
    assert colors[3] == tuple(_table()["forest"]["color"])
    assert colors[5] == (9, 9, 9)
    # A shade of blue, which can be told from the first.
    assert colors[2][2] == max(colors[2])
    assert _nearest(colors.values()) > 15
    # So many crops are told apart by any colours rather than by shades of yellow.
    crops = complete_legend(Legend(dict.fromkeys(range(1, 9), "corn")), []).colors
    assert _nearest(crops.values()) > 25
