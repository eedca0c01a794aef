"""What ``dbdyno watch`` writes into a pipe: plain lines, comma-separated values, or JSON; each at once."""

import json
import math
from collections.abc import Callable, Sequence
from datetime import datetime

from dbdyno.cli.watch_figures import Figures

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
