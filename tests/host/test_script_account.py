"""A script on an external server: it may change the database that it was lent, and the server sees to that."""

import json

import pytest

from tests.external_server import DATABASE, PASSWORD, USER, running_server
from tests.sampled import some
from tests.support import dbdyno, start_dbdyno, wait_for

pytestmark = pytest.mark.host

STUDY = """\
version = 1
[study]
title = "a script on an external server"
[stack]
server = "{url}"
[server]
{server}
[workload]
kind = "script"
file = "own.sql"
clients = 2
warmup = "0s"
{amount}
[design]
interference = "note"
blocks = 1
"""
OWN = """\
-- setup:
CREATE TABLE own (i INT PRIMARY KEY, n INT);
INSERT INTO own VALUES (1, 0), (2, 0);
CREATE VIEW seen AS SELECT n FROM own;
CREATE PROCEDURE wipe() DELETE FROM theirs.items;
DELIMITER //
CREATE FUNCTION wiping() RETURNS INT BEGIN DELETE FROM theirs.items; RETURN 1; END//
CREATE PROCEDURE count_up() UPDATE own SET n = n + 1 WHERE i = 1//
DELIMITER ;
-- name: a
"""


@pytest.fixture(scope="module")
def server():
    with running_server() as one:
        one.ask("CREATE DATABASE theirs")
        one.ask("CREATE TABLE theirs.items (i INT PRIMARY KEY)")
        one.ask("INSERT INTO theirs.items VALUES (1), (2), (3)")
        yield one


@pytest.fixture(autouse=True)
def _known(monkeypatch):
    """The password, where dbdyno looks for it."""
    monkeypatch.setenv("DBDYNO_PASSWORD", PASSWORD)


@pytest.fixture
def study(study_file, server, tmp_path):
    def write(sql, *, given="", amount="events = 20", url=None):
        (tmp_path / "own.sql").write_text(sql, encoding="utf-8")
        return study_file(STUDY.format(url=url or server.url(), server=given, amount=amount))

    return write


def accounts(server):
    return sorted(server.ask("SELECT User, Host FROM mysql.user WHERE User LIKE 'dbdyno%'"))


def state_of(server):
    """All that a script must leave as it was."""
    variables = dict(server.ask("SHOW GLOBAL VARIABLES"))
    return {
        "databases": server.ask("SHOW DATABASES"),
        "rows": server.ask("CHECKSUM TABLE theirs.items"),
        "tables": server.ask("SHOW TABLES FROM theirs"),
        "lent": server.tables(),
        "rights": sorted(server.ask("SELECT User, Host, Db FROM mysql.db")),
        "users": sorted(server.ask("SELECT User, Host FROM mysql.user")),
        "variables": {name: value for name, value in variables.items() if "gtid" not in name},
    }


TRIGGER = "CREATE TRIGGER t AFTER UPDATE ON own FOR EACH ROW DELETE FROM theirs.items"
WAYS = {
    "DELETE in a block": OWN + "DELETE FROM theirs.items;\n",
    "DROP in a block": OWN + "DROP TABLE theirs.items;\n",
    "PREPARE": OWN + "EXECUTE IMMEDIATE 'DELETE FROM theirs.items';\n",
    "a compound statement": OWN + "BEGIN NOT ATOMIC DELETE FROM theirs.items; END;\n",
    "CALL": OWN + "CALL wipe();\n",
    "a function": OWN + "SELECT wiping();\n",
    "a view": OWN + "CREATE VIEW others AS SELECT i FROM theirs.items;\n",
    "DELETE of several tables": OWN + "DELETE a FROM theirs.items a JOIN own USING (i);\n",
    "UPDATE of several tables": OWN + "UPDATE own JOIN theirs.items a USING (i) SET a.i = 9;\n",
    "LOAD DATA": OWN + "LOAD DATA INFILE '/etc/hostname' INTO TABLE theirs.items;\n",
    "the connect section": "-- connect:\nDELETE FROM theirs.items;\n" + OWN + "DO 1;\n",
    "the setup section": "-- setup:\nDELETE FROM theirs.items;\n" + OWN + "DO 1;\n",
    "a global variable": OWN + "SET GLOBAL max_connections = 77;\n",
    "a trigger": OWN.replace("-- name", f"{TRIGGER};\n-- name") + "UPDATE own SET n = 1 WHERE i = 1;\n",
}


@pytest.mark.parametrize("way", some("ways", WAYS, 0.4))
def test_nothing_but_its_database_is_changed(way, server, study, state, tmp_path):
    before = state_of(server)
    done = dbdyno("run", study(WAYS[way]), "--into", tmp_path / "run", state=state)
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 1, said
    assert "the script's account may change only its own schema lent" in said
    assert "whole_server_may_change = true" in said
    assert state_of(server) == before


def test_what_prepare_made_acts_for_the_same_account_in_every_trial(server, study, state, tmp_path):
    before = state_of(server)
    text = study(OWN + "CALL count_up();\nSELECT n FROM seen;\n").read_text().replace("blocks = 1", "blocks = 2")
    path = tmp_path / "twice.toml"
    path.write_text(text.replace("clients = 2", "clients = [1, 2]"), encoding="utf-8")
    done = dbdyno("run", path, "--into", tmp_path / "run", state=state)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list((tmp_path / "run").glob("trials/*/trial.json"))) == 4
    assert state_of(server) == before


SLOW = {
    "run": OWN + "DO SLEEP(.01);\n",
    "prepare": OWN.replace("-- name", "DO SLEEP(600);\n-- name") + "DO 1;\n",
}


@pytest.mark.parametrize("step", SLOW)
def test_sigkill_then_restore_drops_account_and_tables(step, server, study, state, tmp_path):
    before = state_of(server)
    long = study(SLOW[step], amount='duration = "600s"')
    run = start_dbdyno("run", long, "--into", tmp_path / "run", state=state)
    busy = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER LIKE 'dbdyno%' AND INFO LIKE 'DO SLEEP%'"
    wait_for(lambda: server.ask(busy)[0][0] > 0 or run.poll() is not None)
    assert accounts(server) != []
    assert {("own",), ("seen",)} <= set(server.ask(f"SHOW TABLES FROM {DATABASE}"))
    run.kill()
    run.communicate()
    assert accounts(server) != []
    kept = b"".join(path.read_bytes() for path in state.rglob("*") if path.is_file())
    assert b"DropAccount" in kept
    assert b"aZ9-" not in kept  # how its passwords begin
    done = dbdyno("restore", state=state)
    assert done.returncode == 0, done.stdout + done.stderr
    wait_for(lambda: server.ask(busy) == ((0,),))
    assert "drop the account 'dbdyno_" in " ".join(done.stdout.split())
    assert state_of(server) == before


def test_without_the_rights_it_is_refused_unless_the_study_gives_the_whole_server(study, state, tmp_path):
    with running_server() as server:
        server.ask("CREATE DATABASE theirs")
        server.ask("CREATE TABLE theirs.items (i INT)")
        server.ask("INSERT INTO theirs.items VALUES (1)")
        server.ask(f"REVOKE CREATE USER ON *.* FROM {USER}")
        server.ask(f"GRANT DELETE, SELECT ON theirs.* TO {USER}")
        sql = OWN + "DELETE FROM theirs.items;\n"

        def planned(given=""):
            done = dbdyno("plan", study(sql, given=given, url=server.url()), state=state)
            return done.returncode, " ".join(done.stdout.split())

        code, said = planned()
        assert code == 2
        assert "account of the script: none can be made: Access denied" in said
        assert f"GRANT CREATE USER ON *.* TO '{USER}'@'%'" in said
        assert "[server] whole_server_may_change = true" in said
        server.ask(f"GRANT CREATE USER ON *.* TO {USER}")
        server.ask(f"REVOKE GRANT OPTION ON {DATABASE}.* FROM {USER}")
        code, said = planned()
        assert code == 2
        assert f"GRANT ALL PRIVILEGES ON `lent`.* TO '{USER}'@'%' WITH GRANT OPTION" in said
        server.ask(f"GRANT ALL ON {DATABASE}.* TO {USER} WITH GRANT OPTION")
        server.ask(f"GRANT SELECT ON mysql.* TO {USER}")
        assert planned()[0] == 0
        server.ask("GRANT SELECT ON theirs.* TO PUBLIC")
        code, said = planned()
        assert code == 2
        assert "the server gives every account more than its database: GRANT SELECT ON `theirs`.* TO PUBLIC" in said
        server.ask("REVOKE SELECT ON theirs.* FROM PUBLIC")
        assert planned()[0] == 0
        assert accounts(server) == []
        code, said = planned("whole_server_may_change = true")
        assert code == 0, said
        assert f"CHANGED: the whole server at 127.0.0.1:{server.port}" in said
        text = study(sql, given="whole_server_may_change = true", url=server.url())
        done = dbdyno("run", text, "--into", tmp_path / "run", state=state)
        assert done.returncode == 0, done.stdout + done.stderr
        assert server.ask("SELECT COUNT(*) FROM theirs.items") == ((0,),)
        assert server.tables() == []
        assert accounts(server) == []


def test_a_plan_says_which_account_is_made(server, study, state):
    before = state_of(server)
    done = dbdyno("plan", "--json", study(OWN + "DO 1;\n"), state=state)
    assert done.returncode == 0, done.stdout
    touched = json.loads(done.stdout)["touches"]
    assert "created: an account there that may change that database alone; dropped afterwards" in touched
    assert state_of(server) == before
