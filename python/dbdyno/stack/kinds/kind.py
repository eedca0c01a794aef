"""The contract of a kind of stack: what it needs, touches, and consists of. Its rules are in ``study.stack_rules``."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Generic, Protocol, TypeVar, runtime_checkable

from dbdyno.stack.capabilities import Capability
from dbdyno.stack.erase import Erasing
from dbdyno.stack.layer import Image, Layer, StackContext
from dbdyno.stack.layers.emulated_disk import EmulatedDisk
from dbdyno.stack.undo_log import Journal
from dbdyno.store.records import TrialDevice
from dbdyno.study.schema import TrialSpec

ImageT = TypeVar("ImageT", bound=Image)


class Device(Layer, Protocol):
    """The lowest layer."""

    @property
    def disk(self) -> EmulatedDisk | None:
        """The emulated disk that it is, whose own trace can stand in for the kernel's."""

    def measuring(self, journal: Journal) -> AbstractContextManager[TrialDevice]:
        """Behave as measured for as long as the context lasts; fills the yielded dict with the device's figures."""


@runtime_checkable
class MeasuringLayer(Protocol):
    """A layer that does something for as long as the load lasts."""

    def measuring(self, journal: Journal) -> AbstractContextManager[TrialDevice]:
        """As that of a device, whose figures its own are added to."""


@dataclass(frozen=True)
class Stack:
    """The layers of one treatment, from the device up."""

    device: Device
    above: tuple[Layer, ...]
    disks: Mapping[str, Device] = field(default_factory=dict)  # by name: the devices beside that of the data

    @property
    def layers(self) -> tuple[Layer, ...]:
        """All of them."""
        return (self.device, *self.above)

    @contextmanager
    def measuring(self, journal: Journal) -> Iterator[TrialDevice]:
        """All devices behave as measured for as long as the context lasts; fills the yielded dict with their figures.

        Those of named disks stand by their names beside those of the data's.
        """
        figures: TrialDevice = {}
        with ExitStack() as ending:
            figures_of = {name: ending.enter_context(disk.measuring(journal)) for name, disk in self.disks.items()}
            of_data = ending.enter_context(self.device.measuring(journal))
            busy = [layer for layer in self.above if isinstance(layer, MeasuringLayer)]
            of_layers = [ending.enter_context(layer.measuring(journal)) for layer in busy]
            yield figures
        for layer_figures in (of_data, *of_layers):
            figures.update(layer_figures)
        if named := {name: disk_figures for name, disk_figures in figures_of.items() if disk_figures}:
            figures["named"] = dict(named)


@dataclass(frozen=True)
class Raising:
    """How a stack is raised, whatever its kind."""

    log: Path  # where the server's error log is kept
    prepare: Callable[[StackContext], None]  # makes the workload's data
    seed: int = 0
    erase: Erasing = field(default_factory=Erasing)
    listen: str = ""  # the address of this machine at which other hosts reach the server; empty: they do not
    install: bool = False  # to prepare the data: no queue setting, no memory limit


class StackKind(ABC, Generic[ImageT]):
    """One kind of stack."""

    IS_RAISED: ClassVar[bool] = True  # by dbdyno, from the device up, and lowered again
    ON_HOST: ClassVar[bool] = True  # whether it stands on a host, which is watched meanwhile
    HAS_DISK: ClassVar[bool] = True  # whose requests can be traced
    IN_GUEST: ClassVar[bool] = False  # whether its layers are raised in a virtual machine of this host's

    @abstractmethod
    def needs_of_server(self, spec: TrialSpec) -> Iterator[Capability]:
        """What the server needs or lacks here, where there is one."""

    def starts_server(self, spec: TrialSpec) -> bool:
        """Whether a trial starts a server of dbdyno's own, so that it can be tried what that takes."""
        return False

    @abstractmethod
    def needs_of_ground(self, spec: TrialSpec, erase: frozenset[str]) -> Iterator[Capability]:
        """What device, queue and filesystem need here; ``erase`` are the serials that may be erased."""

    @abstractmethod
    def touches(self, specs: Sequence[TrialSpec], proofs: Mapping[str, str]) -> Iterator[str]:
        """What treatments of this kind change on the host, a line each; ``proofs`` say why a device may be erased."""

    @abstractmethod
    def server_version(self, spec: TrialSpec) -> str:
        """Version of the server of a treatment that has one."""

    def places(self, spec: TrialSpec) -> list[Path]:
        """What the data stand on, where that is the host's own disk."""
        return []

    @abstractmethod
    def image_key(self, spec: TrialSpec) -> str:
        """Names the prepared data of a treatment."""

    def planned_key(self, spec: TrialSpec) -> str:
        """The same, as far as it can be said where the server may not be."""
        return self.image_key(spec)

    @abstractmethod
    def new_image(self, spec: TrialSpec, journal: Journal) -> AbstractContextManager[ImageT]:
        """Room for prepared data, for as long as the context lasts."""

    def image_programs(self, spec: TrialSpec) -> list[str]:
        """Programs on which the image depends beside the workload's and the server's."""
        return []

    def server_build(self, spec: TrialSpec) -> list[int]:
        """What distinguishes builds of the same version of the server, if one made the data."""
        return []

    def image_place(self, spec: TrialSpec) -> str:
        """What the prepared data are, in a word or two."""
        return "files"

    @abstractmethod
    def stack(self, spec: TrialSpec, image: ImageT, raising: Raising) -> Stack:
        """The layers of a treatment."""
