"""The settings that touch no data: treatments that differ in these alone start from the same prepared bytes.

Each decides only when and how bytes reach the disk, or how connections and threads are served; none what is in the
files after a clean shutdown, nor how a statement is carried out (a script that prepares its own data might then get its
rows in another order). What is not listed counts as touching data. Sources: the manuals' pages of InnoDB's and the
server's variables, MySQL 5.5 to 9 and MariaDB 10.5 to 11.8.
"""

from collections.abc import Mapping

from dbdyno.study.section import Setting

_BOTH = frozenset({
    "back_log",
    "binlog_cache_size",
    "connect_timeout",
    "innodb_adaptive_flushing",
    "innodb_adaptive_flushing_lwm",
    "innodb_adaptive_hash_index",
    "innodb_buffer_pool_chunk_size",
    "innodb_buffer_pool_size",
    "innodb_deadlock_detect",
    "innodb_flush_log_at_timeout",
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_method",
    "innodb_flush_neighbors",
    "innodb_flush_sync",
    "innodb_flushing_avg_loops",
    "innodb_io_capacity",
    "innodb_io_capacity_max",
    "innodb_lock_wait_timeout",
    "innodb_log_buffer_size",
    "innodb_lru_scan_depth",
    "innodb_max_dirty_pages_pct",
    "innodb_max_dirty_pages_pct_lwm",
    "innodb_old_blocks_pct",
    "innodb_old_blocks_time",
    "innodb_random_read_ahead",
    "innodb_read_ahead_threshold",
    "innodb_read_io_threads",
    "innodb_spin_wait_delay",
    "innodb_sync_spin_loops",
    "innodb_use_native_aio",
    "interactive_timeout",
    "key_buffer_size",
    "lock_wait_timeout",
    "max_connections",
    "max_prepared_stmt_count",
    "net_read_timeout",
    "net_write_timeout",
    "open_files_limit",
    "sync_binlog",
    "table_definition_cache",
    "table_open_cache",
    "table_open_cache_instances",
    "thread_cache_size",
    "thread_stack",
    "wait_timeout",
})  # fmt: skip
# In MySQL 8.0 the number and the size of the doublewrite buffer's files follow innodb_buffer_pool_instances and
# innodb_write_io_threads; MariaDB has it in the system tablespace, of one size.
_MARIADB = frozenset({
    "aria_pagecache_buffer_size",
    "binlog_commit_wait_count",
    "binlog_commit_wait_usec",
    "innodb_buffer_pool_instances",
    "innodb_write_io_threads",
    "query_cache_limit",
    "query_cache_size",
    "query_cache_type",
    "thread_handling",
    "thread_pool_idle_timeout",
    "thread_pool_max_threads",
    "thread_pool_oversubscribe",
    "thread_pool_size",
    "thread_pool_stall_limit",
})  # fmt: skip
_MYSQL = frozenset({
    "binlog_group_commit_sync_delay",
    "binlog_group_commit_sync_no_delay_count",
    "innodb_log_spin_cpu_abs_lwm",
    "innodb_log_spin_cpu_pct_hwm",
    "innodb_log_wait_for_flush_spin_hwm",
    "innodb_log_writer_threads",
})  # fmt: skip
TOUCH_NO_DATA: Mapping[str, frozenset[str]] = {"mariadb": _BOTH | _MARIADB, "mysql": _BOTH | _MYSQL}

# A server that is shut down writes down which pages its buffer pool holds, and the next one reads them: with this, data
# would depend on the pool. So it is off while data are prepared, unless a study sets it: then all its settings count.
DUMP = "innodb_buffer_pool_dump_at_shutdown"
DUMP_OFF = f"--loose-{DUMP.replace('_', '-')}=OFF"  # MySQL 5.5 has none


def data_settings(product: str, settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """Return those of a study's settings on which prepared data may depend."""
    if DUMP in settings:
        return dict(settings)
    return {name: value for name, value in settings.items() if name not in TOUCH_NO_DATA[product]}
