import gc
import mmap
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.base import memory
from eigenscape.base.memory import (
    ROW_TILE,
    anonymous_bytes,
    bound_heaps,
    format_bytes,
    format_excess,
    heap_bytes,
    parse_bytes,
    release,
    rows_within,
    watch,
)

MIB = 2**20


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2GiB", 2 * 2**30), ("2gib", 2 * 2**30), ("500 MB", 500_000_000), ("4g", 4 * 10**9),
        ("1.5 kB", 1500), (".5MiB", 2**19), ("12", 12), (" 7 B ", 7), ("1TiB", 2**40), ("3Ki", 3072),
    ],
)  # fmt: skip
def test_parse_bytes__units(text, expected):
    assert parse_bytes(text) == expected


@pytest.mark.parametrize(
    "text", ["", "GiB", "2 XB", "-2GiB", "2GiB more", "1e9", "two", "i", "5iB"]
)
def test_parse_bytes__refuses(text):
    with pytest.raises(ValueError, match='such as "4GiB"'):
        parse_bytes(text)


@pytest.mark.parametrize("count", [0, 1, 1023, 1024, 2**20, 3 * 2**30, 5 * 2**40, 2**60])
def test_format_bytes__reads_back(count):
    assert parse_bytes(format_bytes(count)) == pytest.approx(count, rel=0.05)


@given(limit=st.integers(2**26, 2**45), more=st.integers(1, 2**45))
def test_format_excess__never_reads_as_two_equal_numbers(limit, more):
    count, allowed = format_excess(limit + more, limit)
    assert count != allowed
    assert parse_bytes(count) > parse_bytes(allowed)
    assert parse_bytes(count) == pytest.approx(limit + more, rel=0.05)


def test_rows_within__whole_tiles():
    assert rows_within(0, 100) == ROW_TILE
    assert rows_within(10 * ROW_TILE * 100 + 5, 100) == 10 * ROW_TILE
    assert rows_within(10**15, 1) == 2**20
    assert rows_within(10**15, 1, most=3 * ROW_TILE + 1) == 3 * ROW_TILE
    assert rows_within(10**6, 0) % ROW_TILE == 0


def test_anonymous_bytes__leaves_mapped_files_out(tmp_path):
    (tmp_path / "file").write_bytes(bytes(64 * MIB))
    release()
    before = anonymous_bytes()
    mapped = np.memmap(tmp_path / "file", np.uint8, "r")
    assert mapped.sum() == 0
    assert anonymous_bytes() - before < 16 * MIB
    held = mmap.mmap(-1, 64 * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    held.write(b"\1" * (64 * MIB))
    assert anonymous_bytes() - before > 48 * MIB
    held.close()


@given(limit=st.integers(0, 2**45), tasks=st.integers(1, 64))
def test_heap_bytes__a_small_share_of_the_limit(limit, tasks):
    kept = heap_bytes(limit, tasks)
    assert 4 * MIB <= kept <= 16 * MIB
    assert kept == 4 * MIB or 64 * tasks * kept <= limit
    assert kept == 16 * MIB or 64 * tasks * (kept + 1) > limit


def test_bound_heaps__heaps_of_threads_keep_little():
    bound_heaps(0, 4)
    assert heap_bytes(0, 4) == 4 * MIB
    # What teaches glibc to keep more, where it may learn.
    del [np.ones(31 * MIB, np.uint8)][:]
    release()
    before, barrier = anonymous_bytes(), threading.Barrier(4)

    def work(_):
        # Larger than what stays in a heap: where smaller ones lie, others can hold them in place.
        held = [np.ones(6 * MIB, np.uint8) for _ in range(4)]
        # At the same time, so that each thread has a heap of its own.
        barrier.wait(30)
        return len(held)

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(work, range(4))) == 16
    # They held 96 MiB.
    assert anonymous_bytes() - before < 24 * MIB


def test_watch__sees_what_was_freed_before_its_end():
    # What earlier tests left would be freed in between.
    release()
    before = anonymous_bytes()
    with watch() as outer:
        with watch() as inner:
            pass
        held = np.ones(64 * MIB, np.uint8)
        with watch() as late:
            held[0] = 2
        del held
    assert late.bytes - before > 48 * MIB
    assert outer.bytes >= late.bytes
    assert inner.bytes < late.bytes


def test_watch__thread_ends_and_starts_again():
    for _ in range(2):
        with watch() as peak:
            names = [thread.name for thread in threading.enumerate()]
            assert names.count("memory-peak") == 1
        assert peak.bytes > 0
        for thread in threading.enumerate():
            if thread.name == "memory-peak":
                thread.join(5)
                assert not thread.is_alive()


def test_collected_quickly__ends_with_the_last_one(monkeypatch):
    """Runs are nested in studies and batches, and threads may begin and end in any order."""
    monkeypatch.setattr(memory, "_frozen", memory._Frozen())
    calls, count = [], [0]
    monkeypatch.setattr(gc, "get_freeze_count", lambda: count[0])
    for name in ("collect", "freeze", "unfreeze"):
        monkeypatch.setattr(gc, name, lambda name=name: calls.append(name))
    first, second = memory.collected_quickly(), memory.collected_quickly()
    first.__enter__()
    count[0] = 5
    second.__enter__()
    first.__exit__(None, None, None)
    assert calls == ["collect", "freeze"] * 2
    second.__exit__(None, None, None)
    assert calls[-1] == "unfreeze"
    # What somebody else has frozen stays so.
    with memory.collected_quickly():
        pass
    assert calls[-1] == "freeze"
