"""``[cost]``: what the devices of a study cost, and what is to be served with them; schema only."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, StrictFloat, StrictInt

from dbdyno.study.section import Line, Section
from dbdyno.study.units import Fraction, Size

Amount = Annotated[StrictInt | StrictFloat, Field(ge=0)]
Above0 = Annotated[StrictInt | StrictFloat, Field(gt=0)]
Count = Annotated[StrictInt, Field(ge=1, le=10_000)]
Replicas = Annotated[StrictInt, Field(ge=0, le=100)]


class DeviceCostSection(Section):
    """``[cost."NAME"]``: one device, by the name that the study has for it. Figures are those of one drive."""

    source: Line
    """Where the figures are from, and when."""
    price: Amount | None = None
    """Of one drive."""
    drives: Count = 1
    """In one copy of the data, as it would be bought: 2 of RAID 0 or 1 over two drives, 4 of RAID 10 over four."""
    data_drives: Count | None = None
    """How many of them hold different data: 1 of RAID 1, half of RAID 10; all if not given."""
    replicas: Replicas | None = None
    """Further copies of the whole, each with as many drives; those of [cost] if not given."""
    capacity: Size | None = None
    """Of one drive."""
    endurance: Annotated[Size, Field(gt=0)] | None = None
    """TBW of one drive: bytes that may be written to it in its life."""
    rated_write_amplification: Annotated[StrictInt | StrictFloat, Field(ge=1)] = 1.0
    """That the maker's TBW allows for."""
    power_watts: Amount | None = None
    """Of one drive at work."""
    power_watts_idle: Amount | None = None
    """Of one drive that does nothing; as at work if not given."""


class CostSection(Section):
    """``[cost]``: what is the same for all devices."""

    currency: Line
    """In which prices are."""
    life_years: Annotated[StrictInt | StrictFloat, Field(gt=0, le=100)] = 5.0
    """For how long the devices are to serve."""
    used: Annotated[Fraction, Field(gt=0, le=1)] = 1.0
    """Share of that time under this load; the rest of it they are idle."""
    price_per_kwh: Amount | None = None
    """Of power; without it power costs nothing, and the report says so."""
    replicas: Replicas = 0
    """Further copies of the whole."""
    queries_per_second: Above0 | None = None
    """That are to be served while in use."""
    data: Size | None = None
    """That is to be held."""


@dataclass(frozen=True)
class Cost:
    """All of it."""

    common: CostSection
    devices: dict[str, DeviceCostSection]
