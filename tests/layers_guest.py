"""What a virtual machine of the tests runs: every layer between disks and filesystem, raised on its disks.

It is run by ``tests/host/test_between.py``, with the names of cases, and sends what it saw to its host as one line.
"""

import os
import random
import signal
import sys
import time
import traceback
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from dbdyno.errors import DbdynoError
from dbdyno.filesystems import KINDS
from dbdyno.run.guest_side import open_port
from dbdyno.stack.guest.channel import GuestChannel
from dbdyno.stack.kinds.own import between_of
from dbdyno.stack.layer import BlockDevice, StackContext, raised
from dbdyno.stack.layers.device import disk_of_guest, serial_in_guest
from dbdyno.stack.layers.filesystem import Filesystem
from dbdyno.stack.layers.scratch import scratch
from dbdyno.stack.restore import leftovers, replay, taken
from dbdyno.stack.undo_log import Journal
from dbdyno.study.schema import CACHE_DISK, FilesystemSection, TrialSpec

KEY = bytes(range(64))
CONTENT = random.Random(1).randbytes(4 << 20)
MIB = 1024**2
LAST = 3  # of the guest's disks, by its number
FAST = {CACHE_DISK: {"device": "nvme", "size": "128MiB"}}
# Name -> how many disks, and what the study says of the layers.
CASES = {
    "luks": (1, {"stack": {"encryption": "luks"}}),
    "luks, 512": (
        1,
        {
            "stack": {"encryption": "luks"},
            "encryption": {"cipher": "aes-cbc-essiv:sha256", "key_bits": 256, "sector": 512},
        },
    ),
    "luks, no queues": (1, {"stack": {"encryption": "luks"}, "encryption": {"workqueues": False}}),
    "raid0": (4, {"stack": {"array": "raid0"}, "array": {"chunk": "64KiB"}}),
    "raid1": (2, {"stack": {"array": "raid1"}, "array": {"bitmap": "internal"}}),
    "raid5": (
        4,
        {"stack": {"array": "raid5"}, "array": {"chunk": "64KiB", "bitmap": "none", "stripe_cache_size": 512}},
    ),
    "raid5 degraded": (4, {"stack": {"array": "raid5"}, "array": {"chunk": "64KiB", "state": "degraded"}}),
    "raid5 rebuilding": (
        4,
        {"stack": {"array": "raid5"}, "array": {"state": "rebuilding", "sync_speed_min": 100, "sync_speed_max": 500}},
    ),
    "raid6": (4, {"stack": {"array": "raid6"}, "array": {"bitmap": "internal"}}),
    "raid10 degraded": (4, {"stack": {"array": "raid10"}, "array": {"state": "degraded"}}),
    "linear": (2, {"stack": {"volume": "linear"}}),
    "striped": (4, {"stack": {"volume": "striped"}, "volume": {"stripe": "32KiB"}}),
    "thin": (1, {"stack": {"volume": "thin"}, "volume": {"pool_chunk": "128KiB"}}),
    "writecache": (
        1,
        {
            "stack": {"cache": "writecache", "disks": FAST},
            "cache": {"high_watermark": 60, "low_watermark": 20, "max_age": 60_000},
        },
    ),
    "bcache": (1, {"stack": {"cache": "bcache", "disks": FAST}, "cache": {"sequential_cutoff": "0B"}}),
    "bcache over raid1": (
        2,
        {"stack": {"array": "raid1", "cache": "bcache", "disks": FAST}, "cache": {"cache_mode": "writethrough"}},
    ),
    "dm-cache": (1, {"stack": {"cache": "dm-cache", "disks": FAST}, "cache": {"cache_mode": "writethrough"}}),
    "all": (
        3,
        {"stack": {"array": "raid5", "cache": "writecache", "encryption": "luks", "volume": "thin", "disks": FAST}},
    ),
}


@dataclass(frozen=True)
class Disks:
    """The disks of the guest as a device layer."""

    count: int
    name: str = "device"

    @contextmanager
    def raised(self, below):
        """All of them, empty or not."""
        devices = [BlockDevice(path_of(number), rotational=False, disposable=True) for number in range(self.count)]
        yield below.raised(self.name, {}, device=devices[0], beside=tuple(devices[1:]))


@dataclass(frozen=True)
class FastDisk:
    """The last disk of the guest as that of a cache."""

    name: str = "disk cache"

    @contextmanager
    def raised(self, below):
        """The disk, which the data's layers find by its name."""
        device = BlockDevice(path_of(LAST), rotational=False, disposable=True)
        fast = StackContext(below.journal, below.scratch, device=device)
        yield replace(below, disks={CACHE_DISK: fast})


def path_of(number):
    """Where the guest has a disk."""
    return Path("/dev") / disk_of_guest(serial_in_guest(number))


def spec_of(case):
    """The treatment of a case."""
    count, sections = CASES[case]
    stack = {"device": "ssd-sata", "devices": count, "size": "128MiB", "filesystem": "ext4", **sections["stack"]}
    workload = {"kind": "fio", "profile": "RND4K Q1T1", "load": "write"}
    return TrialSpec.model_validate({**sections, "stack": stack, "workload": workload})


def layers_of(case, *, fresh):
    """The layers of a case from the disks to the filesystem."""
    spec = spec_of(case)
    between = [part.layer(spec, fresh=fresh, key=KEY) for part in between_of(spec)]
    fast = [FastDisk()] if spec.cache_disk else []
    return [Disks(spec.stack.devices), *fast, *between, Filesystem(KINDS["ext4"], FilesystemSection(), fresh)]


def left():
    """What the kernel has of arrays and mappings, and which mounts and undo logs there are."""
    arrays = [path.parent.name for path in Path("/sys/block").glob("md*/md") if list(path.glob("dev-*"))]
    mappings = [path.read_text().strip() for path in Path("/sys/block").glob("dm-*/dm/name")]
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines() if "/scratch/" in line]
    caches = [str(path) for path in Path("/sys/block").glob("*/bcache")]
    return arrays + mappings + caches + mounts + [str(log.path) for log in leftovers()]


def clear(count):
    """Make the disks empty again, as an image's are."""
    for number in range(count):
        with path_of(number).open("wb", buffering=0) as disk:
            for offset in (0, 64 * MIB, 120 * MIB):
                disk.seek(offset)
                disk.write(bytes(8 * MIB))


def try_case(case):
    """Make it, write to it, lower it, raise it again, and read that back."""
    clear(spec_of(case).stack.devices)
    began = time.monotonic()
    with closing(Journal(case)) as journal:
        with scratch(journal) as ground, raised(layers_of(case, fresh=True), ground) as stand:
            (stand.directory / "file").write_bytes(CONTENT)
        left_at_rest = left()
        again = layers_of(case, fresh=False)
        with scratch(journal) as ground, raised(again, ground) as stand:
            same = (stand.directory / "file").read_bytes() == CONTENT
            observed = {name: values for name, values in stand.observed.items() if name != "device"}
            figures = {}
            for layer in again:
                if hasattr(layer, "measuring"):
                    with layer.measuring(journal) as figures:
                        (stand.directory / "other").write_bytes(CONTENT)
                        os.sync()
    return {
        "same": same,
        "observed": observed,
        "figures": figures,
        "left": [*(path for path in left_at_rest if not path.endswith(".jsonl")), *left()],
        "seconds": round(time.monotonic() - began, 1),
    }


def kill_at(case, seconds, number):
    """Kill a process that raises a case after so many seconds; put the host back as ``dbdyno restore`` does."""
    pid = os.fork()
    if pid == 0:
        try:
            with (
                closing(Journal(f"kill {number}")) as journal,
                scratch(journal) as ground,
                raised(layers_of(case, fresh=number % 2 == 0), ground),
            ):
                time.sleep(600)
        except DbdynoError:
            os._exit(3)
        os._exit(0)
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    there, said = left(), []
    for leftover in leftovers():
        with taken(leftover.path, said.append) as log:
            if log:
                replay(log, said.append)
    return {
        "case": case,
        "seconds": round(seconds, 2),
        "killed": os.WIFSIGNALED(status),
        "there": there,
        "left": left(),
        "said": said,
    }


def main():
    """Run the cases that are named, then kills; send all that was seen."""
    cases, kills, channel = sys.argv[2].split("/"), int(sys.argv[1]), GuestChannel(open_port())
    seen = {"cases": {}, "kills": []}
    try:
        for case in cases:
            try:
                seen["cases"][case] = try_case(case)
            except DbdynoError as error:
                seen["cases"][case] = {"error": str(error), "left": left()}
            channel.send("saw", case)
        rng = random.Random(7)
        for number in range(kills):
            case = cases[number // 2 % len(cases)]
            if number % 2 == 0:
                clear(spec_of(case).stack.devices)
            seen["kills"].append(kill_at(case, rng.uniform(0, 1.5 * seen["cases"][case].get("seconds", 3) / 2), number))
            channel.send("saw", f"kill {number}")
    except BaseException:  # noqa: BLE001  (whatever it is, the host shows it)
        seen["error"] = traceback.format_exc()
    channel.send("done", seen)


if __name__ == "__main__":
    main()
