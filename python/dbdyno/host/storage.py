"""The disks under a folder or a device: mounts, which disks they are, and their health by smartctl."""

import json
import os
import re
import shutil
import stat
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.host.read import UNKNOWN, chosen_of, number_of, text_of

# What is mounted where, as ``mountinfo`` lists it (proc_pid_mountinfo(5)).


@dataclass(frozen=True)
class Mount:
    """A line of mountinfo."""

    place: str
    kind: str
    source: str
    options: str  # of the mount, then of the filesystem
    device: str = ""  # its number: "8:1"


def mounts_in(text: str) -> Iterator[Mount]:
    """The mounts that a mountinfo lists; of those upon each other the last is the one that is seen."""
    for line in text.splitlines():
        about, _, rest = line.partition(" - ")
        _, _, device, _, place, options, *_ = about.split(" ")
        kind, source, of_filesystem = map(unescaped, (*rest.split(" "), "", "")[:3])
        all_options = dict.fromkeys([*options.split(","), *of_filesystem.split(",")])
        yield Mount(unescaped(place), kind, source, ",".join(all_options), device)


def mounts() -> list[Mount]:
    """The mounts of this process's view."""
    return [*mounts_in(Path("/proc/self/mountinfo").read_text(encoding="utf-8"))]


def mounted_at(path: Path) -> Mount:
    """What a path lies on; of kind "unknown" in a chroot whose root is no mount point."""
    best = Mount("", UNKNOWN, UNKNOWN, "")
    for mount in mounts():
        inside = mount.place == "/" or str(path) == mount.place or str(path).startswith(f"{mount.place}/")
        if inside and len(mount.place) >= len(best.place):
            best = mount
    return best


def is_mounted(path: str) -> bool:
    """Whether a folder is a mount point."""
    return any(mount.place == path for mount in mounts())


def unescaped(text: str) -> str:
    """A text as /proc shows it, with its blanks back: the kernel writes them as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), text)


BY_NUMBER, BLOCK = Path("/sys/dev/block"), Path("/sys/class/block")
SECTOR_BYTES = 512  # of sysfs' size, whatever the device's own


def disks_under(path: Path) -> list[str]:
    """Kernel names of the whole disks below a folder or a block device; none where the kernel doesn't say."""
    try:
        status = path.stat()
        number = status.st_rdev if stat.S_ISBLK(status.st_mode) else _with_a_disk(status.st_dev, path)
        entry = BY_NUMBER / f"{os.major(number)}:{os.minor(number)}"
        return sorted(set(_leaves(entry.resolve()))) if entry.exists() else []
    except OSError:  # a container may hide /sys
        return []


def disk_facts(name: str) -> dict[str, Any]:
    """What a whole disk is: model, firmware, serial, kind, size, write cache."""
    folder = BLOCK / name
    device, queue = folder / "device", folder / "queue"
    sectors = number_of(folder / "size")
    return {
        "model": text_of(device / "model"),
        "vendor": text_of(device / "vendor"),
        "firmware": _first(device / "firmware_rev", device / "rev"),
        "serial": _first(device / "serial", folder / "serial", device / "vpd_pg80"),
        "rotational": {"1": "yes", "0": "no"}.get(text_of(queue / "rotational"), UNKNOWN),
        "write_cache": text_of(queue / "write_cache"),
        "scheduler": chosen_of(queue / "scheduler"),
        "bytes": sectors * SECTOR_BYTES if isinstance(sectors, int) else UNKNOWN,
        "logical_block_bytes": number_of(queue / "logical_block_size"),
        "physical_block_bytes": number_of(queue / "physical_block_size"),
    }


def _with_a_disk(number: int, path: Path) -> int:
    """The device number of what is mounted: btrfs and its like show one of their own, which is no disk's."""
    if os.major(number):
        return number
    source = mounted_at(path).source
    return Path(source).stat().st_rdev if source.startswith("/dev/") else number


def _leaves(folder: Path) -> list[str]:
    """Whole disks below a block device, through partitions, device mapper and md."""
    if (folder / "partition").exists():
        folder = folder.parent
    below = sorted((folder / "slaves").glob("*"))
    if not below:
        return [folder.name]
    return [name for slave in below for name in _leaves(slave.resolve())]


def _first(*places: Path) -> str:
    return next((text for place in places if (text := text_of(place)) != UNKNOWN), UNKNOWN)


# What a disk says of its health and wear, through ``smartctl --json``.


SECONDS_MAX = 10.0
# ATA attributes (by number, as smartmontools' drivedb names them) about wear and trouble.
ATA = {
    5: "reallocated_sectors",
    177: "wear_leveling",
    187: "reported_uncorrectable",
    196: "reallocation_events",
    197: "pending_sectors",
    198: "offline_uncorrectable",
    199: "crc_errors",
    231: "life_left",
    233: "media_wearout",
    241: "lbas_written",
}
NVME = (
    "critical_warning",
    "available_spare",
    "percentage_used",
    "data_units_written",
    "data_units_read",
    "media_errors",
    "num_err_log_entries",
    "warning_temp_time",
    "critical_comp_time",
    "unsafe_shutdowns",
)


def smart_of(name: str) -> dict[str, Any] | str:
    """Figures of one disk (``sda``), or why they are unknown."""
    try:
        report, _ = ask_smartctl(name, "--all")
    except OSError as error:
        return f"{UNKNOWN}: {error}"
    return figures(report) or f"{UNKNOWN}: {_refusal(report)}"


def ask_smartctl(name: str, report_flag: str) -> tuple[Any, float]:
    """What smartctl reports of a disk, and the seconds of CPU it took. Raises ``OSError`` where it reports nothing."""
    tool = shutil.which("smartctl") or shutil.which("smartctl", path="/usr/sbin:/sbin:/usr/local/sbin")
    if tool is None:
        raise FileNotFoundError("smartctl is not installed")
    with subprocess.Popen(
        [tool, "--json", report_flag, f"/dev/{name}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as smartctl:
        assert smartctl.stdout is not None  # noqa: S101  (a pipe was asked for)
        limit = threading.Timer(SECONDS_MAX, smartctl.kill)
        limit.start()
        reported = smartctl.stdout.read()
        _, status, used = os.wait4(smartctl.pid, 0)
        limit.cancel()
        smartctl.returncode = os.waitstatus_to_exitcode(status)
    try:
        return json.loads(reported), used.ru_utime + used.ru_stime
    except ValueError as error:
        raise OSError(f"smartctl: {type(error).__name__}") from None


def figures(report: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever JSON can hold
    """What smartctl's JSON says of health, wear, heat and errors; empty where it holds none of it."""
    if not isinstance(report, dict):
        return {}
    values: dict[str, Any] = {
        "passed": _at(report, "smart_status", "passed"),
        "temperature_celsius": _at(report, "temperature", "current"),
        "power_on_hours": _at(report, "power_on_time", "hours"),
        "power_cycles": report.get("power_cycle_count"),
    }
    for row in _at(report, "ata_smart_attributes", "table") or []:
        if isinstance(row, dict) and row.get("id") in ATA:
            values[ATA[row["id"]]] = _at(row, "raw", "value")
    log = report.get("nvme_smart_health_information_log")
    values |= {key: log.get(key) for key in NVME} if isinstance(log, dict) else {}
    return {key: value for key, value in values.items() if isinstance(value, bool | int | float)}


def _at(mapping: Any, *keys: str) -> Any:  # noqa: ANN401 - whatever JSON can hold
    for key in keys:
        mapping = mapping.get(key) if isinstance(mapping, dict) else None
    return mapping


def _refusal(report: Any) -> str:  # noqa: ANN401 - whatever JSON can hold
    messages = _at(report, "smartctl", "messages")
    first = messages[0] if isinstance(messages, list) and messages else None
    text = first.get("string") if isinstance(first, dict) else None
    return str(text) if text else "the device has no SMART"
