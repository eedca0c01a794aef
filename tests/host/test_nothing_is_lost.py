"""A disk that is somebody's is refused before it is touched: by plan and run, as root and not, however it is named."""

import hashlib
import mmap
import os
import shutil
import subprocess
import sys
import sysconfig
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

import dbdyno
from tests.contents import CONTENTS
from tests.loops import attach, detach, lent_loop, loop_over
from tests.sampled import some
from tests.signatures import SIGNATURES, SIZE
from tests.support import DBDYNO, study_text, wait_for, with_own_mounts
from tests.support import dbdyno as command_line

pytestmark = pytest.mark.host

SYSTEM_PYTHON = Path("/usr/bin") / f"python3.{sys.version_info.minor}"
REFUSED = 2
PARTITION_START = 2048 * 512


def tool(*argv):
    return subprocess.run([str(word) for word in argv], check=True, capture_output=True, text=True).stdout.strip()


def remove_if_empty(folder):
    """Remove a folder that others may have come to use meanwhile."""
    with suppress(OSError):
        folder.rmdir()


class Disk:
    """A loop device that stands for somebody's real disk, and what is done to it; all is taken back in the end."""

    def __init__(self, folder, undoing):
        self.folder, self.undoing = folder, undoing
        self.file = folder / "disk"
        self.device = self._lent(self.file)
        self.named = str(self.device)  # as the study names it
        self.serial = str(self.file)  # as the kernel tells it of what the study names
        self.compared_bytes, self.above = SIZE, []

    def _lent(self, file):
        return self.undoing.enter_context(lent_loop(file, SIZE))

    def another_loop(self, *options):
        """A second loop device over the same file."""
        return self._above(self.file, *options)

    def loop_over(self, device):
        return self._above(device)

    def _above(self, file, *options):
        self.above.append(self.undoing.enter_context(loop_over(file, *options)))
        return self.above[-1]

    def empty_disk(self):
        return self._lent(self.folder / "empty")

    def signed(self, name):
        with self.device.open("r+b") as disk:
            SIGNATURES[name](disk)
        return self

    def holding(self, kind, device=None):
        tool(f"mkfs.{kind}", "-q", device or self.device)
        return self

    def mounted(self, device=None):
        place = self.folder / "place"
        place.mkdir()
        # Written to by nobody: a filesystem's own threads would change what is compared.
        tool("mount", "--options", "ro", device or self.device, place)
        self.undoing.callback(tool, "umount", place)
        return self

    def partitioned(self):
        """Its first partition; the kernel is told of it, since not every one can read a table."""
        detach(self.device)
        attach(self.device, self.file, "--partscan")
        part = Path(f"{self.device}p1")
        if not part.exists():
            tool("addpart", self.device, "1", "2048", "65536")
        self.undoing.callback(self._take_partition_away)
        return part

    def _take_partition_away(self):
        """Another test's look at all block devices may have it open for a moment."""
        delpart = ["delpart", self.device, "1"]
        wait_for(lambda: subprocess.run(delpart, check=False, capture_output=True).returncode == 0)

    def swapping(self, device):
        tool("mkswap", device)
        tool("swapon", device)
        self.undoing.callback(tool, "swapoff", device)
        # Behind its header the kernel may put pages there at any moment; on a partition the header is at 1 MiB.
        self.compared_bytes = mmap.PAGESIZE + (0 if device == self.device else PARTITION_START)
        return self

    def containing(self, name):
        CONTENTS[name](self.device, SIZE)
        return self

    def used_by(self, script, path=None):
        """A process that does something with the device, and says so."""
        process = subprocess.Popen([sys.executable, "-c", script, path or self.device], stdout=subprocess.PIPE)
        self.undoing.callback(process.wait)
        self.undoing.callback(process.kill)
        assert process.stdout.readline() == b"ready\n"
        process.stdout.close()
        return self

    def held(self):
        self.undoing.callback(os.close, os.open(self.device, os.O_RDONLY | os.O_EXCL))
        return self

    def called(self, name):
        self.named = str(name)
        return self

    def linked(self, link, target=None):
        """The disk by a link, its folder made where there is none."""
        made = [folder for folder in Path(link).parents if not folder.exists()]
        Path(link).parent.mkdir(parents=True, exist_ok=True)
        for folder in reversed(made):  # undone the other way round
            self.undoing.callback(remove_if_empty, folder)
        if not Path(link).is_symlink():
            Path(link).symlink_to(target or self.device)
            self.undoing.callback(Path(link).unlink)
        return self.called(link)

    def node(self, path):
        """The disk by a device node of another name."""
        os.mknod(path, 0o600 | 0o060000, self.device.stat().st_rdev)
        self.undoing.callback(Path(path).unlink)
        return self.called(path)

    def number(self):
        found = self.device.stat().st_rdev
        return f"{os.major(found)}:{os.minor(found)}"


def loop_over_it(disk):
    above = disk.loop_over(disk.device)
    disk.serial = str(disk.device)
    return disk.called(above)


def loop_over_a_mounted_partition(disk):
    part = disk.signed("dos").partitioned()
    disk.holding("ext4", part).mounted(part)
    above = disk.loop_over(part)
    disk.serial = str(part)
    return disk.called(above)


def swap_on_a_partition(disk):
    return disk.swapping(disk.signed("dos").partitioned())


def mounted_partition(disk):
    part = disk.signed("dos").partitioned()
    return disk.holding("ext4", part).mounted(part)


def empty_but_partitioned(disk):
    """No table is there any more; the kernel has its partitions still."""
    disk.partitioned()
    return disk


def filesystem_at_an_offset(disk):
    """Seen only through another loop device."""
    within = disk.another_loop("--offset", str(8 * 1024**2))
    return disk.holding("ext4", within)


def node_named_as_an_empty_disk(disk):
    """In a folder of its own, a node that carries an empty disk's name and this disk's number."""
    empty = disk.empty_disk()
    return disk.holding("ext4").node(disk.folder / empty.name)


SAY_AND_WAIT = "print('ready', flush=True); time.sleep(3600)"
OPEN = f"import os, sys, time; os.open(sys.argv[1], os.O_RDWR); {SAY_AND_WAIT}"
# Python's own mmap keeps a descriptor, so libc's is called.
MAPPED = f"""
import ctypes, os, sys, time
handle = os.open(sys.argv[1], os.O_RDWR)
mmap = ctypes.CDLL(None, use_errno=True).mmap
mmap.restype = ctypes.c_void_p
mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
assert mmap(None, 4096, 3, 1, handle, 0) not in (None, 2**64 - 1)
os.close(handle)
{SAY_AND_WAIT}
"""


def open_by_another_node(disk):
    """As a server in a container has a disk: by a device node of its own."""
    os.mknod(disk.folder / "node", 0o600 | 0o060000, disk.device.stat().st_rdev)
    disk.undoing.callback((disk.folder / "node").unlink)
    return disk.used_by(OPEN, disk.folder / "node")


def mounted_elsewhere(disk):
    """In a mount namespace that this one sees nothing of."""
    place = disk.folder / "place"
    place.mkdir()
    script = "mount --options ro $1 $2 && echo ready && exec sleep 3600"
    process = subprocess.Popen(with_own_mounts(script, disk.holding("ext4").device, place), stdout=subprocess.PIPE)
    disk.undoing.callback(process.wait)
    disk.undoing.callback(process.kill)
    assert process.stdout.readline() == b"ready\n"
    process.stdout.close()
    return disk


# What it holds: the study may be allowed to erase it, and is not.
HELD = {
    **{name: lambda disk, name=name: disk.containing(name) for name in CONTENTS},
    **{f"a {name} signature": lambda disk, name=name: disk.signed(name) for name in SIGNATURES},
    "ext4": lambda disk: disk.holding("ext4"),
    "ext2": lambda disk: disk.holding("ext2"),
    "swap space": lambda disk: (tool("mkswap", disk.device), disk)[1],
    "a partition that the kernel knows": empty_but_partitioned,
    "a symlink": lambda disk: disk.holding("ext4").linked(disk.folder / "link"),
    "a symlink to a symlink": lambda disk: disk.holding("ext4").linked(
        disk.folder / "two", disk.linked(disk.folder / "one").named
    ),
    "by-id": lambda disk: disk.holding("ext4").linked(f"/dev/disk/by-id/dbdyno-test-{disk.device.name}"),
    "by number": lambda disk: disk.holding("ext4").linked(f"/dev/block/{disk.number()}"),
    "doubled slashes": lambda disk: disk.holding("ext4").called(f"//dev//{disk.device.name}"),
    "up and down again": lambda disk: disk.holding("ext4").called(f"/dev/../dev/./{disk.device.name}"),
    "a node of another name": lambda disk: disk.holding("ext4").node(disk.folder / "node"),
    "a node named as an empty disk": node_named_as_an_empty_disk,
    "a relative path": lambda disk: disk.holding("ext4").called(f"../../../../dev/{disk.device.name}"),
    "a bare name": lambda disk: disk.holding("ext4").called(disk.device.name),
    "a link that looks like a drive file": lambda disk: disk.holding("ext4").linked(disk.folder / "disk.toml"),
    "a partition": lambda disk: disk.called(disk.partitioned()),
    "a filesystem at an offset": filesystem_at_an_offset,
    "a loop device over it": lambda disk: loop_over_it(disk.holding("ext4")),
}
# What uses it: nothing may allow that it is erased.
USED = {
    "mounted": lambda disk: disk.holding("ext4").mounted(),
    "a mounted btrfs": lambda disk: (tool("mkfs.btrfs", "-q", "--mixed", disk.device), disk.mounted())[1],
    "a mounted partition": mounted_partition,
    "swap in use": lambda disk: disk.swapping(disk.device),
    "swap in use on a partition": swap_on_a_partition,
    "held exclusively": lambda disk: disk.held(),
    "the same file mounted by another loop device": lambda disk: disk.holding("ext4").mounted(disk.another_loop()),
    "a loop device over it is mounted": lambda disk: disk.holding("ext4").mounted(disk.loop_over(disk.device)),
    "it lies over a mounted disk": lambda disk: loop_over_it(disk.holding("ext4").mounted()),
    "it lies over a mounted partition": loop_over_a_mounted_partition,
    "open for writing": lambda disk: disk.used_by(OPEN),
    "open for writing by another node": open_by_another_node,
    "a partition open for writing": lambda disk: disk.used_by(OPEN, disk.signed("dos").partitioned()),
    "its file open for writing": lambda disk: disk.used_by(OPEN, disk.file),
    "mapped": lambda disk: disk.used_by(MAPPED),
    "mounted in another namespace": mounted_elsewhere,
    "mounted, by a symlink": lambda disk: disk.holding("ext4").mounted().linked(disk.folder / "link"),
}
ASKED_MORE = some("asked more", [*HELD, *USED], 1 / 3)
BAD_NAMES = {"a relative path", "a bare name", "a link that looks like a drive file"}


@pytest.fixture
def disk(tmp_path):
    with ExitStack() as undoing:
        yield Disk(tmp_path, undoing)


@contextmanager
def untouched(disk):
    """Nothing of the disk changes; what preparing it left in the page cache goes first."""
    before = digest(disk)
    yield
    assert digest(disk) == before


def digest(disk):
    for device in (disk.device, *disk.above, *disk.device.parent.glob(f"{disk.device.name}p*")):
        handle = os.open(device, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)
    with disk.file.open("rb") as content:
        return hashlib.sha256(content.read(disk.compared_bytes)).hexdigest()


def somebody_else(*argv, home):
    """The command line as an ordinary user."""
    command = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", str(SYSTEM_PYTHON), *DBDYNO[1:]]
    environment = {
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": f"{sysconfig.get_path('purelib')}:{Path(dbdyno.__file__).parents[1]}",
    }
    return subprocess.run(
        [*command, *map(str, argv)], env=environment, cwd="/", capture_output=True, text=True, check=False
    )


def root(*argv, home):
    return command_line(*argv, state=home / "state")


@pytest.fixture
def home(state):
    """A folder that an ordinary user may pass, with the study in it."""
    folder = state / "home"
    folder.mkdir()
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody")
    return folder


def users():
    passable = all(folder.stat().st_mode & 0o001 for folder in Path(dbdyno.__file__).parents)
    return [root, somebody_else] if SYSTEM_PYTHON.exists() and passable else [root]


def refusals(case, disk, home, *options):
    """What run says to root, and of some cases also what plan and an ordinary user's run say; each must refuse."""
    text = study_text(device=f'"{disk.named}"', stack=f'serial = "{disk.serial}"').replace('size = "512MiB"\n', "")
    study = home / "study.toml"
    study.write_text(text, encoding="utf-8")
    for user in users() if case in ASKED_MORE else [root]:
        run = ["run", study, "--into", home / "run", *options]
        asks_plan = user is root and case in ASKED_MORE  # an ordinary user's run asks what plan asks
        for argv in [["plan", study], run] if asks_plan else [run]:
            done = user(*argv, home=home)
            said = " ".join((done.stdout + done.stderr).split())
            assert "Traceback" not in said
            assert done.returncode == REFUSED, said
            assert not (home / "run").exists()
            yield user is root, said


@pytest.mark.parametrize("case", some("held", HELD, 0.5))
def test_a_disk_that_holds_something_is_refused(case, disk, home):
    assert HELD[case](disk) is disk
    with untouched(disk):
        for as_root, said in refusals(case, disk, home):
            if as_root and case not in BAD_NAMES:
                assert "holds data" in said or "is a partition" in said or "loop device" in said, said


@pytest.mark.parametrize("case", some("used", USED, 0.5))
def test_a_disk_in_use_is_refused_whatever_is_allowed(case, disk, home):
    assert USED[case](disk) is disk
    with untouched(disk):
        for as_root, said in refusals(case, disk, home, "--erase", disk.serial):
            if as_root:
                assert "is in use" in said, said


def test_enough_is_tried():
    assert len(HELD) + len(USED) >= 20
