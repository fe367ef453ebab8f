import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from eigenscape.clusters.workers.executors import Threads, one_blas_thread

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


def test_one_blas_thread__holds_until_the_last_block_ends():
    def threads():
        return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}

    np.ones((2, 2)) @ np.ones((2, 2))
    with threadpool_limits(2, user_api="blas"):
        assert threads() == {2}
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert threads() == {1}
        second.__exit__(None, None, None)
        assert threads() == {2}
