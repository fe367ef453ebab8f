"""What `connect` brings up and takes down."""

import logging

import pytest

from eigenscape.clusters import ClusterOptions, connect
from eigenscape.clusters.workers.dask import print_nothing

pytestmark = pytest.mark.slow

LOCAL = ClusterOptions(kind="local", workers=1)


def levels():
    log = logging.getLogger("distributed")
    return log.level, [handler.level for handler in log.handlers]


def test_connect__the_scheduler_logs_nothing_among_our_lines():
    import distributed

    log, handler = logging.getLogger(distributed.__name__), logging.StreamHandler()
    log.addHandler(handler)
    before = levels()
    try:
        with connect(LOCAL, None, 2**30):
            assert set(levels()[1]) == {logging.CRITICAL}
        # Those who use distributed beside find it as it was.
        assert levels() == before
    finally:
        log.removeHandler(handler)


def test_open_client__workers_log_nothing_among_our_lines():
    with LOCAL.open_client(None, 2**30, print_nothing) as (client, _):
        (level,) = client.run(logging.getLogger("distributed").getEffectiveLevel).values()
    assert level == logging.CRITICAL
