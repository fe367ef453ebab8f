from eigenscape import parse_job
from eigenscape.job.sizes import JobSizes
from eigenscape.learn.footprint import learn_footprint


def test_learn_footprint__smoothing_holds_every_group_of_classes():
    def before(classes, smoothing=1.0):
        job = parse_job({"scene": {"path": "none.tif"}, "learn": {"smoothing": smoothing}})
        labelled = dict.fromkeys(range(1, classes + 1), 5)
        return learn_footprint(
            JobSizes(job, 10**6, 20, 10, 1, 10**10, None, labelled=labelled)
        ).before

    group = 10**6 * 32 * 4
    assert before(30) == before(5)
    assert before(40) - before(30) == group
    assert before(100) - before(30) == 3 * group
    assert before(100, smoothing=0.0) < before(30)
