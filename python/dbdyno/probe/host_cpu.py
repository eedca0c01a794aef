"""The host's CPU by state, from the first line of /proc/stat (proc(5)), in percent of all cores."""

from collections.abc import Sequence

from dbdyno.probe.kernel_files import KernelFileSource

_STATES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


class HostCpuSource(KernelFileSource):
    """CPU time of the whole host."""

    name = "host_cpu"
    of_host = True

    def __init__(self) -> None:
        super().__init__("/proc/stat")

    def counters(self, raw: Sequence[bytes]) -> dict[str, float]:
        """Clock ticks per state since boot."""
        numbers = raw[0].split(b"\n", 1)[0].split()[1:]
        return {state: float(number) for state, number in zip(_STATES, numbers, strict=False)}

    def interval(self, before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
        """Percent of the interval's ticks per state; all 0 where no tick passed."""
        delta = {state: max(0.0, after[state] - before[state]) for state in after}
        total = sum(delta.values()) or 1.0
        percent = {f"%{state}": 100 * ticks / total for state, ticks in delta.items()}
        percent["%user"] += percent.pop("%nice")
        percent["%system"] += percent.pop("%irq") + percent.pop("%softirq")
        return percent
