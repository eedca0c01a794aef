"""The hosts of an inventory that is up, or a Dask cluster, held for as long as a study runs over them."""

import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dbdyno.compute.spread import Spread
from dbdyno.compute.workers import Work, Workers
from dbdyno.errors import HostError, UserError
from dbdyno.hosts.calls import HostWorkers, send, send_to
from dbdyno.hosts.connections import Connections, ReadyHost, Rejoining, reach_ready
from dbdyno.hosts.contract import GuardedWork, Hosts, all_of, check_not_measured, on_each
from dbdyno.hosts.frames import Cores
from dbdyno.hosts.inventory import Inventory, InventoryCluster, read_cluster, read_inventory
from dbdyno.hosts.look import this_machine
from dbdyno.hosts.reboot import Reboots
from dbdyno.hosts.ssh import ANSWER_SECONDS, Channel
from dbdyno.servers.user import unprivileged
from dbdyno.system.clock import Offset
from dbdyno.system.files import TEXT_LIMIT_BYTES, read_regular


class SshHosts(Hosts):
    """Hosts by the connections that are kept to their agents."""

    def __init__(self, connections: Connections, names: Collection[str], work: Mapping[str, GuardedWork]) -> None:
        """``work`` is by what the work of each is known: that of a host that was lost and is back is another."""
        super().__init__(tuple(names), work)
        self._connections = connections

    def _ask(self, host: str, what: str, *arguments: object) -> Any:  # noqa: ANN401  (what the method of that name returns)
        seconds = ANSWER_SECONDS + sum(
            argument for argument in arguments if isinstance(argument, float)
        )  # that it is asked to wait
        channel = self._connections.channel(host)
        try:
            return channel.ask_side(what, arguments, seconds)
        except HostError:
            if why := self._connections.lost().get(host):
                raise HostError(f"{host}: is lost: {why.removeprefix(f'{host}: ')}") from None
            raise

    def alive(self) -> frozenset[str]:
        """As the contract says."""
        check_not_measured("who is there")
        return frozenset(self._names) - self._connections.lost().keys()

    def workers(self, work: Work, lost: Callable[[], Mapping[str, str]] = dict) -> Workers:
        """As the contract says."""
        return HostWorkers(self._connections, self._names, work, lost)


class Connected:
    """Hosts to work on, and what is known of their connections: which are lost, and their clocks."""

    def __init__(
        self,
        hosts: Hosts,
        inventory: Inventory,
        connections: Connections,
        there: Mapping[str, ReadyHost] | None = None,
        why_not_back: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """``there`` is what each host said of itself when it was reached."""
        self.hosts, self.inventory = hosts, inventory
        self._connections, self._there = connections, there or {}
        self.why_not_back = why_not_back  # of hosts that are lost, and were tried again
        self.reboots = Reboots(inventory, connections, {name: host.machine for name, host in self._there.items()})

    def origins(self) -> dict[str, str]:
        """From which address ssh came to each host, as it says."""
        return {name: host.origin for name, host in self._there.items()}

    def address(self, host: str) -> str:
        """As the other hosts reach it."""
        return self.inventory.hosts[host].address or (self._there[host].address if host in self._there else "")

    def offsets(self, hosts: Collection[str] | None = None) -> dict[str, Offset]:
        """CLOCK_MONOTONIC of each host less the one here, measured now; of all of these that are not lost.

        Raises ``HostError`` where one is lost meanwhile.
        """
        names = self.inventory.hosts if hosts is None else hosts
        return {name: clock_offsets["monotonic"] for name, clock_offsets in self._connections.offsets(names).items()}

    @contextmanager
    def spread(self, work: Work, files: Mapping[str, Path], say: Callable[[str], None]) -> Iterator[Spread]:
        """Calls of ``work`` over the hosts, which have these files. Raises ``HostError`` where none can take part."""
        workers = self.hosts.workers(work, self.why_lost)
        try:
            send(self.hosts, workers, files, say)
            with Spread(workers, say, lambda host: send_to(host, self.hosts, workers, files, say)) as spread:
                yield spread
        finally:
            workers.close()

    def lost(self) -> frozenset[str]:
        """The hosts that can't be worked on any more, known within 5 s, until they are back. Asks nothing of any."""
        return frozenset(self.why_lost())

    def why_lost(self) -> Mapping[str, str]:
        """The same, with a sentence for each."""
        return self._connections.lost()


@contextmanager
def connected(inventory: Path) -> Iterator[Connected]:
    """Connect to all hosts of a file, which must be up. What was started there has ended once this is left.

    Raises:
        UserError: The file has mistakes, or its hosts are not up.
        HostError: A host can't be reached, or has another dbdyno; or, at the end, it could not be put back.

    """
    read = read_inventory(inventory)
    if not read_cluster(read.cluster.name).is_up:
        raise UserError(f"{inventory}: its hosts are not up; run dbdyno hosts up {inventory}")
    with ExitStack() as stack:
        there = _reach_all(read, stack)
        connections = Connections({name: host.channel for name, host in there.items()})
        stack.callback(connections.close)
        work = connections.hold(there)
        hosts = SshHosts(connections, there, work)
        is_here = this_machine() in {host.machine for host in there.values()}
        with Rejoining(read, connections, work, measured_here=is_here) as rejoining:
            yield Connected(hosts, read, connections, there, rejoining.why_not)
        connections.release()


def _reach_all(inventory: Inventory, stack: ExitStack) -> dict[str, ReadyHost]:
    """The agent of each host. Raises ``HostError``."""
    outcomes = on_each(inventory.hosts, lambda name: reach_ready(inventory, name, inventory.hosts[name]))
    for outcome in outcomes.values():
        if isinstance(outcome, ReadyHost):
            stack.callback(outcome.channel.close)
    return all_of(outcomes)


# Calls made by a Dask cluster that exists: see ``dask_agent``, which alone talks to it.


DASK = "dask"
_JOIN_SECONDS = 360.0
# Dask's own names for the files of certificates in the environment, and what they are for.
_TLS_FILES = {
    "tls_ca_file": "DASK_DISTRIBUTED__COMM__TLS__CA_FILE",
    "tls_client_cert": "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT",
    "tls_client_key": "DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY",
}


@contextmanager
def connected_to_dask(address: str, environment: Mapping[str, str] = os.environ) -> Iterator[Connected]:
    """Be connected to the cluster whose scheduler listens at an address; leaving the context ends all calls.

    Raises ``UserError`` where Dask is not installed here, or the address or a certificate is none; ``HostError`` where
    no cluster answers.
    """
    if find_spec("distributed") is None:
        raise UserError("--dask needs Dask, which is not installed here: pip install 'dbdyno[dask]'")
    address, tls = _address_and_tls(address, environment)
    with ExitStack() as stack:
        argv = unprivileged([sys.executable, "-m", "dbdyno.hosts.dask_agent"])
        channel = stack.enter_context(Channel(DASK, argv, {"HOME": "/nonexistent", "SSH_AUTH_SOCK": ""}))
        channel.begin_frames().ask({"do": "join", "address": address, "tls": tls}, Cores, _JOIN_SECONDS)
        connections = Connections({DASK: channel})
        stack.callback(connections.close)
        yield Connected(
            SshHosts(connections, [DASK], {}), Inventory(Path(address), InventoryCluster(), {}), connections
        )


def _address_and_tls(address: str, environment: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The address with its scheme, and the texts of the certificates, none for TCP alone. Raises ``UserError``."""
    url = address if "://" in address else f"tls://{address}"
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in {"tls", "tcp"} and parts.hostname and parts.port and not parts.path and not parts.query
    except ValueError:
        is_one = False
    if not is_one:
        raise UserError(f"--dask {address[:100]!r}: is not the address of a scheduler, such as tls://10.0.0.1:8786")
    if parts.scheme == "tcp":
        return url, {}
    tls = {}
    for what, name in _TLS_FILES.items():
        if not environment.get(name):
            names = ", ".join(_TLS_FILES.values())
            raise UserError(
                f"--dask {url}: {name} is not set; TLS needs {names}, each the path of a PEM file; "
                "write tcp:// for a cluster without TLS"
            )
        try:
            tls[what] = read_regular(Path(environment[name]), TEXT_LIMIT_BYTES).decode("ascii")
        except (OSError, ValueError) as error:
            raise UserError(f"{environment[name]} ({name}): {getattr(error, 'strerror', None) or error}") from None
    return url, tls
