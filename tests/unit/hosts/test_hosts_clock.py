"""The offset of a clock: the truth is inside the bound, however the time on the way is shared."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.hosts.clock import CLOCKS, ECHOES_MIN, Echo, Stamps, answered, apart, asked, offset_of

NS = st.integers(0, 10**9)
WAYS = st.lists(st.tuples(NS, NS, NS, st.booleans()), min_size=1, max_size=40)  # there, back, thinking, asked here


def echo(start, way, offset):
    """An echo whose answerer's clock is ``offset`` ahead of the asker's."""
    there, back, thinking, asked_here = way
    received = start + there + offset
    answered_at = received + thinking
    return Echo(start, received, answered_at, answered_at - offset + back, asked_here)


def echoes(ways, offset, drift=0.0):
    """Echoes one after the other; the clock there gains ``drift`` of its time on ours."""
    found, now = [], 10**15
    for way in ways:
        truth = offset + round(drift * (now - 10**15))
        found.append(echo(now, way, truth if way[3] else -truth))
        now += sum(way[:3])
    return found, now - 10**15


@given(WAYS, st.integers(-(10**18), 10**18))
def test_the_truth_is_inside_the_bound_whatever_the_way_takes(ways, offset):
    made, _ = echoes(ways, offset)
    found = offset_of(made)
    assert abs(found.offset_ns - offset) <= found.bound_ns
    assert found.round_trip_ns_min == min(there + back for there, back, _, _ in ways)
    assert found.bound_ns == (found.round_trip_ns_min + 1) // 2
    assert found.round_trip_ns_min <= found.round_trip_ns_median
    assert found.echoes == len(ways)


@given(WAYS, WAYS, st.integers(-(10**15), 10**15), st.integers(-(10**15), 10**15))
def test_two_hosts_beside_each_other_are_known_to_the_sum_of_both_bounds(ways, others, one, other):
    found = apart(offset_of(echoes(ways, one)[0]), offset_of(echoes(others, other)[0]))
    assert abs(found.offset_ns - (one - other)) <= found.bound_ns


@given(WAYS, st.integers(-(10**15), 10**15))
def test_it_is_exact_where_both_directions_take_the_same(ways, offset):
    made, _ = echoes([(there, there, thinking, here) for there, _, thinking, here in ways], offset)
    assert offset_of(made).offset_ns == offset


@given(st.integers(1, 10**7), st.floats(0, 1), st.integers(-(10**12), 10**12), st.booleans())
def test_an_asymmetry_shows_as_half_of_it_and_no_more(round_trip, share, offset, asked_here):
    there = round(round_trip * share)
    made, _ = echoes([(there, round_trip - there, 1000, asked_here)] * ECHOES_MIN, offset)
    found = offset_of(made)
    doubled = 2 * there - round_trip if asked_here else round_trip - 2 * there
    assert found.offset_ns - offset == doubled // 2
    assert abs(doubled // 2) <= found.bound_ns


@given(WAYS, st.integers(-(10**12), 10**12), st.floats(-2e-4, 2e-4))
def test_a_clock_that_drifts_adds_no_more_than_it_drifts_meanwhile(ways, offset, drift):
    made, span = echoes(ways, offset, drift)
    assert abs(offset_of(made).offset_ns - offset) <= offset_of(made).bound_ns + abs(drift) * span + 1


def test_no_echo_and_one_from_the_future():
    with pytest.raises(ValueError, match="there is no echo"):
        offset_of([])
    with pytest.raises(ValueError, match="a clock was set meanwhile"):
        offset_of([Echo(10, 5, 6, 10, asked_here=True)])


@given(st.integers(-(10**15), 10**15), st.integers(-(10**15), 10**15), st.booleans())
def test_each_clock_has_its_own_offset(monotonic, realtime, asked_here):
    """Our clocks read 0 and 5e17 at the same moment; theirs are ahead by as much as is drawn."""
    sign = 1 if asked_here else -1
    times = (10**9, 10**9 + 300, 10**9 + 400, 10**9 + 900)
    ahead = (0, 1, 1, 0)
    by_one = tuple(time + sign * monotonic * one for time, one in zip(times, ahead, strict=True))
    by_other = tuple(5 * 10**17 + time + sign * realtime * one for time, one in zip(times, ahead, strict=True))
    stamps = Stamps(by_one, by_other)
    for clock, truth in zip(CLOCKS, (monotonic, realtime), strict=True):
        found = offset_of([stamps.echo(clock, asked_here=asked_here)])
        assert abs(found.offset_ns - truth) <= found.bound_ns == 400


def test_echoes_through_pipes_of_one_machine_are_of_one_clock():
    """Both ends in this process, a question after the other: the offset is 0, whoever asks."""
    there, back = os.pipe(), os.pipe()
    with os.fdopen(there[0], "rb") as questions, os.fdopen(back[0], "rb") as answers:

        def write(content):
            os.write(there[1], content)
            answered(questions.readline, lambda said: os.write(back[1], said), 1)

        stamps = asked(answers.readline, write, ECHOES_MIN)
    for handle in (there[1], back[1]):
        os.close(handle)
    for clock in CLOCKS:
        found = offset_of([one.echo(clock, asked_here=True) for one in stamps])
        assert abs(found.offset_ns) <= found.bound_ns
