"""Texts to vectors: words by their neighbours, documents by their words.

Belkin 2003, 2.6.3 and 3.8.2. The counting of documents is scikit-learn's.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

WORDS = 300
"""Most frequent words of the Brown corpus that become vectors (Belkin 2003, 2.6.3)."""
COLUMNS = 6000
"""Most frequent words that documents are counted in (Belkin 2003, 3.8.2)."""
TOKEN = r"[a-z]{2,}"
"""A word of a document: two letters or more, in small letters; digits and signs part words."""

_LETTER = re.compile("[a-z]")


def frequent(counts: Iterable[tuple[str, int]], number: int) -> list[str]:
    """Return the most frequent words, most frequent first, equally frequent ones by alphabet."""
    ordered = sorted(counts, key=lambda item: (-item[1], item[0]))
    return [word for word, _ in ordered[:number]]


def neighbor_counts(
    sentences: Iterable[Sequence[str]], number: int = WORDS
) -> tuple[list[str], NDArray[np.uint32]]:
    """Describe the most frequent words by what stands left and right of them.

    Parameters
    ----------
    sentences
        Words and signs in their order. Small letters and capitals count as one; what has no letter
        (a sign, a number) is no word, and words on two sides of it are no neighbours.
    number
        How many words.

    Returns
    -------
    words : list of str
        The most frequent first.
    counts : array of uint32, shape (number, 2 number)
        Column j of word i: how often word j stands directly before it; column number + j: how often
        directly after it.
    """
    lowered = [[token.lower() for token in sentence] for sentence in sentences]
    total = Counter(chain.from_iterable(lowered))
    words = frequent(((word, n) for word, n in total.items() if _LETTER.search(word)), number)
    place = {word: index for index, word in enumerate(words)}
    counts = np.zeros((len(words), 2 * len(words)), np.uint32)
    for sentence in lowered:
        numbers = [place.get(token, -1) for token in sentence]
        for left, right in pairwise(numbers):
            if left >= 0 and right >= 0:
                counts[right, left] += 1
                counts[left, len(words) + right] += 1
    return words, counts


def without_header(text: str) -> str:
    """Return what follows the first empty line of a posting."""
    return text.partition("\n\n")[2]


def word_shares(
    documents: Iterable[str], columns: int = COLUMNS
) -> tuple[csr_array, NDArray[np.intp], list[str]]:
    """Describe documents by the shares of the most frequent words.

    Words of scikit-learn's list of 318 English stop words do not count (the thesis leaves out "a
    standard stop-list of 500 most common words" of the Rainbow package). A document that holds none
    of the frequent words is left out.

    Parameters
    ----------
    documents
        Texts, without headers.
    columns
        How many words.

    Returns
    -------
    shares : csr_array, shape (kept, columns), float32
        Each row sums to 1.
    kept : array, shape (kept,)
        Numbers of the documents that are left.
    words : list of str
        What the columns count, most frequent first.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(token_pattern=TOKEN, stop_words="english", dtype=np.int32)
    counts = csr_array(vectorizer.fit_transform(documents))
    names = vectorizer.get_feature_names_out().tolist()
    total = np.asarray(counts.sum(axis=0)).ravel().tolist()
    words = frequent(zip(names, total, strict=True), columns)
    place = vectorizer.vocabulary_
    counts = csr_array(counts[:, [place[word] for word in words]])
    length = np.asarray(counts.sum(axis=1)).ravel()
    kept = np.flatnonzero(length)
    shares = csr_array(counts[kept].astype(np.float32))
    shares.data /= np.repeat(length[kept], np.diff(shares.indptr)).astype(np.float32)
    shares.sort_indices()
    return shares, kept, words
