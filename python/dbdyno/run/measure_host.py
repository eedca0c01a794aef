"""A host measured in some ten seconds: wake-ups, timers, clock, memory, what others take, and an emulated disk."""

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from dbdyno.analysis.quick import HostMeasurement
from dbdyno.errors import DbdynoError, HostError
from dbdyno.host.processor import clock_source, is_guest, means_here, memory_facts, processor_facts, processor_ticks
from dbdyno.host.read import text_of
from dbdyno.stack import capabilities
from dbdyno.stack.layer import raised
from dbdyno.stack.layers.device import Emulated
from dbdyno.stack.layers.emulated_disk import running_disk
from dbdyno.stack.layers.scratch import scratch
from dbdyno.stack.tools import own_binary
from dbdyno.stack.undo_log import journalled
from dbdyno.system.child import run_for_json_lines

Progress = Callable[[str], None]  # a stage begins
EACH_SECONDS = 1.5
BESIDE_SECONDS = 1.0
LIMIT_SECONDS = 60.0  # a host that takes longer hardly runs
DISK_BYTES = 64 * 1024**2
CLOCK_SOURCES = Path("/sys/devices/system/clocksource/clocksource0/available_clocksource")
_IDLE, _STEAL, _STATES = (3, 4), 7, 8  # fields of /proc/stat's first line (proc(5)); what follows is in them
# What the program prints when it is done with a part -> what is measured next.
_NEXT = {"wake_up": "timers", "timer": "clock and memory", "memory": "emulated disk"}


def measure_host(progress: Progress) -> HostMeasurement:
    """Measure this host; ``progress`` is called with what is measured now. Raises ``HostError``."""
    progress("other programs")
    before = processor_ticks()
    time.sleep(BESIDE_SECONDS)
    spent = _spent(before, processor_ticks())
    busy = sum(spent) - spent[_STEAL] - sum(spent[place] for place in _IDLE)
    beside = busy / max(1, sum(spent))
    with ExitStack() as ending:
        device, why_not = None, _why_no_disk()
        if not why_not:
            try:
                device = ending.enter_context(_disk())
            except DbdynoError as error:
                why_not = str(error)
        progress("wake-ups")
        before = processor_ticks()
        measured = _measured(device, progress)
    spent = _spent(before, processor_ticks())
    return _figures(measured, beside, spent[_STEAL] / max(1, sum(spent)), why_not)


def _spent(before: Sequence[int], after: Sequence[int]) -> list[int]:
    return [max(0, end - start) for start, end in zip(before[:_STATES], after[:_STATES], strict=True)]


def _why_no_disk() -> str:
    """What an emulated disk lacks here, with the remedy; empty where it can be had."""
    lacking = [need for need in (capabilities.root(), capabilities.fuse(), capabilities.loop()) if not need.ok]
    return "; ".join(need.said for need in lacking[:1])


@contextmanager
def _disk() -> Iterator[Path]:
    """An emulated disk that takes no time itself, so that what a read of it takes is the path there and back."""
    with (
        journalled("doctor") as journal,
        running_disk(journal, model="ideal", size=DISK_BYTES) as disk,
        scratch(journal) as ground,
        raised([Emulated(disk, "ideal", rotational=False, seed=1, restore=False)], ground) as context,
    ):
        assert context.device is not None  # noqa: S101  (it is what was raised)
        yield context.device.path


def _measured(device: Path | None, progress: Progress) -> dict[str, dict[str, Any]]:
    """Part to figures, as ``dbdyno-probe host`` prints them."""
    command = [own_binary("dbdyno-probe"), "host", "--each", str(EACH_SECONDS)]
    command += ["--device", str(device)] if device else []
    figures: dict[str, dict[str, Any]] = {}

    def take(line: dict[str, Any]) -> None:
        figures[line["measured"]] = line["figures"]
        if (what := _NEXT.get(line["measured"])) and (device or what != "emulated disk"):
            progress(what)

    code, complaint = run_for_json_lines(command, LIMIT_SECONDS, take)
    if code:
        complaint = complaint.removeprefix("dbdyno-probe: ") or f"not done after {LIMIT_SECONDS:g} s"
        raise HostError(f"this host can't be measured: {complaint}; for the rest: dbdyno doctor --quick")
    return figures


def _figures(measured: dict[str, dict[str, Any]], beside: float, stolen: float, no_disk: str) -> HostMeasurement:
    cpus = frozenset(os.sched_getaffinity(0))
    means, facts, processor = means_here(cpus), memory_facts(), processor_facts()
    wake, timer, disk = measured["wake_up"], measured["timer"], measured.get("disk")
    sources = text_of(CLOCK_SOURCES, "").split()
    return HostMeasurement(
        cores=len(cpus),
        guest=is_guest(),
        wake_up_us_p50=wake["p50_ns"] / 1000,
        wake_up_us_p99=wake["p99_ns"] / 1000,
        timer_late_us_p50=timer["p50_ns"] / 1000,
        timer_late_us_p99=timer["p99_ns"] / 1000,
        clock_read_ns=measured["clock"]["read_ns"],
        memory_bytes_per_second=measured["memory"]["copied_bytes_per_second"],
        stolen_share=stolen,
        busy_share=beside,
        clock_source=clock_source(),
        clock_sources=tuple(sources),
        governor=processor["frequency"]["governor"],
        memory_bytes=_bytes(facts["bytes"]),
        swap_bytes=_bytes(facts["swap_bytes"]),
        disk_us_p50=disk["p50_ns"] / 1000 if disk else math.nan,
        disk_us_p99=disk["p99_ns"] / 1000 if disk else math.nan,
        disk_iops=disk["iops"] if disk else math.nan,
        no_disk=no_disk,
        can_be_awake=bool(means.by),
        why_not_awake=means.why,
        awake_remedy=means.remedy,
    )


def _bytes(value: object) -> float:
    return float(value) if isinstance(value, int) else math.nan
