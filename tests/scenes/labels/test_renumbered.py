from dataclasses import replace

import numpy as np
import pytest

from eigenscape.errors import SceneError
from eigenscape.scenes.describe import notes_of
from eigenscape.scenes.labels.carried import CarriedLabels
from eigenscape.scenes.labels.renumbered import RenumberedLabels, renumbered
from eigenscape.scenes.labels.sources import PlaneLabels, numbered_like
from eigenscape.scenes.types import Legend

KNOWN = {1: "corn", 2: "oats", 3: "wood"}
GREY, GREEN = (9, 9, 9), (0, 128, 0)


class Plane:
    """Labels in memory."""

    files, notes = ("plane",), ("a plane",)

    def __init__(self, values, names):
        self.values = np.array(values, np.uint16)
        self.legend = Legend(names, {1: GREEN, 2: GREY})

    def read(self, start, stop):
        return self.values[start:stop]


def test_renumbered__by_names_where_both_have_them():
    labels = Plane([[0, 1], [2, 3]], {1: "oats", 2: "rye", 3: "wood"})
    found = renumbered(labels, KNOWN)
    assert found.read(0, 1).tolist() == [[0, 2]]
    assert found.read(1, 2).tolist() == [[4, 3]]
    assert found.legend == Legend({2: "oats", 4: "rye", 3: "wood"}, {2: GREEN, 4: GREY})
    assert found.files == ("plane",)
    assert notes_of(found) == ("a plane",)


@pytest.mark.parametrize(
    ("names", "known"), [({}, KNOWN), ({1: "oats"}, {}), (KNOWN, KNOWN), ({2: "oats"}, KNOWN)]
)
def test_renumbered__numbers_stay_where_names_say_nothing_else(names, known):
    labels = Plane([[1, 2]], names)
    assert renumbered(labels, known) is labels


def test_renumbered__case_and_spaces_are_no_difference():
    found = renumbered(Plane([[1, 2]], {1: " Oats", 2: "CORN"}), KNOWN)
    assert found.read(0, 1).tolist() == [[2, 1]]
    assert found.legend.names == {2: " Oats", 1: "CORN"}


def test_renumbered__words_of_flags_are_the_names_that_they_stand_for():
    known = {1: "bare soil", 2: "tall grass (wet)", 3: "?", 4: "!"}
    found = renumbered(Plane([[1, 2, 3]], {1: "tall_grass_wet", 2: "bare_soil", 3: "!"}), known)
    assert found.read(0, 1).tolist() == [[2, 1, 4]]


def test_renumbered__unnamed_class_with_the_number_of_another_is_refused():
    labels = Plane([[1, 3], [2, 1]], {1: "corn"})
    found = renumbered(labels, {2: "corn"})
    assert found.read(0, 1).tolist() == [[2, 3]]
    assert found.legend == Legend({2: "corn"}, {2: GREEN})
    with pytest.raises(SceneError, match=r"class 2 has no name.*'corn'"):
        found.read(1, 2)


def test_renumbered__legends_with_numbers_that_no_label_has():
    labels = Plane([[1, 2]], {1: "oats", 2: "corn", 0: "none", 70000: "wood"})
    labels.legend.colors[70000] = GREY
    found = renumbered(labels, {**KNOWN, 70000: "heath"})
    assert found.read(0, 1).tolist() == [[2, 1]]
    assert found.legend == Legend({2: "oats", 1: "corn"}, {2: GREEN, 1: GREY})


def test_renumbered__new_numbers_are_class_numbers():
    labels = Plane([[65535, 1]], {65535: "moor", 1: "oats"})
    found = renumbered(labels, KNOWN)
    assert found.read(0, 1).tolist() == [[4, 2]]
    many = renumbered(Plane([[1]], {1: "moor"}), {65535: "corn"})
    assert many.read(0, 1).tolist() == [[2]]
    known = {number: str(number) for number in range(1, 65536)}
    with pytest.raises(SceneError, match="more than 65535"):
        renumbered(labels, known)


class Array:
    """A plane in memory."""

    files = ("plane.tif",)

    def rows(self, start, stop):
        values = np.array([[1, 2]])[start:stop]
        return values, values > 0


def test_numbered_like__a_raster_without_a_known_name_keeps_its_numbers():
    plane = PlaneLabels(Array(), Legend({1: "Mais", 2: "Hafer"}))
    assert numbered_like(plane, KNOWN) is plane
    carried = CarriedLabels(plane, None)
    assert numbered_like(carried, KNOWN) is carried
    # Names of a table have no numbers of their own.
    assert numbered_like(Plane([[1, 2]], plane.legend.names), KNOWN).read(0, 1).tolist() == [[4, 5]]
    some = replace(plane, legend=Legend({1: "Mais", 2: "corn"}))
    assert numbered_like(some, KNOWN).read(0, 1).tolist() == [[4, 1]]


def test_renumbered__classes_of_other_names_come_last():
    found = renumbered(Plane([[1, 2, 9]], {1: "moor", 2: "corn"}), {5: "corn"})
    assert found.read(0, 1).tolist() == [[6, 5, 9]]


def test_renumbered__of_equal_names_the_number_counts():
    known = {1: "forest", 2: "water", 3: "forest", 4: "town"}
    labels = Plane([[1, 2, 3, 4]], known)
    assert renumbered(labels, known) is labels
    assert numbered_like(PlaneLabels(Array(), Legend(known)), known).legend.names == known
    found = renumbered(Plane([[1, 2, 3]], {1: "forest", 2: "town", 3: "forest"}), known)
    assert found.read(0, 1).tolist() == [[1, 4, 3]]
    with pytest.raises(SceneError, match=r"class 2 is: the classes 1, 3 .* called 'forest'"):
        renumbered(Plane([[1, 2]], {2: "forest"}), known)
    cases = renumbered(Plane([[1]], {1: "oak"}), {1: "Oak", 2: "oak"})
    assert cases.read(0, 1).tolist() == [[2]]


def test_numbered_like__names_alone_are_not_compared_with_numbers():
    named = RenumberedLabels(
        Plane([[1, 2]], {}), np.arange(2**16, dtype=np.uint16),
        Legend({1: "arable", 2: "wood"}, alphabetical=True),
    )  # fmt: skip
    with pytest.raises(SceneError, match=r"names its classes \(arable, wood\).* scene\.classes"):
        numbered_like(named, {})
    numbers = RenumberedLabels(named.labels, named.number, Legend({1: "arable", 2: "wood"}))
    assert numbered_like(numbers, {}) is numbers
