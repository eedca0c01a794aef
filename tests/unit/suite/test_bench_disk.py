"""What the benchmark of the emulated disk judges, and what it leaves to the host."""

import sys
from pathlib import Path

import pytest

import benches

FOLDER = Path(benches.__path__[0]).parent / "crates/dbdyno-disk/benches"


@pytest.fixture
def rows(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delitem(sys.modules, "rows", raising=False)
    import rows  # type: ignore[import-not-found]

    yield rows
    sys.modules.pop("rows", None)


@pytest.mark.parametrize(("mean_us", "floor_us", "met"), [
    (4.0, 30.0, True), (-14.0, 30.0, False), (317.0, 731.0, False), (317.0, 1254.0, None), (4.0, 1254.0, None),
])  # fmt: skip
def test_only_a_floor_above_what_was_asked_for_leaves_a_mean_unjudged(rows, mean_us, floor_us, met):
    row = rows.left("asked", "1000 us asked", mean_us).beside_floor(floor_us, 1000)
    assert row.met is met
    assert f"floor {floor_us:.4g} us" in row.text()


@pytest.mark.parametrize(("idle", "floor_us", "met"), [(1.2, 30.0, False), (0.2, 30.0, None), (1.2, 1254.0, None)])
def test_lateness_needs_a_free_core_too(rows, idle, floor_us, met):
    row = rows.lateness("asked", "lateness p99", 90.0, idle).beside_floor(floor_us, 1000)
    assert row.met is met
    assert "processors idle" in row.note


def test_a_host_that_shows_no_starts_has_no_mean(rows):
    row = rows.left("asked", "1000 us asked", None).beside_floor(30.0, 1000)
    assert row.met is None
    assert "does not show when requests start" in row.note
