"""What the workloads that run somebody else's programs have in common."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from dbdyno.stack.layer import Stand
from dbdyno.study.workload_section import WorkloadSection
from dbdyno.workload.program import Program

# After its own time a program may still have to wait for a slow disk; an hour later it is stuck rather than slow.
GRACE_SECONDS = 3600.0
# What is bounded by an amount takes as long as it takes; after a day it is stuck too.
DAY_SECONDS = 86_400.0

SectionT = TypeVar("SectionT", bound=WorkloadSection)


@dataclass(frozen=True)
class ByTool(ABC, Generic[SectionT]):
    """A load that a program of somebody else's offers; by itself it prepares nothing and has no tables."""

    section: SectionT
    engine: str

    @property
    @abstractmethod
    def tool(self) -> Program:
        """The program."""

    def program(self) -> Path:
        """Where it is. Raises ``HostError``."""
        return self.tool.path()

    def refused(self) -> str:
        """Nothing: what can be said without the program is a rule of the study format."""
        return ""

    def prepare(self, stand: Stand) -> None:
        """Nothing: it makes what it needs as it runs."""

    def check(self, stand: Stand) -> dict[str, Any]:
        """Nothing: it has no tables."""
        del stand
        return {}

    @property
    def limit_seconds(self) -> float:
        """How long it may run before it is taken for stuck."""
        bound = self.section.seconds_bound
        return DAY_SECONDS if bound is None else GRACE_SECONDS + self.section.seconds_before + bound
