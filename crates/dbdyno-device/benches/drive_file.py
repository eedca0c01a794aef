"""A drive file of ours from DiskSim's parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from disksim import SECTOR_BYTES

if TYPE_CHECKING:
    from disksim import Parameters


def drive_file(name: str, drive: Parameters) -> str:
    """The drive file."""
    fields = _fields(drive)
    lines = [f"{field} = {value!r}" for field, value in fields.items()]
    return "\n".join([f'title = "{name}, from DiskSim\'s parameters"', "[hdd]", *lines, ""])


def _fields(drive: Parameters) -> dict[str, float]:
    numbers, zones = drive.numbers, drive.zones
    revolution_ms = 60e3 / numbers["Rotation speed (in rpms)"]
    rate = lambda zone: (zone.sectors_per_track + 0.5) * SECTOR_BYTES / revolution_ms / 1e3  # noqa: E731
    cylinders = [zone.last_cylinder + 1 - zone.first_cylinder for zone in zones]
    skew = lambda field: np.average(  # noqa: E731
        [getattr(zone, field) * revolution_ms / zone.sectors_per_track for zone in zones], weights=cylinders
    )
    segment = int(numbers["Segment size (in blks)"]) * SECTOR_BYTES
    after = lambda what: sum(numbers[f"{what} over. after {kind}"] for kind in ("read", "write")) / 2  # noqa: E731
    sector_ms = max(numbers["Bulk sector transfer time"], numbers["Read block transfer time"])
    return {
        "capacity_bytes": int(numbers["Block count"]) * SECTOR_BYTES,
        "sector_bytes": SECTOR_BYTES,
        "rpm": numbers["Rotation speed (in rpms)"],
        "heads": int(numbers["Number of data surfaces"]),
        "zones": len(zones),
        "outer_mb_s": rate(zones[0]),
        "inner_mb_s": rate(zones[-1]),
        **_seek_curve(drive.seeks),
        "write_settle_ms": max(0.0, numbers["Add. write settling delay"]),
        "head_switch_ms": numbers["Head switch time"],
        "track_skew_ms": float(skew("track_skew")),
        "cylinder_skew_ms": float(skew("cylinder_skew")),
        "overhead_ms": after("Read hit"),
        "choose_ms": after("Read miss"),
        "interface_mb_s": SECTOR_BYTES / sector_ms / 1e3,
        "queue_depth": 1,
        "age_weight": 0.0,
        "age_limit_ms": 1000.0,
        "write_cache_bytes": segment if numbers["Fast write level"] else 0,
        "destage_window": 1,
        "destage_handicap_ms": 0.0,
        "flush_ms": 0.0,
        "read_segments": int(numbers["Number of buffer segments"]),
        "read_segment_bytes": segment,
    }


def _seek_curve(seeks: list[tuple[int, float]]) -> dict[str, float]:
    """Two pieces, a + b sqrt(d) below the bend that leaves the least error, and c + e d from there on."""
    distance, ms = np.array(seeks).T

    def fit(bend: int) -> tuple[float, np.ndarray, np.ndarray]:
        short = distance < bend
        b, a = np.polyfit(np.sqrt(distance[short]), ms[short], 1)
        e, c = np.polyfit(distance[~short], ms[~short], 1)
        error = np.abs(np.where(short, a + b * np.sqrt(distance), c + e * distance) - ms).mean()
        return float(error), bend, [float(number) for number in (a, b, c, e)]

    _, bend, (a, b, c, e) = min(fit(int(bend)) for bend in distance[4:-4])
    return {
        "seek_short_cylinders": bend,
        "seek_a_ms": a,
        "seek_b_ms": b,
        "seek_c_ms": c,
        "seek_e_ms": e,
    }
