"""Trials on a real disk, one after another: it stays the one that was proved, and each leaves it for the next."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from dbdyno.errors import HostError, TrialError
from dbdyno.filesystems import KINDS
from dbdyno.stack.emptiness import MIB
from dbdyno.stack.erase import Erasing, check_erasable
from dbdyno.stack.layer import raised
from dbdyno.stack.layers.device import Real
from dbdyno.stack.layers.filesystem import Filesystem
from dbdyno.stack.layers.scratch import scratch
from dbdyno.study.schema import FilesystemSection
from tests.contents import write
from tests.loops import attach, detach, lent_loop
from tests.sampled import KILLS, drawn
from tests.support import dbdyno

pytestmark = pytest.mark.host

SIZE, LARGE = 64 * MIB, 400 * MIB  # xfs takes none that is much smaller


@pytest.fixture
def file():
    with tempfile.TemporaryDirectory(prefix="dbdyno-test-", dir="/dev/shm") as folder:
        yield Path(folder) / "disk"


def stack(device, file, erasing, kind="ext4", mkfs=""):
    return [Real(device, str(file), erasing), Filesystem(KINDS[kind], FilesystemSection(mkfs=mkfs), format=True)]


@contextmanager
def trial(journal, *made, **how):
    with scratch(journal) as ground, raised(stack(*made, **how), ground) as stand:
        yield stand


def why(device, file):
    return check_erasable(device, str(file), Erasing())[1].why


def reattached(device, file):
    detach(device)
    attach(device, file)


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
def test_each_trial_leaves_the_disk_for_the_next(kind, file, journal):
    with lent_loop(file, LARGE) as device:
        erasing = Erasing()
        for _ in range(2):
            with trial(journal, device, file, erasing, kind=kind) as stand:
                (stand.directory / "file").write_bytes(os.urandom(MIB))
                sources = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
                assert f"- {kind} {device} " in sources, "mounted by its own name, not by a descriptor's"
            assert "it holds what a trial left" in why(device, file)


@pytest.mark.parametrize("exchange", ["another file", "the same file", "another file of the same path"])
def test_a_disk_that_was_exchanged_between_trials_is_refused(exchange, file, journal):
    with lent_loop(file, SIZE) as device:
        erasing = Erasing(frozenset({str(file)}))
        with trial(journal, device, file, erasing):
            pass
        now = file.with_name("other") if exchange == "another file" else file
        if exchange != "the same file":
            file.rename(file.with_name("before"))
            now.write_bytes(b"somebody's")
            os.truncate(now, SIZE)
        reattached(device, now)
        before = subprocess.check_output(["sha256sum", device])
        says = "not touched" if exchange == "another file" else "was detached or exchanged since this run"
        with pytest.raises(HostError, match=says), trial(journal, device, file, erasing):
            pass
        assert subprocess.check_output(["sha256sum", device]) == before


def test_during_a_trial_its_number_does_not_pass_to_another(file):
    with lent_loop(file, SIZE) as device, Erasing().holding(device, str(file)) as held:
        subprocess.run(["losetup", "--detach", device], check=True)
        other = file.with_name("other")
        other.write_bytes(b"somebody's" * MIB)
        done = subprocess.run(["losetup", device, other], capture_output=True, check=False)
        assert done.returncode, "it is still attached, as long as it is open"
        held.prove()


def test_what_is_written_to_it_between_raising_and_mkfs_is_found(file, journal):
    with lent_loop(file, SIZE) as device, scratch(journal) as ground, ExitStack() as lowering:
        real, filesystem = stack(device, file, Erasing())
        stand = lowering.enter_context(real.raised(ground))
        write(device, SIZE // 2, b"somebody's")
        with (
            pytest.raises(HostError, match=f"without a known signature at offset {SIZE // 2}"),
            filesystem.raised(stand),
        ):
            pass
        assert file.read_bytes() == bytes(SIZE // 2) + b"somebody's".ljust(SIZE // 2, b"\0")


def test_what_a_run_was_allowed_to_erase_it_erases_once(file, journal):
    with lent_loop(file, SIZE) as device:
        write(device, SIZE // 2, b"given up")
        erasing = Erasing(frozenset({str(file)}))
        with trial(journal, device, file, erasing):
            pass
        write(device, SIZE // 2, b"written during the run")
        with pytest.raises(HostError, match="since a trial of dbdyno's left it"), trial(journal, device, file, erasing):
            pass


def test_after_a_failed_mkfs_the_next_trial_goes_on(file, journal):
    with lent_loop(file, SIZE) as device:
        write(device, SIZE // 2, b"given up")
        erasing = Erasing(frozenset({str(file)}))
        with pytest.raises(TrialError, match="mkfs"), trial(journal, device, file, erasing, mkfs="-O no_such_feature"):
            pass
        assert "it holds what a trial left" in why(device, file)
        with trial(journal, device, file, erasing):
            pass


TRIALS = """
import sys
from pathlib import Path
from dbdyno.stack.erase import Erasing
from dbdyno.stack.undo_log import Journal
from dbdyno.stack.layer import raised
from dbdyno.stack.layers.scratch import scratch
from tests.host.test_real_disk import stack
device, file, kind = sys.argv[1:]
journal = Journal("trials on a real disk")
print("ready", flush=True)
erasing = Erasing()
while True:
    with scratch(journal) as ground, raised(stack(Path(device), file, erasing, kind=kind), ground) as stand:
        (stand.directory / "file").write_bytes(b"content" * 1000)
"""


def test_a_kill_at_any_moment_leaves_the_disk_for_the_next_run(file, state):
    rng = drawn("real disk")
    with lent_loop(file, LARGE) as device:
        for number in range(KILLS):
            kind = ("ext4", "xfs", "btrfs")[number % 3]
            command = [sys.executable, "-c", TRIALS, str(device), str(file), kind]
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
                assert process.stdout.readline() == "ready\n", process.stderr.read()
                time.sleep(rng.uniform(0.0, 3.0))
                assert process.poll() is None, process.stderr.read()
                os.kill(process.pid, signal.SIGKILL)
            done = dbdyno("restore", state=state)
            assert done.returncode == 0, done.stdout + done.stderr
            assert why(device, file), f"{kind}: {done.stdout}"
