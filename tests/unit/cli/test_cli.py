"""The command line: what help says, and that a mistake is one message with its exit code."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dbdyno import __version__
from dbdyno.errors import HostError
from tests.unit.cli.conftest import ENVIRONMENT

DISK_VERBS = ["attach", "detach", "list", "models", "mode", "snapshot", "restore", "forget", "stats", "trace",
              "power-cut", "power-on", "fault", "fault latency", "fault eio", "fault stuck", "fault gone",
              "fault clear"]  # fmt: skip
VERBS = [
    "",
    "quick",
    "plan",
    "try",
    "run",
    "runs",
    "aa",
    "report",
    "rank",
    "simulate",
    "compare",
    "history",
    "export",
    "import",
    "atlas",
    "watch",
    "trace record",
    "trace show",
    "doctor",
    "restore",
    "servers",
    "servers add",
    "servers remove",
    "completion",
    "hosts",
    "hosts up",
    "hosts status",
    "hosts down",
    "disk",
    *(f"disk {verb}" for verb in DISK_VERBS),
]


@pytest.mark.parametrize("verb", VERBS)
def test_help(snapshot, dbdyno, verb):
    code, out, err = dbdyno(*verb.split(), "--help")
    assert (code, err) == (0, "")
    assert out == snapshot
    assert dbdyno(*verb.split(), "-h") == (0, out, "")


@pytest.mark.parametrize("verb", ["slap", "smack", "oltp", "tpcc", "ledger", "ingest", "bulk", "script", "replay-log"])
@pytest.mark.parametrize("arguments", [["--help"], ["-a", "--no-such-flag=1", "x.sql", "-vc10", "run"], []])
def test_verbs_of_the_load_generator_are_its_own_with_whatever_follows(dbdyno, monkeypatch, verb, arguments):
    became = []
    monkeypatch.setattr("dbdyno.stack.tools.own_binary", lambda name: f"/bin/{name}")
    monkeypatch.setattr("os.execv", lambda path, argv: became.append((path, argv)))
    assert dbdyno(verb, *arguments) == (0, "", "")
    assert became == [("/bin/dbdyno-load", ["dbdyno-load", verb, *arguments])]


def test_without_a_verb_it_is_help(dbdyno):
    assert dbdyno() == dbdyno("--help")


def test_version(dbdyno):
    assert dbdyno("--version") == (0, f"dbdyno {__version__}\n", "")


def test_models_are_listed(dbdyno):
    code, out, _ = dbdyno("disk", "models")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()][:3] == ["hdd-7200", "hdd-15k", "hdd-10k"]


def test_doctor_has_a_remedy_for_every_no(dbdyno):
    code, out, _ = dbdyno("doctor", "--quick", "--json")
    found = json.loads(out)
    rows = found["capabilities"]
    assert code == 0
    assert found["able"] is all(row["ok"] for row in rows if row["needed"])
    assert all(row["remedy"] for row in rows if not row["ok"])
    assert {"root", "FUSE", "loop", "ext4", "xfs", "btrfs", "schedulers", "memory cgroup", "tracefs"} <= {
        row["name"] for row in rows
    }
    listed, _, enough = dbdyno("doctor", "--quick")[1].partition("\n\n")
    begin = [line for line in listed.splitlines() if not line.startswith(" ")]
    mark = {(True, True): "yes", (True, False): "yes", (False, True): "no", (False, False): "-"}
    assert [line[:3].strip() for line in begin] == [mark[row["ok"], row["needed"]] for row in rows]
    assert ("This host has everything that studies on emulated disks need." in enough) is found["able"]


def test_a_long_line_goes_on_below_its_own_beginning():
    from dbdyno.cli.output import COLUMNS, hanging

    lines = hanging("no   loop  ", "a word " * 40 + "/" + "x" * 200).splitlines()
    assert [line[:11] for line in lines] == ["no   loop  ", *[" " * 11] * (len(lines) - 1)]
    assert [len(line) > COLUMNS for line in lines] == [False] * (len(lines) - 1) + [True]


def test_nothing_to_restore_is_success(dbdyno):
    assert dbdyno("restore") == (0, "nothing to restore\n", "")


def test_restore_names_a_host_that_it_does_not_reach(dbdyno, tmp_path):
    (tmp_path / "ssh").write_text("Host *\n  Port 1\n  HostName 127.0.0.1\n")
    file = tmp_path / "hosts.toml"
    file.write_text(
        'version = 1\n[cluster]\nssh_config = "ssh"\n[host.db1]\nssh = "db1"\nroles = ["server"]\n', encoding="utf-8"
    )
    code, out, err = dbdyno("restore", "--hosts", file)
    assert (code, out) == (1, "")
    note, problem = err.splitlines()
    assert note == (
        f"ssh reads {tmp_path}/ssh, named by {file}: programs that it names (such as ProxyCommand or Match exec) "
        "run on this machine, as you"
    )
    assert problem.startswith("dbdyno: db1: ")
    code, out, err = dbdyno("restore", "--hosts", file, "--json")
    (host,) = json.loads(out)["hosts"]
    assert (code, host["name"], host["undone"], err.splitlines()[1:]) == (1, "db1", [], [f"dbdyno: {host['problem']}"])


def test_restore_leaves_alone_what_a_running_process_has_raised(dbdyno):
    from dbdyno.stack.undo.actions import RemoveTree
    from dbdyno.stack.undo_log import Journal

    Journal("run study.toml").announce(RemoveTree("/nowhere"))
    said = f"left alone: run study.toml (pid {os.getpid()} is running)\nnothing to restore\n"
    assert dbdyno("restore") == (0, said, "")


def test_restore_says_what_it_did(dbdyno, state, killed):
    assert dbdyno("restore") == (
        0,
        (
            f"run study.toml (pid {killed}) has ended without putting the host back:\n"
            f"  remove {state}/scratch/x\n"
            "the host is as it was\n"
        ),
        "",
    )
    assert not (state / "scratch" / "x").exists()
    assert dbdyno("restore") == (0, "nothing to restore\n", "")


def test_a_mistake_in_a_script_is_found_before_anything_is_touched(dbdyno, tmp_path, write_study):
    (tmp_path / "mine.sql").write_text("-- name: a\nSELECT :nope;\n", encoding="utf-8")
    study = write_study(('kind = "slap"', 'kind = "script"\nfile = "mine.sql"'), ("queries = 1000", "events = 1000"))
    code, out, err = dbdyno("plan", study)
    assert (code, err) == (2, "dbdyno: this host can't run the study as it is; see above\n")
    assert f"load generator: {tmp_path}/mine.sql:2:8: :nope is not defined" in out
    assert dbdyno("run", study, "--into", tmp_path / "run")[0] == 2
    assert not (tmp_path / "run").exists()


def test_what_the_host_can_not_do_is_exit_1(dbdyno, monkeypatch):
    def leftovers():
        raise HostError("it is stuck")

    monkeypatch.setattr("dbdyno.stack.restore.leftovers", leftovers)
    assert dbdyno("restore") == (1, "", "dbdyno: it is stuck\n")


def test_ctrl_c_outside_a_run_is_130(dbdyno, monkeypatch):
    def leftovers():
        raise KeyboardInterrupt

    monkeypatch.setattr("dbdyno.stack.restore.leftovers", leftovers)
    assert dbdyno("restore")[0] == 130


@pytest.mark.parametrize("terminal", ["xterm-256color", "dumb"])
def test_into_a_pipe_goes_plain_text_without_a_traceback(tmp_path, write_study, terminal):
    environment = {**os.environ, **ENVIRONMENT, "TERM": terminal, "DBDYNO_STATE_DIR": str(tmp_path / "state")}
    for argv in (["plan", str(write_study())], ["report", str(tmp_path)]):
        done = subprocess.run(
            [sys.executable, "-m", "dbdyno.cli.main", *argv], env=environment, capture_output=True, check=False
        )
        assert b"\x1b" not in done.stdout + done.stderr
        assert b"Traceback" not in done.stderr
    assert done.returncode == 2


def test_a_reader_that_goes_away_is_no_error_worth_a_word():
    script = f"{sys.executable} -m dbdyno.cli.main --help | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.stderr == ""


HEAVY = ("numpy", "scipy", "duckdb", "jinja2", "pandas", "rich.progress")
IMPORTS = f"""
import sys
sys.argv = ["dbdyno", *sys.argv[1:]]
from dbdyno.cli.main import main
try:
    main()
except SystemExit:
    print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)
"""


@pytest.mark.parametrize("argv", [["--help"], ["plan", "{study}"], ["plan", "{study}", "--json"], ["run", "--help"]])
def test_what_must_answer_at_once_imports_nothing_heavy(write_study, tmp_path, argv):
    argv = [word.format(study=write_study()) for word in argv]
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS, *argv],
        env={**os.environ, "DBDYNO_STATE_DIR": str(tmp_path / "state")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.splitlines()[-1] == "[]"
    assert done.stdout


def test_a_plan_changes_nothing(dbdyno, write_study, tmp_path, monkeypatch):
    study = write_study()
    monkeypatch.chdir(tmp_path)
    dbdyno("plan", study)
    assert [path.name for path in Path.cwd().iterdir()] == ["study.toml"]
