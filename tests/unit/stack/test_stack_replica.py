"""What a replica did of a load: how long commits waited for it, how late it was, and what makes the trial void."""

from types import SimpleNamespace

import pytest

from dbdyno.errors import TrialError
from dbdyno.servers.contract import ReplicaHealth, ReplicaPosition
from dbdyno.stack.layer import Replica
from dbdyno.stack.layers import replica as layer
from dbdyno.stack.layers.replica import caught_up

SECOND = 1_000_000_000
BEFORE = ReplicaHealth("", waited=10, waited_seconds=1.0, not_waited=2)


@pytest.fixture
def after(monkeypatch):
    """What comes of a load of a second whose replica has so many bytes left at each look, a second apart."""

    def caught(health, *left):
        at_s = iter(range(2, 10_000))
        monkeypatch.setattr(layer, "now_ns", lambda: next(at_s) * SECOND)
        monkeypatch.setattr(layer.time, "sleep", lambda _: None)
        positions = [ReplicaPosition(100.0, 100.0, 100.0 - bytes_, 0.0) for bytes_ in (*left, 0)]
        reader = SimpleNamespace(
            position=lambda: positions.pop(0) if positions[1:] else positions[0], close=lambda: None
        )
        replication = SimpleNamespace(reader=lambda: reader, health=lambda: health)
        endpoint = SimpleNamespace(process=SimpleNamespace(poll=lambda: None))
        return caught_up(Replica(endpoint, replication, BEFORE, "", lambda: None), (0, SECOND))

    return caught


def test_waits_are_those_of_the_load_alone(after):
    found = after(ReplicaHealth("", waited=14, waited_seconds=1.6, not_waited=2))
    assert found == {"replica_catch_up_ms": 1000.0, "replica_wait_ms_mean": pytest.approx(150.0)}


def test_one_that_nobody_waited_for_has_no_waits(after):
    assert after(BEFORE, 30, 10) == {"replica_catch_up_ms": 3000.0}


@pytest.mark.parametrize(
    ("health", "said"),
    [
        (ReplicaHealth("it has stopped"), "server.replica: it has stopped"),
        (ReplicaHealth("", not_waited=5), "server.replica: 3 commits did not wait"),
    ],
)
def test_a_replica_that_does_not_follow_makes_the_trial_void(after, health, said):
    with pytest.raises(TrialError, match=said):
        after(health, 30)


def test_one_that_never_gets_there_is_given_up(after):
    with pytest.raises(TrialError, match="the replica was still 1 bytes behind"):
        after(BEFORE, *[1] * 9000)
