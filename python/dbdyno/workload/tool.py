"""What the workloads that run programs of others have in common."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from dbdyno.stack.layer import StackContext
from dbdyno.study.workload_section import WorkloadSection
from dbdyno.workload.program import Program
from dbdyno.workload.time_limit import limit_seconds

SectionT = TypeVar("SectionT", bound=WorkloadSection)


@dataclass(frozen=True)
class ByTool(ABC, Generic[SectionT]):
    """A load that a program of others offers; by itself it prepares nothing and has no tables."""

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

    def prepare(self, context: StackContext) -> None:
        """Nothing: it makes what it needs as it runs."""

    def check(self, context: StackContext) -> dict[str, Any]:
        """Nothing: it has no tables."""
        return {}

    @property
    def limit_seconds(self) -> float:
        """How long it may run before it is taken for stuck."""
        return limit_seconds(self.section)
