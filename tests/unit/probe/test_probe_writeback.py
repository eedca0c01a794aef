"""The page cache's columns, worked out by hand from two texts of /proc/vmstat."""

import pytest

from dbdyno.probe.catalogue import host_sources
from dbdyno.probe.host import PAGE_MB, WritebackSource
from scripts.docs import ROOT

BEFORE = b"""nr_dirty 100
nr_writeback 7
nr_writeback_temp 9
nr_dirtied 1000
nr_written 500
nr_dirty_threshold 4000
nr_dirty_background_threshold 2000
allocstall_dma32 1
allocstall_normal 2
pgmajfault 40
"""
AFTER = BEFORE.replace(b"nr_dirty 100", b"nr_dirty 300").replace(b"nr_written 500", b"nr_written 900")
AFTER = AFTER.replace(b"allocstall_normal 2", b"allocstall_normal 8").replace(b"pgmajfault 40", b"pgmajfault 44")


@pytest.fixture
def source():
    opened = WritebackSource()
    yield opened
    opened.close()


def test_pages_are_megabytes_and_events_are_rates(source):
    columns = source.interval(source.counters([BEFORE]), source.counters([AFTER]), 2.0)
    assert columns == pytest.approx(
        {
            "nr_dirty_MB": 300 * PAGE_MB,
            "nr_writeback_MB": 7 * PAGE_MB,
            "nr_dirty_background_threshold_MB": 2000 * PAGE_MB,
            "nr_dirty_threshold_MB": 4000 * PAGE_MB,
            "nr_dirtied_MB/s": 0.0,
            "nr_written_MB/s": 200 * PAGE_MB,
            "pgmajfault/s": 2.0,
            "allocstall/s": 3.0,
        }
    )


def test_it_is_found_and_every_column_of_this_kernel_is_documented(source):
    assert WritebackSource in host_sources()
    before = source.sample()
    page = (ROOT / "docs/probes.md").read_text(encoding="utf-8")
    assert [name for name in source.interval(before, source.sample(), 1.0) if f"`{name}`" not in page] == []
