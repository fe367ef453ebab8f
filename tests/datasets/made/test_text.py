"""Counts agree with naive counters on small texts."""

import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.datasets.made.text import frequent, neighbor_counts, without_header, word_shares

SENTENCES = [
    ["The", "dog", "saw", "the", "cat", ",", "the", "cat", "saw", "1"],
    ["the", "the", "Cat"],
    ["dog"],
]


def test_neighbor_counts__by_hand():
    words, counts = neighbor_counts(SENTENCES, 3)
    assert words == ["the", "cat", "dog"]  # dog before saw: equally frequent, by alphabet
    before, after = counts[:, :3], counts[:, 3:]
    # the-dog, the-cat (twice within the first sentence, once in the second), the-the.
    np.testing.assert_array_equal(after, [[1, 3, 1], [0, 0, 0], [0, 0, 0]])
    np.testing.assert_array_equal(before, after.T)


def test_neighbor_counts__signs_and_ends_part_words():
    words, counts = neighbor_counts([["a", ",", "b"], ["a"], ["b"]], 2)
    assert words == ["a", "b"]
    assert not counts.any()


@given(st.lists(st.lists(st.sampled_from(["a", "B", "b", "cc", ".", "7"]), max_size=9), max_size=6))
def test_neighbor_counts__agrees_with_a_naive_counter(sentences):
    words, counts = neighbor_counts(sentences, 2)
    pairs = Counter(
        (one.lower(), two.lower()) for sentence in sentences for one, two in pairwise(sentence)
    )
    for i, word in enumerate(words):
        for j, other in enumerate(words):
            assert counts[i, j] == pairs[other, word]
            assert counts[i, len(words) + j] == pairs[word, other]


def test_frequent__breaks_ties_by_alphabet():
    assert frequent([("b", 2), ("a", 2), ("c", 3), ("d", 1)], 3) == ["c", "a", "b"]


def test_without_header():
    assert without_header("From: me\nSubject: it\n\nOne.\n\nTwo.") == "One.\n\nTwo."
    assert without_header("From: me\n") == ""


DOCUMENTS = [
    "The engine of the car: engine, ENGINE, gearbox2wheel!",
    "And of the.",
    "gearbox gearbox wheel planet",
    "planet x y z engine",
    "",
]


def test_word_shares__agrees_with_a_naive_counter():
    shares, kept, words = word_shares(DOCUMENTS, 3)
    stop = {"the", "of", "and"}
    tokens = [
        [word for word in re.findall("[a-z]+", text.lower()) if len(word) > 1 and word not in stop]
        for text in DOCUMENTS
    ]
    total = Counter(word for document in tokens for word in document)
    assert words == sorted(total, key=lambda word: (-total[word], word))[:3]
    assert words == ["engine", "gearbox", "planet"]
    # Nothing is left of the documents of stop words and of none.
    assert kept.tolist() == [0, 2, 3]
    for row, number in enumerate(kept):
        counts = np.array([tokens[number].count(word) for word in words], float)
        np.testing.assert_allclose(shares[[row]].toarray()[0], counts / counts.sum(), rtol=1e-6)
    assert shares.dtype == np.float32


def test_word_shares__rows_sum_to_one():
    shares, *_ = word_shares(DOCUMENTS)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-6)
    assert shares.shape == (3, 5)


@pytest.mark.parametrize("columns", [1, 2])
def test_word_shares__keeps_the_most_frequent(columns):
    _, _, words = word_shares(DOCUMENTS, columns)
    assert words == ["engine", "gearbox"][:columns]
