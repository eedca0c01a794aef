"""``[cost]`` read and held against the study: each device must be one of its own, and no treatment has two prices."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from dbdyno.study.cost import Cost, CostSection, DeviceCostSection
from dbdyno.study.mistakes import Mistake, did_you_mean, shown

Path_ = tuple[str | int, ...]
Read = Callable[[Any, object, Path_], Any]  # a section class, its table, where that stands -> the section, or None


def read_cost(raw: object, read: Read) -> Cost | None:
    """The section: what is no table is common to all devices, what is one is a device."""
    if not isinstance(raw, dict):
        return None
    common = {name: value for name, value in raw.items() if not isinstance(value, dict)}
    tables = {name: value for name, value in raw.items() if isinstance(value, dict)}
    devices = {name: read(DeviceCostSection, table, ("cost", name)) for name, table in tables.items()}
    section = read(CostSection, common, ("cost",))
    return None if section is None or None in devices.values() else Cost(section, devices)


def names_of(labels: Mapping[str, str], device: str) -> set[str]:
    """By which names a treatment's device may be called: any of its levels, or the device that all have."""
    return {*labels.values(), device, PurePath(device).name}


def broken_cost_rules(cost: Cost | None, treatments: Sequence[set[str]]) -> Iterator[Mistake]:
    """Every device that is none of the study's, and what can't be; ``treatments`` holds each one's names."""
    if cost is None:
        return
    known = sorted(set().union(*treatments))
    if not cost.devices:
        yield Mistake(("cost",), 'names no device; give each a section of its own, such as [cost."hdd-7200"]')
    for name, device in cost.devices.items():
        if name not in known:
            text = f"is no device or level of this study; known are {', '.join(known)}{did_you_mean(name, known)}"
            yield Mistake(("cost", name), text)
        if (device.data_drives or 1) > device.drives:
            text = f"is {device.data_drives}, more than its {device.drives} drives"
            yield Mistake(("cost", name, "data_drives"), text)
        if device.power_watts_idle is not None and device.power_watts is None:
            yield Mistake(("cost", name, "power_watts_idle"), "needs power_watts beside it")
    names = list(cost.devices)
    for place, name in enumerate(names):
        for other in names[:place]:
            if any({name, other} <= treatment for treatment in treatments):
                text = f"and {shown(other)} are both levels of one treatment, which can have one price only"
                yield Mistake(("cost", name), text)
