"""What ``dbdyno watch`` draws on a terminal: each device's figures and their history, until q is pressed."""

import math
import os
import select
import sys
import termios
import time
import tty
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from dbdyno.stack.attached import Watchable

# Text that stands for figures on the screen of ``dbdyno watch``.


BARS = " ▁▂▃▄▅▆▇█"
PLAIN_BARS = " .:-=+*#@"  # as many, for terminals without the others


def bars_of(encoding: str) -> str:
    """The bars that a terminal of this encoding can show."""
    try:
        BARS.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return PLAIN_BARS
    return BARS


def sparkline(values: Iterable[float], width: int, most: float = 0.0, bars: str = BARS) -> str:
    """The last ``width`` values as bars, the highest of which is the largest or ``most``; any above 0 is seen."""
    last = list(values)[-width:] if width > 0 else []
    top = max([*last, most]) or 1.0
    return "".join(bars[max(value > 0, round(value / top * (len(bars) - 1)))] for value in last)


def traced_line(columns: Mapping[str, float]) -> str:
    """What the block trace shows of an interval, as ``"in queue 0.12 ms (p99 0.5), in device ..."``."""

    def shown(name: str, scale: float = 1.0) -> str:
        return f"{columns[name] / scale:.3g}" if math.isfinite(columns[name]) else "-"

    return (
        f"in queue {shown('queue_ms_mean')} ms (p99 {shown('queue_ms_p99')}),"
        f" in device {shown('device_ms_mean')} ms (p99 {shown('device_ms_p99')}),"
        f" {shown('seek_bytes_mean', 1e6)} MB apart, sorted runs of {shown('sorted_run_requests_mean')}"
    )


HISTORY_MAX = 120  # intervals
FIGURES_WIDTH = 62  # of a row without its history
_ROWS = (("read", "r"), ("write", "w"), ("discard", "d"))
_DRAWN = {"read": "rkB/s", "write": "wkB/s", "discard": "dkB/s", "flush": "f/s", "busy": "%util"}


class Screen:
    """The terminal, taken over for as long as the context lasts and given back as it was."""

    def __init__(self, devices: Sequence[Watchable], interval_seconds: float, *, trace: bool = False) -> None:
        self._devices, self._interval, self._trace = devices, interval_seconds, trace
        self._history = {one.name: {name: deque[float](maxlen=HISTORY_MAX) for name in _DRAWN} for one in devices}
        self._live = Live(console=Console(), screen=True, auto_refresh=False)
        self._bars = bars_of(self._live.console.encoding)
        self._keys = sys.stdin.isatty()
        self._as_it_was: list[Any] | None = None

    def __enter__(self) -> Self:
        if self._keys:
            self._as_it_was = termios.tcgetattr(sys.stdin)
            tty.setcbreak(sys.stdin)
        self._live.start()
        self._live.update(Text("watching ..."), refresh=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._live.stop()
        if self._as_it_was is not None:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._as_it_was)

    def pause(self, seconds: float) -> bool:
        """Wait; returns whether to go on."""
        until = time.monotonic() + seconds
        while select.select([sys.stdin] if self._keys else [], [], [], max(0.0, until - time.monotonic()))[0]:
            pressed = os.read(sys.stdin.fileno(), 64)
            if not pressed or set(pressed) & set(b"qQ\x04"):
                return False
        return True

    def show(self, figures: dict[str, dict[str, float]]) -> None:
        """Draw one interval."""
        for device, columns in figures.items():
            for row, column in _DRAWN.items():
                self._history[device][row].append(columns[column])
        keys = "q quits" if self._keys else "Ctrl-C quits"
        foot = Text(f"every {self._interval:g} s, columns as iostat -x (kB are 1024 bytes); {keys}", style="dim")
        drawn: list[Table | Text] = []
        for one in self._devices:
            drawn.append(self._table(one, figures[one.name]))
            if self._trace:
                drawn.append(Text(traced_line(figures[one.name])))
        self._live.update(Group(*drawn, foot), refresh=True)

    def _table(self, device: Watchable, columns: dict[str, float]) -> Table:
        title = Text.assemble((device.name, "bold"), f"  {device.about}" if device.about else "")
        table = Table(title=title, title_justify="left", box=None, padding=(0, 1, 0, 0), header_style="dim")
        table.add_column("")
        for heading in ("/s", "kB/s", "rqm/s", "%rqm", "await", "areq-sz"):
            table.add_column(heading, justify="right", min_width=8)
        table.add_column("history", no_wrap=True)
        width = max(0, min(HISTORY_MAX, self._live.console.width - FIGURES_WIDTH - 4))
        history = {row: sparkline(values, width, bars=self._bars) for row, values in self._history[device.name].items()}
        for row, kind in _ROWS:
            names = (f"{kind}/s", f"{kind}kB/s", f"{kind}rqm/s", f"%{kind}rqm", f"{kind}_await", f"{kind}areq-sz")
            table.add_row(row, *(f"{columns[name]:.2f}" for name in names), history[row])
        table.add_row("flush", f"{columns['f/s']:.2f}", "", "", "", f"{columns['f_await']:.2f}", "", history["flush"])
        busy = sparkline(self._history[device.name]["busy"], width, most=100.0, bars=self._bars)
        table.add_row("%util", f"{columns['%util']:.2f}", "", "", "aqu-sz", f"{columns['aqu-sz']:.2f}", "", busy)
        return table
