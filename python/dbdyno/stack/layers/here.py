"""The folder of ``device = "here"``: whether it lies on a disk, may be written to, and has room."""

import os
import shutil
from pathlib import Path

from dbdyno.host.storage import Mount, mounted_at
from dbdyno.mysql.settings import LOG_FILE, Setting, setting_bytes
from dbdyno.study.schema import TrialSpec
from dbdyno.study.units import format_bytes
from dbdyno.system.state import existing, state_folder

_IN_MEMORY = {"tmpfs", "ramfs", "rootfs", "devtmpfs"}
_ANOTHER = "set DBDYNO_STATE_DIR to a folder"
# Of an empty server: its system tables and undo logs; and the redo log of most where the study sets none.
_SERVER_BYTES, _LOG_BYTES = 40 * 1024**2, 96 * 1024**2


def folder_here(needed_bytes: int = 0) -> tuple[str, str]:
    """Whether data can lie in the state folder, and what they measure there is a disk; and what to do if not.

    Changes nothing.
    """
    folder = existing(state_folder())
    mount = mounted_at(folder.resolve())
    kind = _below(mount)
    if kind in _IN_MEMORY:
        description = f"{folder} is on {_mount_text(mount, kind)}, which is in memory, not on a disk"
        return description, f'{_ANOTHER} on a disk, or study device = "memory"'
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"{folder} can't be written by this user, or is mounted read-only", f"{_ANOTHER} of yours"
    if (closed := _impassable_folder(folder)) is not None:
        description = f"the server runs as an ordinary user, who can't reach {folder}: {closed} lets nobody else pass"
        return description, f"{_ANOTHER} that all may pass, such as /var/lib/dbdyno"
    free = shutil.disk_usage(folder).free
    description = f"{folder} is on {mount.kind}, with {format_bytes(free)} free"
    if free < needed_bytes:
        description += f"; the data and the copy that a trial works on take about {format_bytes(needed_bytes)}"
        return description, f"make room, or {_ANOTHER} on a disk that has it"
    return description, ""


def bytes_here(spec: TrialSpec) -> int:
    """What a treatment takes, about: its prepared data, the copy that a trial works on, and no more than that."""
    server = _SERVER_BYTES + _log_bytes(spec.server.settings.get(LOG_FILE)) if spec.has_server else 0
    return 2 * server + spec.workload.data_bytes * (2 if spec.workload.DATA else 1)


def _log_bytes(size: Setting | None) -> int:
    try:
        return _LOG_BYTES if size is None else setting_bytes(size)
    except ValueError:
        return _LOG_BYTES  # the server will say what it thinks of it


def _below(mount: Mount) -> str:
    """The kind of filesystem that takes what is written: of an overlay, that of its upper folder if it is seen."""
    options = dict(option.partition("=")[::2] for option in mount.options.split(","))
    upper = Path(options.get("upperdir", ""))
    seen = mount.kind == "overlay" and upper.is_absolute() and upper.is_dir()
    return mounted_at(upper).kind if seen else mount.kind


def _mount_text(mount: Mount, kind: str) -> str:
    return f"{mount.kind} at {mount.place}" if kind == mount.kind else f"{mount.kind} over {kind} at {mount.place}"


def _impassable_folder(folder: Path) -> Path | None:
    """The folder that keeps the server's user out, where servers run as another user."""
    above = (folder, *folder.parents) if os.geteuid() == 0 else ()
    return next((place for place in above if not place.stat().st_mode & 0o001), None)
