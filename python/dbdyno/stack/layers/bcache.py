"""bcache on a fast disk before what is below: a cache of buckets, which takes in what is read or written at random.

Data are prepared through bcache, but without a cache, so nothing waits to be written back when they are kept. Each
trial makes a new, empty cache and attaches it.

Cannot: say how many reads it answered, as the kernel adds its counts up every five minutes only; what no cache can
(``cache.py``).
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.errors import TrialError
from dbdyno.host.read import chosen_of, text_of
from dbdyno.host.storage import BLOCK, SECTOR_BYTES
from dbdyno.stack.between import load_module
from dbdyno.stack.layer import StackContext
from dbdyno.stack.tools import run_tool
from dbdyno.stack.undo.actions import StopBcache
from dbdyno.stack.undo_log import Journal
from dbdyno.store.records import TrialDevice
from dbdyno.study.schema import CACHE_DISK, CacheSection

MODULE = "bcache"
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
        (source,) = below.sources
        fast = below.disks[CACHE_DISK].device
        assert fast is not None  # noqa: S101  (it is raised before)
        load_module(MODULE)
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
    observed: dict[str, Any] = {"kind": MODULE, "state": text_of(folder / "state")}
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
