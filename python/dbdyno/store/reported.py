"""What was published of the same question, and what a study's devices cost, as plain values."""

from dataclasses import dataclass, field
from typing import Literal

from dbdyno.model.design import Comparison
from dbdyno.model.word import Word

# What was published of the same question, as plain values, each figure with the treatment it is held against.


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


# What a study says its devices cost, as plain values, each with the treatments that stand on it.


@dataclass(frozen=True)
class DevicePrice:
    """One device as it would be bought. Prices, sizes and watts are those of one drive; ``None`` is not known."""

    name: str  # as the study has it
    treatments: list[str]  # ids of those that stand on it
    source: str  # where the figures are from
    price: float | None = None
    drives: int = 1  # in one copy of the data
    data_drives: int = 1  # of these, as many as hold different data: one of two in RAID 1, both in RAID 0
    copies: int = 1  # of the whole, replicas included
    capacity_bytes: float | None = None
    endurance_bytes: float | None = None
    rated_write_amplification: float = 1.0
    watts: float | None = None
    watts_idle: float | None = None


@dataclass(frozen=True)
class Prices:
    """All that a study says of money."""

    currency: str
    life_years: float
    used: float  # share of the life under this load
    price_per_kwh: float | None = None
    demand_per_second: float | None = None  # queries that are to be served while it is used
    data_bytes: float | None = None  # that are to be held
    devices: list[DevicePrice] = field(default_factory=list)

    def of(self, treatment: str) -> DevicePrice | None:
        """Return what a treatment's device costs, if the study says so."""
        return next((device for device in self.devices if treatment in device.treatments), None)
