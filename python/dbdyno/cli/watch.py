"""``dbdyno watch``: block devices live, in iostat's columns."""

import os
import sys
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING

import typer

from dbdyno.cli.suggestions import block_devices
from dbdyno.cli.values import seconds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from dbdyno.cli.watch_figures import Figures

INTERVAL_SECONDS_MIN = 0.1


def watch(
    devices: list[str] = typer.Argument(
        metavar="DEVICE...",
        help="What to watch: sda, /dev/loop3, an emulated disk by its name, or a folder: the disks below it.",
        autocompletion=block_devices,
    ),
    interval: str = typer.Option("1s", "--interval", "-i", help='How often, such as "500ms"; at least 100ms.'),
    count: int = typer.Option(None, "--count", "-n", min=1, help="End after so many intervals; never, if not given."),
    json_: bool = typer.Option(False, "--json", help="Print a JSON object a line."),
    csv: bool = typer.Option(False, "--csv", help="Print comma-separated values."),
    trace: bool = typer.Option(
        False, "--trace", help="Trace every request: its time in the queue and in the device, and how far apart. Root."
    ),
) -> None:
    """Show what block devices do, live, as iostat does; on a terminal with a history (q quits)."""
    from dbdyno.cli.watch_figures import WRITERS, columns_of, intervals
    from dbdyno.errors import UserError
    from dbdyno.stack.attached import watchables

    seconds = seconds_of("--interval", interval)
    if seconds < INTERVAL_SECONDS_MIN:
        raise UserError(f"--interval {interval!r} is too short: the kernel's own counters are not that fine")
    if json_ and csv:
        raise UserError("give --json or --csv, not both")
    found = {one.name: one for given in devices for one in watchables(given)}
    names = list(found)
    if sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb" and not (json_ or csv):
        from dbdyno.cli.watch_screen import Screen

        with Screen(list(found.values()), seconds, trace=trace) as screen:
            _each(intervals(names, seconds, screen.pause, trace=trace), count, screen.show)
        return
    write = WRITERS["json" if json_ else "csv" if csv else "lines"](names, columns_of(trace=trace))
    _each(intervals(names, seconds, _sleep, trace=trace), count, write)


def _sleep(seconds: float) -> bool:
    import time

    time.sleep(seconds)
    return True


def _each(
    intervals: "Generator[Figures, None, None]",
    count: int | None,
    show: "Callable[[Figures], None]",
) -> None:
    """Give each interval's figures to ``show``, until there are enough."""
    with closing(intervals):
        for figures in islice(intervals, count):
            show(figures)
