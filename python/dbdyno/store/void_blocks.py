"""What has happened in a run: one fold over its events, for running, resuming, stopping and analysis alike.

Here alone is decided which attempt at a block counts, and why another is void.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from dbdyno.model.design import Design
from dbdyno.store.events import (
    Dropped,
    Ended,
    Event,
    Failed,
    Finished,
    Joined,
    Lost,
    Note,
    Planned,
    Resumed,
    TrialEvent,
)

Place = tuple[int, int]  # block, attempt
Void = Literal["failed", "lost", "interference"]

ATTEMPTS = 3  # at one block, before it is given up
PATIENCE = 2  # blocks that met interference at every attempt: after these, repeating is no remedy on this host


@dataclass
class Attempt:
    """How far one attempt at a block, or at a part of it, came, by treatment."""

    finished: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)  # finished, but can't be read any more
    disturbed: set[str] = field(default_factory=set)  # met interference, whose limits are in ``probe.interference``
    host: str = ""  # that it ran on, of a study on several

    def at(self, part: Collection[str]) -> "Attempt":
        """How far it came with these treatments."""
        finished, failed, lost, disturbed = (
            treatments.intersection(part) for treatments in (self.finished, self.failed, self.lost, self.disturbed)
        )
        return Attempt(finished, failed, lost, disturbed, self.host)

    @property
    def is_begun(self) -> bool:
        """Whether a trial of it has ended, well or not."""
        return bool(self.finished or self.failed or self.lost)

    def void_reason(self, live: Collection[str]) -> Void | None:
        """Why it can count no more: one of the treatments that were not left out failed, or its files were lost.

        It is void for every treatment in it, for the host was in an unknown state.
        """
        if not self.failed.isdisjoint(live):
            return "failed"
        return None if self.lost.isdisjoint(live) else "lost"

    def is_whole(self, live: Collection[str]) -> bool:
        """Whether every treatment that was not left out finished in it, and none failed."""
        return self.finished.issuperset(live) and self.void_reason(live) is None

    def is_open(self, live: Collection[str]) -> bool:
        """Whether it is neither whole nor void: trials of it are still to come."""
        return not self.is_whole(live) and self.void_reason(live) is None


def attempts_that_count(
    attempts: Mapping[Place, Attempt], parts: Sequence[frozenset[str]], dropped: Collection[str]
) -> dict[int, tuple[int, ...]]:
    """Block -> the latest whole attempt at each of its parts; nothing of a block of which a part has none.

    A part of which all treatments were ``dropped`` has its latest attempt, which nothing is compared with.
    """
    live = [part.difference(dropped) for part in parts]
    latest: dict[int, list[int]] = {}
    for block, number in sorted(attempts):
        by_part = latest.setdefault(block, [0] * len(parts))
        for place, (part, of) in enumerate(zip(parts, live, strict=True)):
            if attempts[block, number].is_whole(of) and attempts[block, number].at(part).is_begun:
                by_part[place] = number
    whole = {
        block: tuple(by_part)
        for block, by_part in latest.items()
        if all(number for number, of in zip(by_part, live, strict=True) if of)
    }
    return whole if any(live) else {}


@dataclass
class History:
    """What the events say so far; ``add`` is called for each, oldest first."""

    attempts: dict[Place, Attempt] = field(default_factory=dict)  # begun
    finished: dict[str, Finished] = field(default_factory=dict)  # trial -> its event in run order, but for those lost
    failures: list[Failed] = field(default_factory=list)
    dropped: set[str] = field(default_factory=set)  # treatments left out
    given_up: set[int] = field(default_factory=set)  # blocks
    timed: set[str] = field(default_factory=set)  # trials whose time counts against the budget
    notes: list[str] = field(default_factory=list)
    hosts: dict[str, Joined] = field(default_factory=dict)  # host -> what it was when it joined last
    own_sums: dict[str, str] = field(default_factory=dict)  # SHA-256 of the run's own files
    extended_from: int | None = None
    ended: Ended | None = None  # and not gone on with since
    begun: bool = False
    _changes: dict[str, Any] = field(default_factory=dict)  # of the design that the header holds

    @classmethod
    def of(cls, events: Iterable[Event]) -> "History":
        """What these events say."""
        history = cls()
        for event in events:
            history.add(event)
        return history

    def add(self, event: Event) -> None:
        """One more event."""
        self.begun = True
        match event:
            case TrialEvent():
                self._add_of_trial(event)
            case Planned() | Resumed():
                self._add_beginning(event)
            case Joined():
                self.hosts[event.host] = event
            case Dropped():
                self.dropped.add(event.treatment)
            case Note(given_up=int(block)):
                self.given_up.add(block)
            case Ended():
                self.ended = event
        if isinstance(event, Note | Dropped | Lost):
            self.notes.append(event.text)

    def _add_of_trial(self, event: TrialEvent) -> None:
        attempt = self.attempts.setdefault((event.block, event.attempt), Attempt(host=event.host))
        match event:
            case Finished():
                attempt.finished.add(event.treatment)
                attempt.disturbed |= {event.treatment} if event.disturbed else set()
                self.finished[event.trial] = event
                self.timed.add(event.trial)
            case Failed():
                attempt.failed.add(event.treatment)
                self.failures.append(event)
            case Lost():
                attempt.finished.discard(event.treatment)
                attempt.lost.add(event.treatment)
                self.finished.pop(event.trial, None)

    def _add_beginning(self, event: Planned | Resumed) -> None:
        self.ended = None
        self._changes["blocks"] = event.blocks
        if event.until is not None:
            self._changes |= {"until": event.until, "budget_seconds": event.budget_seconds}
            self.timed.clear()
        if isinstance(event, Planned):
            self.own_sums = event.sha256
        elif event.extended_from is not None:
            self.extended_from = event.extended_from

    def changed(self, design: Design) -> Design:
        """The header's design, measuring stopping when it was last asked to."""
        return replace(design, **self._changes)

    def attempt(self, block: int, attempt: int) -> Attempt:
        """How far an attempt came, if it was begun."""
        return self.attempts.get((block, attempt), Attempt())

    def void_reason(self, block: int, attempt: int, part: frozenset[str], design: Design) -> Void | None:
        """Why an attempt at a part of a block is repeated: as its ``void_reason``, or others disturbed a trial of it.

        The last of ``ATTEMPTS`` is kept though others disturbed it.
        """
        trials = self.attempt(block, attempt).at(part)
        if (reason := trials.void_reason(part - self.dropped)) is not None:
            return reason
        repeated = design.interference == "repeat" and attempt < ATTEMPTS and trials.disturbed
        return "interference" if repeated and self.repeating_helps(block, design) else None

    def parts_to_run(self, block: int, attempt: int, design: Design) -> list[frozenset[str]]:
        """Return the parts of the block that this attempt is to run or to go on with.

        Of the others an attempt before it is whole, or this one is whole or void.
        """
        return [
            part
            for part in design.parts()
            if not self._is_done(block, attempt - 1, part, design)
            and self.attempt(block, attempt).is_open(part - self.dropped)
            and self.void_reason(block, attempt, part, design) is None
        ]

    def is_done(self, block: int, attempts: int, design: Design) -> bool:
        """Whether each part of the block is whole in one of its first ``attempts``, and no other is needed."""
        return all(self._is_done(block, attempts, part, design) for part in design.parts())

    def _is_done(self, block: int, attempts: int, part: frozenset[str], design: Design) -> bool:
        return any(
            self.attempt(block, number).is_whole(part - self.dropped)
            and self.void_reason(block, number, part, design) is None
            for number in range(1, attempts + 1)
        )

    def repeating_helps(self, block: int, design: Design) -> bool:
        """Whether before this one less than ``PATIENCE`` blocks, in parts, met interference at every attempt."""
        parts = design.parts()
        kept = sum(
            not attempt.disturbed.isdisjoint(part)
            for (before, number), attempt in self.attempts.items()
            for part in parts
            if number == ATTEMPTS and before < block
        )
        return kept < PATIENCE * len(parts)

    def last_attempt(self, block: int) -> int:
        """The latest attempt at a block that was begun; 1 where none was."""
        return max((attempt for place, attempt in self.attempts if place == block), default=1)

    def failures_of(self, treatment: str, block: int) -> int:
        """In how many attempts at a block a treatment failed."""
        return sum(treatment in attempt.failed for (place, _), attempt in self.attempts.items() if place == block)

    def attempts_lost(self, block: int, design: Design) -> int:
        """How many attempts at a block, or at one of its parts, are made again because files were damaged."""
        of_block = [attempt for (place, _), attempt in self.attempts.items() if place == block]
        by_part = ([attempt.at(part) for attempt in of_block] for part in design.parts())
        return max(sum(bool(attempt.lost) and not attempt.failed for attempt in attempts) for attempts in by_part)

    def has_begun(self, block: int) -> bool:
        """Whether a trial of the block has ended, well or not."""
        return any(attempt.is_begun for (place, _), attempt in self.attempts.items() if place == block)

    def blocks_over(self) -> int:
        """How many blocks of a study on several hosts there are, but for those of which files were damaged since."""
        return len(
            {block for block, _ in self.attempts}
            - {block for (block, _), attempt in self.attempts.items() if attempt.lost}
        )

    def done(self) -> int:
        """Trials finished so far, repetitions of a block not counted."""
        return len(
            {(block, treatment) for (block, _), attempt in self.attempts.items() for treatment in attempt.finished}
        )
