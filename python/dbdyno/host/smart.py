"""What a disk says of its health and wear, through ``smartctl --json``."""

import json
import os
import shutil
import subprocess
import threading
from typing import Any

from dbdyno.host.read import UNKNOWN

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
