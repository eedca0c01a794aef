"""Running the system's own tools, with errors that name the command and the remedy."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dbdyno.errors import HostError, TrialError
from dbdyno.filesystems import KINDS
from dbdyno.system.child import DIES_WITH_US, child, decoded

PACKAGES = {
    **{kind.program: kind.package for kind in KINDS.values()},
    "losetup": "mount",
    "setpriv": "util-linux",
    "blockdev": "util-linux",
    "wipefs": "util-linux",
    "fusermount3": "fuse3",
    "modprobe": "kmod",
    "mdadm": "mdadm",
    "make-bcache": "bcache-tools",
    "cryptsetup": "cryptsetup-bin",
    "dmsetup": "dmsetup",
    **dict.fromkeys(("vgcreate", "vgs", "vgrename", "vgchange", "lvcreate", "lvs"), "lvm2"),
    "mariadbd": "mariadb-server-core",
    "mariadb-install-db": "mariadb-server-core",
}


def tool_path(name: str) -> str | None:
    """Where a system tool is: on PATH, or in the sbin folders that a user's PATH leaves out."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin:/usr/local/sbin")


def needed(name: str, package: str = "") -> str:
    """Where a tool is, that comes in a package. Raises ``HostError``."""
    path = tool_path(name)
    if path is None:
        raise not_installed(name, package or PACKAGES.get(name, ""))
    return path


def not_installed(name: str, package: str) -> HostError:
    """What is said of a program that is not there."""
    remedy = f"install it: apt-get install {package}" if package else "name a program that there is"
    return HostError(f"{name} is not installed; {remedy}")


def own_binary(name: str) -> str:
    """Path of one of dbdyno's own programs, which stand beside its Python. Raises ``HostError``."""
    beside = Path(sys.executable).parent / name
    path = str(beside) if beside.is_file() else shutil.which(name)
    if path is None:
        raise HostError(f"{name} is neither beside {sys.executable} nor on PATH; build it with: make build")
    return path


@dataclass(frozen=True)
class ToolResult:
    """How a tool ended."""

    command: str
    code: int
    out: str
    err: str

    @property
    def message(self) -> str:
        """What it said, on one line: its errors, or else its output."""
        return (self.err.strip() or self.out.strip() or "it said nothing").replace("\n", " / ")


def tool_done(argv: Sequence[str], *, timeout_seconds: float = 120, pass_fds: tuple[int, ...] = ()) -> ToolResult:
    """Run a tool to its end, whatever its exit code.

    Raises ``HostError`` where the tool is not installed (no trial can go without it), ``TrialError`` where it hangs.
    """
    path = needed(argv[0])
    command = " ".join(argv)
    # Should dbdyno be killed, its tools go with it: none must change the host after ``restore`` has looked.
    bound = [*DIES_WITH_US, path, *argv[1:]]
    try:
        with child(bound, env={**os.environ, "LC_ALL": "C"}, pass_fds=pass_fds) as tool:
            out, err = map(decoded, tool.communicate(timeout=timeout_seconds))
    except subprocess.TimeoutExpired:
        raise TrialError(f"{command}: not done after {timeout_seconds:g} s, so it was ended") from None
    return ToolResult(command, tool.returncode, out, err)


def run_tool(argv: Sequence[str], *, timeout_seconds: float = 120, pass_fds: tuple[int, ...] = ()) -> str:
    """Run a tool to its end; returns its standard output.

    Raises ``HostError`` where the tool is not installed (no trial can go without it), ``TrialError`` where it fails.
    """
    done = tool_done(argv, timeout_seconds=timeout_seconds, pass_fds=pass_fds)
    if done.code != 0:
        raise TrialError(f"{done.command}: exit {done.code}: {done.message}")
    return done.out
