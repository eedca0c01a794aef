"""A device's figures in the very columns, order and units of ``iostat -x``: kB are 1024 bytes."""

from collections.abc import Mapping

_KINDS = "rwd"
COLUMNS = (
    *(f"{kind}{rest}" if rest[0] != "%" else f"%{kind}{rest[1:]}"
      for kind in _KINDS for rest in ("/s", "kB/s", "rqm/s", "%rqm", "_await", "areq-sz")),
    "f/s", "f_await", "aqu-sz", "%util",
)  # fmt: skip


def as_iostat(columns: Mapping[str, float]) -> dict[str, float]:
    """The columns of a ``BlockDeviceSource`` as iostat has them."""
    found = {**columns, **{f"{kind}kB/s": columns[f"{kind}MB/s"] * 1e6 / 1024 for kind in _KINDS}}
    return {name: found[name] for name in COLUMNS}
