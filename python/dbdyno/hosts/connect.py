"""The hosts of an inventory that is up, held for as long as a study runs over them."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from dbdyno.errors import DbdynoError, HostError, UserError
from dbdyno.hosts import cluster as clusters
from dbdyno.hosts.answers import Watched
from dbdyno.hosts.carried import Guarded
from dbdyno.hosts.clock import Offset
from dbdyno.hosts.contract import Hosts
from dbdyno.hosts.inventory import Inventory, read_inventory
from dbdyno.hosts.kept import HERE, Kept, Reached, Rejoining, held, reached
from dbdyno.hosts.look import this_machine
from dbdyno.hosts.reach import here, on_each
from dbdyno.hosts.with_ray import RayHosts, needed


class Connected:
    """Hosts to work on, and an ssh connection to each that has one, by which its loss and its clock are known."""

    def __init__(
        self,
        hosts: Hosts,
        inventory: Inventory,
        kept: Kept,
        arrived: Mapping[str, str] | None = None,
        why_not_back: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """``arrived`` says at which address of each host ssh arrives."""
        self.hosts, self.inventory = hosts, inventory
        self._kept, self._arrived = kept, arrived or {}
        self.why_not_back = why_not_back  # of hosts that are lost, and were tried again

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
        """The hosts that can't be worked on any more, known within 5 s, until they are back. Asks nothing of any."""
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
        there = _reached(read, stack)
        kept = Kept({**{name: one.channel for name, one in there.items()}, HERE: stack.enter_context(here(cluster))})
        stack.callback(kept.close)
        kept.ask(HERE, {"do": "watch", "head": not cluster.joined}, Watched)
        work, folders = _held(kept, read)
        addresses = {name: host.address or "" for name, host in read.hosts.items()}
        hosts = stack.enter_context(RayHosts(cluster, addresses, folders, work, lambda: _lost(kept, read)))
        alive = hosts.alive()
        if lacking := [name for name in hosts.names if name not in alive]:
            raise HostError(f"{', '.join(lacking)}: not in the cluster; dbdyno hosts up {inventory} brings them up")
        is_here = this_machine() in {one.machine for one in there.values()}
        with Rejoining(read, kept, hosts, measured_here=is_here) as rejoining:
            yield Connected(hosts, read, kept, {name: one.address for name, one in there.items()}, rejoining.why_not)
        kept.release()


def _lost(kept: Kept, inventory: Inventory) -> Mapping[str, str]:
    """Those that are lost, and why: all, where Ray has ended on this machine."""
    found = kept.lost()
    return dict.fromkeys(inventory.hosts, found[HERE]) if HERE in found else found


def _reached(inventory: Inventory, stack: ExitStack) -> dict[str, Reached]:
    """The agent of each host that has ssh. Raises ``HostError``."""
    asked = {name: host for name, host in inventory.hosts.items() if host.ssh}
    found = on_each(asked, lambda name, host: reached(inventory, name, host))
    there = {name: one for name, one in found.items() if isinstance(one, Reached)}
    for one in there.values():
        stack.callback(one.channel.close)
    if errors := [str(one) for one in found.values() if isinstance(one, DbdynoError)]:
        raise HostError("\n".join(errors))
    return there


def _held(kept: Kept, inventory: Inventory) -> tuple[dict[str, Guarded], dict[str, str]]:
    """Hold each host; what its work is known by, and Ray's folder there. Raises ``HostError``."""
    asked = {name: host for name, host in inventory.hosts.items() if host.ssh}
    found = on_each(asked, lambda name, _: held(partial(kept.ask, name)))
    if errors := [str(one) for one in found.values() if isinstance(one, DbdynoError)]:
        raise HostError("\n".join(errors))
    there = {name: one for name, one in found.items() if isinstance(one, tuple)}
    return {name: one[0] for name, one in there.items()}, {name: one[1] for name, one in there.items()}
