"""A replica and a cluster on real disks: they follow, are read back, are timed and put back, and take over."""

import json
import os
import signal

import pytest

from dbdyno.servers.mysql.galera import cluster_mistake
from dbdyno.servers.sources.installation import find_server
from dbdyno.store.run_folder import read_run
from dbdyno.store.series import read_series
from tests.support import dbdyno, number_of, put_back, start_dbdyno, under_load, wait_for, what_is_left

pytestmark = [pytest.mark.host, pytest.mark.timeout(600)]

STUDY = """\
version = 1
[study]
title = "several servers"
[stack]
device = "nvme"
size = "512MiB"
filesystem = "ext4"
{stack}
[stack.disks.second]
device = "nvme"
size = "512MiB"
filesystem = "xfs"
{servers}
[server.settings]
innodb_buffer_pool_size = "32M"
innodb_log_file_size = "{log}"
{settings}
[workload]
{workload}
"""
REPLICA = '[server.replica]\ndisk = "second"\n{}\n[server.replica.settings]\nsync_relay_log = {}'
CLUSTER = """\
[stack.disks.third]
device = "nvme"
size = "512MiB"
filesystem = "ext4"
[server.cluster]
disks = "second,third"
gcache_size = "16MiB"
gcs_fc_limit = 40
{}
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


def replica_study(replica, workload, sync=1):
    servers = REPLICA.format(replica, sync)
    return STUDY.format(servers=servers, workload=workload, log="8M", settings="log_bin = true", stack="")


def cluster_study(cluster, workload, log="8M", stack=""):
    """Skips the test on a host whose MariaDB can be no node."""
    if mistake := cluster_mistake(find_server("mariadb")):
        pytest.skip(mistake)
    return STUDY.format(servers=CLUSTER.format(cluster), workload=workload, log=log, settings="", stack=stack)


def trials_of(run, done, state):
    """The trials of a run that went well, in the order of their treatments."""
    assert done.returncode == 0, done.stderr
    assert what_is_left(state) == []
    return [trial for _, trial in sorted((one.treatment, one) for one in read_run(run).trials)]


def test_it_follows_on_its_own_disk_with_its_own_settings_and_the_report_says_how_far(state, study_file, tmp_path):
    replica = 'mode = ["none", "async", "semisync"]\nround_trip = "20ms"'
    study, run = study_file(replica_study(replica, SLAP.format('duration = "1s"'))), tmp_path / "run"
    done = dbdyno("run", study, "--into", run, "--json", state=state)
    none, apart, waiting = trials_of(run, done, state)
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
    assert "commit waits ms" in dbdyno("report", run, "--details", state=state).stdout


def test_three_nodes_on_three_disks_and_what_a_commit_waits_for(state, study_file, tmp_path):
    cluster = 'mode = ["none", "galera"]\nround_trip = "20ms"'
    study, run = study_file(cluster_study(cluster, SLAP.format('duration = "1s"'))), tmp_path / "run"
    done = dbdyno("run", study, "--into", run, "--json", state=state)
    alone, together = trials_of(run, done, state)
    assert "cluster" not in alone.observed
    shown = together.observed["cluster"]
    assert (shown["size"], shown["disk_2"], shown["disk_3"]) == ("3", "second", "third")
    assert (shown["gcs.fc_limit"], shown["binlog_format"], shown["connections_over_network"]) == ("40", "ROW", 3)
    assert together.observed["filesystem of second"]["kind"] == "xfs"
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


BOTH = {
    "replica": (replica_study, 'mode = "semisync"', "--server-id=1", "--server-id=2"),
    "cluster": (cluster_study, 'mode = "galera"', "--wsrep-node-name=node1", "--wsrep-node-name=node2"),
}


@pytest.mark.drawn(0)
@pytest.mark.parametrize("kind", BOTH)
def test_killed_under_load_nothing_is_left_of_any_server(state, study_file, tmp_path, kind):
    study_of, servers, first, second = BOTH[kind]
    study = study_file(study_of(f'{servers}\nround_trip = "1ms"', SLAP.format('duration = "60s"')))
    process = start_dbdyno("run", study, "--into", tmp_path / "run", state=state)
    wait_for(lambda: under_load(state, second))
    assert number_of(state, first)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=180)
    put_back(state)


@pytest.mark.drawn(0)
@pytest.mark.parametrize("kind", BOTH)
def test_a_server_that_is_gone_makes_the_trial_void_with_its_cause(state, study_file, tmp_path, kind):
    study_of, servers, _, second = BOTH[kind]
    study, journal = study_file(study_of(servers, SLAP.format('duration = "3s"'))), tmp_path / "run/journal.jsonl"
    where = f"server.{kind}: "
    process = start_dbdyno("run", study, "--into", tmp_path / "run", state=state)
    os.kill(wait_for(lambda: under_load(state, second)), signal.SIGKILL)
    wait_for(lambda: process.poll() is not None or where in journal.read_text(encoding="utf-8"))
    process.send_signal(signal.SIGINT)  # the block would be repeated
    process.communicate(timeout=180)
    causes = [line for line in journal.read_text(encoding="utf-8").splitlines() if where in line]
    assert len(causes) == 1
    assert "the server ended (killed by signal SIGKILL)" in causes[0]
    assert what_is_left(state) == []


@pytest.mark.drawn(0)
@pytest.mark.parametrize(
    ("study", "outcome"),
    [
        (lambda: replica_study('mode = "semisync"\nround_trip = "200ms"', FAILOVER, sync=0), "nothing"),
        (lambda: replica_study('mode = "async"\nround_trip = "200ms"', FAILOVER, sync=0), "tail"),
        (lambda: cluster_study('mode = "galera"\nround_trip = "100ms"', FAILOVER, log="64M"), "nothing"),
    ],
    ids=["semisync", "async", "cluster"],
)
def test_a_failover_loses_what_was_on_the_way_but_nothing_that_was_waited_for(
    state, study_file, tmp_path, study, outcome
):
    run = tmp_path / "run"
    done = dbdyno("run", study_file(study()), "--into", run, state=state)
    assert what_is_left(state) == []
    trials = {trial.treatment: trial for trial in read_run(run).trials}
    (cut,) = trials["t1"].cuts
    assert (cut.mode, cut.outcome) == ("failover", outcome), done.stdout
    assert cut.acked > 0
    if outcome == "tail":
        assert cut.lost_ms >= 50, "it takes 100 ms to the replica"
        assert cut.holes == cut.torn == cut.ghost == 0
    else:
        assert trials["control"].cuts[0].outcome == "tail", "the control shows that a loss would be seen"


def test_tables_that_no_cluster_replicates_are_refused(state, study_file):
    study = study_file(cluster_study('mode = "galera"', SLAP.format('duration = "1s"'), stack='engine = "aria"'))
    done = dbdyno("plan", study, state=state)
    assert done.returncode == 2
    assert 'server.cluster.mode: is "galera", which replicates innodb alone, not aria' in done.stderr
