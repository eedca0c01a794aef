"""Kernels that a guest can boot: images and modules in the state folder, each whole or not there at all."""

import json
import lzma
import shlex
import shutil
import struct
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dbdyno.errors import HostError, UserError
from dbdyno.model.design import BOOTED_KERNELS
from dbdyno.model.similar import did_you_mean
from dbdyno.servers.sources.debian import Debian
from dbdyno.servers.sources.source import FetchProgress, check_room, folder_bytes, put_in_place, unpack
from dbdyno.stack.tools import needed, tool_path
from dbdyno.system.locks import alone_at
from dbdyno.system.state import state_folder

RECORD = "kernel.json"
_XZ, _ZSTD = b"\xfd7zXZ\0", b"(\xb5/\xfd"
_PVH_ENTRY = struct.pack("<III4s", 4, 8, 18, b"Xen\0")  # the head of the note that names it (xen/interface/elfnote.h)
_WANTED = r"linux-(image|binary|modules)-[0-9].*"  # of the packages that a kernel's package depends on


@dataclass(frozen=True)
class KernelProduct:
    """A kernel that can be fetched."""

    name: str  # as a study says it
    suite: str
    download_mb: int  # about
    unpacked_mb: int  # about

    @property
    def source(self) -> Debian:
        """Where it comes from."""
        return Debian((self.suite,), ("linux-image-amd64",), only=_WANTED)


PRODUCTS = {
    product.name: product
    for product in (
        KernelProduct("debian-5.10", "bullseye", 56, 390),
        KernelProduct("debian-6.1", "bookworm", 71, 470),
        KernelProduct("debian-6.12", "trixie", 109, 200),
        KernelProduct("debian-7.2", "sid", 125, 200),
    )
}
assert tuple(PRODUCTS) == BOOTED_KERNELS  # noqa: S101  (a study's rules know them by name)


@dataclass(frozen=True)
class Kernel:
    """A kernel of this host's that a guest can boot."""

    name: str  # as a study says it
    release: str  # as uname says it
    image: Path
    modules: Path  # the folder that holds modules.dep


def kernels_folder() -> Path:
    """Where they lie."""
    return state_folder() / "kernels"


def known_kernels() -> list[dict[str, Any]]:
    """Every kernel of the catalogue with what is on this host; asks no registry."""
    return [_shown(product) for product in PRODUCTS.values()]


def _shown(product: KernelProduct) -> dict[str, Any]:
    folder = kernels_folder() / product.name
    record = _record(folder)
    return {
        "name": product.name,
        "installed": record is not None,
        "release": record["release"] if record else None,
        "source": product.source.kind,
        "coordinates": product.source.coordinates,
        "download_mb": product.download_mb,
        "unpacked_mb": product.unpacked_mb,
        "folder": str(folder) if record else None,
    }


def find_kernel(name: str) -> Kernel:
    """The kernel of a study. Raises ``UserError`` where it is not on this host."""
    if name.startswith("/"):
        return _at(Path(name))
    product, folder = product_named(name), kernels_folder() / name
    record = _record(folder)
    if record is None:
        raise UserError(f"{name} is not on this host; get it ({product.download_mb} MB): dbdyno kernels add {name}")
    return Kernel(name, record["release"], folder / record["image"], folder / record["modules"])


def _at(path: Path) -> Kernel:
    """A kernel of the user's own: the folder that a package was unpacked into, or an image in its boot folder."""
    if path.is_dir():
        return _in_tree(str(path), path)
    release = path.name.partition("-")[2]
    modules = path.parent.parent / "lib" / "modules" / release
    if path.is_file() and (modules / "modules.dep").is_file():
        return Kernel(str(path), release, path, modules)
    raise UserError(
        f"{path} is not a kernel with its modules; name the folder that its package was unpacked into, or an image "
        "boot/vmlinuz-VERSION beside lib/modules/VERSION with the modules.dep that depmod writes"
    )


def _in_tree(name: str, tree: Path) -> Kernel:
    """The one kernel below a folder, however its package lays it out. Raises ``UserError``."""
    modules = sorted(path.parent for at in ("lib", "usr/lib") for path in tree.glob(f"{at}/modules/*/kernel"))
    if len(modules) != 1:
        raise UserError(f"{tree} holds {len(modules)} kernels with modules; name a folder that holds one")
    images = (tree / "boot" / f"vmlinuz-{modules[0].name}", modules[0] / "vmlinuz")
    image = next((path for path in images if path.is_file()), None)
    if image is None:
        raise UserError(f"{tree} holds no image of kernel {modules[0].name}: neither {images[0]} nor {images[1]}")
    return Kernel(name, modules[0].name, image, modules[0])


def product_named(name: str) -> KernelProduct:
    """A kernel of the catalogue. Raises ``UserError``."""
    if name not in PRODUCTS:
        known = f"known are {', '.join(PRODUCTS)}{did_you_mean(name, PRODUCTS)}"
        raise UserError(f"{name!r} is not a kernel that dbdyno can get; {known}")
    return PRODUCTS[name]


def add(name: str, progress: FetchProgress) -> dict[str, Any]:
    """Get a kernel; returns its record. Nothing happens where it is there. Raises ``HostError``."""
    product, folder = product_named(name), kernels_folder() / name
    with alone_at(kernels_folder(), name):
        if record := _record(folder):
            return record
        part = kernels_folder() / f"{name}.part"
        downloads, tree = part / "downloads", part / "tree"
        downloads.mkdir(parents=True, exist_ok=True)
        check_room(name, product.download_mb + product.unpacked_mb, downloads, kernels_folder())
        files = product.source.fetch(downloads, progress)
        unpack(product.source, downloads, files, tree, progress)
        kernel = _in_tree(name, tree)
        if not kernel.release.startswith(f"{name.removeprefix('debian-')}."):
            raise HostError(f"Debian's {product.suite} has kernel {kernel.release} by now, and {name} no more")
        list_modules(kernel)
        kernel = _with_plain_image(kernel)
        record = {
            "name": name,
            "release": kernel.release,
            "image": str(kernel.image.relative_to(tree)),
            "modules": str(kernel.modules.relative_to(tree)),
            "source": product.source.kind,
            "coordinates": product.source.coordinates,
            "bytes": folder_bytes(tree),
            "files": files,
        }
        put_in_place(tree, record, folder / RECORD)
    return record


def list_modules(kernel: Kernel) -> None:
    """Write down which module needs which. Raises ``HostError``."""
    base = kernel.modules.parent.parent.parent  # of lib/modules
    argv = [needed("depmod", "kmod"), "-b", str(base), kernel.release]
    done = subprocess.run(argv, check=False, capture_output=True, encoding="utf-8", errors="replace")
    if done.returncode:
        raise HostError(f"depmod of {kernel.release}: {done.stderr.strip()[:400]}")


def _with_plain_image(kernel: Kernel) -> Kernel:
    """The kernel with its image unpacked once, where QEMU boots such a one: else each guest would."""
    plain = plain_image(kernel.image.read_bytes())
    if plain is None:
        return kernel
    path = kernel.image.with_name(f"vmlinux-{kernel.release}")
    path.write_bytes(plain)
    kernel.image.unlink()
    return replace(kernel, image=path)


def plain_image(packed: bytes) -> bytes | None:
    """The ELF file in an image ("bzImage", Documentation/arch/x86/boot.rst), if QEMU can boot it by PVH."""
    if packed[0x202:0x206] != b"HdrS":
        return None
    (offset, length), sectors = struct.unpack_from("<II", packed, 0x248), packed[0x1F1] or 4
    content = packed[512 * (sectors + 1) + offset :][: length - 4]  # its size when unpacked follows it
    if content.startswith(_ZSTD) and not tool_path("zstd"):
        return None
    plain = _unpacked(content)
    return plain if plain.startswith(b"\x7fELF") and _PVH_ENTRY in plain else None


def remove(name: str) -> bool:
    """Remove a kernel and what an unfinished try left; whether there was any."""
    folder, part = kernels_folder() / product_named(name).name, kernels_folder() / f"{name}.part"
    if not folder.exists() and not part.exists():
        return False
    with alone_at(kernels_folder(), name):
        if folder.exists():
            part.mkdir(exist_ok=True)
            folder.rename(part / "removed")  # at once: what is half removed must not be taken for whole
        shutil.rmtree(part)
    return True


def _record(folder: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except OSError:
        return None
    return found


# The first program of a guest: a small archive that loads a kernel's drivers and enters the host's own root folder.
#
# The guest sees the root folder of this host read only, by 9p, and writes into memory above it (overlayfs). So it has
# this very Python, dbdyno, server and mkfs, and nothing needs to be installed in it.


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
        **{f"drivers/{name}": _unpacked(driver.read_bytes()) for name, driver in drivers.items()},
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


def _unpacked(content: bytes) -> bytes:
    """A file of a kernel's as insmod and QEMU want it. Raises ``HostError`` where zstd is needed and missing."""
    if content.startswith(_XZ):
        try:
            return lzma.decompress(content)
        except lzma.LZMAError as error:
            raise HostError(f"a file of the kernel's can't be unpacked: {error}") from None
    if content.startswith(_ZSTD):
        done = subprocess.run([needed("zstd", "zstd"), "-dcq"], input=content, check=False, capture_output=True)
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()[:400]
            raise HostError(f"a file of the kernel's can't be unpacked: zstd: {said}")
        return done.stdout
    return content


def archive(folders: Iterable[str], files: Mapping[str, bytes]) -> Iterator[bytes]:
    """The parts of a cpio archive as the kernel takes it ("newc", Documentation/driver-api/early-userspace)."""
    entries = [*((name, 0o040755, b"") for name in folders), *((name, 0o100755, each) for name, each in files.items())]
    for number, (name, mode, content) in enumerate([*entries, ("TRAILER!!!", 0, b"")], 1):
        fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name.encode()) + 1, 0)
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
        yield head + b"\0" * (-len(head) % 4)
        yield content + b"\0" * (-len(content) % 4)
