"""What there is to know of this host before a study is spread over it. Reads only; asks no password of anyone."""

import os
import platform
import shutil
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from dbdyno.errors import DbdynoError
from dbdyno.host.processor import clock_source
from dbdyno.host.read import UNKNOWN
from dbdyno.hosts.bundle import our_digest
from dbdyno.stack.tools import run_tool

_PATIENCE_SECONDS = 5.0


def facts(folder: Path) -> dict[str, Any]:
    """Every fact, of plain types; bytes where a name says so, ``"unknown"`` where one can't be known."""
    memory = psutil.virtual_memory()
    return {
        "version": metadata.version("dbdyno"),
        "digest": our_digest(),
        "python": platform.python_version(),
        "machine_name": platform.node(),
        "machine": this_machine(),
        "kernel": platform.release(),
        "cores": os.cpu_count() or UNKNOWN,
        "memory_bytes": memory.total,
        "memory_free_bytes": memory.available,
        "disk_free_bytes": shutil.disk_usage(folder).free,
        "root": os.geteuid() == 0,
        "clock_source": clock_source(),
        "ntp": _ntp(),
        "environment": str(Path(sys.executable).parent.parent),
    }


def this_machine() -> str:
    """What no other machine says of itself, from one start to the next; nor does one with a network of its own here."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot} {Path('/proc/self/ns/net').readlink()}"


def _ntp() -> dict[str, str] | str:
    """What chrony says of its own state (``chronyc tracking``), by its own names."""
    try:
        text = run_tool(["chronyc", "-n", "tracking"], timeout_seconds=_PATIENCE_SECONDS)
    except DbdynoError:
        return UNKNOWN
    pairs = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip() for name, colon, value in pairs if colon}
