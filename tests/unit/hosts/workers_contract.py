"""What every implementation of ``Workers`` does; called for each with its two hosts.

``tests/host/test_sweep_hosts.py`` asks it of hosts, so what is called is found in modules that are there.
"""

import json
import time

from dbdyno.compute.spread import Spread
from dbdyno.compute.workers import INPUT
from dbdyno.hosts.calls import input_name, send
from dbdyno.simulation.sweep import simulate_point

POINT = {"device": "hdd-15k", "size_bytes": 1 << 30, "kernel": "6.x", "duration_s": 0.1, "warm_up_s": 0.0,
         "load": {"kind": "jobs", "jobs": [{}]}}  # fmt: skip
LONG = {**POINT, "duration_s": 1e6}
CORES_MAX = 1024


def point(**changes):
    return json.dumps(POINT | changes)


def keeps_the_contract(hosts, workers, folder):
    """``workers`` call ``simulate_point`` on the two ``hosts``, and are closed at the end."""
    first, second = hosts.names
    assert workers.cores().keys() == {first, second}
    assert all(1 <= cores <= CORES_MAX for cores in workers.cores().values())
    assert workers.lost() == {}
    calls_return(workers, first, second)
    files_arrive(hosts, workers, folder)
    one_says_how_far_it_is(workers, second)
    one_is_left_out(workers, first, second)
    workers.close()  # which does not wait for the long call: that would take hours


def returned(workers, count, seconds=60):
    deadline, found = time.monotonic() + seconds, []
    while len(found) < count and time.monotonic() < deadline:
        found += workers.returned(0.2)
    assert len(found) == count
    return {one.ticket: one for one in found}


def calls_return(workers, first, second):
    """Each with what the function returns here, or with what it raises."""
    for seed in range(20):
        workers.begin((first, second)[seed % 2], seed, point(seed=seed))
    workers.begin(second, 20, point(size_bytes=1 << 60))
    found = returned(workers, 21)
    assert sorted(found) == list(range(21))
    for seed in range(20):
        assert found[seed].text == simulate_point(point(seed=seed), lambda _: None)
        assert (found[seed].host, found[seed].error) == ((first, second)[seed % 2], None)
        assert 0 < found[seed].cpu_s < 10
    assert isinstance(found[20].error, ValueError)
    assert str(found[20].error).startswith("size_bytes: a disk of")
    assert workers.returned(0.0) == []


def files_arrive(hosts, workers, folder):
    """Once to each host; and a mistake in one names it by what it is called in the point."""
    trace = folder / "trace.csv"
    trace.write_text("time_s,offset,size,op\n0.0,0,4096,r\n0.1,8192,4096,w\n")
    name, said = input_name(trace), []
    for _ in range(2):
        send(hosts, workers, {name: trace}, said.append)
    assert all(workers.missing_inputs(host, [name])[1] == [] for host in hosts.names)
    assert workers.missing_inputs(hosts.names[0], ["other"])[1] == ["other"]
    assert 1 <= len(said) == len({*said}) <= len(hosts.names)
    asked = {"load": {"kind": "trace", "files": [f"{INPUT}{name}"], "replay": "open"}}
    for ticket, host in enumerate(hosts.names, 30):
        workers.begin(host, ticket, point(**asked))
    lacking = {"load": {"kind": "trace", "files": [f"{INPUT}lacking.csv"], "replay": "open"}}
    workers.begin(hosts.names[1], 32, point(**lacking))
    found = returned(workers, 3)
    here = json.loads(point(**asked)) | {"load": asked["load"] | {"files": [str(trace)]}}
    assert {found[30].text, found[31].text} == {simulate_point(json.dumps(here), lambda _: None)}
    assert str(found[32].error).startswith(f"load.files[0]: {INPUT}lacking.csv: ")


def one_says_how_far_it_is(workers, host):
    workers.begin(host, 40, json.dumps(LONG))
    deadline = time.monotonic() + 60
    while not workers.progress().get(40):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    before = workers.progress()[40]
    while workers.progress()[40] <= before:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def one_is_left_out(workers, first, second):
    """Nothing is heard of it any more; the other goes on."""
    workers.leave_out(second, "it is gone")
    assert workers.lost() == {second: "it is gone"}
    assert workers.cores().keys() == {first}
    assert 40 not in workers.progress()
    with Spread(workers) as spread:
        done = spread.submit(point(seed=3)).result(60)
    assert (done.host, done.text) == (first, simulate_point(point(seed=3), lambda _: None))
