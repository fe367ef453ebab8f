"""Vectors in files, for tests of the iteration."""


def filled(problem, name, groups, rng):
    """Return new vectors of a problem, filled with normal variates."""
    vectors = problem.named(name, range(groups))
    vectors.write(slice(None), rng.standard_normal((vectors.rows, vectors.columns)))
    return vectors
