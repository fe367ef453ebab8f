import numpy as np
import scipy.sparse as sp

from eigenscape.neighbors.kernels.hashes import hash_rows

KINDS = {"dense": np.asarray, "sparse": sp.csr_array}


def test_hash_rows__equal_rows_alone_have_equal_hashes(rng):
    rows = rng.integers(0, 2, (5000, 9)).astype(np.float32)
    rows[rng.random(rows.shape) < 0.3] *= -1  # makes -0.0 of half of them
    expected = np.unique(rows + 0, axis=0, return_inverse=True)[1].ravel()
    for kind in KINDS.values():
        hashes = hash_rows(kind(rows))
        assert hashes.dtype == np.uint64
        found = np.unique(hashes, return_inverse=True)[1]
        pairs = np.unique(np.column_stack([expected, found]), axis=0)
        assert len(pairs) == expected.max() + 1 == found.max() + 1
    # A row has its hash whichever block it is read in.
    np.testing.assert_array_equal(hash_rows(rows[17:40]), hash_rows(rows)[17:40])


def test_hash_rows__tells_columns_apart():
    same_entries = np.array([[1, 2, 0], [1, 0, 2], [2, 1, 0], [0, 1, 2], [0, 0, 0]], np.float32)
    for kind in KINDS.values():
        assert len(np.unique(hash_rows(kind(same_entries)))) == 5
