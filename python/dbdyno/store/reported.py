"""What somebody published of the same question, as plain values, each figure with the treatment it is held against."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from dbdyno.store.records import METRICS, Comparison
from dbdyno.store.toml import without_none

Direction = Literal["faster", "slower", "equivalent", "steadier", "less steady"]
# What a verdict on steadiness says by these words: less variation is better.
STEADY: dict[str, Literal["faster", "slower"]] = {"steadier": "faster", "less steady": "slower"}

SECONDS_PER_1000 = "seconds_per_1000_queries"
# What tables are published in, and whether more is better: a trial's metrics and what follows from them.
REPORTED_METRICS: dict[str, bool] = {**METRICS, SECONDS_PER_1000: False}


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


def reported_of(document: dict[str, Any]) -> ReportedTable:
    """Return the table that a run's header holds. Raises ``KeyError`` or ``TypeError`` where it is none."""
    claims = [
        ReportedClaim(**{**claim, "pairs": [Comparison(**pair) for pair in claim["pairs"]]})
        for claim in document["claims"]
    ]
    return ReportedTable(**{**document, "rows": [ReportedRow(**row) for row in document["rows"]], "claims": claims})


def reported_document(table: ReportedTable) -> dict[str, Any]:
    """Return the table as a run's header holds it: TOML has no null, so what is not given is left out."""
    return without_none(asdict(table))
