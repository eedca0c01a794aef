"""Files that are on the disk when the call returns."""

import os
from pathlib import Path


def write_synced(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, and have it on the disk."""
    partial = path.with_name(path.name + ".part")
    partial.write_bytes(content)
    sync(partial)
    partial.rename(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Have the kernel put a file or a folder on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
