"""A lost host, whatever was lost of it, is noticed within 5 s, and nothing is left of the study on any host."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from dbdyno.stack.undo_log import ProcessIdentity
from tests import sampled
from tests.disks import LONG
from tests.documents import ROOT
from tests.lab import lab, lab_lacking
from tests.support import dbdyno, wait_for

NOTICED_SECONDS = 60.0  # on a busy host
PUT_BACK_SECONDS = 60  # on a busy machine; an agent that is cut off waits 10 s for a beat
LET_GO_SECONDS = 60
PARTS, KILLS = (20, 5) if LONG else (1, 2)  # so many times so many kills
STARTING_SECONDS = 6.0  # what connecting takes here, about: kills fall into it, too

pytestmark = [
    pytest.mark.host,
    pytest.mark.long,
    pytest.mark.timeout(900 + 120 * KILLS),  # of each test
    pytest.mark.skipif(bool(lab_lacking()), reason=lab_lacking()),
]


class Desk:
    """The machine where a study is begun."""

    def __init__(self, made):
        self.lab, self.state, self.inventory = made, made.folder / "here", made.inventory()
        self.environment = {**os.environ, "DBDYNO_STATE_DIR": str(self.state)}

    def up(self):
        done = dbdyno("hosts", "up", self.inventory, state=self.state)
        assert done.returncode == 0, done.stderr

    def study(self, folder, *words):
        """Begin to work on all hosts; its process, and the file of what it says."""
        said = folder / "said"
        with said.open("wb") as out, (folder / "errors").open("wb") as errors:
            command = [sys.executable, "-m", "tests.coordinator", self.inventory, folder, *words]
            return subprocess.Popen(command, cwd=ROOT, env=self.environment, stdout=out, stderr=errors), said

    def state_of(self, host):
        return self.lab.folder / f"there/hosts/lab.{host}/state"

    def processes(self, words, environment):
        """The processes whose command line holds the words and whose environment the other."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                held = environment.encode() in (folder / "environ").read_bytes()
                if held and words in (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"):
                    found.append(int(folder.name))
        return found

    def left(self):
        """Undo logs, and folders, of work on any host."""
        logs = [log for host in self.lab.names for log in (self.state_of(host) / "journals").glob("*")]
        folders = [path for host in self.lab.names for path in (self.state_of(host) / "scratch").glob("*")]
        return logs + folders


def content_of(path):
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def killed(*pids):
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


# What is lost, and how.
LOST = {
    "sshd": lambda desk, _: desk.lab.silence("c1"),
    "the network": lambda desk, _: desk.lab.plug("c1", "down"),
    "the agent": lambda desk, _: killed(*agent(desk, "c1")),
    "ssh": lambda _, study: killed(*ssh_process_of(study, "c1")),
    "the coordinator": lambda _, study: killed(study.pid),
}
MENDS = {"sshd": lambda desk: desk.lab.listen("c1"), "the network": lambda desk: desk.lab.plug("c1", "up")}


def agent(desk, host):
    """The agent of a study, once it is there."""
    wait_for(lambda: desk.processes("dbdyno.hosts.agent", str(desk.state_of(host))))
    return desk.processes("dbdyno.hosts.agent", str(desk.state_of(host)))


def ssh_process_of(study, host):
    """The same, once it has begun: on a busy machine a moment before that would kill nothing."""
    wait_for(lambda: ssh_of(study, host))
    return ssh_of(study, host)


def ssh_of(study, host):
    """The ssh by which a study reaches a host."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            if words[0] == b"ssh" and host.encode() in words and parent == str(study.pid):
                found.append(int(folder.name))
    return found


@pytest.fixture(scope="module")
def desk():
    with lab("c1", "c2") as made:
        found = Desk(made)
        found.up()
        try:
            yield found
        finally:
            done = dbdyno("hosts", "down", found.inventory, state=found.state)
        assert done.returncode == 0, done.stderr


def lines(said):
    return {one["word"]: one for one in map(json.loads, said.read_text().splitlines())}


def nothing_is_left(desk, study, folder):
    """Wait until all has ended; what is left then, of processes and on disks."""
    study.wait(LET_GO_SECONDS)
    wait_for(lambda: not desk.left(), seconds=PUT_BACK_SECONDS)
    started = [int(pid) for host in desk.lab.names for pid in content_of(folder / host).split()]
    wait_for(lambda: not [pid for pid in started if ProcessIdentity.of(pid)], seconds=PUT_BACK_SECONDS)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("what", LOST)
def test_it_is_noticed_in_time_and_nothing_is_left(desk, what, tmp_path):
    study, said = desk.study(tmp_path)
    wait_for(lambda: "working" in lines(said) and (tmp_path / "c1").exists() and (tmp_path / "c2").exists())
    before = time.monotonic()
    LOST[what](desk, study)
    try:
        nothing_is_left(desk, study, tmp_path)
    finally:
        MENDS.get(what, lambda _: None)(desk)
    found = lines(said)
    if what == "the coordinator":
        assert set(found) == {"connected", "working"}
        return
    assert found["lost"]["at"] - before <= NOTICED_SECONDS
    assert set(found["lost"]["why"]) == {"c1"}
    assert "left" in found, "who is left with the other hosts goes on, and ends in order"


@pytest.mark.drawn(1)
@pytest.mark.parametrize("what", ["sshd", "the network", "the agent", "ssh"])
def test_it_is_worked_on_again_once_it_is_there(desk, what, tmp_path):
    """Nobody types anything."""
    study, said = desk.study(tmp_path, "again")
    wait_for(lambda: "working" in lines(said) and (tmp_path / "c1").exists() and (tmp_path / "c2").exists())
    LOST[what](desk, study)
    wait_for(lambda: "lost" in lines(said))
    MENDS.get(what, lambda _: None)(desk)
    nothing_is_left(desk, study, tmp_path)
    found = lines(said)
    assert set(found) == {"connected", "working", "lost", "back", "left"}, found


@pytest.mark.parametrize("part", range(PARTS))
def test_kills_at_random_moments_leave_nothing(desk, part, tmp_path):
    """Also while it is being connected to; with DBDYNO_TEST_LONG a hundred of them."""
    rng = sampled.drawn(f"kills over hosts, {part}")
    for number in range(KILLS):
        folder = tmp_path / str(number)
        folder.mkdir()
        what, after = rng.choice(list(LOST)), rng.uniform(0, 2 * STARTING_SECONDS)
        study, said = desk.study(folder)
        time.sleep(after)
        at = f"{what} after {after:.3f} s"
        LOST[what](desk, study)
        try:
            nothing_is_left(desk, study, folder)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            raise AssertionError(f"{at}: {lines(said)}, {desk.left()}") from error
        finally:
            killed(study.pid)
            MENDS.get(what, lambda _: None)(desk)
        found = lines(said)
        assert what == "the coordinator" or found.keys() & {"lost", "error"}, f"{at}: {found}"
        assert (folder / "errors").read_text() == "", at


def test_restore_of_hosts_ends_what_a_killed_guard_has_left(desk, tmp_path):
    study, said = desk.study(tmp_path)
    wait_for(lambda: "working" in lines(said) and (tmp_path / "c1").exists())
    restore = ["restore", "--hosts", desk.inventory, "--json"]
    going_on = json.loads(dbdyno(*restore, state=desk.state).stdout)["hosts"]
    assert [(one["undone"], len(one["left_alone"])) for one in going_on] == [([], 1), ([], 1)]
    killed(*desk.processes("dbdyno.hosts.guard", str(desk.state_of("c1"))))
    killed(study.pid)
    study.wait()
    wait_for(lambda: not [one for one in desk.left() if "lab.c2" in str(one)], seconds=PUT_BACK_SECONDS)
    done = json.loads(dbdyno(*restore, state=desk.state).stdout)
    assert {one["name"]: len(one["undone"]) > 0 for one in done["hosts"]} == {"c1": True, "c2": False}
    nothing_is_left(desk, study, tmp_path)
    desk.lab.silence("c2")
    try:
        said = dbdyno("restore", "--hosts", desk.inventory, state=desk.state)
    finally:
        desk.lab.listen("c2")
    assert (said.returncode, "\ndbdyno: c2: " in f"\n{said.stderr}") == (1, True)
