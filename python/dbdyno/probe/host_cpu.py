"""The host's CPU by state, from the first line of /proc/stat (proc(5)), in percent of all cores."""

import os

from dbdyno.probe.sampler import Source

_STATES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


class HostCpuSource(Source):
    """CPU time of the whole host."""

    name = "host_cpu"
    of_host = True

    def __init__(self) -> None:
        self._file = os.open("/proc/stat", os.O_RDONLY)

    def read(self) -> bytes:
        """The beginning of the file."""
        return os.pread(self._file, 256, 0)

    def counters(self, raw: bytes) -> dict[str, float]:
        """Clock ticks per state since boot."""
        numbers = raw.split(b"\n", 1)[0].split()[1:]
        return {state: float(number) for state, number in zip(_STATES, numbers, strict=False)}

    def interval(self, before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
        """Percent of the interval's ticks per state; all 0 where no tick passed."""
        delta = {state: max(0.0, after[state] - before[state]) for state in after}
        total = sum(delta.values()) or 1.0
        percent = {f"%{state}": 100 * ticks / total for state, ticks in delta.items()}
        percent["%user"] += percent.pop("%nice")
        percent["%system"] += percent.pop("%irq") + percent.pop("%softirq")
        return percent

    def close(self) -> None:
        """Close the counter file."""
        os.close(self._file)
