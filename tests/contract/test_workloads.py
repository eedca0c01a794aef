"""The contract of a workload, over every kind: prepared, checked, run on a real server, counted without a gap."""

import itertools
import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from dbdyno.errors import TrialError
from dbdyno.servers.mysql.connection import connect
from dbdyno.study.workloads import KINDS, GeneratedSection
from dbdyno.system.interrupt import now_ns
from dbdyno.workload.kinds import workload_of
from tests.contract.test_tools import standing
from tests.support import wait_for

pytestmark = pytest.mark.host

ROOT = Path(__file__).parents[2]

MICROBENCH = ROOT / "studies/suites/microbench"
SCRIPT = """\
-- setup:
CREATE TABLE items (id INT PRIMARY KEY, stock INT);
INSERT INTO items SELECT seq, 100 FROM seq_1_to_100;
-- name: buy  weight: 3
:id = zipf(1, 100)
BEGIN;
SELECT stock FROM items WHERE id = :id;
UPDATE items SET stock = stock - 1 WHERE id = :id;
COMMIT;
-- name: look
:id = uniform(1, 100)
SELECT stock FROM items WHERE id = :id;
"""
LOG = """\
2026-11-23T12:59:07.302048Z\t    7 Connect\tapp@web1 on shop using Socket
2026-11-23T12:59:07.302048Z\t    7 Query\tINSERT INTO items VALUES (1, 'it''s')
2026-11-23T12:59:07.402048Z\t    8 Query\tSELECT * FROM items
""" + "".join(f"2026-11-23T12:59:07.5{at:02}048Z\t    9 Query\tSELECT {at}\n" for at in range(98))
SLAP = {"kind": "slap", "autoincrement": True}
OLTP = {"kind": "oltp", "tables": 2, "table_size": 500}
SMACK = {"kind": "smack", "rows": 1000}
OURS = {kind for kind, section in KINDS.items() if issubclass(section, GeneratedSection)}  # the others: test_tools.py
# Every kind with all its loads, bounded by an amount, and how many events that is.
LOADS = {
    **{f"slap {load}": ({**SLAP, "load": load, "queries": 400}, 400)
       for load in ("read", "key", "write", "update", "mixed")},
    **{f"smack {load}": ({**SMACK, "load": load, "events": 400}, 400)
       for load in ("insert", "select", "update", "delete", "mixed")},
    **{f"oltp {load}": ({**OLTP, "load": load, "events": 60}, 60)
       for load in ("read_only", "read_write", "write_only", "point_select", "update_index", "update_non_index",
                    "insert", "delete")},
    "oltp as text": ({**OLTP, "events": 60, "prepared": False}, 60),
    "tpcc": ({"kind": "tpcc", "events": 200}, 200),
    "tpcc of new orders": ({"kind": "tpcc", "events": 100, "mix": "new_order"}, 100),
    "ledger": ({"kind": "ledger", "events": 200, "accounts": 1000}, 200),
    "ingest procedure": ({"kind": "ingest", "rows": 2000, "rows_per_call": 100}, 20),
    "ingest statement": ({"kind": "ingest", "mode": "statement", "rows": 800, "rows_per_insert": 4}, 200),
    "ingest in transactions": (
        {"kind": "ingest", "mode": "statement", "rows": 800, "rows_per_insert": 4, "rows_per_commit": 40}, 20),
    "bulk": ({"kind": "bulk", "tables": 4, "table_size": 300, "batch_bytes": "16KiB"}, None),
    "script": ({"kind": "script", "events": 200, "ignore_errors": "1213"}, 200),
    "replay-log": ({"kind": "replay-log", "writes": True}, 100),
    "replay-log of what reads": ({"kind": "replay-log", "speed": 0}, 99),
}  # fmt: skip
ROWS = {"smack insert": 400, "ingest procedure": 2000, "ingest statement": 800, "ingest in transactions": 800,
        "bulk": 1200, "slap write": 400, "slap mixed": 220}  # fmt: skip


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory):
    with standing(tmp_path_factory.mktemp("server"), served=True) as stand:
        yield stand


@pytest.fixture
def stand(shared_server):
    """The server that most tests share, without what other tests have left on it."""
    for schema in told(shared_server, "SHOW SCHEMAS LIKE 'dbdyno%'"):
        told(shared_server, f"DROP SCHEMA `{schema}`")
    return shared_server


@pytest.fixture
def own_stand(tmp_path):
    """A server that a test may kill."""
    with standing(tmp_path, served=True) as stand:
        yield stand


@pytest.fixture
def workload(tmp_path):
    """Make a workload of the fields of ``[workload]``."""

    def make(engine="innodb", **fields):
        if fields["kind"] == "script":
            (tmp_path / "mine.sql").write_text(SCRIPT, encoding="utf-8")
            fields = {"file": str(tmp_path / "mine.sql"), **fields}
        if fields["kind"] == "replay-log":
            (tmp_path / "a.log").write_text(LOG, encoding="utf-8")
            (tmp_path / "a.sql").write_text("CREATE TABLE items (id INT, name TEXT);", encoding="utf-8")
            fields = {"file": str(tmp_path / "a.log"), "setup": str(tmp_path / "a.sql"), **fields}
        section = KINDS[fields["kind"]].model_validate({"clients": 4, **fields})
        stack = SimpleNamespace(engine=engine, external_database=None, is_simulated=False)
        return workload_of(SimpleNamespace(workload=section, stack=stack, beside={}))

    return make


def told(stand, sql):
    """The first column of a query's answer."""
    with connect(stand.server.socket) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return [row[0] for row in cursor.fetchall()]


def counted(stand, schema):
    """Rows in all tables of a schema."""
    tables = told(stand, f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{schema}'")
    return sum(told(stand, f"SELECT COUNT(*) FROM `{schema}`.`{table}`")[0] for table in tables)


def test_each_load_of_microbench_runs_on_the_same_tables(workload, stand, tmp_path):
    files = sorted(MICROBENCH.glob("*/*.sql"))
    assert len(files) == 42
    common = {"setup": str(MICROBENCH / "setup.sql"), "set": "rows=2000", "events": 20, "clients": 2, "warmup": "0s"}
    common |= {"kind": "script", "ignore_errors": "1213,1020,1205,1062"}
    for file in files:
        offered = workload(**common, file=str(file))
        if file is files[0]:
            offered.prepare(stand)
            assert counted(stand, offered.schema) >= 4000
        load = offered.run(stand, 1, tmp_path)
        assert (load.result["events"], load.result["aborted"]) == (20, None), file.name
        if "read-only-1" in file.name or "read-write" in file.name:
            points = next(one for name, one in load.result["operations"].items() if name.endswith(".point"))
            assert points["count"] >= 200, "ten for each event, and more where a deadlock had one begin anew"
    everything = told(
        stand, f"SELECT COUNT(*) FROM {offered.schema}.sbtest1 WHERE LENGTH(c) = 119 AND LENGTH(pad) = 59"
    )
    assert everything == [2000]


def test_every_kind_is_tried():
    assert {fields["kind"] for fields, _ in LOADS.values()} == OURS


# To make a warehouse takes longer than all the rest, and both have the same: one of them is drawn.
A_WAREHOUSE = pytest.mark.drawn(1, group="of a warehouse")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[A_WAREHOUSE] if name.startswith("tpcc") else []) for name in LOADS]
)
def test_prepared_checked_run_and_counted(name, workload, stand, tmp_path):
    fields, events = LOADS[name]
    offered = workload(**fields, **({} if fields["kind"] in {"bulk", "replay-log"} else {"warmup": "0s"}))
    offered.prepare(stand)
    ready = offered.check(stand)
    assert ready == {} if fields["kind"] == "bulk" else ready["engine"] == "InnoDB"
    rows_before = counted(stand, offered.schema)
    before = now_ns()
    load = offered.run(stand, 1, tmp_path)
    assert offered.check(stand)["engine"] == "InnoDB"

    start, end = load.window_ns
    assert before < start < end < now_ns()
    result, operations = load.result, load.result["operations"]
    assert (result["kind"], result["aborted"]) == (fields["kind"], None)
    assert {error["code"] for error in result["errors"]} <= {1213, 1020}, "a deadlock is all that may come in between"
    if events is not None:
        assert result["events"] == events
    assert result["queries"] <= sum(one["count"] for one in operations.values())
    for column in ("events", "queries", "rows", "reconnects"):
        assert sum(load.series[column]) == result[column], column
    assert {len(values) for values in (*load.series.values(), load.phase)} == {len(load.phase)}
    rows_after = counted(stand, offered.schema)
    if name in ROWS:
        assert result["rows"] == rows_after - rows_before == ROWS[name]

    metrics = load.metrics()
    assert metrics["events_per_second"] == pytest.approx(result["events"] / metrics["seconds_real"])
    assert ("rows_per_second" in metrics) == (result["rows"] > 0)
    assert metrics["latency_ms_p50"] <= metrics["latency_ms_p999"] <= metrics["latency_ms_max"]
    assert "achieved_ratio" not in metrics

    latencies = load.latencies()
    assert sum(latencies["count"]) == result["events"]
    assert latencies["latency_ns"][-1] == result["latency_ns"]["max"]
    for percentile, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        met = itertools.accumulate(latencies["count"])
        at = next(place for place, below in enumerate(met) if below >= share * result["events"])
        assert latencies["latency_ns"][at] == pytest.approx(result["latency_ns"][percentile], rel=1e-3), percentile


@pytest.mark.parametrize(
    "name", ["slap write", "smack select", "oltp read_only", "tpcc", "ledger", "ingest statement", "script"]
)
def test_every_kind_that_makes_tables_makes_them_with_their_options(name, workload, stand):
    load = workload(**LOADS[name][0], table_options="ROW_FORMAT=REDUNDANT")
    load.prepare(stand)
    tables = load.check(stand)
    assert tables["row_format"] == "Redundant"
    assert tables["table_options"] == "ROW_FORMAT=REDUNDANT"
    assert "not_granted" not in tables


def test_compressed_tables_have_the_pages_that_were_given(workload, stand):
    load = workload(**OLTP, events=10, table_options="ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=4")
    load.prepare(stand)
    tables = load.check(stand)
    assert (tables["row_format"], tables["page_bytes"]) == ("Compressed", "4096")


def test_partitions_are_made_and_counted(workload, stand):
    load = workload(**OLTP, events=10, table_options="PARTITION BY KEY (id) PARTITIONS 3")
    load.prepare(stand)
    assert load.check(stand)["files"] == "6"


def test_tables_that_have_their_options_in_name_only_say_so(workload, stand):
    told(stand, "SET GLOBAL innodb_strict_mode = OFF")
    try:
        load = workload(**OLTP, events=10, table_options="ROW_FORMAT=DYNAMIC KEY_BLOCK_SIZE=8")
        load.prepare(stand)
        said = load.check(stand)["not_granted"]["table_options"]
    finally:
        told(stand, "SET GLOBAL innodb_strict_mode = ON")
    assert "KEY_BLOCK_SIZE=8 is ignored, as rows are DYNAMIC" in said


def test_the_same_seed_offers_the_same_load(workload, stand, tmp_path):
    """To equal data; another seed draws other keys."""
    sums = []
    for seed in (1, 1, 2):
        offered = workload(kind="smack", load="update", rows=500, events=200, clients=1, warmup="0s", key="char")
        told(stand, "DROP SCHEMA IF EXISTS dbdyno_smack")
        offered.prepare(stand)
        offered.run(stand, seed, tmp_path)
        sums.append(told(stand, "SELECT SUM(CRC32(data)) FROM dbdyno_smack.smack")[0])
    assert sums[0] == sums[1] != sums[2]


@pytest.mark.parametrize(
    "fields", [{**SLAP, "load": "key"}, {**OLTP, "load": "point_select"}, SMACK, {"kind": "script"}], ids=str
)
def test_an_open_loop_offers_its_rate_and_says_what_was_achieved(fields, workload, stand, tmp_path):
    offered = workload(**fields, duration="1s", rate=300, arrivals="fixed", warmup="100ms")
    offered.prepare(stand)
    load = offered.run(stand, 1, tmp_path)
    assert load.result["loop"] == {"kind": "open", "rate": 300, "spacing": "fixed"}
    assert load.result["offered"] == pytest.approx(300, abs=2)
    assert 100 < load.result["events"] <= 300  # a busy host may be late with the last
    assert load.metrics()["achieved_ratio"] == pytest.approx(load.result["events"] / 300, abs=0.1)


def test_a_rate_that_is_too_much_is_told(workload, stand, tmp_path):
    # A transaction that waits for its commit can't be had 100,000 times a second.
    offered = workload(**OLTP, load="read_write", duration="1s", rate=100_000, warmup="0s")
    offered.prepare(stand)
    load = offered.run(stand, 1, tmp_path)
    assert load.metrics()["achieved_ratio"] < 0.5
    assert load.result["backlog_end"] > 10_000
    assert load.series["backlog"][-1] > load.series["backlog"][0] > 0


def test_a_client_that_thinks_is_slow(workload, stand, tmp_path):
    offered = workload(**SMACK, clients=2, duration="1s", think_time="20ms", think_distribution="fixed", warmup="0s")
    offered.prepare(stand)
    assert 20 <= offered.run(stand, 1, tmp_path).result["events"] <= 102


def test_the_phases_of_a_bulk_load_are_told(workload, stand, tmp_path):
    offered = workload(kind="bulk", tables=2, table_size=20_000, clients=1)
    offered.prepare(stand)
    load = offered.run(stand, 1, tmp_path)
    phases = {phase["name"]: phase for phase in load.result["phases"]}
    assert set(phases) == {"create", "load", "index"}
    start, end = load.window_ns
    assert all(start <= phase["start_ns"] <= phase["end_ns"] <= end for phase in phases.values())
    assert phases["load"]["start_ns"] < phases["index"]["start_ns"]
    assert {part for text in load.columns()["phase"] for part in text.split("+")} >= {"load", "index"}
    assert load.second_half_ratio() is None


def test_errors_that_are_ignored_are_counted(workload, stand, tmp_path):
    strict = workload(**SMACK, load="insert", events=200, warmup="0s")
    strict.prepare(stand)
    refuse = "SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 4242, MESSAGE_TEXT = 'not today'"
    trigger = "CREATE TRIGGER dbdyno_smack.no BEFORE INSERT ON dbdyno_smack.smack FOR EACH ROW"
    told(stand, f"{trigger} IF RAND() < 0.5 THEN {refuse}; END IF")
    with pytest.raises(TrialError, match=r"the load met \d+ x error 4242: not today"):
        strict.run(stand, 1, tmp_path)
    lenient = workload(**SMACK, load="insert", duration="300ms", warmup="0s", ignore_errors="1213,4242")
    load = lenient.run(stand, 1, tmp_path)
    assert [error["code"] for error in load.result["errors"]] == [4242]
    assert load.metrics()["errors"] == load.result["errors"][0]["count"] > 0


SLOW = {"think_time": "5ms"}  # a closed loop that leaves processors to others until its server is killed
TIMED = {
    "slap": {**SLAP, **SLOW, "load": "key"},
    "smack": {**SMACK, **SLOW},
    "oltp": {**OLTP, **SLOW, "ignore_errors": "all"},  # a dead server is no error to be ignored
    "tpcc": {"kind": "tpcc"},
    "ledger": {"kind": "ledger", **SLOW},
    "ingest": {"kind": "ingest", "mode": "statement"},
    "bulk": {"kind": "bulk", "tables": 1, "table_size": 20_000_000, "clients": 1},
    "script": {"kind": "script", "rate": 100},
    "replay-log": {"kind": "replay-log", "speed": 0.0001},
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("kind", TIMED)
def test_a_server_that_is_killed_fails_the_trial_with_a_cause_and_no_delay(kind, workload, own_stand, tmp_path):
    fields = TIMED[kind] if kind == "bulk" else {**TIMED[kind], "duration": "600s"}
    offered = workload(**fields)
    offered.prepare(own_stand)

    def kill():
        connected = "SELECT id FROM information_schema.processlist WHERE db LIKE 'dbdyno%'"
        wait_for(lambda: told(own_stand, connected), every=0.05)
        time.sleep(1)
        os.kill(own_stand.server.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    began = time.monotonic()
    killer.start()
    with pytest.raises(TrialError) as failed:
        offered.run(own_stand, 1, tmp_path)
    assert time.monotonic() - began < 300
    assert "the server ended (killed by signal SIGKILL)" in str(failed.value)
    assert any(word in str(failed.value) for word in ("lost", "gone", "closed")), failed.value
    assert (tmp_path / "load.json").stat().st_size > 0, "what was measured is kept"


def test_a_server_that_no_longer_answers_is_given_up(workload, own_stand, tmp_path, monkeypatch):
    monkeypatch.setattr("dbdyno.workload.load.GRACE_SECONDS", 1.0)
    offered = workload(**SMACK, duration="1s")
    offered.prepare(own_stand)
    stopper = threading.Timer(0.8, os.kill, (own_stand.server.pid, signal.SIGSTOP))
    stopper.start()
    try:
        with pytest.raises(TrialError, match=r"the load was not done after 2\.5 s; it was ended"):
            offered.run(own_stand, 1, tmp_path)
    finally:
        os.kill(own_stand.server.pid, signal.SIGCONT)


@pytest.mark.parametrize("engine", ["innodb", "aria"])
def test_what_is_missing_of_a_ledger_is_found_and_nothing_else(engine, workload, stand, tmp_path):
    offered = workload(engine, kind="ledger", accounts=500, duration="500ms", warmup="100ms", ddl=True)
    offered.prepare(stand)
    load = offered.run(stand, 7, tmp_path)
    whole = offered.verify(stand.server, tmp_path)
    # The warm-up and the DDL count as well, in what must be there alone.
    assert whole.acked == whole.kept > load.result["events"] > 0
    assert (whole.lost, whole.ghost, whole.torn, whole.wrong, whole.index_differences) == (0, 0, 0, 0, 0)
    assert (whole.balance_off, whole.complete, whole.oldest_lost_ack_ns) == (False, True, None)
    assert {"ledger", "transfers", "accounts"} <= {table.table for table in whole.tables if table.ok}

    early = offered.verify(stand.server, tmp_path, load.window_ns[0], load.window_ns[1] + 10**9)
    assert (early.lost, early.ghost) == (0, 0)
    assert early.unknown >= load.result["events"]

    first = "(SELECT * FROM (SELECT connection, MIN(sequence) FROM dbdyno_ledger.ledger GROUP BY 1 LIMIT 1) AS one)"
    told(stand, f"DELETE FROM dbdyno_ledger.transfers WHERE (connection, sequence) IN {first}")
    told(stand, f"DELETE FROM dbdyno_ledger.ledger WHERE (connection, sequence) IN {first}")
    spoiled = offered.verify(stand.server, tmp_path)
    assert (spoiled.lost, spoiled.holes, spoiled.kept) == (1, 1, whole.kept - 1)
    assert spoiled.oldest_lost_ack_ns < load.window_ns[1]
    assert [example.what for example in spoiled.examples] == ["holes"]
    with pytest.raises(TrialError, match=r"belongs to the schema dbdyno_ledger, not to --schema=other"):
        replace(offered, external_schema="other").verify(stand.server, tmp_path)


def test_a_server_that_is_to_be_killed_may_be(workload, own_stand, tmp_path):
    offered = replace(workload(**TIMED["ledger"], duration="600s", warmup="0s"), expect_loss=True)
    offered.prepare(own_stand)
    killer = threading.Timer(1.5, os.kill, (own_stand.server.pid, signal.SIGKILL))
    killer.start()
    load = offered.run(own_stand, 1, tmp_path)
    assert load.result["events"] > 0
    assert {error["code"] for error in load.result["errors"]} <= {2013, 1213}
    with pytest.raises(TrialError, match="dbdyno-load"):
        offered.verify(own_stand.server, tmp_path)
