"""An option file of a server: what a study takes of it, what it leaves out, and that no secret gets through."""

import os
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import UserError
from dbdyno.mysql.my_cnf import DEPTH_MAX, read_options, server_groups
from dbdyno.study.load import load_study
from dbdyno.study.new_study import NewStudyRequest, new_study


@pytest.fixture
def options(tmp_path):
    def read(text, **others):
        for name, content in others.items():
            (tmp_path / f"{name}.cnf").write_text(content, encoding="utf-8")
        (tmp_path / "my.cnf").write_text(text, encoding="utf-8")
        return read_options(tmp_path / "my.cnf")

    return read


def left(found):
    return {one.name: one.reason for one in found.left_out}


WRITTEN = {
    "innodb-io-capacity=200": {"innodb_io_capacity": 200},
    "  innodb_io_capacity =  200   # a comment": {"innodb_io_capacity": 200},
    "innodb_buffer_pool_size = 8G": {"innodb_buffer_pool_size": "8G"},
    "INNODB_Flush_Method = O_DIRECT": {"innodb_flush_method": "O_DIRECT"},
    'sql_mode = "STRICT_TRANS_TABLES,NO_ZERO_DATE"': {"sql_mode": "STRICT_TRANS_TABLES,NO_ZERO_DATE"},
    "sql_mode = 'A#B'": None,  # a # inside quotes is no comment, and then no mode has it
    "innodb_file_per_table": {"innodb_file_per_table": True},
    "innodb_file_per_table = OFF": {"innodb_file_per_table": False},
    "skip-log-bin": {"log_bin": False},
    "skip-name-resolve": {"skip_name_resolve": True},
    "skip-innodb-doublewrite": {"innodb_doublewrite": False},
    "skip-innodb-doublewrite = 0": {"innodb_doublewrite": True},
    "disable-log-bin": {"log_bin": False},
    "enable_slow_query_log": {"slow_query_log": True},
    "loose-innodb-numa-interleave=ON": {"innodb_numa_interleave": True},
    "loose_skip_log_bin": {"log_bin": False},
    "log-bin = /var/lib/mysql/bin": {"log_bin": True},
    "max_connections = 100\n[client]\nmax_connections = 3\n[server]\nmax_connections=200": {"max_connections": 200},
    "autoset_max_connections = 100": {"max_connections": 100},
    r'sql_mode = "STRICT_TRANS_TABLES\,ANSI"': None,  # a backslash that is no escape stays
    "sql_mode=STRICT_TRANS_TABLES#as before": {"sql_mode": "STRICT_TRANS_TABLES"},
    "sql_mode = 'ANSI' # as before": {"sql_mode": "ANSI"},
    "; max_connections = 100": {},
    "optimizer_switch = mrr=on\noptimizer-switch = 'index_merge=off'": {"optimizer_switch": "mrr=on,index_merge=off"},
    "sql_mode = ANSI\nsql_mode = TRADITIONAL": {"sql_mode": "TRADITIONAL"},
    "innodb_io_capacity = 2\\\n": None,
}


@pytest.mark.parametrize("text", WRITTEN)
def test_an_option_is_read_as_a_server_reads_it(options, text):
    found = options(f"[mysqld]\n{text}\n")
    expected = WRITTEN[text]
    assert found.settings == (expected or {})
    assert (expected is None) == any(one.name != "[client]" for one in found.left_out)


@pytest.mark.parametrize("group", ["mysqld", "server", "mariadb", "mariadbd", "MYSQLD", "galera", "client-server"])
def test_the_groups_of_a_server_are_read(options, group):
    assert options(f"[{group}]\nsync_binlog = 1\n").settings == {"sync_binlog": 1}


@pytest.mark.parametrize("group", ["client", "mysqldump", "mysqld_safe", "mysql", "mysqld_multi"])
def test_the_groups_of_others_are_not_and_each_is_named_once(options, group):
    found = options(f"[{group}]\nsync_binlog = 1\n[mysqld]\n[{group}]\nsync_binlog=0\n")
    assert found.settings == {}
    assert [(one.name, one.place) for one in found.left_out] == [(f"[{group}]", "my.cnf:1")]
    assert left(found) == {f"[{group}]": "is for other programs than the server"}


def test_what_stands_in_no_group_is_said(options):
    assert left(options("sync_binlog = 0\n[mysqld]\n"))["[]"].startswith("is before the first group")


def test_the_groups_of_another_version_and_of_one_of_several_servers_are_said(options):
    found = left(options("[mysqld-8.0]\nsync_binlog = 1\n[mysqld2]\nsync_binlog = 1\n"))
    assert found["[mysqld-8.0]"] == "is for servers of one version only"
    assert found["[mysqld2]"].endswith("--defaults-group-suffix=2 reads it, too")


@pytest.mark.parametrize(
    ("version", "suffix", "group", "is_read"),
    [
        ("10.11.6-MariaDB", "", "mariadb-10.11", True),
        ("10.11.6-MariaDB", "", "mysqld-10.11", True),
        ("10.11.6-MariaDB", "", "mariadb-10.6", False),
        ("10.11.6-MariaDB", "", "galera", True),
        ("8.4.2", "", "mysqld-8.4", True),
        ("8.4.2", "", "galera", False),
        ("8.4.2", "", "mariadb", False),
        ("", "", "galera", True),
        ("8.4.2", "2", "mysqld2", True),
        ("8.4.2", "_Shop", "mysqld_shop", True),
        ("8.4.2", "_Shop", "mysqld_other", False),
    ],
)
def test_a_server_reads_the_groups_of_its_product_version_and_suffix(tmp_path, version, suffix, group, is_read):
    file = tmp_path / "my.cnf"
    file.write_text(f"[{group}]\nsync_binlog = 1\n")
    found = read_options(file, server_groups(version, suffix))
    assert found.settings == ({"sync_binlog": 1} if is_read else {})


LEFT_OUT = {
    "datadir = /var/lib/mysql": ("datadir", "names a file or an address"),
    "user = mysql": ("user", "is set by dbdyno: it decides how the server is started"),
    "port = 3306": ("port", "where clients find the server does not change what is measured"),
    "bind-address = 127.0.0.1": ("bind_address", "is set by dbdyno: it decides who may reach the server"),
    "socket = my.sock": ("socket", "is set by dbdyno"),
    "slow_query_log_file = slow.log": ("slow_query_log_file", "takes text"),
    "innodb_data_file_path = ibdata1:12M:autoextend": ("innodb_data_file_path", "takes text"),
    "plugin-load-add = x": ("plugin_load_add", "is set by dbdyno"),
    "server-id = 3": ("server_id", "is for replication"),
    "relay_log_purge = 1": ("relay_log_purge", "is for replication"),
    "maximum-sort-buffer-size = 1M": ("maximum_sort_buffer_size", "limits what sessions may set"),
    "sql_mode = a!b": ("sql_mode", "has a value that a study can't give"),
    "init_connect =": ("init_connect", "has no value"),
    "!incldue x": ("!incldue", "is neither !include nor !includedir"),
    "!include no.cnf": ("!include no.cnf", "can't be read: No such file or directory"),
    "!includedir no": ("!includedir no", "can't be read: No such file or directory"),
}


@pytest.mark.parametrize("text", LEFT_OUT)
def test_what_a_study_cannot_have_is_left_out_with_the_reason(options, text):
    found = options(f"[mysqld]\n{text}\n")
    name, reason = LEFT_OUT[text]
    assert found.settings == {}
    assert [(one.name, one.place) for one in found.left_out] == [(name, "my.cnf:2")]
    assert found.left_out[0].reason.startswith(reason)


SECRETS = [
    "password = {}", "master-password = {}", "report_password = {}", "wsrep_sst_auth = root:{}", "password {}",
    "init_connect = \"SET PASSWORD = '{}'\"", "ssl_key = {}", "loose-validate-password = {}", "some_secret_token={}",
    "authentication_string = {}", "mysqlx_{} = 1", "tls_private_thing = {}", "aws_key_id={}",
]  # fmt: skip


@given(st.sampled_from(SECRETS), st.from_regex(r"[a-z0-9]{8,12}", fullmatch=True))
def test_nothing_that_may_be_a_secret_gets_into_a_study_or_a_message(tmp_path_factory, line, secret):
    file = tmp_path_factory.mktemp("cnf") / "my.cnf"
    file.write_text(f"[mysqld]\nsync_binlog = 1\n{line.format(secret)}\n", encoding="utf-8")
    found = read_options(file)
    assert found.settings == {"sync_binlog": 1}
    assert len(found.left_out) == 1
    if "mysqlx" not in line:  # there it is the name of the option
        assert secret not in f"{found} {new_study(NewStudyRequest(), found, 'my.cnf')}"


def test_files_are_included_in_their_order_and_the_last_word_counts(options, tmp_path):
    (tmp_path / "conf.d").mkdir()
    for name, number in (("b.cnf", 2), ("a.cnf", 1), ("c.txt", 3)):
        (tmp_path / "conf.d" / name).write_text(f"[mysqld]\nsync_binlog = {number}\n")
    found = options("[mysqld]\nsync_binlog = 9\n!includedir conf.d\n")
    assert found.settings == {"sync_binlog": 2}
    assert found.places == {"sync_binlog": "b.cnf:2"}


def test_a_link_to_itself_is_left_out(options, tmp_path):
    (tmp_path / "loop.cnf").symlink_to("loop.cnf")
    assert left(options("!include loop.cnf\n"))["!include loop.cnf"].startswith("can't be read")


def test_files_that_include_each_other_end(options):
    found = options("!include other.cnf\n[mysqld]\nsync_binlog = 1\n", other="!include my.cnf\n")
    assert found.settings == {"sync_binlog": 1}
    assert left(found)["!include my.cnf"].startswith("is not read: a file is read once")


def test_a_long_chain_of_files_ends(options):
    chain = {f"f{n}": f"[mysqld]\nloose_x{n} = 1\n!include f{n + 1}.cnf\n" for n in range(DEPTH_MAX + 5)}
    assert len(options("!include f0.cnf\n", **chain).settings) == DEPTH_MAX - 1


def test_a_pipe_that_is_included_does_not_hold_it_up(options, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert left(options("!include pipe\n")) == {"!include pipe": "can't be read: it is not a regular file"}


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UserError, match=r"^--from .*no.cnf: can't be read: No such file or directory$"):
        read_options(tmp_path / "no.cnf")


@given(st.text(max_size=300))
def test_any_text_gives_a_study_or_none_but_no_crash(tmp_path_factory, text):
    file = tmp_path_factory.mktemp("cnf") / "my.cnf"
    file.write_text(f"[mysqld]\n{text}", encoding="utf-8", newline="")
    found = read_options(file)
    assert tomllib.loads(new_study(NewStudyRequest(), found, file.name))["version"] == 1


def test_the_study_compares_the_file_with_the_defaults(options, tmp_path):
    found = options("[mysqld]\ninnodb_io_capacity = 2000\nsql_mode = ANSI\nport = 1\n")
    study = tmp_path / "study.toml"
    study.write_text(new_study(NewStudyRequest(), found, "my.cnf"), encoding="utf-8")
    (defaults, bare), (ours, full) = load_study(study).combinations()
    assert (defaults, ours) == ({"configuration": "defaults"}, {"configuration": "as in my.cnf"})
    assert bare.server.settings == {}
    assert full.server.settings == {"innodb_io_capacity": 2000, "sql_mode": "ANSI"}
    assert "#   my.cnf:4 port: where clients find" in study.read_text()


def test_or_varies_fields_on_top_of_the_file(options, tmp_path):
    found = options("[mysqld]\ninnodb_io_capacity = 2000\nsync_binlog = 1\n")
    study = tmp_path / "study.toml"
    asked = NewStudyRequest(vary=["sync_binlog=0,1", "scheduler=none,bfq"], device="ssd-sata", server="mysql-9")
    study.write_text(new_study(asked, found, "my.cnf"), encoding="utf-8")
    specs = [spec for _, spec in load_study(study).combinations()]
    assert [(spec.stack.scheduler, spec.server.settings) for spec in specs] == [
        (scheduler, {"innodb_io_capacity": 2000, "sync_binlog": sync})
        for scheduler in ("none", "bfq")
        for sync in (0, 1)
    ]


def test_a_file_with_an_odd_name_gives_a_level_that_can_be(options, tmp_path):
    study = tmp_path / "study.toml"
    study.write_text(new_study(NewStudyRequest(), options("[mysqld]\nsync_binlog = 1\n"), "x\n" * 50), encoding="utf-8")
    assert load_study(study).factors[0].labels() == ["defaults", "as in the file"]
