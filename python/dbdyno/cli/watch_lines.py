"""What ``dbdyno watch`` writes into a pipe: plain lines, comma-separated values, or JSON; each at once."""

import json
from collections.abc import Callable
from datetime import datetime

from dbdyno.probe.iostat import COLUMNS

Figures = dict[str, dict[str, float]]  # device -> column -> value
HEADED_EVERY = 20  # intervals; a screen of lines keeps its heading
_WIDTHS = {name: max(len(name), 8) for name in COLUMNS}


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="milliseconds")


def lines(names: list[str]) -> Callable[[Figures], None]:
    """Columns under a heading, as iostat writes them, with the time before."""
    width = max(len(name) for name in ("Device", *names))
    heading = " ".join([f"{'time':29s} {'Device':{width}s}", *(f"{name:>{_WIDTHS[name]}s}" for name in COLUMNS)])
    shown = 0

    def write(figures: Figures) -> None:
        nonlocal shown
        if shown % HEADED_EVERY == 0:
            print(heading)
        shown += 1
        at = _now()
        for device, columns in figures.items():
            cells = (f"{columns[name]:{_WIDTHS[name]}.2f}" for name in COLUMNS)
            print(" ".join([f"{at:29s} {device:{width}s}", *cells]), flush=True)

    return write


def csv(names: list[str]) -> Callable[[Figures], None]:
    """A heading once, then a line for each device and interval."""
    del names
    headed = False

    def write(figures: Figures) -> None:
        nonlocal headed
        if not headed:
            print(",".join(["time", "device", *COLUMNS]))
            headed = True
        at = _now()
        for device, columns in figures.items():
            print(",".join([at, device, *(f"{columns[name]:.6g}" for name in COLUMNS)]), flush=True)

    return write


def objects(names: list[str]) -> Callable[[Figures], None]:
    """A JSON object a line."""
    del names

    def write(figures: Figures) -> None:
        at = _now()
        for device, columns in figures.items():
            print(json.dumps({"time": at, "device": device, **columns}), flush=True)

    return write


WRITERS = {"lines": lines, "csv": csv, "json": objects}
