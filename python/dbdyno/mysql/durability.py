"""Whether a commit outlives a power cut, as far as the settings say that trials read back: no power was cut here."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dbdyno.model.disks import disk_names, disks_aside, layer_of
from dbdyno.model.metrics import part_of
from dbdyno.model.printable import one_line
from dbdyno.mysql.settings import FLUSH_LOG, INNODB

Observed = Mapping[str, Any]  # layer -> setting -> value, as a trial read it back
Gap = Literal["engine", "redo log", "binary log", "flush method", "doublewrite", "memory", "no flush", "drive",
              "writeback"]  # fmt: skip

_COPY_ON_WRITE = {"zfs", "btrfs", "bcachefs"}  # a page is never overwritten there, so none can be half old and half new
_WORSE = {"redo log": ("2", "0"), "flush method": ("littlesync", "nosync")}  # from bad to worse
# Of the host's kernel: how much, and how long, what no program has synced waits in memory.
_WRITEBACK = ("dirty_ratio", "dirty_bytes", "dirty_background_ratio", "dirty_background_bytes",
              "dirty_expire_centisecs", "dirty_writeback_centisecs")  # fmt: skip
_SYNCED = {"1", "3"}  # of ``FLUSH_LOG``: the log is synced before a commit returns


@dataclass(frozen=True)
class CommitRisk:
    """A setting by which a commit may be lost, with its value."""

    gap: Gap
    value: str


@dataclass(frozen=True)
class Durability:
    """Whether commits of a treatment are durable by its settings (``None``: not known), and what is against it."""

    durable: bool | None
    lacking: tuple[CommitRisk, ...] = ()


def durability(trials: Sequence[Observed]) -> Durability | None:
    """Return what trials of a treatment have in common, by what each read back.

    ``None`` where none had a server, or set how long the host keeps what was not synced.
    """
    served = [observed for observed in trials if part_of(observed, "server") or _writeback(observed)]
    if not served:
        return None
    lacking = tuple(dict.fromkeys(risk for observed in served for risk in _risks(observed)))
    if lacking:
        return Durability(durable=False, lacking=lacking)
    known = all(FLUSH_LOG in part_of(observed, "server") and _engine(observed) == INNODB for observed in served)
    return Durability(durable=True if known else None)


def added_risks(first: Durability, other: Durability) -> tuple[CommitRisk, ...]:
    """Return by which settings the first may lose a commit that the second keeps, or may lose more of them."""
    of_other = {risk.gap: risk for risk in other.lacking}
    return tuple(risk for risk in first.lacking if risk.gap not in of_other or _is_worse(risk, of_other[risk.gap]))


def _is_worse(first: CommitRisk, other: CommitRisk) -> bool:
    """Return whether one value of a setting loses more than another; where that is not known, whether they differ."""
    values = first.value.lower(), other.value.lower()
    if first.gap == "binary log" and all(value.isdecimal() for value in values):
        number, other_number = (int(value) or float("inf") for value in values)  # 0: synced when the kernel likes
        return number > other_number
    if first.gap == "writeback":
        waiting, other_waiting = (_waiting(risk.value) for risk in (first, other))
        return waiting.keys() != other_waiting.keys() or any(waiting[name] > other_waiting[name] for name in waiting)
    known = _WORSE.get(first.gap, ())
    if all(value in known for value in values):
        return known.index(values[0]) > known.index(values[1])
    return values[0] != values[1]


def _writeback(observed: Observed) -> str:
    """What a trial set of the host that decides how much of unsynced data a crash takes: ``dirty_bytes = 16777216``."""
    settings = part_of(observed, "host_settings")
    return ", ".join(f"{name} = {settings[name]}" for name in _WRITEBACK if name in settings)


def _waiting(settings: str) -> dict[str, float]:
    """The settings of ``_writeback`` by name; to look for old data every 0 s means never."""
    parts = (setting.partition(" = ") for setting in settings.split(", "))
    numbers = {name: float(value) if value.isdecimal() else float("inf") for name, _, value in parts}
    return {
        name: number or float("inf") if name == "dirty_writeback_centisecs" else number
        for name, number in numbers.items()
    }


def _risks(observed: Observed) -> Iterator[CommitRisk]:
    served = bool(part_of(observed, "server"))
    risks = list(_risks_of_commits(observed)) if served else []
    yield from risks
    unsynced = not served or any(risk.gap in {"engine", "binary log"} for risk in risks)
    if unsynced and (settings := _writeback(observed)):
        yield CommitRisk("writeback", settings)


def _risks_of_commits(observed: Observed) -> Iterator[CommitRisk]:
    server, engine = part_of(observed, "server"), _engine(observed)
    if engine in {"myisam", "aria", "memory", "csv", "archive"}:
        yield CommitRisk("engine", str(_named_engine(observed)))
    elif engine == INNODB:
        flushed = str(server.get(FLUSH_LOG, "1"))
        if flushed not in _SYNCED:
            yield CommitRisk("redo log", flushed)
        if (method := str(server.get("innodb_flush_method", ""))).lower() in {"nosync", "littlesync"}:
            yield CommitRisk("flush method", method)
        doublewrite = str(server.get("innodb_doublewrite", "ON"))
        on_copies = str(part_of(observed, "filesystem").get("kind", "")).lower() in _COPY_ON_WRITE
        if doublewrite.lower() in {"off", "0", "false", "detect_only"} and not on_copies:
            yield CommitRisk("doublewrite", doublewrite)
        synced = str(server.get("sync_binlog", "1"))
        if has_binary_log(observed) and synced != "1":
            yield CommitRisk("binary log", synced)
    if part_of(observed, "device").get("kind") == "memory":
        yield CommitRisk("memory", "")
    else:
        yield from _risks_of_disks(observed)


def _risks_of_disks(observed: Observed) -> Iterator[CommitRisk]:
    aside = disks_aside(observed)  # of copies, without which the server has what it acknowledged
    for disk in ("", *(name for name in disk_names(observed) if name not in aside)):
        flushes = layer_of(observed, "filesystem", disk).get("flushes_on_fsync")
        if flushes is False and not _has_no_volatile_cache(observed, disk):
            yield CommitRisk("no flush", disk)
        if layer_of(observed, "device", disk).get("flush_ignored"):
            yield CommitRisk("drive", disk)


def _has_no_volatile_cache(observed: Observed, disk: str) -> bool:
    """Whether the device has no cache that a power cut takes, so that nothing needs a flush."""
    return layer_of(observed, "queue", disk).get("write_cache") == "write through"


def has_binary_log(observed: Observed) -> bool:
    """Whether the server of a trial wrote a binary log: without one it has no replica and no point-in-time restore."""
    return str(part_of(observed, "server").get("log_bin", "")).lower() in {"on", "1"}


def _engine(observed: Observed) -> str:
    return str(_named_engine(observed) or "").lower()


def _named_engine(observed: Observed) -> object:
    engine = part_of(observed, "tables").get("engine")
    return engine or part_of(observed, "server").get("default_storage_engine")


# A gap in words, with the setting's value.
_CLAUSES: Mapping[Gap, str] = {
    "engine": "tables of {} have no durable commits",
    "redo log": f"with {FLUSH_LOG} = {{}} the log is synced about once a second",
    "binary log": "with sync_binlog = {} the binary log is not synced at each commit",
    "doublewrite": "with innodb_doublewrite = {} a page that is being written may be left half old and half new",
    "flush method": "innodb_flush_method = {} leaves out syncs",
    "memory": "the data is in memory",
    "no flush": "a sync does not make the device empty its cache",
    "writeback": "with {} a crash of the system loses what was not synced yet",
    "drive": "the drive ignores FLUSH: what it says is safe is still in its volatile cache",
}
_OF_A_DISK: tuple[Gap, ...] = ("no flush", "drive")  # whose value is the name of a disk beside that of the data


def risk_clause(risk: CommitRisk) -> str:
    """Return ``"with innodb_flush_log_at_trx_commit = 2 the log is synced about once a second"``."""
    clause = _CLAUSES[risk.gap].format(one_line(risk.value))
    return f"{clause} (disk {one_line(risk.value)})" if risk.gap in _OF_A_DISK and risk.value else clause


def wait_in_cluster(nodes: str) -> str:
    """Return what a commit of a cluster of so many nodes waits for, beside the disk of its own."""
    return (
        f"A commit waits until all {nodes} nodes have received its write set, in memory, in the same order as all "
        "others. Each then certifies it, all with the same result, and the others apply it later: their disks are not "
        "waited for."
    )
