"""Machines of the user's own: QEMU boots a disk image, whatever system is on it, and dbdyno logs in by ssh.

What the machine writes to its system drive goes to an overlay, a file without a name in the scratch folder; the image
is opened for reading alone. The network is QEMU's own: the machine reaches neither this host nor any other, and two of
its ports can be reached, at 127.0.0.1.
"""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dbdyno.errors import HostError, TrialError, UserError
from dbdyno.model.printable import short
from dbdyno.stack.guest.machine import Console, DiskOfGuest, hardware, qemu
from dbdyno.stack.tools import needed
from dbdyno.stack.undo_log import Journal
from dbdyno.system.child import DIES_WITH_US, child

OVERLAY_BYTES_MAX = 8 * 1024**3  # that a machine may write to its system drive, until its power is cut
BOOT_SECONDS, SETUP_SECONDS, SHUTDOWN_SECONDS = 900.0, 3600.0, 300.0
_SSH_PORT = 22
_TRY_SECONDS, _PAUSE_SECONDS = 60.0, 1.0  # of one login, and between two
_DENIED_SECONDS = 60.0  # for which a login that is refused may be refused because the system is not ready yet
_SSH_LOST = 255  # ssh's own exit code
_QCOW2 = b"QFI\xfb"
# How images begin that QEMU is not given here -> what they are, and what to do.
_OTHERS = {
    b"KDMV": "a VMDK image; convert it: qemu-img convert -O qcow2",
    b"vhdxfile": "a VHDX image; convert it: qemu-img convert -O qcow2",
    b"conectix": "a VHD image; convert it: qemu-img convert -O qcow2",
    b"<<< ": "a VDI image; convert it: qemu-img convert -O qcow2",
    b"\xfd7zXZ": "packed; unpack it: xz -d",
    b"\x1f\x8b": "packed; unpack it: gunzip",
    b"(\xb5/\xfd": "packed; unpack it: zstd -d",
    b"BZh": "packed; unpack it: bunzip2",
}


def image_format(path: Path) -> str:
    """``"qcow2"`` or ``"raw"``. Raises ``UserError`` where a file is neither, or can't be read."""
    try:
        if not path.is_file():
            raise UserError(f"{path} is no file; name a disk image, qcow2 or raw")
        with path.open("rb") as file:
            head = file.read(512)
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror}") from None
    if head.startswith(_QCOW2):
        return "qcow2"
    for beginning, what in _OTHERS.items():
        if head.startswith(beginning):
            raise UserError(f"{path} is {what} {path}")
    if head[510:512] != b"\x55\xaa":
        raise UserError(f"{path} is neither qcow2 nor a raw disk that a BIOS can boot; name a disk image")
    return "raw"


def free_ports(number: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens at; QEMU refuses to start where another takes one meanwhile."""
    sockets = [socket.socket() for _ in range(number)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


class NotUpError(TrialError):
    """A machine lets dbdyno in, and its server does not come up: a command was refused, or nothing answers."""


@dataclass(frozen=True)
class ImageMachine:
    """What is booted, and how it is reached."""

    image: Path
    login: str
    key: Path
    memory_bytes: int
    server_port: int  # in the machine
    ports: tuple[int, int]  # of 127.0.0.1: to its sshd, and to its server

    def arguments(self, disk: DiskOfGuest, accelerator: str) -> list[str]:
        """The options of QEMU. The machine can write to its disk and to an overlay alone."""
        file = str(self.image).replace(",", ",,")
        forwards = zip(self.ports, (_SSH_PORT, self.server_port), strict=True)
        network = [f"hostfwd=tcp:127.0.0.1:{here}-:{there}" for here, there in forwards]
        return [
            *hardware(self.memory_bytes, accelerator),
            *("-vga", "std"),  # boot loaders expect one
            *("-machine", "graphics=off"),  # so that the BIOS and most of them write to the console, too
            *("-drive", f"id=system,if=none,format={image_format(self.image)},snapshot=on,file={file}"),
            *("-device", "ide-hd,bus=ide.0,drive=system,bootindex=1"),
            *("-netdev", ",".join(["user", "id=net", "restrict=on", *network])),
            *("-device", "virtio-net-pci,netdev=net,romfile="),
            *disk.arguments(),
        ]

    def ssh(self, command: str) -> list[str]:
        """The words that run a shell command in it. Its host key is not asked for: QEMU itself holds the port."""
        options = (
            "BatchMode=yes",
            "IdentitiesOnly=yes",
            "ConnectTimeout=30",
            "ServerAliveInterval=10",
            "ServerAliveCountMax=6",
            "StrictHostKeyChecking=no",
            "UserKnownHostsFile=/dev/null",
            "GlobalKnownHostsFile=/dev/null",
            "LogLevel=ERROR",
            "ForwardAgent=no",
            "ForwardX11=no",
        )
        words = [word for option in options for word in ("-o", option)]
        target = f"{self.login}@127.0.0.1"
        return ["ssh", "-T", "-F", "none", "-i", str(self.key), "-p", str(self.ports[0]), *words, "--", target, command]


@contextmanager
def booted_image(
    machine: ImageMachine, disk: DiskOfGuest, journal: Journal, accelerator: str
) -> Iterator["RunningMachine"]:
    """A machine that boots, for as long as the context lasts; then its power is cut. Raises ``HostError``."""
    needed("ssh", "openssh-client")
    file_bytes_max = max(OVERLAY_BYTES_MAX, disk.file.stat().st_size)
    with qemu(journal, lambda _: machine.arguments(disk, accelerator), (), file_bytes_max) as process:
        assert process.stdout is not None  # noqa: S101  (it is a pipe)
        yield RunningMachine(machine, process, Console(process.stdout))


@dataclass(frozen=True)
class RunningMachine:
    """A machine that has power."""

    machine: ImageMachine
    process: "subprocess.Popen[bytes]"
    console: Console

    def wait_for_login(self) -> None:
        """Wait until ssh lets the login in. Raises ``TrialError``, or ``HostError`` where its key is refused."""
        until, denied_at, complaint = time.monotonic() + BOOT_SECONDS, None, ""
        while time.monotonic() < until:
            self.check_power()
            code, complaint = self._ssh("exit 0", _TRY_SECONDS)
            if code == 0:
                return
            if "Permission denied" in complaint:
                denied_at = denied_at or time.monotonic()
                if time.monotonic() - denied_at > _DENIED_SECONDS:
                    raise HostError(
                        f"{self.machine.image} does not let {self.machine.login} in by the key {self.machine.key}: "
                        f"{complaint}; put its public half into that user's authorized_keys in the image"
                    )
            time.sleep(_PAUSE_SECONDS)
        raise self._failure(f"no login by ssh within {BOOT_SECONDS:.0f} s ({complaint})")

    def run(self, field: str, command: str, limit_seconds: float) -> None:
        """Run a command that a field of the study gives.

        Raises ``NotUpError`` where it fails or is not done in time, ``TrialError`` where the machine is lost.
        """
        code, output = self._ssh(command, limit_seconds)
        self.check_power()
        if code is None:
            raise NotUpError(f"stack.{field}: not done after {limit_seconds:.0f} s: {output}")
        if code == _SSH_LOST:
            raise TrialError(f"stack.{field}: exit {code} (the connection was lost): {output}")
        if code != 0:
            raise NotUpError(f"stack.{field}: exit {code}: {output}")

    def system(self) -> str:
        """What the machine says that it runs; ``"unknown"`` where it has no such program."""
        code, output = self._ssh("uname -srm", _TRY_SECONDS)
        return short(output, 100) if code == 0 and output else "unknown"

    def shut_down(self) -> None:
        """Have the system write all that it holds and turn the power off. Raises ``TrialError``."""
        _, output = self._ssh("poweroff || shutdown -p now", _TRY_SECONDS)
        try:
            self.process.wait(SHUTDOWN_SECONDS)
        except subprocess.TimeoutExpired:
            raise self._failure(f"it did not turn off within {SHUTDOWN_SECONDS:.0f} s of poweroff ({output})") from None

    def check_power(self) -> None:
        """Raise ``TrialError`` where the machine has ended by itself."""
        if self.process.poll() is not None:
            raise self._failure("it turned off")

    def _failure(self, what: str) -> TrialError:
        self.process.kill()
        return TrialError(f"the machine of {self.machine.image}: {what}; its console: {self.console.text}")

    def _ssh(self, command: str, seconds: float) -> tuple[int | None, str]:
        """The exit code, ``None`` where it took longer; and the last lines of what it wrote, which is bounded."""
        argv = self.machine.ssh(command)
        with child([*DIES_WITH_US, *argv], env={**os.environ, "LC_ALL": "C"}, stderr=subprocess.STDOUT) as process:
            assert process.stdout is not None  # noqa: S101  (it is a pipe)
            written = Console(os.fdopen(os.dup(process.stdout.fileno()), "rb"))
            try:
                code = process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                code = None
        return code, written.text
