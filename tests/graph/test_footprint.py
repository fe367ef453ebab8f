from eigenscape import parse_job
from eigenscape.graph.footprint import entry_count, graph_footprint
from eigenscape.job.sizes import JobSizes


def sizes(n=100_000, **tables):
    job = parse_job({"scene": {"path": "none.tif"}, **tables})
    return JobSizes(job, n, 20, 10, 2, 2**28, None)


def test_entry_count__counts_both_kinds_of_edges():
    assert entry_count(sizes(neighbors={"k": 10}).job, 1000) == 15_000
    both = sizes(neighbors={"k": 10}, graph={"spatial": {"neighbors": 4}}).job
    assert entry_count(both, 1000) == 19_000


def test_graph_footprint__spatial_edges_are_joined_afterwards():
    usual, spatial = (graph_footprint(sizes(graph=graph)) for graph in ({}, {"spatial": {}}))
    assert spatial.tasks == 1.5 * usual.tasks
    assert (usual.each, spatial.each) == (100_000 * 12 * 45, 100_000 * (12 + 8) * 80)
    assert spatial.disk - usual.disk == 8 * 8 * 100_000
    assert spatial.scratch > usual.scratch


def test_graph_footprint__bridges_are_sought_before_the_tasks():
    connected, largest = (
        graph_footprint(sizes(graph={"components": name})) for name in ("connect", "largest")
    )
    assert connected.before > largest.before == 48 * 100_000
