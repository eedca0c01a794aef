"""What was published of the same question, as plain values, each figure with the treatment it is held against."""

from dataclasses import dataclass, field
from typing import Literal

from dbdyno.model.design import Comparison
from dbdyno.model.word import Word

Direction = Literal["faster", "slower", "equivalent", "steadier", "less steady"]
# What a verdict on steadiness says by these words: less variation is better.
STEADY: dict[str, Word] = {"steadier": Word.FASTER, "less steady": Word.SLOWER}


@dataclass(frozen=True)
class ReportedRow:
    """One published figure."""

    label: str  # of the treatment as this study has it
    called: str  # by its author, where that is another name; empty if not
    treatment: str  # id; empty where this run has no such treatment
    value: float
    min: float | None = None
    max: float | None = None


@dataclass(frozen=True)
class ReportedClaim:
    """One published sentence, and what it says of which treatments; without pairs it is only quoted."""

    text: str
    pairs: list[Comparison] = field(default_factory=list)
    checked: bool = False  # it says something that can be checked, if this run has the treatments
    direction: Direction | None = None
    times_min: float | None = None  # how many times as fast
    times_max: float | None = None


@dataclass(frozen=True)
class ReportedTable:
    """A published table with its claims."""

    source: str
    setup: str
    metric: str  # a key of REPORTED_METRICS
    unit: str
    rows: list[ReportedRow]
    claims: list[ReportedClaim]
    differs_because: str
