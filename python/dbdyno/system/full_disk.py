"""Full disks: how they are known, and the one sentence that is said of them."""

import errno
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

FULL = {errno.ENOSPC, errno.EDQUOT}
GO_ON = ", then go on with --resume"
LEFT_BYTES_MIN = 256 * 1024  # with less than this, a program that failed may have failed for it


def is_full(error: OSError) -> bool:
    """Whether a write failed because the filesystem, or the user's share of it, is full."""
    return error.errno in FULL


def why_not_written(error: OSError, place: object = "", then: str = "") -> str:
    """What kept a file from being written; where that is room, the remedy, and what to do ``then``."""
    where = f"{error.filename or place}: " if error.filename or place else ""
    remedy = f"; make room on its filesystem{then}" if is_full(error) else ""
    return f"{where}{error.strerror or error}{remedy}"


def first_full(folders: Iterable[Path]) -> Path | None:
    """The first of these folders whose filesystem has no room left for this process."""
    for folder in folders:
        with suppress(OSError):
            if shutil.disk_usage(folder).free < LEFT_BYTES_MIN:
                return folder
    return None
