import pytest

from eigenscape import load_job
from eigenscape.job.sizes import JobSizes
from eigenscape.scenes.ingest.footprint import ingest_footprint
from eigenscape.scenes.open import open_scene


@pytest.fixture
def footprint(written, write_job):
    def count(tasks=1, **sizes):
        job = load_job(write_job())
        scene = open_scene(job.scene, job.resolve)
        given = JobSizes(job, scene.grid.size, 20, 10, tasks, 2**26, None, **sizes)
        return ingest_footprint(given, scene)

    return count


def test_ingest_footprint__copies_what_is_valid(footprint):
    usual = footprint()
    # 30 rows of 40 columns: values, pixels, labels, and where rows begin or how many pixels they have.
    assert usual.disk == 1200 * (4 * 20 + 8 + 2) + 8 * 31
    assert usual.scratch == 1200 * (4 * 20 + 12) + 8 * 30
    assert usual.each > 1200 * 20 * 4
    assert usual.tasks == 2


def test_ingest_footprint__places_of_a_map_are_sought_by_tasks_of_their_own(footprint):
    usual, placed = footprint(2), footprint(2, lookup=(5, 1e6, 4e5))
    assert placed.tasks == usual.tasks + 5
    assert placed.each >= 1e6
    assert placed.disk == usual.disk + 4e5
    assert placed.shared == usual.shared + 2**25
