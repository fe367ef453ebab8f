"""What `connect` brings up and takes down."""

import logging
from contextlib import contextmanager

import distributed
import pytest

from eigenscape.clusters import ClusterOptions, connect
from eigenscape.clusters.start import _has_page, dashboard_of
from eigenscape.clusters.workers.client import place_of
from eigenscape.clusters.workers.dask import print_nothing

pytestmark = pytest.mark.slow

LOCAL = ClusterOptions(kind="local", workers=1)


def levels():
    log = logging.getLogger("distributed")
    return log.level, [handler.level for handler in log.handlers]


@contextmanager
def logging_somewhere():
    log, handler = logging.getLogger(distributed.__name__), logging.StreamHandler()
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def test_connect__the_scheduler_logs_nothing_among_our_lines():
    with logging_somewhere():
        before = levels()
        with connect(LOCAL, None, 2**30):
            assert set(levels()[1]) == {logging.CRITICAL}
        # Those who use distributed beside find it as it was.
        assert levels() == before


def test_connect__a_client_of_the_user_logs_as_before():
    with LOCAL.open_client(None, 2**30, print_nothing) as (client, _), logging_somewhere():
        before = levels()
        with connect(place_of(None, client), None, 2**30):
            assert levels() == before


def test_open_client__workers_log_nothing_among_our_lines():
    with LOCAL.open_client(None, 2**30, print_nothing) as (client, _):
        (level,) = client.run(logging.getLogger("distributed").getEffectiveLevel).values()
    assert level == logging.CRITICAL


@pytest.mark.parametrize("dashboard", [True, False])
def test_dashboard_of__a_scheduler_that_others_started(dashboard):
    with (
        distributed.LocalCluster(
            n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": dashboard}, silence_logs=50,
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):  # fmt: skip
        found = dashboard_of(place_of(None, client), client)
        assert found == (client.dashboard_link if dashboard else "")
        port = client.scheduler_info()["services"]["dashboard"]
    # Out of reach from here is no reason to leave it out.
    assert _has_page(f"http://127.0.0.1:{port}/status")
