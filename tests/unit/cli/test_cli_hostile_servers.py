"""``plan`` and ``run`` against servers that mean no good: one clean paragraph and an exit code, in time."""

import shutil
import time

import pytest

from dbdyno.model.printable import SAID_MAX
from dbdyno.servers.mysql import connection
from dbdyno.stack.undo import external_server as server_undo
from tests.hostile_server import AS_GREETING, AS_REPLY, BYTES, HostileServer, good

SECONDS = 0.4  # bound of a login and of a reply here
PATIENCE_SECONDS = 60.0  # for a command, on a busy host

STUDY = """\
version = 1
[study]
title = "a server that means no good"
[stack]
server = "mysql://me@127.0.0.1:{port}/lent"
[workload]
kind = "slap"
clients = 2
queries = 10
warmup = "0s"
[design]
blocks = 1
"""

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # pymysql leaves failed connections to the collector


@pytest.fixture(autouse=True)
def _bounds(monkeypatch, state):
    monkeypatch.setattr(connection, "LOGIN_SECONDS", SECONDS)
    monkeypatch.setattr(connection, "REPLY_SECONDS", SECONDS)
    monkeypatch.setattr(server_undo, "_PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(server_undo, "_gone", set())
    monkeypatch.setenv("DBDYNO_PASSWORD", "tell-nobody#7")
    yield
    shutil.rmtree(state / "journals", ignore_errors=True)  # what a server did not let dbdyno undo


@pytest.fixture
def command(dbdyno, study_file, tmp_path):
    """Run a command against a server that follows a script; returns exit code, output and what was said."""

    def run(verb, script):
        with HostileServer(script) as server:
            study = study_file(STUDY.format(port=server.port))
            began = time.monotonic()
            code, out, err = dbdyno(verb, study, *(["--into", tmp_path / "run"] if verb == "run" else []))
            assert time.monotonic() - began < PATIENCE_SECONDS
            assert b"tell-nobody" not in server.heard
        text = out + err
        assert "Traceback" not in text
        assert all(char.isprintable() or char == "\n" for char in text.replace("\N{NO-BREAK SPACE}", " "))
        assert max(map(len, text.splitlines())) < 3 * SAID_MAX
        return code, out, err, server.port

    return run


def test_a_good_server_has_what_a_study_needs(command):
    code, out, err, _ = command("plan", good())
    assert (code, err) == (0, ""), out
    assert "\nReady: dbdyno run " in out


@pytest.mark.parametrize("what", BYTES | AS_GREETING)
def test_a_plan_survives_a_login(command, what):
    code, out, _, port = command("plan", good((BYTES | AS_GREETING)[what], statement=-1))
    assert code == 2
    assert f"127.0.0.1:{port}" in out


@pytest.mark.long
@pytest.mark.parametrize(
    ("what", "statement"), [*((what, 0) for what in BYTES | AS_REPLY), *((what, 3) for what in AS_REPLY)]
)
def test_a_plan_survives_a_reply(command, what, statement):
    code, out, _, port = command("plan", good((BYTES | AS_REPLY)[what], statement=statement))
    if code:  # some of the harm is just an answer
        assert code == 2
        assert f"127.0.0.1:{port}" in out


@pytest.mark.long
@pytest.mark.drawn(6)
@pytest.mark.parametrize("at", [(1, 0), (2, -1), (2, 0), (2, 1)])
@pytest.mark.parametrize("what", ["a byte at a time", "an error to obey", "zeros", "results without end"])
def test_a_run_survives(command, what, at):
    connection_number, statement = at
    harm = (BYTES | AS_REPLY)[what]
    code, _, err, port = command("run", good(harm, connection=connection_number, statement=statement))
    assert code == 1
    assert f"127.0.0.1:{port}" in err or "the database lent" in err
