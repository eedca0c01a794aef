"""A study of power cuts on several hosts, played: what each found, and the states that it keeps, are in one folder."""

import json
import os
import signal
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.blocks import usable_blocks
from dbdyno.analysis.safety import crash_safety
from dbdyno.crash.trial_cuts import read_kept
from dbdyno.errors import UserError
from dbdyno.model.cut import Cut
from dbdyno.run.fleet.coordinate import kinds_ahead
from dbdyno.run.fleet.fold import ARRIVED
from dbdyno.run.fleet.message import PackedBlock
from dbdyno.store.cuts import cuts_of, kept_folder
from dbdyno.store.run_folder import is_begun, read_run
from tests.fleets import HOSTS, Fleet, half_folded
from tests.scripted import Script, perform
from tests.support import wait_for
from tests.unit.run.test_execute_crash import DESIGN, TIMED
from tests.unit.run.test_fleet import ON_ONE, ON_THREE, whole

BYTES = 64 * 1024**2  # of a disk, nearly all of it a hole
CONTENT = b"what a cut has left" * 1000


@pytest.fixture
def crash(plan):
    """Plan a study of ten cuts in each block, on three hosts."""

    def made(*changes, cuts=90, on=ON_THREE):
        return plan(TIMED, (DESIGN, f'metric = "queries_per_second"\n[crash]\ncuts = {cuts}\nkeep = "all"\n'), on,
                    *changes)  # fmt: skip

    return made


def a_cut(outcome, id_="c1", kept=False):
    place = f"cuts/{id_}" if kept else ""
    lost = {"lost": 3, "lost_ms": 900.0} if outcome != "nothing" else {}
    return Cut(id_, "power", "uniform", "random-4096", 7, 1.5, outcome, 40, recovery_s={"mount": 0.5}, kept=place,
               **lost)  # fmt: skip


def keep(folder, cut):
    """Write a state as the emulated disk writes it, of another group, in a file that is nearly all hole."""
    folder.mkdir(parents=True)
    with (folder / "base.img").open("wb") as file:
        file.seek(BYTES // 2)
        file.write(CONTENT + str(folder.parents[1].name).encode())
        file.truncate(BYTES)
    if os.geteuid() == 0:
        os.chown(folder / "base.img", -1, 65534)
    about = {"cut": vars(cut), "treatment": folder.parents[1].name.partition("-")[2], "name": cut.id, "seed": 8,
             "cut_ns": 3, "cut_end_ns": 4, "window_start_ns": 1}  # fmt: skip
    (folder / "about.json").write_text(json.dumps(about))


def control_alone(_host, treatment):
    return treatment == "control"


def losing(lost=control_alone, noted=None):
    """A maker of scripts in which some treatments lose the newest commits in each of two cuts, and keep the first."""

    def script_of(host):
        script = Script()

        def cuts(block, treatment):
            if noted:
                with Path(noted).open("a") as file:
                    file.write(json.dumps([host, block, treatment]) + "\n")
            if lost(host, treatment):
                return [a_cut("tail", "c1", kept=True), a_cut("tail", "c2")]
            return [a_cut("nothing", "c1"), a_cut("nothing", "c2")]

        script.cuts, script.keep = cuts, keep
        return script

    return script_of


def kept(into):
    """What is kept: (trial, cut) -> where."""
    run = read_run(into)
    return {(trial.id, cut.id): kept_folder(into, trial, cut) for trial, cut in cuts_of(run) if cut.kept}


def is_whole(state, size=BYTES):
    """Whether a state has the content and the holes that it was written with, and belongs to us."""
    found = (state / "base.img").stat()
    with (state / "base.img").open("rb") as file:
        file.seek(size // 2)
        content = file.read(len(CONTENT))
    is_ours = found.st_uid == os.geteuid()
    return content == CONTENT and found.st_size == size and found.st_blocks * 512 < 10**6 and is_ours


def test_cuts_of_all_hosts_are_in_one_run_each_with_its_host_and_its_kept_state(crash, into, states):
    made = crash()
    assert Fleet(states, script_of=losing()).run(made, into).how == "done"
    run = read_run(into)
    assert whole(into) == dict.fromkeys(HOSTS, 3)
    assert {trial.host for trial, _ in cuts_of(run)} == set(HOSTS)
    found = kept(into)
    assert len(found) == 9  # one of the control in each block
    assert {trial.treatment for trial in run.trials if (trial.id, "c1") in found} == {"control"}
    assert all(map(is_whole, found.values()))
    assert {read_kept(place).treatment for place in found.values()} == {"control"}
    assert not list((into / ARRIVED).iterdir())
    assert not list((states / "db1/fleet").iterdir())


def test_bounds_count_the_runs_of_all_hosts(crash, into, states):
    Fleet(states, script_of=losing()).run(crash(), into)
    safety = crash_safety(read_run(into))
    assert [(one.id, one.tally.runs, one.tally.cuts) for one in safety.treatments] == [("t1", 9, 18), ("t2", 9, 18)]
    assert (safety.control.tally.runs, safety.control.tally.lost.seen) == (9, 18)
    assert safety.treatments[0].tally.lost.at_most == pytest.approx(1 - 0.05 ** (1 / 9))
    assert not any(one.differs for one in safety.by_host)


def test_a_host_on_which_a_treatment_loses_is_named(crash, into, states):
    lost = losing(lambda host, treatment: treatment == "control" or (host, treatment) == ("db2", "t2"))
    Fleet(states, script_of=lost).run(crash(), into)
    safety = analyse(read_run(into)).safety
    assert [one.treatment for one in safety.by_host if one.differs] == ["t2"]
    [of_t2] = [one for one in safety.by_host if one.treatment == "t2"]
    assert {one.host: one.tally.lost.seen for one in of_t2.hosts} == {"db1": 0, "db2": 6, "db3": 0}


def test_the_kinds_of_cut_are_shared_out_to_hosts_as_they_are_to_blocks_on_one(crash, into, states, tmp_path):
    made, noted = crash(), tmp_path / "noted"
    Fleet(states, script_of=losing(noted=noted)).run(made, into)
    lines = [json.loads(line) for line in noted.read_text().splitlines()]
    of_control = [(host, block) for host, block, treatment in lines if treatment == "control"]
    assert sorted(block for _, block in of_control) == list(range(1, 10))
    assert [block for host, block in of_control if host == "db2"] == [4, 5, 6]
    assert [kinds_ahead(made, host) for host in HOSTS] == [0, 3, 6]
    assert kinds_ahead(crash(on=ON_ONE), "db1") == 0


def test_one_host_finds_and_keeps_what_it_would_without_the_word(crash, into, states, tmp_path):
    with_it, without = crash(on=ON_ONE, cuts=30), crash(on=("[stack]", "[stack]"), cuts=30)
    assert Fleet(states, ["db1"], losing()).run(with_it, into).how == "done"
    alone = tmp_path / "alone"
    assert perform(losing()("here"), without, alone).how == "done"
    one, other = read_run(into), read_run(alone)
    assert [replace(trial, host="") for trial in one.trials] == other.trials
    assert crash_safety(one) == crash_safety(other)
    assert kept(into).keys() == kept(alone).keys()
    for place, folder in kept(into).items():
        there = kept(alone)[place]
        assert all((folder / name).read_bytes() == (there / name).read_bytes() for name in ("base.img", "about.json"))


def test_where_there_is_no_room_here_a_block_comes_without_its_states(crash, into, states, monkeypatch):
    def disk_usage(path):
        return SimpleNamespace(free=1024**3 if Path(path) == into else 1024**4)

    monkeypatch.setattr("dbdyno.run.fleet.part.shutil.disk_usage", disk_usage)
    fleet = Fleet(states, script_of=losing())
    assert fleet.run(crash(), into).how == "done"
    assert whole(into) == dict.fromkeys(HOSTS, 3)
    assert kept(into) == {}
    assert Counter(cut.outcome for _, cut in cuts_of(read_run(into)))["tail"] == 18
    said = [one for one in fleet.said if "no room here" in one]
    assert len(said) == 9
    assert said[0].endswith("of states after its power cuts: they are not kept")


def test_where_there_is_no_room_there_either(crash, into, states, monkeypatch):
    def disk_usage(path):
        return SimpleNamespace(free=1024**3 if states in Path(path).parents else 1024**4)

    monkeypatch.setattr("dbdyno.run.fleet.message.shutil.disk_usage", disk_usage)
    fleet = Fleet(states, script_of=losing())
    assert fleet.run(crash(), into).how == "done"
    assert kept(into) == {}
    assert sum("no room there for" in one for one in fleet.said) == 9


@pytest.mark.parametrize(("free_bytes", "path"), [(3 * 1024**3, "s"), (3 * 1024**3 - 1, "p"), (0, "p")])
def test_states_are_fetched_where_they_fit_twice_and_some_room_is_left(free_bytes, path):
    packed = PackedBlock("p", "1", 1024**3, {"path": "s", "sha256": "2"})
    assert packed.file(free_bytes)[0] == path
    assert replace(packed, states=None).file(free_bytes)[0] == "p"


def test_killed_and_resumed_each_cut_and_each_state_is_there_once(crash, into, states):
    made = crash()
    pid = os.fork()
    if not pid:
        try:
            Fleet(states, script_of=losing()).run(made, into)
        finally:
            os._exit(0)
    wait_for(lambda: is_begun(into) and len(list(into.glob("trials/*/cuts/c1/about.json"))) >= 2)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    for host in HOSTS:
        wait_for(lambda host=host: not list((states / host / "journals").glob("*")))
    assert Fleet(states, script_of=losing()).run(made, into, resume=True).how == "done"
    run = read_run(into)
    assert whole(into) == dict.fromkeys(HOSTS, 3)
    assert len(usable_blocks(run).control) == 9
    found = kept(into)
    assert len(found) == 9
    assert all(map(is_whole, found.values()))
    assert len(list(into.glob("trials/*/cuts/*"))) == 9


def test_a_block_with_states_that_was_half_folded_is_folded_once(crash, into, states, tmp_path):
    made = crash(cuts=30)
    fleet = Fleet(states, script_of=losing())
    for copy in half_folded(fleet, made, into, tmp_path, lambda places: (places[1], places[-1])):
        found = [place for (trial, _), place in kept(copy).items() if "control" in trial]
        assert all(map(is_whole, found))
        assert sum(trial.host == "db1" for trial in read_run(copy).trials) == 3


def test_a_plan_warns_of_hosts_without_cuts_and_claims_nothing_of_hosts_like_these(crash):
    two = ('"db1", "db2", "db3"', '"db1", "db2"')
    assert not [one for one in crash(two).warnings() if "hosts like them" in one]
    assert any("2 blocks leave hosts without any" in one for one in crash(cuts=20).warnings())
    assert not any("leave hosts without any" in one for one in crash(cuts=30).warnings())


def test_what_is_fixed_to_hosts_is_of_speed(crash):
    level = ('under_test = ["db1"]', 'under_test = ["db1"]\nlevel = { drive = { db1 = "hdd" } }')
    one = ('device = ["hdd-7200", "ssd-sata"]', 'device = "hdd-7200"')
    with pytest.raises(UserError, match=r"hosts\.level: can't be given with \[crash\]: it compares speed"):
        crash(level, one, on=ON_ONE)
