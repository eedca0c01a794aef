"""What there is to know of this host before a study is spread over it. Reads only; asks no password of anyone."""

import os
import platform
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from dbdyno.host.processor import clock_source
from dbdyno.host.read import UNKNOWN
from dbdyno.hosts.bundle import our_digest

_PATIENCE_SECONDS = 5.0


def facts(folder: Path, ray_folder: Path) -> dict[str, Any]:
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
        "ray_disk_free_bytes": shutil.disk_usage(ray_folder).free if ray_folder.is_dir() else UNKNOWN,
        "root": os.geteuid() == 0,
        "clock_source": clock_source(),
        "ntp": _ntp(),
        "environment": str(Path(sys.executable).parent.parent),
    }


def this_machine() -> str:
    """What no other machine says of itself, from one start to the next; nor does one with a network of its own here."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot} {Path('/proc/self/ns/net').readlink()}"


def _silent(*argv: str) -> str | None:
    """What a program prints; ``None`` where it is not there, fails, or takes too long."""
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE_SECONDS,
            check=True,
            encoding="utf-8",
            errors="replace",
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def _ntp() -> dict[str, str] | str:
    """What chrony says of its own state (``chronyc tracking``), by its own names."""
    said = _silent("chronyc", "-n", "tracking")
    if said is None:
        return UNKNOWN
    pairs = (line.partition(":") for line in said.splitlines())
    return {name.strip(): value.strip() for name, colon, value in pairs if colon}
