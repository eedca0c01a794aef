"""An emulated disk's own trace, summed up as the kernel's is: what there is where the kernel's can't be had."""

import csv
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.errors import HostError, TrialError
from dbdyno.stack.layers.emulated_disk import EmulatedDisk
from dbdyno.stack.tools import own_binary

SUMMARY_SECONDS = 120.0  # of a trace that has ended: ten million requests take a few


@dataclass(frozen=True)
class DiskTrace:
    """A trace that the disk is writing."""

    disk: EmulatedDisk
    file: Path

    def within(self, window_ns: tuple[int, int]) -> tuple[dict[str, Any], dict[str, list[float | None]]]:
        """End it; figures of a window of the monotonic clock, and the series. Raises ``TrialError``, ``HostError``."""
        dropped = self.disk.client.stop_trace().dropped
        figures, series = self.file.with_suffix(".json"), self.file.with_suffix(".csv")
        argv = [own_binary("dbdyno-probe"), "disk", str(self.file), "--window", "{},{}".format(*window_ns)]
        argv += ["--json", str(figures), "--series", str(series)]
        try:
            done = subprocess.run(
                argv, capture_output=True, encoding="utf-8", errors="replace", check=False, timeout=SUMMARY_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise TrialError(f"dbdyno-probe was not done after {SUMMARY_SECONDS:g} s") from None
        if done.returncode != 0:
            raise TrialError(done.stderr.strip().removeprefix("dbdyno-probe: ") or "dbdyno-probe failed")
        found = {**json.loads(figures.read_text(encoding="utf-8")), "lost": dropped}
        return found, read_series(series.read_text(encoding="ascii"))


def read_series(text: str) -> dict[str, list[float | None]]:
    """Columns of the series that ``dbdyno-probe`` writes; an empty cell is the mean of nothing."""
    rows = list(csv.reader(text.splitlines()))
    return {name: [float(row[place]) if row[place] else None for row in rows[1:]] for place, name in enumerate(rows[0])}


@contextmanager
def disk_tracing(disk: EmulatedDisk, folder: Path) -> Iterator[DiskTrace]:
    """Let a disk write its trace into a folder for as long as the context lasts. Raises ``TrialError``."""
    file = folder / "requests.trace"
    disk.client.start_trace(file, "binary")
    try:
        yield DiskTrace(disk, file)
    finally:
        with suppress(TrialError, HostError):  # it has ended already, or the disk has
            disk.client.stop_trace()
