"""What a disk says of its health and wear, through ``smartctl --json``. Asked outside the measured run."""

import json
import shutil
import subprocess
from typing import Any

from dbdyno.host.read import UNKNOWN

SECONDS_MAX = 10.0
# ATA attributes (by number, as smartmontools' drivedb names them) that tell of wear and trouble.
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
    tool = shutil.which("smartctl") or shutil.which("smartctl", path="/usr/sbin:/sbin:/usr/local/sbin")
    if tool is None:
        return f"{UNKNOWN}: smartctl is not installed"
    try:
        done = subprocess.run(
            [tool, "--json", "--all", f"/dev/{name}"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS_MAX,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        said = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return f"{UNKNOWN}: smartctl: {type(error).__name__}"
    return figures(said) or f"{UNKNOWN}: {_refusal(said)}"


def figures(said: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever JSON can hold
    """What of smartctl's JSON tells of health, wear, heat and errors; empty where it holds none of it."""
    if not isinstance(said, dict):
        return {}
    found: dict[str, Any] = {
        "passed": _at(said, "smart_status", "passed"),
        "temperature_celsius": _at(said, "temperature", "current"),
        "power_on_hours": _at(said, "power_on_time", "hours"),
        "power_cycles": said.get("power_cycle_count"),
    }
    for row in _at(said, "ata_smart_attributes", "table") or []:
        if isinstance(row, dict) and row.get("id") in ATA:
            found[ATA[row["id"]]] = _at(row, "raw", "value")
    log = said.get("nvme_smart_health_information_log")
    found |= {key: log.get(key) for key in NVME} if isinstance(log, dict) else {}
    return {key: value for key, value in found.items() if isinstance(value, bool | int | float)}


def _at(mapping: Any, *keys: str) -> Any:  # noqa: ANN401 - whatever JSON can hold
    for key in keys:
        mapping = mapping.get(key) if isinstance(mapping, dict) else None
    return mapping


def _refusal(said: Any) -> str:  # noqa: ANN401 - whatever JSON can hold
    messages = _at(said, "smartctl", "messages")
    first = messages[0] if isinstance(messages, list) and messages else None
    text = first.get("string") if isinstance(first, dict) else None
    return str(text) if text else "the device has no SMART"
