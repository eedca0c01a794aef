"""Names and values of settings beside the variables that a server says it has, before it is started."""

import gzip
import json
from pathlib import Path

import pytest

from dbdyno.errors import HostError, UserError
from dbdyno.mysql.settings import TEXTS, setting_mistake
from dbdyno.servers.mysql import own as settings
from dbdyno.servers.mysql import own as variables
from dbdyno.servers.mysql.built_in import built_in_settings, product_and_release
from dbdyno.servers.mysql.own import Variable, in_help, misset, variables_of
from dbdyno.servers.mysql.server import VALUE_MAX, VARIABLES_MAX, comparable
from dbdyno.servers.products import unasked_settings
from dbdyno.servers.sources.installation import find_server
from dbdyno.servers.user import answer
from dbdyno.stack.layer import StackContext
from dbdyno.stack.layers.server import ServerLayer

KEPT = Path(__file__).parent / "kept_help"
# As --verbose --help of these builds printed it, without the values; MyRocks's module was loaded where there is one.
PRODUCTS = ("mariadb-11.8", "mysql-5.5", "mysql-9")

SHORTENED = [
    "plugin_load_ad", "base", "sock", "bind_addres", "innodb_log_group_home_di", "innodb_data_file_pat", "datadi",
    "general_log_fil", "secure_file_pri", "init_connec", "init_fil", "tmpdi", "pid_fil", "innodb_buffer_pool_siz",
]  # fmt: skip
PREFIXED = [
    "skip_networkin", "skip_grant_table", "skip_innodb_doublewrite", "enable_local_infile", "disable_log_bin",
    "disable_secure_file_priv", "maximum_max_connections", "loose_innodb_data_home_dir", "loose_plugin_load",
]  # fmt: skip
FREE_TEXT = [
    "init_connect", "report_host", "report_user", "replicate_do_db", "general_log_file", "innodb_data_home_dir",
    "lc_messages", "log_error", "master_info_file", "plugin_dir", "relay_log", "ssl_ca", "slow_query_log_file",
    "innodb_data_file_path", "innodb_undo_directory",
]  # fmt: skip
DANGEROUS = [
    "skip_grant_tables", "skip_networking", "bootstrap", "core_file", "local_infile", "allow_suspicious_udfs",
    "symbolic_links", "help", "version", "verbose", "console",
]  # fmt: skip


@pytest.fixture(scope="module", params=["mariadb", *PRODUCTS])
def known(request):
    """What a server has: the distribution's as it is here, others as they said."""
    if request.param == "mariadb":
        return variables_of(find_server("mariadb"), "innodb")
    return kept(request.param)


def kept(product):
    return in_help(gzip.decompress((KEPT / f"{product}.txt.gz").read_bytes()).decode())


@pytest.fixture
def said(known, monkeypatch):
    """What is said against a setting of that server."""
    monkeypatch.setattr(settings, "variables_of", lambda *_: known)
    return lambda name, value: misset(find_server("mariadb"), "innodb", {name: value}).get(name)


@pytest.mark.parametrize("name", SHORTENED)
def test_the_beginning_of_a_name_is_no_name(said, name):
    assert "server variable" in said(name, "x")


@pytest.mark.parametrize("name", PREFIXED)
def test_nor_is_one_with_a_prefix_that_the_option_parser_takes(said, name):
    assert said(name, 1) is not None


@pytest.mark.parametrize("name", FREE_TEXT)
def test_what_takes_free_text_is_refused_unless_it_is_known_to_be_harmless(said, name):
    assert said(name, "x") is not None
    assert said(name, 1) is not None, "a file may be called 1"


@pytest.mark.parametrize("name", DANGEROUS)
def test_switches_that_open_a_door_or_leave_something_behind_are_refused(said, name):
    assert said(name, value=True) is not None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("innodb_buffer_pool_size", "256M"), ("innodb_buffer_pool_size", 268435456), ("innodb_io_capacity", 200),
        ("innodb_flush_log_at_trx_commit", 2), ("sync_binlog", 0), ("log_bin", False), ("log_bin", True),
        ("innodb_flush_method", "O_DIRECT"), ("sql_mode", "ANSI,TRADITIONAL"), ("sql_mode", ""),
        ("character_set_server", "utf8mb4"), ("transaction_isolation", "READ-COMMITTED"), ("port", 3307),
        ("innodb_file_per_table", True), ("general_log", "ON"), ("long_query_time", 0.5), ("key_buffer_size", "16M"),
        ("optimizer_switch", "index_merge=off,engine_condition_pushdown=on"), ("max_connections", 500),
        ("default_storage_engine", "myisam"), ("binlog_format", "ROW"), ("innodb_thread_sleep_delay", 1),
    ],
)  # fmt: skip
def test_what_changes_how_the_server_works_may_be_said(said, known, name, value):
    assert name not in known or said(name, value) is None


def test_every_number_and_switch_but_a_few_may_be_set(said, known):
    plain = {name: one.kind for name, one in known.items() if one.kind in {"number", "switch"} and name.islower()}
    refused = {name for name in plain if said(name, 1)}
    assert len(plain) > 200
    others = ("wsrep_", "ndb", "mysqlx", "feedback", "admin_", "keyring_")
    assert {name for name in refused if not name.startswith(others)} <= {
        "allow_suspicious_udfs", "bootstrap", "console", "core_file", "create_admin_listener_thread", "daemonize",
        "debug_gdb", "extra_port", "flashback", "gdb", "getopt_prefix_matching", "help", "initialize",
        "initialize_insecure", "local_infile", "rpl_semi_sync_master_enabled", "rpl_semi_sync_source_enabled",
        "skip_grant_tables", "skip_networking", "symbolic_links", "validate_config", "verbose", "version",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("innodb_buffer_pool_size", "256MB", 'is "256MB"; give a number, or a size such as "256M"'),
        ("innodb_buffer_pool_size", "..", 'is ".."; give a number'),
        ("innodb_io_capacity", True, "is true; give a number"),
        ("innodb_file_per_table", "maybe", 'is "maybe"; give true or false'),
        ("log_bin", "elsewhere", "may be true or false"),
        ("character_set_server", "a\\b", "holds a character"),
        ("innodb_buffer_pol_size", 1, 'Did you mean "innodb_buffer_pool_size"?'),
    ],
)
def test_a_value_of_another_kind_is_refused_by_name(said, name, value, words):
    assert words in said(name, value)


def test_mariadb_tells_the_words_of_an_enumeration_and_of_a_set():
    known = kept("mariadb-11.8")
    assert known["innodb_flush_method"] == Variable(
        "choice", ("fsync", "O_DSYNC", "littlesync", "nosync", "O_DIRECT", "O_DIRECT_NO_FSYNC")
    )
    assert known["log_output"] == Variable("set", ("NONE", "FILE", "TABLE", "ALL"))
    assert known["feedback"].kind == known["archive" if "archive" in known else "innodb_trx"].kind == "plugin"
    assert all(" " not in word for one in known.values() for word in one.choices)


def test_a_word_that_is_none_of_an_enumeration_s_is_refused_with_the_nearest():
    found = find_server("mariadb")
    said = misset(found, "innodb", {"innodb_flush_method": "O_DIRCT", "sql_mode": "ANSI,TRADITONAL"})
    assert said["innodb_flush_method"].endswith('O_DIRECT, O_DIRECT_NO_FSYNC. Did you mean "O_DIRECT"?')
    assert said["sql_mode"].endswith('Did you mean "TRADITIONAL"?')


def test_a_plugin_is_not_the_study_s_to_switch_on():
    found = find_server("mariadb")
    for name in ("feedback", "unix_socket", "innodb_trx"):
        assert "is set by dbdyno" in misset(found, "innodb", {name: "ON"})[name]


@pytest.mark.parametrize(
    ("value", "word"),
    [
        ("write_buffer_size=16m;block_based_table_factory={block_size=4k;filter_policy=bloomfilter:10:false}", None),
        ("compression=kLZ4Compression;compression_opts=-14:4:0", None),
        ("wal_dir=x", "'wal_dir'"),
        ("block_based_table_factory={persistent_cache={path=x}}", "'persistent_cache'"),
        ("comparator=x", "'comparator'"),
    ],
)
def test_of_rocksdb_s_own_options_those_that_name_nothing_may_be_given(monkeypatch, value, word):
    monkeypatch.setattr(settings, "variables_of", lambda *_: kept("mariadb-11.8"))
    said = misset(find_server("mariadb"), "rocksdb", {"rocksdb_default_cf_options": value})
    assert word in said["rocksdb_default_cf_options"] if word else not said


def test_no_harmless_text_is_refused_for_its_name():
    assert {name for name in TEXTS if setting_mistake(name, "x")} == set()


def test_a_server_of_our_own_is_not_even_started_with_another(tmp_path):
    layer = ServerLayer(
        find_server("mariadb"), {"plugin_load_ad": "x"}, "innodb", 1, install=True, log=tmp_path / "log"
    )
    below = StackContext(scratch=tmp_path, journal=None, directory=tmp_path)
    with (
        pytest.raises(HostError, match=r"server.settings.plugin_load_ad: is not a .* server variable"),
        layer.raised(below),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_what_a_server_said_is_kept_in_a_state_folder_that_there_is(state, monkeypatch):
    found = find_server("mariadb")
    variables._variables.cache_clear()
    variables_of(found, "innodb")
    assert not state.exists(), "looking makes none"
    state.mkdir(mode=0o700)
    variables._variables.cache_clear()
    told = variables_of(found, "innodb")
    (file,) = (state / "variables").iterdir()
    monkeypatch.setattr(variables, "answer", lambda *_: pytest.fail("it was asked again"))
    variables._variables.cache_clear()
    assert variables_of(found, "innodb") == told
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "base": ["number", []]}))
    state.chmod(0o777)
    variables._variables.cache_clear()
    with pytest.raises(pytest.fail.Exception):
        variables_of(found, "innodb")
    variables._variables.cache_clear()


def test_a_server_that_tells_nothing_is_no_server_for_settings(state, monkeypatch):
    assert not state.exists()
    variables._variables.cache_clear()
    monkeypatch.setattr(variables, "answer", lambda *_: b"--verbose --help\n")
    with pytest.raises(UserError, match="does not list its variables"):
        misset(find_server("mariadb"), "innodb", {"max_connections": 5})


def test_a_program_asked_is_bounded_in_size_and_time():
    assert 100_000 <= len(answer(["yes"], "stdout", 20, 100_000)) <= 200_000
    assert answer(["sleep", "1000"], "both", 0.2, 100) == b""
    assert answer(["sh", "-c", "echo in; echo err >&2"], "stderr", 20, 100) == b"err\n"


def test_what_a_server_does_unasked_is_what_it_says_itself():
    argv = find_server("mariadb").command("--verbose", "--help", "--datadir=/nonexistent")
    said = answer(argv, "stdout", variables.HELP_SECONDS, variables.HELP_BYTES_MAX).decode()
    rows = (line.split(None, 1) for line in said.partition("\nVariables (")[2].splitlines())
    told = {row[0].replace("-", "_"): row[1].strip() for row in rows if len(row) == 2}
    assert (told.pop("log_bin"), told.pop("innodb_doublewrite")) == ("(No default value)", "TRUE")
    known = unasked_settings("mariadb")
    assert (known["log_bin"], known["innodb_doublewrite"]) == ("OFF", "ON"), "as the running server shows them"
    assert {name: value for name, value in known.items() if name in told}.items() <= told.items()


@pytest.mark.parametrize(
    ("server", "log_bin", "sync_binlog", "innodb_flush_method"),
    [
        ("mysql-5.5", "OFF", "0", "fsync"),
        ("mysql-5.7", "OFF", "1", "fsync"),
        ("mysql-8.0", "ON", "1", "fsync"),
        ("mysql-9", "ON", "1", "O_DIRECT"),
        ("mariadb-10.5", "OFF", "0", "fsync"),
        ("mariadb-11.8", "OFF", "0", "O_DIRECT"),
    ],
)
def test_what_a_server_does_unasked_is_known_by_its_name(server, log_bin, sync_binlog, innodb_flush_method):
    found = unasked_settings(server)
    assert (found["log_bin"], found["sync_binlog"], found["innodb_flush_method"]) == (
        log_bin,
        sync_binlog,
        innodb_flush_method,
    )


def test_a_change_within_a_series_counts_from_its_release_on():
    assert built_in_settings("mysql", (5, 7, 6))["sync_binlog"] == "0"
    assert built_in_settings("mysql", (5, 7, 7))["sync_binlog"] == "1"
    assert product_and_release("percona-8.0") is None
    assert [unasked_settings(name) for name in ("mysql://u@db1/bench", "/nowhere", "none")] == [{}, {}, {}]


# The variables by which servers are compared: settings, and nothing that differs between two starts of one server.


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
