"""Which sources a stack allows, and all of them watched while the load runs."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from dbdyno.errors import TrialError
from dbdyno.probe.block_device import BlockDeviceSource
from dbdyno.probe.client_process import ClientProcessSource
from dbdyno.probe.drive import INTERVAL_NS as DRIVE_INTERVAL_NS
from dbdyno.probe.drive import DriveSource
from dbdyno.probe.host_cpu import HostCpuSource
from dbdyno.probe.pressure import PressureSource
from dbdyno.probe.sampler import Sampler, Series, Source
from dbdyno.probe.server_process import ServerProcessSource
from dbdyno.probe.server_status import ServerStatusSource
from dbdyno.probe.smart import INTERVAL_NS as SMART_INTERVAL_NS
from dbdyno.probe.smart import smart_sources
from dbdyno.stack.layer import Endpoint, StackContext


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
        if context.device and context.device.control:
            with suppress(OSError):  # not every drive has an inside worth looking at
                samplers.append(Sampler([DriveSource(context.device.control)], DRIVE_INTERVAL_NS))
        if slow := smart_sources(disks):
            samplers.append(Sampler(slow, SMART_INTERVAL_NS))  # in a thread of its own: a disk may take its time
        for sampler in samplers:
            stopping.callback(sampler.stop)
            sampler.start()
        yield {name: series for sampler in samplers for name, series in sampler.series.items()}


def sources_of(context: StackContext) -> list[Source]:
    """What is to be sampled at each beat. Raises ``OSError``."""
    return [*_host(), *_device(context), *_server(context.endpoint)]


def _server(endpoint: Endpoint | None) -> Iterator[Source]:
    if endpoint is None:
        return
    if endpoint.process:
        yield ServerProcessSource(endpoint.process.pid)
    elif endpoint.pid:
        with suppress(OSError):  # somebody else's may not be for us to see
            yield ServerProcessSource(endpoint.pid)
    yield ServerStatusSource(endpoint.control, endpoint.pid)


def _host() -> Iterator[Source]:
    yield HostCpuSource()
    for optional in (ClientProcessSource, PressureSource):
        with suppress(OSError):  # not every kernel tells
            yield optional()


def _device(context: StackContext) -> Iterator[Source]:
    if context.device:
        yield BlockDeviceSource(*(device.name for device in context.devices))
