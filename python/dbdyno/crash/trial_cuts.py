"""What the cuts of a trial are made of, and what ``run/trial.py`` sees of them."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from dbdyno.model.cut import Cut, Survivors, When
from dbdyno.plan.order import drawn
from dbdyno.stack.kinds.kind import Stack
from dbdyno.stack.layer import StackContext
from dbdyno.stack.undo.log import Journal
from dbdyno.study.schema import CrashSection, TrialSpec
from dbdyno.workload.ledger import Ledger
from dbdyno.workload.workload import Workload

# Which cuts a trial takes, and when: drawn by its seed, the same on every machine.


# Programs start and clients connect before the warm-up begins, so that measuring begins up to so much later.
STARTING_SECONDS = 0.3
NTH_MAX = 16  # a cut in a write is in one of so many from the moment drawn
SEED_BYTES, SHARE_BYTES, SHARES = 6, 8, 2.0**64


@dataclass(frozen=True)
class PlannedCut:
    """A cut that a trial is to take."""

    id: str  # "c1", "c2", ...
    when: When
    survivors: Survivors | None  # none is drawn of a killed server
    seed: int  # that the survivors are drawn by
    after_s: float  # since measuring began: when it is taken, or waited for
    nth: int = 1  # which of the writes from then on
    share: float = 0.0  # of a recovery that has passed when the power is cut in it
    number: int = 1  # among those of its trial that the load itself asks for, in time


def schedule(section: CrashSection, seed: int, block: int, duration_s: float) -> list[PlannedCut]:
    """The cuts of a trial of so many seconds, by time.

    Each moment is uniformly random over the measured window and independent of the others, so none is in phase with
    what a server does once a second. Treatments of a block have the same trial seed, and so the same moments.
    """
    window_s = max(0.0, duration_s - STARTING_SECONDS)
    cuts = []
    for number in range(section.cuts_each):
        when, survivors = section.stratum(number, block)
        name = f"c{number + 1}"
        after_s = STARTING_SECONDS + window_s * _share(seed, name, "moment")
        drawn_seed = int.from_bytes(drawn(seed, "cut", name)[:SEED_BYTES])
        nth = 1 + int(NTH_MAX * _share(seed, name, "nth"))
        cuts.append(PlannedCut(name, when, survivors, drawn_seed, after_s, nth, _share(seed, name, "recovery")))
    return _numbered(sorted(cuts, key=lambda cut: cut.after_s))


def of(cuts: Sequence[PlannedCut], *when: When) -> list[PlannedCut]:
    """Those of these kinds, by time."""
    return [cut for cut in cuts if cut.when in when]


def _share(seed: int, *what: object) -> float:
    """A number from 0 to 1 that the seed gives to this alone."""
    return int.from_bytes(drawn(seed, "cut", *what)[:SHARE_BYTES]) / SHARES


def _numbered(cuts: Sequence[PlannedCut]) -> list[PlannedCut]:
    """With the numbers that the load names its own cuts by."""
    return [
        PlannedCut(**{**vars(cut), "number": 1 + sum(earlier_cut.when == cut.when for earlier_cut in cuts[:place])})
        for place, cut in enumerate(cuts)
    ]


EXAMINING = "cut recovery"  # the phase of a trial


@dataclass(frozen=True)
class AboutTrial:
    """What cuts need to know of their trial."""

    spec: TrialSpec
    block: int
    treatment: str
    stack: Stack
    workload: Workload
    seed: int
    folder: Path
    journal: Journal
    say: Callable[[str], None]
    lap: Callable[[str], None]  # the phase that just ended


class Crashing(Protocol):
    """The cuts of one trial."""

    keeps_server: ClassVar[bool]  # whether the one that was offered the load goes on

    @property
    def workload(self) -> Workload:
        """The load to offer, with what it has to do for them."""

    def beside(self, context: StackContext) -> AbstractContextManager[None]:
        """Take the cuts for as long as the context lasts, which holds the load."""

    def after_load(self, context: StackContext, window_ns: tuple[int, int]) -> AbstractContextManager[StackContext]:
        """What the stack is from then on; of a killed server, one that was started again, or none."""

    def examined(self, window_ns: tuple[int, int]) -> list[Cut]:
        """What was found after each cut, once the stack is lowered. Raises ``TrialError`` or ``HostError``."""

    def observed(self) -> dict[str, dict[str, Any]]:
        """How many cuts were planned and taken, and why others were not; nothing in a study of speed."""


class PlannedCuts:
    """What both modes have in common: the cuts of a trial, by its seed."""

    def __init__(self, about: AboutTrial, section: CrashSection) -> None:
        assert isinstance(about.workload, Ledger)  # noqa: S101  (a rule of the study format)
        self.about, self.section, self.ledger = about, section, about.workload
        duration_s = about.spec.workload.seconds_bound
        assert duration_s is not None  # noqa: S101  (a rule of the study format)
        self.warmup_s = about.spec.workload.seconds_before
        self.planned = schedule(section, about.seed, about.block, duration_s)
