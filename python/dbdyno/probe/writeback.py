"""Pages of the page cache that wait to be written, and what keeps writers waiting for them: /proc/vmstat."""

import os
import re
from collections.abc import Sequence

from dbdyno.probe.kernel_files import KernelFileSource

PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 1e6
_PAGES = ("nr_dirty", "nr_writeback", "nr_dirty_background_threshold", "nr_dirty_threshold")  # as they stand
_WRITTEN = ("nr_dirtied", "nr_written")  # pages since boot
_EVENTS = ("pgmajfault", "allocstall", "nr_throttled_written")  # since boot; the second by zone of memory
_NAMES = "|".join((*_PAGES, *_WRITTEN, *_EVENTS))
_LINE = re.compile(rf"^({_NAMES})(?:_(?:dma|dma32|normal|highmem|movable|device))? (\d+)$", re.MULTILINE)


class WritebackSource(KernelFileSource):
    """The host's page cache, in the kernel's own counters. Raises ``OSError`` where /proc/vmstat can't be read."""

    name = "writeback"
    of_host = True
    bytes_max = 64 * 1024

    def __init__(self) -> None:
        super().__init__("/proc/vmstat")

    def counters(self, raw: Sequence[bytes]) -> dict[str, float]:
        """Pages and events under the kernel's names; what this kernel does not count is left out."""
        found: dict[str, float] = {}
        for name, value in _LINE.findall(raw[0].decode("ascii")):
            found[name] = found.get(name, 0.0) + int(value)
        return found

    def interval(self, before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
        """Pages as MB, or MB per second; events per second."""
        rates = {name: (after[name] - before[name]) / seconds for name in (*_WRITTEN, *_EVENTS) if name in after}
        return {
            **{f"{name}_MB": after[name] * PAGE_MB for name in _PAGES if name in after},
            **{f"{name}_MB/s": rates[name] * PAGE_MB for name in _WRITTEN if name in rates},
            **{f"{name}/s": rates[name] for name in _EVENTS if name in rates},
        }
