"""Everybody else on this host, watched beside a load."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dbdyno.host.storage import disks_under
from dbdyno.probe.disturbance import disturbance
from dbdyno.probe.foreign import ForeignSource
from dbdyno.probe.sampler import Sampler, Series
from dbdyno.stack.layer import StackContext


def disks_below(context: StackContext) -> list[str]:
    """Kernel names of the disks that the data stand on; none below an emulated disk or in memory."""
    if context.device:
        return [] if context.device.disposable else disks_under(context.device.path)
    return disks_under(context.directory) if context.directory else []


class Others:
    """What others did beside the load: known once they are no longer watched."""

    def __init__(self, source: ForeignSource) -> None:
        self._source, self.sampler = source, Sampler([source], source.interval_ns)

    @property
    def series(self) -> Series:
        """What was counted, and what the counting cost."""
        return self.sampler.series[self._source.name]

    def known(self) -> dict[str, Series]:
        """The series by its name; nothing where others could not be told from the server."""
        return {self._source.name: self.series} if self.series.t_ns else {}

    def within(self, window_ns: tuple[int, int]) -> dict[str, Any]:
        """How much that disturbed the measured window."""
        return disturbance(self.series, window_ns, cores=self._source.cores, others=self._source.shares())


@contextmanager
def watching_others(context: StackContext, disks: list[str]) -> Iterator[Others]:
    """Watch all that is none of ours for as long as the context lasts.

    Nothing is watched where a server's process is not known: on this host it would count as somebody else's.
    """
    server = context.endpoint.pid if context.endpoint else None
    ours = {pid for pid in (server, *context.journal.processes()) if pid}
    others = Others(ForeignSource(ours, disks))
    if context.endpoint and context.endpoint.pid is None:
        yield others
        return
    others.sampler.start()
    try:
        yield others
    finally:
        others.sampler.stop()
