"""The hosts of an inventory that is up, held for as long as a study runs over them."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from dbdyno.errors import DbdynoError, HostError, UserError
from dbdyno.hosts import cluster as clusters
from dbdyno.hosts.bundle import our_digest
from dbdyno.hosts.carried import Guarded
from dbdyno.hosts.channel import Channel
from dbdyno.hosts.clock import Offset
from dbdyno.hosts.cluster import Cluster
from dbdyno.hosts.contract import Hosts
from dbdyno.hosts.inventory import HostSection, Inventory, read_inventory
from dbdyno.hosts.kept import Kept
from dbdyno.hosts.reach import here, on_each, reach
from dbdyno.hosts.with_ray import RayHosts, needed

_HERE = "this machine"  # no host has such a name


class Connected:
    """Hosts to work on, and an ssh connection to each that has one, by which its loss and its clock are known."""

    def __init__(
        self, hosts: Hosts, inventory: Inventory, kept: Kept, arrived: Mapping[str, str] | None = None
    ) -> None:
        """``arrived`` says at which address of each host ssh arrives."""
        self.hosts, self.inventory = hosts, inventory
        self._kept, self._arrived = kept, arrived or {}

    def address(self, host: str) -> str:
        """As the other hosts reach it."""
        return self.inventory.hosts[host].address or self._arrived.get(host, "")

    def offsets(self, hosts: Collection[str] | None = None) -> dict[str, Offset]:
        """CLOCK_MONOTONIC of each host less the one here, measured now; of all of these that have ssh and are not lost.

        Raises ``HostError`` where one is lost meanwhile.
        """
        names = self.inventory.hosts if hosts is None else hosts
        return {name: found["monotonic"] for name, found in self._kept.offsets(names).items()}

    def lost(self) -> frozenset[str]:
        """The hosts that can't be worked on any more, known within 5 s. Asks nothing of any; lost once is for good."""
        return frozenset(self.why_lost())

    def why_lost(self) -> Mapping[str, str]:
        """The same, with a sentence for each: its connection or its Ray has ended; or all, with Ray's head."""
        return _lost(self._kept, self.inventory)


@contextmanager
def connected(inventory: Path) -> Iterator[Connected]:
    """Connect to all hosts of a file, which must be up. What was started there has ended once this is left.

    Raises:
        UserError: Ray is not installed here, the file has mistakes, or its hosts are not up.
        HostError: A host can't be reached, has another dbdyno, or is not in the cluster; or, at the end, it could not
            be put back.

    """
    needed()
    read = read_inventory(inventory)
    cluster = clusters.known(read.cluster.name)
    if cluster is None or not cluster.gcs:
        raise UserError(f"{inventory}: its hosts are not up; dbdyno hosts up {inventory} brings them up")
    with ExitStack() as stack:
        channels, arrived = _reached(read, cluster, stack)
        kept = Kept(channels)
        stack.callback(kept.close)
        work, folders = _held(kept, read, head=not cluster.joined)
        addresses = {name: host.address or "" for name, host in read.hosts.items()}
        hosts = stack.enter_context(RayHosts(cluster, addresses, folders, work, lambda: _lost(kept, read)))
        alive = hosts.alive()
        if lacking := [name for name in hosts.names if name not in alive]:
            raise HostError(f"{', '.join(lacking)}: not in the cluster; dbdyno hosts up {inventory} brings them up")
        yield Connected(hosts, read, kept, arrived)
        kept.release()


def _lost(kept: Kept, inventory: Inventory) -> Mapping[str, str]:
    """Those that are lost, and why: all, where Ray has ended on this machine."""
    found = kept.lost()
    return dict.fromkeys(inventory.hosts, found[_HERE]) if _HERE in found else found


def _reached(inventory: Inventory, cluster: Cluster, stack: ExitStack) -> tuple[dict[str, Channel], dict[str, str]]:
    """The agent of each host that has ssh, and of this machine, where Ray's head is; where ssh arrives on each.

    Raises ``HostError``.
    """

    def do(name: str, host: HostSection) -> tuple[Channel, str]:
        channel = reach(inventory, name, host, None)
        try:
            return channel, _arrived(channel, host, inventory.path)
        except BaseException:
            channel.close()
            raise

    found = on_each({name: host for name, host in inventory.hosts.items() if host.ssh}, do)
    reached = {name: one for name, one in found.items() if isinstance(one, tuple)}
    channels = {name: stack.enter_context(channel) for name, (channel, _) in reached.items()}
    if errors := [str(one) for one in found.values() if isinstance(one, DbdynoError)]:
        raise HostError("\n".join(errors))
    arrived = {name: address for name, (_, address) in reached.items()}
    return {**channels, _HERE: stack.enter_context(here(cluster))}, arrived


def _arrived(channel: Channel, host: HostSection, inventory: Path) -> str:
    """At which address ssh arrives there. Raises ``HostError`` where the dbdyno there is not this one."""
    facts = channel.ask({"do": "facts", "ray_folder": host.ray_folder})
    if facts["digest"] != our_digest():
        raise HostError(f"{channel.name}: another dbdyno is there; dbdyno hosts up {inventory} puts this one there")
    return str(facts["ssh_to"])


def _held(kept: Kept, inventory: Inventory, *, head: bool) -> tuple[dict[str, Guarded], dict[str, str]]:
    """Have each host watch its Ray, and be put back once its connection ends; what its work is known by, Ray's folder.

    Raises ``HostError``.
    """
    kept.ask(_HERE, {"do": "watch", "head": head})

    def do(name: str, _: HostSection) -> tuple[Guarded, str]:
        watched = kept.ask(name, {"do": "watch"})
        return Guarded(**kept.ask(name, {"do": "guard"})), str(watched["ray"]["folder"])

    found = on_each({name: host for name, host in inventory.hosts.items() if host.ssh}, do)
    if errors := [str(one) for one in found.values() if isinstance(one, DbdynoError)]:
        raise HostError("\n".join(errors))
    held = {name: one for name, one in found.items() if isinstance(one, tuple)}
    return {name: one[0] for name, one in held.items()}, {name: one[1] for name, one in held.items()}
