"""What a virtual machine of the tests runs: logical volumes that it has, as real disks; see ``test_between.py``."""

import os
import signal
import subprocess
import time
import traceback
from contextlib import closing, contextmanager
from pathlib import Path

from dbdyno.errors import HostError
from dbdyno.filesystems import KINDS
from dbdyno.run.guest_side import open_port
from dbdyno.stack.between import load_module
from dbdyno.stack.emptiness import identify
from dbdyno.stack.erase import Erasing, check_erasable
from dbdyno.stack.guest.channel import GuestChannel
from dbdyno.stack.layer import raised
from dbdyno.stack.layers.device import Real
from dbdyno.stack.layers.filesystem import Filesystem
from dbdyno.stack.layers.queue import Queue
from dbdyno.stack.layers.scratch import scratch
from dbdyno.stack.layers.volume import _CONFIG
from dbdyno.stack.restore import leftovers, replay, taken
from dbdyno.stack.undo_log import Journal
from dbdyno.study.schema import FilesystemSection, QueueSection
from tests.layers_guest import CONTENT, path_of

GROUP, MODULES = "vg0", ("dm-mod", "dm-thin-pool", "dm-snapshot")
DISKS = (path_of(0), path_of(1))
# Name of each volume -> what lvcreate is told of it.
VOLUMES = {
    "linear": ("--extents", "12"),
    "striped": ("--extents", "12", "--stripes", "2"),
    "held": ("--extents", "4"),
    "mounted": ("--extents", "4"),
    "copied": ("--extents", "4"),
    "copy": ("--snapshot", "--extents", "2", f"{GROUP}/copied"),
    "pool": ("--type", "thin-pool", "--extents", "6", "--zero", "n"),
    "thin": ("--type", "thin", "--virtualsize", "16m", "--thinpool", "pool"),
}


def run(*argv):
    """Run a command that must succeed."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
    return done.stdout


def lvm(command, *argv):
    """Run a command of LVM that sees the disks of the test alone."""
    return run(command, "--devices", ",".join(map(str, DISKS)), "--config", _CONFIG, *argv)


def volume(name):
    """Where a volume is."""
    return Path(f"/dev/mapper/{GROUP}-{name}")


def make_volumes():
    """Make the group and all of its volumes on empty disks."""
    Path("/dev/fd").symlink_to("/proc/self/fd")  # by which programs get a disk that is open
    for module in MODULES:
        load_module(module)
    lvm("vgcreate", GROUP, *map(str, DISKS))
    for name, how in VOLUMES.items():
        group = [] if name == "copy" else [GROUP]
        lvm("lvcreate", "--yes", "--name", name, *how, *group)
    for name in ("held", "mounted"):
        run("mkfs.ext4", "-q", str(volume(name)))


def layers(name):
    """The layers of a trial on a volume."""
    device = volume(name)
    real = Real(device, identify(device).serial, Erasing())
    return [real, Queue(None, QueueSection(read_ahead_kb=64)), Filesystem(KINDS["ext4"], FilesystemSection(), True)]


@contextmanager
def trial(journal, name):
    """A trial on a volume."""
    with scratch(journal) as ground, raised(layers(name), ground) as stand:
        yield stand


def refusal(device, serial=None):
    """Why a volume may not be erased; empty where it may."""
    try:
        check_erasable(device, serial or identify(device).serial, Erasing())
    except HostError as error:
        return str(error)
    return ""


def try_volume(name):
    """Two trials on it, and one that is killed; what it is known by, and what is said of it before and after."""
    device, outcome = volume(name), {}
    identity, proof = check_erasable(device, identify(device).serial, Erasing())
    outcome["serial"], outcome["model"], outcome["why"] = identity.serial, identity.model, [proof.why]
    knob = Path("/sys/class/block") / identity.path.name / "queue/read_ahead_kb"
    before = knob.read_text()
    with closing(Journal(name)) as journal:
        for _ in range(2):
            with trial(journal, name) as stand:
                (stand.directory / "file").write_bytes(CONTENT)
                outcome["observed"] = {layer: stand.observed[layer] for layer in ("device", "queue")}
            outcome["why"].append(check_erasable(device, identity.serial, Erasing())[1].why)
    outcome["killed"] = kill_in_trial(name)
    outcome["why"].append(check_erasable(device, identity.serial, Erasing())[1].why)
    outcome["queue_is_back"] = knob.read_text() == before
    return outcome


def kill_in_trial(name):
    """Kill a process in the middle of a trial, then put the host back; returns what ``restore`` said."""
    told, tells = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            with closing(Journal("killed")) as journal, trial(journal, name) as stand:
                (stand.directory / "file").write_bytes(CONTENT)
                os.write(tells, b"x")
                time.sleep(600)
        finally:
            os._exit(1)
    os.read(told, 1)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    said = []
    for leftover in leftovers():
        with taken(leftover.path, said.append) as log:
            if log:
                replay(log, said.append)
    return said


def refusals():
    """Name of a case -> why a volume is left as it is."""
    place = Path("/run/mounted")
    place.mkdir()
    run("mount", str(volume("mounted")), str(place))
    held = volume("held").read_bytes()
    texts = {"held": refusal(volume("held")), "mounted": refusal(volume("mounted"))}
    texts["another"] = refusal(volume("linear"), "LVM-" + "a" * 64)
    texts["disk"] = refusal(DISKS[0])
    for name in ("thin", "copied", "copy"):
        texts[name] = refusal(volume(name), "any")
    run("dmsetup", "suspend", str(volume("striped")))
    texts["suspended"] = refusal(volume("striped"), "any")
    run("dmsetup", "resume", str(volume("striped")))
    assert volume("held").read_bytes() == held
    run("umount", str(place))
    return texts


def main():
    """Try the volumes, and send all that was seen."""
    channel, seen = GuestChannel(open_port()), {}
    try:
        make_volumes()
        channel.send("saw", "volumes")
        seen["refusals"] = refusals()
        for name in ("linear", "striped"):
            seen[name] = try_volume(name)
            channel.send("saw", name)
    except BaseException:  # noqa: BLE001  (whatever it is, the host shows it)
        seen["error"] = traceback.format_exc()
    channel.send("done", seen)


if __name__ == "__main__":
    main()
