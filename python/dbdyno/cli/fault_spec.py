"""What the verbs of ``dbdyno disk fault`` have in common: which requests are hit, and putting a fault in."""

from typing import Any

from dbdyno.cli.printed import print_done
from dbdyno.cli.values import nanoseconds_of, range_of
from dbdyno.errors import UserError


def spec_of(kind: str, range_: str | None, read: bool, write: bool, for_: str | None) -> dict[str, Any]:
    """Return the fields of a fault that every kind has. Raises ``UserError`` where options exclude each other."""
    if read and write:
        raise UserError("--read and --write exclude each other; without either all requests are hit")
    target = "read" if read else "write" if write else "all"
    spec = {"kind": kind, "target": target, "range_bytes": range_of("--range", range_) if range_ else None}
    return spec | {"for_ns": nanoseconds_of("--for", for_) if for_ else None}


def add_fault(disk: str, spec: dict[str, Any], what: str, *, json_: bool) -> None:
    """Put a fault into a disk and say so. Raises ``UserError``: it makes no sense, or there is no such disk."""
    from dbdyno.stack.attached import find_disk
    from dbdyno.stack.disk_client import Fault

    if spec.get("every") is not None and spec.get("probability") is not None:
        raise UserError("--every and --probability exclude each other")
    found = find_disk(disk)
    found.client().add_fault(Fault(**spec))
    words = f"{found.name}: {what}; end it with: dbdyno disk fault clear {found.name}"
    print_done(words, {"name": found.name, "faults": [spec]}, json_=json_)
