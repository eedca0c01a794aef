"""The kernels that can be simulated, and what each of them has, as the simulator says it."""

from dataclasses import dataclass
from functools import cache

from dbdyno._native import kernels

QUEUE_DEPTH = 32  # commands that a simulated drive takes at once, unless a study says otherwise
NR_REQUESTS = 128  # of a kernel before blk-mq
FIRST_CFQ_REQUESTS = 8192  # which the cfq without slices asked for itself
NR_REQUESTS_MIN, NR_REQUESTS_MAX, MQ_REQUESTS_MAX = 4, 1_000_000, 2048


@dataclass(frozen=True)
class Tunable:
    """A file of ``queue/iosched``."""

    unit: str  # empty for a plain number
    default: int
    least: int
    most: int


@dataclass(frozen=True)
class Kernel:
    """What one version has; the first scheduler is what it takes unless a study says."""

    schedulers: dict[str, dict[str, Tunable]]

    def nr_requests(self, scheduler: str, queue_depth: int) -> tuple[int, int, int]:
        """The default of ``nr_requests``, the least, and the most."""
        if scheduler == "none":
            return queue_depth, 1, queue_depth
        if "none" in self.schedulers:
            return 2 * min(queue_depth, 128), NR_REQUESTS_MIN, MQ_REQUESTS_MAX
        is_first_cfq = scheduler == "cfq" and "slice_sync" not in self.schedulers["cfq"]
        return FIRST_CFQ_REQUESTS if is_first_cfq else NR_REQUESTS, NR_REQUESTS_MIN, NR_REQUESTS_MAX


@cache
def kernels_by_name() -> dict[str, Kernel]:
    """All of them, the oldest first."""
    return {
        table["name"]: Kernel(
            {
                scheduler: {name: Tunable(**tunable) for name, tunable in tunables.items()}
                for scheduler, tunables in table["schedulers"].items()
            }
        )
        for table in kernels()
    }


def all_tunables() -> set[str]:
    """The names of the tunables of all their schedulers."""
    tunable_sets = (tunables for kernel in kernels_by_name().values() for tunables in kernel.schedulers.values())
    return {name for tunables in tunable_sets for name in tunables}
