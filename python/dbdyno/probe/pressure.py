"""How much of the time tasks of the host waited for CPU, I/O or memory: /proc/pressure (accounting/psi.rst)."""

from collections.abc import Sequence
from typing import Self

from dbdyno.probe.kernel_files import KernelFileSource
from dbdyno.stack.layer import StackContext

_KINDS = ("some", "full")
# The host as a whole has no "full" of the CPU: some task always has it.
PRESSURES = (("cpu", "some"), ("io", "some"), ("io", "full"), ("memory", "some"), ("memory", "full"))


class PressureSource(KernelFileSource):
    """Pressure stall information of the whole host. Raises ``OSError`` where the kernel does not report it."""

    name = "pressure"
    of_host = True

    def __init__(self, *, pollers: bool = False) -> None:
        # A poller that waits is a task that waits for the CPU, and while one runs not all tasks wait ("full").
        self._pressures = tuple(
            (resource, kind) for resource, kind in PRESSURES if not pollers or (resource != "cpu" and kind == "some")
        )
        super().__init__(*(f"/proc/pressure/{resource}" for resource in dict(self._pressures)))
        try:
            self.read()  # some kernels have the files and refuse to be read
        except OSError:
            self.close()
            raise

    @classmethod
    def of_context(cls, context: StackContext) -> Self:
        """Without what pollers falsify, where they keep processors awake."""
        return cls(pollers=context.pollers is not None)

    def counters(self, raw: Sequence[bytes]) -> dict[str, float]:
        """Seconds stalled since boot, as ``io_some`` and so on."""
        found = {}
        for resource, text in zip(dict(self._pressures), raw, strict=True):
            for kind, line in zip(_KINDS, text.splitlines(), strict=False):
                found[f"{resource}_{kind}"] = int(line[line.rindex(b"=") + 1 :]) / 1e6
        return {f"{resource}_{kind}": found[f"{resource}_{kind}"] for resource, kind in self._pressures}

    def interval(self, before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
        """Percent of the interval in which some, or all, tasks that had work waited."""
        return {f"%{name}": min(100.0, 100 * (after[name] - before[name]) / seconds) for name in after}
