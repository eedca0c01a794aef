"""Kept states examined on many hosts: each once, in the run's order, whichever are lost. What is found is played."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing, contextmanager
from dataclasses import replace

import psutil
import pytest

from dbdyno.compute.spread import Spread
from dbdyno.errors import HostError, TrialError, UserError
from dbdyno.hosts.host_side import HostSide
from dbdyno.model.cut import Cut
from dbdyno.run import kept_states as states_module
from dbdyno.run import reexamine
from dbdyno.run.kept_states import examine_again, kept_states, plan_of, spec_of
from dbdyno.run.reexamine import ExaminerAccess, on_hosts, workers_for
from dbdyno.store.run_folder import read_run
from dbdyno.system.interrupt import Interrupted
from dbdyno.workload.ledger import LEDGER
from tests import played_examiner
from tests.fleets import Forking
from tests.local_hosts import LocalHosts
from tests.scripted import Script, perform
from tests.support import wait_for
from tests.unit.run.test_execute_crash import CUTS, TIMED

GIB = 1024**3
HOSTS = ("a", "b")
PLAYED = (sys.executable, "-m", "tests.played_examiner")


def a_cut(id_):
    return Cut(id_, "power", "uniform", "random-4096", 7, 1.5, "tail", 40, lost=3, kept=f"cuts/{id_}")


def keep(folder, cut, **play):
    folder.mkdir(parents=True)
    name = f"{folder.parents[1].name}/{cut.id}"
    with (folder / "base.img").open("wb") as file:
        file.write(b"x" * (1 + sum(name.encode()) % 1000))
        file.truncate(16 * 1024**2)
    (folder / LEDGER).write_bytes(b"what was sent")
    (folder / "play.json").write_text(json.dumps({"cut": name, **play}))
    about = {"cut": vars(cut), "treatment": folder.parents[1].name.partition("-")[2], "name": cut.id, "seed": 8,
             "cut_ns": 3, "cut_end_ns": 4, "window_start_ns": 1}  # fmt: skip
    (folder / "about.json").write_text(json.dumps(about))


@pytest.fixture
def run(plan, into):
    """A run of two blocks whose control has kept the states of three cuts in each: six of them."""

    def made(**play):
        script = Script()
        script.cuts = lambda _, treatment: [a_cut(f"c{n}") for n in (1, 2, 3)] if treatment == "control" else []
        script.keep = lambda folder, cut: keep(folder, cut, **play)
        assert perform(script, plan(TIMED, (CUTS[0], CUTS[1].replace("30", "20"))), into).how == "done"
        return kept_states(into, read_run(into))

    return made


def play(state, **what):
    path = state.folder / "play.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | what))


class Examiner(Forking):
    """A host whose program need not import all that this process has."""

    def play(self, output, stdin, environment):
        given = os.memfd_create("stdin")
        os.write(given, stdin)
        os.lseek(given, 0, os.SEEK_SET)
        os.dup2(given, 0)
        os.dup2(output, 1)
        os.environ.update(environment)
        played_examiner.main()


class There:
    """Hosts that are processes of this machine, each with a state folder of its own, and one process to examine."""

    def __init__(self, folder, into, side):
        self.folder, self.into = folder, into
        self.hosts = LocalHosts(HOSTS)
        self.hosts._sides = {host: side() for host in HOSTS}
        self.said, self.lost, self.more = [], {}, {}

    def environment(self, host):
        return {
            "DBDYNO_STATE_DIR": str(self.folder / host),
            "PLAYED_HOST": host,
            "PLAYED": str(self.folder / "played"),
            **self.more.get(host, {}),
        }

    def examined(self, states):
        access = ExaminerAccess(self.hosts, lambda: dict(self.lost), self.said.append, PLAYED, self.environment)
        with on_hosts(self.into, states, access) as examining:
            return list(examining(states))

    def played(self):
        path = self.folder / "played"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def put_back(self, host):
        put = "from dbdyno.stack.restore import put_back; put_back(print, print)"
        environment = {**os.environ, **self.environment(host)}
        subprocess.run([sys.executable, "-c", put], env=environment, check=True, capture_output=True)

    def processes(self):
        """Those that run on any of them."""
        each = [(one, one.info["environ"] or {}) for one in psutil.process_iter(["environ"])]
        return [one for one, environment in each if environment.get("PLAYED") == str(self.folder / "played")]

    def left(self):
        """What is left of it anywhere."""
        found = [path for host in self.hosts.names for path in (self.folder / host).glob("journals/*")]
        found += [path for host in self.hosts.names for path in (self.folder / host).glob("scratch/*")]
        return found + list(self.folder.joinpath("here").glob("scratch/*"))


@contextmanager
def hosts_there(folder, into, side):
    made = There(folder, into, side)
    for host in HOSTS:
        (made.folder / host).mkdir(parents=True)
        (made.folder / host).chmod(0o755)
    with closing(made.hosts):
        yield made
        wait_for(lambda: not made.processes())
        wait_for(lambda: not made.left(), what=made.left)  # what was told to end may still be at it


@pytest.fixture
def here(state):
    """The state folder here, in which nothing is left."""
    assert os.environ["DBDYNO_STATE_DIR"] == str(state)
    yield
    assert not list((state / "scratch").glob("*"))


@pytest.fixture
def there(here, tmp_path, into):  # noqa: ARG001  (what is left is looked at afterwards)
    with hosts_there(tmp_path / "states", into, Examiner) as made:
        yield made


@pytest.fixture
def started_there(here, tmp_path, into):  # noqa: ARG001  (as above)
    """The same, with programs that are started as they are on a host."""
    with hosts_there(tmp_path / "states", into, HostSide) as made:
        yield made


def expected(states):
    """What each state is to give: its lost commits by its content."""
    return [len((one.folder / "base.img").read_bytes().rstrip(b"\0")) for one in states]


def test_every_state_is_examined_once_and_told_in_the_run_s_order(run, started_there):
    there, states = started_there, run(seconds=0.2)
    there.more = {host: {"PLAYED_BYTES": str(64 * GIB)} for host in HOSTS}  # with all processors
    assert len(states) == 6
    found = there.examined(states)
    assert [one.name for one in found] == [one.name for one in states]
    assert [one.again.lost for one in found] == expected(states)
    assert all(one.is_same for one in found)
    assert Counter(one["cut"] for one in there.played()) == Counter(one.name for one in states)
    assert {one["host"] for one in there.played()} == set(HOSTS)
    assert there.said == []


@pytest.mark.parametrize("what", ["killed", "program killed", "host error"])
def test_what_a_host_that_fails_was_at_is_done_by_the_other(run, request, what):
    there = request.getfixturevalue("started_there" if what == "program killed" else "there")
    states = run(b="", seconds=0.1)
    for one in states:
        play(one, b=what)
    found = there.examined(states)
    assert [one.again.lost for one in found] == expected(states)
    assert Counter(one["cut"] for one in there.played() if one["host"] == "a") == Counter(one.name for one in states)
    (said,) = [one for one in there.said if "other hosts repeat its work" in one]
    why = {"killed": "was killed; was there too little memory?", "program killed": "its dbdyno ended",
           "host error": "its disk is full"}  # fmt: skip
    assert said.startswith("b: ")
    # Its folder goes with it: what is just being copied there may be the first to miss it.
    assert why[what] in said or (what == "killed" and "No such file or directory" in said)
    if what == "program killed":  # as the guard there does, once the connection ends
        assert there.left()
        there.put_back("b")


def test_a_lost_host_s_states_are_done_by_the_other(run, there):
    states = run(seconds=0.4)
    means_lost = there.lost

    class Losing(dict):
        """Who is lost: b, as soon as it has begun one."""

        def items(self):
            if any(one["host"] == "b" for one in there.played()):
                means_lost["b"] = "b: has not answered for 4 s"
            return dict.items(means_lost)

    access = ExaminerAccess(there.hosts, Losing, there.said.append, PLAYED, there.environment)
    with on_hosts(there.into, states, access) as examining:
        found = list(examining(states))
    assert [one.again.lost for one in found] == expected(states)
    assert there.said == ["b: has not answered for 4 s; other hosts repeat its work"]
    wait_for(lambda: not there.left())


def test_a_state_that_can_not_be_examined_is_said_and_the_others_are_done(run, there):
    states = run()
    play(states[2], any="trial error")
    found = there.examined(states)
    assert [one.why for one in found] == ["", "", "the loop device was detached by another", "", "", ""]
    assert [one.is_same for one in found] == [True, True, False, True, True, True]


def test_another_outcome_is_no_failure(run, there):
    states = run()
    play(states[1], other=True)
    found = there.examined(states)
    assert [one.is_same for one in found] == [True, False, True, True, True, True]
    assert (found[1].again.outcome, found[1].again.cause) == ("server", "it ended")


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"PLAYED_LACKING": "FUSE: /dev/fuse is not there"}, "b: FUSE: /dev/fuse is not there"),
        ({"PLAYED_VERSION": "11.4"}, "b: server mariadb there is 11.4, the run's was 10.11"),
    ],
)
def test_a_host_that_can_not_take_part_is_left_out(run, there, monkeypatch, more, why):
    versions = reexamine.read_header
    monkeypatch.setattr(
        reexamine, "read_header", lambda path: replace(versions(path), versions={"server mariadb": "10.11"})
    )
    states, there.more = run(), {"b": more}
    found = there.examined(states)
    assert [one.again.lost for one in found] == expected(states)
    assert {one["host"] for one in there.played()} == {"a"}
    assert why in there.said[0]


def test_where_no_host_can_it_says_why_of_each(run, there):
    there.more = {host: {"PLAYED_LACKING": f"no FUSE on {host}"} for host in HOSTS}
    with pytest.raises(HostError, match="no host is left: a: no FUSE on a; b: no FUSE on b"):
        there.examined(run())


def test_a_host_on_which_another_run_goes_on_is_left_out(run, there):
    lock = there.folder / "b/run.lock"
    lock.write_text('{"pid": 1, "what": "a run"}')
    with subprocess.Popen(["flock", lock, "sleep", "60"], start_new_session=True) as other:
        try:
            wait_for(lambda: subprocess.run(["flock", "-n", lock, "true"], check=False).returncode)
            assert len(there.examined(run())) == 6
        finally:
            os.killpg(other.pid, signal.SIGKILL)
    assert {one["host"] for one in there.played()} == {"a"}
    assert "b: another run is going on here: a run (pid 1)" in there.said[0]


def test_interrupted_it_ends_on_every_host(run, started_there):
    there, states = started_there, run(seconds=3600)
    access = ExaminerAccess(there.hosts, dict, there.said.append, PLAYED, there.environment)
    with on_hosts(there.into, states, access) as examining:
        examining(states)
        wait_for(lambda: {one["host"] for one in there.played()} == set(HOSTS))
    wait_for(lambda: there.processes() == [])


def test_a_signal_ends_it_on_every_host(run, started_there):
    there, states = started_there, run(seconds=3600)
    access = ExaminerAccess(there.hosts, dict, there.said.append, PLAYED, there.environment)

    def begin_and_be_interrupted(examining):
        examining(states)
        wait_for(lambda: {one["host"] for one in there.played()} == set(HOSTS))
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)

    with pytest.raises(Interrupted), on_hosts(there.into, states, access) as examining:
        begin_and_be_interrupted(examining)
    wait_for(lambda: there.processes() == [])
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_state_that_can_not_be_read_here_is_said(run, there):
    states = run()
    shutil.rmtree(states[0].folder)
    (found,) = there.examined(states[:1])
    assert (found.again, found.is_damaged) == (None, True)
    assert "No such file" in found.why


def test_so_many_at_once_as_there_are_processors_and_memory():
    cores = len(os.sched_getaffinity(0))
    assert workers_for(GIB, 1000 * GIB) == cores
    assert workers_for(GIB, 6 * GIB) == min(cores, 2)
    assert workers_for(GIB, GIB) == 1


@pytest.mark.usefixtures("state")
def test_on_one_host_they_are_examined_one_after_the_other(run, into, monkeypatch):
    states = run()

    def again(folder, state):
        assert folder == into
        if state == states[1].folder:
            raise TrialError("no loop device")
        return states[0].cut

    monkeypatch.setattr(states_module, "examine_again", again)
    found = list(states_module.here(into)(states))
    assert [one.why for one in found] == ["", "no loop device", "", "", "", ""]


def test_workers_keep_what_their_contract_says_of_a_host_that_is_left_out(run, there, tmp_path):
    """Nothing is heard of it any more; the other goes on."""
    states = run()
    request = reexamine.ExaminationRequest
    header, study = ((there.into / name).read_text() for name in ("run.toml", "study.toml"))
    access = ExaminerAccess(there.hosts, dict, there.said.append, PLAYED, there.environment)
    packed = tmp_path / "packed"
    packed.mkdir()
    workers = reexamine.ProgramWorkers(access, lambda host: request(host, header, study, 1), {}, packed)
    with Spread(workers) as spread:
        assert workers.cores().keys() == set(HOSTS)
        workers.leave_out("b", "it is gone")
        assert workers.lost() == {"b": "it is gone"}
        assert workers.cores().keys() == {"a"}
        assert spread.submit(str(states[0].folder)).result(60).host == "a"
        assert not list(packed.iterdir())


# Kept states: what their treatment stands on is read from the run folder alone.


def test_what_a_treatment_stands_on_is_that_of_its_run(script, plan, into):
    made = plan(TIMED, CUTS, seed=5)
    perform(script, made, into)
    made.study.path.unlink()
    assert {id_: spec_of(into, id_) for id_ in made.specs} == made.specs
    assert set(made.specs) == {"t1", "t2", "control"}


def test_a_study_that_is_planned_otherwise_is_refused(script, plan, into, monkeypatch):
    perform(script, plan(TIMED, CUTS), into)
    monkeypatch.setattr("dbdyno.plan.plan.ID", "other")
    with pytest.raises(UserError, match=r"this dbdyno plans other treatments for study\.toml than those that were run"):
        spec_of(into, "t1")


def test_a_treatment_that_the_run_does_not_have_is_said(script, plan, into):
    perform(script, plan(TIMED, CUTS), into)
    with pytest.raises(UserError, match=r"the run has no treatment '\.\./x' whose power was cut"):
        spec_of(into, "../x")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("name", [".", "study.toml", "trials", "run.toml"])
def test_nothing_of_another_user_s_run_folder_is_raised(script, plan, into, name):
    perform(script, plan(TIMED, CUTS), into)
    os.chown(into / name, 12345, 12345)
    for ask in (plan_of, lambda folder: spec_of(folder, "t1"), lambda folder: examine_again(folder, folder / "c1")):
        with pytest.raises(UserError, match="belongs to another user"):
            ask(into)
    with pytest.raises(UserError, match="belongs to another user"), on_hosts(into, [], None):
        pass
