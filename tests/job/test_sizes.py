from eigenscape import parse_job
from eigenscape.base.blocks import sample_blocks
from eigenscape.base.memory import heap_bytes
from eigenscape.job.sizes import JobSizes


def sizes(**tables):
    job = parse_job({"scene": {"path": "none.tif"}, **tables})
    return JobSizes(job, 100_000, 20, 10, 2, 2**24, None)


def test_step__cuts_as_stages_do():
    count, rows = sizes().step(1000, 500)
    found = sample_blocks(100_000, 1000, 2**24, 500)
    assert (count, rows) == (len(found), found[0][1])
    assert rows % 1000 == 0


def test_heap__follows_the_limit():
    small, large = (sizes(limits={"memory": memory}).heap for memory in ("512MiB", "2GiB"))
    assert small < large == heap_bytes(2**31, 2)


def test_landmarks__are_samples_with_a_graph_of_their_own():
    assert sizes().landmarks() is None
    given = sizes(neighbors={"method": "landmarks", "landmarks": 300, "k": 7})
    own = given.landmarks()
    assert own is not None
    assert (own.n, own.job.neighbors.k, own.d, own.budget) == (300, 7, 10, 2**24)
    assert own.job.neighbors.most_landmarks is None
