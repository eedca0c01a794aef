"""Attached disks, filesystems and loads on them, for the tests that do harm to them."""

import functools
import json
import mmap
import os
import subprocess
import time
from bisect import bisect_left
from contextlib import contextmanager
from pathlib import Path

from dbdyno.filesystems import KINDS
from dbdyno.stack.short_start import without_mounts
from tests.support import dbdyno, wait_for

LONG = bool(os.environ.get("DBDYNO_TEST_LONG"))  # the tests that more time makes stronger take it
MKFS = {"ext4": ["mkfs.ext4", "-q"], "xfs": ["mkfs.xfs", "-q"], "btrfs": ["mkfs.btrfs", "-q"]}


class Disk:
    """The verbs on one attached disk."""

    def __init__(self, name, state, device):
        self.name, self.state, self.device = name, state, Path(device)

    @property
    def pid(self):
        return next(disk["pid"] for disk in json.loads(self._run("list", "--json")) if disk["name"] == self.name)

    def _run(self, *argv):
        done = dbdyno("disk", *argv, state=self.state)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def __call__(self, verb, *argv):
        """A verb that must succeed; ``fault`` takes the kind of fault as the verb's second word."""
        words = verb.split()
        said = self._run(*words, self.name, *argv)
        return json.loads(said) if "--json" in argv else said


@contextmanager
def attached(state, model, *more, size="64M", name="d"):
    """A disk; detached in the end, whatever was done to it."""
    done = dbdyno("disk", "attach", model, "--size", size, "--name", name, *more, state=state)
    assert done.returncode == 0, done.stderr
    try:
        yield Disk(name, state, done.stdout.strip())
    finally:
        detach = functools.partial(dbdyno, "disk", "detach", name, state=state)
        # A copy of a mount in another test's mount namespace goes with that test.
        gone = wait_for(lambda: done if " is in use " not in (done := detach()).stderr else None, every=1)
        assert gone.returncode == 0, gone.stderr


def direct(device, offset, byte=None):
    """Read or write 4 KiB past the page cache; returns the first byte, or the error as text."""
    page = mmap.mmap(-1, 4096)
    handle = os.open(device, os.O_RDWR | os.O_DIRECT)
    try:
        if byte is None:
            os.preadv(handle, [page], offset)
        else:
            page.write(bytes([byte]) * 4096)
            os.pwritev(handle, [page], offset)
    except OSError as error:
        return f"errno {error.errno}"
    finally:
        os.close(handle)
    return page[0]


def fio(device, **options):
    """The command line of fio on a device, with direct I/O."""
    given = {"name": "job", "filename": device, "direct": 1, "ioengine": "libaio", "bs": "4k", "iodepth": 16, **options}
    return ["fio", "--output-format=json", *(f"--{key}={value}" for key, value in given.items() if value is not None)]


def make_filesystem(kind, device):
    """A fresh filesystem; mkfs.btrfs would fail at the dead mount of a killed run beside it."""
    subprocess.run(without_mounts([*MKFS[kind], str(device)]), check=True, capture_output=True)


@contextmanager
def mounted(device, place, options="defaults"):
    """A mount, taken away in the end even if the device is dead."""
    place.mkdir(exist_ok=True)
    subprocess.run(["mount", "-o", options, str(device), str(place)], check=True)
    try:
        yield place
    finally:
        command = ["umount", str(place)]
        wait_for(lambda: subprocess.run(command, capture_output=True, check=False).returncode == 0, every=0.1)


def await_release(device):
    """Wait until no filesystem is on a device; a mount may live on in the mount namespace of another process."""

    def is_free():
        try:
            os.close(os.open(device, os.O_RDWR | os.O_EXCL))
        except OSError:
            return False
        return True

    wait_for(is_free, every=0.1)


def fsck(kind, device):
    """What a filesystem's checker says against it, once nothing has it mounted; empty if nothing."""
    await_release(device)
    done = subprocess.run([*KINDS[kind].check, str(device)], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"{done.returncode}: {done.stdout}{done.stderr}"


class Recorder:
    """Writes numbered records of 4 KiB to a file, each forced to the disk, until that fails."""

    PAGE = 4096
    pause_seconds = 0.005  # others write meanwhile, which is what a power cut takes

    def __init__(self, path, records):
        self.path, self.records, self.acknowledged = path, records, 0
        self.sent_ns, self.acknowledged_ns, self.is_ended = [], [], False

    def page(self, number):
        """The content of a record."""
        return number.to_bytes(8, "little") * (self.PAGE // 8)

    def run(self):
        """Write on; the records wrap around, so that old content is overwritten."""
        try:
            with self.path.open("r+b" if self.path.exists() else "w+b", buffering=0) as file:
                while not self.is_ended:
                    number = self.acknowledged + 1
                    self.sent_ns.append(time.monotonic_ns())
                    os.pwrite(file.fileno(), self.page(number), number % self.records * self.PAGE)
                    os.fdatasync(file.fileno())
                    self.acknowledged_ns.append(time.monotonic_ns())
                    self.acknowledged = number
                    time.sleep(self.pause_seconds)
        except OSError:
            pass

    def missing_records(self, cut):
        """Records acknowledged before a cut that are not there, nor overwritten by a later one.

        What is acknowledged after it proves nothing: btrfs calls an fsync done whose write failed meanwhile.
        """
        held = b""
        if self.path.exists():
            with self.path.open("rb") as file:
                held = file.read(self.records * self.PAGE)
        last = bisect_left(self.acknowledged_ns, cut.cut_ns)
        sent = bisect_left(self.sent_ns, cut.cut_end_ns)
        wanted = range(max(1, sent - self.records + 1), last + 1)
        at = {number: number % self.records * self.PAGE for number in wanted}
        return [number for number in wanted if held[at[number] : at[number] + self.PAGE] != self.page(number)]
