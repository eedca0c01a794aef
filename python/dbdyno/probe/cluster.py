"""The nodes of a cluster while the load runs: what they have sent and not yet applied, and each one's process."""

from dbdyno.model.disks import series_name
from dbdyno.probe.sampler import ProbeSource
from dbdyno.probe.server import ServerProcessSource
from dbdyno.servers.contract import Cluster, NodeStatus, ServerError


class ClusterSource(ProbeSource):
    """Write sets of the first node, and how far the others are with them."""

    name = "cluster"

    def __init__(self, cluster: Cluster) -> None:
        try:
            self._reader = cluster.reader()
        except ServerError as error:
            raise ConnectionError(str(error)) from error

    def read(self) -> list[NodeStatus]:
        """The status of each node, that of the first before others."""
        try:
            return self._reader.statuses()
        except ServerError as error:
            raise ConnectionError(str(error)) from error

    def counters(self, raw: list[NodeStatus]) -> dict[str, float]:
        """What the first has sent so far; of refusals and queues those of all nodes."""
        first = raw[0]
        return {
            "sent_done": first.sent,
            "ordered_done": first.ordered,
            "ordering_seconds": first.ordering_seconds,
            "paused_seconds": first.paused_seconds,
            "failed_done": sum(node.failed for node in raw),
            "receive_queue": max(node.queue for node in raw),
            "not_applied": max(0.0, first.applied - min(node.applied for node in raw)),
        }

    def interval(self, before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
        """Write sets per second, beside what there is."""
        return {"sent/s": (after["sent_done"] - before["sent_done"]) / seconds, **after}

    def close(self) -> None:
        """End the connections."""
        self._reader.close()


class NodeProcessSource(ServerProcessSource):
    """The process of a node beside the first: its columns are those of the server's."""

    name = "node_process"

    def __init__(self, pid: int, node: str) -> None:
        self.name = series_name(self.name, node)
        super().__init__(pid)
