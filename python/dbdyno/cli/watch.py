"""``dbdyno watch``: block devices live, in iostat's columns."""

import json
import math
import os
import select
import sys
import termios
import time
import tty
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from datetime import datetime
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from dbdyno.cli.options import seconds_of
from dbdyno.cli.suggestions import block_devices
from dbdyno.errors import HostError
from dbdyno.model.printable import printable
from dbdyno.probe.block_trace import LIVE_COLUMNS, live_traces
from dbdyno.probe.iostat import COLUMNS, BlockDeviceSource, as_iostat
from dbdyno.stack.attached import Watchable
from dbdyno.system.interrupt import now_ns

if TYPE_CHECKING:
    from dbdyno.store.events import Event, TrialEvent

INTERVAL_SECONDS_MIN = 0.1


def watch(
    devices: list[str] = typer.Argument(
        metavar="DEVICE|RUN",
        help="What to watch: sda, /dev/loop3, an emulated disk by its name, a folder: the disks below it; or a run.",
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
    """Show what block devices do, live, as iostat does (q quits on a terminal); or follow a run, trial by trial."""
    from dbdyno.errors import UserError
    from dbdyno.stack.attached import watchables
    from dbdyno.store.run_folder import is_begun

    seconds = seconds_of("--interval", interval)
    if seconds < INTERVAL_SECONDS_MIN:
        raise UserError(f"--interval {interval!r} is too short for the kernel's counters; give at least 100ms")
    if json_ and csv:
        raise UserError("give --json or --csv, not both")
    if runs := [Path(name) for name in devices if name and is_begun(Path(name))]:
        if len(devices) > 1 or csv or trace or count:
            raise UserError(f"{runs[0]} is a run; watch it alone, with --json or --interval only")
        follow(runs[0], seconds, json_=json_)
        return
    watchables_by_name = {watchable.name: watchable for name in devices for watchable in watchables(name)}
    names = list(watchables_by_name)
    if sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb" and not (json_ or csv):
        with Screen(list(watchables_by_name.values()), seconds, trace=trace) as screen:
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


# A run that is followed: a line for each event, read from its folder, which stays as it is.


def follow(run: Path, seconds: float, *, json_: bool) -> None:
    """Write what has happened in a run and what happens from now on, until it ends or no process runs it."""
    from dataclasses import asdict

    from dbdyno.store.events import EVENTS, read_events
    from dbdyno.store.run_folder import LOCK, read_header
    from dbdyno.store.void_blocks import History
    from dbdyno.system.locks import is_flocked

    labels, history, written, size_bytes = read_header(run).design.labels, History(), 0, -1
    while True:
        is_running = is_flocked(run / LOCK)  # asked before the log is read, so that the last events are read, too
        if (size_now := _size_of(run / EVENTS)) != size_bytes:
            size_bytes = size_now
            for event in islice(read_events(run), written, None):
                kind = type(event).__name__.lower()
                text = json.dumps({"event": kind, **asdict(event)}) if json_ else event_text(event, labels)
                print(printable(text), flush=True)
                history.add(event)
                written += 1
        if history.ended:
            return
        if not is_running:
            raise HostError(f"no process runs {run}; resume it: dbdyno run STUDY --into {run} --resume")
        time.sleep(seconds)


def _size_of(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return -1


def event_text(event: "Event", labels: Mapping[str, str]) -> str:
    """An event in words."""
    from dbdyno.model.wording import count
    from dbdyno.store import events

    match event:
        case events.TrialEvent():
            return _trial_text(event, labels)
        case events.Planned() | events.Resumed():
            return (
                f"{'begun' if isinstance(event, events.Planned) else 'resumed'}: at most {count(event.blocks, 'block')}"
            )
        case events.Joined():
            return f"{event.host} takes part"
        case events.Ended():
            return f"ended: {event.how}{f', {event.cause}' if event.cause else ''}"
        case events.Dropped() | events.Note():
            return event.text
    return type(event).__name__.lower()


def _trial_text(event: "TrialEvent", labels: Mapping[str, str]) -> str:
    from dbdyno.store import events

    attempt = f", attempt {event.attempt}" if event.attempt > 1 else ""
    host = f" on {event.host}" if event.host else ""
    outcome = "started"
    match event:
        case events.Finished():
            outcome = "finished, with interference" if event.disturbed else "finished"
        case events.Failed():
            outcome = f"failed: {event.cause}"
        case events.Lost():
            outcome = f"lost: {event.text}"
    return f"block {event.block}{attempt}, {labels.get(event.treatment, event.treatment)}{host}: {outcome}"


# What ``dbdyno watch`` shows: iostat's columns of each interval, and the block trace's where it is asked for.


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
    return datetime.now().astimezone().isoformat(timespec="milliseconds")  # noqa: TID251  (a date for people)


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
        for device, device_figures in figures.items():
            cells = (_number(device_figures[name], ".2f").rjust(widths[name]) for name in columns)
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
        for device, device_figures in figures.items():
            print(",".join([at, device, *(_number(device_figures[name], ".6g", "") for name in columns)]), flush=True)

    return write


def objects(names: Sequence[str], columns: Sequence[str]) -> Callable[[Figures], None]:
    """A JSON object a line."""
    del names

    def write(figures: Figures) -> None:
        at = _now()
        for device, device_figures in figures.items():
            known = {name: device_figures[name] if math.isfinite(device_figures[name]) else None for name in columns}
            print(json.dumps({"time": at, "device": device, **known}), flush=True)

    return write


WRITERS = {"lines": lines, "csv": csv, "json": objects}


# What ``dbdyno watch`` draws on a terminal: each device's figures and their history, until q is pressed.


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
        self._history = {
            watchable.name: {name: deque[float](maxlen=HISTORY_MAX) for name in _DRAWN} for watchable in devices
        }
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
        for watchable in self._devices:
            drawn.append(self._table(watchable, figures[watchable.name]))
            if self._trace:
                drawn.append(Text(traced_line(figures[watchable.name])))
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
