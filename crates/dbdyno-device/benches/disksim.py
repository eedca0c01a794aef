"""Drives as DiskSim's parameter files describe them, as drive files; and the measured traces beside them.

Only what the parameter files say is used, never a trace: an error on a trace is one on a drive never seen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pathlib

SECTOR_BYTES = 512


@dataclass(frozen=True)
class Reference:
    """A drive with a measured trace: its files, and DiskSim's own error on it, where its valid/runvalid states one."""

    name: str
    specification: str
    disksim_rms_ms: float | None
    trace: str


REFERENCES = (
    Reference("atlas10k", "atlas10k", 0.268, "atlas10k"),
    Reference("atlas_III", "atlas_III", 0.378, "atlas_III"),
    Reference("barracuda", "barracuda", 0.349, "barracuda"),
    Reference("cheetah4LP", "cheetah4LP", 0.318, "cheetah4LP"),
    Reference("cheetah9LP", "cheetah9LP", 0.107, "cheetah9LP"),
    Reference("ibm18es", "ibm18es", 0.135, "ibm18es"),
    Reference("hp_c2247a", "hp_c2247a", 0.090, "hp_c2247a"),
    Reference("hp_c3323a", "hp_c3323a_validate", 0.306, "hp_c3323a"),
    Reference("hp_c2490a", "hp_c2490a", 0.254, "hp_c2490a"),
    Reference("dec_rz26", "dec_rz26", 0.340, "dec_rz26"),
    Reference("st41601n", "st41601n", None, "st41601n"),
)


@dataclass(frozen=True)
class Request:
    """One of a trace: ``think_us`` after its completion the next came."""

    write: bool
    sector: int
    sectors: int
    measured_us: float
    think_us: float


@dataclass(frozen=True)
class Zone:
    """Cylinders with the same number of sectors a track; skews and the angle of the first sector in sectors.

    ``spares`` are sectors or tracks, as the sparing scheme says; ``slips`` is how many of them are taken by defects.
    """

    first_cylinder: int
    last_cylinder: int
    sectors_per_track: int
    track_skew: float
    cylinder_skew: float
    offset: float
    reserved_sectors: int
    spares: int
    slips: int


@dataclass(frozen=True)
class Parameters:
    """What the files say: numbers by their names there, zones, and seek times (distance, ms)."""

    numbers: dict[str, float]
    zones: list[Zone]
    seeks: list[tuple[int, float]]


def trace(folder: pathlib.Path, reference: Reference) -> list[Request]:
    """The measured trace: direction, hit, first sector, sectors, response and think time in microseconds a line."""
    lines = (folder / f"{reference.trace}.trace").read_text(encoding="ascii").splitlines()
    requests = []
    for direction, _, sector, sectors, measured_us, think_us in (line.split() for line in lines if line.strip()):
        requests.append(Request(direction == "W", int(sector), int(sectors), float(measured_us), float(think_us)))
    return requests


def parameters(folder: pathlib.Path, reference: Reference) -> Parameters:
    """Reads the specification, the model it names, its seek table and the bus of its validation."""
    specification = _text(folder / f"{reference.specification}.diskspecs")
    model = _text(folder / re.findall(r"Model = source (\S+?),", specification)[0])
    bus = _text(folder / f"{reference.trace}.parv").split("disksim_bus BUS1", 1)[1]
    body, *zones = model.split("dm_layout_g1_zone")
    # What stands behind the zones is the drive's again.
    tail = zones[-1].split("Mechanical Model", 1)[1] if "Mechanical Model" not in body else ""
    numbers = _numbers(specification) | _numbers(body) | _numbers(tail)
    numbers |= {name: _numbers(bus)[name] for name in ("Read block transfer time", "Write block transfer time")}
    return Parameters(numbers, [_zone(text) for text in zones], _seeks(folder, model, numbers))


def _text(path: pathlib.Path) -> str:
    return re.sub(r"#.*", "", path.read_text(encoding="ascii"))


def _numbers(text: str) -> dict[str, float]:
    """The first of each name counts."""
    found = re.findall(r"^\s*([A-Z][^=\n]*?)\s*=\s*(-?[\d.]+)\s*,?\s*$", text, re.MULTILINE)
    return {name: float(value) for name, value in reversed(found)}


def _zone(text: str) -> Zone:
    numbers = _numbers(text)
    return Zone(
        int(numbers["First cylinder number"]),
        int(numbers["Last cylinder number"]),
        int(numbers["Blocks per track"]),
        numbers["Skew for track switch"],
        numbers["Skew for cylinder switch"],
        numbers["Offset of first block"],
        int(numbers["Empty space at zone front"]),
        int(numbers["Number of spares"]),
        sum(len(re.findall(r"\d+", slips)) for slips in re.findall(r"slips\s*=\s*\[([^\]]*)\]", text)),
    )


def _seeks(folder: pathlib.Path, model: str, numbers: dict[str, float]) -> list[tuple[int, float]]:
    """A table by distance: as extracted, or the first ten and points of the curve."""
    named = re.findall(r"Full seek curve = (\S+?),", model)
    if named:
        table = (folder / named[0]).read_text(encoding="ascii")
        return [(int(d), float(ms)) for d, ms in re.findall(r"^\s*(\d+)\s*,\s*([\d.]+)", table, re.MULTILINE)]
    lists = {
        name: [float(number) for number in re.findall(r"-?[\d.]+", values)]
        for name, values in re.findall(r"(HPL seek equation values|First ten seek times) = \[([^\]]*)\]", model)
    }
    bend, a, b, c, e = lists["HPL seek equation values"][:5]
    first = list(enumerate(lists["First ten seek times"], 1))
    listed = len(first)
    distances = sorted({round(11 * 1.1**step) for step in range(100)} | {int(bend) - 1, int(bend)})
    last = int(numbers["Number of cylinders"])
    return first + [(d, a + b * d**0.5 if d < bend else c + e * d) for d in distances if listed < d < last]
