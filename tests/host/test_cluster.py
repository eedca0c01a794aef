"""A cluster of real servers on real disks: its nodes join, are read back, timed and put back, and one takes over."""

import json
import os
import signal

import pytest

from dbdyno.servers.mysql.galera import cluster_mistake
from dbdyno.servers.sources.installation import find_server
from dbdyno.store.run_folder import read_run
from dbdyno.store.series import read_series
from tests.support import dbdyno, number_of, put_back, start_dbdyno, under_load, wait_for, what_is_left

pytestmark = [
    pytest.mark.host,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(cluster_mistake(find_server("mariadb"))), reason="no libgalera_smm.so"),
]

STUDY = """\
version = 1
[study]
title = "a cluster"
[stack]
device = "nvme"
size = "512MiB"
filesystem = "ext4"
{stack}
[stack.disks.second]
device = "nvme"
size = "512MiB"
filesystem = "ext4"
[stack.disks.third]
device = "nvme"
size = "512MiB"
filesystem = "xfs"
[server.cluster]
{cluster}
disks = "second,third"
gcache_size = "16MiB"
gcs_fc_limit = 40
[server.settings]
innodb_buffer_pool_size = "32M"
innodb_log_file_size = "{log}"
[workload]
{workload}
"""
SLAP = 'kind = "slap"\nload = "write"\nclients = 4\nwarmup = "100ms"\n{}\n[design]\nblocks = 1\ninterference = "note"'
FAILOVER = """\
kind = "ledger"
clients = 8
accounts = 500
warmup = "200ms"
duration = "4s"
[crash]
mode = "failover"
cuts = 1
[design]
seed = 7
"""


def study_of(cluster, workload, log="8M", stack=""):
    return STUDY.format(cluster=cluster, workload=workload, log=log, stack=stack)


def test_three_nodes_on_three_disks_and_what_a_commit_waits_for(state, study_file, tmp_path):
    cluster = 'mode = ["none", "galera"]\nround_trip = "20ms"'
    study, run = study_file(study_of(cluster, SLAP.format('duration = "1s"'))), tmp_path / "run"
    done = dbdyno("run", study, "--into", run, "--json", state=state)
    assert done.returncode == 0, done.stderr
    assert what_is_left(state) == []
    alone, together = (trial for _, trial in sorted((one.treatment, one) for one in read_run(run).trials))
    assert "cluster" not in alone.observed
    shown = together.observed["cluster"]
    assert (shown["size"], shown["disk_2"], shown["disk_3"]) == ("3", "second", "third")
    assert (shown["gcs.fc_limit"], shown["binlog_format"], shown["connections_over_network"]) == ("40", "ROW", 3)
    assert together.observed["filesystem of third"]["kind"] == "xfs"
    logs = [(run / "trials" / together.id / f"node{number}.log").read_text(encoding="utf-8") for number in (2, 3)]
    assert all("state transfer needed: no" in log for log in logs)
    series = read_series(run, [together.id])[together.id]
    assert {"cluster", "node_process_2", "node_process_3", "block_device_third"} <= series.keys()
    metrics = together.metrics
    assert metrics["ordering_ms_mean"] >= 20, "each write set waits for a round trip at least"
    assert metrics["latency_ms_p50"] >= 20
    assert metrics["cluster_commits_per_second"] == pytest.approx(metrics["queries_per_second"], rel=0.3)
    assert metrics["certification_failures"] == 0
    assert 0 <= metrics["flow_control_paused_ratio"] <= 1
    assert metrics["cluster_catch_up_ms"] > 0
    assert [one["nodes"] for one in json.loads(done.stdout)["clusters"]] == ["3"]
    assert "A commit waits until all 3 nodes" in dbdyno("report", run, "--details", state=state).stdout


@pytest.mark.drawn(0)
def test_killed_under_load_nothing_is_left_of_any_node(state, study_file, tmp_path):
    study = study_file(study_of('mode = "galera"\nround_trip = "1ms"', SLAP.format('duration = "60s"')))
    process = start_dbdyno("run", study, "--into", tmp_path / "run", state=state)
    wait_for(lambda: under_load(state, "/node3/server/"))
    assert number_of(state, "--wsrep-node-name=node1")
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=180)
    put_back(state)


@pytest.mark.drawn(0)
def test_a_node_that_is_gone_makes_the_trial_void_with_its_cause(state, study_file, tmp_path):
    study = study_file(study_of('mode = "galera"', SLAP.format('duration = "3s"')))
    process = start_dbdyno("run", study, "--into", tmp_path / "run", state=state)
    os.kill(wait_for(lambda: under_load(state, "--wsrep-node-name=node2")), signal.SIGKILL)
    journal = tmp_path / "run/journal.jsonl"
    wait_for(lambda: process.poll() is not None or "server.cluster: " in journal.read_text(encoding="utf-8"))
    process.send_signal(signal.SIGINT)  # the block would be repeated
    process.communicate(timeout=180)
    (failed,) = (line for line in journal.read_text(encoding="utf-8").splitlines() if "server.cluster: " in line)
    assert "the server ended (killed by signal SIGKILL)" in failed
    assert what_is_left(state) == []


@pytest.mark.drawn(0)
def test_a_failover_loses_nothing_that_all_nodes_had_ordered(state, study_file, tmp_path):
    study, run = study_file(study_of('mode = "galera"\nround_trip = "100ms"', FAILOVER, "64M")), tmp_path / "run"
    done = dbdyno("run", study, "--into", run, state=state)
    assert what_is_left(state) == []
    trials = {trial.treatment: trial for trial in read_run(run).trials}
    (cut,) = trials["t1"].cuts
    assert (cut.mode, cut.outcome) == ("failover", "nothing"), done.stdout
    assert cut.acked > 0
    assert trials["control"].cuts[0].outcome == "tail", "the control shows that a loss would be seen"


def test_tables_that_no_cluster_replicates_are_refused(state, study_file):
    study = study_file(study_of('mode = "galera"', SLAP.format('duration = "1s"'), stack='engine = "aria"'))
    done = dbdyno("plan", study, state=state)
    assert done.returncode == 2
    assert 'server.cluster.mode: is "galera", which replicates innodb alone, not aria' in done.stderr
