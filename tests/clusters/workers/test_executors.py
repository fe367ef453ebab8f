import pytest

from eigenscape.clusters.workers.executors import Threads

LOST_COUNT = "AST constructor recursion depth mismatch (before=63, after=61)"


def test_run__a_task_is_repeated_where_python_lost_count():
    begun, done = [], {}

    def task(item):
        begun.append(item)
        if begun.count(item) == 1:
            raise SystemError(LOST_COUNT)
        return 2 * item

    Threads(2).run(task, [3, 4], lambda number, result, peak: done.update({number: result}))
    assert done == {0: 6, 1: 8}
    assert sorted(begun) == [3, 3, 4, 4]


@pytest.mark.parametrize("text", [LOST_COUNT, "another"])
def test_run__other_errors_of_the_system_end_it(text):
    begun = []

    def task(item):
        begun.append(item)
        raise SystemError(text)

    with pytest.raises(SystemError, match=text[:7]):
        Threads(2).run(task, [3], lambda *_: None)
    assert len(begun) == 1 + (text == LOST_COUNT)
