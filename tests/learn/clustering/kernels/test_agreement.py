import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from eigenscape.learn.clustering.kernels.agreement import agreement, contingency

partitions = st.integers(1, 40).flatmap(
    lambda n: st.tuples(
        *(st.lists(st.integers(0, 4), min_size=n, max_size=n) for _ in range(2))
    )
)  # fmt: skip


@given(both=partitions)
def test_agreement__against_scikit_learn(both):
    classes, clusters = (np.array(one) for one in both)
    found = agreement(contingency(classes, clusters, (5, 5)))
    assert found.ari == pytest.approx(adjusted_rand_score(classes, clusters))
    wanted = normalized_mutual_info_score(classes, clusters)
    assert found.nmi == pytest.approx(wanted, abs=1e-9)
    assert found.samples == len(classes)


@given(both=partitions)
def test_agreement__accuracy_is_the_best_of_all_matchings(both):
    classes, clusters = (np.array(one) for one in both)
    found = agreement(contingency(classes, clusters, (5, 5)))
    every = itertools.permutations(range(5))
    best = max((np.array(match)[clusters] == classes).mean() for match in every)
    assert found.accuracy == pytest.approx(best)
    assert (found.matched[clusters] == classes).mean() == pytest.approx(best)


def test_agreement__more_clusters_than_classes():
    found = agreement(np.array([[5, 0, 2], [0, 4, 0]]))
    assert found.matched.tolist() == [0, 1, -1]
    assert found.accuracy == pytest.approx(9 / 11)


def test_agreement__of_more_pairs_than_64_bits_hold():
    found = agreement(np.array([[3 * 10**9, 10**9], [10**9, 3 * 10**9]]))
    # What the same shares of few samples tend to.
    few = agreement(np.array([[3 * 10**5, 10**5], [10**5, 3 * 10**5]]))
    assert found.ari == pytest.approx(few.ari, rel=1e-4)
    assert found.accuracy == 0.75


def test_agreement__of_nothing():
    found = agreement(np.zeros((2, 3), np.int64))
    assert (found.samples, found.accuracy, found.ari, found.nmi) == (0, 0, 1, 1)


def test_contingency__of_blocks_adds_up_without_those_not_labelled(rng):
    classes, clusters = rng.integers(-1, 3, 500), rng.integers(-1, 6, 500)
    whole = contingency(classes, clusters, (3, 6))
    parts = [
        contingency(classes[a:b], clusters[a:b], (3, 6)) for a, b in ((0, 9), (9, 9), (9, 500))
    ]
    np.testing.assert_array_equal(sum(parts), whole)
    assert whole.sum() == ((classes >= 0) & (clusters >= 0)).sum()
    assert whole[2, 4] == ((classes == 2) & (clusters == 4)).sum()
