"""Further nodes of a cluster whose first node is the server under test: each with a copy of its data."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from dbdyno.errors import HostError, TrialError
from dbdyno.servers.contract import Cluster, ClusterTerms, Membership, ServerError
from dbdyno.servers.user import own_file
from dbdyno.stack.layer import ClusterNodes, Endpoint, StackContext
from dbdyno.stack.layers.further_server import (
    beside,
    catch_up_limit_seconds,
    copy_data,
    ground_of,
    own_of,
    place_of,
    with_end,
)
from dbdyno.stack.layers.link import Door, Link, linked, no_link
from dbdyno.stack.layers.server import DATA, ServerLayer
from dbdyno.system.interrupt import now_ns

AnswerT = TypeVar("AnswerT")

# The addresses of nodes, and those under which the others know them where a network is in between. All are this host's
# own: its loopback interface has the whole of 127.0.0.0/8.
_NODES, _DOORS = "127.0.51", "127.0.52"


def node_host(number: int) -> str:
    """Where a node listens for others; the first has number 1."""
    return f"{_NODES}.{number}"


def door_host(of_node: str) -> str:
    """The address under which others know a node that is behind a network, by its own."""
    return f"{_DOORS}.{of_node.rpartition('.')[2]}"


def folder_of(number: int) -> str:
    """A node's own folder, on the disk that it stands on, and in the scratch folder."""
    return f"node{number}"


@dataclass(frozen=True)
class ClusterData:
    """A copy of the first node's prepared data for each other node, before any of them is started.

    Logs and what names the server are left out. It lies below ``page_cache``, which leaves the copies as cold as the
    original.
    """

    first: ServerLayer
    disks: tuple[str, ...]  # of the others, of ``[stack.disks]``; empty: that of the data
    name: str = "cluster_data"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """The copies, synced; they go away with what they lie on."""
        files = {
            f"files_{number}": copy_data(self.first, below, place_of(below, disk, folder_of(number)))
            for number, disk in enumerate(self.disks, 2)
        }
        yield below.raised(self.name, files)


@dataclass(frozen=True)
class ClusterLayer:
    """The other nodes, one after the other: each joins with its copy of the data, at the position of those before."""

    node: ServerLayer  # what each of them is
    disks: tuple[str, ...]
    terms: ClusterTerms
    round_trip_seconds: float = 0.0  # between any two
    name: str = "cluster"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """The cluster, of which every node says that all are there and in step."""
        nodes, links = [below.server], list[Link]()
        with ExitStack() as lowering:
            _answer_of(self._cluster(nodes).await_joined, nodes)
            for number, disk in enumerate(self.disks, 2):
                links += self._linked(nodes[-1], lowering)
                nodes.append(self._joined(nodes, number, disk, below, lowering))
            cluster = self._cluster(nodes)
            observed = _answer_of(cluster.observed, nodes)
            observed |= {f"disk_{number}": disk or "data" for number, disk in enumerate(self.disks, 2)}
            pairs, connections = len(nodes) * (len(nodes) - 1) // 2, sum(link.connections for link in links)
            if links and connections < pairs:
                raise TrialError(
                    f"server.cluster.round_trip: {connections} of {pairs} pairs of nodes are connected over the network"
                )
            cut = links[0].cut if links else no_link
            others = ClusterNodes(tuple(nodes[1:]), cluster, self.disks, cut)
            yield below.raised(self.name, {**observed, "connections_over_network": connections}, nodes=others)

    def _cluster(self, nodes: list[Endpoint]) -> Cluster:
        return own_of(self.node).cluster([node.address for node in nodes], self.terms)

    def _linked(self, node: Endpoint, lowering: ExitStack) -> list[Link]:
        """The network before a node that those who join later connect to; none where there is to be no delay.

        A node sees each client of the network under an address that leads through a network, too, and tells the others
        that address.
        """
        member = _member(node)
        door = Door(door_host(member.host), member.port, door_host)
        try:
            link = lowering.enter_context(linked(member.host, member.port, self.round_trip_seconds, door))
        except OSError as error:
            raise HostError(f"server.cluster.round_trip: {door.host}:{door.port}: {error.strerror or error}") from None
        return [link] if link else []

    def _joined(
        self, nodes: list[Endpoint], number: int, disk: str, below: StackContext, lowering: ExitStack
    ) -> Endpoint:
        """One more node, once all say that it is there."""
        first, folder = _member(nodes[0]), folder_of(number)
        ground = ground_of(below, disk, folder)
        name, content = _answer_of(self._cluster(nodes).position, nodes)
        assert ground.directory is not None  # noqa: S101  (``place_of``)
        own_file(ground.directory / DATA / name, content)
        peer = f"{door_host(first.host) if self.round_trip_seconds else first.host}:{first.port}"
        membership = Membership(first.terms, number, node_host(number), cluster=first.cluster, peer=peer)
        log = self.node.log.with_name(f"{folder}.log")
        layer = replace(self.node, membership=membership, log=log)
        node = lowering.enter_context(layer.raised(ground)).server
        _answer_of(self._cluster([*nodes, node]).await_joined, [*nodes, node])
        return node


def node_of(first: ServerLayer) -> ServerLayer:
    """What every other node is: the first one's build and settings."""
    return beside(first, "node", {})


def _member(node: Endpoint) -> Membership:
    assert node.membership is not None  # noqa: S101  (it was started as a node)
    return node.membership


def _answer_of(question: Callable[[], AnswerT], nodes: Sequence[Endpoint]) -> AnswerT:
    """What nodes answer. Raises ``TrialError`` where they do not, with how one of them has ended."""
    try:
        return question()
    except ServerError as error:
        ended = next((text for node in nodes if (text := with_end(error, node)) != str(error)), error)
        raise TrialError(f"server.cluster: {ended}") from None


# After the load: how long it takes until all nodes have applied all.


def all_applied(nodes: ClusterNodes, window_ns: tuple[int, int]) -> dict[str, float]:
    """Wait until each node has applied all; return ``cluster_catch_up_ms``, from the end of the measured load.

    Raises ``TrialError`` where a node is not in step any more, or takes too long.
    """
    _answer_of(lambda: nodes.cluster.await_applied(catch_up_limit_seconds(window_ns)), nodes.others)
    at_ns = now_ns()
    _answer_of(nodes.cluster.await_joined, nodes.others)  # a node that was thrown out meanwhile has not had all
    return {"cluster_catch_up_ms": max(0.0, (at_ns - window_ns[1]) / 1e6)}
