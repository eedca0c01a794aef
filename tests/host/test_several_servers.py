"""A replica on real servers and disks: it follows, is read back, is timed and put back, and takes over."""

import json
import os
import signal

import pytest

from dbdyno.store.run_folder import read_run
from dbdyno.store.series import read_series
from tests.support import dbdyno, number_of, put_back, start_dbdyno, under_load, wait_for, what_is_left

pytestmark = [pytest.mark.host, pytest.mark.timeout(600)]

STUDY = """\
version = 1
[study]
title = "a replica"
[stack]
device = "nvme"
size = "512MiB"
filesystem = "ext4"
[stack.disks.second]
device = "nvme"
size = "512MiB"
filesystem = "xfs"
[server.replica]
{replica}
[server.replica.settings]
sync_relay_log = {sync}
[server.settings]
log_bin = true
innodb_buffer_pool_size = "32M"
innodb_log_file_size = "8M"
[workload]
{workload}
"""
SLAP = 'kind = "slap"\nload = "write"\nclients = 4\nwarmup = "100ms"\n{}\n[design]\nblocks = 1\ninterference = "note"'
FAILOVER = """\
kind = "ledger"
clients = 8
accounts = 500
warmup = "200ms"
duration = "5s"
[crash]
mode = "failover"
cuts = 1
[design]
seed = 7
"""


def study_of(replica, workload, sync=1):
    return STUDY.format(replica=replica, workload=workload, sync=sync)


def test_it_follows_on_its_own_disk_with_its_own_settings_and_the_report_says_how_far(state, study_file, tmp_path):
    replica = 'mode = ["none", "async", "semisync"]\ndisk = "second"\nround_trip = "20ms"'
    study, run = study_file(study_of(replica, SLAP.format('duration = "1s"'))), tmp_path / "run"
    done = dbdyno("run", study, "--into", run, "--json", state=state)
    assert done.returncode == 0, done.stderr
    assert what_is_left(state) == []
    none, apart, waiting = (trial for _, trial in sorted((one.treatment, one) for one in read_run(run).trials))
    assert "replica" not in none.observed
    for trial in (apart, waiting):
        shown = trial.observed["replica"]
        assert (shown["source_server_id"], shown["replica_server_id"], shown["disk"]) == ("1", "2", "second")
        assert shown["sync_relay_log"] == "1"
        assert trial.observed["server"]["log_bin"] == "ON"
        assert shown["round_trip_ms"] >= 20
        assert trial.observed["filesystem of second"]["kind"] == "xfs"
        series = read_series(run, [trial.id])[trial.id]
        assert {"replica", "replica_process", "block_device_second"} <= series.keys()
        assert series["replica"]["written_MB/s"].max() > 0
        assert trial.metrics["replica_catch_up_ms"] > 0
    assert waiting.observed["replica"]["rpl_semi_sync_master_wait_point"] == "AFTER_SYNC"
    assert waiting.observed["replica"]["master_status"] == "ON"
    assert "replica_wait_ms_mean" not in apart.metrics
    assert waiting.metrics["replica_wait_ms_mean"] >= 5, "it is on its way while the source syncs its own log"
    assert waiting.metrics["latency_ms_p50"] >= 20, "each commit waits for a round trip at least"
    assert [one["mode"] for one in json.loads(done.stdout)["replicas"]] == ["async", "semisync"]
    text = dbdyno("report", run, "--details", state=state).stdout
    assert "commit waits ms" in text


@pytest.mark.drawn(0)
def test_killed_under_load_nothing_is_left_of_either_server(state, study_file, tmp_path):
    study = study_file(
        study_of('mode = "semisync"\ndisk = "second"\nround_trip = "1ms"', SLAP.format('duration = "60s"'))
    )
    process = start_dbdyno("run", study, "--into", tmp_path / "run", state=state)
    wait_for(lambda: under_load(state, "/replica/server/"))
    assert number_of(state, "--server-id=1", "--bind-address=127.0.0.1")
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=180)
    put_back(state)


@pytest.mark.drawn(0)
def test_a_replica_that_is_gone_makes_the_trial_void_with_its_cause(state, study_file, tmp_path):
    study = study_file(study_of('mode = "async"\ndisk = "second"', SLAP.format('duration = "3s"')))
    process = start_dbdyno("run", study, "--into", tmp_path / "run", state=state)
    pid = wait_for(lambda: under_load(state, "--server-id=2"))
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: process.poll() is not None or "server.replica: " in journal_of(tmp_path / "run"))
    process.send_signal(signal.SIGINT)
    output = process.communicate(timeout=180)[0]
    assert "server.replica: " in output
    assert "the server ended (killed by signal 9" in output or "SIGKILL" in output, output
    assert what_is_left(state) == []


def journal_of(run):
    path = run / "journal.jsonl"
    return path.read_text(encoding="utf-8") if path.exists() else ""


@pytest.mark.drawn(0)
@pytest.mark.parametrize(("mode", "outcome"), [("semisync", "nothing"), ("async", "tail")])
def test_a_failover_loses_what_was_on_the_way_but_nothing_that_was_waited_for(
    state, study_file, tmp_path, mode, outcome
):
    replica = f'mode = "{mode}"\ndisk = "second"\nround_trip = "200ms"'
    study, run = study_file(study_of(replica, FAILOVER, sync=0)), tmp_path / "run"
    done = dbdyno("run", study, "--into", run, state=state)
    assert what_is_left(state) == []
    trials = {trial.treatment: trial for trial in read_run(run).trials}
    (cut,) = trials["t1"].cuts
    assert (cut.mode, cut.outcome) == ("failover", outcome), done.stdout
    assert cut.acked > 0
    if mode == "async":
        assert cut.lost_ms >= 50, "it takes 100 ms to the replica"
        assert cut.holes == cut.torn == cut.ghost == 0
    else:
        assert trials["control"].cuts[0].outcome == "tail", "the control shows that a loss would be seen"
