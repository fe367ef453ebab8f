import pytest

from eigenscape import parse_job
from eigenscape.job.sizes import JobSizes
from eigenscape.spectrum.footprint import filter_sizes, spectrum_footprint
from eigenscape.spectrum.iteration.solvers import WHOLE
from eigenscape.store.arrays import stored_bytes

SPATIAL = {"graph": {"spatial": {}}}


def sizes(n=100_000, **tables):
    job = parse_job({"scene": {"path": "none.tif"}, **tables})
    return JobSizes(job, n, 20, 10, 2, 2**28, None)


def test_spectrum_footprint__a_dense_matrix_is_held_once():
    needs = spectrum_footprint(sizes(1000, spectrum={"dimension": 9}))
    assert (needs.tasks, needs.shared) == (1, 9 * 1000**2 + 24 * 1000 * 10)
    assert (needs.disk, needs.scratch) == (4 * 1000 * 10, 8 * 1000 * 10)
    # The filter may end in it.
    assert spectrum_footprint(sizes(3000)).shared > WHOLE["dense"].bytes(3000, 10, 0)


@pytest.mark.parametrize("solver", ["lanczos", "lobpcg", "shift-invert", "chebyshev"])
def test_spectrum_footprint__grows_with_the_matrix(solver):
    def shared(**tables):
        return spectrum_footprint(sizes(spectrum={"solver": solver}, **tables)).shared

    usual = shared()
    assert usual > 0
    assert shared(neighbors={"k": 24}) > usual
    assert shared(**SPATIAL) > usual


def test_spectrum_footprint__of_landmarks_solves_them_alone():
    neighbors = {"method": "landmarks", "landmarks": 5000, "k": 12}
    given = sizes(neighbors=neighbors, limits={"layout": "rows"})
    own = given.landmarks()
    assert own is not None
    assert (own.n, own.job.neighbors.method, own.landmarks()) == (5000, "exact", None)
    needs, solved = spectrum_footprint(given), spectrum_footprint(own)
    assert needs.tasks == solved.tasks
    assert needs.scratch > solved.scratch
    assert needs.disk == stored_bytes(given.n, 4 * 56) >= 4 * given.n * 56
    # They are few: their filter has all rows.
    assert (filter_sizes(given).rows, filter_sizes(given).parts) == (5000, 0)
    assert filter_sizes(sizes(limits={"layout": "rows"})).parts >= 2


def test_spectrum_footprint__counts_what_is_tied():
    def of(**potential):
        graph = {"graph": {"potential": potential}} if potential else {}
        return spectrum_footprint(sizes(learn={"train": 0.1}, **graph))

    tied = of(kind="identification", labels="train")
    assert of(kind="identification", labels="all").each - tied.each == 16 * 32 * 90_000
    assert of(labels="train").each <= of(kind="identification", pixels=[3, 5]).each < tied.each
