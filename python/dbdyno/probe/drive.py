"""The inside of an emulated drive while the load runs: heat, caches, wear; asked of the process that serves it."""

from pathlib import Path

from dbdyno.errors import TrialError
from dbdyno.probe.sampler import Source
from dbdyno.stack.disk_client import DiskClient

INTERVAL_NS = 1_000_000_000


class DriveSource(Source):
    """The gauges of one model. Raises ``OSError`` where it has none."""

    name = "drive"

    def __init__(self, control: Path) -> None:
        self._disk = DiskClient(control)
        if not self.read():
            raise OSError("this drive has no gauges")

    def read(self) -> dict[str, float]:
        """The gauges as they stand, as ``dbdyno disk stats`` shows them."""
        try:
            return self._disk.gauges()
        except TrialError as error:
            raise ConnectionError(str(error)) from None
