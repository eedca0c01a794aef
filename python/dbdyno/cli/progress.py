"""How far a run is: two live lines on a terminal, plain lines into a pipe. Goes to standard error."""

import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from dbdyno.cli.output import give_up
from dbdyno.model.printable import fitted, printable, wrapped
from dbdyno.model.wording import count
from dbdyno.plan.order import Slot
from dbdyno.run.stop import Outlook
from dbdyno.study.units import format_roughly

BAR_COLUMNS = 20
_SIGNS = {"": "", "about ": "~", "at most ": "<="}


class Unheard(Console):
    """Standard error that may be closed while a run goes on: what is said then is lost, and the run is not."""

    def on_broken_pipe(self) -> None:
        """Write nothing more."""
        self.quiet = True
        give_up(sys.stderr)


class TerminalProgress:
    """The progress of one run: trial, block, treatment, time left. ``labels`` are by treatment id."""

    def __init__(self, labels: Mapping[str, str], guessed_seconds_per_trial: float) -> None:
        self._labels = labels
        self._guess, self._spent, self._measured = guessed_seconds_per_trial, 0.0, 0
        self._before: int | None = None  # trials that an earlier dbdyno had done
        self._console = Unheard(stderr=True)
        self._on_terminal = sys.stderr.isatty()
        self._line, self._left, self._done = "starting", "", 0
        self._total: int | None = None
        self._began = time.monotonic()
        self._live = Live(console=self._console, transient=True, get_renderable=self.drawn)

    def __enter__(self) -> Self:
        if self._on_terminal:
            self._live.start(refresh=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        """A sentence for the user, in as many lines as it takes."""
        with suppress(OSError):  # the terminal may have been closed; the run must still end cleanly
            for line in wrapped(text) if self._on_terminal else text.splitlines():
                self._console.print(Text(line), soft_wrap=True)

    def trial(self, slot: Slot, note: str, done: int, outlook: Outlook) -> None:
        """A trial begins."""
        self._before = done if self._before is None else self._before
        # Trials of blocks that are repeated count as well.
        self._done = done
        self._total = None if outlook.blocks is None else max(outlook.blocks * len(self._labels), done + 1)
        sign, left = _SIGNS[outlook.how], ""
        blocks_left = (outlook.blocks or slot.block) - slot.block + 1
        if self._total is not None:
            # Trials of blocks that are repeated take time and don't bring the end nearer.
            each = self._spent / max(1, done - self._before) if self._measured else self._guess
            left = f"{sign or '~'}{format_roughly(max(1, self._total - done) * each)} left"
        of_all = "" if self._total is None else f"/{sign}{self._total}"
        again = f", attempt {slot.attempt}" if slot.attempt > 1 else ""
        before = f"trial {done + 1}{of_all}, block {slot.block}{again}: "
        named = before, list(self._labels.values()), list(self._labels).index(slot.treatment)
        if self._on_terminal:
            more = f"{sign}{count(blocks_left, 'more block')}, " if left else ""
            self._line, self._left = fitted(*named, [note]), f"{more}{left}"
        else:
            text = before + printable(named[1][named[2]])
            self.say(", ".join([text, *(part for part in (note, left) if part)]))

    def trial_done(self, seconds: float) -> None:
        """A trial has ended."""
        self._spent, self._measured = self._spent + seconds, self._measured + 1

    def drawn(self) -> Group:
        """What stands on a terminal now: the trial, and below it how far all are."""
        elapsed = str(timedelta(seconds=int(time.monotonic() - self._began)))
        bar = ProgressBar(total=self._total, completed=self._done, width=BAR_COLUMNS)
        row = Table.grid(padding=(0, 1, 0, 0))
        row.add_row(bar, *(Text(text, no_wrap=True, overflow="ellipsis") for text in (elapsed, self._left)))
        return Group(Text(self._line, no_wrap=True, overflow="ellipsis"), row)
