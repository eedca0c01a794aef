"""Loop devices that stand for disks of others, by numbers of a test's own.

What asks for a free number gets the lowest, and may get one that was detached a moment ago. So a test that looks at a
device after it was detached, or attaches it again, takes one that no other is given.
"""

import random
import subprocess
from contextlib import contextmanager
from pathlib import Path

from dbdyno.stack.loop import remove_loop
from tests.support import wait_for

NUMBERS = range(10_000, 1_000_000)  # a minor number has 20 bits
_random = random.SystemRandom()  # not the generator that a test may have seeded


def attach(device, file, *options):
    """Attach a file, or another device, to a loop device that is not in use."""
    subprocess.run(["losetup", *options, str(device), str(file)], check=True, capture_output=True)


def detach(device):
    """Detach a loop device and remove it, once another's look at all block devices has closed it."""
    subprocess.run(["losetup", "--detach", str(device)], check=False, capture_output=True)
    entry = Path("/sys/block") / Path(device).name

    def gone():
        if not (entry / "loop/backing_file").exists():
            remove_loop(int(entry.name.removeprefix("loop")))
        return not entry.exists()

    wait_for(gone, every=0.01)


@contextmanager
def loop_over(file, *options):
    """A loop device over a file or another device."""
    device = Path(f"/dev/loop{_random.choice(NUMBERS)}")
    attach(device, file, *options)
    try:
        yield device
    finally:
        detach(device)


@contextmanager
def lent_loop(file, size=512 * 1024**2):
    """A loop device over a new file, to stand for a real disk of others; its backing file is its serial."""
    with file.open("wb") as backing:
        backing.truncate(size)
    with loop_over(file) as device:
        yield device
