"""The JSON of every benchmark, and what each judges or leaves to the host."""

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

import benches
from benches.awake import figure, ratio_of_rates, ratio_of_spreads
from benches.figures import Figure, at_least, at_most, within, write
from benches.guest import DRIVES, figures, milliseconds

ROOT = Path(__file__).parents[3]


def test_figures_are_written_beside_their_limits_and_details_beside_them(tmp_path):
    figures = [
        at_most("p99, us", 49.0, 50),
        at_least("share, %", 59.0, 60),
        at_most("first paint, ms", None, 150),
        within("rate, MB/s", math.nan, 1, 2, None),
        Figure("requests", 7.0),
    ]
    write(tmp_path / "new" / "bench.json", figures, {"seed": 1})
    assert json.loads((tmp_path / "new" / "bench.json").read_text(encoding="utf-8")) == [
        {"name": "p99, us", "value": 49.0, "limit": 50, "met": True},
        {"name": "share, %", "value": 59.0, "limit": 60, "met": False},
        {"name": "first paint, ms", "value": None, "limit": 150, "met": None},
        {"name": "rate, MB/s", "value": None, "limit": [1, 2], "met": None},
        {"name": "requests", "value": 7.0, "limit": None, "met": None},
    ]
    assert json.loads((tmp_path / "new" / "bench-details.json").read_text(encoding="utf-8")) == {"seed": 1}


def test_every_benchmark_with_json_writes_it_so():
    benches = [*ROOT.glob("benches/**/*.py"), *ROOT.glob("crates/*/benches/*.py")]
    writing = {path.name: path.read_text(encoding="utf-8") for path in benches}
    writing = {name: text for name, text in writing.items() if '"--json"' in text}
    assert len(writing) >= 7
    assert [name for name, text in writing.items() if "benches.figures import" not in text] == []


# The spread of two series of trials, compared as the benchmark of awake processors does.


RATES = [100.0, 110.0, 95.0, 103.0, 99.0, 108.0]


def test_what_is_the_same_has_a_ratio_of_one():
    other = [100.0, 95.0, 108.0, 99.0, 110.0, 103.0]
    ratio, low, high = ratio_of_spreads(RATES, other)
    assert ratio == pytest.approx(1)
    assert low < 1 < high
    middle, slow, fast = ratio_of_rates(RATES, other)
    assert middle == pytest.approx(1)
    assert slow < 1 < fast


def test_logarithms_that_vary_half_as_much_have_half_the_spread():
    ratio, low, high = ratio_of_spreads(RATES, [math.sqrt(rate) for rate in reversed(RATES)])
    assert ratio == pytest.approx(0.5)
    assert low < 0.5 < high


def test_the_interval_holds_the_truth_as_often_as_it_says():
    """Blocks share half of their noise; the awake vary .7 times as much. 1,000 runs: 95 % within 3 standard errors."""
    random = np.random.default_rng(1)
    common, one, other = (random.normal(0, 0.02, (1000, 12)) for _ in range(3))
    halting, awake = np.exp(5 + common + one), np.exp(5 + 0.7 * (common + other))
    held = sum(
        low <= 0.7 <= high
        for _, low, high in (ratio_of_spreads(list(h), list(a)) for h, a in zip(halting, awake, strict=True))
    )
    assert 929 <= held <= 971


@pytest.mark.parametrize(
    ("interval", "met"),
    [((0.9, 0.6, 1.3), None), ((1.45, 0.85, 2.47), None), ((0.5, 0.3, 0.8), True), ((2.0, 1.2, 3.0), False)],
)
def test_the_interval_decides_and_not_its_middle(interval, met):
    found = figure({"load": "x", "spread_ratio": interval})
    assert (found.met, found.value, found.limit) == (met, interval[0], 1.0)


# What the benchmark of the emulated disk judges, and what it leaves to the host.


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


# What `make bench-guest` writes: device times are compared by drive, and the CPU's part is judged with KVM alone.


def trial(drive, job, kind, service_ns, latency_ms):
    return {
        "observed": {"device": {"model": drive}},
        "load": {"jobs": [job]},
        "device": {"service_ns": {kind: {"mean": service_ns}}},
        "metrics": {"latency_ms_mean": latency_ms},
    }


def trials(read_ms, fdatasync_ms):
    """Two blocks, whose mean is what is given."""
    found = []
    for drive, share in zip(DRIVES, (1.0, 0.1), strict=True):
        for block in (0.5, 1.5):
            found.append(trial(drive, "reads", "read", 1e6 * share * block * read_ms, 99.0))
            found.append(trial(drive, "syncs", "flush", 1e6 * share * block * 2.0, share * block * fdatasync_ms))
    return milliseconds(found)


@pytest.mark.parametrize(("has_kvm", "met"), [(True, True), (False, None)])
def test_a_slow_cpu_is_judged_only_where_it_is_real(has_kvm, met):
    by_name = {each.name: each for each in figures(trials(5.0, 25.0), trials(5.2, 33.0), has_kvm=has_kvm)}
    read = by_name["device time of a read of hdd-7200, guest/host"]
    assert (round(read.value, 3), read.limit, read.met) == (1.04, [0.95, 1.05], True)
    assert by_name["device time of a FLUSH of ssd-sata, guest/host"].met is met
    fdatasync = by_name["time of fdatasync on hdd-7200, guest/host"]
    assert (round(fdatasync.value, 2), fdatasync.limit, fdatasync.met) == (1.32, None, None)
    assert by_name["time of fdatasync, hdd-7200:ssd-sata, guest/host"].met is met


def test_a_drive_that_answers_at_other_times_is_not_met():
    found = figures(trials(5.0, 25.0), trials(5.5, 25.0), has_kvm=False)
    assert [each.met for each in found if "a read of" in each.name] == [False, False]
