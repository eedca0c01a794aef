"""Studies of an external server: nothing of it is restarted, all is put back, and its password is nowhere."""

import json
import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from tests.external_server import DATABASE, PASSWORD, USER, running_server
from tests.support import dbdyno, journal_lines, start_dbdyno, wait_for

pytestmark = pytest.mark.host

STUDY = """\
version = 1
[study]
title = "an external server"
[stack]
server = "{url}"
{stack}
[server]
{server}
[server.settings]
{settings}
[workload]
kind = "slap"
clients = 2
{workload}
[design]
interference = "note"
blocks = 2
"""
WRITES = 'load = "write"\nqueries = 200\nwarmup = "0s"'
FLUSH = "innodb_flush_log_at_trx_commit = [1, 2]"


@pytest.fixture(scope="module")
def server():
    with running_server() as one:
        yield one


@pytest.fixture(autouse=True)
def _known(monkeypatch):
    """The password, where dbdyno looks for it."""
    monkeypatch.setenv("DBDYNO_PASSWORD", PASSWORD)


@pytest.fixture
def study(study_file, server):
    def write(*, url=None, **fields):
        given = {"stack": "", "server": "", "settings": FLUSH, "workload": WRITES}
        return study_file(STUDY.format(url=url or server.url(), **{**given, **fields}))

    return write


def untouched(server):
    """Whether the server is as it was before."""
    return server.tables() == [] and server.variable("innodb_flush_log_at_trx_commit") == 1


def trials(into):
    return [json.loads(path.read_text()) for path in sorted(into.glob("trials/*/trial.json"))]


class Spy(threading.Thread):
    """Reads every process's command line until it is told to stop."""

    def __init__(self):
        super().__init__()
        self.looks, self.seen, self.enough = 0, [], threading.Event()

    def run(self):
        while not self.enough.wait(0.02):
            self.looks += 1
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    if PASSWORD.encode() in (line := path.read_bytes()):
                        self.seen.append(line)
                except OSError:
                    continue


def holding(folder, secret):
    return [path for path in folder.rglob("*") if path.is_file() and secret in path.read_bytes()]


def test_a_setting_that_needs_no_restart_is_measured_and_put_back(server, study, state, tmp_path):
    spy = Spy()
    spy.start()
    done = dbdyno("run", study(), "--into", tmp_path / "run", "--details", state=state)
    spy.enough.set()
    spy.join()
    assert done.returncode == 0, done.stderr
    assert spy.looks > 20
    assert spy.seen == []
    assert holding(tmp_path / "run", PASSWORD.encode()) == holding(state, PASSWORD.encode()) == []
    assert untouched(server)
    found = trials(tmp_path / "run")
    assert len(found) == 4
    for trial in found:
        told = trial["observed"]["server"]
        wanted = {"t1": "1", "t2": "2"}[trial["treatment"]]
        assert told["innodb_flush_log_at_trx_commit"] == wanted
        assert told["version"] == server.variable("version")
        assert told["hostname"] == server.variable("hostname")
        assert (told["local"], told["process"]) == (True, "unknown")
        assert trial["observed"]["data"]["loaded"] == "anew for each trial"
        assert trial["observed"]["tables"]["engine"] == "InnoDB"
        assert trial["disturbance"] == trial["device"] == trial["space"] == {}
        assert "server_cpu_us_per_query" not in trial["metrics"]
        assert not {"server_process", "foreign"} & trial["probes"].keys()
    assert "The data was loaded anew for each trial" in " ".join(done.stdout.split())
    assert "These are unknown, too, because its process is out of sight: the server's CPU" in " ".join(
        done.stdout.split()
    )


def test_by_its_socket_its_process_is_watched_and_what_is_only_read_is_loaded_once(server, study, state, tmp_path):
    secret = tmp_path / "secret.cnf"
    secret.write_text(f'[client]\nuser = {USER}\npassword = "{PASSWORD}"\n', encoding="utf-8")
    secret.chmod(0o600)
    reads = 'load = "key"\nautoincrement = true\nqueries = [20000, 30000]\nwarmup = "0s"'
    text = study(url=server.url(by="socket"), server='option_file = "secret.cnf"', settings="", workload=reads)
    before = int(server.ask("SHOW GLOBAL STATUS LIKE 'Com_create_table'")[0][1])
    done = dbdyno("run", text, "--into", tmp_path / "run", "--details", state=state)
    assert done.returncode == 0, done.stderr
    assert holding(tmp_path / "run", PASSWORD.encode()) == []
    tables_made = int(server.ask("SHOW GLOBAL STATUS LIKE 'Com_create_table'")[0][1]) - before
    assert tables_made == 2  # the mark, and the data once for all four trials
    for trial in trials(tmp_path / "run"):
        assert trial["observed"]["server"]["process"] == "found"
        assert trial["metrics"]["server_cpu_us_per_query"] > 0
        assert trial["disturbance"]["foreign_cpu"] >= 0
    assert "loaded once, as the load only reads" in " ".join(done.stdout.split())
    assert untouched(server)


LOADS = {
    "smack": 'kind = "smack"\nload = "update"\nrows = 200\nevents = 50',
    "oltp": 'kind = "oltp"\ntable_size = 200\nevents = 20',
    "ledger": 'kind = "ledger"\nevents = 20',
    "tpcc": 'kind = "tpcc"\nevents = 20',
    "ingest": 'kind = "ingest"\nrows = 400\nrows_per_call = 100',
    "bulk": 'kind = "bulk"\ntables = 2\ntable_size = 300',
    "script": 'kind = "script"\nfile = "own.sql"\nevents = 20',
    "replay-log": 'kind = "replay-log"\nfile = "own.log"\nsetup = "own.sql"\nwrites = true',
}
COUNTS = "UPDATE own SET n = n + 1 WHERE id = 1"
SCRIPT = """\
-- setup:
CREATE TABLE own (id INT PRIMARY KEY, n INT);
CREATE VIEW seen AS SELECT n FROM own;
INSERT INTO own VALUES (1, 0);
-- name: count
UPDATE own SET n = n + 1 WHERE id = 1;
"""


@pytest.mark.drawn(3)
@pytest.mark.parametrize("kind", LOADS)
def test_every_load_runs_in_the_database_it_was_lent_and_leaves_it_empty(kind, server, study, state, tmp_path):
    (tmp_path / "own.sql").write_text(SCRIPT, encoding="utf-8")
    (tmp_path / "own.log").write_text(f"2026-11-23T12:59:07.302048Z\t    7 Query\t{COUNTS}\n", encoding="utf-8")
    text = (
        study(settings="", workload=LOADS[kind]).read_text().replace('kind = "slap"\n', "").replace("clients = 2", "")
    )
    path = tmp_path / "other.toml"
    path.write_text(text.replace("blocks = 2", "blocks = 1"), encoding="utf-8")
    done = dbdyno("run", path, "--into", tmp_path / "run", state=state)
    assert done.returncode == 0, done.stderr + done.stdout
    assert len(trials(tmp_path / "run")) == 1
    assert untouched(server)
    assert DATABASE in [row[0] for row in server.ask("SHOW DATABASES")]


def test_somebodys_table_is_never_touched(server, study, state, tmp_path):
    server.ask(f"CREATE TABLE {DATABASE}.sbtest1 (precious INT)")
    try:
        for verb in (["plan", study()], ["run", study(), "--into", tmp_path / "run"]):
            done = dbdyno(*verb, state=state)
            assert done.returncode == 2
            said = " ".join((done.stdout + done.stderr).split())
            assert f"the database {DATABASE} holds the table sbtest1, which dbdyno did not make in this study" in said
        assert server.tables() == ["sbtest1"]
    finally:
        server.ask(f"DROP TABLE {DATABASE}.sbtest1")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("no_such_thing = 1", "no_such_thing: the server has no such variable"),
        ("max_conections = 5", 'max_conections: the server has no such variable. Did you mean "max_connections"?'),
        ('general_log_file = "x.log"', "general_log_file: takes text, which could name a file"),
        ('init_connect = "SELECT 1"', "init_connect: takes text"),
        ("port = [3306, 3307]", "port: it can be set only where the server is started"),
        ("autocommit = 7", "autocommit: Variable 'autocommit' can't be set to the value of '7'"),
    ],
)
def test_what_cant_be_set_while_it_runs_is_refused_by_name(settings, said, server, study, state):
    done = dbdyno("plan", study(settings=settings), state=state)
    assert done.returncode == 2
    assert f"server.settings.{said}" in " ".join(done.stdout.split())
    assert untouched(server)


def test_a_value_that_the_server_changes_fails_the_trial_and_is_put_back(server, study, state, tmp_path):
    before = server.variable("max_connections")
    done = dbdyno("run", study(settings="max_connections = 1_000_000"), "--into", tmp_path / "run", state=state)
    assert done.returncode == 1
    assert "server.settings.max_connections: asked for 1000000, the server took" in " ".join(done.stderr.split())
    assert server.variable("max_connections") == before
    assert untouched(server)


def test_without_the_password_the_message_says_where_to_put_it(server, study, state, monkeypatch):
    monkeypatch.delenv("DBDYNO_PASSWORD", raising=False)
    done = dbdyno("plan", study(), state=state)
    assert done.returncode == 2
    said = " ".join(done.stdout.split())
    assert f"127.0.0.1:{server.port} does not let {USER} in: Access denied" in said
    assert "set DBDYNO_PASSWORD to its password, or name a file that holds it in server.option_file" in said


@pytest.mark.parametrize("line", [3, 5, 7])
def test_sigkill_then_restore_leaves_the_server_as_it_was(line, server, study, state, monkeypatch):
    run = start_dbdyno("run", study(), "--into", state / "run", state=state)
    wait_for(lambda: journal_lines(state) >= line or run.poll() is not None)
    run.kill()
    run.communicate()
    monkeypatch.delenv("DBDYNO_PASSWORD")
    if not untouched(server):
        refused = dbdyno("restore", state=state)
        assert refused.returncode == 1
        assert "set DBDYNO_PASSWORD to its password" in refused.stdout
        assert not untouched(server)
    monkeypatch.setenv("DBDYNO_PASSWORD", PASSWORD)
    done = dbdyno("restore", state=state)
    assert done.returncode == 0, done.stdout + done.stderr
    assert untouched(server)


def test_a_server_that_vanishes_ends_the_run_and_is_put_back_when_it_is_there_again(study, state, tmp_path):
    with running_server() as server:
        writes = 'load = "write"\nduration = "20s"\nwarmup = "0s"'
        text = study(url=server.url(), workload=writes)
        run = start_dbdyno("run", text, "--into", tmp_path / "run", state=state)
        wait_for(lambda: "t1" in server.tables() and server.ask(f"SELECT COUNT(*) FROM {DATABASE}.t1")[0][0] > 200)
        server.kill()
        said, _ = run.communicate(timeout=120)
        assert run.returncode == 1
        assert "lost" in said.lower() or "connect" in said.lower()
        gone = dbdyno("restore", state=state)
        assert gone.returncode == 1
        assert f"the server at 127.0.0.1:{server.port} does not answer" in " ".join(gone.stdout.split())
        server.start()
        assert server.tables() != []
        assert dbdyno("restore", state=state).returncode == 0
        assert untouched(server)


def test_two_runs_do_not_share_a_database(server, study, state, tmp_path):
    with server.lock_of_another_run():
        done = dbdyno("run", study(), "--into", tmp_path / "run", "--details", state=state)
    assert done.returncode == 1
    assert f"another dbdyno works in the database {DATABASE}" in " ".join(done.stderr.split())
    assert untouched(server)


@pytest.fixture
def certificate():
    """A folder with cert.pem and key.pem that the server's user may read."""
    folder = Path("/tmp") / f"ddtls-{os.getpid()}"
    folder.mkdir()
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subject += ["-addext", "basicConstraints=critical,CA:FALSE", "-days", "2"]
    made = ["openssl", "req", "-x509", "-nodes", "-newkey", "rsa:2048", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run([*made, *subject], cwd=folder, check=True, capture_output=True)
    (folder / "key.pem").chmod(0o644)
    yield folder
    shutil.rmtree(folder)


def test_a_server_that_requires_tls(certificate, study, state, tmp_path):
    files = [f"--ssl-cert={certificate}/cert.pem", f"--ssl-key={certificate}/key.pem"]
    with running_server(*files, "--require-secure-transport=ON") as server:
        verified = server.url(more=f"?ssl-mode=verify_identity&ssl-ca={certificate}/cert.pem")
        done = dbdyno("run", study(url=verified), "--into", tmp_path / "run", state=state)
        assert done.returncode == 0, done.stderr
        assert {trial["observed"]["server"]["tls"] for trial in trials(tmp_path / "run")} == {"TLSv1.3"}
        assert untouched(server)
        plain = dbdyno("plan", study(url=server.url(more="?ssl-mode=disabled")), state=state)
        assert plain.returncode == 2
        assert "if it takes encrypted connections only, add ?ssl-mode=required" in plain.stdout


def test_tls_that_the_server_does_not_have_is_refused(server, study, state):
    done = dbdyno("plan", study(url=server.url(more="?ssl-mode=required")), state=state)
    assert done.returncode == 2
    assert "SSL is required but the server doesn't support it" in " ".join(done.stdout.split())
