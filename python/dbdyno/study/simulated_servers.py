"""What the simulator is given for a server: its settings by the names of MySQL's variables, in the simulator's."""

from collections.abc import Callable, Collection, Iterator
from typing import Any

from dbdyno.model.quantity import size_bytes
from dbdyno.study.mistakes import Mistake, did_you_mean, shown
from dbdyno.study.schema import TrialSpec
from dbdyno.study.section import Setting

LOG_FILES = 2  # innodb_log_files_in_group, as it comes
MAPPED_SHARE = 8  # of memory: what the server's own code, threads and the kernel take
MEMORY_BYTES = 8 << 30
OLD_KERNELS = ("2.6.9", "2.6.18", "2.6.32")  # of MySQL 5.1's time; then InnoDB flushes as 5.6 does


def _bytes(value: Setting) -> int:
    return value if isinstance(value, int) else size_bytes(value)


def _switch(value: Setting) -> bool:
    if str(value).lower() in {"1", "on", "true", "0", "off", "false"}:
        return str(value).lower() in {"1", "on", "true"}
    raise ValueError("is neither on nor off")


def _whole(value: Setting) -> int:
    if isinstance(value, int):
        return int(value)
    raise ValueError("is no whole number")


def _method(value: Setting) -> str:
    if value in {"fsync", "O_DIRECT"}:
        return str(value)
    raise ValueError('is neither "fsync" nor "O_DIRECT"')


# Engine -> variable of the server -> the simulator's name for it, and what makes its value.
SETTINGS: dict[str, dict[str, tuple[str, Callable[[Setting], Any]]]] = {
    "innodb": {
        "innodb_buffer_pool_size": ("buffer_pool_bytes", _bytes),
        "innodb_log_file_size": ("log_bytes", lambda value: LOG_FILES * _bytes(value)),
        "innodb_flush_log_at_trx_commit": ("flush_log_at_commit", _whole),
        "sync_binlog": ("sync_binlog", _whole),
        "innodb_doublewrite": ("doublewrite", _switch),
        "innodb_flush_method": ("flush_method", _method),
        "innodb_flush_neighbors": ("flush_neighbours", _switch),
        "innodb_io_capacity": ("io_capacity", _whole),
        "innodb_io_capacity_max": ("io_capacity_max", _whole),
        "innodb_max_dirty_pages_pct": ("max_dirty_percent", float),
        "innodb_lru_scan_depth": ("lru_scan_depth", _whole),
    },
    "myisam": {"key_buffer_size": ("key_buffer_bytes", _bytes)},
}


def setting_mistakes(spec: TrialSpec, known: Collection[str]) -> Iterator[Mistake]:
    """Variables that a simulated server does not know, or not with that value."""
    each = SETTINGS.get(spec.stack.engine.lower(), {})
    for name, value in spec.server.settings.items():
        place = ("server", "settings", name)
        if name not in known:
            has = f"known are {', '.join(known)}{did_you_mean(name, known)}" if known else "this load has no server"
            yield Mistake(place, f"is not simulated; {has}")
            continue
        try:
            each[name][1](value)
        except (ValueError, TypeError) as error:
            yield Mistake(place, f"is {shown(value)}, which {error}")


def _given(spec: TrialSpec, engine: str) -> dict[str, Any]:
    each = SETTINGS[engine]
    return {each[name][0]: each[name][1](value) for name, value in spec.server.settings.items()}


def page_cache(memory: int | None = None, filesystem: str | None = None, mount: str | None = None) -> dict[str, Any]:
    """Settings of the simulator's page cache for what is given: memory in bytes, filesystem, mount option."""
    cache: dict[str, Any] = {}
    if memory is not None:
        cache |= {"memory_bytes": memory, "mapped_bytes": memory // MAPPED_SHARE}
    if filesystem is not None:
        cache |= {"filesystem": filesystem, "barrier": filesystem != "ext3"}  # which had none as it came
    if mount is not None:
        cache["data"] = "writeback" if mount == "data=writeback" else "ordered"
    return cache


def myisam(spec: TrialSpec, *, initial_rows: int) -> dict[str, Any]:
    """A MyISAM table that takes rows, on the kernel's page cache."""
    stack = spec.stack
    cache = page_cache(
        stack.memory or MEMORY_BYTES, stack.filesystem or "ext4", spec.filesystem.mount or "data=ordered"
    )
    table = {"initial_rows": initial_rows, **_given(spec, "myisam")}
    return {"kind": "ingest", "cache": cache, "table": table}


def innodb(spec: TrialSpec, **load: object) -> dict[str, Any]:
    """A server with InnoDB under a load, of which the fields are the simulator's."""
    return {
        "kind": "commits",
        "version": "5.1" if spec.stack.kernel in OLD_KERNELS else "5.6",
        "space_bytes": (spec.stack.size or 0) // 2,  # of the drive, the rest being logs and the filesystem's
        "barriers": spec.stack.filesystem != "ext3",
        **load,
        **_given(spec, "innodb"),
    }
