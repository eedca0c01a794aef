"""All combinations of what a simulation varies, each as a point."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import product
from typing import Any

from dbdyno.errors import UserError

RULES = 3  # raised when the same point comes to something else, so that kept results are made anew
SET = "set:"  # how a factor begins that is a tunable
QUEUE = frozenset({"wbt_lat_usec"})  # fields of a point that are set like tunables
FIO = "fio:"  # how one begins that is an option of fio
JOBS = "jobs"  # the factor whose levels are jobs that follow each other
LOAD = "load:"  # how one begins that is of the load as a whole
BRIEF_FROM = 100  # points: of so many, no samples and no series are kept

OPTIONS = {
    "device": "--device", "size_bytes": "--size", "kernel": "--kernel", "scheduler": "--scheduler",
    "nr_requests": "--nr-requests", "queue_depth": "--queue-depth", "wbt_lat_usec": "--set",
    "duration_s": "--seconds", "warm_up_s": "--warmup",
    "load.cache.memory_bytes": "--memory", "load.cache.mapped_bytes": "--memory",
    "load.cache.filesystem": "--filesystem",
    "load.speed": "--speed", "load.format": "--format", "load.device": "--trace-device",
    "load.time_unit": "--time-unit", "load.length_unit": "--length-unit",
}  # fmt: skip


@dataclass(frozen=True)
class SimulatedPoint:
    """One point, and the levels of the factors that it stands for."""

    levels: Mapping[str, str]
    point: Mapping[str, Any]

    @property
    def key(self) -> str:
        """What it is found by in a file of results: the same point has the same."""
        text = json.dumps([RULES, self.point], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


def split(text: str) -> list[str]:
    """Return what commas separate outside of parentheses: ``raid1(hdd-15k, 2),hdd-15k`` are two."""
    parts, depth = [""], 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def combinations(
    common: Mapping[str, Any], factors: Mapping[str, Sequence[tuple[str, Any]]], seeds: Sequence[int]
) -> list[SimulatedPoint]:
    """Return a point for every combination of levels and every seed.

    A factor is a field of the point, or one of ``tunables`` (``set:NAME``), or an option of its jobs (``fio:WORD``), or
    fields of its load (``load:NAME``); a level is its text and its value.
    """
    return list(_combine(common, factors, seeds))


def _combine(
    common: Mapping[str, Any], factors: Mapping[str, Sequence[tuple[str, Any]]], seeds: Sequence[int]
) -> Iterator[SimulatedPoint]:
    for combination in product(*factors.values()):
        levels = dict(zip(factors, (text for text, _ in combination), strict=True))
        for seed in seeds:
            point = deepcopy(dict(common)) | {"seed": seed}
            for name, (_, value) in zip(factors, combination, strict=True):
                _put_value(point, name, value)
            if all(job.get("direct", True) for job in point["load"].get("jobs", ({"direct": False},))):
                point["load"].pop("cache", None)  # direct jobs go past it
            yield SimulatedPoint(levels, point)


def _put_value(point: dict[str, Any], name: str, value: Any) -> None:  # noqa: ANN401 - a field's value
    if name.startswith(SET):
        point.setdefault("tunables", {})[name.removeprefix(SET)] = value
    elif name.startswith(FIO):
        for job in point["load"]["jobs"]:
            job.update(value)
    elif name == JOBS:
        point.pop("duration_s", None)
        point.update(deepcopy(value))
    elif name.startswith(LOAD):
        merge(point["load"], value)
    else:
        point[name] = value


def merge(fields: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Put fields into a load; those of its tables into these."""
    for name, value in more.items():
        fields[name] = fields.get(name, {}) | value if isinstance(value, dict) else value


def whole(option: str, text: str) -> int:
    """Return a whole number. Raises ``UserError`` that names the option."""
    if not (text.isascii() and text.isdecimal()) or len(text) > 18:  # noqa: PLR2004 - what 64 bits hold
        raise UserError(f"{option} {text[:40]!r} must be a whole number")
    return int(text)


def in_words(text: str, places: Mapping[str, str]) -> str:
    """Return what is wrong with a field of a point with the option that it comes from, or its place in a file.

    ``places`` has these by field; ``load`` is the file of the load, if it has one.
    """
    name, colon, problem = text.partition(": ")
    option = places.get(name) or OPTIONS.get(name) or ("--set" if name.startswith("tunables.") else "")
    if not option and name.startswith("load.") and "load" in places:
        option = f"{places['load']}: {name.removeprefix('load.')}"
    return f"{option}{colon}{problem}" if option else text
