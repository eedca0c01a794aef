"""Which sources a stack allows, and all of them watched while the load runs."""

import inspect
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path

from dbdyno.errors import TrialError
from dbdyno.probe.cluster import ClusterSource, NodeProcessSource
from dbdyno.probe.drive import INTERVAL_NS as DRIVE_INTERVAL_NS
from dbdyno.probe.drive import SMART_INTERVAL_NS, DriveSource, smart_sources
from dbdyno.probe.host import AwakeSource
from dbdyno.probe.iostat import BlockDeviceSource
from dbdyno.probe.replica import ReplicaProcessSource, ReplicaSource
from dbdyno.probe.sampler import ProbeSource, Sampler, Series
from dbdyno.probe.server import ServerProcessSource, ServerStatusSource
from dbdyno.probe.server_costs import INTERVAL_NS as COSTS_INTERVAL_NS
from dbdyno.probe.server_costs import ServerCountersSource, ServerSwitchesSource
from dbdyno.stack.layer import ClusterNodes, Endpoint, Replica, StackContext


@contextmanager
def watching(context: StackContext, disks: Sequence[str]) -> Iterator[dict[str, Series]]:
    """All that this stack allows, sampled until this ends; the series are whole after it.

    ``disks`` are those below the data. The load is started by the thread that enters.
    """
    with ExitStack() as stopping:
        try:
            beat = Sampler(sources_of(context))
        except OSError as error:
            raise TrialError(f"a probe can't start: {error}") from None
        samplers = [beat]
        for name, disk in {"": context, **context.disks}.items():
            if disk.device and disk.device.control:
                with suppress(OSError):  # not every drive has an inside worth looking at
                    samplers.append(Sampler([DriveSource(disk.device.control, name)], DRIVE_INTERVAL_NS))
        if costs := list(_server_costs(context.endpoint)):
            samplers.append(Sampler(costs, COSTS_INTERVAL_NS))
        if slow := smart_sources(disks):
            samplers.append(Sampler(slow, SMART_INTERVAL_NS))  # in a thread of its own: a disk may take its time
        for sampler in samplers:
            stopping.callback(sampler.stop)
            sampler.start()
        yield {name: series for sampler in samplers for name, series in sampler.series.items()}


def sources_of(context: StackContext) -> list[ProbeSource]:
    """What is to be sampled at each beat. Raises ``OSError``."""
    own = [*_host(context), *_device(context), *_server(context.endpoint)]
    return [*own, *_replica(context.replica), *_nodes(context.nodes)]


def _server(endpoint: Endpoint | None) -> Iterator[ProbeSource]:
    if endpoint is None:
        return
    if endpoint.process:
        yield ServerProcessSource(endpoint.process.pid)
    elif endpoint.pid:
        with suppress(OSError):  # another user's may not be for us to see
            yield ServerProcessSource(endpoint.pid)
    yield ServerStatusSource(endpoint.control, endpoint.pid)


def _server_costs(endpoint: Endpoint | None) -> Iterator[ProbeSource]:
    pid = None if endpoint is None else endpoint.process.pid if endpoint.process else endpoint.pid
    if pid is None:
        return
    for source in (ServerSwitchesSource, ServerCountersSource):
        with suppress(OSError):  # another user's is not for us to see, and not every host has processor counters
            yield source(pid)


def _replica(replica: Replica | None) -> Iterator[ProbeSource]:
    if replica is None:
        return
    yield ReplicaSource(replica.replication)
    if replica.endpoint.pid:
        yield ReplicaProcessSource(replica.endpoint.pid)


def _nodes(nodes: ClusterNodes | None) -> Iterator[ProbeSource]:
    if nodes is None:
        return
    yield ClusterSource(nodes.cluster)
    for number, node in enumerate(nodes.others, 2):
        if node.pid:
            yield NodeProcessSource(node.pid, str(number))


def _host(context: StackContext) -> Iterator[ProbeSource]:
    for of_host in host_sources():
        with suppress(OSError):  # not every kernel has it
            yield of_host.from_context(context)
    if context.pollers:
        yield AwakeSource(context.pollers)


@cache
def host_sources() -> tuple[type[ProbeSource], ...]:
    """Every source that watches the host as a whole: those of this folder's files that say so by ``of_host``."""
    modules = (import_module(f"{__package__}.{path.stem}") for path in sorted(Path(__file__).parent.glob("[a-z]*.py")))
    classes = (member for module in modules for _, member in inspect.getmembers(module, inspect.isclass))
    sources = (
        member
        for member in classes
        if issubclass(member, ProbeSource) and member.of_host and not inspect.isabstract(member)
    )
    return tuple(dict.fromkeys(sources))


def _device(context: StackContext) -> Iterator[ProbeSource]:
    for name, disk in {"": context, **context.disks}.items():
        if disk.device:
            yield BlockDeviceSource(*(device.name for device in disk.devices), disk=name)
