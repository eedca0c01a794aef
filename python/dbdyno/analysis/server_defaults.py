"""What two servers differ in beside what a study sets: their variables, those that matter to storage first."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dbdyno.model.treatment import Treatment
from dbdyno.store.records import Run, Trial

ABSENT = "absent"
# In the order in which they are listed: what decides how much is written, when it is flushed and what is lost in a
# power cut; then what is kept in memory; then what else a load may feel.
MATTERING = (
    "innodb_flush_log_at_trx_commit", "sync_binlog", "log_bin", "innodb_doublewrite", "innodb_flush_method",
    "innodb_flush_neighbors", "innodb_io_capacity", "innodb_io_capacity_max", "innodb_redo_log_capacity",
    "innodb_log_file_size", "innodb_log_files_in_group", "innodb_log_buffer_size", "innodb_log_write_ahead_size",
    "innodb_log_file_buffering", "innodb_data_file_buffering", "innodb_use_native_aio", "innodb_use_fdatasync",
    "innodb_page_size", "innodb_checksum_algorithm", "innodb_change_buffering", "innodb_change_buffer_max_size",
    "innodb_adaptive_flushing", "innodb_adaptive_flushing_lwm", "innodb_max_dirty_pages_pct",
    "innodb_max_dirty_pages_pct_lwm", "innodb_lru_scan_depth", "innodb_page_cleaners", "innodb_read_io_threads",
    "innodb_write_io_threads", "innodb_purge_threads", "innodb_flushing_avg_loops", "innodb_idle_flush_pct",
    "innodb_file_per_table", "innodb_undo_tablespaces", "innodb_undo_log_truncate", "binlog_format", "binlog_row_image",
    "binlog_order_commits", "gtid_mode", "aria_sync_log_dir", "innodb_buffer_pool_size",
    "innodb_buffer_pool_instances", "innodb_buffer_pool_chunk_size", "innodb_adaptive_hash_index",
    "innodb_old_blocks_time", "innodb_random_read_ahead", "innodb_read_ahead_threshold", "key_buffer_size",
    "query_cache_type", "query_cache_size", "innodb_thread_concurrency", "innodb_autoinc_lock_mode",
    "innodb_stats_persistent", "transaction_isolation", "table_open_cache", "thread_cache_size", "thread_handling",
    "tmp_table_size", "max_heap_table_size", "internal_tmp_mem_storage_engine", "sort_buffer_size", "join_buffer_size",
    "read_buffer_size", "character_set_server", "collation_server", "performance_schema", "sql_mode",
)  # fmt: skip
_RANK = {name: place for place, name in enumerate(MATTERING)}
_SAME = {"1": "on", "0": "off", "true": "on", "false": "off", "yes": "on", "no": "off"}


@dataclass(frozen=True)
class Setting:
    """One variable on both sides; ``ABSENT`` where a server does not have it."""

    name: str
    before: str
    after: str

    @property
    def matters(self) -> bool:
        """Whether it is known to matter to storage."""
        return self.name in _RANK


@dataclass(frozen=True)
class ServerDefaults:
    """What two servers differ in though the study did not set it."""

    before: str  # what the sides are called
    after: str
    differing: list[Setting]  # on both sides, or known to matter; those that matter first
    only_before: list[str]  # names of further variables that one server alone has
    only_after: list[str]


def server_defaults(run: Run) -> list[ServerDefaults]:
    """Return one for each pair of servers that a planned comparison has; none where each has the same server."""
    known = {one.id: one for one in run.design.treatments}
    found: dict[tuple[str, str], ServerDefaults] = {}
    for pair in run.design.comparisons:
        sides = known[pair.baseline], known[pair.level]
        old, new = (_of(run, one) for one in sides)
        names = _names(sides, (old, new))
        if names not in found and names[0] != names[1]:
            one = _compared(*names, _variables(old), _variables(new), set_by(run))
            found |= {names: one} if one else {}
    return list(found.values())


def defaults_of_two_runs(
    before: Run, after: Run, matched: Sequence[tuple[Treatment, Treatment]]
) -> list[ServerDefaults]:
    """Return one for each pair of servers that two runs measured the same treatments with, where they differ."""
    found: dict[tuple[str, str], ServerDefaults] = {}
    for old, new in matched:
        first, second = _of(before, old), _of(after, new)
        names = _version(first), _version(second)
        one = _compared(*names, _variables(first), _variables(second), set_by(before) | set_by(after))
        found = ({names: one} if one else {}) | found
    return list(found.values())


def set_by(run: Run) -> set[str]:
    """Return the names of the variables that the study sets, in whichever way."""
    of_levels = (name for factor in run.design.factors for given in (factor.gives or {}).values() for name in given)
    names = {*run.study.get("server", {}).get("settings", {}), *(one.name for one in run.design.factors), *of_levels}
    return {name.rpartition(".")[2].replace("-", "_") for name in names}


def _of(run: Run, treatment: Treatment) -> list[Trial]:
    return [trial for trial in run.trials if trial.treatment == treatment.id]


def _names(sides: Sequence[Treatment], trials: Sequence[Sequence[Trial]]) -> tuple[str, str]:
    """Return the servers by their levels, where these differ, otherwise by their versions."""
    levels = [one.levels.get("server", "") for one in sides]
    versions = [_version(each) for each in trials]
    before, after = levels if levels[0] != levels[1] else versions
    return before, after


def _version(trials: Iterable[Trial]) -> str:
    return next((str(one.observed["server"].get("version", "")) for one in trials if "server" in one.observed), "")


def _variables(trials: Iterable[Trial]) -> Mapping[str, str]:
    return next((one.server_variables for one in trials if one.server_variables), {})


def _compared(
    before: str, after: str, old: Mapping[str, str], new: Mapping[str, str], asked: set[str]
) -> ServerDefaults | None:
    """Return what differs; None where the variables of a side are not known, or nothing differs."""
    if not old or not new:
        return None
    names = sorted(old.keys() & new.keys() | (old.keys() | new.keys()) & _RANK.keys(), key=_place)
    both = (Setting(name, old.get(name, ABSENT), new.get(name, ABSENT)) for name in names if name not in asked)
    differing = [one for one in both if _plain(one.before) != _plain(one.after)]
    only_before, only_after = (
        sorted(one.keys() - other.keys() - _RANK.keys() - asked) for one, other in ((old, new), (new, old))
    )
    if not (differing or only_before or only_after):
        return None
    return ServerDefaults(before, after, differing, only_before, only_after)


def _place(name: str) -> tuple[int, str]:
    return _RANK.get(name, len(_RANK)), name


def _plain(value: str) -> str:
    """Return a value as its spellings have it in common (``ON`` = 1 = true)."""
    text = value.strip().lower()
    try:
        return f"{float(text):.12g}" if text not in _SAME else _SAME[text]
    except ValueError:
        return text
