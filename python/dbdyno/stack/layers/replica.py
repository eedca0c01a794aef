"""A replica beside the server under test: a second server on a copy of its data, which follows its binary log."""

import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from dbdyno.errors import TrialError
from dbdyno.mysql.settings import Setting
from dbdyno.servers.contract import ReplicaHealth, ReplicaTerms, Replicating, ServerError
from dbdyno.stack.layer import Replica, StackContext
from dbdyno.stack.layers.further_server import (
    beside,
    catch_up_limit_seconds,
    copy_data,
    ground_of,
    own_of,
    place_of,
    with_end,
)
from dbdyno.stack.layers.link import linked, no_link
from dbdyno.stack.layers.server import ServerLayer
from dbdyno.system.interrupt import now_ns

FOLDER = "replica"  # its own, on the disk that it stands on, and in the scratch folder
POLL_SECONDS = 0.005  # how often it is looked whether the replica has all


@dataclass(frozen=True)
class ReplicaData:
    """A copy of the source's prepared data in the replica's place, before either of them is started.

    Logs and what names the server are left out. It lies below ``page_cache``, which leaves the copy as cold as the
    original.
    """

    source: ServerLayer
    disk: str  # of ``[stack.disks]``; empty: that of the data
    name: str = "replica_data"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """The copy, synced; it goes away with what it lies on."""
        files = copy_data(self.source, below, place_of(below, self.disk, FOLDER))
        yield below.raised(self.name, {"files": files, "disk": self.disk or "data"})


@dataclass(frozen=True)
class ReplicaLayer:
    """The replica, which follows a source that stands below it."""

    server: ServerLayer
    disk: str
    terms: ReplicaTerms
    round_trip_seconds: float = 0.0
    name: str = "replica"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """The replica with all that the source has; both are read back."""
        source, ground = below.server, ground_of(below, self.disk, FOLDER)
        assert source.remote is not None  # noqa: S101  (a source listens)
        host, port = source.remote.host, source.remote.port
        with self.server.raised(ground) as own, linked(host, port, self.round_trip_seconds) as link:
            replication = own_of(self.server).replication(source.address, own.server.address, self.terms)
            port, password = link.port if link else port, secrets.token_urlsafe(24)
            try:
                replication.begin(host, port, password)
                health, observed = replication.health(), replication.observed()
                round_trip_ms = replication.round_trip_ms(host, port, password)
            except ServerError as error:
                raise TrialError(f"server.replica: {with_end(error, own.server)}") from None
            if round_trip_ms < 1000 * self.round_trip_seconds:
                asked = f"{1000 * self.round_trip_seconds:g} ms"
                raise TrialError(f"server.replica.round_trip: asked for {asked}, a ping took {round_trip_ms:.3g} ms")
            replica = Replica(own.server, replication, health, self.disk, link.cut if link else no_link)
            terms = {"mode": self.terms.mode, "disk": self.disk or "data", "round_trip_ms": round(round_trip_ms, 3)}
            yield below.raised(self.name, {**own.observed[self.server.name], **observed, **terms}, replica=replica)


def replica_of(source: ServerLayer, terms: ReplicaTerms, settings: Mapping[str, Setting]) -> ServerLayer:
    """The server of a replica: the source's build and settings, but for its own ``settings``."""
    return replace(beside(source, FOLDER, settings), replicating=Replicating("replica", terms))


# After the load: what the replica has by then, and how long it takes for the rest.


def caught_up(replica: Replica, window_ns: tuple[int, int]) -> dict[str, float]:
    """Wait until the replica has applied all, and return ``replica_catch_up_ms``, from the end of the measured load.

    Of a semi-synchronous one also ``replica_wait_ms_mean``, over all commits since the replica was there.

    Raises ``TrialError`` where the replica does not follow any more, where a semi-synchronous source had stopped
    waiting for it, or where the rest takes too long.
    """
    _, end_ns = window_ns
    limit_seconds = catch_up_limit_seconds(window_ns)
    try:
        reader = replica.replication.reader()
        try:
            while (position := reader.position()).applied_bytes < position.written_bytes:
                check_health(replica)
                if now_ns() - end_ns > limit_seconds * 1e9:
                    behind = position.written_bytes - position.applied_bytes
                    raise TrialError(
                        f"server.replica: {limit_seconds:.0f} s after the load the replica was still {behind:.0f} "
                        "bytes behind; give a shorter load, or a replica that keeps up"
                    )
                time.sleep(POLL_SECONDS)
            at_ns = now_ns()
        finally:
            reader.close()
        health = check_health(replica)
    except ServerError as error:
        raise TrialError(f"server.replica: {with_end(error, replica.endpoint)}") from None
    figures = {"replica_catch_up_ms": max(0.0, (at_ns - end_ns) / 1e6)}
    if waits := health.waited - replica.before.waited:
        waited_seconds = health.waited_seconds - replica.before.waited_seconds
        figures["replica_wait_ms_mean"] = 1000 * waited_seconds / waits
    return figures


def check_health(replica: Replica) -> ReplicaHealth:
    """Return how it is.

    Raises ``TrialError`` where it has stopped, or where commits no longer waited for it though they were to.
    """
    health = replica.replication.health()
    if health.trouble:
        raise TrialError(f"server.replica: {with_end(health.trouble, replica.endpoint)}")
    if (alone := health.not_waited - replica.before.not_waited) > 0:
        raise TrialError(
            f"server.replica: {alone} commits did not wait for the replica, as its word took longer than the timeout; "
            "give a longer one (server.replica.timeout)"
        )
    return health
