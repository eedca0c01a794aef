"""The variables by which servers are compared: settings, and nothing that differs between two starts of one server."""

from dbdyno.servers.mysql.server import VALUE_MAX, VARIABLES_MAX, comparable

SHOWN = {
    "innodb_flush_method": "fsync",
    "innodb_data_file_path": "ibdata1:12M:autoextend",
    "innodb_log_file_size": "50331648",
    "innodb_file_per_table": "ON",
    "ft_stopword_file": "(built-in)",
    "datadir": "/tmp/x/",
    "tmpdir": "/tmp",
    "pid_file": "/tmp/x.pid",
    "socket": "/tmp/s",
    "port": "3306",
    "hostname": "db1",
    "server_uuid": "9f-0a",
    "server_id": "1",
    "version": "8.0.33",
    "version_comment": "built by me",
    "innodb_version": "8.0.33",
    "timestamp": "1700000000.5",
    "gtid_executed": "9f-0a:1-5",
    "innodb_undo_directory": "./",
    "performance_schema": "ON",
    "performance_schema_accounts_size": "-1",
    "optimizer_switch": "index_merge=on,mrr=off",
    "sql_mode": "A,B\x1b[31m\nC",
}


def test_settings_are_kept_and_places_builds_and_moments_are_not():
    assert comparable(SHOWN) == {
        "innodb_flush_method": "fsync",
        "innodb_data_file_path": "ibdata1:12M:autoextend",
        "innodb_log_file_size": "50331648",
        "innodb_file_per_table": "ON",
        "performance_schema": "ON",
        "optimizer_switch.index_merge": "on",
        "optimizer_switch.mrr": "off",
        "sql_mode": "A,B [31m C",
    }


def test_what_is_kept_of_a_server_is_bounded():
    found = comparable({f"a{place}": "x" * 5000 for place in range(5000)})
    assert len(found) == VARIABLES_MAX
    assert {len(value) for value in found.values()} == {VALUE_MAX}
