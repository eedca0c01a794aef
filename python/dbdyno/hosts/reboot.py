"""Restart hosts with another kernel, and return them to their own: what is to be returned is on disk here first.

Before a host is restarted, this machine writes down the kernel that it had, and which process does so. That record
stays until the host was read back to run that kernel again: a study returns its hosts at its end, and ``dbdyno restore
--hosts`` those of a study that was killed.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic, sleep

from dbdyno.errors import HostError
from dbdyno.hosts.connections import Connections
from dbdyno.hosts.contract import NotInstalledError
from dbdyno.hosts.frames import KERNEL, Bootable, Nothing, Running
from dbdyno.hosts.inventory import Inventory, InventoryHost, cluster_folder
from dbdyno.hosts.look import this_machine
from dbdyno.hosts.ssh import Channel
from dbdyno.model.printable import short
from dbdyno.stack.undo_log import ProcessIdentity
from dbdyno.store.documents import json_object
from dbdyno.store.parts import write_synced
from dbdyno.study.units import format_roughly
from dbdyno.system.files import read_regular

_LOOK_SECONDS = 1.0  # between two looks at whether a host is back
_GOING_DOWN_SECONDS = 10.0  # from when a host is asked to restart until it can't be reached any more
_RECORD_BYTES_MAX = 4096
_ERRORS_BYTES_MAX = 64 * 1024
Connect = Callable[[], AbstractContextManager[Channel]]  # to the agent of a host. Raises ``HostError``


# The record of a host.


@dataclass(frozen=True)
class OwnKernel:
    """The kernel that a host had before a study restarted it, and the process that is to return it."""

    kernel: str
    pid: int
    started: str
    ssh: str  # whom ssh reached: another file of hosts may give another machine the same name
    boot: str = ""  # the start of the host at which it was last asked to restart

    @property
    def is_awaited(self) -> bool:
        """Whether that process still runs."""
        return ProcessIdentity(self.pid, self.started).alive()


def _path(inventory: Inventory, name: str) -> Path:
    return cluster_folder(inventory.cluster.name) / "booted" / f"{name}.json"


def own_kernel(inventory: Inventory, name: str, host: InventoryHost) -> OwnKernel | None:
    """The record of a host; none where it has its own kernel. Raises ``HostError`` where it can't be used."""
    path = _path(inventory, name)
    try:
        record = json_object(read_regular(path, _RECORD_BYTES_MAX))
        kernel, ssh = str(record["kernel"]), str(record["ssh"])
        if not KERNEL.fullmatch(kernel):
            raise ValueError("its kernel is not a version")  # noqa: TRY301  (said below)
        if ssh != host.ssh:
            raise ValueError(f'it is of ssh = "{ssh}", and {inventory.path} has "{host.ssh}"')  # noqa: TRY301
        return OwnKernel(kernel, int(str(record["pid"])), str(record["started"]), ssh, str(record["boot"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError) as error:
        why = f"{path} has the kernel to which {name} is to be returned, and can't be used: {short(str(error))}"
        raise HostError(f"{why}; restart that host with its own kernel by hand, then remove the file") from None


def record_own_kernel(inventory: Inventory, name: str, host: InventoryHost, kernel: str, boot: str = "") -> None:
    """Have it on disk that this process is to return a host to a kernel. Raises ``HostError``."""
    owner, path = ProcessIdentity.of(os.getpid()), _path(inventory, name)
    assert owner is not None  # noqa: S101  (this process runs)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        record = OwnKernel(kernel, owner.pid, owner.started, host.ssh, boot)
        write_synced(path, json.dumps(asdict(record)).encode())
    except OSError as error:
        raise HostError(f"{path}: {error.strerror}") from None


def _forget_own_kernel(inventory: Inventory, name: str) -> None:
    """A host has its own kernel again. Raises ``HostError``."""
    path = _path(inventory, name)
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise HostError(f"{path}: {error.strerror}") from None


# One restart.


def restart_host(inventory: Inventory, name: str, host: InventoryHost, kernel: str, connect: Connect) -> None:
    """Restart a host with a kernel, unless it runs; when this returns the host is back and has said so itself.

    The host's own kernel is on record. Raises ``HostError`` where it is not back in its time, or has another kernel.
    """
    own, program = own_kernel(inventory, name, host), inventory.boot_program(host)
    assert own is not None  # noqa: S101  (the caller has written it down)
    before = _settle(own, connect, monotonic() + host.boot_within, patient=program is None)
    if before is None or before.kernel != kernel:
        record_own_kernel(inventory, name, host, own.kernel, before.boot if before else own.boot)
        if program is not None:
            _call(program, name, host, kernel)
        else:
            with connect() as channel:
                channel.ask({"do": "boot", "kernel": kernel, "way": host.boot}, Nothing)
        _await_kernel(name, kernel, before, connect, host.boot_within)
    with connect() as channel:
        channel.ask({"do": "booted", "way": host.boot}, Nothing)  # so the next start is the usual one


def _settle(own: OwnKernel, connect: Connect, until: float, *, patient: bool) -> Running | None:
    """What runs on a host, once a restart that it was asked for before is over.

    The process that asked for it may have been killed since: so a host that is still as it was then is looked at for a
    while. ``patient`` waits for one that can't be reached, else that is ``None``. Raises ``HostError``.
    """
    going_down_until = monotonic() + _GOING_DOWN_SECONDS
    while True:
        try:
            with connect() as channel:
                running = channel.ask({"do": "running"}, Running)
        except NotInstalledError:
            raise  # which waiting does not change
        except HostError:
            if monotonic() > (until if patient else going_down_until):
                if patient:
                    raise
                return None
        else:
            if running.boot != own.boot or monotonic() > going_down_until:
                return running
        sleep(_LOOK_SECONDS)


def _await_kernel(name: str, kernel: str, before: Running | None, connect: Connect, seconds: float) -> None:
    """Wait until a host is back with a kernel. Raises ``HostError``."""
    until, why = monotonic() + seconds, ""
    while monotonic() < until:
        sleep(_LOOK_SECONDS)
        try:
            with connect() as channel:
                now = channel.ask({"do": "running"}, Running)
        except HostError as error:
            why = str(error).removeprefix(f"{name}: ")
            continue
        if now.kernel == kernel:
            return
        if before is not None and now.boot != before.boot:
            raise HostError(f"{name}: was restarted with kernel {kernel}, and came back with {now.kernel}")
        why = f"it has not restarted, and runs {now.kernel}"
    raise HostError(f"{name}: is not back with kernel {kernel} after {format_roughly(seconds)}: {why}")


def _call(program: Path, name: str, host: InventoryHost, kernel: str) -> None:
    """Have a program here restart a host. Raises ``HostError`` where it fails.

    It goes on if dbdyno is killed: a host in the middle of a restart is of no use to anyone. Its errors go to a file,
    as a pipe would be waited for until each program that it leaves behind has ended.
    """
    with tempfile.TemporaryFile() as errors:
        try:
            done = subprocess.run(
                [str(program), name, host.ssh, kernel],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                timeout=host.boot_within,
                start_new_session=True,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise HostError(f"{name}: {program} has not ended after {format_roughly(host.boot_within)}") from None
        except OSError as error:
            raise HostError(f"{name}: {program}: {error.strerror}") from None
        if done.returncode:
            errors.seek(-min(_ERRORS_BYTES_MAX, errors.seek(0, os.SEEK_END)), os.SEEK_END)
            lines = errors.read(_ERRORS_BYTES_MAX).decode(errors="replace").strip().splitlines()
            raise HostError(f"{name}: {program}: {short(lines[-1]) if lines else f'exit {done.returncode}'}")


# Hosts that other studies have left with another kernel.


def hosts_not_returned(inventory: Inventory, names: Collection[str]) -> Iterator[str]:
    """A sentence for each of these hosts that another study restarted and has not returned. Raises ``HostError``."""
    for name in names:
        own = own_kernel(inventory, name, inventory.hosts[name])
        if own is not None and own.is_awaited:
            yield f"{name}: process {own.pid} has restarted it with another kernel and still runs; wait for its end"
        elif own is not None:
            how = f"dbdyno restore --hosts {inventory.path} returns it to {own.kernel}"
            yield f"{name}: a study that was killed has left it with another kernel; {how}"


def restore_kernel(inventory: Inventory, name: str, host: InventoryHost, connect: Connect) -> tuple[str, str]:
    """Return a host of a killed study to its own kernel; what was done, or why it was left alone.

    Raises ``HostError``.
    """
    own = own_kernel(inventory, name, host)
    if own is None:
        return "", ""
    if own.is_awaited:
        return "", f"left alone: process {own.pid} has restarted it with another kernel and still runs"
    record_own_kernel(inventory, name, host, own.kernel, own.boot)  # from now on this process returns it
    try:
        restart_host(inventory, name, host, own.kernel, connect)
    except NotInstalledError as error:
        raise HostError(f"{error}; then dbdyno restore --hosts returns it to kernel {own.kernel}") from None
    _forget_own_kernel(inventory, name)
    return f"it runs its own kernel again: {own.kernel}", ""


class Reboots:
    """Hosts of kept connections, restarted while a study goes on."""

    def __init__(self, inventory: Inventory, connections: Connections, machines: Mapping[str, str]) -> None:
        """``machines`` says of each host which machine it is."""
        self._inventory, self._connections, self._machines = inventory, connections, machines

    def refusals(self, names: Collection[str], kernels: Collection[str]) -> list[str]:
        """Why hosts can't be restarted with these kernels; or why they are to be returned to their own first."""
        inventory = self._inventory
        if not kernels:
            return list(hosts_not_returned(inventory, names))
        reasons = []
        for name in names:
            own = own_kernel(inventory, name, inventory.hosts[name])
            if self._machines.get(name) == this_machine():
                reasons.append(f"{name}: is this machine, which can't restart itself in the middle of a study")
            elif own is not None and own.is_awaited and own.pid != os.getpid():
                reasons += hosts_not_returned(inventory, [name])
            else:
                reasons += self._missing_requirements(name, kernels)
        return reasons

    def _missing_requirements(self, name: str, kernels: Collection[str]) -> list[str]:
        host = self._inventory.hosts[name]
        if self._inventory.boot_program(host) is not None:
            return []  # that program alone knows what it can start
        try:
            question = {"do": "bootable", "kernels": list(kernels), "way": host.boot}
            return [f"{name}: {reason}" for reason in self._connections.ask(name, question, Bootable).lacking]
        except HostError as error:
            return [str(error)]

    def adopt(self, names: Collection[str]) -> None:
        """Take over what a killed study left: from now on this process returns these hosts. Raises ``HostError``."""
        for name in names:
            host = self._inventory.hosts[name]
            if (own := own_kernel(self._inventory, name, host)) is not None:
                record_own_kernel(self._inventory, name, host, own.kernel, own.boot)

    def restart(self, name: str, kernel: str) -> None:
        """Restart a host with a kernel, and wait until it is back. Raises ``HostError``."""
        host = self._inventory.hosts[name]
        if own_kernel(self._inventory, name, host) is None:
            running = self._connections.ask(name, {"do": "running"}, Running).kernel
            record_own_kernel(self._inventory, name, host, running)
        self._restart(name, kernel)

    def return_own(self, name: str) -> str:
        """Return a host to its own kernel; which one, or nothing where it has it. Raises ``HostError``."""
        own = own_kernel(self._inventory, name, self._inventory.hosts[name])
        if own is None:
            return ""
        self._restart(name, own.kernel)
        _forget_own_kernel(self._inventory, name)
        return own.kernel

    def _restart(self, name: str, kernel: str) -> None:
        inventory = self._inventory
        with self._connections.soon_back(name):
            connect = lambda: nullcontext(self._connections.channel(name))  # noqa: E731
            restart_host(inventory, name, inventory.hosts[name], kernel, connect)
