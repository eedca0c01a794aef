"""Which known word was meant by one that is unknown, and the words in which a message says so."""

import difflib
from collections.abc import Iterable

LIKENESS_MIN = 0.6  # of the letters are the same
PART_MIN = 3  # letters of a word that is looked for in others: a shorter one is part of too many
# What others call the fields of a study.
_CALLED = {
    "script": "file", "sql": "file", "path": "file", "job_file": "job", "jobfile": "job", "cmd": "command",
    "threads": "clients", "connections": "clients", "users": "clients", "concurrency": "clients", "numjobs": "clients",
    "time": "duration", "runtime": "duration", "seconds": "duration", "warm_up": "warmup", "disk": "device",
    "drive": "device", "elevator": "scheduler", "fs": "filesystem", "ram": "memory", "repetitions": "blocks",
    "repeat": "blocks", "runs": "blocks", "control": "baseline", "type": "kind", "name": "title",
    "raid": "array", "raid_level": "array", "md": "array", "luks": "encryption", "dm_crypt": "encryption",
    "lvm": "volume", "dm_cache": "cache", "dm_writecache": "cache", "writecache": "cache", "bcache": "cache",
    "sector_size": "sector", "chunk_size": "chunk",
    "thp": "transparent_hugepage", "transparent_hugepages": "transparent_hugepage",
    "transparent_huge_pages": "transparent_hugepage", "hugepages": "nr_hugepages", "huge_pages": "nr_hugepages",
    "malloc": "allocator", "malloc_lib": "allocator", "ld_preload": "allocator", "numactl": "numa",
    "governor": "cpu_governor", "scaling_governor": "cpu_governor",
    "rest": "settle", "cooldown": "settle", "pause": "settle", "sleep": "settle",
}  # fmt: skip


def nearest_word(spelling: str, known: Iterable[str]) -> str:
    """The known word that was meant by another; empty where none is near."""
    known = list(known)
    if (called := _CALLED.get(spelling.lower())) in known:
        return str(called)
    near = difflib.get_close_matches(spelling, known, n=1, cutoff=LIKENESS_MIN)
    # "deadline" is far from "mq-deadline" by letters, yet that is what was meant.
    near = near or [word for word in known if len(spelling) >= PART_MIN and (spelling in word or word in spelling)]
    return near[0] if near else ""


def did_you_mean(spelling: str, known: Iterable[str]) -> str:
    """``'. Did you mean "X"?'``, the end of a message; empty where no known word is near."""
    near = nearest_word(spelling, known)
    return f'. Did you mean "{near}"?' if near else ""
