"""The host's CPU by state, from the first line of /proc/stat (proc(5)), in percent of all cores."""

from collections.abc import Sequence
from typing import Self

from dbdyno.probe.awake import poller_ticks
from dbdyno.probe.kernel_files import KernelFileSource
from dbdyno.stack.layer import StackContext

_STATES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_POLLERS = "pollers"


class HostCpuSource(KernelFileSource):
    """CPU time of the whole host; what pollers use that keep it awake counts as idle, as it would be without them."""

    name = "host_cpu"
    of_host = True

    def __init__(self, pollers: int | None = None) -> None:
        super().__init__("/proc/stat", *([f"/proc/{pollers}/stat"] if pollers else []))

    @classmethod
    def of_context(cls, context: StackContext) -> Self:
        """With the pollers that keep processors awake."""
        return cls(context.pollers)

    def counters(self, raw: Sequence[bytes]) -> dict[str, float]:
        """Clock ticks per state since boot."""
        numbers = raw[0].split(b"\n", 1)[0].split()[1:]
        found = {state: float(number) for state, number in zip(_STATES, numbers, strict=False)}
        return found | {_POLLERS: poller_ticks(raw[1])} if len(raw) > 1 else found

    def interval(self, before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
        """Percent of the interval's ticks per state; all 0 where no tick passed."""
        delta = {state: max(0.0, after[state] - before[state]) for state in after}
        # Their nice value is the weakest, so that the kernel counts their time there.
        polled = min(delta.pop(_POLLERS, 0.0), delta["nice"])
        delta |= {"nice": delta["nice"] - polled, "idle": delta["idle"] + polled}
        total = sum(delta.values()) or 1.0
        percent = {f"%{state}": 100 * ticks / total for state, ticks in delta.items()}
        percent["%user"] += percent.pop("%nice")
        percent["%system"] += percent.pop("%irq") + percent.pop("%softirq")
        return percent
