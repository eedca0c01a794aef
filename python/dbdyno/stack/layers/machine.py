"""The lowest layer of a machine of the user's own: its second drive is emulated, and its system is booted with it."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from dbdyno.errors import TrialError
from dbdyno.host.read import UNKNOWN
from dbdyno.stack.capabilities import Capability
from dbdyno.stack.guest.image import ImageMachine, RunningMachine, booted_image
from dbdyno.stack.guest.machine import DiskOfGuest, cpus
from dbdyno.stack.layer import StackContext
from dbdyno.stack.layers.device import PREPARED, Emulated
from dbdyno.stack.layers.emulated_disk import EmulatedDisk, compensate_file
from dbdyno.stack.undo_log import Journal
from dbdyno.store.records import TrialDevice

SERVER_SECONDS, _PAUSE_SECONDS = 300.0, 0.5  # in which a server answers, once it was started
NOT_READ_BACK = ("filesystem", "scheduler")  # of a system that dbdyno knows nothing of


@dataclass(frozen=True)
class BootedImage:
    """A machine with power, logged in to, whose server answers."""

    drive: Emulated  # its second one
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
        with booted_image(self.machine, self._drive(), below.journal, self.accelerator) as running:
            running.wait_for_login()
            for field, command in self.commands.items():
                running.run(field, command)
            self._wait_for_server(running)
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

    def _drive(self) -> DiskOfGuest:
        drive = self.drive
        client = drive.disk.client
        client.set_mode("instant")
        client.set_model(drive.model, drive.seed)
        if drive.restore:
            client.restore(PREPARED)
        else:
            client.clear()
        compensate_file(drive.disk)
        cache = client.stats()["write_cache"] == "volatile"
        return DiskOfGuest(drive.disk.file, self.bus, drive.rotational, cache, port=1)

    def _wait_for_server(self, running: RunningMachine) -> None:
        """Wait until the server answers. Raises ``TrialError`` where it does not, or lacks what the study needs."""
        until, complaint = time.monotonic() + SERVER_SECONDS, ""
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
        raise TrialError(
            f"the server in {self.machine.image.name} does not answer within {SERVER_SECONDS:.0f} s: {complaint}; look "
            "at what stack.start does, and whether the server listens at all addresses of its machine"
        )
