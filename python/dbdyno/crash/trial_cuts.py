"""What the cuts of a trial are made of, and what ``run/trial.py`` sees of them."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from dbdyno.crash.schedule import schedule
from dbdyno.model.cut import Cut
from dbdyno.stack.kinds.kind import Stack
from dbdyno.stack.layer import StackContext
from dbdyno.stack.undo.log import Journal
from dbdyno.study.crash_section import CrashSection
from dbdyno.study.schema import TrialSpec
from dbdyno.workload.ledger import Ledger
from dbdyno.workload.workload import Workload

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


class Planned:
    """What both modes have in common: the cuts of a trial, by its seed."""

    def __init__(self, about: AboutTrial, section: CrashSection) -> None:
        assert isinstance(about.workload, Ledger)  # noqa: S101  (a rule of the study format)
        self.about, self.section, self.ledger = about, section, about.workload
        duration_s = about.spec.workload.seconds_bound
        assert duration_s is not None  # noqa: S101  (a rule of the study format)
        self.warmup_s = about.spec.workload.seconds_before
        self.planned = schedule(section, about.seed, about.block, duration_s)
