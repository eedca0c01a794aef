"""Whether a commit outlives a power cut, as far as the settings say that trials read back: no power was cut here."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dbdyno.store.records import Trial

Gap = Literal["engine", "redo log", "binary log", "flush method", "doublewrite", "memory", "no flush", "drive"]

_COPY_ON_WRITE = {"zfs", "btrfs", "bcachefs"}  # a page is never overwritten there, so none can be half old and half new
_WORSE = {"redo log": ("2", "0"), "flush method": ("littlesync", "nosync")}  # from bad to worse
_SYNCED = {"1", "3"}  # of innodb_flush_log_at_trx_commit: the log is synced before a commit returns


@dataclass(frozen=True)
class Lacking:
    """A setting by which a commit may be lost, with its value."""

    gap: Gap
    value: str


@dataclass(frozen=True)
class Durability:
    """Whether commits of a treatment are durable by its settings (``None``: not known), and what is against it."""

    durable: bool | None
    lacking: tuple[Lacking, ...] = ()


def durability(trials: Sequence[Trial]) -> Durability | None:
    """Return what the trials of a treatment have in common; ``None`` where no server was in any of them."""
    served = [trial.observed for trial in trials if _layer(trial.observed, "server")]
    if not served:
        return None
    lacking = tuple(dict.fromkeys(one for observed in served for one in _lacking(observed)))
    if lacking:
        return Durability(durable=False, lacking=lacking)
    known = all(
        "innodb_flush_log_at_trx_commit" in _layer(one, "server") and _engine(one) == "innodb" for one in served
    )
    return Durability(durable=True if known else None)


def worse_in(one: Durability, other: Durability) -> tuple[Lacking, ...]:
    """Return by which settings the first may lose a commit that the second keeps, or may lose more of them."""
    of_other = {each.gap: each for each in other.lacking}
    return tuple(each for each in one.lacking if each.gap not in of_other or _is_worse(each, of_other[each.gap]))


def _is_worse(one: Lacking, other: Lacking) -> bool:
    """Return whether one value of a setting loses more than another; where that is not known, whether they differ."""
    values = one.value.lower(), other.value.lower()
    if one.gap == "binary log" and all(value.isdecimal() for value in values):
        each, other_each = (int(value) or float("inf") for value in values)  # 0: synced when the kernel likes
        return each > other_each
    known = _WORSE.get(one.gap, ())
    if all(value in known for value in values):
        return known.index(values[0]) > known.index(values[1])
    return values[0] != values[1]


def _lacking(observed: Mapping[str, Any]) -> Iterator[Lacking]:
    server, engine = _layer(observed, "server"), _engine(observed)
    if engine in {"myisam", "aria", "memory", "csv", "archive"}:
        yield Lacking("engine", str(_named_engine(observed)))
    elif engine == "innodb":
        flushed = str(server.get("innodb_flush_log_at_trx_commit", "1"))
        if flushed not in _SYNCED:
            yield Lacking("redo log", flushed)
        if (method := str(server.get("innodb_flush_method", ""))).lower() in {"nosync", "littlesync"}:
            yield Lacking("flush method", method)
        doublewrite = str(server.get("innodb_doublewrite", "ON"))
        on_copies = str(_layer(observed, "filesystem").get("kind", "")).lower() in _COPY_ON_WRITE
        if doublewrite.lower() in {"off", "0", "false", "detect_only"} and not on_copies:
            yield Lacking("doublewrite", doublewrite)
        synced = str(server.get("sync_binlog", "1"))
        if str(server.get("log_bin", "")).lower() in {"on", "1"} and synced != "1":
            yield Lacking("binary log", synced)
    if _layer(observed, "device").get("kind") == "memory":
        yield Lacking("memory", "")
    elif _layer(observed, "filesystem").get("flushes_on_fsync") is False and not _written_through(observed):
        yield Lacking("no flush", "")
    if _layer(observed, "device").get("flush_ignored"):
        yield Lacking("drive", "")


def _written_through(observed: Mapping[str, Any]) -> bool:
    """Whether the device has no cache that a power cut takes, so that nothing needs a flush."""
    return _layer(observed, "queue").get("write_cache") == "write through"


def _engine(observed: Mapping[str, Any]) -> str:
    return str(_named_engine(observed) or "").lower()


def _named_engine(observed: Mapping[str, Any]) -> object:
    found = _layer(observed, "tables").get("engine")
    return found or _layer(observed, "server").get("default_storage_engine")


def _layer(observed: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = observed.get(name)
    return found if isinstance(found, Mapping) else {}
