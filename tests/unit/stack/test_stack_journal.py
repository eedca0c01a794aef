"""What undoes a change is on disk before the change is made, and is run newest first."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from dbdyno.errors import HostError
from dbdyno.stack.restore import leftovers, replay
from dbdyno.stack.undo import actions as undo_module
from dbdyno.stack.undo.actions import UNDOS, RemoveTree, RestoreSysfs
from dbdyno.stack.undo.kind import Undo
from dbdyno.stack.undo_log import Journal, ProcessIdentity, line_of, lines_of
from dbdyno.system.state import journal_folder


@dataclass(frozen=True)
class Recorded(Undo):
    """Writes its name down when applied; the first ``stubborn`` times it fails."""

    name: str
    into: str
    stubborn: bool = False

    def apply(self):
        if self.stubborn and not Path(f"{self.into}.mended").exists():
            raise HostError(f"{self.name} is stuck")
        with Path(self.into).open("a") as record:
            record.write(self.name)
        return True

    def describe(self):
        return f"undo {self.name}"


@pytest.fixture(autouse=True)
def _known(monkeypatch):
    monkeypatch.setitem(UNDOS, "Recorded", Recorded)


@pytest.fixture
def undone(tmp_path):
    """Make undos, and tell in which order they were applied."""
    path = tmp_path / "undone"

    class Made:
        def __call__(self, name, *, stubborn=False):
            return Recorded(name, str(path), stubborn)

        def mend(self):
            Path(f"{path}.mended").touch()

        def __str__(self):
            return path.read_text() if path.exists() else ""

    return Made()


@pytest.fixture
def sleeper():
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def entries(journal):
    return lines_of(journal.path.read_bytes()).entries


def disown(journal):
    """Make the journal look as if its process had been killed."""
    owner = {"owner": {"pid": 2**22 + 1, "started": "1"}, "what": "run study.toml", "open": []}
    lines = journal.path.read_bytes().splitlines(keepends=True)
    journal.path.write_bytes(line_of(owner) + b"".join(lines[1:]))
    os.close(journal.descriptor)
    [found] = leftovers()
    return found


def test_announced_is_on_disk(undone, monkeypatch):
    synced = []
    real = os.fsync

    def fsync(handle):
        real(handle)
        synced.append(os.fstat(handle).st_size)

    monkeypatch.setattr(os, "fsync", fsync)
    journal = Journal("test")
    number = journal.announce(undone("a"))
    assert entries(journal)[1] == {
        "undo": number, "kind": "Recorded", "name": "a", "into": undone("a").into, "stubborn": False, "open": [number]
    }  # fmt: skip
    assert synced[-1] == journal.path.stat().st_size
    assert str(undone) == ""
    journal.settle(number)
    assert str(undone) == "a"
    assert entries(journal)[2] == {"done": number, "open": []}
    assert synced[-1] == journal.path.stat().st_size


def test_what_is_undone_is_undone_before_it_is_crossed_out(undone):
    journal = Journal("test")
    number = journal.announce(undone("a", stubborn=True))
    with pytest.raises(HostError, match="a is stuck"):
        journal.settle(number)
    assert [undo for _, undo in leftovers()[0].undos] == [undone("a", stubborn=True)]
    undone.mend()
    journal.settle(number)
    assert leftovers()[0].undos == []


def test_what_stands_on_it_is_undone_first_though_its_own_undoing_was_lost(undone):
    journal = Journal("test")
    first = journal.announce(undone("a"))
    journal.announce(undone("b"))
    journal.settle(first)
    assert str(undone) == "ba"
    assert leftovers()[0].undos == []


def test_undoing_lowers_in_reverse_whatever_happened(undone):
    journal = Journal("test")

    def fail():
        with journal.undoing(undone("a")), journal.undoing(undone("b")):
            assert str(undone) == ""
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert str(undone) == "ba"
    journal.close()
    assert not journal.path.exists()


def test_one_that_is_stuck_keeps_no_other_from_being_undone_and_its_journal_stays(undone):
    journal = Journal("test")

    def fail():
        with journal.undoing(undone("a")), journal.undoing(undone("b", stubborn=True)), journal.undoing(undone("c")):
            pass

    with pytest.raises(HostError, match="b is stuck"):
        fail()
    assert str(undone) == "ca"
    journal.close()
    assert [undo.name for _, undo in leftovers()[0].undos] == ["b"]


def test_replay_is_newest_first_and_leaves_out_what_was_undone(undone):
    journal = Journal("run study.toml")
    numbers = [journal.announce(undone(name)) for name in "abcd"]
    journal.settle(numbers[3])
    found = disown(journal)
    assert (found.orphaned(), found.what) == (True, "run study.toml")
    said = []
    assert replay(found, said.append)
    assert str(undone) == "dcba"
    assert said == ["undo c", "undo b", "undo a"]
    assert leftovers() == []


def test_replay_goes_on_past_what_is_stuck_and_can_be_tried_again(undone):
    journal = Journal("test")
    for name in "abc":
        journal.announce(undone(name, stubborn=name == "b"))
    said = []
    assert not replay(disown(journal), said.append)
    assert str(undone) == "ca"
    assert said == ["undo c", "could not undo b: b is stuck", "undo a"]
    undone.mend()
    assert replay(leftovers()[0], said.append)
    assert leftovers() == []


def test_what_had_already_been_undone_is_not_spoken_of(tmp_path):
    journal = Journal("test")
    journal.announce(RemoveTree(str(tmp_path / "gone")))
    said = []
    assert replay(disown(journal), said.append)
    assert said == []


def test_a_line_torn_by_a_kill_is_forgiven_wherever_it_is_torn(undone):
    journal = Journal("test")
    journal.announce(undone("a"))
    whole = journal.path.read_bytes()
    journal.announce(undone("b"))
    last = journal.path.read_bytes()[len(whole) :]
    for length in range(len(last)):
        journal.path.write_bytes(whole + last[:length])
        [found] = leftovers()
        whether_torn_before_its_end = ["b"] if length == len(last) - 1 else []
        assert [undo.name for _, undo in found.undos] == ["a", *whether_torn_before_its_end]
        assert found.damage == []


def test_a_process_that_runs_is_no_orphan_and_keeps_its_journal(undone):
    journal = Journal("test")
    journal.announce(undone("a"))
    [found] = leftovers()
    assert not found.orphaned()
    assert found.owner.pid == os.getpid()


def test_the_journal_of_a_killed_process_is_an_orphan(state):
    code = "import os\nfrom dbdyno.stack.undo_log import Journal\nfrom dbdyno.stack.undo.actions import RemoveTree\n"
    code += "Journal('was killed').announce(RemoveTree('/nowhere'))\nos.kill(os.getpid(), 9)\n"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    [found] = leftovers()
    assert (found.orphaned(), found.what) == (True, "was killed")
    assert [undo for _, undo in found.undos] == [RemoveTree("/nowhere")]
    assert found.path.parent == state / "journals"


def test_a_later_process_with_the_same_number_is_another(sleeper):
    real = ProcessIdentity.of(sleeper.pid)
    assert real.alive()
    boot, ticks = real.started.split(":")
    assert not ProcessIdentity(sleeper.pid, f"{boot}:{int(ticks) - 1}").alive()
    assert not ProcessIdentity(sleeper.pid, f"an-earlier-boot:{ticks}").alive()


def test_a_zombie_does_not_run():
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert ProcessIdentity.of(process.pid) is None
    process.wait()
    assert ProcessIdentity.of(process.pid) is None


def test_a_name_that_looks_like_the_end_of_a_name_deceives_nobody(tmp_path):
    program = tmp_path / "a) R 1 (b"
    program.symlink_to("/bin/sleep")
    process = subprocess.Popen([str(program), "60"])
    try:
        assert ProcessIdentity.of(process.pid).alive()
        started = [int(ProcessIdentity.of(pid).started.partition(":")[2]) for pid in (1, process.pid)]
        assert started[0] < started[1]
    finally:
        process.kill()
        process.wait()


def test_handed_over_it_belongs_to_the_other_process(undone, sleeper):
    journal = Journal("disk attach hdd-7200")
    journal.announce(undone("a"))
    journal.hand_over(ProcessIdentity.of(sleeper.pid))
    [found] = leftovers()
    assert (found.owner.pid, found.what, found.orphaned()) == (sleeper.pid, "disk attach hdd-7200", False)
    sleeper.kill()
    sleeper.wait()
    [found] = leftovers()
    assert found.orphaned()
    assert replay(found, lambda _: None)
    assert str(undone) == "a"


def test_leftovers_come_oldest_first(undone):
    journals = [Journal(name) for name in ("first", "second", "third")]
    for age, journal in enumerate(journals):
        journal.announce(undone("a"))
        os.utime(journal.path, (1000 + age, 1000 + age))
    assert [found.what for found in leftovers()] == ["first", "second", "third"]


def test_no_journal_no_leftover(state):
    assert leftovers() == []
    assert not (state / "journals").exists()


def test_a_journal_without_a_first_line_is_left_to_a_process_that_runs():
    folder = journal_folder()
    folder.mkdir()
    mine, dead = folder / f"{os.getpid()}-aaaaaaaaaaaa.jsonl", folder / f"{2**22 + 1}-bbbbbbbbbbbb.jsonl"
    for path in (mine, dead):
        path.write_text('{"owner": {"pi')
    assert leftovers() == []
    assert mine.exists()
    assert not dead.exists()


def test_every_undo_can_be_written_down_and_read_back():
    examples = {name: kind for name, kind in vars(undo_module).items() if isinstance(kind, type)}
    kinds = {name for name, kind in examples.items() if issubclass(kind, Undo) and kind is not Undo}
    assert kinds <= UNDOS.keys()
    journal = Journal("test")
    made = [RestoreSysfs("/sys/x", "1"), RemoveTree("/x"), UNDOS["EndProcesses"]("token", "it", grace_seconds=2.5)]
    made += [UNDOS["Unmount"]("/m n"), UNDOS["DetachLoops"]("/é"), UNDOS["RemoveCgroup"]("/g")]
    made += [UNDOS["SetInstantMode"]("/c"), UNDOS["WipeOurs"]("/dev/sdz", "a-uuid"), UNDOS["RemoveTraceInstance"]("t")]
    made += [UNDOS["MarkHalfMade"]("/dev/sdz", "a-uuid", "7", "00ff", "1234")]
    server = ("mysql://me@db1/bench", None)
    made += [UNDOS["SetGlobal"](*server, "long_query_time", 2.5), UNDOS["DropExternalTables"](*server, "token")]
    made += [UNDOS["RemoveDiskFile"]("/srv/dbdyno-00ff.img")]
    made += [UNDOS["DropAccount"](*server, "dbdyno_1", "::1")]
    made += [UNDOS["StopBcache"](["/dev/loop3", "/dev/loop4"])]
    made += [UNDOS["StopArray"](["/dev/loop3", "/dev/loop4"]), UNDOS["RemoveMappings"]("dbdyno-0f-")]
    for undo in made:
        journal.announce(undo)
    assert [undo for _, undo in leftovers()[0].undos] == made
    assert {type(undo).__name__ for undo in made} == kinds
