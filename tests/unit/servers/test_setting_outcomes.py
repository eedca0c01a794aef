"""What a server made of settings: from what it shows of them and from its error log, as servers write both."""

import pytest

from dbdyno.servers.mysql.setting_outcomes import not_granted, refusal, setting_outcomes

WORDS = {
    "query_cache_type": ("OFF", "ON", "DEMAND"),
    "innodb_flush_method": ("fsync", "O_DSYNC", "littlesync", "nosync", "O_DIRECT", "O_DIRECT_NO_FSYNC"),
    "log_output": ("NONE", "FILE", "TABLE"),
}
FLAGS = "index_merge=off,mrr=on,mrr_cost_based=off,semijoin=on"
TOOK = [
    ("innodb_buffer_pool_size", "1G", "1073741824", "as asked"),
    ("group_concat_max_len", "18446744073709551615", "18446744073709551615", "as asked"),
    ("group_concat_max_len", "18446744073709551615", "18446744073709551614", "adjusted"),
    ("long_query_time", 0.5, "0.500000", "as asked"),
    ("innodb_max_dirty_pages_pct", "66.66666667", "66.666667", "as asked"),
    ("slow_query_log", True, "ON", "as asked"),
    ("slow_query_log", "1", "ON", "as asked"),
    ("optimizer_switch", "mrr=on,index_merge=off", FLAGS, "as asked"),
    ("optimizer_switch", "default,mrr=on", FLAGS, "as asked"),
    ("optimizer_switch", "mrr=off", FLAGS, "adjusted"),
    ("character_set_server", "utf8", "utf8mb3", "another name"),
    ("character_set_server", "utf8", "utf8mb4", "another name"),
    ("character_set_server", "latin1", "utf8mb3", "adjusted"),
    ("collation_server", "utf8_general_ci", "utf8mb3_general_ci", "another name"),
    ("collation_server", "utf8_bin", "utf8mb3_general_ci", "adjusted"),
    ("default_storage_engine", "innodb", "InnoDB", "as asked"),
    ("default_storage_engine", "HEAP", "MEMORY", "another name"),
    ("sql_mode", "STRICT_TRANS_TABLES,NO_ZERO_DATE", "NO_ZERO_DATE,STRICT_TRANS_TABLES", "another name"),
    ("sql_mode", "ANSI", "REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ANSI", "another name"),
    ("sql_mode", "NO_ZERO_DATE", "NO_ZERO_DATE,STRICT_TRANS_TABLES", "adjusted"),
    ("sql_mode", "", "STRICT_TRANS_TABLES", "adjusted"),
    ("query_cache_type", 2, "DEMAND", "another name"),
    ("query_cache_type", 1, "DEMAND", "adjusted"),
    ("innodb_flush_method", 0, "fsync", "another name"),
    ("concurrent_insert", 2, "ALWAYS", "another name"),  # of which a server's help gives no list
    ("binlog_format", "ROW", "ROW", "as asked"),
    ("binlog_format", "mix", "MIXED", "another name"),
    ("binlog_format", "ROW", "STATEMENT", "adjusted"),
    ("log_output", "TABLE,FILE", "FILE,TABLE", "another name"),
    ("performance_schema_digests_size", -1, "10000", "another name"),
    ("innodb_file_per_table", 2, "OFF", "adjusted"),
    ("tmp_table_size", 2000000000, "1999994880", "adjusted"),
    ("innodb_read_io_threads", 16, "160", "adjusted"),
]


@pytest.mark.parametrize(("name", "asked", "shown", "how"), TOOK)
def test_a_setting_is_held_against_what_the_server_shows(name, asked, shown, how):
    (one,) = setting_outcomes({name: asked}, {name: shown}, "", WORDS)
    assert (one.how, one.got, one.holds) == (how, shown, how != "adjusted")


ADJUSTED = [  # by MariaDB 10.11, MySQL 9, MySQL 5.7
    "2026-11-28 13:50:53 0 [Warning] option 'max_allowed_packet': unsigned value 2147483648 adjusted to 1073741824",
    "2026-11-28 13:44:27 0 [Warning] Buffered warning: option 'max_allowed_packet': unsigned value 2147483648 adjusted",
    "2026-11-28T14:01:02.717073Z 0 [Warning] [MY-013096] [Server] option 'max_allowed_packet': unsigned value 2147",
    "2020-01-01T00:00:00.000000Z 0 [Warning] option 'max-allowed-packet': unsigned value 2147483648 adjusted",
]


@pytest.mark.parametrize("line", ADJUSTED)
def test_what_the_server_says_of_it_is_told_without_time_and_thread(line):
    (one,) = setting_outcomes({"max_allowed_packet": "2G"}, {"max_allowed_packet": "1073741824"}, f"[Note] a\n{line}\n")
    assert one.said.lower().startswith("option 'max")
    assert one.text.startswith("asked for 2G, the server took 1073741824 (option 'max")


def test_minus_one_that_is_adjusted_aloud_is_no_other_name():
    log = "2026-01-01 1:00:00 0 [Warning] option 'max_connections': value -1 adjusted to 10\n"
    (one,) = setting_outcomes({"max_connections": -1}, {"max_connections": "10"}, log)
    assert one.how == "adjusted"


def test_what_the_limit_of_open_files_decides_is_told_so():
    log = (
        "2026-11-28 13:50:59 0 [Warning] Could not increase number of max_open_files to more than 20000 (request: 99)\n"
        "2026-11-28 13:50:59 0 [Warning] Changed limits: max_open_files: 20000  max_connections: 16770 (was 100000)\n"
    )
    shown = {"max_connections": "16770", "table_open_cache": "200", "open_files_limit": "20000", "back_log": "80"}
    asked = {"max_connections": 200000, "table_open_cache": 1000000, "open_files_limit": 5000000, "back_log": 900000}
    found = {one.name: one for one in setting_outcomes(asked, shown, log)}
    assert [one.how for one in found.values()] == ["limited", "limited", "limited", "adjusted"]
    assert "by how many files it may open (Could not increase" in found["table_open_cache"].text


def test_an_option_that_is_no_variable_cannot_be_read_back():
    log = "[Warning] 'innodb-file-format' was removed. It does nothing now and exists only for compatibility\n"
    (one,) = setting_outcomes({"innodb_file_format": "Barracuda"}, {}, log)
    assert (one.how, one.holds) == ("unknown", False)
    assert "It does nothing now" in one.text


LACKING = [
    "[Warning] mariadbd: Couldn't allocate 130023424 bytes (Large/HugeTLB memory page size 2097152); errno 12",
    "0 [Warning] [MY-012681] [InnoDB] large_page_aligned_alloc mmap(138412032 bytes) failed; errno 12",
    "[Warning] InnoDB: HugeTLB: Warning: Failed to allocate 138412032 bytes. errno 1",
    "[Warning] Using conventional memory pool",
]


@pytest.mark.parametrize("line", LACKING)
def test_pages_that_the_host_does_not_give_are_not_granted_though_the_variable_is_on(line):
    shown = {"large_pages": "ON", "large_page_size": "2097152"}
    (one,) = setting_outcomes({"large_pages": True}, shown, f"2026-11-28 13:44:27 0 {line}\n")
    assert (one.how, one.holds) == ("not granted", True)
    assert not_granted({**shown, "large_pages": "OFF"}, line) == {}
    assert [one.how for one in setting_outcomes({"large_pages": False}, {"large_pages": "OFF"}, line)] == ["as asked"]


def test_a_larger_page_that_is_refused_is_no_lack_where_the_usual_one_is_given():
    line = (
        "[Warning] mariadbd: Couldn't allocate 4294967296 bytes (Large/HugeTLB memory page size 1073741824); errno 12"
    )
    assert not_granted({"large_pages": "ON", "large_page_size": "2097152"}, line) == {}


def test_other_things_that_a_host_does_not_give():
    log = (
        "[Warning] InnoDB: Failed to set O_DIRECT on file ./ibdata1; CREATE: Invalid argument, continuing anyway.\n"
        "[Warning] InnoDB: Failed to set NUMA memory policy of buffer pool page frames to MPOL_INTERLEAVE: Operation\n"
    )
    shown = {"innodb_flush_method": "O_DIRECT", "innodb_numa_interleave": "ON"}
    assert set(not_granted(shown, log)) == set(shown)
    assert set(not_granted({**shown, "innodb_numa_interleave": "OFF"}, log)) == {"innodb_flush_method"}


REFUSED = {
    "2026-11-28 13:50:51 0 [ERROR] /usr/sbin/mariadbd: Error while setting value 'ROOW' to 'binlog_format'": (
        "binlog_format",
        "Error while setting value 'ROOW' to 'binlog_format'",
    ),
    "2026-01-01T00:00:00.0Z 0 [ERROR] [MY-000067] [Server] unknown variable 'innodb-page-siz=4k'.": (
        "innodb_page_siz",
        "unknown variable 'innodb-page-siz=4k'",
    ),
    "2026-11-28 0 [ERROR] InnoDB: cannot enable encryption, encryption plugin is not available": (
        "innodb_encrypt_tables",
        "InnoDB: cannot enable encryption, encryption plugin is not available",
    ),
    "0 [ERROR] InnoDB: Invalid page size=7168": ("innodb_page_size", "InnoDB: Invalid page size=7168"),
    "0 [ERROR] InnoDB: compression algorithm snappy (6) is not available. Please, load the provider plugin": (
        "innodb_compression_algorithm",
        "InnoDB: compression algorithm snappy (6) is not available. Please, load the provider plugin",
    ),
    "/usr/sbin/mariadbd: Character set 'foo' is not a compiled character set": (
        "character_set_server",
        "Character set 'foo' is not a compiled character set",
    ),
    "0 [ERROR] InnoDB: Something went wrong": ("", "InnoDB: Something went wrong"),
    "0 [Note] InnoDB: innodb_page_size=16384": ("", ""),
}


@pytest.mark.parametrize("line", REFUSED)
def test_the_setting_that_a_server_would_not_start_with_is_found_in_its_log(line):
    asked = dict.fromkeys(("binlog_format", "innodb_page_siz", "innodb_encrypt_tables", "innodb_page_size"), 1)
    asked |= {"innodb_compression_algorithm": "snappy", "character_set_server": "foo"}
    assert refusal(f"{line}\n2026-11-28 0 [ERROR] Aborting\n", asked) == REFUSED[line]
