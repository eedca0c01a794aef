"""The thread that drives a probe: 10 Hz, without drift, through errors, and its own cost measured."""

import threading
import time
from itertools import pairwise

import pytest

from dbdyno.probe.sampler import INTERVAL_NS, ProbeSource, Sampler
from dbdyno.system.interrupt import now_ns
from tests.support import wait_for


class Counter(ProbeSource):
    """A source that counts its samples; ``at`` says what some of them do instead."""

    def __init__(self, at=None, name="counter"):
        self.samples, self.closed, self.at, self.name = 0, 0, at or {}, name

    def read(self):
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


def watched(source, samples):
    """The series of a source that is sampled so often."""
    sampler = Sampler([source])
    began = now_ns()
    sampler.start()
    wait_for(lambda: source.samples >= samples)
    series = sampler.stop()[source.name]
    assert source.closed == 1
    assert all(began < one < other <= now_ns() for one, other in pairwise(series.t_ns))
    assert all(len(column) == len(series.t_ns) for column in series.columns.values())
    return series


def gone():
    raise OSError("the device is gone")


class Clock:
    """The sampler's clock, and its event of the end, which comes at a moment of that clock."""

    def __init__(self, monkeypatch, end_s):
        self.at_ns, self.end_ns = 0, round(end_s * 1e9)
        monkeypatch.setattr("dbdyno.probe.sampler.now_ns", lambda: self.at_ns)

    def wait(self, seconds):
        self.at_ns = min(self.at_ns + round(seconds * 1e9), self.end_ns)
        return self.at_ns >= self.end_ns

    def set(self):
        pass

    def watch(self, source):
        watching = Sampler([source])
        watching._end = self
        watching.start()
        return watching.stop()[source.name]


def test_ten_samples_a_second_and_what_they_cost(monkeypatch):
    source = Counter()
    series = Clock(monkeypatch, 1.04).watch(source)
    assert series.t_ns == [*range(INTERVAL_NS, 11 * INTERVAL_NS, INTERVAL_NS), 1_040_000_000]
    assert series.columns == {"step": [1.0] * 11, "seconds": pytest.approx([0.1] * 10 + [0.04])}
    assert 0.001 * source.samples <= series.cpu_seconds <= 0.5
    assert series.missed == 0
    assert series.began == (0, {"step": 0.0, "seconds": 1.0})


def test_what_is_left_at_the_end_is_no_interval_of_its_own_if_it_is_too_short(monkeypatch):
    assert Clock(monkeypatch, 0.32).watch(Counter()).t_ns == [INTERVAL_NS, 2 * INTERVAL_NS, 3 * INTERVAL_NS]


def test_what_can_not_be_sampled_is_counted_and_sampling_goes_on():
    source = Counter({2: gone, 3: gone})
    series = watched(source, 8)
    assert series.missed == 2
    # Nothing is computed across the gap: the first interval is from the fourth sample to the fifth.
    assert series.columns["step"] == [1.0] * (source.samples - 4)
    assert len(series.t_ns) >= 2


def test_a_source_that_always_fails_gives_an_empty_series():
    series = watched(Counter(dict.fromkeys(range(1, 100), gone)), 3)
    assert (series.t_ns, series.columns) == ([], {})
    assert series.missed >= 2


@pytest.mark.parametrize(("slow_ms", "next_ms"), [(350, 600), (369, 600), (371, 700)])
def test_after_a_slow_sample_the_beat_is_kept_and_nothing_is_made_up_for(monkeypatch, slow_ms, next_ms):
    clock = Clock(monkeypatch, 0.8)

    def slow():
        clock.at_ns += slow_ms * 1_000_000

    series = clock.watch(Counter({3: slow}))
    assert series.t_ns == [ms * 1_000_000 for ms in (100, 200 + slow_ms, *range(next_ms, 801, 100))]
    assert INTERVAL_NS == 100_000_000


def test_stopped_at_once():
    sampler = Sampler([Counter()])
    sampler.start()
    assert sampler.stop()["counter"].t_ns == []


def test_many_sources_share_one_thread_and_each_has_its_own_cost():
    light, heavy = Counter(), Counter(name="heavy")
    heavy.at = dict.fromkeys(range(1, 100), lambda: [Counter.read(Counter()) for _ in range(3)])
    heavy.outside_seconds = lambda: 0.25
    sampler = Sampler([light, heavy])
    before = threading.active_count()
    sampler.start()
    assert threading.active_count() == before + 1
    wait_for(lambda: light.samples >= 5)
    series = sampler.stop()
    assert set(series) == {"counter", "heavy"}
    assert len(series["counter"].t_ns) == len(series["heavy"].t_ns) >= 3
    assert series["heavy"].cpu_seconds > 2 * series["counter"].cpu_seconds > 0
    assert (series["counter"].outside_seconds, series["heavy"].outside_seconds) == (0.0, 0.25)


def test_one_source_that_fails_takes_no_sample_from_another():
    broken, sound = Counter(dict.fromkeys(range(1, 100), gone), "broken"), Counter()
    sampler = Sampler([broken, sound])
    sampler.start()
    wait_for(lambda: sound.samples >= 3)
    series = sampler.stop()
    assert series["broken"].missed == sound.samples >= 3
    assert series["counter"].missed == 0
