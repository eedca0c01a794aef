"""``dbdyno watch``: block devices live, in iostat's columns."""

import os
import sys
from collections.abc import Callable, Iterator

import typer

from dbdyno.cli.values import seconds_of

INTERVAL_SECONDS_MIN = 0.1


def watch(
    devices: list[str] = typer.Argument(
        metavar="DEVICE...",
        help="What to watch: sda, /dev/loop3, an emulated disk by its name, or a folder: the disks below it.",
    ),
    interval: str = typer.Option("1s", "--interval", "-i", help='How often, such as "500ms"; at least 100ms.'),
    count: int = typer.Option(None, "--count", "-n", min=1, help="End after so many intervals; never, if not given."),
    json_: bool = typer.Option(False, "--json", help="Print a JSON object a line."),
    csv: bool = typer.Option(False, "--csv", help="Print comma-separated values."),
) -> None:
    """Show what block devices do, live, as iostat does; on a terminal with a history (q quits)."""
    from dbdyno.cli.watch_lines import WRITERS
    from dbdyno.errors import UserError
    from dbdyno.stack.watchable import watchables

    seconds = seconds_of("--interval", interval)
    if seconds < INTERVAL_SECONDS_MIN:
        raise UserError(f"--interval {interval!r} is too short: the kernel's own counters are not that fine")
    if json_ and csv:
        raise UserError("give --json or --csv, not both")
    found = {one.name: one for given in devices for one in watchables(given)}
    live = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb" and not (json_ or csv)
    if live:
        from dbdyno.cli.watch_screen import Screen

        with Screen(list(found.values()), seconds) as screen:
            _each(list(found), seconds, count, screen.show, screen.pause)
        return
    write = WRITERS["json" if json_ else "csv" if csv else "lines"](list(found))
    _each(list(found), seconds, count, write, _sleep)


def _sleep(seconds: float) -> bool:
    import time

    time.sleep(seconds)
    return True


def _each(
    names: list[str],
    seconds: float,
    count: int | None,
    show: Callable[[dict[str, dict[str, float]]], None],
    pause: Callable[[float], bool],
) -> None:
    """Give each interval's figures to ``show``, until there are enough or ``pause`` says no."""
    for shown, figures in enumerate(_figures(names, seconds, pause), start=1):
        show(figures)
        if shown == count:
            return


def _figures(names: list[str], seconds: float, pause: Callable[[float], bool]) -> Iterator[dict[str, dict[str, float]]]:
    from dbdyno.clock import now_ns
    from dbdyno.errors import HostError
    from dbdyno.probe.block_device import BlockDeviceSource
    from dbdyno.probe.iostat import as_iostat

    sources = {name: BlockDeviceSource(name) for name in names}

    def read() -> dict[str, tuple[int, dict[str, float]]]:
        try:
            return {name: (now_ns(), source.sample()) for name, source in sources.items()}
        except OSError as error:
            raise HostError(f"a device has gone: {error.strerror}") from None

    before, due = read(), now_ns() / 1e9 + seconds
    while pause(max(0.0, due - now_ns() / 1e9)):
        after = read()
        yield {
            name: as_iostat(source.interval(before[name][1], at[1], (at[0] - before[name][0]) / 1e9))
            for (name, source), at in zip(sources.items(), after.values(), strict=True)
        }
        before, due = after, max(due + seconds, now_ns() / 1e9)
