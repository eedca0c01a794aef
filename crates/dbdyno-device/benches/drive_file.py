"""A drive file of ours from DiskSim's parameters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from disksim import SECTOR_BYTES

if TYPE_CHECKING:
    from disksim import Parameters, Zone


def drive_file(name: str, drive: Parameters) -> str:
    """The drive file."""
    lines = [f'title = "{name}, from DiskSim\'s parameters"', "[hdd]", *_lines(_fields(drive))]
    lines += ["[hdd.overheads]", *_lines(_overheads(drive.numbers))]
    for zone in drive.zones:
        lines += ["[[hdd.zone]]", *_lines(_zone(zone, drive))]
    return "\n".join([*lines, ""])


def _lines(fields: dict[str, object]) -> list[str]:
    # JSON's numbers, booleans and lists are TOML's too.
    return [f"{field} = {json.dumps(value)}" for field, value in fields.items()]


def _zone(zone: Zone, drive: Parameters) -> dict[str, object]:
    """One zone."""
    spares, apart = _spares(zone, drive)
    return {
        "first_cylinder": zone.first_cylinder,
        "last_cylinder": zone.last_cylinder,
        "sectors_per_track": zone.sectors_per_track,
        "track_skew_sectors": zone.track_skew,
        "cylinder_skew_sectors": zone.cylinder_skew,
        "offset_sectors": zone.offset,
        "reserved_sectors": zone.reserved_sectors,
        "spare_sectors": spares,
        "spare_tracks": apart,
    }


def _spares(zone: Zone, drive: Parameters) -> tuple[int, int]:
    """How many sectors are spare of how many tracks, by the scheme of sparing; 0 tracks: of all of the zone."""
    heads = int(drive.numbers["Number of data surfaces"])
    match int(drive.numbers["Sparing scheme used"]):
        case 1:
            return zone.spares * zone.sectors_per_track, 0
        case 2:
            return zone.spares, heads
        case 3:
            return zone.spares, 1
        case 7:
            return zone.slips, 0
        case 8:
            return zone.spares, heads * int(drive.numbers["Rangesize for sparing"])
        case 9:
            return zone.spares, 0
        case scheme:
            raise ValueError(f"sparing scheme {scheme} is not known here")


def capacity_sectors(drive: Parameters) -> int:
    """As many as are stated, or fit."""
    heads, fit = int(drive.numbers["Number of data surfaces"]), 0
    for zone in drive.zones:
        tracks = (zone.last_cylinder + 1 - zone.first_cylinder) * heads
        spares, apart = _spares(zone, drive)
        fit += tracks * zone.sectors_per_track - spares * (tracks // apart if apart else 1) - zone.reserved_sectors
    return min(int(drive.numbers["Block count"]), fit)


def _fields(drive: Parameters) -> dict[str, object]:
    numbers = drive.numbers
    segment = int(numbers["Segment size (in blks)"]) * SECTOR_BYTES
    policy = int(numbers["Buffer continuous read"])
    return {
        "capacity_bytes": capacity_sectors(drive) * SECTOR_BYTES,
        "sector_bytes": SECTOR_BYTES,
        "rpm": numbers["Rotation speed (in rpms)"],
        "heads": int(numbers["Number of data surfaces"]),
        "serpentine": numbers["LBN-to-PBN mapping scheme"] == 1,
        "seek_table": [[distance, ms] for distance, ms in drive.seeks],
        "write_settle_ms": numbers["Add. write settling delay"],
        "head_switch_ms": numbers["Head switch time"],
        "overhead_ms": 0.0,
        "choose_ms": 0.0,
        **_interface(numbers),
        "queue_depth": 1,
        "age_weight": 0.0,
        "age_limit_ms": 1000.0,
        "write_cache_bytes": segment if numbers["Fast write level"] else 0,
        "write_segments": int(numbers["Maximum number of write segments"]),
        "destage_window": 1,
        "destage_handicap_ms": 0.0,
        "flush_ms": 0.0,
        "read_segments": int(numbers["Number of buffer segments"]),
        "read_segment_bytes": segment,
        "read_ahead": {0: "never", 1: "track", 3: "always", 4: "stream"}[policy],
        "read_ahead_bytes": int(numbers["Maximum read-ahead (blks)"]) * SECTOR_BYTES,
        "read_ahead_after_hit": numbers["Read-ahead on idle hit"] == 1,
        "read_kept_bytes": segment,
        "read_before": numbers["Read any free blocks"] == 1,
        "read_on_arrival": numbers["Immediate buffer read"] == 1,
        "read_written": numbers["Allow read hits on write data"] == 1,
    }


def _interface(numbers: dict[str, float]) -> dict[str, object]:
    """Rates (the slower of the disk's and the bus's), watermark, and overheads."""
    mb_s = lambda bus: SECTOR_BYTES / 1e3 / max(numbers["Bulk sector transfer time"], numbers[bus])  # noqa: E731
    return {
        "interface_mb_s": mb_s("Read block transfer time"),
        "interface_write_mb_s": mb_s("Write block transfer time"),
        "watermark": numbers["High (read) water mark"],
        # DiskSim lets a drive that disconnects before the data wait for ten sectors of a write.
        "write_lead_bytes": 10 * SECTOR_BYTES if numbers["Extra write disconnect"] else 0,
    }


def _overheads(numbers: dict[str, float]) -> dict[str, object]:
    """By command and by what came before. Some drives disconnect before the data of a write, with times of its own."""
    after = lambda what: [numbers[f"{what} over. after {kind}"] for kind in ("read", "write")]  # noqa: E731
    reconnect = numbers["First reselect overhead"] + numbers["Data preparation overhead"]
    write_miss, write_data, write_end = after("Write miss"), numbers["Data preparation overhead"], 0.0
    if numbers["Extra write disconnect"]:
        arm = numbers["Extradisc command overhead"] + numbers["Extradisc seek delta"]
        apart = numbers["Extradisc disconnect overhead"] + numbers["Extradisc inter-disconnect delay"]
        write_miss = [arm, arm]
        write_data = apart + reconnect - numbers["Extradisc seek delta"]
        write_end = numbers["Other reselect overhead"]
    return {
        "read_hit_ms": after("Read hit"),
        "read_miss_ms": after("Read miss"),
        "write_hit_ms": after("Write hit"),
        "write_miss_ms": write_miss,
        "read_completion_ms": numbers["Read completion overhead"],
        "write_completion_ms": numbers["Write completion overhead"] + write_end,
        "reconnect_ms": reconnect,
        "write_data_ms": write_data,
    }
