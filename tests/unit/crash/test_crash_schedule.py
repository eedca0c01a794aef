"""Which cuts a trial takes: seeded, uniform over the measured window, in strata that rotate."""

from collections import Counter

import pytest

from dbdyno.crash.trial_cuts import NTH_MAX, STARTING_SECONDS, of, schedule
from dbdyno.study.schema import CrashSection


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
