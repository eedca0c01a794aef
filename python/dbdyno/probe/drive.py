"""The inside of a drive while the load runs: gauges of an emulated one, heat and wear of real ones by smartctl."""

import math
from collections.abc import Sequence
from pathlib import Path

from dbdyno.errors import TrialError
from dbdyno.host.storage import ask_smartctl, figures
from dbdyno.model.disks import series_name
from dbdyno.probe.sampler import ProbeSource
from dbdyno.stack.disk_client import DiskClient

INTERVAL_NS = 1_000_000_000


class DriveSource(ProbeSource):
    """The gauges of one model. Raises ``OSError`` where it has none."""

    name = "drive"

    def __init__(self, control: Path, disk: str = "") -> None:
        self.name = series_name(self.name, disk)
        self._disk = DiskClient(control)
        if not self.read():
            raise OSError("this drive has no gauges")

    def read(self) -> dict[str, float]:
        """The gauges as they stand, as ``dbdyno disk stats`` shows them."""
        try:
            return self._disk.gauges()
        except TrialError as error:
            raise ConnectionError(str(error)) from None


SMART_INTERVAL_NS = 10_000_000_000  # a disk answers slowly, and may let other requests wait meanwhile


class SmartSource(ProbeSource):
    """One disk. Raises ``OSError`` where it reports nothing."""

    name = "smart"

    def __init__(self, disk: str, series: str = "smart") -> None:
        self.name = series
        self._disk, self._tools_seconds = disk, 0.0
        self._columns = list(self.read())

    def read(self) -> dict[str, float]:
        """Figures as they stand, as ``dbdyno.host.storage`` names them."""
        report, seconds = ask_smartctl(self._disk, "--attributes")
        self._tools_seconds += seconds
        columns = {name: float(value) for name, value in figures(report).items()}
        if not columns:
            raise OSError(f"{self._disk} reports no SMART figures")
        return columns

    def interval(self, before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
        """The figures at the interval's end; one that is missing for once is NaN."""
        del before, seconds
        return {name: after.get(name, math.nan) for name in self._columns}

    def outside_seconds(self) -> float:
        """CPU of smartctl."""
        return self._tools_seconds


def smart_sources(disks: Sequence[str]) -> list[ProbeSource]:
    """A source for each disk that reports figures; the first is called ``smart``, a further one ``smart_NAME``."""
    sources: list[ProbeSource] = []
    for disk in disks:
        try:
            sources.append(SmartSource(disk, f"smart_{disk}" if sources else "smart"))
        except OSError:
            continue
    return sources
