"""The mark that a trial leaves on a real disk: what lies here was written by dbdyno and may be erased.

It fills the first and the last page, where every filesystem, partition table or raw content begins or ends, and holds
sums of what lies between; so it counts only on this disk, and only as long as nothing else has been written to it.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

from dbdyno.stack.erase.content import Content, Sums
from dbdyno.stack.erase.places import PAGE
from dbdyno.system.sealed_line import is_sealed, sealed

Fields = Mapping[str, Any]
_WHAT = "a trial's disk, may be erased"
_SEED_BYTES = 16


def page_of(fields: Fields) -> bytes:
    """A page with these fields and their checksum: lower case and digits, which no signature of a filesystem is of."""
    page = sealed({"dbdyno": _WHAT, **fields})
    assert len(page) <= PAGE  # noqa: S101  (what is in it has a fixed length)
    return page.ljust(PAGE)


def fields_of(page: bytes) -> Fields | None:
    """The fields of a page that is such a one and whole; else ``None``."""
    line, _, rest = page.partition(b"\n")
    if not is_sealed(line) or rest.strip(b" "):
        return None
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):  # any program can make a checksum
        return None
    if not isinstance(fields, dict) or fields.pop("dbdyno", None) != _WHAT:
        return None
    del fields["sum"]
    return fields


def at_the_end(content: Content) -> Fields | None:
    """The fields of the last page, if it is one of these."""
    return fields_of(content.read(content.size - PAGE, PAGE))


def mark_of(content: Content, serial: str) -> Fields | None:
    """The fields of the mark on a disk, if it bears one that was left on this very disk; else ``None``."""
    fields = fields_of(content.read(0, PAGE))
    bound = _bound(content, serial)
    if fields is None or "all" not in fields or fields != at_the_end(content) or fields["disk"] != bound:
        return None
    return fields


def sums_of(content: Content, mark: Fields) -> Sums:
    """The sums at the places of a mark, as they are now."""
    return Sums(content, bytes.fromhex(mark["seed"]))


def begin_mark(handle: int, content: Content, ours: str) -> None:
    """Say on the last page that what the filesystem with this UUID held is being given up."""
    _write(handle, content.size - PAGE, page_of({"uuid": ours}))


def leave_mark(handle: int, content: Content, serial: str, ours: str) -> None:
    """Mark a disk for what it holds now; ``handle`` may be written to, ``content`` is read around the page cache.

    The last page first, so that a mark that is whole at both ends is finished.
    """
    os.fsync(handle)
    sums = Sums(content, os.urandom(_SEED_BYTES))
    fields = {
        "disk": _bound(content, serial),
        "uuid": ours,
        "seed": sums.seed.hex(),
        "all": sums.all,
        "each": sums.each,
    }
    _write(handle, content.size - PAGE, page_of(fields))
    _write(handle, 0, page_of(fields))


def _bound(content: Content, serial: str) -> str:
    return hashlib.blake2b(f"{content.size} {serial}".encode(), digest_size=16).hexdigest()


def _write(handle: int, offset: int, page: bytes) -> None:
    os.pwrite(handle, page, offset)
    os.fsync(handle)
