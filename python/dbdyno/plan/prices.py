"""What the study says its devices cost, with the treatments of this plan that stand on each."""

from collections.abc import Mapping, Sequence

from dbdyno.errors import UserError
from dbdyno.model.treatment import Treatment
from dbdyno.store.prices import DevicePrice, Prices
from dbdyno.store.records import Run
from dbdyno.study.cost import Cost, CostSection, DeviceCostSection
from dbdyno.study.cost_rules import names_of
from dbdyno.study.schema import TrialSpec
from dbdyno.study.study import Study


def prices_in(cost: Cost | None, treatments: Sequence[Treatment], specs: Mapping[str, TrialSpec]) -> Prices | None:
    """The study's prices; ``None`` where it has no ``[cost]``."""
    if cost is None:
        return None
    return _prices(cost, {one.id: names_of(one.levels, specs[one.id].stack.device) for one in treatments})


def prices_for(study: Study, run: Run) -> Prices:
    """The prices of a study file for a run made before. Raises ``UserError`` where it has none of its devices."""
    if study.cost is None:
        raise UserError(f"{study.path}: has no [cost]")
    stack = run.study.get("stack", {})
    device = stack.get("device")
    if stack.get("devices", 1) != 1:
        raise UserError(
            f"{study.path}: its [cost] counts one disk, but trials of this run stood on two (stack.devices)"
        )
    names = {one.id: names_of(one.levels, device if isinstance(device, str) else "") for one in run.design.treatments}
    found = _prices(study.cost, names)
    if not found.devices:
        known = ", ".join(sorted(set().union(*names.values()) - {""}))
        raise UserError(f"{study.path}: its [cost] names no device of this run; those are {known}")
    return found


def _prices(cost: Cost, names: Mapping[str, set[str]]) -> Prices:
    """A device that no treatment stands on is left out; ``names`` are those of each treatment's device."""
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
