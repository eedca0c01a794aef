"""Which of a server's variables a study may set, as far as their names and values show without asking a server.

A study is untrusted text, and the server may run beside a production server. A variable that takes a number, a
switch or one of a few words changes how the server works on its own data: each may be set but for the few below. One
that takes free text names a file, a folder, a module, an address, a command or an account: only ``TEXTS`` may be set.
``servers.settings`` knows from the server's own list of which kind a variable is.
"""

import re

from dbdyno.filesystems.kind import words
from dbdyno.study.section import Setting

_STARTED = "is set by dbdyno: it decides how the server is started"
_REACHED = "is set by dbdyno: it decides who may reach the server, and whom it calls"
_FILES = "is set by dbdyno: it decides which files the server touches"
_CODE = "is set by dbdyno: it decides what the server loads"
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
                     "symbolic_links", "tmpdir"), _FILES),
    **dict.fromkeys(("allow_suspicious_udfs", "early_plugin_load", "plugin_load", "plugin_load_add",
                     "plugin_maturity"), _CODE),
    **dict.fromkeys(("core_file", "log_syslog", "log_syslog_facility", "log_syslog_include_pid", "log_syslog_tag"),
                    _LEAVES),
}  # fmt: skip
_REFUSED_STARTS = {"admin_": _REACHED, "defaults_": _STARTED, "feedback": _REACHED, "keyring_": _CODE,
                   "loose_": _STARTED, "mysqlx": _REACHED, "ndb": _REACHED, "wsrep_": _REACHED}  # fmt: skip

# Words, and names of character sets, engines and counters. Most are enumerations, which MySQL's help does not
# distinguish from free text; the server refuses any other word.
TEXTS = words("""
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
_CF_OPTIONS = words("""
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


def setting_mistake(name: str, value: Setting) -> str | None:
    """What is wrong with a server setting, whatever the server; ``None`` if nothing."""
    start = next((reason for start, reason in _REFUSED_STARTS.items() if name.startswith(start)), None)
    if refused := _REFUSED.get(name) or start:
        return refused
    if isinstance(value, str) and "/" in value:
        return f"is {value!r}; a setting must not name a file: the server's files are dbdyno's to place"
    if name == "log_bin" and not isinstance(value, bool):
        return "may be true or false; dbdyno names its files"
    return None


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
