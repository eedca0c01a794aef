"""MySQL and MariaDB by name: settings, what they do, counters, conflicts and products.

A study is untrusted text, and the server may run beside a production server. A variable that takes a number, a
switch or one of a few words changes how the server works on its own data: each may be set but for the few below. One
that takes free text names a file, a folder, a module, an address, a command or an account: only ``TEXTS`` may be set.
``servers.mysql.own`` knows from the server's own list of which kind a variable is.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

from dbdyno.model.quantity import SWITCHES, size_bytes
from dbdyno.model.wording import listed

Setting = bool | int | float | str

# Names of settings that rules and words of dbdyno's speak of.
BINARY_LOG = "log_bin"
FLUSH_LOG = "innodb_flush_log_at_trx_commit"
ROCKSDB_FLUSH_LOG = "rocksdb_flush_log_at_trx_commit"
BUFFER_POOL = "innodb_buffer_pool_size"
LOG_FILE = "innodb_log_file_size"
REDO = (LOG_FILE, "innodb_redo_log_capacity")
INNODB, MYISAM, ARIA, ROCKSDB = "innodb", "myisam", "aria", "rocksdb"  # engines


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Which a study may set, as far as their names and values show without asking a server.


_STARTED = "is set by dbdyno: it decides how the server is started"
_REACHED = "is set by dbdyno: it decides who may reach the server, and whom it calls"
_FILES = "is set by dbdyno: it decides which files the server touches"
_CODE = "is set by dbdyno: it decides what the server loads"
_MODULES = f"{_CODE}. Leave it out: a server that encrypts is given its module and a key"
_KEYS = "is set by dbdyno: it gives the server a key of its own where a setting encrypts; leave it out"
_LEAVES = "is set by dbdyno: what it writes is left on this host"

# A port is not among them: with one the server listens on 127.0.0.1 alone. Nor is innodb_force_recovery, nor anything
# else that could harm nothing but the server's own data, which is made anew.
_REFUSED = {
    **dict.fromkeys(("bootstrap", "console", "daemonize", "debug_gdb", "flashback", "gdb", "getopt_prefix_matching",
                     "help", "init_rpl_role", "initialize", "initialize_insecure", "print_defaults", "standalone",
                     "upgrade", "user", "validate_config", "verbose", "version"), _STARTED),
    **dict.fromkeys(("bind_address", "create_admin_listener_thread", "extra_port", "local_infile",
                     "proxy_protocol_networks", "skip_bind_address", "skip_grant_tables", "skip_mysqlx",
                     "skip_networking", "socket"), _REACHED),
    # Links, and the DATA DIRECTORY of a table, lead out of the data folder.
    **dict.fromkeys(("basedir", "chroot", "datadir", "language", "log_error", "pid_file", "secure_file_priv",
                     "symbolic_links"), _FILES),
    **dict.fromkeys(("allow_suspicious_udfs", "plugin_maturity"), _CODE),
    **dict.fromkeys(("early_plugin_load", "plugin_load", "plugin_load_add"), _MODULES),
    **dict.fromkeys(("core_file", "log_syslog", "log_syslog_facility", "log_syslog_include_pid", "log_syslog_tag"),
                    _LEAVES),
}  # fmt: skip
OF_DATA = ("innodb_log", "undo", "doublewrite")  # fields of [server.place] for files without which data are not whole
REDO_PLACE = "innodb_log"  # the field of [server.place] for the log that commits wait for
# Variable -> the field of [server.place] by which a study puts what it names on a disk of its own.
PLACED = {
    "innodb_log_group_home_dir": "innodb_log",
    "log_bin": "binlog",
    "log_bin_basename": "binlog",
    "log_bin_index": "binlog",
    "innodb_undo_directory": "undo",
    "innodb_doublewrite_dir": "doublewrite",
    "tmpdir": "tmpdir",
}
_REFUSED_STARTS = {"admin_": _REACHED, "defaults_": _STARTED, "feedback": _REACHED, "file_key_management": _KEYS,
                   "keyring_": _CODE, "loose_": _STARTED, "mysqlx": _REACHED, "ndb": _REACHED,
                   "wsrep_": _REACHED}  # fmt: skip
# Of a node of a cluster; what else it has, dbdyno sets, or [server.cluster] says.
CLUSTER_SETTINGS = _words("wsrep_retry_autocommit wsrep_slave_threads wsrep_sync_wait wsrep_trx_fragment_size")
# What of wsrep_provider_options a study may set: fields of [server.cluster], there with a _ for the dot.
GALERA_OPTIONS = ("gcs.fc_limit", "gcs.fc_factor", "gcache.size", "evs.send_window", "evs.user_send_window")
NEEDED_BY_CLUSTER = {"binlog_format": "ROW", "innodb_autoinc_lock_mode": "2"}

# Words, and names of character sets, engines and counters. Most are enumerations, which MySQL's help does not
# distinguish from free text; the server refuses any other word.
TEXTS = _words("""
    alter_algorithm aria_group_commit aria_stats_method binlog_checksum binlog_error_action binlog_format
    binlog_row_image binlog_row_metadata binlog_row_value_options binlog_transaction_dependency_tracking
    binlogging_impossible_mode block_encryption_mode character_set_filesystem character_set_server collation_server
    column_compression_zlib_strategy completion_type concurrent_insert default_storage_engine
    default_tmp_storage_engine delay_key_write disabled_storage_engines enforce_gtid_consistency
    enforce_storage_engine event_scheduler explain_format gtid_mode histogram_type innodb_change_buffering
    innodb_checksum_algorithm innodb_compression_algorithm innodb_deadlock_report innodb_default_row_format
    innodb_doublewrite innodb_file_format innodb_file_format_max innodb_flush_method innodb_linux_aio
    innodb_log_writer_threads innodb_monitor_disable innodb_monitor_enable innodb_stats_method
    internal_tmp_disk_storage_engine internal_tmp_mem_storage_engine lc_time_names log_output log_slow_filter
    log_slow_verbosity log_timestamps myisam_recover_options myisam_stats_method old_alter_table old_mode
    optimizer_adjust_secondary_key_costs optimizer_switch optimizer_trace optimizer_trace_features
    protocol_compression_algorithms query_cache_type rocksdb_default_cf_options rocksdb_index_type
    rocksdb_info_log_level rocksdb_write_policy secure_timestamp session_track_gtids session_track_transaction_info
    slave_parallel_mode sql_mode system_versioning_alter_history thread_handling thread_pool_priority
    transaction_isolation transaction_write_set_extraction tx_isolation updatable_views_with_limit use_stat_tables
    """)

# Of RocksDB's options of a column family, which are many and can name folders and plugins.
_CF_OPTIONS = _words("""
    block_based_table_factory block_restart_interval block_size bottommost_compression cache_index_and_filter_blocks
    checksum compaction_pri compaction_style compression compression_opts compression_per_level filter_policy
    format_version hard_pending_compaction_bytes_limit index_type level0_file_num_compaction_trigger
    level0_slowdown_writes_trigger level0_stop_writes_trigger level_compaction_dynamic_level_bytes
    max_bytes_for_level_base max_bytes_for_level_multiplier max_compaction_bytes max_write_buffer_number
    memtable_prefix_bloom_size_ratio metadata_block_size min_write_buffer_number_to_merge no_block_cache num_levels
    optimize_filters_for_hits partition_filters periodic_compaction_seconds pin_l0_filter_and_index_blocks_in_cache
    prefix_extractor soft_pending_compaction_bytes_limit target_file_size_base target_file_size_multiplier ttl
    whole_key_filtering write_buffer_size
    """)
_PLAIN = re.compile(r"[\w ,.:;=+\-{}]*")


# A source that waits with each commit for a replica's word, by its two names.
_SEMI_SYNCHRONOUS = ("rpl_semi_sync_master_enabled", "rpl_semi_sync_source_enabled")


def setting_mistake(name: str, value: Setting, *, may_have_replica: bool = False) -> str | None:
    """What is wrong with a server setting, whatever the server; ``None`` if nothing.

    A server of dbdyno's own has a replica by ``[server.replica]`` alone; of an external one that is not known.
    """
    if name in PLACED and not (name == BINARY_LOG and isinstance(value, bool)):
        return _set_by_place(name)
    if name in _SEMI_SYNCHRONOUS and not may_have_replica and str(value).lower() in {"true", "on", "1"}:
        return (
            "has each commit wait for a replica, and a setting alone brings none: it would wait for nobody, or for its "
            'timeout. Give mode = "semisync" in [server.replica], which brings one, or leave it out'
        )
    starts = {} if name in CLUSTER_SETTINGS else _REFUSED_STARTS
    start = next((reason for start, reason in starts.items() if name.startswith(start)), None)
    if refused := _REFUSED.get(name) or start:
        return refused
    if isinstance(value, str) and "/" in value:
        return f"is {value!r}; a setting must not name a file: dbdyno places the server's files"
    return None


def _set_by_place(name: str) -> str:
    field = PLACED[name]
    text = f'is set by dbdyno: it decides where files lie. For a disk of its own give [server.place] {field} = "NAME", '
    text += "and the disk in [stack.disks.NAME] with device, size and filesystem"
    return f"may be true or false; the place of its files {text}" if name == BINARY_LOG else text


def text_mistake(name: str, value: str) -> str | None:
    """What is wrong with the value of a variable that takes text; ``None`` if nothing."""
    if name not in TEXTS:
        return "takes text, which could name a file, a module, an address or a command, so a study can't set it"
    if not _PLAIN.fullmatch(value):
        return f"is {value!r}, which holds a character that none of its values has"
    if name == "rocksdb_default_cf_options":
        for option in re.findall(r"(\w+)\s*=", value):
            if option not in _CF_OPTIONS:
                return f"holds {option!r}, which a study can't set; it may give {', '.join(sorted(_CF_OPTIONS))}"
    return None


# What matters to storage, and what decides durability and logging.


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
_UNSET = {"innodb_flush_method": "fsync"}  # what an empty value stands for, which MySQL up to 5.7 shows

Concern = Literal["durability", "logging"]
# What decides whether a commit waits for the disk, or what is written beside the data at each statement or commit. Of
# two servers that differ in one of these, neither is simply the faster one: they do not do the same work. In the order
# in which they are named.
CONCERNS: Mapping[str, Concern] = {
    "log_bin": "logging", "innodb_flush_log_at_trx_commit": "durability", "sync_binlog": "durability",
    "innodb_doublewrite": "durability", "innodb_flush_method": "durability", "general_log": "logging",
    "slow_query_log": "logging", "gtid_mode": "logging", "binlog_format": "logging", "binlog_row_image": "logging",
}  # fmt: skip
BINARY_LOG_SETTINGS = {"sync_binlog", "gtid_mode", "binlog_format", "binlog_row_image"}


# What a server does by a setting, in words.
DOES = {
    "log_bin": "writes a binary log (log_bin)",
    "general_log": "logs every statement (general_log)",
    "slow_query_log": "logs slow statements (slow_query_log)",
    "innodb_doublewrite": "writes each page twice",
}
SYNCS = {
    ("innodb_flush_log_at_trx_commit", "on"): "syncs its redo log at each commit",
    ("innodb_flush_log_at_trx_commit", "2"): "syncs its redo log once a second",
    ("innodb_flush_log_at_trx_commit", "off"): "writes its redo log once a second",
    ("sync_binlog", "on"): "syncs its binary log at each commit",
    ("sync_binlog", "off"): "leaves syncing its binary log to the kernel",
}


def plain_value(name: str, value: str) -> str:
    """Return the value of a setting as its spellings have it in common (``ON`` = 1 = true)."""
    text = value.strip().lower() or _UNSET.get(name, "")
    try:
        return f"{float(text):.12g}" if text not in SWITCHES else SWITCHES[text]
    except ValueError:
        return text


def setting_bytes(value: Setting) -> int:
    """Return the bytes of a size as a server takes it: a number, or text such as ``"64M"``. Raises ``ValueError``."""
    if isinstance(value, str) and not value.isdecimal():
        return size_bytes(value)
    return int(value)


# The settings that the simulated server has: each by the server's name, in the simulator's name and unit.

_LOG_FILES = 2  # innodb_log_files_in_group, as it comes


def _switch(value: Setting) -> bool:
    text = str(value).lower()
    switched = SWITCHES.get(text, text)
    if switched in {"on", "off"}:
        return switched == "on"
    raise ValueError("is neither on nor off")


def _whole(value: Setting) -> int:
    if isinstance(value, int):
        return int(value)
    raise ValueError("is not a whole number")


def _method(value: Setting) -> str:
    if value in {"fsync", "O_DIRECT"}:
        return str(value)
    raise ValueError('is neither "fsync" nor "O_DIRECT"')


# Engine -> variable of the server -> the simulator's name for it, and what makes its value.
SIMULATED: dict[str, dict[str, tuple[str, Callable[[Setting], Any]]]] = {
    INNODB: {
        BUFFER_POOL: ("buffer_pool_bytes", setting_bytes),
        LOG_FILE: ("log_bytes", lambda value: _LOG_FILES * setting_bytes(value)),
        FLUSH_LOG: ("flush_log_at_commit", _whole),
        "sync_binlog": ("sync_binlog", _whole),
        "innodb_doublewrite": ("doublewrite", _switch),
        "innodb_flush_method": ("flush_method", _method),
        "innodb_flush_neighbors": ("flush_neighbours", _switch),
        "innodb_io_capacity": ("io_capacity", _whole),
        "innodb_io_capacity_max": ("io_capacity_max", _whole),
        "innodb_max_dirty_pages_pct": ("max_dirty_percent", float),
        "innodb_lru_scan_depth": ("lru_scan_depth", _whole),
    },
    MYISAM: {"key_buffer_size": ("key_buffer_bytes", setting_bytes)},
}


def simulated_settings(engine: str, settings: Mapping[str, Setting]) -> dict[str, Any]:
    """The simulator's fields for settings of a server. Raises ``ValueError``: a value is none that it knows."""
    known = SIMULATED[engine]
    try:
        return {known[name][0]: known[name][1](value) for name, value in settings.items()}
    except TypeError as error:
        raise ValueError(str(error)) from None


# What a server of MySQL or MariaDB says of its work: counters, and conflicts of transactions by their error codes.
#
# Counters (``SHOW GLOBAL STATUS``) are columns of the probe ``server_status``. A counter is a column per second,
# ``NAME/s``; a gauge is one under its own name.


# What ends a transaction that may simply be sent again, as ``TRANSACTION_RETRYABLE`` of dbdyno-load has it.
CONFLICTS = {1213: "deadlock", 1205: "lock wait timeout", 1020: "conflicting change"}

QUESTIONS = "Questions/s"
FSYNCS = "Innodb_data_fsyncs/s"
FSYNCS_DONE = "Innodb_data_fsyncs"  # since the server's start
LOG_WAITS = "Innodb_log_waits/s"  # for room in the log buffer
ROW_LOCK_TIME = "Innodb_row_lock_time/s"  # ms that transactions waited for rows
ROW_LOCK_WAITS = "Innodb_row_lock_waits/s"
POOL_READS = "Innodb_buffer_pool_reads/s"  # pages that a query waited for
POOL_WAITS = "Innodb_buffer_pool_wait_free/s"  # for a free page
PAGES_READ = "Innodb_pages_read/s"
POOL_DIRTY = "Innodb_buffer_pool_pages_dirty"
POOL_FREE = "Innodb_buffer_pool_pages_free"
POOL_TOTAL = "Innodb_buffer_pool_pages_total"
CHECKPOINT_AGE = "Innodb_checkpoint_age"  # bytes of log since the last checkpoint
TABLE_LOCK_WAITS = "Table_locks_waited/s"
KEY_BLOCKS = ("Key_reads/s", "Key_writes/s")  # of MyISAM, from and to disk
KEY_BLOCKS_DIRTY = "Key_blocks_not_flushed"
ARIA_PAGES = ("Aria_pagecache_reads/s", "Aria_pagecache_writes/s")
ARIA_PAGES_DIRTY = "Aria_pagecache_blocks_not_flushed"

# What an analysis needs of the probe, as a regular expression for names of columns.
ANALYSED = "|".join(
    re.escape(name)
    for name in (
        "t_s", QUESTIONS, FSYNCS, LOG_WAITS, ROW_LOCK_TIME, POOL_WAITS, PAGES_READ, POOL_FREE, POOL_TOTAL,
    )
)  # fmt: skip


# The products by name: which servers a study may name by a word, and what a server's version calls itself.


DISTRIBUTION = "mariadb"  # the distribution's own
NO_SERVER = "none"  # what is measured stands on the filesystem alone
PROVISIONED = ("mariadb-10.5", "mariadb-10.11", "mariadb-11.4", "mariadb-11.8", "mysql-5.5", "mysql-5.6", "mysql-5.7",
               "mysql-8.0", "mysql-9")  # fmt: skip
# Of a vendor's archive, by its whole version: "mariadb-10.6.21".
OF_ARCHIVE = re.compile(r"(mariadb|mysql|percona)-[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}")
# Series of which no registry that dbdyno asks has builds: of each the newest that was added from an archive.
NOT_SERVED = ("mariadb-10.6", "mysql-8.4", "percona-8.0", "percona-8.4")


def not_served(*names: str) -> str:
    """What to do about servers that people ask for and no registry has."""
    return (
        f"{listed(names)}: no package registry that dbdyno asks has a build; give the vendor's archive: dbdyno "
        "servers add URL|FILE --sha256 HEX"
    )


def product_name(version: str, comment: str) -> str:
    """Return ``"MariaDB 10.11.6"`` of what a server says of itself in ``version`` and ``version_comment``."""
    number = version.partition("-")[0]
    if "mariadb" in version.lower():
        return f"MariaDB {number}"
    return f"Percona Server {number}" if "percona" in comment.lower() else f"MySQL {number}"


def is_of_mysql(server: str) -> bool:
    """Whether a study's word for a server names one of MySQL's or Percona's; of a path nothing is known."""
    return server.startswith(("mysql-", "percona-"))
