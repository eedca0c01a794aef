"""The contract of a layer, how a stack of them is raised, and prepared data."""

import subprocess  # noqa: TC003  (dataclasses look at it)
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

from dbdyno.servers.contract import Address, Cluster, Membership, ReplicaHealth, Replication, Server
from dbdyno.stack.erase import HeldDisk
from dbdyno.stack.undo_log import Journal


@dataclass(frozen=True)
class Endpoint:
    """A running server, as a client on this host reaches it."""

    control: Server  # asks and reads it back; no part of the load
    address: Address
    process: "subprocess.Popen[bytes] | None" = None  # that dbdyno started
    error_log: Path | None = None  # of such a one
    cgroup: Path | None = None  # that bounds its memory
    account: str | None = None  # user@host that the study's own SQL is confined to; the load generator makes it
    remote: Address | None = (
        None  # as other hosts reach it, by an account that a load from there makes; None: not at all
    )
    in_machine: bool = False  # of this host's that dbdyno booted: its CPU is not known, and all of it is ours
    found_pid: int | None = None  # of one that dbdyno did not start, if it runs on this host and can be found
    membership: Membership | None = None  # in a cluster

    @property
    def pid(self) -> int | None:
        """The server's process; ``None`` where it runs elsewhere."""
        return self.process.pid if self.process else self.found_pid

    @property
    def socket(self) -> Path:
        """Where a server of dbdyno's own listens."""
        assert self.address.socket is not None  # noqa: S101  (it always has one)
        return self.address.socket


# What is left when the server under test is lost: a replica, or the other nodes of its cluster.


@dataclass(frozen=True)
class Replica:
    """A running replica of the server under test."""

    FIELD: ClassVar[str] = "server.replica"  # of the study, that asks for it

    endpoint: Endpoint
    replication: Replication
    before: ReplicaHealth  # the load
    disk: str  # of ``[stack.disks]``; empty: that of the data
    cut_link: Callable[[], None]  # lose what is on the way between the two, for good

    @property
    def own_disks(self) -> frozenset[str]:
        """The disk that no query waits for alone, if it is not that of the data."""
        return frozenset({self.disk} - {""})

    def settle(self, limit_seconds: float) -> None:
        """Wait until it has applied what it had received."""
        self.replication.settle(limit_seconds)


@dataclass(frozen=True)
class ClusterNodes:
    """The running nodes of a cluster whose first node is the server under test."""

    FIELD: ClassVar[str] = "server.cluster"

    others: tuple[Endpoint, ...]
    cluster: Cluster
    disks: tuple[str, ...]  # of the others; empty: that of the data
    cut_link: Callable[[], None]  # lose what is on the way from and to the first, for good

    @property
    def endpoint(self) -> Endpoint:
        """The second node, which takes over."""
        return self.others[0]

    @property
    def own_disks(self) -> frozenset[str]:
        """Those of the other nodes."""
        return frozenset(self.disks) - {""}

    def settle(self, limit_seconds: float) -> None:
        """Wait until the others have agreed that the first is gone, and applied what they had received."""
        self.cluster.settle(limit_seconds)


@dataclass(frozen=True)
class BlockDevice:
    """A block device under the stack."""

    path: Path  # /dev/loop3
    rotational: bool  # what the drive is, whatever the kernel believes
    disposable: bool  # it goes away when lowered, and its settings with it
    control: Path | None = None  # the socket of the emulated disk that it is
    uuid: str | None = None  # that the filesystem must get, so that it is known as ours later
    real_disk: HeldDisk | None = None  # a real disk, to be proved free right before it is erased

    @property
    def name(self) -> str:
        """Its name in /sys/block."""
        return self.path.name


@dataclass(frozen=True)
class StackContext:
    """What has been raised so far. Each layer yields the context below with its own part added."""

    journal: Journal
    scratch: Path  # a folder of this stack's own
    device: BlockDevice | None = None
    beside: tuple[BlockDevice, ...] = ()  # further ones that the same filesystem stands on
    volume: Path | None = None  # what a layer made of them, on which the filesystem then lies
    synced: tuple[BlockDevice, ...] = ()  # whose caches a sync on that must empty, where those are not all of them
    directory: Path | None = None  # where the data lies
    disks: "Mapping[str, StackContext]" = field(default_factory=dict)  # by name: those beside that of the data
    files: Path | None = None  # a folder on it for a program that works on files of its own
    cgroup: Path | None = None  # that the server must join, or the program where there is no server
    endpoint: Endpoint | None = None  # none where no server is in the stack
    replica: Replica | None = None  # of that server
    nodes: ClusterNodes | None = None  # of the cluster whose first node is that server
    pollers: int | None = None  # pid of the pollers that keep processors awake, where the kernel does not
    observed: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # layer -> what was read back

    @property
    def devices(self) -> tuple[BlockDevice, ...]:
        """All block devices below the filesystem; none where it stands on none of its own."""
        return (self.device, *self.beside) if self.device else ()

    @property
    def standby(self) -> Replica | ClusterNodes | None:
        """What is left where the server is lost."""
        return self.replica or self.nodes

    @property
    def sources(self) -> list[str]:
        """What a layer or a filesystem is put on: the volume that was made of the devices, or else the devices."""
        return [str(self.volume)] if self.volume else [str(device.path) for device in self.devices]

    @property
    def directories(self) -> tuple[Path, ...]:
        """Every folder that anything measured lies in: that of the data, and those of named disks."""
        return tuple(on.directory for on in (self, *self.disks.values()) if on.directory)

    @property
    def server(self) -> Endpoint:
        """The server of a stack that has one."""
        assert self.endpoint is not None  # noqa: S101  (a load that needs one is refused without)
        return self.endpoint

    def raised(self, layer: str, observed: Mapping[str, Any], **added: object) -> "StackContext":
        """The context with one more layer on it."""
        return replace(self, observed={**self.observed, layer: dict(observed)}, **added)  # type: ignore[arg-type]


class Layer(Protocol):
    """One layer of the stack.

    ``raised`` sets up on enter and puts the host back on exit whatever happened. What it reports as observed is read
    back from the kernel or the server, never copied from the study; a setting that did not take raises ``TrialError``.
    """

    @property
    def name(self) -> str:
        """The key of this layer in ``StackContext.observed``."""

    def raised(self, below: StackContext) -> AbstractContextManager[StackContext]:
        """Raise this layer on the context below. Raises ``TrialError`` or ``HostError``."""


@contextmanager
def raised(
    layers: Sequence[Layer], ground: StackContext, lap: Callable[[str], None] = lambda _: None
) -> Iterator[StackContext]:
    """Raise layers from the bottom up; lower them, top first, on exit. ``lap`` is called after each step."""
    with ExitStack() as lowering:
        context = ground
        for layer in layers:
            lowering.callback(lap, f"lower {layer.name}")
            context = lowering.enter_context(layer.raised(context))
            lap(f"raise {layer.name}")
        yield context


# Prepared data: made once, and the same for every trial.


class Image:
    """What the layer of a stack's data works from."""

    def is_gone(self) -> bool:
        """Whether what held it has ended by itself."""
        return False


class KeptImage(Image, ABC):
    """Data that are prepared once, and kept from run to run as files in a folder."""

    @property
    def outlives_run(self) -> bool:
        """Whether a later run can use it."""
        return True

    @abstractmethod
    def loaded(self, kept: Path) -> Self:
        """The image with what an earlier run kept."""

    @abstractmethod
    def finish(self) -> None:
        """It is complete; every trial starts from what it is now."""

    @abstractmethod
    def kept_bytes(self) -> int:
        """What keeping it takes."""

    @abstractmethod
    def save(self, kept: Path) -> None:
        """Keep it; this run goes on with its own."""

    @abstractmethod
    def part_on_disk(self, name: str) -> Self:
        """The part of it that lies on a named disk."""

    @abstractmethod
    def layers(self, *, install: bool) -> list[Layer]:
        """What puts it in place on a filesystem; with ``install`` what takes it from there."""
