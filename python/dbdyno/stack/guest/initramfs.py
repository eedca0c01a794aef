"""The first program of a guest: a small archive that loads a kernel's drivers and enters the host's own root folder.

The guest sees the root folder of this host read only, by 9p, and writes into memory above it (overlayfs). So it has
this very Python, dbdyno, server and mkfs, and nothing needs to be installed in it.
"""

import lzma
import shlex
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from dbdyno.errors import HostError
from dbdyno.stack.tools import needed

# What the guest needs before it sees the host's root folder; the rest is loaded from there. A kernel has some built in.
_DRIVERS = (
    "virtio_pci",
    "virtio_blk",
    "virtio_scsi",
    "virtio_console",
    "sd_mod",
    "ahci",
    "nvme",
    "9p",
    "9pnet_virtio",
    "overlay",
)
PYTHON = "/run/python"  # the folder of Python's modules, in the guest
_FOLDERS = ("proc", "sys", "dev", "host", "memory", "root", "python")
_INIT = """\
b=/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sysfs /sys
$b mount -t devtmpfs devtmpfs /dev
while read -r driver; do $b insmod "/drivers/$driver"; done < /drivers/order
options=trans=virtio,version=9p2000.L,msize=512000,ro,cache=loose
$b mount -t 9p -o $options root /host || { $b echo "the host's root folder can't be mounted"; $b poweroff -f; }
$b mount -t tmpfs tmpfs /memory
$b mkdir /memory/upper /memory/work
$b mount -t overlay -o lowerdir=/host,upperdir=/memory/upper,workdir=/memory/work overlay /root || $b poweroff -f
$b mount -t tmpfs tmpfs /root/run
for place in proc sys dev; do $b mount --move /$place /root/$place; done
$b mount -t cgroup2 cgroup2 /root/sys/fs/cgroup
$b mount -t tracefs tracefs /root/sys/kernel/tracing
$b mkdir -p "/root/lib/modules/$release" /root/dev/shm /root/dev/pts /root/run/python
$b mount -t tmpfs tmpfs /root/dev/shm
$b mount -t devpts devpts /root/dev/pts
$b mount --bind "/root$modules" "/root/lib/modules/$release"
$b mount --bind /python /root/run/python
$b ip link set lo up
$b hostname guest
exec $b chroot /root /bin/sh -c "$command; $busybox poweroff -f" < /root/dev/null
"""


def write_initramfs(
    path: Path, modules: Path, release: str, command: str, python: Mapping[str, bytes] | None = None
) -> None:
    """Write the archive for a kernel whose drivers lie in ``modules``; ``command`` is what the guest's shell then runs.

    ``python`` are modules of Python that the guest finds in ``PYTHON``: path -> content. Raises ``HostError``.
    """
    drivers = {
        driver.name.removesuffix(driver.suffix * (driver.suffix != ".ko")): driver for driver in _drivers(modules)
    }
    busybox = needed("busybox", "busybox-static")
    # Process 1 changes its own root folder: that is then where the kernel itself looks for modprobe.
    # By its own name: a link would be looked up in the archive instead of the root folder.
    given = {"release": release, "modules": str(modules.resolve()), "command": command, "busybox": busybox}
    head = "".join(f"{name}={shlex.quote(value)}\n" for name, value in given.items())
    files = {
        "busybox": Path(busybox).read_bytes(),
        "init": f"#!/busybox sh\n{head}{_INIT}".encode(),
        "drivers/order": "".join(f"{name}\n" for name in drivers).encode(),
        **{f"drivers/{name}": _unpacked(driver) for name, driver in drivers.items()},
        **{f"python/{name}": content for name, content in (python or {}).items()},
    }
    folders = {str(above) for name in files for above in Path(name).parents} - {"."}
    with path.open("wb") as file:
        for part in archive([*_FOLDERS, *sorted(folders - {*_FOLDERS})], files):
            file.write(part)


def _drivers(modules: Path) -> Iterator[Path]:
    """The drivers in an order in which each comes after those that it needs; by modules.dep of depmod(8)."""
    lines = (modules / "modules.dep").read_text(encoding="utf-8").splitlines()
    needs = {file: others.split() for file, _, others in (line.partition(":") for line in lines)}
    by_name = {Path(file).name.partition(".ko")[0].replace("-", "_"): file for file in needs}
    found = [by_name[name] for name in _DRIVERS if name in by_name]
    ordered = dict.fromkeys(file for driver in found for file in (*reversed(needs[driver]), driver))
    return (modules / file for file in ordered)


def _unpacked(driver: Path) -> bytes:
    """A driver as insmod wants it."""
    if driver.suffix == ".xz":
        return lzma.decompress(driver.read_bytes())
    if driver.suffix == ".zst":
        argv = [needed("zstd", "zstd"), "-dcq", str(driver)]
        done = subprocess.run(argv, check=False, capture_output=True)
        if done.returncode:
            raise HostError(f"{driver}: zstd: {done.stderr.decode(errors='replace').strip()[:400]}")
        return done.stdout
    return driver.read_bytes()


def archive(folders: Iterable[str], files: Mapping[str, bytes]) -> Iterator[bytes]:
    """The parts of a cpio archive as the kernel takes it ("newc", Documentation/driver-api/early-userspace)."""
    entries = [*((name, 0o040755, b"") for name in folders), *((name, 0o100755, each) for name, each in files.items())]
    for number, (name, mode, content) in enumerate([*entries, ("TRAILER!!!", 0, b"")], 1):
        fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name.encode()) + 1, 0)
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
        yield head + b"\0" * (-len(head) % 4)
        yield content + b"\0" * (-len(content) % 4)
