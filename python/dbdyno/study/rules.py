"""What can't be combined: rules over one whole treatment that need no look at the host."""

from collections.abc import Iterator
from pathlib import Path

from dbdyno.model.quantity import size_bytes
from dbdyno.study.allowed import mkfs_mistake, mount_mistake
from dbdyno.study.clients_from_rules import broken_clients_from_rules
from dbdyno.study.crash_rules import broken_crash_rules
from dbdyno.study.drives import is_emulated
from dbdyno.study.mistakes import Mistake, did_you_mean, shown
from dbdyno.study.schema import (
    NR_REQUESTS_MAX,
    NR_REQUESTS_MIN,
    NR_REQUESTS_NONE_MAX,
    OLD_SCHEDULERS,
    SCHEDULERS,
    TrialSpec,
)
from dbdyno.study.server_settings import setting_mistake
from dbdyno.study.stack_rules import broken_stack_rules
from dbdyno.study.tool_rules import broken_tool_rules
from dbdyno.study.units import format_bytes
from dbdyno.study.workload_rules import broken_workload_rules

# Of each scheduler, in the kernel's words (block/mq-deadline.c, kyber-iosched.c, bfq-iosched.c).
TUNABLES = {
    "none": (),
    "mq-deadline": ("read_expire", "write_expire", "writes_starved", "front_merges", "async_depth", "fifo_batch",
                    "prio_aging_expire"),
    "kyber": ("read_lat_nsec", "write_lat_nsec"),
    "bfq": ("fifo_expire_sync", "fifo_expire_async", "back_seek_max", "back_seek_penalty", "slice_idle",
            "slice_idle_us", "max_budget", "timeout_sync", "strict_guarantees", "low_latency"),
}  # fmt: skip


def broken_rules(spec: TrialSpec, folder: Path) -> Iterator[Mistake]:
    """Every rule that this treatment breaks; ``folder`` is where relative files are looked for."""
    yield from broken_stack_rules(spec, folder)
    if not spec.stack.is_simulated:
        yield from _simulated_only(spec)
        yield from _queue(spec)
    yield from _passed_on(spec)
    yield from broken_workload_rules(spec.workload, folder)
    yield from broken_clients_from_rules(spec)
    yield from broken_tool_rules(spec, folder)
    yield from broken_crash_rules(spec)
    yield from _memory(spec)


def _simulated_only(spec: TrialSpec) -> Iterator[Mistake]:
    """What only a simulated kernel takes."""
    scheduler, wanted = spec.stack.scheduler, spec.queue.nr_requests
    if scheduler in OLD_SCHEDULERS:
        near = did_you_mean(str(scheduler), SCHEDULERS) or "."
        text = f"is {shown(scheduler)}; allowed are {', '.join(SCHEDULERS)}{near}"
        yield Mistake(("stack", "scheduler"), f"{text} Kernels up to 4.20 had it: stack.kernel simulates one")
    if wanted is not None and not NR_REQUESTS_MIN <= wanted <= NR_REQUESTS_MAX:
        text = f"is {wanted}, which no blk-mq kernel allows; give {NR_REQUESTS_MIN} to {NR_REQUESTS_MAX}"
        yield Mistake(("queue", "nr_requests"), f"{text}, or simulate one that does (stack.kernel)")
    if spec.queue.queue_depth is not None:
        text = "is for a simulated stack; leave it out, or give stack.kernel: a real drive has a depth of its own"
        yield Mistake(("queue", "queue_depth"), text)
    if spec.workload.kind == "trace":
        yield Mistake(("workload", "kind"), 'is "trace", which replays on a simulated stack only; give stack.kernel')


def _passed_on(spec: TrialSpec) -> Iterator[Mistake]:
    kind, options = spec.stack.filesystem, spec.filesystem
    if kind and (text := mkfs_mistake(kind, options.mkfs)):
        yield Mistake(("filesystem", "mkfs"), text)
    if kind and (text := mount_mistake(kind, options.mount)):
        yield Mistake(("filesystem", "mount"), text)
    for name, value in spec.server.settings.items():
        if text := setting_mistake(name, value):
            yield Mistake(("server", "settings", name), text)


def _queue(spec: TrialSpec) -> Iterator[Mistake]:
    wanted, scheduler = spec.queue.nr_requests, spec.stack.scheduler
    # How deep a real device's own queue is, only the host knows.
    unscheduled = is_emulated(spec.stack.device) and scheduler in {None, "none"}
    if unscheduled and wanted is not None and wanted > NR_REQUESTS_NONE_MAX:
        text = f"is {wanted}; without a scheduler the kernel allows at most the device's own depth, "
        text += f"{NR_REQUESTS_NONE_MAX} for an emulated disk. Give stack.scheduler, or a smaller number"
        yield Mistake(("queue", "nr_requests"), text)
    if scheduler == "bfq" and spec.queue.wbt_lat_usec:
        yield Mistake(("queue", "wbt_lat_usec"), "can't be set under bfq, which throttles writeback itself")
    if spec.queue.iosched and not TUNABLES.get(scheduler or ""):
        tunable = ", ".join(name for name, tunables in TUNABLES.items() if tunables)
        yield Mistake(("queue", "iosched"), f"is for a scheduler with tunables; give stack.scheduler: {tunable}")
        return
    known = TUNABLES.get(scheduler or "", ())
    for name in spec.queue.iosched:
        if name not in known:
            text = f"is no tunable of {scheduler}; known are {', '.join(known)}{did_you_mean(name, known)}"
            yield Mistake(("queue", "iosched", name), text)


def _memory(spec: TrialSpec) -> Iterator[Mistake]:
    pool = spec.server.settings.get("innodb_buffer_pool_size")
    if spec.stack.memory is None or pool is None:
        return
    try:
        pool_bytes = pool if isinstance(pool, int) else size_bytes(pool)
    except ValueError:
        return  # the server will say what it thinks of it
    if pool_bytes >= spec.stack.memory:
        text = f"is {shown(pool)}, not less than stack.memory ({format_bytes(spec.stack.memory)}): "
        yield Mistake(("server", "settings", "innodb_buffer_pool_size"), text + "the kernel would kill the server")
