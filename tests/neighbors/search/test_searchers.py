import pytest

from eigenscape.neighbors.search.searchers import MANY, WIDE, choose_searcher


@pytest.mark.parametrize(
    ("rows", "columns", "sparse", "searcher", "word"),
    [
        (MANY, WIDE, False, "pynndescent", f"{WIDE} or more"),
        (MANY - 1, WIDE, False, "blas", f"fewer than {MANY:,} samples"),
        (MANY, WIDE - 1, False, "blas", f"{WIDE - 1} columns"),
        (MANY, 50_000, True, "blas", "sparse"),
    ],
)
def test_choose_searcher__says_why(rows, columns, sparse, searcher, word):
    found, why = choose_searcher("auto", rows, columns, sparse=sparse)
    assert found == searcher
    assert word in why


@pytest.mark.parametrize("searcher", ["blas", "pynndescent"])
@pytest.mark.parametrize("sparse", [False, True])
def test_choose_searcher__does_as_the_job_says(searcher, sparse):
    for rows, columns in ((10, 3), (MANY, WIDE)):
        found = choose_searcher(searcher, rows, columns, sparse=sparse)
        assert found == (searcher, "neighbors.searcher")
