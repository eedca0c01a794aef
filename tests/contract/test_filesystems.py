"""The contract of a filesystem, over every one: made, mounted, a server run on it, everything read back, put back."""

import os
import pwd
import shutil
import stat
import subprocess
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from dbdyno.errors import TrialError
from dbdyno.filesystems import IN_MEMORY, KINDS, ZFS
from dbdyno.servers.mysql.connection import connect
from dbdyno.servers.user import USER
from dbdyno.stack.capabilities import filesystem
from dbdyno.stack.kinds.catalogue import KINDS as STACKS
from dbdyno.stack.kinds.kind import Raising
from dbdyno.stack.layer import raised
from dbdyno.stack.layers.data import Disks, Tree
from dbdyno.stack.layers.device import Emulated
from dbdyno.stack.layers.emulated_disk import running_disk
from dbdyno.stack.layers.scratch import scratch
from dbdyno.stack.layers.zfs_pool import ZfsPool
from dbdyno.stack.space import after_load
from dbdyno.study.schema import FilesystemSection, TrialSpec
from tests.support import what_is_left

pytestmark = pytest.mark.host

SIZE = "400MiB"
# Each with options that reach mkfs and mount, and what the kernel shows of them.
OPTIONS = {
    "ext2": {"mkfs": "-b 4096", "mount": "noatime"},
    "ext3": {"mkfs": "-J size=16", "mount": "noatime,data=writeback"},
    "ext4": {"mkfs": "-O ^has_journal", "mount": "noatime,nobarrier"},
    "xfs": {"mkfs": "-m reflink=0", "mount": "noatime,logbsize=256k"},
    "btrfs": {"mkfs": "--csum xxhash", "mount": "compress=zstd,noatime,nobarrier"},
    "zfs": {"mkfs": "-O compression=gzip -O recordsize=16k -O atime=off -O primarycache=metadata", "mount": ""},
    "tmpfs": {"mkfs": "", "mount": "noatime,huge=within_size"},
}
UNKNOWN = {"zfs": {"mkfs": "-O nonsense=1"}}
EXTENTS_UNKNOWN = {"tmpfs", "zfs"}


def spec_of(kind, **filesystem):
    return TrialSpec.model_validate(
        {
            "stack": {"device": "memory" if kind == IN_MEMORY else "ssd-sata", "size": SIZE, "filesystem": kind},
            "filesystem": filesystem,
            "server": {"settings": {"innodb_log_file_size": "8M", "innodb_buffer_pool_size": "32M"}},
            "workload": {"kind": "slap", "load": "write", "queries": 100},
        }
    )


@pytest.fixture
def stack(journal, tmp_path):
    """Raise the stack of a treatment as a run does to prepare data, with a server on top."""

    def rise(spec, ground, disk):
        image = Disks((disk,)) if spec.stack.model else Tree(ground.scratch / "image")
        raising = Raising(tmp_path / "server.log", lambda _: None, seed=1, install=True)
        return raised(STACKS[spec.stack.kind].stack(spec, image, raising).layers, ground)

    with running_disk(journal, model="ssd-sata", size=400 * 1024**2) as disk, scratch(journal) as ground:
        yield lambda spec: rise(spec, ground, disk)


@pytest.fixture(autouse=True)
def _able(request):
    """A filesystem that not every host has is tried where doctor says that it can be."""
    kind = request.node.callspec.params.get("kind") if hasattr(request.node, "callspec") else None
    if kind and not KINDS[kind].usual and not (found := filesystem(kind)).ok:
        pytest.skip(f"this host can't: {found.name}: {found.detail}")


def test_every_filesystem_is_tried():
    assert set(OPTIONS) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_runs_on_it_and_everything_is_read_back(kind, stack, state):
    before = what_is_left(state)
    with stack(spec_of(kind)) as stand:
        observed = stand.observed["filesystem"]
        assert observed["kind"] == kind
        assert observed["barriers"] is (kind != IN_MEMORY)
        assert observed["flushes_on_fsync"] is (kind != IN_MEMORY), "a commit reaches the device"
        assert stand.observed["server"]["version"]
        with connect(stand.endpoint.socket) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE d")
            cursor.execute("CREATE TABLE d.t (a INT PRIMARY KEY) ENGINE=InnoDB")
            assert cursor.execute("INSERT INTO d.t VALUES (1), (2)") == 2
        check_that_it_gives_nobody_rights(stand.directory)
        room = after_load(stand.directory)
    assert 0 < room["free_bytes"] < room["size_bytes"] <= 400 * 1024**2
    assert room["files"] >= 2, "at least the log and the system tablespace are 1 MiB or more"
    assert (room["extents"] is None) == (kind in EXTENTS_UNKNOWN)
    assert kind in EXTENTS_UNKNOWN or room["extents"] >= room["files"]
    assert what_is_left(state) == before


def check_that_it_gives_nobody_rights(directory):
    """Neither a setuid program on it nor a device node counts; only root and the server's user get so far."""
    program, node = directory / "id", directory / "null"
    shutil.copy("/usr/bin/id", program)
    program.chmod(0o4755)
    os.mknod(node, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    directory.chmod(0o755)

    def as_user(user, *argv):
        command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--", *argv]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")

    server = pwd.getpwnam(USER).pw_uid
    assert as_user(server, program, "-u").stdout.strip() == str(server)
    assert "Permission denied" in as_user(server, "head", "-c", "0", node).stderr
    for path in (program, directory, directory.parent):
        assert "Permission denied" in as_user(1, "ls", path).stderr


@pytest.mark.parametrize("kind", KINDS)
def test_its_options_take_and_are_seen(kind, stack):
    spec = spec_of(kind, **OPTIONS[kind])
    with stack(spec) as stand:
        observed = stand.observed["filesystem"]
        for option in OPTIONS[kind]["mount"].split(","):
            assert option in observed["mount_options"], option
        for name, value in ZFS.properties(OPTIONS["zfs"]["mkfs"]) if kind == "zfs" else ():
            assert observed[name].lower() == value
        barriers = "nobarrier" not in OPTIONS[kind]["mount"] and kind != IN_MEMORY
        assert observed["barriers"] is barriers
        assert observed["flushes_on_fsync"] is barriers, "without barriers a commit does not reach the device"


@pytest.mark.parametrize("kind", KINDS)
def test_an_option_that_it_does_not_know_fails_the_trial(kind, stack):
    with pytest.raises(TrialError, match="nonsense"), stack(spec_of(kind, **UNKNOWN.get(kind, {"mount": "nonsense"}))):
        pass


def test_what_a_pool_holds_is_there_when_it_is_imported_again(journal):
    """As a trial finds it: from a snapshot, under another folder."""
    if not (found := filesystem("zfs")).ok:
        pytest.skip(f"this host can't: {found.name}: {found.detail}")
    with running_disk(journal, model="ssd-sata", size=400 * 1024**2) as disk:
        for restore in (False, True, True):
            device = Emulated(disk, "ssd-sata", rotational=False, seed=1, restore=restore)
            pool = ZfsPool(FilesystemSection(mkfs="-O recordsize=32k"), format=not restore)
            with scratch(journal) as ground, raised([device, pool], ground) as stand:
                assert stand.observed["filesystem"]["recordsize"] == "32K"
                if restore:
                    assert (stand.directory / "file").read_bytes() == b"prepared"
                (stand.directory / "file").write_bytes(b"spoiled" if restore else b"prepared")
            if not restore:
                disk.client.snapshot("prepared")


def test_the_same_pool_twice_at_once_does_not_meet_itself(journal):
    """As two runs that start from the same kept image."""
    if not (found := filesystem("zfs")).ok:
        pytest.skip(f"this host can't: {found.name}: {found.detail}")
    with ExitStack() as lowering:
        disks = [lowering.enter_context(running_disk(journal, model="ideal", size=300 * 1024**2)) for _ in range(2)]
        file = str(disks[0].file.parent.parent / "content")
        device = Emulated(disks[0], "ideal", rotational=False, seed=1, restore=False)
        with scratch(journal) as ground, raised([device, ZfsPool(FilesystemSection(), format=True)], ground) as stand:
            (stand.directory / "file").write_text("prepared")
        disks[0].client.save(file)
        for number, disk in enumerate(disks):
            disk.client.load(file)
            disk.client.snapshot("prepared")
            device = Emulated(disk, "ideal", rotational=False, seed=1, restore=True)
            ground = lowering.enter_context(scratch(journal))
            stand = lowering.enter_context(raised([device, ZfsPool(FilesystemSection(), format=False)], ground))
            assert (stand.directory / "file").read_text() == "prepared"
            (stand.directory / "file").write_text(str(number))


def test_two_pools_at_once_do_not_meet(journal, state):
    if not (found := filesystem("zfs")).ok:
        pytest.skip(f"this host can't: {found.name}: {found.detail}")
    with ExitStack() as lowering:
        stands = []
        for _ in range(2):
            disk = lowering.enter_context(running_disk(journal, model="ideal", size=300 * 1024**2))
            ground = lowering.enter_context(scratch(journal))
            device = Emulated(disk, "ideal", rotational=False, seed=1, restore=False)
            stands.append(lowering.enter_context(raised([device, ZfsPool(FilesystemSection(), format=True)], ground)))
        for number, stand in enumerate(stands):
            (stand.directory / "file").write_text(str(number))
        assert [(stand.directory / "file").read_text() for stand in stands] == ["0", "1"]
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
        assert len([line for line in mounts if "/mnt/pool fuse.zfs" in line and str(state) in line]) == 2
        for stand in stands:  # a copy of another run's mount would hold its disk after that run has unmounted it
            held = Path(f"/proc/{zfs_fuse_of(stand.scratch)}/mounts").read_text(encoding="utf-8").splitlines()
            places = {line.split()[1] for line in held if f"{state}/scratch/" in line}
            assert places == {str(stand.directory.parent), str(stand.directory)}


def zfs_fuse_of(ground):
    """The number of the zfs-fuse that writes its log in a scratch folder."""
    for log in Path("/proc").glob("[0-9]*/fd/2"):
        with suppress(OSError):  # of a process that has ended
            if log.readlink() == ground / "zfs-fuse.log":
                return log.parts[2]
    raise AssertionError(f"none writes to {ground}")


@pytest.mark.parametrize(
    ("kind", "option", "listed"),
    [("ext4", "commit=0", "relatime"), ("btrfs", "max_inline=1M", "max_inline=4096")],  # ignores it; clamps it
)
def test_a_mount_option_that_the_kernel_ignores_or_clamps_fails_the_trial(kind, option, listed, stack):
    said = rf"mount option '{option}' did not take; the kernel lists .*{listed}"
    with pytest.raises(TrialError, match=said), stack(spec_of(kind, mount=option)):
        pass


def test_a_property_that_the_pool_has_not_fails_the_trial(stack, monkeypatch):
    if not (found := filesystem("zfs")).ok:
        pytest.skip(f"this host can't: {found.name}: {found.detail}")
    monkeypatch.setattr("dbdyno.filesystems.ZfsKind.making", lambda *_: ["zpool", "create", "-f"])  # forgets options
    with (
        pytest.raises(TrialError, match="zfs property recordsize: asked for 16k, it is 128K"),
        stack(spec_of("zfs", mkfs="-O recordsize=16k")),
    ):
        pass


def test_a_tmpfs_is_as_large_as_was_asked(stack):
    with stack(spec_of("tmpfs")) as stand:
        command = ["dd", "if=/dev/zero", f"of={stand.directory}/much", "bs=1M", "count=1000"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "No space left" in done.stderr
