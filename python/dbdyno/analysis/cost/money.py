"""What one set of drives costs and how long it lasts: arithmetic over a price and a load, no estimates.

A *set* is all drives of a device with all its copies. Every copy takes all writes; queries are served by one of them.
"""

import math
from dataclasses import dataclass

from dbdyno.store.prices import DevicePrice, Prices

HOURS_PER_YEAR = 365.25 * 24
SECONDS_PER_YEAR = HOURS_PER_YEAR * 3600
MILLION = 1e6


@dataclass(frozen=True)
class Offered:
    """What one set did, as measured: means over a trial. Whether it can do more is not known here."""

    queries_per_second: float
    written_bytes_per_query: float  # that reach the block device; NaN where that was not counted
    write_amplification: float  # of the drive; 1 where that is unknown


def purchase(device: DevicePrice) -> float:
    """Return the price of one set; NaN where it is not known."""
    return math.nan if device.price is None else device.price * device.drives * device.copies


def wear_years(device: DevicePrice, offered: Offered, busy: float) -> float:
    """Return after how long the drives have taken what they may be written; NaN where it is not known.

    ``busy`` is the share of all time in which a set does ``offered``. Copies don't help: each takes all writes.
    """
    if device.endurance_bytes is None:
        return math.nan
    taken = device.endurance_bytes * device.data_drives * device.rated_write_amplification
    per_second = offered.queries_per_second * offered.written_bytes_per_query * offered.write_amplification * busy
    return math.inf if per_second == 0 else taken / per_second / SECONDS_PER_YEAR


def power_per_year(device: DevicePrice, prices: Prices, busy: float) -> float:
    """Return what the power of one set costs in a year; 0 where the study gives no price of it, NaN where no watts."""
    if prices.price_per_kwh is None:
        return 0.0
    if device.watts is None or device.watts_idle is None:
        return math.nan
    watts = device.watts * busy + device.watts_idle * (1 - busy)
    return watts * device.drives * device.copies / 1000 * HOURS_PER_YEAR * prices.price_per_kwh


def cost_of_set(device: DevicePrice, prices: Prices, offered: Offered, busy: float) -> float:
    """Return what one set costs over the stated life: as many as wear makes necessary, pro rata, and power.

    Unknown endurance counts as no wear, unknown watts as no power: the report says which is missing.
    """
    worn = wear_years(device, offered, busy)
    sets = max(1.0, prices.life_years / worn) if math.isfinite(worn) else 1.0
    power = power_per_year(device, prices, busy)
    return purchase(device) * sets + (power if math.isfinite(power) else 0.0) * prices.life_years


def cost_per_million(device: DevicePrice, prices: Prices, offered: Offered) -> float:
    """Return what a million queries cost where a set does all it can while it is in use."""
    queries = offered.queries_per_second * prices.used * prices.life_years * SECONDS_PER_YEAR
    return cost_of_set(device, prices, offered, prices.used) / queries * MILLION if queries > 0 else math.nan


def sets_for_speed(offered: Offered, demand_per_second: float) -> float:
    """Return how many sets serve a demand, if the load can be spread over them evenly."""
    return max(1.0, math.ceil(demand_per_second / offered.queries_per_second * (1 - 1e-12)))


def sets_for_data(device: DevicePrice, data_bytes: float | None) -> float:
    """Return how many sets hold so much data; NaN where the capacity is not known, 1 where no data is stated."""
    if data_bytes is None:
        return 1.0
    if not device.capacity_bytes:
        return math.nan
    return max(1.0, math.ceil(data_bytes / (device.capacity_bytes * device.data_drives)))


def cost_of_demand(device: DevicePrice, prices: Prices, offered: Offered, demand_per_second: float) -> float:
    """Return what serving a demand for the stated life costs, in as many sets as speed and data ask for."""
    for_data = sets_for_data(device, prices.data_bytes)
    sets = max(sets_for_speed(offered, demand_per_second), for_data if math.isfinite(for_data) else 1.0)
    busy = prices.used * demand_per_second / (sets * offered.queries_per_second)
    return sets * cost_of_set(device, prices, offered, min(1.0, busy))
