"""What the study says its devices cost, with the treatments of this plan that stand on each."""

from collections.abc import Mapping, Sequence

from dbdyno.store.prices import DevicePrice, Prices
from dbdyno.store.records import Treatment
from dbdyno.study.cost import Cost, CostSection, DeviceCostSection
from dbdyno.study.cost_rules import names_of
from dbdyno.study.schema import TrialSpec


def prices_in(cost: Cost | None, treatments: Sequence[Treatment], specs: Mapping[str, TrialSpec]) -> Prices | None:
    """The study's prices; ``None`` where it has no ``[cost]``. A device that no treatment stands on is left out."""
    if cost is None:
        return None
    names = {one.id: names_of(one.levels, specs[one.id].stack.device) for one in treatments}
    devices = [
        _device(name, device, [id_ for id_, known in names.items() if name in known], cost.common)
        for name, device in cost.devices.items()
    ]
    return Prices(
        currency=cost.common.currency,
        life_years=float(cost.common.life_years),
        used=cost.common.used,
        price_per_kwh=_float(cost.common.price_per_kwh),
        demand_per_second=_float(cost.common.queries_per_second),
        data_bytes=_float(cost.common.data),
        devices=[device for device in devices if device.treatments],
    )


def _device(name: str, device: DeviceCostSection, treatments: list[str], cost: CostSection) -> DevicePrice:
    replicas = cost.replicas if device.replicas is None else device.replicas
    idle = device.power_watts if device.power_watts_idle is None else device.power_watts_idle
    return DevicePrice(
        name=name,
        treatments=treatments,
        source=device.source,
        price=_float(device.price),
        drives=device.drives,
        data_drives=device.data_drives or device.drives,
        copies=1 + replicas,
        capacity_bytes=_float(device.capacity),
        endurance_bytes=_float(device.endurance),
        rated_write_amplification=float(device.rated_write_amplification),
        watts=_float(device.power_watts),
        watts_idle=_float(idle),
    )


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)
