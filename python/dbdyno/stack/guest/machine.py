"""A virtual machine that QEMU runs: started, talked to, ended; nothing of it is left, whatever ends it."""

import json
import os
import resource
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from dbdyno.model.printable import printable
from dbdyno.stack.guest.channel import PORT, GuestChannel
from dbdyno.stack.guest.kernels import Kernel, write_initramfs
from dbdyno.stack.layers.device import serial_in_guest
from dbdyno.stack.tools import needed, tool_path
from dbdyno.stack.undo.actions import TOKEN_VARIABLE, EndProcesses, RemoveTree
from dbdyno.stack.undo_log import Journal, journalled
from dbdyno.store.parts import write_synced
from dbdyno.system.child import DIES_WITH_US
from dbdyno.system.interrupt import shielded
from dbdyno.system.state import make_private, make_state_folder, new_token, scratch_path, state_folder

QEMU, PACKAGE = "qemu-system-x86_64", "qemu-system-x86"
CPUS_MAX = 4
_CONSOLE_BYTES_MAX = 64 * 1024  # of the last that a guest wrote
_CONSOLE_LINES = 12  # that an error repeats
_KVM_SECONDS = 20.0  # in which a machine boots under KVM, where that works
_RUNS = "dbdyno: the kernel runs"
# Without nokaslr, an image that unpacks itself would lie elsewhere with each boot, and an unpacked one would not.
_COMMAND_LINE = "console=ttyS0 quiet panic=-1 no_timer_check nokaslr"


@dataclass(frozen=True)
class DiskOfGuest:
    """The file that is the guest's disk, and what the guest is told of it."""

    file: Path
    bus: str
    rotational: bool
    write_cache: bool  # volatile, so that the guest flushes it
    port: int = 0  # of the AHCI controller, where that is its bus
    number: int = 0  # of the guest's disks, from 0

    def arguments(self) -> list[str]:
        """The options of QEMU."""
        cache_ = f"write-cache={'on' if self.write_cache else 'off'}"
        rate = f"rotation_rate={7200 if self.rotational else 1}"
        file = str(self.file).replace(",", ",,")
        name = f"disk{self.number or ''}"
        of_drive = f"drive={name},serial={serial_in_guest(self.number)}"
        controller = [] if self.number else ["virtio-scsi-pci,id=bus"]  # one for all
        devices = {
            "virtio": [f"virtio-blk-pci,{of_drive},{cache_}"],
            "scsi": [*controller, f"scsi-hd,bus=bus.0,{of_drive},{cache_},{rate}"],
            "ahci": [f"ide-hd,bus=ide.{self.port + self.number},{of_drive},{cache_},{rate}"],
            "nvme": [f"nvme,{of_drive}"],
        }[self.bus]
        drive = f"id={name},if=none,format=raw,cache=none,aio=threads,discard=unmap,file={file}"
        return ["-drive", drive, *(word for device in devices for word in ("-device", device))]


@dataclass(frozen=True)
class Machine:
    """What is booted."""

    kernel: Kernel
    memory_bytes: int
    command: str  # that the guest's shell runs
    python: Mapping[str, bytes] = field(default_factory=dict)  # modules: path -> content
    disks: Sequence[DiskOfGuest] = ()


class Console:
    """The last of what a guest wrote to its console, however much that is."""

    def __init__(self, file: IO[bytes]) -> None:
        self._kept, self._file = bytearray(), file
        self._thread = threading.Thread(target=self._listen, name="console of the guest", daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        with self._file as file:
            while content := os.read(file.fileno(), 4096):
                self._kept += content
                del self._kept[:-_CONSOLE_BYTES_MAX]

    @property
    def text(self) -> str:
        """Its last lines, for a person, once the guest has ended."""
        self._thread.join(1.0)
        written = printable(bytes(self._kept).decode(errors="replace"), keep="\n")
        lines = [line.strip()[:200] for line in written.splitlines() if line.strip()]
        return " / ".join(lines[-_CONSOLE_LINES:]) or "nothing"


@dataclass(frozen=True)
class Guest:
    """A machine that runs."""

    process: "subprocess.Popen[bytes]"
    channel: GuestChannel
    console: Console


@contextmanager
def booted(machine: Machine, journal: Journal, accelerator: str) -> Iterator[Guest]:
    """A machine that boots, for as long as the context lasts. Raises ``HostError``."""
    kernel, (ours, theirs) = machine.kernel, socket.socketpair()

    def options(scratch: Path) -> list[str]:
        archive = scratch / "initramfs"
        write_initramfs(archive, kernel.modules, kernel.release, machine.command, machine.python)
        return arguments(machine, archive, accelerator, theirs.fileno())

    with ours, theirs, qemu(journal, options, (theirs.fileno(),)) as process:
        theirs.close()
        assert process.stdout is not None  # noqa: S101  (it is a pipe)
        yield Guest(process, GuestChannel(ours.fileno()), Console(process.stdout))


@contextmanager
def qemu(
    journal: Journal,
    options: Callable[[Path], Sequence[str]],
    handles: tuple[int, ...] = (),
    file_bytes_max: int | None = None,
) -> Iterator["subprocess.Popen[bytes]"]:
    """QEMU, with options made for a scratch folder of its own, for as long as the context lasts.

    It keeps ``handles`` open, and ends where it writes a file beyond ``file_bytes_max``. Raises ``HostError``.
    """
    token = new_token()
    scratch = scratch_path(token)
    numbers = [journal.announce(undo) for undo in (RemoveTree(str(scratch)), EndProcesses(token, "the guest"))]
    process = None
    try:
        make_private(scratch)
        bound = DIES_WITH_US if tool_path(DIES_WITH_US[0]) else ()
        process = subprocess.Popen(
            [*bound, needed(QEMU, PACKAGE), *options(scratch)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=handles,
            env={**os.environ, TOKEN_VARIABLE: token, "TMPDIR": str(scratch)},
        )
        # Should the host run short of memory, it is the guest that must go, not a server of others.
        Path(f"/proc/{process.pid}/oom_score_adj").write_text("1000", encoding="ascii")
        if file_bytes_max is not None:
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (file_bytes_max, file_bytes_max))
            resource.prlimit(process.pid, resource.RLIMIT_CORE, (0, 0))
        yield process
    finally:
        with shielded():
            for number in reversed(numbers):
                journal.settle(number)
            if process:
                process.wait()


def arguments(machine: Machine, archive: Path, accelerator: str, port: int) -> list[str]:
    """The options of QEMU. The guest can write to its disks alone, and has no network."""
    return [
        *hardware(machine.memory_bytes, accelerator),
        *("-nic", "none"),
        *("-kernel", str(machine.kernel.image), "-initrd", str(archive), "-append", _COMMAND_LINE),
        *("-virtfs", "local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap"),
        *("-device", "virtio-serial-pci", "-chardev", f"socket,id=port,fd={port}"),
        *("-device", f"virtserialport,chardev=port,name={PORT}"),
        *(word for disk in machine.disks for word in disk.arguments()),
    ]


def hardware(memory_bytes: int, accelerator: str) -> list[str]:
    """The options of QEMU for every guest: its processors, memory and console, and what QEMU may ask of the host."""
    cpu = ("host", "kvm") if accelerator == "kvm" else ("max", "tcg,thread=multi")
    return [
        *("-M", "q35", "-cpu", cpu[0], "-accel", cpu[1], "-smp", str(cpus()), "-m", f"{memory_bytes >> 20}M"),
        *("-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot"),
        *("-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"),
    ]


def cpus() -> int:
    """Processors of a guest."""
    return min(CPUS_MAX, len(os.sched_getaffinity(0)))


def accelerator(kernel: Kernel) -> str:
    """``"kvm"`` where the kernel boots under it, else ``"tcg"``: QEMU then translates every instruction.

    That /dev/kvm can be opened proves nothing: a host may offer it for kernels of its own only, and others hang. So
    this one is booted, once for each boot of the host.
    """
    known = boots_under_kvm(kernel)
    if known is None:
        with journalled("whether KVM works") as journal:
            known = boots(kernel, journal, "kvm", _KVM_SECONDS)
        make_state_folder()
        tried = {**_tried_under_kvm(), str(kernel.image): known}
        write_synced(_kvm_file(), json.dumps({"host": _this_host(), "boots": tried}).encode())
    return "kvm" if known else "tcg"


def boots_under_kvm(kernel: Kernel) -> bool | None:
    """Whether a kernel boots under KVM, as far as that is known without trying."""
    return _tried_under_kvm().get(str(kernel.image)) if kvm_is_open() else False


def kvm_is_open() -> bool:
    """Whether this user may ask for KVM, which proves nothing about whether it works."""
    return os.access("/dev/kvm", os.R_OK | os.W_OK)


def _kvm_file() -> Path:
    return state_folder() / "kvm.json"


def _this_host() -> str:
    """What the outcome of a try holds for: this boot of the host, this QEMU."""
    qemu = Path(needed(QEMU, PACKAGE)).stat()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot} {qemu.st_mtime_ns} {qemu.st_size}"


def _tried_under_kvm() -> dict[str, bool]:
    """Image -> whether it boots; what is not known to hold for this host is not there."""
    try:
        known = json.loads(_kvm_file().read_bytes())
        if known["host"] != _this_host():
            return {}
        return {str(image): did is True for image, did in known["boots"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def boots(kernel: Kernel, journal: Journal, accelerator: str, seconds: float) -> bool:
    """Whether a machine boots so far that it runs a program and ends, within so many seconds."""
    machine = Machine(kernel, 512 * 1024**2, f"echo {_RUNS}")
    with booted(machine, journal, accelerator) as guest:
        try:
            guest.process.wait(seconds)
        except subprocess.TimeoutExpired:
            guest.process.kill()
        return _RUNS in guest.console.text
