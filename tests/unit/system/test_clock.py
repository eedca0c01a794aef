"""The offset of a clock: the truth is inside the bound, however the time on the way is shared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.hosts.ssh import offsets
from dbdyno.system.clock import Echo, offset_between, offset_of, offsets_of
from tests.unit.hosts.agents import agent

NS = st.integers(0, 10**9)
WAYS = st.lists(st.tuples(NS, NS, NS), min_size=1, max_size=40)  # there, back, thinking


def echo(start, way, offset):
    """An echo whose answerer's clock is ``offset`` ahead of the asker's."""
    there, back, thinking = way
    received = start + there + offset
    answered_at = received + thinking
    return Echo(start, received, answered_at, answered_at - offset + back)


def echoes(ways, offset, drift=0.0):
    """Echoes one after the other; the clock there gains ``drift`` of its time on ours."""
    found, now = [], 10**15
    for way in ways:
        truth = offset + round(drift * (now - 10**15))
        found.append(echo(now, way, truth))
        now += sum(way)
    return found, now - 10**15


@given(WAYS, st.integers(-(10**18), 10**18))
def test_the_truth_is_inside_the_bound_whatever_the_way_takes(ways, offset):
    made, _ = echoes(ways, offset)
    found = offset_of(made)
    assert abs(found.offset_ns - offset) <= found.bound_ns
    assert found.round_trip_ns_min == min(there + back for there, back, _ in ways)
    assert found.bound_ns == (found.round_trip_ns_min + 1) // 2
    assert found.round_trip_ns_min <= found.round_trip_ns_median
    assert found.echoes == len(ways)


@given(WAYS, WAYS, st.integers(-(10**15), 10**15), st.integers(-(10**15), 10**15))
def test_two_hosts_beside_each_other_are_known_to_the_sum_of_both_bounds(ways, others, one, other):
    found = offset_between(offset_of(echoes(ways, one)[0]), offset_of(echoes(others, other)[0]))
    assert abs(found.offset_ns - (one - other)) <= found.bound_ns


@given(WAYS, st.integers(-(10**15), 10**15))
def test_it_is_exact_where_both_directions_take_the_same(ways, offset):
    made, _ = echoes([(there, there, thinking) for there, _, thinking in ways], offset)
    assert offset_of(made).offset_ns == offset


@given(st.integers(1, 10**7), st.floats(0, 1), st.integers(-(10**12), 10**12))
def test_an_asymmetry_shows_as_half_of_it_and_no_more(round_trip, share, offset):
    there = round(round_trip * share)
    made, _ = echoes([(there, round_trip - there, 1000)] * 128, offset)
    found = offset_of(made)
    doubled = 2 * there - round_trip
    assert found.offset_ns - offset == doubled // 2
    assert abs(doubled // 2) <= found.bound_ns


@given(WAYS, st.integers(-(10**12), 10**12), st.floats(-2e-4, 2e-4))
def test_a_clock_that_drifts_adds_no_more_than_it_drifts_meanwhile(ways, offset, drift):
    made, span = echoes(ways, offset, drift)
    assert abs(offset_of(made).offset_ns - offset) <= offset_of(made).bound_ns + abs(drift) * span + 1


def test_no_echo_and_one_from_the_future():
    with pytest.raises(ValueError, match="no echo arrived"):
        offset_of([])
    with pytest.raises(ValueError, match="a clock was set meanwhile"):
        offset_of([Echo(10, 5, 6, 10)])


@given(st.integers(-(10**15), 10**15), st.integers(-(10**15), 10**15))
def test_each_clock_has_its_own_offset(monotonic, realtime):
    """Our clocks read 1e16 and 5e17 at the same moment; theirs are ahead by as much as is drawn."""
    sent, received, answered, back = (
        (10**16 + time + ahead * monotonic, 5 * 10**17 + time + ahead * realtime)
        for time, ahead in ((0, 0), (300, 1), (400, 1), (900, 0))
    )
    found = offsets_of([Echo.of(sent, received, answered, back)])
    for clock, truth in {"monotonic": monotonic, "realtime": realtime}.items():
        assert abs(found[clock].offset_ns - truth) <= found[clock].bound_ns == 400


def test_an_agent_on_this_machine_is_of_one_clock(tmp_path):
    with agent(tmp_path, "a") as channel:
        for offset in offsets(channel).values():
            assert abs(offset.offset_ns) <= offset.bound_ns
            assert offset.echoes == 128
