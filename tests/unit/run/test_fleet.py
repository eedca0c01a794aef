"""A study on several hosts. Their trials are played, in processes of their own; plan, runs and run folders are real."""

import json
import os
import signal
from dataclasses import replace
from types import SimpleNamespace

import pytest

from dbdyno.analysis.analyse import planned_verdicts
from dbdyno.analysis.blocks import usable_blocks
from dbdyno.errors import HostError
from dbdyno.run import host_program, over_hosts
from dbdyno.run.fleet.coordinate import stagger_seconds
from dbdyno.run.fleet.fold import ARRIVED
from dbdyno.store.events import Joined, Note, read_events
from dbdyno.store.run_folder import read_run
from tests.fleets import HOSTS, Fleet, by_host, half_folded, lines, noting
from tests.scripted import Script, perform
from tests.support import is_measured, wait_for
from tests.unit.run.conftest import died

ON_THREE = ("[stack]", '[hosts]\nunder_test = ["db1", "db2", "db3"]\n[stack]')
ON_ONE = ("[stack]", '[hosts]\nunder_test = ["db1"]\n[stack]')


def orders(plan, host, blocks):
    """The trials of a host's blocks, as the plan has them."""
    return [(n, 1, slot.treatment) for n in range(1, blocks + 1) for slot in plan.on_host(host).slots(n, 1)]


def whole(into):
    """Host -> by its own count, the blocks that count."""
    run = read_run(into)
    counted = usable_blocks(run).trials
    hosts = {trial.block: trial.host for trial in run.trials}
    assert all(len({trial.host for trial in row.values()}) == 1 for row in counted.values())
    return {host: sum(hosts[block] == host for block in counted) for host in HOSTS}


def test_blocks_run_on_all_hosts_each_in_the_order_of_seed_host_and_count(plan, into, states, tmp_path):
    made = plan(ON_THREE, blocks=9)
    fleet = Fleet(states, script_of=noting(tmp_path / "ran", seconds=0.02))
    assert fleet.run(made, into).how == "done"
    run = read_run(into)
    assert (run.ended, run.stopped, run.notes) == ("done", "blocks", [])
    assert by_host(into) == {host: orders(made, host, 3) for host in HOSTS}
    assert len({str(orders(made, host, 3)) for host in HOSTS}) > 1
    assert run.hosts == {host: {"cores": 2, "name": host} for host in HOSTS}
    assert {note for _, note, _, _ in fleet.trials} == {f"on {host}" for host in HOSTS}
    assert sorted({trial.block for trial in run.trials}) == list(range(1, 10))
    began = [(one["host"], one["block"]) for one in lines(tmp_path / "ran")]
    assert began != sorted(began)  # at once, not one host after the other
    assert not list((states / "db1/fleet").iterdir())  # nothing is kept on a host of a run that is done
    assert not list((into / ARRIVED).iterdir())


def test_a_question_to_a_host_while_it_measures_is_a_fault(plan, into, states, tmp_path):
    def script_of(host):
        script = Script()
        script.rate = lambda *_: wait_for((tmp_path / host).exists) * 100.0
        return script

    def trial(_slot, note, *_):  # said just before the host's window begins, and the host measures until it was seen
        (host,) = [host for host in HOSTS if note.endswith(host)]
        if not (tmp_path / host).exists():
            wait_for(lambda: is_measured(host))
            (tmp_path / host).touch()

    fleet = Fleet(states, script_of=script_of)
    fleet.trial = trial
    assert fleet.run(plan(ON_THREE, blocks=3), into).how == "done"
    assert all((tmp_path / host).exists() for host in HOSTS)
    assert not any(map(is_measured, HOSTS))


def test_a_study_on_one_host_is_the_same_with_and_without_the_word(plan, into, states, tmp_path):
    with_it, without = plan(ON_ONE, blocks=6), plan(blocks=6)
    rate = noting(tmp_path / "ran")
    assert Fleet(states, ["db1"], rate).run(with_it, into).how == "done"
    alone = tmp_path / "alone"
    script = rate("here")
    assert perform(script, without, alone).how == "done"
    one, other = read_run(into), read_run(alone)
    assert [replace(trial, host="") for trial in one.trials] == other.trials
    assert replace(one.design, fleet=None) == other.design
    assert planned_verdicts(one, usable_blocks(one)) == planned_verdicts(other, usable_blocks(other))
    events = [json.loads(line) for line in (into / "journal.jsonl").read_text().splitlines()]
    kept = [one["event"] for one in events if one["event"] != "joined"]
    assert kept == [json.loads(line)["event"] for line in (alone / "journal.jsonl").read_text().splitlines()]
    assert (into / "study.toml").read_text() != (alone / "study.toml").read_text()


def test_the_start_of_a_block_is_put_off_by_the_seed_but_for_a_host_alone(plan, into, states, tmp_path):
    path = tmp_path / "rests"

    def script_of(host):
        script = Script()

        def rate(_block, _treatment):
            path.open("a").write(json.dumps([host, script.rests]) + "\n")
            return 100.0

        script.rate = rate
        return script

    made = plan(ON_THREE, blocks=6)
    Fleet(states, script_of=script_of).run(made, into)
    rests = dict(lines(path))
    assert all(len(found) == 2 and all(0 < one < stagger_seconds(made) for one in found) for found in rests.values())
    assert len({one for found in rests.values() for one in found}) == 6
    assert stagger_seconds(plan(ON_ONE, blocks=6)) == 0


def test_the_results_of_all_hosts_decide_when_it_stops(plan, into, states):
    made = plan(ON_THREE, ("blocks = 6\n", ""))

    def script_of(_host):
        script = Script()
        script.rate = lambda block, treatment: (100.0 + block % 3) * (2.0 if treatment == "t2" else 1.0)
        return script

    fleet = Fleet(states, script_of=script_of)
    assert fleet.run(made, into).how == "done"
    run = read_run(into)
    assert (run.stopped, len(usable_blocks(run).trials)) == ("decided", 6)


def test_no_block_is_begun_after_the_budget_and_those_that_are_open_end(plan, into, states, tmp_path):
    made = plan(ON_THREE, ("blocks = 6\n", 'blocks = 600\nbudget = "2s"\n'))
    fleet = Fleet(states, script_of=noting(tmp_path / "ran", seconds=0.1))
    assert fleet.run(made, into).how == "done"
    run = read_run(into)
    assert run.stopped == "budget"
    assert 1 <= len(usable_blocks(run).trials) < 600
    assert len(run.trials) == len(lines(tmp_path / "ran"))  # none was thrown away


def test_a_host_that_can_t_do_it_takes_no_more_part_and_the_others_have_its_blocks(plan, into, states):
    def script_of(host):
        script = Script()
        if host == "db2":
            script.fails = {(2, "t1"): HostError("mkfs.ext4 is not installed")}
        return script

    fleet = Fleet(states, script_of=script_of)
    made = plan(ON_THREE, blocks=9)
    assert fleet.run(made, into).how == "done"
    assert whole(into) == {"db1": 4, "db2": 1, "db3": 4}
    assert [one for one in read_run(into).notes if "db2 no longer takes part" in one] == [
        "db2 no longer takes part: mkfs.ext4 is not installed"
    ]


def test_a_failed_trial_is_told_with_its_host_and_its_block_repeated_there(plan, into, states):
    def script_of(host):
        script = Script()
        script.fails = {(2, 1, "t2"): died()} if host == "db3" else {}
        return script

    fleet = Fleet(states, script_of=script_of)
    assert fleet.run(plan(ON_THREE, blocks=6), into).failures == 1
    run = read_run(into)
    [failure] = run.failures
    assert (failure.host, failure.cause) == ("db3", "the server died")
    assert whole(into) == dict.fromkeys(HOSTS, 2)
    assert any(said.startswith("db3: ") and "failed: the server died" in said for said in fleet.said)


def test_where_no_host_is_left_the_run_fails_and_goes_on_later(plan, into, states):
    broken = states / "broken"

    def script_of(_host):
        script = Script()
        script.fails = {(2, "t1"): HostError("no room")} if broken.exists() else {}
        return script

    made = plan(ON_THREE, blocks=9)
    states.mkdir()
    broken.touch()
    with pytest.raises(HostError, match=r"no host is left \(db1: no room; db2: no room; db3: no room\)"):
        Fleet(states, script_of=script_of).run(made, into)
    assert (read_run(into).ended, whole(into)) == ("failed", dict.fromkeys(HOSTS, 1))
    broken.unlink()
    assert Fleet(states, script_of=script_of).run(made, into, resume=True).how == "done"
    assert whole(into) == dict.fromkeys(HOSTS, 3)


def test_a_lost_host_voids_its_open_block_and_one_that_returns_takes_whole_blocks(plan, into, states, tmp_path):
    away = tmp_path / "away"

    def script_of(host):
        script = Script()

        def rate(_block, _treatment):
            if host == "db2":
                away.unlink(missing_ok=True)
            else:  # the others leave blocks to the one that is away
                wait_for(lambda: not away.exists())
            return 100.0

        script.rate = rate
        return script

    fleet = Fleet(states, script_of=script_of)
    original = fleet.trial

    def trial(slot, note, done, outlook):
        original(slot, note, done, outlook)
        if note == "on db2" and slot.block == 2 and not fleet.lost and not fleet.said:
            fleet.lost["db2"] = "silent for 4 s"
            away.touch()
            os.kill(fleet.hosts.pids()["db2"], signal.SIGKILL)

    def say(text):
        fleet.said.append(text)
        if "db2 no longer takes part" in text:
            fleet.lost.clear()

    fleet.trial, fleet.say = trial, say
    made = plan(ON_THREE, blocks=60)
    assert fleet.run(made, into).how == "done"
    notes = read_run(into).notes
    assert "db2 no longer takes part: it is lost (silent for 4 s); the block in progress is void" in notes
    assert "db2 is back, and takes whole blocks" in notes
    found = whole(into)
    assert sum(found.values()) == 60
    assert found["db2"] >= 2
    second = [(attempt, treatment) for n, attempt, treatment in by_host(into)["db2"] if n == 2]
    assert len(second) == 2
    assert len({attempt for attempt, _ in second}) == 1  # whole, at one go


def test_a_program_that_ends_is_started_again_but_not_for_ever(plan, into, states):
    counted = states / "counted"

    def script_of(host):
        script = Script()
        if host == "db1":
            with counted.open("a") as file:
                file.write(".")
            script.faults["load"] = lambda: os.kill(os.getpid(), signal.SIGKILL)
        return script

    states.mkdir()
    fleet = Fleet(states, script_of=script_of)
    assert fleet.run(plan(ON_THREE, blocks=6), into).how == "done"
    assert whole(into) == {"db1": 0, "db2": 3, "db3": 3}
    assert counted.read_text() == "..."
    assert any(
        "db1 no longer takes part: its dbdyno ended 3 times: killed by signal SIGKILL" in one
        for one in read_run(into).notes
    )


def test_interrupted_it_ends_on_every_host_and_goes_on_with_whole_blocks(plan, into, states, tmp_path):
    ran = tmp_path / "ran"
    fleet = Fleet(states, script_of=noting(ran, seconds=0.1))
    made = plan(ON_THREE, blocks=6)
    pid = os.fork()
    if not pid:
        try:
            os._exit(0 if fleet.run(made, into).how == "interrupted" else 1)
        finally:
            os._exit(2)
    wait_for(lambda: len(lines(ran)) >= 5)
    os.kill(pid, signal.SIGINT)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert read_run(into).ended == "interrupted"
    assert not [host for host in HOSTS for _ in (states / host / "journals").glob("*")]  # all is put back
    assert Fleet(states, script_of=noting(ran)).run(made, into, resume=True).how == "done"
    assert whole(into) == dict.fromkeys(HOSTS, 2)


def test_a_block_that_was_half_folded_by_a_kill_is_folded_once(plan, into, states, tmp_path):
    made = plan(ON_THREE, blocks=6)
    # Its last block: two trials begun, two finished.
    for copy in half_folded(Fleet(states), made, into, tmp_path, lambda places: range(places[-4], places[-1] + 1)):
        expected = [trial.metrics for trial in read_run(into).trials if trial.host == "db1"]
        found = [trial for trial in read_run(copy).trials if trial.host == "db1"]
        assert [trial.metrics for trial in found] == expected, copy.name
        assert len({trial.id for trial in found}) == len(found) == 4
        assert not list((copy / ARRIVED).iterdir())


def test_who_has_joined_is_noted_once(plan, into, states):
    made = plan(ON_THREE, blocks=3)
    Fleet(states).run(made, into)
    joined = [event for event in read_events(into) if isinstance(event, Joined)]
    assert sorted((one.host, one.versions["kernel"]) for one in joined) == [(host, host) for host in HOSTS]
    assert not [event for event in read_events(into) if isinstance(event, Note)]


# What hosts say of this machine's address is weighed before a server listens there.


def address_among(*origins, address=None):
    inventory = SimpleNamespace(cluster=SimpleNamespace(address=address))
    by_host = {f"h{place}": origin for place, origin in enumerate(origins)}
    return over_hosts._address(SimpleNamespace(inventory=inventory, origins=lambda: by_host))


@pytest.mark.parametrize("lie", ["10.255.255.1", "localhost", "evil.lab", "", "127.1", "8.8.8.8", "-x"])
def test_an_address_that_this_machine_does_not_have_is_not_its_own(lie):
    assert address_among(lie, "127.0.0.1") == "127.0.0.1"
    assert address_among(lie, address="10.0.0.1") == "10.0.0.1"
    with pytest.raises(HostError, match="set address in \\[cluster\\]") as error:
        address_among(lie)
    assert f"h0 reports {lie or 'none'}" in str(error.value)


# What programs of ours on hosts do beside their work.


def test_a_program_reports_that_it_is_alive_until_it_ends(monkeypatch):
    monkeypatch.setattr(host_program, "BEAT_SECONDS", 0.001)
    sent = []
    with host_program.heartbeat(sent.append):
        wait_for(lambda: len(sent) >= 3)
    count = len(sent)
    assert sent == [{"beats": number} for number in range(1, count + 1)]
