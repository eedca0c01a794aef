"""The thread that drives a probe: 10 Hz, without drift, through errors, and its own cost measured."""

import time
from itertools import pairwise

import pytest

from dbdyno.clock import now_ns
from dbdyno.probe.sampler import INTERVAL_NS, Probe


class Counter:
    """A source that counts its samples; ``at`` says what some of them do instead."""

    name = "counter"

    def __init__(self, at=None):
        self.samples, self.closed, self.at = 0, 0, at or {}

    def sample(self):
        self.samples += 1
        spun = time.thread_time()
        while time.thread_time() - spun < 0.001:
            pass
        self.at.get(self.samples, lambda: None)()
        return {"value": float(self.samples)}

    def interval(self, before, after, seconds):
        return {"step": after["value"] - before["value"], "seconds": seconds}

    def close(self):
        self.closed += 1


def watched(source, seconds):
    probe = Probe(source)
    began = now_ns()
    probe.start()
    time.sleep(seconds)
    series = probe.stop()
    assert source.closed == 1
    assert all(began < one < other <= now_ns() for one, other in pairwise(series.t_ns))
    assert all(len(column) == len(series.t_ns) for column in series.columns.values())
    return series


def gone():
    raise OSError("the device is gone")


def test_ten_samples_a_second_and_what_they_cost():
    source = Counter()
    series = watched(source, 1.05)
    assert 7 <= len(series.t_ns) <= 11
    assert series.columns["step"] == [1.0] * len(series.t_ns)
    for (one, other), seconds in zip(pairwise(series.t_ns), series.columns["seconds"][1:], strict=True):
        assert seconds == pytest.approx((other - one) / 1e9)
    assert 0.001 * source.samples <= series.cpu_seconds <= 0.5
    assert series.missed == 0
    assert series.began == (pytest.approx(series.t_ns[0], abs=2 * INTERVAL_NS), {"step": 0.0, "seconds": 1.0})
    assert series.began[0] < series.t_ns[0]


def test_what_can_not_be_sampled_is_counted_and_sampling_goes_on():
    source = Counter({2: gone, 3: gone})
    series = watched(source, 0.85)
    assert series.missed == 2
    # Nothing is computed across the gap: the first interval is from the fourth sample to the fifth.
    assert series.columns["step"] == [1.0] * (source.samples - 4)
    assert len(series.t_ns) >= 2


def test_a_source_that_always_fails_gives_an_empty_series():
    series = watched(Counter(dict.fromkeys(range(1, 100), gone)), 0.25)
    assert (series.t_ns, series.columns) == ([], {})
    assert series.missed >= 2


def test_after_a_slow_sample_the_beat_is_kept_and_nothing_is_made_up_for():
    source = Counter({3: lambda: time.sleep(0.35)})
    series = watched(source, 0.95)
    assert max(series.columns["seconds"]) >= 0.35
    assert len(series.t_ns) <= 7  # 10 without the slow one
    assert all(seconds >= 0.03 for seconds in series.columns["seconds"])
    assert INTERVAL_NS == 100_000_000


def test_stopped_at_once():
    probe = Probe(Counter())
    probe.start()
    began = time.monotonic()
    assert probe.stop().t_ns == []
    assert time.monotonic() - began < 2
