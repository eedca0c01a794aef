"""Everybody else on this host, watched beside a load."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dbdyno.host.storage import disks_under
from dbdyno.probe.disturbance import disturbance
from dbdyno.probe.foreign import ForeignSource
from dbdyno.probe.sampler import Sampler, Series
from dbdyno.stack.layer import Stand


def disks_below(stand: Stand) -> list[str]:
    """Kernel names of the disks that the data stand on; none below an emulated disk or in memory."""
    if stand.device:
        return [] if stand.device.disposable else disks_under(stand.device.path)
    return disks_under(stand.directory) if stand.directory else []


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
def watching_others(stand: Stand, disks: list[str]) -> Iterator[Others]:
    """Watch all that is none of ours for as long as the context lasts.

    Nothing is watched where a server's process is not known: on this host it would count as somebody else's.
    """
    server = stand.endpoint.pid if stand.endpoint else None
    ours = {pid for pid in (server, *stand.journal.processes()) if pid}
    others = Others(ForeignSource(ours, disks))
    if stand.endpoint and stand.endpoint.pid is None:
        yield others
        return
    others.sampler.start()
    try:
        yield others
    finally:
        others.sampler.stop()
