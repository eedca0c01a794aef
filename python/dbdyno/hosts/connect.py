"""The hosts of an inventory that is up, held for as long as a study runs over them."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from dbdyno.errors import DbdynoError, HostError, UserError
from dbdyno.hosts import cluster as clusters
from dbdyno.hosts.bundle import our_digest
from dbdyno.hosts.channel import Channel
from dbdyno.hosts.clock import Offset
from dbdyno.hosts.contract import Hosts
from dbdyno.hosts.inventory import HostSection, Inventory, read_inventory
from dbdyno.hosts.kept import Kept
from dbdyno.hosts.reach import on_each, reach
from dbdyno.hosts.with_ray import RayHosts, needed


class Connected:
    """Hosts to work on, and an ssh connection to each that has one, by which its loss and its clock are known."""

    def __init__(self, hosts: Hosts, inventory: Inventory, kept: Kept) -> None:
        self.hosts, self.inventory = hosts, inventory
        self._kept = kept

    def offsets(self) -> dict[str, Offset]:
        """CLOCK_MONOTONIC of each host less the one here, measured now; of all that have ssh and are not lost.

        Raises ``HostError`` where one is lost meanwhile.
        """
        return {name: found["monotonic"] for name, found in self._kept.offsets().items()}

    def lost(self) -> frozenset[str]:
        """The hosts whose connection has died, within 5 s of that. Asks nothing of any; lost once is lost for good."""
        return frozenset(self._kept.lost())

    def why_lost(self) -> Mapping[str, str]:
        """What there is to say of each that is lost."""
        return self._kept.lost()


@contextmanager
def connected(inventory: Path) -> Iterator[Connected]:
    """Connect to all hosts of a file, which must be up.

    Raises:
        UserError: Ray is not installed here, the file has mistakes, or its hosts are not up.
        HostError: A host can't be reached, has another dbdyno, or is not in the cluster.

    """
    needed()
    read = read_inventory(inventory)
    cluster = clusters.known(read.cluster.name)
    if cluster is None or not cluster.gcs:
        raise UserError(f"{inventory}: its hosts are not up; dbdyno hosts up {inventory} brings them up")

    def do(name: str, host: HostSection) -> Channel:
        channel = reach(read, name, host, None)
        try:
            _refuse_another(channel, host, inventory)
        except BaseException:
            channel.close()
            raise
        return channel

    with ExitStack() as stack:
        found = on_each({name: host for name, host in read.hosts.items() if host.ssh}, do)
        channels = {name: stack.enter_context(one) for name, one in found.items() if isinstance(one, Channel)}
        if errors := [str(one) for one in found.values() if isinstance(one, DbdynoError)]:
            raise HostError("\n".join(errors))
        kept = Kept(channels)
        stack.callback(kept.close)
        hosts = stack.enter_context(RayHosts(cluster, {name: host.address or "" for name, host in read.hosts.items()}))
        lacking = [name for name in hosts.names if name not in hosts.alive()]
        if lacking:
            raise HostError(f"{', '.join(lacking)}: not in the cluster; dbdyno hosts up {inventory} brings them up")
        yield Connected(hosts, read, kept)


def _refuse_another(channel: Channel, host: HostSection, inventory: Path) -> None:
    """Raise ``HostError`` where the dbdyno there is not this one."""
    facts = channel.ask({"do": "facts", "ray_folder": host.ray_folder})
    if facts["digest"] != our_digest():
        raise HostError(f"{channel.name}: another dbdyno is there; dbdyno hosts up {inventory} puts this one there")
