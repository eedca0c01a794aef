"""What a study says its devices cost, as plain values, each with the treatments that stand on it."""

from dataclasses import dataclass, field


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
