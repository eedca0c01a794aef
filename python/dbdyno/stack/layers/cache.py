"""A cache on a fast disk before what is below: dm-writecache, which holds writes, dm-cache, or bcache.

One of device mapper is made anew, and so empty, for each trial; prepared data are written back from it before they are
kept. Through bcache, a cache of buckets, data are prepared without a cache, so nothing waits to be written back; each
trial makes a new, empty cache and attaches it.

Cannot: keep from one trial to the next what it holds or has learnt; be a part of a disk; be cut off power; say how many
reads bcache answered, as the kernel adds its counts up every five minutes only.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from dbdyno.errors import TrialError
from dbdyno.host.read import chosen_of, text_of
from dbdyno.host.storage import BLOCK, SECTOR_BYTES
from dbdyno.stack.between import Between, load_module
from dbdyno.stack.layer import BlockDevice, Layer, StackContext
from dbdyno.stack.tools import run_tool
from dbdyno.stack.undo.actions import RemoveMappings, StopBcache
from dbdyno.stack.undo_log import Journal
from dbdyno.store.records import CacheFigures, TrialDevice
from dbdyno.study.schema import CACHE_DISK, CacheSection, TrialSpec
from dbdyno.system.state import new_token

MODULES = {"writecache": ("dm-writecache",), "dm-cache": ("dm-cache", "dm-cache-smq")}
TARGETS = {"writecache": "writecache", "dm-cache": "cache"}  # as tables of device mapper call them
MIB = 1024**2
SUPERBLOCK_BYTES = WRITECACHE_BLOCK_BYTES = 4096
CACHE_BLOCK_BYTES, POLICY = 64 * 1024, "smq"  # of dm-cache, as LVM makes it
# What dm-cache notes of its blocks, by cache.rst (Documentation/admin-guide/device-mapper).
METADATA_BYTES, METADATA_BYTES_PER_BLOCK = 4 * MIB, 16


def _source_and_fast(below: StackContext) -> tuple[str, BlockDevice]:
    """The one device or volume that is cached, and the disk of its cache."""
    (source,) = below.sources
    fast = below.disks[CACHE_DISK].device
    assert fast is not None  # noqa: S101  (it is raised before)
    return source, fast


@dataclass(frozen=True)
class Cache:
    """Puts a fast disk before the one device or volume below."""

    kind: str  # writecache, dm-cache
    section: CacheSection
    fresh: bool  # data are prepared on it, rather than a load measured
    title: str  # with which the names of its mappings begin
    name: str = "cache"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """The cached device, for as long as the context lasts."""
        source, fast = _source_and_fast(below)
        for module in MODULES[self.kind]:
            load_module(module)
        with below.journal.undoing(RemoveMappings(f"{self.title}-")):
            _forget(fast.path)
            for name, table in self._tables(source, str(fast.path)).items():
                run_tool(["dmsetup", "create", f"{self.title}-{name}", "--table", table])
            observed = observed_cache(self._dmsetup("table"), self._dmsetup("status"))
            self._check(observed)
            synced = (*(below.synced or below.devices), fast)
            yield below.raised(self.name, observed, volume=Path("/dev/mapper") / self._mapping, synced=synced)
            if self.fresh:
                self._write_back()

    @contextmanager
    def measuring(self, _: Journal) -> Iterator[TrialDevice]:
        """Fills the yielded dict with what waits in the cache when the load ends, and what it answered of the load."""
        figures: TrialDevice = {}
        before = self._dmsetup("status")
        yield figures
        figures["cache"] = cache_figures(before, self._dmsetup("status"))

    def _write_back(self) -> None:
        """Leave nothing in it that is not on the disk behind it. Raises ``TrialError`` where something is."""
        if self.kind == "writecache":
            run_tool(["dmsetup", "message", self._mapping, "0", "flush"])
        if waiting := _status(self._dmsetup("status")).waiting:
            raise TrialError(f"cache: {waiting} blocks of the prepared data are still to be written back")

    @property
    def _mode(self) -> str:
        """Of dm-cache, which prepares data on both disks at once, as it has no command to write back."""
        return "writethrough" if self.fresh else self.section.cache_mode

    @property
    def _mapping(self) -> str:
        return f"{self.title}-{self.name}"

    def _dmsetup(self, what: str) -> str:
        return run_tool(["dmsetup", what, self._mapping])

    def _tables(self, source: str, fast: str) -> dict[str, str]:
        """Name of each mapping that it takes -> its table, in the order in which they stand on each other."""
        size = sectors(source)
        if self.kind == "writecache":
            options = {"high_watermark": self.section.high_watermark, "low_watermark": self.section.low_watermark}
            options |= {"max_age": self.section.max_age} if self.section.max_age else {}
            words = [f"{name} {value}" for name, value in options.items()]
            table = f"writecache s {source} {fast} {WRITECACHE_BLOCK_BYTES} {2 * len(words)} {' '.join(words)}"
            return {self.name: f"0 {size} {table}"}
        all_ = sectors(fast)
        metadata = metadata_sectors(all_)
        parts = [f"/dev/mapper/{self.title}-{part}" for part in ("metadata", "blocks")]
        block = CACHE_BLOCK_BYTES // SECTOR_BYTES
        return {
            "metadata": f"0 {metadata} linear {fast} 0",
            "blocks": f"0 {all_ - metadata} linear {fast} {metadata}",
            self.name: f"0 {size} cache {' '.join(parts)} {source} {block} 1 {self._mode} {POLICY} 0",
        }

    def _check(self, observed: dict[str, Any]) -> None:
        """Raises ``TrialError`` with every setting that did not take."""
        section = self.section
        asked: dict[str, Any] = {"kind": self.kind}
        if self.kind == "writecache":
            asked |= {"high_watermark": section.high_watermark, "low_watermark": section.low_watermark}
            asked |= {"max_age": section.max_age} if section.max_age else {}
        else:
            asked |= {"cache_mode": self._mode, "policy": POLICY}
        wrong = [f"{name} {value}, it is {observed.get(name)}" for name, value in asked.items()
                 if observed.get(name) != value]  # fmt: skip
        if wrong:
            raise TrialError(f"cache: asked for {'; '.join(wrong)}")


def _forget(disk: Path) -> None:
    """Overwrite what a cache on the disk begins with, so that the kernel makes a new one."""
    handle = os.open(disk, os.O_WRONLY | os.O_EXCL | os.O_CLOEXEC)
    try:
        os.pwrite(handle, bytes(SUPERBLOCK_BYTES), 0)
        os.fsync(handle)
    finally:
        os.close(handle)


def sectors(path: str) -> int:
    """How many sectors of 512 bytes a block device has."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.lseek(handle, 0, os.SEEK_END) // SECTOR_BYTES
    finally:
        os.close(handle)


def metadata_sectors(fast: int) -> int:
    """How many sectors of a disk of so many dm-cache needs for what it notes of the others, in whole MiB."""
    blocks = fast * SECTOR_BYTES // CACHE_BLOCK_BYTES
    size = METADATA_BYTES + METADATA_BYTES_PER_BLOCK * blocks
    return -(-size // MIB) * MIB // SECTOR_BYTES


@dataclass(frozen=True)
class _Status:
    """What a line of ``dmsetup status`` says of a cache; counts are of blocks, since it was made."""

    blocks: int
    waiting: int  # to be written to the disk behind it
    block_bytes: int
    reads: tuple[int, int] | None  # all, and those that it answered; dm-writecache counts them since Linux 5.15
    settings: dict[str, Any]


def _status(line: str) -> _Status:
    """Read a line; formats: writecache.rst, cache.rst. Raises ``TrialError`` where it is none, or tells of an error."""
    fields = line.split()
    kind, words = "".join(fields[2:3]), fields[3:]
    try:
        if kind == TARGETS["writecache"]:
            return _writecache_status(words)
        if kind == TARGETS["dm-cache"]:
            return _dm_cache_status(words)
    except (ValueError, IndexError):  # such as "Fail" or "Error" in the place of numbers
        pass
    raise TrialError(f"dmsetup status: expected a cache that works, it is {line.strip()[:200]!r}")


def _writecache_status(words: list[str]) -> _Status:
    error, blocks, free, _, *counts = map(int, words)
    if error:
        raise ValueError(error)
    return _Status(blocks, blocks - free, WRITECACHE_BLOCK_BYTES, (counts[0], counts[1]) if counts else None, {})


def _dm_cache_status(words: list[str]) -> _Status:
    block, (_, blocks) = int(words[2]), map(int, words[3].split("/"))
    hits, misses, *_, dirty = map(int, words[4:11])
    count = int(words[11])
    features, rest = words[12 : 12 + count], words[12 + count :]
    policy = rest[1 + int(rest[0])]
    mode = next(feature for feature in features if feature in {"writeback", "writethrough", "passthrough"})
    settings = {"cache_mode": mode, "policy": policy}
    return _Status(blocks, dirty, block * SECTOR_BYTES, (hits + misses, hits), settings)


def observed_cache(table: str, status: str) -> dict[str, Any]:
    """What ``dmsetup table`` and ``dmsetup status`` say of a cache. Raises ``TrialError`` where they tell of none."""
    fields, now = table.split(), _status(status)
    kind = next((name for name, target in TARGETS.items() if fields[2:3] == [target]), None)
    options: list[str] = fields[8 : 8 + int(fields[7])] if kind == "writecache" else []
    settings = {name: int(value) for name, value in zip(options[::2], options[1::2], strict=True)}
    return {"kind": kind, "size_bytes": now.blocks * now.block_bytes, **settings, **now.settings}


def cache_figures(before: str, after: str) -> CacheFigures:
    """What a cache did between two lines of ``dmsetup status``."""
    began, ended = _status(before), _status(after)
    figures: CacheFigures = {"waiting_share": ended.waiting / ended.blocks}
    if began.reads and ended.reads:
        reads, hits = (now - then for then, now in zip(began.reads, ended.reads, strict=True))
        if reads:
            figures["read_hit_share"] = hits / reads
    return figures


# bcache: attached anew, and so empty, for each trial; data are prepared through it, but without a cache.


BCACHE = "bcache"  # the kernel's module
_REGISTER = Path("/sys/fs/bcache/register_quiet")  # which minds no disk that udev has registered by then
BUCKET_BYTES, BUCKETS_MIN = 512 * 1024, 1024
_UNITS = "kMGTPEZY"  # of the kernel's sizes (drivers/md/bcache/util.c: bch_hprint)


@dataclass(frozen=True)
class Bcache:
    """Puts a fast disk before the one device or volume below."""

    section: CacheSection
    fresh: bool  # data are prepared on it, rather than a load measured
    title: str  # by which the kernel knows it on this host
    name: str = "cache"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """The cached device, for as long as the context lasts."""
        source, fast = _source_and_fast(below)
        load_module(BCACHE)
        with below.journal.undoing(StopBcache((source, str(fast.path)))):
            if self.fresh:
                _format("--bdev", source)
            _write(_REGISTER, source)
            folder = BLOCK / Path(source).name / "bcache"
            _write(folder / "label", self.title)
            if not self.fresh:
                size_bytes = int(text_of(BLOCK / fast.name / "size")) * SECTOR_BYTES
                _format("--cache", str(fast.path), "--bucket", str(bucket_bytes(size_bytes)))
                _write(_REGISTER, str(fast.path))
                _write(folder / "attach", (BLOCK / fast.name / "bcache/set").resolve().name)
                self._set(folder)
            volume = Path("/dev") / (folder / "dev").resolve().name
            synced = (*(below.synced or below.devices), fast)
            yield below.raised(self.name, observed_bcache(folder, fast.name), volume=volume, synced=synced)

    @contextmanager
    def measuring(self, _: Journal) -> Iterator[TrialDevice]:
        """Fills the yielded dict with what waits in the cache when the load ends."""
        figures: TrialDevice = {}
        yield figures
        (folder,) = (path.parent for path in BLOCK.glob("bcache*/bcache/label") if text_of(path) == self.title)
        (disk,) = (folder / "cache").glob("cache[0-9]*")
        size_bytes = int(text_of(disk.resolve().parent / "size")) * SECTOR_BYTES
        figures["cache"] = {"waiting_share": bytes_of(text_of(folder / "dirty_data")) / size_bytes}

    def _set(self, folder: Path) -> None:
        """Set what the study says. Raises ``TrialError`` with every setting that did not take."""
        _write(folder / "cache_mode", self.section.cache_mode)
        cutoff, wrong = self.section.sequential_cutoff, []
        if (mode := chosen_of(folder / "cache_mode")) != self.section.cache_mode:
            wrong.append(f"cache_mode {self.section.cache_mode}, it is {mode}")
        # The kernel shows a size with one decimal.
        if (
            cutoff is not None
            and abs((there := bytes_of(text_of(folder / "sequential_cutoff"))) - cutoff) > cutoff / 10
        ):
            wrong.append(f"sequential_cutoff {cutoff}, it is {there}")
        if wrong:
            raise TrialError(f"cache: asked for {'; '.join(wrong)}")


def bucket_bytes(size_bytes: int) -> int:
    """The size of buckets for a cache's disk: make-bcache's own, or less where the kernel would have too few.

    Of fewer than 513 it makes no cache (drivers/md/bcache/super.c: cache_alloc).
    """
    most: int = 2 ** ((size_bytes // BUCKETS_MIN).bit_length() - 1)
    return min(BUCKET_BYTES, most)


def observed_bcache(folder: Path, fast: str) -> dict[str, Any]:
    """What the kernel says of a device of bcache; ``fast`` names the cache's disk, which preparing data leaves out."""
    of_cache, of_set = BLOCK / fast / "bcache", BLOCK / fast / "bcache/set"
    observed: dict[str, Any] = {"kind": BCACHE, "state": text_of(folder / "state")}
    observed |= {"cache_mode": chosen_of(folder / "cache_mode")}
    observed |= {"sequential_cutoff_bytes": bytes_of(text_of(folder / "sequential_cutoff"))}
    if of_set.exists():
        observed["bucket_bytes"] = bytes_of(text_of(of_cache / "bucket_size"))
        for name in ("congested_read_threshold_us", "congested_write_threshold_us"):
            observed[name] = int(text_of(of_set / name))
    return observed


def bytes_of(text: str) -> int:
    """A size as bcache shows it, ``64.0k``. Raises ``TrialError``."""
    match = re.fullmatch(rf"([0-9]+(?:\.[0-9]+)?)([{_UNITS}]?)", text)
    if match is None:
        raise TrialError(f"cache: expected a size of bcache's, it is {text!r}")
    scale: int = 1024 ** (_UNITS.index(match[2]) + 1) if match[2] else 1
    return round(float(match[1]) * scale)


def _format(what: str, disk: str, *options: str) -> None:
    run_tool(["wipefs", "--all", "--quiet", disk])
    run_tool(["make-bcache", *options, what, disk])


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="ascii")
    except OSError as error:
        raise TrialError(f"cache: write {text} to {file}: {error.strerror}") from None


class _AnyCache(Between):
    FIELD: ClassVar[str] = "cache"
    PROGRAMS: ClassVar[dict[str, str]] = {"dmsetup": "dmsetup", "make-bcache": "bcache-tools"}
    TOUCHES: ClassVar[str] = "made: a cache before the disk of each trial; removed afterwards"

    def programs(self, spec: TrialSpec) -> dict[str, str]:
        name = "make-bcache" if spec.stack.cache == BCACHE else "dmsetup"
        return {name: self.PROGRAMS[name]}

    def modules(self, spec: TrialSpec) -> list[str]:
        return [BCACHE] if spec.stack.cache == BCACHE else list(MODULES[spec.stack.cache])

    def on_disk(self, spec: TrialSpec) -> list[object]:
        return [spec.stack.cache]  # as its sectors decide how a filesystem is made

    def layer(self, spec: TrialSpec, *, fresh: bool, key: bytes) -> Layer:
        title = f"dbdyno-{new_token()}"
        if spec.stack.cache == BCACHE:
            return Bcache(spec.cache, fresh, title)
        return Cache(spec.stack.cache, spec.cache, fresh, title)


BETWEEN = _AnyCache()
