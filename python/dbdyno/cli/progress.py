"""How far a run is: a live line on a terminal, plain lines into a pipe. Goes to standard error."""

import sys
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from dbdyno.model.wording import count
from dbdyno.plan.order import Slot
from dbdyno.run.stop import Outlook
from dbdyno.study.units import format_roughly, format_seconds


class TerminalProgress:
    """The progress of one run: trial, block, time left."""

    def __init__(self, treatments: int, guessed_seconds_per_trial: float) -> None:
        self._treatments = treatments
        self._guess, self._spent, self._measured = guessed_seconds_per_trial, 0.0, 0
        self._before: int | None = None  # trials that an earlier dbdyno had done
        self._console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._live = Progress(*columns, console=self._console, transient=True, disable=not sys.stderr.isatty())
        self._task = self._live.add_task("starting", total=None)
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        """One line for the user."""
        with suppress(OSError):  # the terminal may have been closed; the run must still end cleanly
            self._console.print(escape(text), highlight=False, soft_wrap=True)

    def trial(self, slot: Slot, label: str, done: int, outlook: Outlook) -> None:
        """A trial begins."""
        again = f", attempt {slot.attempt}" if slot.attempt > 1 else ""
        where = f"block {slot.block}{again}: {label}"
        self._before = done if self._before is None else self._before
        # Trials of blocks that are repeated count as well.
        total = None if outlook.blocks is None else max(outlook.blocks * self._treatments, done + 1)
        if total is None:
            text = f"trial {done + 1}, {where}"
        else:
            # Trials of blocks that are repeated take time and don't bring the end nearer.
            each = self._spent / max(1, done - self._before) if self._measured else self._guess
            left = _left(outlook, slot.block, max(1, total - done) * each, in_blocks=not self._live.disable)
            text = f"trial {done + 1} of {outlook.how}{total}, {where}, {left}"
        if self._live.disable:
            self.say(text)
        else:
            self._live.update(self._task, description=escape(text), completed=done, total=total)

    def trial_done(self, seconds: float) -> None:
        """A trial has ended."""
        self._spent, self._measured = self._spent + seconds, self._measured + 1


def _left(outlook: Outlook, block: int, seconds: float, *, in_blocks: bool) -> str:
    """How much is still to come. A pipe has had the blocks at the last look, in a line of its own."""
    if outlook.how == "about " and in_blocks:
        return f"about {count((outlook.blocks or block) - block + 1, 'more block')}, {format_roughly(seconds)}"
    return f"{outlook.how or 'about '}{format_seconds(seconds)} left"
