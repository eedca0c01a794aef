"""The link to a replica: each byte is late by half a round trip, and a cut loses what is on the way."""

import socket
import threading
import time
from contextlib import suppress
from types import SimpleNamespace

import pytest

from dbdyno.errors import TrialError
from dbdyno.servers.contract import ReplicaHealth, ReplicaPosition
from dbdyno.stack.layer import Replica
from dbdyno.stack.layers import replica as layer
from dbdyno.stack.layers.link import Door, Link, linked
from dbdyno.stack.layers.replica import caught_up

ROUND_TRIP = 0.1


@pytest.fixture
def server():
    """A server that says back what it hears, to one client after the other."""
    with socket.create_server(("127.0.0.1", 0)) as door:

        def serve():
            while True:
                try:
                    client, _ = door.accept()
                except OSError:
                    return
                with client:
                    while piece := client.recv(65536):
                        client.sendall(piece)

        threading.Thread(target=serve, daemon=True).start()
        yield door.getsockname()
        door.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def link(server):
    with linked(*server, ROUND_TRIP) as made:
        yield made


def connected(link):
    client = socket.create_connection(("127.0.0.1", link.port), timeout=20)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def received(client, size):
    content = b""
    while len(content) < size and (piece := client.recv(size - len(content))):
        content += piece
    return content


def test_a_ping_takes_the_round_trip(link):
    with connected(link) as client:
        for _ in range(3):
            began = time.monotonic()
            client.sendall(b"ping")
            assert received(client, 4) == b"ping"
            assert time.monotonic() - began >= ROUND_TRIP


def test_much_arrives_whole_and_in_order_though_no_faster(link):
    sent = bytes(range(256)) * 40_000  # more than may be underway at a time
    with connected(link) as client:
        threading.Thread(target=client.sendall, args=(sent,), daemon=True).start()
        assert received(client, len(sent)) == sent


def test_a_cut_loses_what_is_on_the_way_and_lets_nothing_pass(link):
    with connected(link) as client:
        client.sendall(b"one")
        assert received(client, 3) == b"one"
        client.sendall(b"two")
        link.cut()
        with suppress(ConnectionResetError):  # it may hear of it so
            assert received(client, 3) == b""


def test_the_end_of_the_server_is_heard_after_what_it_had_said(server):
    del server
    with socket.create_server(("127.0.0.1", 0)) as door:
        link = Link(*door.getsockname(), ROUND_TRIP)
        with connected(link) as client:
            other, _ = door.accept()
            other.sendall(b"last words")
            other.close()
            assert received(client, 100) == b"last words"
        link.close()


def test_whoever_enters_by_a_door_is_seen_as_the_door_says():
    with socket.create_server(("127.0.51.9", 0)) as door:
        port = door.getsockname()[1]
        seen_from = {"127.0.51.8": "127.0.52.8"}
        with linked("127.0.51.9", port, 0.001, Door("127.0.52.9", port, seen_from.__getitem__)) as link:
            assert link.port == port
            client = socket.create_connection(("127.0.52.9", port), timeout=20, source_address=("127.0.51.8", 0))
            with client:
                other, address = door.accept()
                assert address[0] == "127.0.52.8"
                other.sendall(b"word")
                assert received(client, 4) == b"word"
                assert link.connections == 1
                other.close()


def test_there_is_none_without_a_delay():
    with linked("127.0.0.1", 1, 0.0) as none:
        assert none is None


# What a replica did of a load: how long commits waited for it, how late it was, and what makes the trial void.


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
