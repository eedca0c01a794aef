"""What can go wrong while a state is examined, on a real stack: an outcome with its cause, or a failure that is none.

A state is kept once, and examined again by each test, which meddles. Whatever happens is bounded, and the host is put
back.
"""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from contextlib import closing, contextmanager, suppress

import psutil
import pytest

from dbdyno.crash.examine import examine_kept
from dbdyno.crash.trial_cuts import read_kept
from dbdyno.errors import TrialError
from dbdyno.plan.plan import make_plan
from dbdyno.stack.layers import filesystem
from dbdyno.stack.undo_log import Journal
from dbdyno.store.cuts import SUMS, write_sums
from dbdyno.study.load import load_study
from dbdyno.system.files import sealed
from dbdyno.workload.ledger import Ledger
from tests.crash_studies import crash_study, ran
from tests.support import dbdyno, kill, start_dbdyno, wait_for, what_is_left

pytestmark = [pytest.mark.host, pytest.mark.timeout(400)]

LIMIT_SECONDS = 3.0  # of each step where one is to hang
PATIENCE_SECONDS = 60.0  # in which what hangs must have been given up, on a busy host
SUPERBLOCK, SUPERBLOCK_BYTES = 1024, 1024


@pytest.fixture(scope="module")
def kept(shared_state, tmp_path_factory):
    """A state that is kept, and the spec that it is examined by."""
    folder = tmp_path_factory.mktemp("kept")
    study = folder / "study.toml"
    study.write_text(crash_study("[0, 2]", 'cuts = 2\ncuts_per_run = 2\nkeep = "all"', seconds=1), encoding="utf-8")
    ran(study, folder / "run", shared_state)
    state = next((folder / "run").glob("trials/*/cuts/*"))
    return state, make_plan(load_study(study)).specs[read_kept(state).treatment]


@pytest.fixture
def examine(kept, shared_state, monkeypatch):
    """Examine the state, or another that is given, while ``meddle`` is done beside it; nothing may be left."""
    monkeypatch.setenv("DBDYNO_STATE_DIR", str(shared_state))

    def examined(meddle=None, *, folder=None, limit_seconds=60.0):
        crash = kept[1].crash.model_copy(update={"recovery_limit": limit_seconds})
        began = time.monotonic()
        with closing(Journal("a test")) as journal, beside(meddle):
            try:
                return examine_kept(folder or kept[0], kept[1].model_copy(update={"crash": crash}), journal)
            finally:
                assert time.monotonic() - began < PATIENCE_SECONDS

    yield examined
    monkeypatch.undo()  # what looks for what is left uses programs, too
    assert what_is_left(shared_state) == []


@contextmanager
def beside(meddle):
    """Do something on a thread, which goes on until it is done or the context ends."""
    ended = threading.Event()
    thread = threading.Thread(target=meddle, args=(ended,)) if meddle else None
    if thread:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        if thread:
            thread.join()


def child(program, *words):
    """The child of this process that runs a program with these words, or None."""
    for one in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            line = one.cmdline()
            if line and line[0].rpartition("/")[2] == program and set(words) <= set(line):
                return one.pid
    return None


def meddling(act):
    """Do ``act`` again and again until it says that it is done."""

    def meddle(ended):
        while not ended.wait(0.002) and not act():
            pass

    return meddle


def while_it_recovers(state, program, number):
    """Send a signal to a program once the server has begun to say what it does."""

    def act():
        logs = [path for path in state.glob("scratch/*/server/error.log") if path.stat().st_size]
        if logs and (pid := child(program)):
            os.kill(pid, number)
            return True
        return False

    return meddling(act)


@pytest.fixture
def before_it_is_read(monkeypatch):
    """Do something with the server's number once it has started, before the verifier connects."""

    def meddled(act):
        verify = Ledger.verify

        def harmed(self, endpoint, *given):
            act(endpoint.process.pid)
            return verify(self, endpoint, *given)

        monkeypatch.setattr(Ledger, "verify", harmed)

    return meddled


def fake(tmp_path, monkeypatch, program, script):
    """Put a program before the system's own."""
    (tmp_path / program).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")


def test_unharmed_it_is_what_it_was(examine, kept, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    was, place = read_kept(kept[0]).cut, os.readlink("/proc/self/ns/mnt")  # noqa: PTH115
    again = examine()
    assert (os.readlink("/proc/self/ns/mnt"), os.getcwd()) == (place, str(tmp_path))  # noqa: PTH109, PTH115
    assert (again.outcome, again.lost, again.acked) == (was.outcome, was.lost, was.acked)
    assert again.outcome == "tail"


@pytest.mark.drawn(5, group="hostile ends")
def test_a_filesystem_that_does_not_let_itself_be_mounted(examine, kept, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(kept[0], broken)
    (broken / SUMS).unlink()  # or it would be no state that a cut left
    with (broken / "base.img").open("r+b") as image:
        image.seek(SUPERBLOCK)
        image.write(bytes(SUPERBLOCK_BYTES))
    cut = examine(folder=broken)
    assert (cut.outcome, cut.acked, cut.lost) == ("filesystem", 0, 0)
    assert "mount -t ext4" in cut.cause
    assert "server" not in cut.recovery_s


@pytest.mark.drawn(5, group="hostile ends")
def test_a_mount_that_does_not_end(examine, monkeypatch, tmp_path):
    fake(tmp_path, monkeypatch, "mount", "exec sleep 600")
    cut = examine(limit_seconds=LIMIT_SECONDS)
    assert cut.outcome == "filesystem"
    assert "not done after 3 s" in cut.cause


@pytest.mark.drawn(5, group="hostile ends")
def test_a_checker_that_does_not_end_is_no_outcome(examine, monkeypatch, tmp_path):
    monkeypatch.setattr(filesystem, "CHECK_SECONDS", 1.0)
    fake(tmp_path, monkeypatch, "e2fsck", "exec sleep 600")
    with pytest.raises(TrialError, match=r"e2fsck -fn .*: not done after 1 s"):
        examine()


@pytest.mark.drawn(5, group="hostile ends")
def test_a_server_whose_recovery_hangs(examine, shared_state):
    cut = examine(while_it_recovers(shared_state, "mariadbd", signal.SIGSTOP), limit_seconds=LIMIT_SECONDS)
    assert (cut.outcome, cut.acked) == ("server", 0)
    assert "does not answer after 3 s" in cut.cause


@pytest.mark.drawn(5, group="hostile ends")
def test_a_server_that_dies_while_it_recovers(examine, shared_state):
    cut = examine(while_it_recovers(shared_state, "mariadbd", signal.SIGSEGV))
    assert cut.outcome == "server"
    assert "SIG" in cut.cause


@pytest.mark.drawn(5, group="hostile ends")
def test_a_server_that_another_kills_while_it_recovers_is_no_outcome(examine, shared_state):
    with pytest.raises(TrialError, match="another process killed the server while it recovered"):
        examine(while_it_recovers(shared_state, "mariadbd", signal.SIGKILL))


@pytest.mark.drawn(5, group="hostile ends")
def test_a_server_that_dies_of_being_read(examine, before_it_is_read):
    before_it_is_read(lambda server: os.kill(server, signal.SIGSEGV))
    cut = examine()
    assert cut.outcome == "server"
    assert "it starts, but its tables cannot be read" in cut.cause


@pytest.mark.drawn(5, group="hostile ends")
def test_a_server_that_another_kills_while_it_is_read_is_no_outcome(examine, before_it_is_read):
    before_it_is_read(lambda server: os.kill(server, signal.SIGKILL))
    with pytest.raises(TrialError, match="another process killed the server while it was read"):
        examine()


@pytest.mark.drawn(5, group="hostile ends")
def test_a_server_that_lets_no_verifier_in_is_a_clear_failure(examine, before_it_is_read):
    before_it_is_read(lambda server: os.kill(server, signal.SIGSTOP))
    with pytest.raises(TrialError, match="did not complete a login within 10 s"):
        examine()


@pytest.mark.drawn(5, group="hostile ends")
def test_an_emulated_disk_that_dies_while_the_server_recovers_is_no_outcome(examine, shared_state):
    with pytest.raises(TrialError, match="emulated disk"):
        examine(while_it_recovers(shared_state, "dbdyno-disk", signal.SIGKILL))


@pytest.mark.drawn(5, group="hostile ends")
def test_an_emulated_disk_that_dies_while_the_server_is_read_is_no_outcome(examine, before_it_is_read):
    before_it_is_read(lambda _: os.kill(child("dbdyno-disk"), signal.SIGKILL))
    with pytest.raises(TrialError, match="emulated disk"):
        examine()


def name_of(state):
    """What a kept state is called on the command line."""
    return f"{state.parents[1].name}/{state.name}"


def mounted(pid, state):
    """The folders below a state folder that a process sees a filesystem of the kernel's mounted at."""
    with open(f"/proc/{pid}/mounts", encoding="utf-8") as mounts:  # noqa: PTH123  (as the kernel shows it)
        lines = [line.split() for line in mounts]
    return [words[1] for words in lines if words[1].startswith(f"{state}/") and not words[2].startswith("fuse")]


def test_an_examination_that_is_killed_leaves_nothing_that_restore_does_not_remove(
    kept, shared_state, tmp_path, monkeypatch
):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    process = start_dbdyno("crash", "examine", kept[0].parents[3], name_of(kept[0]), state=shared_state)
    try:
        wait_for(lambda: [path for path in shared_state.glob("scratch/*/server/error.log") if path.stat().st_size])
        seen = mounted(process.pid, shared_state)
        assert [place.rpartition("/")[2] for place in seen] == ["mnt"]
        assert mounted(os.getpid(), shared_state) == [], "what may be of another's making is seen by nobody else"
    finally:
        kill(process)
    assert what_is_left(shared_state)
    restored = dbdyno("restore", state=shared_state)
    assert restored.returncode == 0, restored.stdout + restored.stderr
    assert what_is_left(shared_state) == []
    assert not list(shared_state.glob("scratch/*"))
    assert not list(tmp_path.iterdir())


@pytest.fixture
def copied(kept, tmp_path):
    """The run in a folder that a test may change, and the state in it."""
    run = tmp_path / "run"
    subprocess.run(["cp", "-a", "--sparse=always", kept[0].parents[3], run], check=True)
    return run, run / kept[0].relative_to(kept[0].parents[3])


@pytest.mark.parametrize("verb", ["examine", "keep"])
def test_nothing_of_another_user_s_run_is_raised(copied, shared_state, tmp_path, verb):
    run, state = copied
    os.chown(state / "base.img", 1, 1)
    out = [tmp_path / "out"] if verb == "keep" else []
    done = dbdyno("crash", verb, run, name_of(state), *out, state=shared_state)
    assert (done.returncode, "base.img belongs to another user (uid 1)" in done.stderr) == (2, True)
    assert what_is_left(shared_state) == []


@pytest.mark.parametrize("verb", ["examine", "keep"])
def test_a_state_that_is_not_as_it_was_kept_is_refused(copied, shared_state, tmp_path, verb):
    run, state = copied
    with (state / "base.img").open("r+b") as image:
        image.seek(SUPERBLOCK + 256)
        image.write(b"flip")
    out = [tmp_path / "out"] if verb == "keep" else []
    done = dbdyno("crash", verb, run, name_of(state), *out, state=shared_state)
    assert (done.returncode, "it has been changed since the state was kept" in done.stderr) == (2, True)
    if verb == "examine":  # with the others, which may be as they were
        each = dbdyno("crash", "examine", run, state=shared_state)
        assert (each.returncode, f"{name_of(state)}: not examined: " in each.stdout) == (1, True)


def test_a_state_that_says_another_treatment_is_refused_for_its_checksum(copied, shared_state):
    run, state = copied
    about = state / "about.json"
    changed = about.read_text(encoding="utf-8").replace('"treatment": "', '"treatment": "u')
    about.write_text(changed, encoding="utf-8")
    done = dbdyno("crash", "examine", run, name_of(state), state=shared_state)
    assert (done.returncode, "about.json: is damaged: it has been changed" in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("verb", ["examine", "keep"])
def test_a_state_of_another_size_than_its_disk_is_refused_though_its_checksums_fit(
    copied, shared_state, tmp_path, verb
):
    run, state = copied
    os.truncate(state / "base.img", 5000)
    (state / SUMS).unlink()
    header = state.parents[1] / "trial.json"
    trial = json.loads(header.read_text(encoding="utf-8"))
    for cut in trial["cuts"]:
        cut["kept_sha256"] = write_sums(state) if cut["id"] == state.name else cut["kept_sha256"]
    header.write_text(json.dumps(trial), encoding="utf-8")
    journal = run / "journal.jsonl"
    lines = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    for event in lines:
        del event["sum"]
        if event["event"] == "finished" and event["trial"] == header.parent.name:
            event["sha256"]["trial.json"] = hashlib.sha256(header.read_bytes()).hexdigest()
    journal.write_bytes(b"".join(map(sealed, lines)))
    out = [tmp_path / "out"] if verb == "keep" else []
    done = dbdyno("crash", verb, run, name_of(state), *out, state=shared_state)
    assert (done.returncode, "base.img has 5000 bytes, the disk " in done.stderr) == (2, True), done.stderr
    assert what_is_left(shared_state) == []
