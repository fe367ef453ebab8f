import numpy as np
import pytest

from eigenscape.errors import InputError
from eigenscape.learn.clustering.numbers import by_size, check_shares, choose_count
from eigenscape.learn.methods.normalized_cut import NormalizedCut

VALUES = np.array([0, 0.01, 0.012, 0.2, 0.21, 0.6])


def options(**given):
    return NormalizedCut(**given)


@pytest.mark.parametrize(
    ("given", "nulls", "classes", "count", "word"),
    [
        ({"clusters": 4}, 1, 9, 4, "learn.clusters"),
        ({}, 1, 5, 5, "classes of the labels"),
        ({}, 1, 0, 3, "relative gap of 0.94"),
        ({}, 1, 1, 3, "between numbers 3 and 4"),
        ({"ncut": 0.3}, 1, 5, 6, "learn.ncut"),
        ({"ncut": 0.3, "clusters": 2}, 1, 5, 2, "learn.clusters"),
    ],
)
def test_choose_count__and_says_why(given, nulls, classes, count, word):
    found, reason = choose_count(options(**given), VALUES, nulls, classes)
    assert found == count
    assert word in reason


def test_choose_count__components_are_clusters():
    values = np.array([0, 0, 0, 0.5, 0.51])
    assert choose_count(options(), values, 3, 0)[0] == 3
    with pytest.raises(InputError, match=r"learn.clusters = 2: the graph has 3 components"):
        choose_count(options(clusters=2), values, 3, 0)


def test_choose_count__refuses_more_than_the_eigenvectors():
    with pytest.raises(InputError, match=r"learn.clusters = 7: .*spectrum.dimension to 6"):
        choose_count(options(clusters=7), VALUES, 1, 0)
    with pytest.raises(InputError, match=r'learn.clusters = "auto": 2 eigenvectors have no gap'):
        choose_count(options(), VALUES[:2], 1, 0)


def test_choose_count__many_clusters_make_a_small_gap_clear():
    rising = 0.001 * np.arange(1, 31) ** (2 / 3)
    values = np.concatenate([[0], rising])
    values[20:] *= 1.4
    count, reason = choose_count(options(), values, 1, 0)
    assert count == 20
    assert "between numbers 20 and 21" in reason


def test_choose_count__takes_the_last_clear_gap():
    """Pairs of clusters that lie closer leave gaps before the one after all clusters."""
    values = np.array([0, 1e-4, 0.01, 0.02, 0.2, 0.22, 0.25])
    assert choose_count(options(), values, 1, 0)[0] == 4
    rising = 0.02 * np.arange(1, 31) ** (2 / 3)
    values = np.concatenate([np.repeat([0, 1e-6, 0.01], [1, 4, 4]), rising])
    assert choose_count(options(), values, 1, 0)[0] == 9


def test_choose_count__refuses_eigenvalues_that_tell_nothing():
    rising = np.concatenate([[0], 0.001 * np.arange(1, 31) ** (2 / 3)])
    with pytest.raises(
        InputError, match=r"none of the gaps .* numbers 2 \(0.37\), 3 .* Set learn.clus"
    ):
        choose_count(options(), rising, 1, 0)
    # Two that almost fall apart, and nothing else.
    assert choose_count(options(), np.append([0, 1e-5], rising[2:]), 1, 0)[0] == 2


def test_by_size__largest_first_and_none_empty():
    found = by_size(np.array([5, 5, 1, 3, 3, 5, 1]))
    assert found.tolist() == [0, 0, 1, 2, 2, 0, 1]


def test_check_shares__refuses_a_small_group_apart_from_the_rest():
    apart, even = np.array([946, 54]), np.array([700, 300])
    with pytest.raises(InputError, match=r"parts 54 of 1,000 samples \(5\.4%\)"):
        check_shares(options(), 0, apart)
    # Even ones, one that was asked for, that of the classes, many.
    check_shares(options(), 0, even)
    check_shares(options(clusters=2), 0, apart)
    check_shares(options(), 2, apart)
    check_shares(options(), 0, np.array([900, 50, 10, 10, 10]))
