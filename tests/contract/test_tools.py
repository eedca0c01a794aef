"""Loads that programs of somebody else's offer: the real program, on a folder of this machine or a private server."""

import os
import shutil
import signal
import tempfile
import threading
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import psutil
import pytest

from dbdyno.errors import TrialError
from dbdyno.servers.mysql.connection import connect
from dbdyno.servers.sources.installation import find_server
from dbdyno.stack.layer import raised
from dbdyno.stack.layers.data import Files
from dbdyno.stack.layers.device import Here
from dbdyno.stack.layers.scratch import scratch
from dbdyno.stack.layers.server import ServerLayer
from dbdyno.stack.undo_log import Journal
from dbdyno.study.workloads import KINDS, Tools
from dbdyno.system.interrupt import now_ns
from dbdyno.workload.kinds import workload_of
from tests.examples import example_of
from tests.support import wait_for, what_is_left

pytestmark = pytest.mark.host


@contextmanager
def standing(folder, *, served):
    """A stack on this machine's disk, with a state folder of its own; afterwards nothing is left of it."""
    state = Path(tempfile.mkdtemp(prefix="dd", dir="/var/tmp"))  # a short path, since sockets lie below it
    state.chmod(0o755)
    settings = {"innodb_log_file_size": "8M", "innodb_buffer_pool_size": "32M"}
    log = folder / "server.log"
    server = [ServerLayer(find_server("mariadb"), settings, "innodb", 8, install=True, log=log)] if served else []
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DBDYNO_STATE_DIR", str(state))
            journal = Journal("a test", folder=state / "journals")
            with closing(journal), scratch(journal) as ground, raised([Here(), Files(), *server], ground) as stand:
                yield stand
            assert what_is_left(state) == []
    finally:
        shutil.rmtree(state)


@pytest.fixture(scope="module")
def shared_stand(tmp_path_factory):
    with standing(tmp_path_factory.mktemp("server"), served=True) as stand:
        yield stand


@pytest.fixture
def served(shared_stand):
    """A stack with a server, without what other tests have left on it."""
    with connect(shared_stand.server.address) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW DATABASES LIKE 'dbdyno\\_%'")
        for (schema,) in cursor.fetchall():
            cursor.execute(f"DROP SCHEMA {schema}")
    return shared_stand


@pytest.fixture
def bare(tmp_path):
    """A stack without a server."""
    with standing(tmp_path, served=False) as stand:
        yield stand


def offered(engine="innodb", **fields):
    """Make a workload of the fields of ``[workload]``."""
    section = KINDS[fields["kind"]].model_validate(fields)
    stack = SimpleNamespace(engine=engine, external_database=None, is_simulated=False)
    return workload_of(SimpleNamespace(workload=section, stack=stack, beside={}))


def told(load, before):
    """Return the metrics of a load that ended just now, having looked at its clock and its halves."""
    start, end = load.window_ns
    assert before < start < end < now_ns()
    assert all(value >= 0 for value in load.seconds_before.values())
    return load.metrics()


# What is taken in place of the example's, where it has the field.
SMALL = {"duration": "1s", "size": "32MiB", "files": 1, "tables": 1, "table_size": 500, "queries": 100,
         "command": "/bin/echo rows per second: 5"}  # fmt: skip


@pytest.mark.parametrize("kind", [one.named() for one in get_args(Tools)])
def test_the_example_of_every_program_is_prepared_checked_run_and_measured(kind, request, tmp_path):
    example = example_of(kind)
    assert example, "its section in docs/tools.md has none"
    section = KINDS[kind]
    stand = request.getfixturevalue("served" if section.SERVER == "needed" else "bare")
    load = offered(**{name: SMALL.get(name, value) for name, value in example.items()})
    load.prepare(stand)
    prepared = load.check(stand)
    before = now_ns()
    metrics = told(load.run(stand, 1, tmp_path), before)
    if kind != "bonnie":  # which leaves out what took less than half a second
        assert metrics[load.section.metric] > 0
    assert section.REPORTS is not None
    assert set(metrics) <= section.REPORTS
    assert not prepared or load.check(stand) == prepared
    assert stand.journal.processes() <= ({stand.endpoint.pid} if stand.endpoint else set())


FIO = {"kind": "fio", "size": "8MiB", "duration": "600ms"}


@pytest.mark.parametrize("way", ["read", "write", "mix"])
def test_a_profile_of_fio(bare, tmp_path, way):
    load = offered(**FIO, profile="RND4K Q4T2", load=way)
    load.prepare(bare)
    assert [path.stat().st_size for path in bare.files.iterdir()] == [8 * 1024**2]
    before = now_ns()
    done = load.run(bare, 1, tmp_path)
    metrics = told(done, before)
    # fio ends a job late where processors are busy, never early.
    assert 0.55 < metrics["seconds_real"] < (now_ns() - before) / 1e9
    assert metrics["megabytes_per_second"] == pytest.approx(metrics["iops"] * 4096 / 1e6)
    assert set(done.result["directions"]) == ({"read", "write"} if way == "mix" else {way})
    assert metrics["latency_ms_p50"] <= metrics["latency_ms_p999"] <= metrics["latency_ms_max"]
    assert metrics["seconds_user"] + metrics["seconds_sys"] > 0
    assert load.tool.version().startswith("fio-")
    assert (tmp_path / "tool.out").stat().st_size > 1000
    # Both are about the same operations; the log lacks what came after its last whole interval.
    columns = done.columns()
    mean = sum(columns["iops"]) / len(columns["iops"])
    assert metrics["iops"] / 3 < mean < 3 * metrics["iops"]
    assert columns["t_s"][-1] <= metrics["seconds_real"] + 0.5


def test_a_job_file_of_fio_is_held_to_the_trials_folder(bare, tmp_path):
    job = tmp_path / "mine.fio"
    job.write_text("[global]\nbs=4k\nsize=1m\nioengine=psync\n[reads]\nrw=randread\n[writes]\nrw=write\nfsync=8\n")
    load = offered(kind="fio", job=str(job))
    load.prepare(bare)
    before = now_ns()
    done = load.run(bare, 1, tmp_path)
    assert told(done, before)["iops"] > 0
    assert done.result["directions"]["read"]["operations"] == 256
    assert sorted(path.name for path in bare.files.iterdir()) == ["reads.0.0", "writes.0.0"]


def test_fio_runs_a_job_as_people_write_them(bare, tmp_path):
    job = tmp_path / "peoples.fio"
    job.write_text(
        "[global]\ndirectory=/data\nfilename=/dev/sdz\nioengine=PSYNC # waits\nsize=1m\nwrite_bw_log=x\ngtod_reduce=1\n"
        "[read]\nrw=read\n[write, 8k]\nstonewall\nrw=write\nbssplit=4k/50:8k/50\n"
    )
    load = offered(kind="fio", job=str(job))
    load.prepare(bare)
    before = now_ns()
    done = load.run(bare, 1, tmp_path)
    assert told(done, before)["iops"] > 0
    assert done.result["directions"]["read"]["operations"] == 256
    assert 128 <= done.result["directions"]["write"]["operations"] <= 256
    assert sorted(path.name for path in bare.files.iterdir()) == ["dev-sdz"]


def test_fio_fails_in_its_own_words(bare, tmp_path):
    job = tmp_path / "mine.fio"
    job.write_text("[job]\nrw=raed\nsize=1m\n")
    with pytest.raises(TrialError, match=r"^fio: exit 1: .*rw=raed"):
        offered(kind="fio", job=str(job)).run(bare, 1, tmp_path)
    assert (tmp_path / "tool.err").stat().st_size > 0


def test_a_program_that_is_killed_fails_the_trial_and_none_of_its_jobs_lives_on(bare, tmp_path):
    load = offered(**{**FIO, "duration": "600s"}, profile="RND4K Q4T2", load="write")
    load.prepare(bare)

    def is_running(process):
        with suppress(OSError):
            line = (process / "cmdline").read_bytes()
            return line.startswith(b"fio\0") and str(bare.files).encode() in line

    def kill():
        process = wait_for(lambda: next(filter(is_running, Path("/proc").glob("[0-9]*")), None), every=0.1)
        time.sleep(1)
        os.kill(int(process.name), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(TrialError, match=r"fio: killed by signal SIGKILL"):
        load.run(bare, 1, tmp_path)
    assert bare.journal.processes() == set()


def test_a_program_that_takes_too_long_is_ended(bare, tmp_path, monkeypatch):
    monkeypatch.setattr("dbdyno.workload.load.GRACE_SECONDS", -599.0)
    load = offered(**{**FIO, "duration": "600s"}, profile="RND4K Q1T1", load="read")
    load.prepare(bare)
    began = time.monotonic()
    with pytest.raises(TrialError, match=r"fio was not done after 1 s; fio was ended"):
        load.run(bare, 1, tmp_path)
    assert time.monotonic() - began < 300


def test_bonnie(bare, tmp_path):
    load = offered(kind="bonnie", size="32MiB", files=0)
    load.prepare(bare)
    before = now_ns()
    done = load.run(bare, 1, tmp_path)
    metrics = told(done, before)
    # What takes less than half a second Bonnie++ calls too fast to be told.
    assert "write_megabytes_per_second" in metrics or done.result["fields"][11] == "+++++"
    assert [phase["name"] for phase in done.result["phases"]][:3] == [
        "writing intelligently",
        "rewriting",
        "reading intelligently",
    ]
    assert list(bare.files.iterdir()) == [], "it removes what it made"
    assert "2.0" in load.tool.version() or "1.9" in load.tool.version()


def test_bonnie_fails_in_its_own_words(bare, tmp_path):
    bare.files.chmod(0o500)
    os.chown(bare.files, 0, 0)
    with pytest.raises(TrialError, match=r"bonnie\+\+: exit 1: .*Can't"):
        offered(kind="bonnie", size="16MiB").run(bare, 1, tmp_path)


SYSBENCH = {"kind": "sysbench", "clients": 2, "tables": 2, "table_size": 500}
SCRIPTS = ("read_only", "read_write", "write_only", "point_select", "update_index", "update_non_index", "insert",
           "delete")  # fmt: skip


def test_sysbench(served, tmp_path):
    load = offered(**SYSBENCH, duration="2s")
    load.prepare(served)
    assert load.check(served)["engine"] == "InnoDB"
    before = now_ns()
    done = load.run(served, 1, tmp_path)
    metrics = told(done, before)
    assert 1.9 < metrics["seconds_real"] < 60
    assert metrics["latency_ms_p50"] <= metrics["latency_ms_p99"] <= metrics["latency_ms_max"]
    assert metrics["client_cpu_us_per_query"] > 0
    columns = done.columns()
    assert columns["t_s"][:2] == [1.0, 2.0][: len(columns["t_s"])]
    mean = sum(columns["queries_per_second"]) / len(columns["queries_per_second"])
    assert mean == pytest.approx(done.queries / metrics["seconds_real"], rel=0.6)
    assert 0 < done.before_seconds < 60, "its start is when it says that its threads have started"


@pytest.mark.parametrize("load", SCRIPTS)
def test_every_script_of_sysbench_says_as_many_queries_as_ours(served, tmp_path, load):
    """In one transaction: sysbench's own script, and dbdyno's load of the same name."""
    theirs, ours = ({**SYSBENCH, "kind": kind, "load": load, "events": 40} for kind in ("sysbench", "oltp"))
    counted = []
    for fields in (theirs, {**ours, "warmup": "0s"}):
        one = offered(**fields)
        one.prepare(served)
        done = one.run(served, 1, tmp_path)
        counted.append(done.queries / done.result["events"])
    # A transaction that met a deadlock is said again.
    assert counted[0] == pytest.approx(counted[1], rel=0.25 if load in {"read_write", "write_only"} else 0)


def test_a_rate_of_sysbench_shows_its_queue(served, tmp_path):
    load = offered(**SYSBENCH, load="point_select", duration="2s", rate=100)
    load.prepare(served)
    done = load.run(served, 1, tmp_path)
    assert 20 < done.metrics()["events_per_second"] < 140, "fewer where the host is too busy for it"
    assert done.result["loop"] == {"kind": "open", "rate": 100.0}
    assert len(done.columns()["backlog"]) == len(done.columns()["t_s"]) > 0


def test_sysbench_fails_in_its_own_words(served, tmp_path):
    with pytest.raises(TrialError, match=r"sysbench: exit 1: .*Unknown database 'dbdyno_sysbench'"):
        offered(**SYSBENCH, events=10).run(served, 1, tmp_path)


def test_mysqlslap(served, tmp_path):
    load = offered(kind="mysqlslap", load="write", clients=4, queries=402, autoincrement=True)
    load.prepare(served)
    assert load.check(served) == {}
    before = now_ns()
    done = load.run(served, 1, tmp_path)
    metrics = told(done, before)
    assert load.check(served)["engine"] == "InnoDB"
    assert done.queries == 400, "what does not divide evenly is left out"
    assert metrics["queries_per_second"] == pytest.approx(400 / metrics["seconds_real"])
    assert not any(name.startswith("latency") for name in metrics)
    assert done.columns() == {}


def test_mysqlslap_tells_of_several_runs(served, tmp_path):
    load = offered(kind="mysqlslap", load="key", clients=2, queries=200, autoincrement=True, iterations=3)
    done = load.run(served, 1, tmp_path)
    result = done.result
    assert result["seconds_min"] <= result["seconds_mean"] <= result["seconds_max"]
    assert done.queries == 600
    assert load.check(served) == {}


def test_mysqlslap_fails_in_its_own_words(served, tmp_path):
    load = offered(kind="mysqlslap", clients=1, queries=2000)
    load.run(served, 1, tmp_path)
    with pytest.raises(TrialError, match=r"mysqlslap: .*database exists"):
        load.run(served, 1, tmp_path)


def script(folder, text):
    """Write a program that the user it runs as can read."""
    path = folder / "program"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def open_folder():
    """A folder that everybody can look into, as pytest's own is not."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_a_command_prints_its_figure(bare, tmp_path, open_folder):
    program = script(open_folder, 'echo "seed $DBDYNO_SEED" > "$DBDYNO_DIRECTORY/left"; id -u; echo "rate: 12.5 $1"')
    load = offered(kind="command", command=f"{program} 'x y'", figure=r"rate: ([\d.]+) x y", unit="frames/s")
    before = now_ns()
    metrics = told(load.run(bare, 7, tmp_path), before)
    assert metrics["figure_more"] == 12.5
    assert (bare.files / "left").read_text() == "seed 7\n"
    user = (tmp_path / "tool.out").read_text().split("\n")[0]
    assert int(user) == (65534 if os.geteuid() == 0 else os.geteuid())
    assert load.tool.observed()["version"].startswith("sha256 ")


def test_a_command_beside_a_server_is_told_how_to_reach_it(served, tmp_path, open_folder):
    ask = 'mysql --no-defaults -S "$DBDYNO_SOCKET" -u "$DBDYNO_USER" -N -e "SELECT 6 * 7"'
    load = offered(kind="command", command=str(script(open_folder, ask)), figure="([0-9]+)", better="less")
    assert load.run(served, 1, tmp_path).metrics()["figure_less"] == 42


def test_without_a_figure_a_command_is_about_its_seconds(bare, tmp_path):
    began = time.monotonic()
    metrics = offered(kind="command", command="sleep 0.3").run(bare, 1, tmp_path).metrics()
    assert 0.3 <= metrics["seconds_real"] <= time.monotonic() - began


def test_nothing_that_a_command_leaves_running_lives_on(bare, tmp_path, open_folder):
    seconds = f"97531.{os.getpid()}"  # as no other test sleeps
    program = script(open_folder, f"setsid sleep {seconds} & sleep {seconds} & echo 1")
    offered(kind="command", command=str(program), figure="(1)").run(bare, 1, tmp_path)
    assert bare.journal.processes() == set()
    assert not [one for one in psutil.process_iter(["cmdline"]) if one.info["cmdline"] == ["sleep", seconds]]


FAILING = {
    "an exit code": ("echo broken >&2; exit 3", {}, r"program: exit 3: broken"),
    "no figure": ("echo none", {"figure": "rate ([0-9]+)"}, r"finds no number in what the command printed: 'none'"),
    "too long": ("echo working; sleep 60", {"time_limit": "1s"}, r"1 s; program was ended; it had said: working"),
    "too much": ("head -c 80000000 /dev/zero", {}, r"said more than 64 MiB"),
    "no rights": ("cat /etc/shadow", {}, r"Permission denied"),
    "no more rights": ("sudo -n id || su -c id || exit 4", {}, r"exit"),
}


@pytest.mark.parametrize("name", FAILING)
def test_a_command_that_fails_says_why(bare, tmp_path, open_folder, name):
    text, fields, said = FAILING[name]
    load = offered(kind="command", command=str(script(open_folder, text)), **fields)
    with pytest.raises(TrialError, match=said):
        load.run(bare, 1, tmp_path)
    assert bare.journal.processes() == set()


def test_a_dump_is_put_back_as_it_was(served, tmp_path):
    load = offered(kind="dump", load="restore", tables=2, table_size=300, no_autocommit=True)
    load.prepare(served)
    before = now_ns()
    done = load.run(served, 1, tmp_path)
    assert told(done, before)["rows_per_second"] == pytest.approx(600 / done.metrics()["seconds_real"])
    assert done.result["file_bytes"] == (served.files / "dump.sql").stat().st_size > 600 * 180
    with connect(served.server.address) as connection, connection.cursor() as cursor:
        sums = []
        for schema in ("dbdyno_oltp", "dbdyno_restored"):
            cursor.execute(f"CHECKSUM TABLE {schema}.sbtest1, {schema}.sbtest2")
            sums.append([value for _, value in cursor.fetchall()])
    assert sums[0] == sums[1]
    assert 0 not in sums[0]


def test_a_restore_that_fails_says_why(served, tmp_path):
    load = offered(kind="dump", load="restore", table_size=100)
    load.prepare(served)
    with (served.files / "dump.sql").open("a") as file:
        file.write("INSERT INTO nowhere VALUES (1);\n")
    with pytest.raises(TrialError, match=r"mariadb: exit 1: .*nowhere"):
        load.run(served, 1, tmp_path)
