from itertools import pairwise
from typing import get_args

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.graph.kernels import weights as kernels
from eigenscape.job.options import Weights


def random_lists(rng, n, k):
    """Flat lists of up to k entries, some of them -1, some lists empty."""
    # One length for each pair, as for distances.
    lengths = np.triu(rng.random((n, n)), 1).astype(np.float32)
    lengths += lengths.T
    indptr = np.concatenate([[0], np.cumsum(rng.integers(0, k + 1, n))])
    near = [
        rng.choice(np.delete(np.arange(n), row), size, replace=False)
        for row, size in enumerate(np.diff(indptr))
    ]
    index = np.concatenate(near).astype(np.int32)
    index[rng.random(len(index)) < 0.1] = -1
    owner = np.repeat(np.arange(n), np.diff(indptr))
    distance = np.where(index >= 0, lengths[owner, index], np.float32(np.inf))
    return owner, indptr, index, distance


def cut(indptr, index, distance, first, last):
    piece = slice(indptr[first], indptr[last])
    return indptr[first : last + 1] - indptr[first], index[piece], distance[piece]


@given(
    n=st.integers(2, 60), k=st.integers(0, 5), blocks=st.integers(1, 6), seed=st.integers(0, 999)
)
def test_union_rows__equals_networkx_for_any_blocks(n, k, blocks, seed):
    rng = np.random.default_rng(seed)
    owner, *lists = random_lists(rng, n, min(k, n - 1))
    inner = np.sort(rng.choice(np.arange(1, n), min(blocks, n) - 1, replace=False))
    starts = np.concatenate([[0], inner, [n]])
    ranges = list(pairwise(starts))
    filed = []
    for first, last in ranges:
        mine = cut(*lists, first, last)
        counts = np.zeros(len(ranges), np.int64)
        kernels.count_targets(mine[1], starts, counts)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        edges = [np.empty(offsets[-1], kind) for kind in (np.int32, np.int32, np.float32)]
        kernels.bucket_edges(first, *mine, starts, offsets[:-1].copy(), *edges)
        filed.append((offsets, edges))
    graph = nx.Graph()
    graph.add_nodes_from(range(n))
    _, index, distance = lists
    known = index >= 0
    graph.add_weighted_edges_from(
        zip(owner[known], index[known], distance[known], strict=True), weight="length"
    )
    for number, (first, last) in enumerate(ranges):
        arriving = [
            np.concatenate(
                [edges[part][offsets[number] : offsets[number + 1]] for offsets, edges in filed]
            )
            for part in range(3)
        ]
        indptr, columns, lengths = kernels.union_rows(first, *cut(*lists, first, last), *arriving)
        assert len(indptr) == last - first + 1
        for row in range(last - first):
            here = slice(indptr[row], indptr[row + 1])
            expected = sorted(graph[first + row])
            assert columns[here].tolist() == expected
            assert lengths[here].tolist() == [graph[first + row][j]["length"] for j in expected]


def test_union_rows__sorts_a_hub(rng):
    # Every row names row 0, which therefore has more than 64 entries.
    n = 300
    index = np.zeros(n, np.int32)
    index[0] = n - 1
    distance = rng.random(n).astype(np.float32)
    others = np.delete(np.arange(n, dtype=np.int32), 0)[::-1]
    source = np.r_[others, [0]].astype(np.int32)
    target = np.r_[np.zeros(n - 1), [n - 1]].astype(np.int32)
    indptr, columns, lengths = kernels.union_rows(
        0, np.arange(n + 1), index, distance, source, target, distance[source]
    )
    np.testing.assert_array_equal(columns[: n - 1], np.arange(1, n))
    np.testing.assert_array_equal(lengths[: n - 2], distance[1 : n - 1])
    # Both ends of the last pair named each other: the shorter of the two lengths counts.
    assert lengths[n - 2] == lengths[-1] == min(distance[0], distance[-1])
    assert indptr[-1] == 2 * (n - 1)


@pytest.mark.parametrize("bandwidth", [1.0, 0.25])
def test_self_tuning_weights__equals_numpy(rng, bandwidth):
    indptr, columns = np.array([0, 2, 3]), np.array([1, 3, 0], np.int32)
    lengths, scale = rng.random(3).astype(np.float32), rng.random(6).astype(np.float32)
    weights = np.empty(3, np.float32)
    kernels.self_tuning_weights(2, indptr, columns, lengths, scale, bandwidth, weights)
    own = scale[[2, 2, 3]].astype(float)
    expected = np.exp(-(lengths.astype(float) ** 2) / (bandwidth * own * scale[columns]))
    np.testing.assert_allclose(weights, np.maximum(expected, kernels.WEIGHT_FLOOR), rtol=1e-6)


def test_heat_weights__are_never_0():
    lengths = np.array([0, 1e-3, 1, 1e3, 1e30], np.float32)
    weights = np.empty(5, np.float32)
    kernels.heat_weights(lengths, 1.0, weights)
    assert weights[0] == 1
    np.testing.assert_allclose(weights[2], np.exp(-1), rtol=1e-6)
    np.testing.assert_array_equal(weights[3:], kernels.WEIGHT_FLOOR)


def test_weights__are_the_rules_of_jobs():
    assert [*kernels.WEIGHTS] == [*get_args(Weights)]


@pytest.mark.parametrize("name", kernels.WEIGHTS)
def test_weigh__equals_numpy(rng, name):
    indptr, columns = np.array([0, 2, 3]), np.array([1, 3, 0], np.int32)
    lengths, scale = rng.random(3).astype(np.float32), rng.random(6).astype(np.float32)
    rule = kernels.WEIGHTS[name]
    weights = rule.weigh(2, indptr, columns, lengths, scale if rule.scaled else None, 0.5)
    own = scale[[2, 2, 3]] * scale[columns]
    t = {"self-tuning": 0.5 * own, "heat": 0.5, "binary": np.inf}[name]
    expected = np.maximum(np.exp(-(lengths**2) / t), kernels.WEIGHT_FLOOR)
    np.testing.assert_allclose(weights, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("size", "begins"),
    [
        ([1] * 7, [0, 4]),
        ([6, 6, 6, 6], [0, 1, 2, 3]),
        ([0] * 5, [0, 4]),
        ([1, 99, 1, 9, 1], [0, 1, 2, 4]),
        ([99], [0]),
    ],
)
def test_cut_rows__holds_so_many_rows_and_entries(size, begins):
    np.testing.assert_array_equal(np.flatnonzero(kernels.cut_rows(np.array(size), 4, 10)), begins)


def test_row_sums__of_empty_rows_are_0():
    weights = np.array([1, 1e-8, 3], np.float32)
    sums = kernels.row_sums(np.array([0, 0, 2, 2, 3]), weights)
    np.testing.assert_array_equal(sums, [0, 1 + float(weights[1]), 0, 3])
