"""A server's command line, the causes found in its log, and what counts as an installation."""

import gc
import json
import os
import pwd
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.errors import TrialError, UserError
from dbdyno.servers import user
from dbdyno.servers.contract import NotStartedError
from dbdyno.servers.mysql import server as process
from dbdyno.servers.mysql.encryption import COMPONENT, KEY_FILE, KEYRING, Key, encryption_mistakes, give_key
from dbdyno.servers.mysql.own import PLACES, place_mistakes, server_command, setting_options
from dbdyno.servers.sources.installation import Installation, find_server
from dbdyno.study.schema import PlaceSection

INSTALLATION = Installation("mariadb", Path("/usr"), Path("/usr/sbin/mariadbd"), "11.4.2-MariaDB", "mariadb")
MYSQL = Installation("mysql-9", Path("/t/usr"), Path("/t/usr/sbin/mysqld"), "9.7.4", "mysql", ("/t/ld.so", "--x"))


def options(settings, installation=INSTALLATION, engine="innodb"):
    return server_command(installation, Path("/d"), Path("/s/server.sock"), Path("/s/error.log"), settings, engine)


def test_the_command_line_is_private_and_holds_every_setting():
    assert options(
        {"innodb_buffer_pool_size": "256M", "sync_binlog": True, "log_bin": False, "long_query_time": 0.5}
    ) == [
        "/usr/sbin/mariadbd",
        "--no-defaults",
        "--innodb-buffer-pool-size=256M",
        "--sync-binlog=ON",
        "--skip-log-bin",
        "--long-query-time=0.5",
        "--datadir=/d",
        "--socket=/s/server.sock",
        "--tmpdir=/d",
        "--pid-file=/d/server.pid",
        "--log-error=/s/error.log",
        "--skip-name-resolve",
        "--skip-networking",
        "--basedir=/usr",
    ]


def test_a_tree_of_its_own_is_run_by_its_own_loader_and_mysql_s_other_door_is_shut():
    argv = options({}, MYSQL)
    assert argv[:4] == ["/t/ld.so", "--x", "/t/usr/sbin/mysqld", "--no-defaults"]
    assert {"--mysqlx=OFF", "--secure-file-priv=NULL", "--skip-networking", "--basedir=/t/usr"} <= set(argv)
    assert not any(word.startswith(("--mysqlx", "--secure")) for word in options({}))
    old = replace(MYSQL, version="5.5.9")
    assert not any(word.startswith(("--mysqlx", "--secure")) for word in options({}, old)), "it knows neither"


def test_a_binary_log_is_not_called_on_or_off_nor_by_the_host_s_name():
    assert setting_options({"log_bin": True}) == ["--log-bin=binlog"]
    assert setting_options({"log_bin": False}) == ["--skip-log-bin"]


def test_tcp_only_where_a_port_is_asked_for():
    assert "--skip-networking" in options({})
    assert "--skip-networking" not in options({"port": 3307})
    assert "--port=3307" in options({"port": 3307})
    assert "--bind-address=127.0.0.1" in options({"port": 3307})


def test_where_the_data_lies_is_ours_to_say_whatever_the_settings_hold():
    argv = options({"datadir": "/var/lib/mysql"})
    assert argv.index("--datadir=/d") > argv.index("--datadir=/var/lib/mysql"), "the last one wins"


def test_options_of_the_host_never_come_in():
    assert options({"defaults_file": "/etc/my.cnf"})[1] == "--no-defaults"  # which must be the first


STAMP = "2025-11-21 21:00:00 0 "


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        (
            f"{STAMP}[Note] starting\n{STAMP}[ERROR] /usr/sbin/mariadbd: unknown variable 'innodb_bufer=1'\n",
            "the server does not know the setting innodb_bufer=1",
        ),
        (
            f"{STAMP}[ERROR] /usr/sbin/mariadbd: unknown option '--skip-foo'\n{STAMP}[ERROR] Aborting\n",
            "the server does not know the setting --skip-foo",
        ),
        (
            f"{STAMP}[ERROR] Can't start server: Bind on TCP/IP port. Got error: 98: Address already in use\n",
            "the TCP port is taken by another server; choose another port or leave it out",
        ),
        (
            f"{STAMP}[ERROR] Can't start server : Bind on unix socket: Address already in use\n",
            "the socket is taken by another server",
        ),
        (
            f"{STAMP}[ERROR] Do you already have another server running on socket: /s ?\n",
            "the socket is taken by another server",
        ),
        (f"{STAMP}[ERROR] mariadbd: Disk is full writing './x' (Errcode: 28)\n", "the disk is full"),
        (f"{STAMP}[ERROR] InnoDB: Write to file ./ibdata1 failed: No space left on device\n", "the disk is full"),
        (
            f"{STAMP}[ERROR] InnoDB: Cannot allocate memory for the buffer pool\n",
            "the server found too little memory; look at stack.memory",
        ),
        (f"{STAMP}[Note] a\n{STAMP}[ERROR] Unknown engine\n{STAMP}[ERROR] Aborting\n", "Unknown engine"),
        (f"{STAMP}[ERROR] \x1b[31mred\n", "[31mred"),
        (f"{STAMP}[ERROR] {'x' * 1000}\n", f"{'x' * 300} ... (700 more bytes)"),
        (f"{STAMP}[Note] ready for connections\n\n", f"its log ends with: {STAMP}[Note] ready for connections"),
        ("\n \n", "its error log is empty"),
        ("", "its error log is empty"),
    ],
)
def test_the_cause_in_a_log(tmp_path, log, cause):
    path = tmp_path / "error.log"
    path.write_text(log)
    assert process.cause_in(path) == cause


def test_a_log_that_was_never_written(tmp_path):
    assert process.cause_in(tmp_path / "error.log") == "it left no error log"


def test_a_log_that_is_not_utf8(tmp_path):
    (tmp_path / "error.log").write_bytes(b"[ERROR] caf\xe9\n")
    assert process.cause_in(tmp_path / "error.log") == "caf\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("script", "how"), [("exit 7", "exit 7"), ("kill -9 $$", "killed by signal SIGKILL"), ("exit 0", "exit 0")]
)
def test_a_server_that_ends_while_starting_says_how_and_why(tmp_path, script, how):
    (tmp_path / "error.log").write_text("[ERROR] bad data\n")
    ended = subprocess.Popen(["sh", "-c", script])
    with pytest.raises(TrialError) as failed:
        process.await_ready(ended, tmp_path / "no.sock", tmp_path / "error.log")
    assert str(failed.value) == f"the server ended while starting ({how}): bad data"


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # pymysql leaves failed connections to the collector
@pytest.mark.parametrize("limit_seconds", [None, 0.2])
def test_a_server_that_never_answers_is_given_up(tmp_path, monkeypatch, limit_seconds):
    monkeypatch.setattr(process, "START_SECONDS", 0.1)
    silent, took = subprocess.Popen(["sleep", "60"]), f"{limit_seconds or 0.1:g} s"
    try:
        with pytest.raises(
            NotStartedError, match=f"the server does not answer after {took}: it left no error"
        ) as given_up:
            process.await_ready(silent, tmp_path / "no.sock", tmp_path / "error.log", limit_seconds)
        assert given_up.value.code is None
    finally:
        process.stop(silent)
    assert silent.returncode == -signal.SIGTERM
    gc.collect()


def test_a_server_that_will_not_stop_is_killed(monkeypatch):
    monkeypatch.setattr(process, "STOP_SECONDS", 0.1)
    with subprocess.Popen(
        ["sh", "-c", "trap '' TERM; echo; while :; do sleep .05; done"], stdout=subprocess.PIPE
    ) as stubborn:
        stubborn.stdout.readline()
        process.stop(stubborn)
        assert stubborn.returncode == -signal.SIGKILL
        process.stop(stubborn)  # a second time does no harm


def test_a_server_never_runs_as_root(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    argv = user.unprivileged(["mariadbd"], Path("/cg"))
    assert argv[:4] == ["/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', "/cg/cgroup.procs"]
    assert argv[4] == "setpriv"
    assert argv[5] == f"--reuid={pwd.getpwnam('nobody').pw_uid}", "not mysql: it may write production data"
    assert argv[7:] == ["--clear-groups", "--", "mariadbd"]
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert user.unprivileged(["mariadbd"]) == ["mariadbd"]


def test_a_log_is_read_only_where_it_is_a_file_of_the_server(tmp_path):
    log, secret = tmp_path / "error.log", tmp_path / "secret"
    secret.write_bytes(b"root:x:0")
    log.symlink_to(secret)
    assert user.read_log(log) is None
    log.unlink()
    log.hardlink_to(secret)
    assert user.read_log(log) is None
    log.unlink()
    os.mkfifo(log)
    assert user.read_log(log) is None
    log.unlink()
    log.write_bytes(b"a" + bytes(user.LOG_BYTES_MAX))
    assert len(user.read_log(log)) == user.LOG_BYTES_MAX


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Make an unpacked tree whose server says what it is told to."""
    # The server's user may not enter pytest's own folder.
    monkeypatch.setattr("dbdyno.servers.user.unprivileged", lambda argv: argv)

    def make(
        says='echo "mariadbd  Ver 11.4.2-MariaDB for Linux on x86_64"', *, daemon="bin/mariadbd", sql=True, mode=0o755
    ):
        path = tmp_path / daemon
        path.parent.mkdir(parents=True)
        path.write_text(f"#!/bin/sh\n{says}\n")
        path.chmod(mode)
        (tmp_path / "share/english").mkdir(parents=True)
        (tmp_path / "share/english/errmsg.sys").write_text("")
        for name in ("system_tables", "system_tables_data") if sql else ():
            (tmp_path / f"share/mariadb_{name}.sql").write_text("")
        return str(tmp_path)

    return make


def refusal(name):
    with pytest.raises(UserError) as refused:
        find_server(name)
    return str(refused.value)


def test_an_unpacked_tree(tree, tmp_path):
    name = tree()
    found = find_server(name)
    assert found == Installation(name, tmp_path, tmp_path / "bin/mariadbd", "11.4.2-MariaDB", "mariadb")
    assert [path.name for path in found.system_tables()] == [
        "mariadb_system_tables.sql",
        "mariadb_system_tables_data.sql",
    ]
    assert found.release == (11, 4, 2)
    assert f"--lc-messages-dir={tmp_path}/share" in found.command()


def test_a_tree_that_was_replaced_is_another_build(tree):
    found = find_server(tree())
    before = found.identity
    found.daemon.write_bytes(found.daemon.read_bytes() + b"\n")
    assert found.identity != before


def test_an_unpacked_mysql(tree, tmp_path):
    says = 'echo "$0  Ver 8.4.3 for Linux on x86_64 (MySQL Community Server - GPL)"'
    found = find_server(tree(says, daemon="bin/mysqld", sql=False))
    assert (found.product, found.version, found.title) == ("mysql", "8.4.3", "MySQL 8.4.3")
    assert found.daemon == tmp_path / "bin/mysqld"


def test_a_tree_that_brings_its_libraries(tree, tmp_path):
    name = tree()
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/libaio.so.1").write_bytes(b"")
    assert find_server(name).command()[:2] == ["/usr/bin/env", f"LD_LIBRARY_PATH={tmp_path}/lib"]


def test_a_distribution_s_version_is_kept_whole(tree):
    name = tree('echo "mysqld  Ver 10.11.6-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)"')
    assert find_server(name).version == "10.11.6-MariaDB-0+deb12u1"


def test_a_folder_without_a_server(tmp_path):
    assert refusal(str(tmp_path)) == (
        f"stack.server: '{tmp_path}': no mariadbd or mysqld under {tmp_path}; "
        "name the folder of an unpacked MariaDB or MySQL, the one that holds bin/"
    )


def test_a_folder_without_system_tables(tree, tmp_path):
    name = tree(sql=False)
    assert refusal(name).startswith(f"stack.server: '{name}': no SQL of the system tables under {tmp_path}/share; ")


def test_another_product_is_not_measured(tree, tmp_path):
    assert refusal(tree('echo "postgres Ver 16.1"')) == (
        f"stack.server: {tmp_path}/bin/mariadbd does not report a MariaDB or MySQL version; "
        "it said: 'postgres Ver 16.1'"
    )


def test_a_server_that_says_nothing_is_not_measured(tree):
    assert refusal(tree("echo broken >&2; exit 127")).endswith(
        "does not report a MariaDB or MySQL version; it said: 'broken'"
    )


def test_a_server_that_does_not_run(tree, tmp_path):
    assert refusal(tree(mode=0o644)).startswith(f"stack.server: {tmp_path}/bin/mariadbd does not run: ")


@pytest.mark.usefixtures("state")
def test_a_server_that_was_not_provisioned():
    assert refusal("mysql-9") == "stack.server: mysql-9 is not on this host; get it: dbdyno servers add mysql-9"
    assert refusal("mysql-9/../../etc").startswith("stack.server: mysql-9/../../etc is not on this host")


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ("innodb", ""),
        ("InnoDB", ""),
        ("aria", ""),
        ("tokudb", "MariaDB 11.4.2 ({}) has no engine tokudb; it has innodb, myisam, aria, memory, csv, mrg_myisam"),
        (
            "inodb",
            (
                "MariaDB 11.4.2 ({}) has no engine inodb; it has innodb, myisam, aria, memory, csv, mrg_myisam"
                '. Did you mean "innodb"?'
            ),
        ),
        ("rocksdb", "MariaDB 11.4.2 ({}) has no engine rocksdb; it has innodb, myisam, aria, memory, csv, mrg_myisam"),
    ],
)
def test_an_engine_is_refused_where_it_is_known_to_be_lacking(tree, engine, said):
    name = tree()
    assert find_server(name).lacks(engine) == said.format(name)


def test_an_engine_that_is_a_module_is_loaded_before_its_settings_are_read(tree, tmp_path):
    name = tree()
    (tmp_path / "lib/plugin").mkdir(parents=True)
    for module in ("ha_rocksdb.so", "ha_connect.so"):
        (tmp_path / "lib/plugin" / module).write_bytes(b"")
    found = find_server(name)
    assert found.lacks("rocksdb") == ""
    argv = options({"rocksdb_block_size": 4096}, found, "rocksdb")
    assert argv.index("--plugin-load-add=ha_rocksdb.so") < argv.index("--rocksdb-block-size=4096")
    assert found.module_of("connect") is None, "it may touch other data than the server's own"
    assert not any("plugin-load" in word for word in options({}, found))


def test_mysql_has_no_aria(tree):
    says = 'echo "mysqld  Ver 5.5.9 for Linux on x86_64"'
    assert find_server(tree(says)).lacks("aria").startswith("MySQL 5.5.9 (")


# A server that encrypts gets a key of its own; one that can't is refused with the reason.


ON = {"innodb_encrypt_tables": True, "innodb_encrypt_log": False, "innodb_buffer_pool_size": "64M"}
MYSQL_ON = {"default_table_encryption": True, "binlog_encryption": "OFF"}


def test_a_key_file_is_made_where_a_setting_encrypts(tmp_path):
    server = Installation("a", tmp_path, tmp_path / "bin/mariadbd", "10.6.21-MariaDB", "mariadb")
    assert "needs the module file_key_management" in encryption_mistakes(server, ON)["innodb_encrypt_tables"]
    assert list(encryption_mistakes(server, ON)) == ["innodb_encrypt_tables"]
    (tmp_path / "lib/plugin").mkdir(parents=True)
    (tmp_path / "lib/plugin/file_key_management.so").touch()
    server = Installation("b", tmp_path, tmp_path / "bin/mariadbd", "10.6.21-MariaDB", "mariadb")
    assert encryption_mistakes(server, ON) == {}
    assert give_key(server, {**ON, "innodb_encrypt_tables": "OFF"}, tmp_path, tmp_path / "data") == Key()
    assert not (tmp_path / KEY_FILE).exists()
    key = give_key(server, ON, tmp_path, tmp_path / "data")
    options = ("--plugin-load-add=file_key_management", f"--file-key-management-filename={tmp_path / KEY_FILE}")
    assert key == Key(options)
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o777 == 0o600


def test_mysql_without_the_component_is_refused(tmp_path):
    server = Installation("c", tmp_path, tmp_path / "bin/mysqld", "8.4.5", "mysql")
    why = encryption_mistakes(server, MYSQL_ON)
    assert list(why) == ["default_table_encryption"]
    assert (
        "needs the component component_keyring_file, which MySQL 8.4.5 (c) has not" in why["default_table_encryption"]
    )
    assert give_key(server, MYSQL_ON, tmp_path, tmp_path / "data") == Key()


def test_mysql_gets_a_keyring_by_links_and_what_is_shared_stays_as_it_is(tmp_path):
    tree, scratch = tmp_path / "tree", tmp_path / "scratch"
    for folder in (tree / "bin", tree / "lib/plugin", scratch):
        folder.mkdir(parents=True)
    for name in (COMPONENT, "component_query_attributes"):
        (tree / f"lib/plugin/{name}.so").touch()
    (tree / "bin/mysqld").touch()
    server = Installation("d", tree, tree / "bin/mysqld", "9.7.4", "mysql")
    before = sorted(tree.rglob("*"))
    assert encryption_mistakes(server, MYSQL_ON) == {}
    key = give_key(server, MYSQL_ON, scratch, scratch / "data")
    assert give_key(server, MYSQL_ON, scratch, scratch / "data") == key, "a server is started more than once"
    assert give_key(server, MYSQL_ON, scratch, scratch / "replica") != key
    assert (key.daemon.resolve(), key.options) == (tree / "bin/mysqld", ())
    assert json.loads((key.daemon.parent / "mysqld.my").read_text()) == {"components": f"file://{COMPONENT}"}
    assert (
        key.plugins / "component_query_attributes.so"
    ).resolve() == tree / "lib/plugin/component_query_attributes.so"
    cnf = json.loads((key.plugins / f"{COMPONENT}.cnf").read_text())
    assert cnf == {"path": str(scratch / "data" / KEYRING), "read_only": False}
    command = server.command("--x", daemon=key.daemon, plugins=key.plugins)
    assert command[0] == str(key.daemon)
    assert [word for word in command if word.startswith("--plugin-dir")] == [f"--plugin-dir={key.plugins}"]
    assert sorted(tree.rglob("*")) == before


# What of a server may lie on a disk of its own: the variables, and what each product and version lacks.


OLD_MARIADB = replace(INSTALLATION, version="10.11.6-MariaDB")


def mysql(version: str) -> Installation:
    return replace(MYSQL, version=version)


def test_every_place_of_a_study_has_a_variable():
    assert set(PlaceSection.model_fields) == set(PLACES)


def test_folders_are_named_as_they_lie_to_the_data_since_servers_keep_them():
    data, disk = Path("/scratch/a/mnt/server"), Path("/scratch/a/disk-log/mnt/server")
    places = {purpose: disk / purpose for purpose in PLACES}
    argv = server_command(MYSQL, data, Path("/s"), Path("/l"), {"log_bin": True}, "innodb", None, places)
    beside = "../../disk-log/mnt/server"
    assert [argument for argument in argv if "disk-log" in argument] == [
        f"--tmpdir={disk}/tmpdir",
        f"--innodb-log-group-home-dir={beside}/innodb_log",
        f"--log-bin={beside}/binlog/binlog",
        f"--innodb-undo-directory={beside}/undo",
        f"--innodb-doublewrite-dir={beside}/doublewrite",
    ]
    assert argv.index("--log-bin=binlog") < argv.index(f"--log-bin={beside}/binlog/binlog"), "the last one counts"


@pytest.mark.parametrize(
    ("installation", "settings", "lacking"),
    [
        (OLD_MARIADB, {}, {"binlog", "undo", "doublewrite"}),
        (OLD_MARIADB, {"log_bin": True, "innodb_undo_tablespaces": 3}, {"doublewrite"}),
        (INSTALLATION, {"log_bin": True}, {"doublewrite"}),
        (mysql("5.5.62"), {"innodb_undo_tablespaces": 2}, {"binlog", "undo", "doublewrite"}),
        (mysql("5.7.44"), {"log_bin": True}, {"undo", "doublewrite"}),
        (mysql("8.0.19"), {}, {"doublewrite"}),
        (mysql("8.0.36"), {}, set()),
        (mysql("9.7.4"), {"log_bin": False, "innodb_doublewrite": "OFF"}, {"binlog", "doublewrite"}),
    ],
)
def test_what_a_server_lacks_is_said_with_its_remedy(installation, settings, lacking):
    mistakes = place_mistakes(installation, settings, PLACES)
    assert mistakes.keys() == lacking
    assert all(text.endswith("leave it out") for text in mistakes.values())
