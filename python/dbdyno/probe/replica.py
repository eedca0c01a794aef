"""The replica while the load runs: how far it is behind its source, and its process."""

import math
from bisect import bisect_right

from dbdyno.probe.sampler import ProbeSource
from dbdyno.probe.server import ServerProcessSource
from dbdyno.servers.contract import Replication, ServerError
from dbdyno.system.interrupt import now_ns


class ReplicaSource(ProbeSource):
    """Positions of source and replica, and how old what the replica has applied last is.

    ``lag_ms`` is the time since the source had written just as much of its log as the replica has applied: from the
    source's positions at the samples, by straight line between them. It is 0 where the replica has all.
    """

    name = "replica"

    def __init__(self, replication: Replication) -> None:
        try:
            self._reader = replication.reader()
        except ServerError as error:
            raise ConnectionError(str(error)) from error
        self._written: list[tuple[float, int, int]] = []  # bytes of the source's log; first and last seen so, ascending

    def read(self) -> dict[str, float]:
        """Bytes of the source's log that are written, received and applied, and the two figures of lag."""
        at_ns = now_ns()
        try:
            position = self._reader.position()
        except ServerError as error:
            raise ConnectionError(str(error)) from error
        return {
            "written_bytes": position.written_bytes,
            "received_bytes": position.received_bytes,
            "applied_bytes": position.applied_bytes,
            "lag_ms": self.lag_ms(at_ns, position.written_bytes, position.applied_bytes),
            "seconds_behind": position.seconds_behind,
        }

    def lag_ms(self, at_ns: int, written_bytes: float, applied_bytes: float) -> float:
        """How long ago the source had written what is applied by now; NaN where that was before the first sample."""
        if not self._written or written_bytes > self._written[-1][0]:
            self._written.append((written_bytes, at_ns, at_ns))
        else:
            self._written[-1] = (*self._written[-1][:2], at_ns)
        if applied_bytes >= written_bytes:
            return 0.0
        after = bisect_right(self._written, applied_bytes, key=lambda sample: sample[0])
        if after == 0:
            return math.nan
        low, _, low_ns = self._written[after - 1]
        high, high_ns, _ = self._written[after]  # there is one: not all is applied
        share = (applied_bytes - low) / (high - low)
        return (at_ns - (low_ns + share * (high_ns - low_ns))) / 1e6

    def interval(self, before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
        """MB of log per second, bytes that are still to come and to be applied, and the two figures of lag."""

        def rate(name: str) -> float:
            return (after[name] - before[name]) / 1e6 / seconds

        return {
            "written_MB/s": rate("written_bytes"),
            "applied_MB/s": rate("applied_bytes"),
            "not_received_bytes": max(0.0, after["written_bytes"] - after["received_bytes"]),
            "not_applied_bytes": max(0.0, after["written_bytes"] - after["applied_bytes"]),
            "lag_ms": after["lag_ms"],
            "seconds_behind": after["seconds_behind"],
        }

    def close(self) -> None:
        """End the connections."""
        self._reader.close()


class ReplicaProcessSource(ServerProcessSource):
    """The replica's process: its columns are those of the server's."""

    name = "replica_process"
