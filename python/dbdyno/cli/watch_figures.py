"""What ``dbdyno watch`` shows: iostat's columns of each interval, and the block trace's where it is asked for."""

import json
import math
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from datetime import datetime

from dbdyno.errors import HostError
from dbdyno.probe.block_device import COLUMNS, BlockDeviceSource, as_iostat
from dbdyno.probe.trace_reader import LIVE_COLUMNS, live_traces
from dbdyno.system.clock import now_ns

Figures = dict[str, dict[str, float]]  # device -> column -> value


def columns_of(*, trace: bool) -> tuple[str, ...]:
    """The columns in their order."""
    return (*COLUMNS, *LIVE_COLUMNS) if trace else COLUMNS


def intervals(
    names: list[str], seconds: float, pause: Callable[[float], bool], *, trace: bool
) -> Generator[Figures, None, None]:
    """The figures of each interval, until ``pause`` says no. Raises ``HostError`` where a device can't be watched."""
    sources = {name: BlockDeviceSource(name) for name in names}

    def read() -> dict[str, tuple[int, dict[str, float]]]:
        try:
            return {name: (now_ns(), source.sample()) for name, source in sources.items()}
        except OSError as error:
            raise HostError(f"a device has gone: {error.strerror}") from None

    with ExitStack() as ending:
        traces = ending.enter_context(live_traces(names)) if trace else None
        before, due = read(), now_ns() / 1e9 + seconds
        while pause(max(0.0, due - now_ns() / 1e9)):
            after = read()
            traced = traces.interval() if traces else {}
            yield {
                name: as_iostat(source.interval(before[name][1], at[1], (at[0] - before[name][0]) / 1e9))
                | traced.get(name, {})
                for (name, source), at in zip(sources.items(), after.values(), strict=True)
            }
            before, due = after, max(due + seconds, now_ns() / 1e9)


# What ``dbdyno watch`` writes into a pipe: plain lines, comma-separated values, or JSON; each at once.


HEADED_EVERY = 20  # intervals; a screen of lines keeps its heading


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="milliseconds")


def _number(value: float, format_: str, unknown: str = "-") -> str:
    return f"{value:{format_}}" if math.isfinite(value) else unknown


def lines(names: Sequence[str], columns: Sequence[str]) -> Callable[[Figures], None]:
    """Columns under a heading, as iostat writes them, with the time before."""
    width = max(len(name) for name in ("Device", *names))
    widths = {name: max(len(name), 8) for name in columns}
    heading = " ".join([f"{'time':29s} {'Device':{width}s}", *(f"{name:>{widths[name]}s}" for name in columns)])
    shown = 0

    def write(figures: Figures) -> None:
        nonlocal shown
        if shown % HEADED_EVERY == 0:
            print(heading)
        shown += 1
        at = _now()
        for device, found in figures.items():
            cells = (_number(found[name], ".2f").rjust(widths[name]) for name in columns)
            print(" ".join([f"{at:29s} {device:{width}s}", *cells]), flush=True)

    return write


def csv(names: Sequence[str], columns: Sequence[str]) -> Callable[[Figures], None]:
    """A heading once, then a line for each device and interval."""
    del names
    headed = False

    def write(figures: Figures) -> None:
        nonlocal headed
        if not headed:
            print(",".join(["time", "device", *columns]))
            headed = True
        at = _now()
        for device, found in figures.items():
            print(",".join([at, device, *(_number(found[name], ".6g", "") for name in columns)]), flush=True)

    return write


def objects(names: Sequence[str], columns: Sequence[str]) -> Callable[[Figures], None]:
    """A JSON object a line."""
    del names

    def write(figures: Figures) -> None:
        at = _now()
        for device, found in figures.items():
            known = {name: found[name] if math.isfinite(found[name]) else None for name in columns}
            print(json.dumps({"time": at, "device": device, **known}), flush=True)

    return write


WRITERS = {"lines": lines, "csv": csv, "json": objects}
