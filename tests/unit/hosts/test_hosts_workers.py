"""Calls spread over hosts: the contract of what makes them, here, and what is done where hosts are lost."""

import contextlib
import queue
import random
import threading
import time
from collections import Counter

import pytest

from dbdyno.compute.spread import Spread
from dbdyno.compute.workers import LocalWorkers, Returned, Workers
from dbdyno.errors import HostError
from dbdyno.simulation.sweep import simulate_point
from tests.local_hosts import LocalHosts
from tests.support import wait_for
from tests.unit.hosts.workers_contract import keeps_the_contract


def test_the_contract(tmp_path, monkeypatch):
    monkeypatch.setenv("DBDYNO_STATE_DIR", str(tmp_path / "state"))
    with contextlib.closing(LocalHosts(["a", "b"])) as hosts:
        keeps_the_contract(hosts, hosts.workers(simulate_point), tmp_path)


class Scripted(Workers):
    """Hosts whose calls take as long as a test says, and that are lost when it says so; late results come too."""

    def __init__(self, cores, seconds=lambda _: 0.001):
        self._cores, self._seconds = cores, seconds
        self._lost, self.begun, self.most = {}, [], Counter()
        self._at_work, self._counting = Counter(), threading.Lock()
        self.back, self.bad, self.renewed = set(), set(), Counter()
        self._arrived = queue.SimpleQueue()

    def cores(self):
        return {name: cores for name, cores in self._cores.items() if name not in self._lost}

    def begin(self, host, ticket, given):
        if host in self._lost:
            return  # lost since it was chosen: what it has is then given to others
        self.begun.append((host, given))
        with self._counting:
            self._at_work[host] += 1
            self.most[host] = max(self.most[host], self._at_work[host])
        self._go_on(Returned(ticket, host, f"of {given}", 0.001))

    def _go_on(self, call):
        threading.Timer(self._seconds(call.host), self._end, [call]).start()

    def _end(self, call):
        with self._counting:
            self._at_work[call.host] -= 1
        self._arrived.put(call)

    def returned(self, seconds):
        with contextlib.suppress(queue.Empty):
            return [self._arrived.get(timeout=min(seconds, 0.005))]
        return []

    def lost(self):
        return dict(self._lost)

    def leave_out(self, host, why):
        self._lost[host] = why
        self.back.discard(host)

    def returned_hosts(self):
        return sorted(self.back & self._lost.keys())

    def renew(self, host):
        self.renewed[host] += 1
        if self.renewed[host] in self.bad:
            raise HostError(f"{host}: no answer")

    def take_back(self, host):
        del self._lost[host]

    def missing_inputs(self, _host, _names):
        return "", []

    def progress(self):
        return {}

    def close(self):
        self._lost |= dict.fromkeys(self._cores, "closed")


class InTurns(Scripted):
    """Hosts that end as many calls in a turn as they have processors, whatever the clock says."""

    def __init__(self, cores):
        super().__init__(cores)
        self._begun = {host: queue.SimpleQueue() for host in cores}

    def _go_on(self, call):
        self._begun[call.host].put(call)

    def returned(self, seconds):
        for host, cores in self._cores.items():
            with contextlib.suppress(queue.Empty):
                for _ in range(cores):
                    self._end(self._begun[host].get_nowait())
        return super().returned(seconds)


def test_a_host_gets_more_as_it_finishes_and_no_more_than_it_can_do():
    workers = InTurns({"slow": 1, "fast": 4})
    with Spread(workers) as spread:
        futures = [spread.submit(str(number)) for number in range(200)]
        assert [one.result(60).text for one in futures] == [f"of {number}" for number in range(200)]
    assert workers.most["slow"] <= 2
    assert 4 <= workers.most["fast"] <= 8
    shares = Counter(host for host, _ in workers.begun)
    assert shares["fast"] > 2 * shares["slow"]


def test_the_first_calls_are_dealt_out_by_processors():
    """Of calls that may take hours none waits at a host while another is free."""
    workers = Scripted({"a": 2, "b": 4}, lambda _: 0.2)
    with Spread(workers) as spread:
        futures = [spread.submit(str(number)) for number in range(6)]
        assert Counter(host for host, _ in workers.begun) == {"a": 2, "b": 4}
        assert spread.room() == 6
        spread.submit("one more")
        assert len(workers.begun) == 6
        assert all(one.result(60) for one in futures)


@pytest.mark.parametrize("seed", range(10))
def test_no_call_is_lost_or_doubled_where_hosts_are(seed):
    chance = random.Random(seed)
    names, said = [f"c{number}" for number in range(4)], []
    workers = Scripted(dict.fromkeys(names, 2), lambda _: chance.uniform(0.0, 0.02))
    with Spread(workers, said.append) as spread:
        futures = [spread.submit(str(number)) for number in range(150)]
        for name in chance.sample(names, 3):
            time.sleep(chance.uniform(0.0, 0.1))
            workers.leave_out(name, f"{name}: is lost")
        done = [one.result(60) for one in futures]
        wait_for(lambda: len(said) >= 3)
        assert spread.hosts() == 1
    assert [one.text for one in done] == [f"of {number}" for number in range(150)]
    assert len(said) == 3
    assert all("is lost; other hosts repeat its work" in line for line in said)


@pytest.mark.parametrize("seed", range(5))
def test_a_host_that_is_there_again_takes_part_once_it_has_what_it_needs(seed):
    chance = random.Random(seed)
    said, supplied = [], []
    workers = Scripted({"a": 1, "b": 1}, lambda _: chance.uniform(0.005, 0.02))
    with Spread(workers, said.append, supplied.append) as spread:
        futures = [spread.submit(str(number)) for number in range(100)]
        time.sleep(chance.uniform(0.0, 0.1))
        workers.leave_out("b", "b: is lost")
        wait_for(lambda: said)
        workers.back.add("b")
        wait_for(lambda: len(said) >= 2)
        before = len(workers.begun)
        futures += [spread.submit(str(number)) for number in range(100, 200)]
        done = [one.result(60) for one in futures]
        assert spread.hosts() == 2
    assert [one.text for one in done] == [f"of {number}" for number in range(200)]
    assert said[1:] == ["b is back, and takes part"]
    assert (supplied, workers.renewed) == (["b"], {"b": 1})
    assert "b" in {host for host, _ in workers.begun[before:]}


def test_a_host_that_is_there_again_and_can_not_take_part_is_said_to_be_and_stays_out():
    said = []
    workers = Scripted({"a": 1, "b": 1})
    workers.bad = {1}
    with Spread(workers, said.append) as spread:
        spread.submit("one").result(20)
        workers.leave_out("b", "b: is lost")
        workers.back.add("b")
        wait_for(lambda: len(said) >= 2)
        time.sleep(0.5)
        assert spread.hosts() == 1
    assert said[1:] == ["b can't take part again: b: no answer"]


def test_where_no_host_is_left_every_call_says_why():
    workers = Scripted({"a": 1, "b": 1}, lambda _: 60)
    with Spread(workers) as spread:
        futures = [spread.submit(str(number)) for number in range(5)]
        workers.leave_out("a", "a: is lost")
        workers.leave_out("b", "b: no space left")
        for one in futures:
            with pytest.raises(HostError, match=r"^no host is left: a: is lost; b: no space left$"):
                one.result(60)
        with pytest.raises(HostError, match="no host is left"):
            spread.submit("another").result(20)
        assert spread.room() > 0, "else who waits for room would wait for ever"


def test_a_fault_of_what_carries_calls_is_heard_where_they_are_waited_for():
    class Broken(Scripted):
        def returned(self, seconds):
            raise RuntimeError("the wire is cut")

    with Spread(Broken({"a": 1})) as spread, pytest.raises(RuntimeError, match="the wire is cut"):
        spread.submit("one").result(20)


def test_an_end_ends_the_calls_that_run():
    begun, ended = threading.Event(), threading.Event()

    def for_ever(_given, hear):
        try:
            while True:
                hear(1.0)
                begun.set()
                time.sleep(0.01)
        finally:
            ended.set()

    with Spread(LocalWorkers(for_ever)) as spread:
        spread.submit("one")
        assert begun.wait(240)
    assert ended.is_set()
