"""OpenZFS for a kernel that a guest boots: its modules built from Debian's source, its tools beside them.

One version serves all kernels, as a pool that a newer one has made an older one can't open. The compiler is that of
the kernel's own suite, with the C library and all else that it needs, in a tree that is the build's root folder for as
long as it takes; so the host needs no compiler, and nothing is installed on it.
"""

import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from dbdyno.errors import HostError, UserError
from dbdyno.servers.sources.debian import Debian
from dbdyno.servers.sources.installation import loader_of
from dbdyno.servers.sources.source import FetchProgress, check_room, put_in_place, run_client, unpack
from dbdyno.stack.guest.kernels import KernelProduct, find_kernel, kernels_folder, list_modules, product_named
from dbdyno.stack.guest.kernels import add as add_kernel
from dbdyno.system.locks import alone_at

RECORD, FOLDER = "openzfs.json", "openzfs"  # in the folder of a kernel's modules
TOOLS = ("zpool", "zfs")
SUITE = "trixie"
DOWNLOAD_MB, BUILD_MB = 130, 1100  # about
_LIBRARIES = r"lib(zfs|zpool|nvpair|uutil)\d+linux|libc6|libblkid1|libuuid1|libudev1|libcap2|libssl3t64|zlib1g|libzstd1"
_SOURCE = Debian(
    (SUITE,), ("zfs-dkms", "zfsutils-linux"), only=rf"zfs-dkms|zfsutils-linux|{_LIBRARIES}", components="main contrib"
)
# What configure and the kernel's Makefile call, beside the compiler that the headers' package depends on.
_PROGRAMS = ("make", "bash", "dash", "coreutils", "sed", "grep", "findutils", "diffutils", "gawk", "kmod", "binutils",
             "libc6-dev")  # fmt: skip
_BOUNDS = re.compile(r"^Linux-(Minimum|Maximum):\s*(\d+)\.(\d+)$", re.MULTILINE)
_NOT_THERE = re.compile(r"E: (Version '\S+' for '\S+' was not found|Unable to locate package)")
_VERSION = re.compile(r"^Version:\s*(\S+)$", re.MULTILINE)
# Beside its files a build needs this one device, and objtool its limits in /proc. The namespace, and all that runs in
# it, ends with the first program.
_ENTER = """\
set -e
touch "$1/dev/null"
mount --bind /dev/null "$1/dev/null"
mount -t proc proc "$1/proc"
exec chroot "$1" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C HOME=/tmp /bin/bash -e "$2"
"""
_CONFIGURE = """\
cd /usr/src/zfs
./configure CC="$(ls /usr/bin | grep -E '^(x86_64-linux-gnu-)?gcc-[0-9]+$' | head -n 1)" \\
    --with-config=kernel --disable-dependency-tracking \\
    --with-linux="$(echo /usr/src/linux-headers-*-common)" --with-linux-obj=/usr/src/linux-headers-{release}
"""
_MAKE = """\
cd /usr/src/zfs
make -s -j{jobs}
mkdir -p /built
for module in spl zfs; do strip --strip-debug -o /built/$module.ko "$(find module -name $module.ko)"; done
"""


@dataclass(frozen=True)
class OpenZfs:
    """OpenZFS of a kernel: what is known of it, and where its tools are."""

    version: str  # 2.3.9
    folder: Path

    def tool(self, name: str) -> list[str]:
        """How a tool is called: by the loader and the C library that came along."""
        tree = self.folder / "tools"
        return [*loader_of(tree), str(tree / "sbin" / name)]


def openzfs_of(modules: Path) -> OpenZfs | None:
    """OpenZFS beside the modules of a kernel; ``None`` where it has none that is whole."""
    try:
        record = json.loads((modules / FOLDER / RECORD).read_text(encoding="utf-8"))
    except OSError:
        return None
    return OpenZfs(record["version"], modules / FOLDER) if _is_listed(modules) else None


def _is_listed(modules: Path) -> bool:
    """Whether modprobe finds it."""
    return f"\n{FOLDER}/zfs.ko:" in f"\n{(modules / 'modules.dep').read_text(encoding='utf-8')}"


def add_openzfs(name: str, progress: FetchProgress) -> dict[str, Any]:
    """Get a kernel and build OpenZFS for it; returns its record. Nothing happens where it is there.

    Raises ``HostError``, and ``UserError`` for a kernel that it knows nothing of.
    """
    product = product_named(name)
    add_kernel(name, progress)
    with alone_at(kernels_folder(), name):
        kernel = find_kernel(name)
        folder = kernel.modules / FOLDER
        if not (folder / RECORD).exists():
            _build(product, kernel.release, folder, progress)
        if not _is_listed(kernel.modules):
            list_modules(kernel)
        record: dict[str, Any] = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    return record


def _build(product: KernelProduct, release: str, folder: Path, progress: FetchProgress) -> None:
    part = kernels_folder() / f"{product.name}.part"
    part.mkdir(exist_ok=True)
    check_room(f"OpenZFS for {product.name}", DOWNLOAD_MB + BUILD_MB, part, kernels_folder())
    downloads = {which: part / which for which in ("downloads-zfs", "downloads-compiler")}
    for place in downloads.values():
        place.mkdir(exist_ok=True)
    zfs, root, tree = part / "zfs", part / "root", part / "tree"
    files = _SOURCE.fetch(downloads["downloads-zfs"], progress)
    unpack(_SOURCE, downloads["downloads-zfs"], files, zfs, progress)
    (source,) = (zfs / "usr/src").glob("zfs-*")
    version = _check_version(product.name, release, (source / "META").read_text(encoding="utf-8"))
    compiler = _compiler(product, release)
    try:
        fetched = compiler.fetch(downloads["downloads-compiler"], progress)
    except HostError as error:
        if not _NOT_THERE.search(str(error)):
            raise
        raise HostError(
            f"Debian's {product.suite} has the headers of {release} no more; get the kernel that it has by now: "
            f"dbdyno kernels remove {product.name}, then dbdyno kernels add {product.name} --zfs"
        ) from None
    unpack(compiler, downloads["downloads-compiler"], fetched, root, progress)
    source.rename(root / "usr/src/zfs")
    _run_inside(root, _CONFIGURE.format(release=release), progress, f"configuring OpenZFS {version} for {release}")
    _run_inside(root, _MAKE.format(jobs=len(os.sched_getaffinity(0))), progress, "building its modules; takes minutes")
    shutil.rmtree(tree, ignore_errors=True)
    (tree / "tools").mkdir(parents=True)
    for module in ("spl.ko", "zfs.ko"):
        (root / "built" / module).rename(tree / module)
    _keep_tools(zfs, tree / "tools")
    record = {"version": version, "kernel": release, "coordinates": _SOURCE.coordinates, "files": files}
    put_in_place(tree, record, folder / RECORD)


def _check_version(name: str, release: str, meta: str) -> str:
    """The version of a source, by its file META. Raises ``UserError`` where it is for other kernels."""
    bounds = {which: (int(major), int(minor)) for which, major, minor in _BOUNDS.findall(meta)}
    version = _VERSION.search(meta)
    if version is None or len(bounds) != 2:  # noqa: PLR2004  (from, to)
        raise HostError("zfs-dkms: its file META does not say for which kernels it is")
    major, minor = release.split(".")[:2]
    own = int(major), int(minor)
    if not bounds["Minimum"] <= own <= bounds["Maximum"]:
        least, most = (".".join(map(str, bounds[which])) for which in ("Minimum", "Maximum"))
        raise UserError(
            f"OpenZFS {version[1]} of Debian's {SUITE} is for kernels from {least} to {most}, and {name} is {release}"
        )
    return version[1]


def _compiler(product: KernelProduct, release: str) -> Debian:
    """The headers of the very kernel that is here, and what compiles by them."""
    record = json.loads((kernels_folder() / product.name / "kernel.json").read_text(encoding="utf-8"))
    version = unquote(next(iter(record["files"])).split("_")[1])
    headers = f"linux-headers-{release}={version}"
    return Debian((product.suite,), (headers, *_PROGRAMS), only=r"(?!linux-image-).*")


def _run_inside(root: Path, script: str, progress: FetchProgress, text: str) -> None:
    """Run a step of the build with ``root`` as its root folder. Raises ``HostError``."""
    progress.step(text)
    for name in ("bin", "sbin", "lib", "lib64"):  # where a suite's packages have /usr alone
        if not (root / name).exists():
            (root / name).symlink_to(f"usr/{name}")
    for name in ("dev", "proc", "tmp"):
        (root / name).mkdir(exist_ok=True)
    if not (root / "usr/bin/awk").exists():  # a link that installing would make
        (root / "usr/bin/awk").symlink_to("gawk")
    (root / "step").write_text(script, encoding="utf-8")
    enter = root.with_name("enter")
    enter.write_text(_ENTER, encoding="utf-8")
    own = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    argv = ["unshare", *own, "--mount", "--pid", "--fork", "--kill-child", "--", "/bin/sh", str(enter), str(root)]
    remedy = "has the host room and memory, and may you make namespaces (user.max_user_namespaces)?"
    run_client([*argv, "/step"], root, remedy=remedy, package="util-linux")


def _keep_tools(zfs: Path, into: Path) -> None:
    """Keep the tools and the libraries that they load."""
    for folder in ("lib", "lib64", "usr/lib", "usr/lib64"):
        if (zfs / folder).is_dir():
            # depmod, which reads all that lies beside the modules, complains of links of systemd's.
            shutil.copytree(zfs / folder, into / folder, symlinks=True, ignore=shutil.ignore_patterns("systemd"))
    (into / "sbin").mkdir()
    for tool in TOOLS:
        found = next(path for path in (zfs / "sbin" / tool, zfs / "usr/sbin" / tool) if path.exists())
        shutil.copy2(found, into / "sbin" / tool)
