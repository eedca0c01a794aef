"""The lowest layer of a machine of the user's own: its second drive is emulated, and its system is booted with it."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from dbdyno.errors import TrialError
from dbdyno.host.read import UNKNOWN
from dbdyno.stack.capabilities import Capability
from dbdyno.stack.guest.image import SETUP_SECONDS, ImageMachine, NotUpError, RunningMachine, booted_image
from dbdyno.stack.guest.machine import DiskOfGuest, cpus
from dbdyno.stack.layer import StackContext
from dbdyno.stack.layers.device import DiskInGuest
from dbdyno.stack.layers.emulated_disk import EmulatedDisk, compensate_file
from dbdyno.stack.undo_log import Journal
from dbdyno.store.records import TrialDevice

SERVER_SECONDS, _PAUSE_SECONDS = 300.0, 0.5  # in which a server answers, once it was started
NOT_READ_BACK = ("filesystem", "scheduler")  # of a system that dbdyno knows nothing of


@dataclass(frozen=True)
class BootedImage:
    """A machine with power, logged in to, whose server answers."""

    drive: DiskInGuest  # its second one
    bus: str
    machine: ImageMachine
    commands: dict[str, str]  # field of the study -> what is run, in this order
    server_lacks: Callable[[], list[Capability]]  # asks the server, and raises ``TrialError`` where it does not answer
    accelerator: str
    shuts_down: bool = False  # in the end, so that all is on the drive; else its power is cut
    name: str = "device"

    @property
    def disk(self) -> EmulatedDisk:
        """The second drive."""
        return self.drive.disk

    def measuring(self, journal: Journal) -> AbstractContextManager[TrialDevice]:
        """The second drive behaves as its model for as long as the context lasts."""
        return self.drive.measuring(journal)

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """The machine; the drive answers at once until it is measured."""
        with self.powered(below.journal) as running:
            self.start(running, SETUP_SECONDS, SERVER_SECONDS)
            device: dict[str, Any] = {
                "kind": "emulated",
                "model": self.drive.model,
                "size_bytes": self.disk.file.stat().st_size,
            }
            device |= {name: self.disk.observed.get(name) for name in ("locked_memory", "io_flusher", "realtime")}
            guest: dict[str, Any] = {
                "kernel": running.system(),
                "accelerator": self.accelerator,
                "bus": self.bus,
                "cpus": cpus(),
                "memory_bytes": self.machine.memory_bytes,
                "image": self.machine.image.name,
                **dict.fromkeys(NOT_READ_BACK, UNKNOWN),
            }
            yield below.raised(self.name, device).raised("guest", guest)
            if self.shuts_down:
                running.shut_down()

    @contextmanager
    def powered(self, journal: Journal) -> Iterator[RunningMachine]:
        """The machine, logged in to; nothing has been run in it."""
        with booted_image(self.machine, self._drive(), journal, self.accelerator) as running:
            running.wait_for_login()
            yield running

    def start(self, running: RunningMachine, command_seconds: float, server_seconds: float) -> None:
        """Run the study's commands, and wait until the server answers.

        Raises ``NotUpError`` where it does not come up, ``TrialError`` where it lacks what the study needs.
        """
        for field, command in self.commands.items():
            running.run(field, command, command_seconds)
        self._wait_for_server(running, server_seconds)

    def _drive(self) -> DiskOfGuest:
        drive = self.drive
        drive.put_content()
        compensate_file(drive.disk)
        cache = drive.disk.client.stats()["write_cache"] == "volatile"
        return DiskOfGuest(drive.disk.file, self.bus, drive.rotational, cache, port=1)

    def _wait_for_server(self, running: RunningMachine, seconds: float) -> None:
        until, complaint = time.monotonic() + seconds, ""
        while time.monotonic() < until:
            running.check_power()
            try:
                lacking = [need for need in self.server_lacks() if not need.ok]
            except TrialError as error:
                complaint = str(error)
                time.sleep(_PAUSE_SECONDS)
                continue
            if lacking:
                raise TrialError("; ".join(need.said for need in lacking))
            return
        raise NotUpError(
            f"the server in {self.machine.image.name} does not answer within {seconds:.0f} s: {complaint}; look "
            "at what stack.start does, and whether the server listens at all addresses of its machine"
        )
