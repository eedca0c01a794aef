"""``dbdyno hosts up``, ``down`` and ``status``, and ``dbdyno restore --hosts``."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from dbdyno.errors import HostError
from dbdyno.hosts.bundle import bundle, our_digest
from dbdyno.hosts.connections import reach
from dbdyno.hosts.contract import NotInstalledError, all_of, on_each
from dbdyno.hosts.frames import Facts, PutBack, for_people
from dbdyno.hosts.inventory import HostCluster, Inventory, InventoryHost, read_cluster
from dbdyno.hosts.reboot import restore_kernel
from dbdyno.hosts.ssh import offsets
from dbdyno.system.clock import Offset

T = TypeVar("T")
Say = Callable[[str], None]
_RESTORE_SECONDS = 600.0  # a server may take its time to end, and a mount to be let go


# Up.


@dataclass(frozen=True)
class Brought:
    """A host that is up."""

    name: str
    roles: tuple[str, ...]
    address: str


def bring_up(inventory: Inventory, say: Say) -> list[Brought]:
    """Put this very dbdyno on each host that lacks it. Raises ``UserError``, ``HostError`` with all that can't."""
    with HostCluster(inventory.cluster.name).alone():
        before = read_cluster(inventory.cluster.name)
        before.keep(before.sections(inventory))
        say("packing the installed dbdyno into wheels")
        with bundle(before.folder / "wheels") as wheels:
            ours = our_digest()

            def put(name: str) -> Facts:
                with reach(inventory, name, inventory.hosts[name], wheels) as channel:
                    facts = channel.ask({"do": "facts"}, Facts)
                if facts.digest != ours:  # read back: a disk that lies about what it was given is found here
                    raise HostError(
                        f"{name}: its dbdyno differs from this one right after the installation; check its disk"
                    )
                say(f"{name}: dbdyno is installed")
                return facts

            facts = all_of(on_each(inventory.hosts, put))
    return [
        Brought(name, tuple(host.roles), host.address or facts[name].ssh_to) for name, host in inventory.hosts.items()
    ]


# Down, and ``dbdyno restore --hosts``: each host puts itself back by its own undo logs.


@dataclass(frozen=True)
class Restored:
    """A host that is as it was before, or why it is not."""

    name: str
    undone: tuple[str, ...] = ()
    left_alone: tuple[str, ...] = ()  # of studies that go on
    problem: str = ""


def bring_down(inventory: Inventory, say: Say) -> list[Restored]:
    """Put back each host of the file and of the last bringing-up, and remove what was sent to it for studies.

    Hosts that can't be reached are named, and stay known to this machine until they were.
    """
    with HostCluster(inventory.cluster.name).alone():
        cluster = read_cluster(inventory.cluster.name)
        hosts = cluster.sections(inventory)
        ended = _put_back(inventory, hosts, {"do": "stop"})
        for host in ended:
            say(f"{host.name}: {host.problem or '; '.join(host.undone) or 'nothing was there'}")
        if left := [host.name for host in ended if host.problem]:
            cluster.keep({name: hosts[name] for name in left})
        else:
            cluster.forget()
        return ended


def restore_hosts(inventory: Inventory) -> list[Restored]:
    """Have each host of the file, and of the last bringing-up, put back what killed processes have left there."""
    hosts = read_cluster(inventory.cluster.name).sections(inventory)
    return _put_back(inventory, hosts, {"do": "restore"})


def _put_back(inventory: Inventory, hosts: Mapping[str, InventoryHost], question: Mapping[str, str]) -> list[Restored]:
    """Have hosts put themselves back, with their own kernels; to stop them, only if no study goes on there."""

    def put_back(name: str) -> Restored:
        host, is_stop, awaited = hosts[name], question["do"] == "stop", ""
        try:
            kernel, awaited = restore_kernel(inventory, name, host, lambda: reach(inventory, name, host, None))
            if awaited and is_stop:
                return Restored(name, problem=awaited)
            with reach(inventory, name, host, None) as channel:
                answer = channel.ask(question, PutBack, _RESTORE_SECONDS)
        except NotInstalledError:
            return Restored(name)  # so nothing was started there
        except HostError as error:
            if not awaited:
                raise
            # It may be restarting at this moment; the answer is still that another process waits for it.
            return Restored(name, left_alone=(awaited,), problem=str(error))
        undone = (*filter(None, [kernel]), *for_people(answer.undone))
        left_alone = (*filter(None, [awaited]), *for_people(answer.left_alone))
        problem = f"{name}: some changes could not be undone; stop the programs that hold them, then try again"
        problem = "; ".join(undone) or "some changes could not be undone" if is_stop else problem
        return Restored(name, undone, left_alone, "" if answer.whole else problem)

    outcomes = on_each(hosts, put_back)
    return [
        outcome if isinstance(outcome, Restored) else Restored(name, problem=str(outcome))
        for name, outcome in outcomes.items()
    ]


def refuse_unrestored(hosts: Collection[Restored]) -> None:
    """Raise ``HostError`` where any host is not as it was."""
    if problems := [host.problem for host in hosts if host.problem]:
        raise HostError("\n".join(problems))


# Status: what there is to know of each host, asked of it now. It sets no clock and starts nothing.


@dataclass(frozen=True)
class HostStatus:
    """One host."""

    name: str
    roles: tuple[str, ...]
    reachable: bool
    problem: str = ""
    same: bool | None = None  # whether the dbdyno there is this very one
    clocks: dict[str, Offset] = field(default_factory=dict)  # by the clock's name, there less here
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def ready(self) -> bool:
        """Whether work can be given to it."""
        return self.reachable and self.same is True and not self.problem


def host_status(inventory: Inventory) -> tuple[list[HostStatus], str]:
    """Each host of the file, and what is wrong with all of them, or nothing. Raises ``UserError``."""
    ours = our_digest()

    def status(name: str) -> HostStatus:
        host = inventory.hosts[name]
        with reach(inventory, name, host, None) as channel:
            facts = channel.ask({"do": "facts"}, Facts)
            clocks = offsets(channel)
        return HostStatus(name, tuple(host.roles), True, "", facts.digest == ours, clocks, asdict(facts))  # noqa: FBT003  (by order)

    statuses = []
    for name, answer in on_each(inventory.hosts, status).items():
        if isinstance(answer, HostStatus):
            statuses.append(answer)
        else:
            reached = type(answer) is not HostError  # a host without dbdyno was reached, too
            statuses.append(HostStatus(name, tuple(inventory.hosts[name].roles), reached, str(answer)))
    is_up = read_cluster(inventory.cluster.name).is_up
    return statuses, "" if is_up else "the hosts are not up; run dbdyno hosts up"
