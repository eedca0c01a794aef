"""Sparse files: what they hold beside zeros."""

import os
from collections.abc import Iterator
from pathlib import Path


def blocks(path: Path, block_bytes: int) -> Iterator[tuple[int, bytes]]:
    """The blocks of a file that are not all zeros, each with its offset; holes are skipped unread."""
    handle = os.open(path, os.O_RDONLY)
    try:
        yield from open_blocks(handle, block_bytes)
    finally:
        os.close(handle)


def open_blocks(handle: int, block_bytes: int) -> Iterator[tuple[int, bytes]]:
    """The same of an open file."""
    zeros = bytes(block_bytes)
    size, at = os.fstat(handle).st_size, 0
    while at < size:
        try:
            data = os.lseek(handle, at, os.SEEK_DATA)
        except OSError:  # ENXIO: only a hole is left
            return
        at = max(at, data - data % block_bytes)
        block = os.pread(handle, block_bytes, at)
        if block != zeros[: len(block)]:
            yield at, block
        at += block_bytes
