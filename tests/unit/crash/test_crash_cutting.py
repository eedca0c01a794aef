"""Cuts beside a load: asked for at their time; one that was not taken is never silent."""

import time
from collections import Counter
from dataclasses import dataclass, field

import pytest

from dbdyno.crash.faults import RANGES_MAX, cutting
from dbdyno.crash.trial_cuts import NTH_MAX, STARTING_SECONDS, PlannedCut, of, schedule
from dbdyno.errors import TrialError
from dbdyno.study.schema import CrashSection
from tests.support import wait_for
from tests.unit.crash.support import taken


@dataclass
class Disk:
    """A disk that takes what it is asked for, but for what ``refuses`` names."""

    refuses: frozenset = frozenset()
    asked: list = field(default_factory=list)
    states: list = field(default_factory=list)

    def arm_cuts(self, hold_ns):
        self.asked.append(("arm", hold_ns))

    def disarm_cuts(self):
        self.asked.append(("disarm",))

    def cut(self, name):
        self.asked.append(("cut", name, time.monotonic()))
        if name in self.refuses:
            raise TrialError("emulated disk, cut: no memory")
        self.states.append(taken(name))

    def cut_on(self, name, on, nth, ranges=(), seed=0):
        self.asked.append(("cut_on", name, on, nth, list(ranges), seed))

    def cuts(self):
        return self.states


def planned(name, when="uniform", after_s=0.0, **more):
    return PlannedCut(name, when, "random-4096", 9, after_s, **more)


def cut_beside(disk, cuts, *, requests=None, warmup_s=0.0, ranges=()):
    """Take cuts beside a load that ends when the disk has got so many requests for cuts, as a rule one for each."""
    with cutting(disk, cuts, warmup_s=warmup_s, hold_s=0.1, page_ranges=lambda: ranges) as found:
        wait_for(lambda: len(disk.asked) - 1 >= (len(cuts) if requests is None else requests))
    return found


def test_cuts_are_taken_at_their_time_and_the_disk_is_disarmed():
    disk, began = Disk(), time.monotonic()
    found = cut_beside(disk, [planned("c1", after_s=0.02), planned("c2", after_s=0.06)], warmup_s=0.02)
    (_, hold_ns), (_, first, at_1), (_, second, at_2), last = disk.asked
    assert (hold_ns, first, second, last) == (100_000_000, "c1", "c2", ("disarm",))
    assert at_1 - began >= 0.04
    assert at_2 - began >= 0.08
    assert (set(found.cuts), found.refused) == ({"c1", "c2"}, {})


def test_a_cut_that_the_load_did_not_last_for_is_named_and_not_taken():
    disk = Disk()
    found = cut_beside(disk, [planned("c1"), planned("c2", after_s=36_000.0)], requests=1)
    assert set(found.cuts) == {"c1"}
    assert found.refused == {"c2": "the load had ended by then"}


def test_a_cut_that_the_disk_refuses_is_named_with_its_words_and_the_next_is_taken():
    found = cut_beside(Disk(refuses=frozenset({"c1"})), [planned("c1"), planned("c2", after_s=0.01)])
    assert set(found.cuts) == {"c2"}
    assert found.refused == {"c1": "emulated disk, cut: no memory"}


def test_a_flush_or_a_page_write_is_waited_for_by_the_disk():
    disk = Disk()
    ranges = [(place * 8192, place * 8192 + 4096) for place in range(RANGES_MAX)] + [(1 << 40, (1 << 40) + 9999)]
    cuts = [planned("c1", "flush"), planned("c2", "page-write", nth=5)]
    found = cut_beside(disk, cuts, ranges=ranges)
    flush, write = (one for one in disk.asked if one[0] == "cut_on")
    assert flush[1:4] == ("c1", "flush", 1)
    assert write[1:4] == ("c2", "write", 5)
    assert len(write[4]) == RANGES_MAX
    assert write[4][-1] == (1 << 40, (1 << 40) + 9999)  # the longest stay, in the order of the device
    assert write[4] == sorted(write[4])
    assert found.refused == {
        "c1": "the disk got no FLUSH from then on",
        "c2": "too few pages were written from then on",
    }


def test_what_the_load_asked_for_is_known_by_its_own_names():
    disk = Disk(states=[taken("ack-1"), taken("ddl-1")])
    cuts = [planned("c1", "ack", number=1), planned("c2", "ddl", number=1), planned("c3", "ack", number=2)]
    found = cut_beside(disk, cuts, requests=0)
    assert {id_: one.name for id_, one in found.cuts.items()} == {"c1": "ack-1", "c2": "ddl-1"}
    assert found.refused == {"c3": "no acknowledgement was read from then on"}


def test_a_load_that_fails_leaves_no_thread_and_a_disarmed_disk():
    disk = Disk()
    cuts = [planned("c1", after_s=60.0)]
    with (
        pytest.raises(TrialError, match="server gone"),
        cutting(disk, cuts, warmup_s=0.0, hold_s=0.0, page_ranges=list),
    ):
        raise TrialError("server gone")
    assert disk.asked[-1] == ("disarm",)


# Which cuts a trial takes: seeded, uniform over the measured window, in strata that rotate.


def section(**fields):
    return CrashSection(**{"cuts": 300, "cuts_per_run": 10, **fields})


def test_the_same_seed_gives_the_same_cuts_and_another_gives_others():
    first = schedule(section(), 7, 1, 10.0)
    assert first == schedule(section(), 7, 1, 10.0)
    other = schedule(section(), 8, 1, 10.0)
    assert not {cut.after_s for cut in first} & {cut.after_s for cut in other}
    assert not {cut.seed for cut in first} & {cut.seed for cut in other}


def test_moments_are_uniform_over_the_window_and_out_of_phase_with_seconds():
    moments = [cut.after_s for seed in range(300) for cut in schedule(section(), seed, 1, 5.3)]
    assert STARTING_SECONDS <= min(moments) < 0.35
    assert 5.25 < max(moments) <= 5.3
    for values, width in ((moments, 0.5), ([moment % 1 for moment in moments if 1 <= moment < 5], 0.1)):
        low = min(values)
        bins = Counter(int((value - low) / width) for value in values)
        assert all(count == pytest.approx(len(values) / 10, rel=0.25) for count in list(bins.values())[:10])


def test_cuts_are_in_the_order_of_time_and_those_of_a_kind_are_numbered_so():
    cuts = schedule(section(when=["ack", "ddl", "uniform"], cuts_per_run=30), 1, 1, 10.0)
    assert [cut.after_s for cut in cuts] == sorted(cut.after_s for cut in cuts)
    for when in ("ack", "ddl"):
        assert [cut.number for cut in of(cuts, when)] == list(range(1, 11))
    assert len({cut.id for cut in cuts}) == 30


def test_blocks_rotate_through_all_kinds_of_cut():
    given = section(when=["uniform", "flush"], survivors=["none", "prefix"], cuts_per_run=3)
    met = Counter((cut.when, cut.survivors) for block in range(1, 5) for cut in schedule(given, block, block, 5.0))
    assert set(met.values()) == {3}
    assert len(met) == 4


def test_a_killed_server_has_no_survivors_to_be_drawn():
    (cut,) = schedule(CrashSection(mode="kill"), 1, 1, 5.0)
    assert (cut.when, cut.survivors) == ("uniform", None)


def test_which_write_is_cut_varies():
    assert {cut.nth for seed in range(50) for cut in schedule(section(), seed, 1, 5.0)} == set(range(1, NTH_MAX + 1))
