"""``dbdyno new``: a study that can be planned, by flags, by answers at a terminal, or from an option file."""

import json
import os
import pty
import select
import subprocess
import sys
import tomllib

import pytest

from dbdyno.errors import UserError
from dbdyno.study.load import load_study
from dbdyno.study.workloads import KINDS

CNF = """\
[client]
password = hunter2
[mysqld]
innodb_io_capacity = 2000
no_such_variable = 3
innodb_buffer_pool_size = 900000G
report-password = hunter2
"""


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.cnf").write_text(CNF)
    return tmp_path


def test_flags_say_it_all(dbdyno, desk):
    code, out, err = dbdyno("new", "--vary", "clients=1,8", "--load", "write", "--blocks", "9")
    assert (code, out, err) == (0, "study: study.toml; next: dbdyno plan study.toml\n", "")
    read = tomllib.loads((desk / "study.toml").read_text())
    assert read["workload"] == {"kind": "slap", "load": "write", "clients": [1, 8], "duration": "5s"}
    assert read["design"]["blocks"] == 9
    assert [labels for labels, _ in load_study(desk / "study.toml").combinations()] == [
        {"clients": "1"},
        {"clients": "8"},
    ]


@pytest.mark.parametrize(("device", "crash"), [("nvme", {"cuts": 60}), ("here", {"mode": "kill", "cuts": 60})])
def test_cuts_make_it_a_study_of_what_is_lost(dbdyno, desk, device, crash):
    vary = "innodb_flush_log_at_trx_commit=1,2"
    code, _, err = dbdyno("new", "--vary", vary, "--device", device, "--cuts", "60")
    assert (code, err) == (0, "")
    read = tomllib.loads((desk / "study.toml").read_text())
    assert read["crash"] == crash
    assert read["workload"]["kind"] == "ledger"
    assert read["design"] == {"compare": "one-factor"}
    assert load_study(desk / "study.toml").crash.cuts == 60


@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--kind", "oltp"), "--cuts is for --kind ledger, which alone knows what was acknowledged"),
        (("--load", "write"), "--load is not for --kind ledger"),
        (("--blocks", "3"), "--blocks is for studies of speed; --cuts decides how many there are"),
    ],
)
def test_what_does_not_go_with_cuts(dbdyno, flags, said):
    code, _, err = dbdyno("new", "--vary", "clients=1,8", "--cuts", "60", *flags)
    assert code == 2
    assert said in err


def test_an_option_file_becomes_a_level_and_what_does_not_fit_is_listed(dbdyno, desk):
    code, out, err = dbdyno("new", "mine.toml", "--from", "my.cnf", "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    reasons = {one["name"]: one["reason"] for one in told["left_out"]}
    assert told["study"] == "mine.toml"
    assert told["settings"]["innodb_io_capacity"] == 2000
    assert reasons["innodb_buffer_pool_size"].startswith("is more than 90 % of the memory of this host")
    assert "report_password" in reasons
    assert "hunter2" not in out + (desk / "mine.toml").read_text()
    assert (
        tomllib.loads((desk / "mine.toml").read_text())["levels"]["as in my.cnf"]["server"]["settings"]
        == told["settings"]
    )


@pytest.mark.usefixtures("desk")
def test_what_is_left_out_is_said_to_a_person_too(dbdyno):
    code, out, err = dbdyno("new", "--from", "my.cnf")
    assert (code, out) == (0, "study: study.toml; next: dbdyno plan study.toml\n")
    assert "left out: my.cnf:7 report_password: may be a secret, or the name of one; it is not copied\n" in err


def test_a_file_is_never_overwritten(dbdyno, desk):
    (desk / "study.toml").write_text("mine")
    code, _, err = dbdyno("new", "--vary", "clients=1,8")
    assert (code, err) == (2, "dbdyno: study.toml is there already; name another file, or move it away\n")
    (desk / "link.toml").symlink_to(desk / "elsewhere.toml")
    assert dbdyno("new", "link.toml", "--vary", "clients=1,8")[0] == 2
    assert (desk / "study.toml").read_text() == "mine"
    assert not (desk / "elsewhere.toml").exists()


WRONG = {
    "nothing to compare": ([], "nothing to compare: give --vary FIELD=LEVEL,LEVEL or --from MY.CNF"),
    "one level": (["--vary", "clients=8"], "nothing varies; give a field with levels to compare"),
    "no field": (["--vary", "clients"], "'clients' is not FIELD=LEVEL,LEVEL"),
    "a load that needs more": (
        ["--vary", "clients=1,2", "--kind", "script"],
        "--kind script needs file; give --vary file=",
    ),
    "a load that there is not": (
        ["--vary", "clients=1,2", "--kind", "replay"],
        "--kind replay is not a kind of load; there",
    ),
    "a load of one kind only": (["--vary", "clients=1,2", "--kind", "ingest", "--load", "x"], "--load is not for"),
    "an option file for an external server": (
        ["--from", "my.cnf", "--server", "mysql://a@b/c"],
        "--from is for a server that dbdyno starts; an external server keeps its options",
    ),
    "a device below an external server": (
        ["--vary", "a=1,2", "--server", "mysql://a@b/c", "--device", "here"],
        "--device: can't be set with an external server",
    ),
    "an impossible level": (["--vary", "scheduler=foo,none", "--device", "nvme"], "stack.scheduler: is"),
    "no such folder": (["no/study.toml", "--vary", "a=1,2"], "no/study.toml: can't be written: No such file"),
    "no such option file": (["--from", "no.cnf"], "--from no.cnf: can't be read: No such file or directory"),
    "an option file without use": (
        ["--from", "empty.cnf"],
        "--from empty.cnf: a study can set none of its server settings",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_each_wrong_use_is_one_clear_line_and_leaves_no_file(dbdyno, desk, name):
    argv, said = WRONG[name]
    (desk / "empty.cnf").write_text("[mysqld]\nport = 1\n")
    code, out, err = dbdyno("new", *argv)
    assert (code, out) == (2, "")
    assert err.startswith(f"dbdyno: {said}")
    assert not (desk / "study.toml").exists()


def test_an_external_server_is_named_and_stands_on_no_device(dbdyno, desk):
    url = "mysql://bench@db1/bench"
    assert dbdyno("new", "--server", url, "--vary", "innodb_flush_log_at_trx_commit=1,2")[0] == 0
    assert tomllib.loads((desk / "study.toml").read_text())["stack"] == {"server": url}
    load_study(desk / "study.toml")


def test_a_log_is_replayed_to_its_end_and_named_as_the_study_sees_it(dbdyno, desk):
    (desk / "slow.log").write_text("")
    (desk / "studies").mkdir()
    vary = ["--vary", "file=slow.log", "--vary", "innodb_flush_log_at_trx_commit=1,2"]
    assert dbdyno("new", "studies/log.toml", "--kind", "replay-log", *vary)[0] == 0
    read = tomllib.loads((desk / "studies/log.toml").read_text())
    assert read["workload"] == {"kind": "replay-log", "file": "../slow.log"}
    load_study(desk / "studies/log.toml")


def test_a_terminal_is_asked_with_defaults(desk):
    leader, follower = pty.openpty()
    asking = subprocess.Popen(
        [sys.executable, "-m", "dbdyno.cli.main", "new"],
        stdin=follower,
        stderr=follower,
        stdout=subprocess.PIPE,
        text=True,
    )
    os.write(leader, b"scheduler=non,bfq\nautocommit=0,1\n\n\nread write\nwrite\nmany\n\n3\n3s\n\n")
    out, _ = asking.communicate(timeout=180)
    asked = os.read(leader, 65536).decode()
    os.close(leader)
    os.close(follower)
    assert out == "study: study.toml; next: dbdyno plan study.toml\n"
    assert "How long a trial is measured [5s]: " in asked
    assert "give a whole number" in asked
    assert 'stack.scheduler: is "non"; allowed are none' in asked
    assert 'workload.load: is "read write"; allowed are' in asked
    assert 'workload.duration: is "3"' in asked
    assert tomllib.loads((desk / "study.toml").read_text())["workload"] == {
        "kind": "slap",
        "load": "write",
        "clients": 8,
        "duration": "3s",
    }


@pytest.fixture
def terminal(monkeypatch):
    """Type answers ahead at a terminal of this process; returns what it then shows."""
    leader, follower = pty.openpty()
    with os.fdopen(follower, encoding="utf-8") as keys, os.fdopen(os.dup(follower), "w", encoding="utf-8") as screen:

        def type_ahead(answers):
            monkeypatch.setattr(sys, "stdin", keys)
            monkeypatch.setattr(sys, "stderr", screen)
            os.write(leader, answers.encode())
            return lambda: _screen(leader)

        yield type_ahead
    os.close(leader)


def _screen(leader):
    """All that a terminal shows so far."""
    parts = []
    while select.select([leader], [], [], 0)[0]:
        parts.append(os.read(leader, 65536).decode())
    return "".join(parts)


ANSWERS = {"script": "script.sql\n", "replay-log": "slow.log\n", "trace": "trace.csv\n", "command": "echo a,b\n"}
ENTER = "\n" * 10


@pytest.mark.parametrize("kind", KINDS)
def test_enter_answers_what_is_asked_of_every_kind_of_load(dbdyno, desk, terminal, kind):
    (desk / "script.sql").write_text("SELECT 1;\n")
    for name in ("slow.log", "trace.csv"):
        (desk / name).write_text("")
    shown = terminal(ANSWERS.get(kind, "") + ENTER)
    assert dbdyno("new", "--kind", kind)[0] == 0, shown()
    study = load_study(desk / "study.toml")
    assert len(list(study.combinations())) == 2
    read = tomllib.loads((desk / "study.toml").read_text())
    assert read["workload"]["kind"] == kind
    assert ("server" in read["stack"]) == (KINDS[kind].SERVER != "none")
    assert read["workload"].get("command", "echo a,b") == "echo a,b"


def test_what_a_load_needs_is_checked_at_once_and_kept(dbdyno, desk, terminal):
    shown = terminal("\nno/such.sql\nscript.sql\nno_such_setting=1,2\n" + ENTER)
    (desk / "script.sql").write_text("SELECT 1;\n")
    assert dbdyno("new", "--kind", "script")[0] == 0, shown()
    text = shown()
    assert "a load of kind script needs it" in text
    assert 'workload.file: is "../' in text
    assert text.count("Which file") == 3
    assert text.count("What to compare") == 2
    assert "nothing is left to vary; left out: --vary, level 1 of no_such_setting: " in text
    assert tomllib.loads((desk / "study.toml").read_text())["workload"]["file"] == "script.sql"


def test_a_flag_that_no_answer_mends_is_refused_before_anything_is_asked(dbdyno, desk, terminal):
    shown = terminal("")
    for flags, said in (
        (("--duration", "3"), "--duration '3' is not a time; write a number with its unit, such as 10s"),
        (("--kind", "bulk", "--duration", "3s"), "--duration is not for --kind bulk, which has no such field"),
        (("--kind", "fio", "--from", "my.cnf"), "--from is for loads of a server; --kind fio uses none"),
        (("--from", "my.cnf", "--server", "mysql://a@b/c"), "--from is for a server that dbdyno starts"),
    ):
        assert dbdyno("new", *flags)[0] == 2
        assert shown().startswith(f"dbdyno: {said}")
    assert not (desk / "study.toml").exists()


@pytest.mark.usefixtures("desk")
def test_a_file_that_can_not_be_written_is_no_reason_to_ask_again(dbdyno, terminal, monkeypatch):
    shown = terminal(ENTER)

    def refuse(study, _text):
        raise UserError(f"{study}: can't be written: Permission denied")

    monkeypatch.setattr("dbdyno.cli.new._write", refuse)
    assert dbdyno("new")[0] == 2
    text = shown()
    assert "dbdyno: study.toml: can't be written: Permission denied" in text
    assert text.count("What to compare") == 1
