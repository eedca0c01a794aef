"""Undo logs on disk: who is alive is known by a lock, damage is named, and nothing is undone twice at once."""

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dbdyno.errors import HostError
from dbdyno.stack.restore import kept_aside, leftovers, replay, taken, unreadable
from dbdyno.stack.undo.actions import RemoveTree, RestoreSysfs
from dbdyno.stack.undo_log import Journal, ProcessIdentity, line_of, lines_of
from dbdyno.system import locks as ofd_lock
from dbdyno.system.state import journal_folder
from tests.support import with_own_mounts

DEAD = {"pid": 2**22 + 1, "started": "an-earlier-boot:1"}

HOLD = """
import sys
from dbdyno.stack.undo_log import Journal
from dbdyno.stack.undo.actions import RemoveTree
journal = Journal("a run")
journal.announce(RemoveTree(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def trees(state, count):
    """Make scratch folders to be removed."""
    paths = [state / "scratch" / f"tree{number}" for number in range(count)]
    for path in paths:
        path.mkdir(parents=True)
    return paths


def left_by_a_dead_process(paths, settle=()):
    """Write the undo log of a process that was killed; returns its path."""
    journal = Journal("a run", owner=ProcessIdentity(**DEAD))
    numbers = [journal.announce(RemoveTree(str(path))) for path in paths]
    for place in settle:
        journal.settle(numbers[place])
    os.close(journal.descriptor)
    return journal.path


def put_back():
    """Undo all that is an orphan's; returns whether it worked, and what was said."""
    said, done = [], []
    for one in leftovers():
        with taken(one.path, said.append) as held:
            done.append(held and replay(held, said.append))
    return done, said


@pytest.fixture
def holder(state):
    """Start processes that hold an undo log, and end them."""
    started = []

    def start(path, *prefix):
        process = subprocess.Popen(
            [*prefix, sys.executable, "-c", HOLD, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "DBDYNO_STATE_DIR": str(state)},
        )
        started.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_process_is_alive_as_long_as_it_holds_the_lock_whatever_its_number(state):
    [path] = trees(state, 1)
    journal = Journal(
        "a run", owner=ProcessIdentity(**DEAD)
    )  # a number that is nobody's here, as of another PID namespace
    journal.announce(RemoveTree(str(path)))
    assert [one.orphaned() for one in leftovers()] == [False]
    assert put_back() == ([None], [])
    assert path.exists()
    os.close(journal.descriptor)
    assert [one.orphaned() for one in leftovers()] == [True]
    assert put_back() == ([True], [f"remove {path}"])
    assert not path.exists()


def test_no_program_that_is_started_inherits_the_lock(state):
    journal = Journal("a run", owner=ProcessIdentity(**DEAD))
    child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        os.close(journal.descriptor)
        assert leftovers()[0].orphaned()
    finally:
        child.kill()
        child.wait()
    assert (state / "journals").is_dir()


def test_an_older_version_s_log_belongs_to_its_process_without_a_lock(state, tmp_path):
    [path] = trees(state, 1)
    folder = journal_folder()
    folder.mkdir()
    old = folder / "17-aaaaaaaaaaaa.jsonl"
    child = subprocess.Popen(["sleep", "60"])
    owner = ProcessIdentity.of(child.pid)
    undo = {"undo": 1, "kind": "RemoveTree", "path": str(path)}
    entries = [{"owner": vars(owner), "what": "an old run"}, {"undo": 7, "kind": "RemoveTree", "path": str(tmp_path)},
               {"done": 7}, undo]  # fmt: skip
    old.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    assert put_back() == ([None], [])
    child.kill()
    child.wait()
    assert put_back() == ([True], [f"remove {path}"])
    assert not old.exists()


def test_an_heir_owns_nothing_before_it_is_handed_over_and_all_of_it_afterwards(state):
    [path] = trees(state, 1)
    journal = Journal("disk attach", owner=ProcessIdentity(**DEAD))
    journal.announce(RemoveTree(str(path)))
    heir = journal.for_heir()
    child = subprocess.Popen(["sleep", "60"], pass_fds=[heir])
    try:
        kept = journal.path.read_bytes()
        os.close(heir)
        os.close(os.dup(journal.descriptor))
        assert not leftovers()[0].orphaned()
        journal._heirs = None
        journal.hand_over(ProcessIdentity.of(child.pid))
        assert not leftovers()[0].orphaned()
        handed = journal.path.read_bytes()
        journal.path.write_bytes(kept)  # as if it had been killed before
        assert leftovers()[0].orphaned()
        journal.path.write_bytes(handed.replace(b'"pid"', b'"pie"'))  # it can't be read whose it is
        assert not leftovers()[0].orphaned()
        journal.path.write_bytes(handed)
    finally:
        child.kill()
        child.wait()
    assert put_back() == ([True], [f"remove {path}"])


@pytest.mark.skipif(os.geteuid() != 0, reason="making a PID namespace takes root")
def test_a_run_in_another_pid_namespace_is_alive_from_both_sides(state, holder):
    inside, outside = trees(state, 2)
    namespace = with_own_mounts('exec "$@"', options=("--pid", "--fork", "--mount-proc", "--kill-child"))
    hidden, seen = holder(inside, *namespace), holder(outside)
    restore = [sys.executable, "-m", "dbdyno.cli.main", "restore"]
    for prefix in ([], namespace):
        done = subprocess.run([*prefix, *restore], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert sorted(line[:10] for line in done.stdout.splitlines()) == ["left alone", "left alone", "nothing to"]
        assert "in another PID namespace" in done.stdout
    assert inside.exists()
    assert outside.exists()
    for process in (hidden, seen):
        process.kill()
        process.communicate()
    done = subprocess.run(restore, capture_output=True, text=True, check=False)
    assert (done.returncode, inside.exists(), outside.exists()) == (0, False, False), done.stdout


def test_restores_at_once_undo_each_thing_once(state):
    paths = trees(state, 12)
    for path in paths:
        for number in range(50):
            (path / f"error{number}.log").touch()
        left_by_a_dead_process([path])
    restore = [sys.executable, "-m", "dbdyno.cli.main", "restore"]
    started = [subprocess.Popen(restore, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    said = [process.communicate() for process in started]
    assert [process.returncode for process in started] == [0] * 4, said
    lines = [line for out, _ in said for line in out.splitlines()]
    assert sorted(line for line in lines if line.startswith("  remove")) == sorted(f"  remove {path}" for path in paths)
    assert not list((state / "journals").iterdir())


def test_a_second_restore_waits_for_the_first(state):
    [path] = trees(state, 1)
    log = left_by_a_dead_process([path])
    told, second = threading.Event(), []
    with taken(log, str) as held:
        thread = threading.Thread(target=lambda: second.append(_taken_by(log, told)))
        thread.start()
        assert told.wait(60)
        assert replay(held, str)
    thread.join()
    assert second == [None]


def _taken_by(log, told):
    with taken(log, lambda text: told.set() if text.startswith("waiting: another dbdyno") else None) as held:
        return held


def test_a_log_that_is_only_just_made_is_not_taken_for_a_dead_one_s(state, monkeypatch):
    real, seen = ofd_lock.take, []

    def take(handle, byte, *, wait=False):
        if wait and not seen:  # a restore comes between the making of the log and its lock
            seen.extend(list(journal_folder().iterdir()))
            monkeypatch.setattr(ofd_lock, "take", real)
            seen[0].rename(seen[0].with_name(f"{2**22 + 1}-aaaaaaaaaaaa.jsonl"))
            assert leftovers() == []
            assert not list(journal_folder().iterdir())
        return real(handle, byte, wait=wait)

    monkeypatch.setattr(ofd_lock, "take", take)
    journal = Journal("a run")
    assert len(seen) == 1
    assert [one.path for one in leftovers()] == [journal.path]
    journal.close()
    assert (state / "journals").is_dir()


@pytest.mark.long
def test_every_flipped_bit_is_found_and_all_the_rest_is_undone(state):
    paths = trees(state, 3)
    log = left_by_a_dead_process(paths, settle=[2])
    whole = log.read_bytes()
    assert whole.count(b"\n") == 5
    wanted = {str(path) for path in paths[:2]}
    for place in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << place % 8
        log.write_bytes(flipped)
        [found] = leftovers()
        line = whole.count(b"\n", 0, place // 8) + 1
        assert any(said.startswith(f"{log}:{line}: ") for said in found.damage), (place, found.damage)
        undos = {undo.path for _, undo in found.undos}
        lost = {2: {str(paths[0])}, 3: {str(paths[1])}}.get(line, set())
        last = {str(paths[2])} if line == 5 else set()  # undone or not: undoing it again does no harm
        assert wanted - lost <= undos <= wanted | last, place


@pytest.mark.parametrize("line", range(1, 6))
def test_a_damaged_log_is_undone_as_far_as_it_goes_and_kept(state, line):
    paths = trees(state, 3)
    log = left_by_a_dead_process(paths, settle=[2])
    lines = log.read_bytes().splitlines(keepends=True)
    lines[line - 1] = lines[line - 1].replace(b'"', b"'", 1)
    log.write_bytes(b"".join(lines))
    done, said = put_back()
    assert done == [False]
    assert said[-2] == f"{log}:{line}: this line is damaged"
    assert [path.exists() for path in paths] == [line == 2, line == 3, False]
    assert kept_aside() == [Path(f"{log}.damaged")]
    assert said[-1].startswith(f"what could be read is undone; the log is kept as {log}.damaged: ")
    assert put_back() == ([], [])


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"17", b"{}", b"[]", b"\xff", b"\0" * 512, b"[" * 100_000, line_of({"undo": 2}),
               line_of({"undo": 2, "kind": "Unheard", "open": [1, 2]}), b'{"undo": 2, "kind": "Unheard"}'],
)  # fmt: skip
def test_what_is_no_line_is_named_and_keeps_nothing_from_being_undone(state, damage):
    first, second = trees(state, 2)
    log = left_by_a_dead_process([first])
    log.write_bytes(log.read_bytes() + damage.rstrip(b"\n") + b"\n")
    left_by_a_dead_process([second])
    done, said = put_back()
    assert sorted(done) == [False, True]
    assert any(line.startswith(f"{log}") for line in said)
    assert not first.exists()
    assert not second.exists()


@pytest.mark.parametrize("content", [b"\0" * 4096, b"{", b"garbage", b"garbage\n"])
def test_a_log_of_which_nothing_can_be_read_is_kept(state, content):
    folder = journal_folder()
    folder.mkdir()
    log = folder / f"{2**22 + 1}-aaaaaaaaaaaa.jsonl"
    log.write_bytes(content)
    done, _ = put_back()
    unbegun = content == b"{"
    assert done == ([] if unbegun else [False])
    assert bool(kept_aside()) is not unbegun
    assert not log.exists()
    assert (state / "journals").is_dir()


def test_a_second_try_finds_no_setting_that_was_put_back_by_the_first(state, tmp_path):
    knob, stuck = tmp_path / "knob", state / "scratch" / "stuck"
    knob.write_text("none")
    stuck.parent.mkdir(parents=True)
    stuck.symlink_to(state)
    journal = Journal("a run", owner=ProcessIdentity(**DEAD))
    journal.announce(RemoveTree(str(stuck)))
    journal.announce(RestoreSysfs(str(knob), "mq-deadline"))
    os.close(journal.descriptor)
    journal.path.write_bytes(journal.path.read_bytes() + b'{"undo": 3, "ki')  # torn
    assert put_back()[0] == [False]
    assert knob.read_text() == "mq-deadline"
    knob.write_text("bfq")  # by somebody else
    stuck.unlink()
    assert put_back()[0] == [True]
    assert knob.read_text() == "bfq"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_log_of_another_user_is_not_undone(state):
    [path] = trees(state, 1)
    log = left_by_a_dead_process([path])
    os.chown(log, 65534, -1)
    assert leftovers() == []
    assert unreadable() == [f"{log} is another user's; it is left alone"]
    os.chown(log, 0, -1)
    log.chmod(0o666)
    assert unreadable() == [f"{log} can be written by others; it is left alone"]
    os.chown(log.parent, 65534, -1)
    assert (leftovers(), unreadable()) == ([], [f"{log.parent} is another user's; it is left alone"])


def test_in_a_state_folder_that_others_can_write_to_nothing_is_undone(state):
    [path] = trees(state, 1)
    left_by_a_dead_process([path])
    state.chmod(0o777)
    with pytest.raises(HostError, match="must be yours and writable by no one else"):
        leftovers()
    assert path.exists()


@pytest.mark.parametrize("kind", ["link", "broken link", "link to the folder", "fifo", "folder"])
def test_no_link_is_followed_and_nothing_but_a_file_is_read(state, tmp_path, kind):
    [path] = trees(state, 1)
    log = left_by_a_dead_process([path])
    elsewhere = tmp_path / "elsewhere"
    if kind == "link to the folder":
        shutil.move(log.parent, elsewhere)
        log.parent.symlink_to(elsewhere)
        wanted = f"{log.parent} is not a folder; it is left alone"
    else:
        shutil.move(log, elsewhere)
        {
            "link": lambda: log.symlink_to(elsewhere),
            "broken link": lambda: log.symlink_to(tmp_path / "nowhere"),
            "fifo": lambda: os.mkfifo(log),
            "folder": log.mkdir,
        }[kind]()
        reason = {"fifo": "is not a file", "folder": "can't be opened (Is a directory)"}.get(kind, "is a link")
        wanted = f"{log} {reason}; it is left alone"
    assert (leftovers(), unreadable()) == ([], [wanted])
    assert path.exists()


def test_lines_are_read_back_as_they_were_written():
    entries = [{"owner": {"pid": 1, "started": "é\u2028"}, "open": []}, {"done": 3, "open": [1]}]
    for sealed in (True, False):
        written = b"".join(line_of(dict(entry), sealed=sealed) for entry in entries[:1])
        assert lines_of(written).entries == entries[:1]
        assert lines_of(written).sealed is sealed
