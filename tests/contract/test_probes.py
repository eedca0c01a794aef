"""The contract of a probe, over every source, on a real server and a real block device."""

import os
import re
import shutil
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benches.iostat import compared, mixed_load
from dbdyno.filesystems import EXT4
from dbdyno.host.perf_events import why_no_counters
from dbdyno.probe.catalogue import host_sources, watching
from dbdyno.probe.cluster import ClusterSource, NodeProcessSource
from dbdyno.probe.drive import DriveSource
from dbdyno.probe.iostat import BlockDeviceSource
from dbdyno.probe.replica import ReplicaProcessSource, ReplicaSource
from dbdyno.probe.sampler import Sampler
from dbdyno.probe.server import ServerProcessSource, ServerStatusSource
from dbdyno.probe.server_costs import ServerSwitchesSource
from dbdyno.run.trial import metrics
from dbdyno.servers.contract import ClusterTerms, Membership, ReplicaTerms, Replicating
from dbdyno.servers.mysql.galera import cluster_mistake
from dbdyno.servers.sources.installation import find_server
from dbdyno.stack.kinds.own import LOCAL
from dbdyno.stack.layer import raised
from dbdyno.stack.layers.cluster import ClusterData, ClusterLayer, node_host, node_of
from dbdyno.stack.layers.device import Emulated
from dbdyno.stack.layers.emulated_disk import running_disk
from dbdyno.stack.layers.filesystem import Filesystem
from dbdyno.stack.layers.replica import ReplicaData, ReplicaLayer, replica_of
from dbdyno.stack.layers.scratch import scratch
from dbdyno.stack.layers.server import ServerLayer
from dbdyno.study.schema import FilesystemSection, TrialSpec
from dbdyno.system.interrupt import now_ns
from dbdyno.workload.kinds import workload_of
from tests.support import wait_for

pytestmark = pytest.mark.host
ATTEMPTS = 4
TICK_US = 1e6 / os.sysconf("SC_CLK_TCK")  # what the kernel tells a process's CPU in
HAPPENING = ("r/s", "w/s", "d/s", "f/s", "wrqm/s", "%wrqm", "f_await", "aqu-sz")

SOURCES = {
    "block_device": lambda stand: BlockDeviceSource(stand.device.name),
    **{of_host.name: lambda _, of_host=of_host: of_host() for of_host in host_sources()},
    "server_process": lambda stand: ServerProcessSource(stand.endpoint.pid),
    "server_switches": lambda stand: ServerSwitchesSource(stand.endpoint.pid),
    "server_status": lambda stand: ServerStatusSource(stand.endpoint.control, stand.endpoint.pid),
}


OF_REPLICA = {
    "replica": lambda stand: ReplicaSource(stand.replica.replication),
    "replica_process": lambda stand: ReplicaProcessSource(stand.replica.endpoint.pid),
}


OF_CLUSTER = {
    "cluster": lambda stand: ClusterSource(stand.nodes.cluster),
    "node_process_2": lambda stand: NodeProcessSource(stand.nodes.others[0].pid, "2"),
}


@pytest.fixture
def stand(journal, tmp_path):
    with running_disk(journal, model="ideal", size=512 * 1024**2) as disk, scratch(journal) as ground:
        settings = {"innodb_log_file_size": "8M", "innodb_buffer_pool_size": "32M"}
        server = ServerLayer(find_server("mariadb"), settings, "innodb", 4, install=True, log=tmp_path / "server.log")
        device = Emulated(disk, "ideal", rotational=False, seed=1, restore=False)
        filesystem = Filesystem(EXT4, FilesystemSection(), format=True)
        with raised([device, filesystem, server], ground) as up:
            yield up


@pytest.fixture
def installed(journal, tmp_path):
    """A server's layer and the ground that its system tables are on."""
    with running_disk(journal, model="ideal", size=512 * 1024**2) as disk, scratch(journal) as ground:
        settings = {"innodb_log_file_size": "8M", "innodb_buffer_pool_size": "32M", "log_bin": True}
        server = ServerLayer(find_server("mariadb"), settings, "innodb", 4, install=True, log=tmp_path / "server.log")
        device = Emulated(disk, "ideal", rotational=False, seed=1, restore=False)
        filesystem = Filesystem(EXT4, FilesystemSection(), format=True)
        with raised([device, filesystem], ground) as below:
            with server.raised(below):
                pass
            yield replace(server, install=False), below


@pytest.fixture
def with_replica(installed):
    server, below = installed
    terms = ReplicaTerms("semisync")
    source = replace(server, listen=LOCAL, replicating=Replicating("source", terms))
    replica = ReplicaLayer(replica_of(source, terms, {}), "", terms)
    with raised([ReplicaData(source, ""), source, replica], below) as up:
        yield up


@pytest.fixture
def with_cluster(installed):
    server, below = installed
    if mistake := cluster_mistake(server.installation):
        pytest.skip(mistake)
    terms = ClusterTerms(2, {"gcache.size": 16 * 1024**2})
    first = replace(server, membership=Membership(terms, 1, node_host(1)))
    with raised([ClusterData(first, ("",)), first, ClusterLayer(node_of(first), ("",), terms)], below) as up:
        yield up


@pytest.mark.parametrize("name", OF_CLUSTER)
def test_those_of_a_cluster_keep_the_contract(name, with_cluster):
    check_contract(name, OF_CLUSTER[name](with_cluster))


@pytest.mark.parametrize("name", OF_REPLICA)
def test_those_of_a_replica_keep_the_contract(name, with_replica):
    check_contract(name, OF_REPLICA[name](with_replica))


def watched(source, readings, after=lambda: None, more=0):
    """The series of a source that is read so often, and so often again after something else was done."""
    taken, read = [], source.read
    source.read = lambda: taken.append(None) or read()
    sampler = Sampler([source])
    began = now_ns()
    sampler.start()
    wait_for(lambda: len(taken) >= readings)
    after()
    enough = len(taken) + more
    wait_for(lambda: len(taken) >= enough)
    return sampler.stop()[source.name], began, now_ns()


@pytest.mark.parametrize("name", SOURCES)
def test_samples_with_constant_columns_and_a_known_cost(name, stand):
    check_contract(name, SOURCES[name](stand))


def check_contract(name, source):
    """Sampled by a source, an idle stack gives intervals of the same columns, at a known cost."""
    assert source.name == name
    series, began, ended = watched(source, 11)
    assert len(series.t_ns) >= 9
    assert series.t_ns == sorted(set(series.t_ns))
    assert began < series.t_ns[0] < series.t_ns[-1] <= ended
    assert {len(values) for values in series.columns.values()} == {len(series.t_ns)}
    assert all(value >= 0 for values in series.columns.values() for value in values)
    assert 0 < series.cpu_seconds < 0.5
    assert series.missed == 0


def by_hand(pid, device):
    """Read what a server has used so far, from the kernel's files alone."""
    ran_ns = [int(Path(path, "schedstat").read_text().split()[0]) for path in Path(f"/proc/{pid}/task").iterdir()]
    statuses = [Path(path, "status").read_text() for path in Path(f"/proc/{pid}/task").iterdir()]
    switches = [[int(word) for word in re.findall(r"voluntary_ctxt_switches:\s+(\d+)", text)] for text in statuses]
    disk = list(map(int, Path(f"/sys/block/{device}/stat").read_text().split()))
    return {
        "server_cpu_us_per_query": sum(ran_ns) / 1e3,
        "voluntary_switches_per_query": sum(each[0] for each in switches),
        "involuntary_switches_per_query": sum(each[1] for each in switches),
        "writes_per_query": disk[4],
        "written_bytes_per_query": disk[6] * 512,
        "flushes_per_query": disk[15],
    }


def test_costs_of_a_query_are_those_read_by_hand(stand, tmp_path):
    """Within 2 %, but for figures of so few that the moment of the reading is more than that."""
    load = {"kind": "slap", "load": "write", "clients": 4, "warmup": "1s", "duration": "4s"}
    stack = {"device": "ideal", "size": "512MiB", "filesystem": "ext4"}
    workload = workload_of(TrialSpec.model_validate({"stack": stack, "workload": load}))
    workload.prepare(stand)
    readings, ended = [], threading.Event()

    def read():
        while not ended.wait(0.02):
            began = now_ns()
            used = by_hand(stand.endpoint.pid, stand.device.name)
            readings.append(((began + now_ns()) / 2, used))

    reading = threading.Thread(target=read)
    with watching(stand, []) as series:
        reading.start()
        done = workload.run(stand, 1, tmp_path)
        ended.set()
        reading.join()
    found = metrics(done, series)
    first, last = ({name: at(readings, name, t_ns) for name in readings[0][1]} for t_ns in done.window_ns)
    for name in first:
        used, coarse = last[name] - first[name], 25.0
        if name.startswith("server_cpu"):
            coarse = 1000.0 if "cpu_seconds" in series["server_switches"].columns else 2 * TICK_US
        assert found[name] * done.queries == pytest.approx(used, rel=0.02, abs=coarse), name
    assert found["server_cpu_us_per_query"] > 0
    assert found["voluntary_switches_per_query"] > 0.1
    assert found["fsyncs_per_query"] > 0
    assert ("instructions_per_query" in found) == (not why_no_counters()[0]), "unknown where nothing counts them"


def at(readings, name, t_ns):
    return float(np.interp(t_ns, [t for t, _ in readings], [used[name] for _, used in readings]))


@pytest.mark.parametrize("name", ["server_process", "server_status"])
def test_a_source_that_goes_away_is_missed_and_breaks_nothing(name, stand):
    source = SOURCES[name](stand)
    series, _, _ = watched(source, 3, lambda: os.kill(stand.endpoint.pid, signal.SIGKILL), 10)
    assert series.missed > 0
    assert {len(values) for values in series.columns.values()} == {len(series.t_ns)}


def test_the_server_tells_of_its_log_and_what_telling_cost_it(stand):
    series, _, _ = watched(SOURCES["server_status"](stand), 5)
    assert {"Innodb_checkpoint_age", "Innodb_buffer_pool_pages_dirty", "Innodb_data_fsyncs/s"} <= set(series.columns)
    assert {"Innodb_row_lock_waits/s", "Key_writes/s", "Aria_pagecache_writes/s"} <= set(series.columns)
    assert 0 < series.outside_seconds < 0.5


def test_the_inside_of_a_drive_that_has_one(journal):
    with running_disk(journal, model="nvme-980pro", size=64 * 1024**2) as disk:
        series, _, _ = watched(DriveSource(disk.control), 5)
        assert series.columns.keys() == disk.client.stats()["gauges"].keys()
        assert set(series.columns["temperature_c"]) == {disk.client.stats()["gauges"]["temperature_c"]}
    with running_disk(journal, model="ideal", size=64 * 1024**2) as disk, pytest.raises(OSError, match="no gauges"):
        DriveSource(disk.control)


@pytest.mark.skipif(not (shutil.which("iostat") and shutil.which("fio")), reason="no iostat or no fio")
@pytest.mark.alone
def test_the_block_device_s_columns_are_iostat_s(journal):
    """Reads, writes, flushes and discards. Over 5 s a flush more or less is 3 %; make bench-probes takes a minute.

    Both look at the disk at moments of their own. On a busy host load falls between these, so there are some attempts;
    a column that is another fails in all of them.
    """
    with (
        running_disk(journal, model="ssd-sata", size=512 * 1024**2) as disk,
        scratch(journal) as ground,
        raised([Emulated(disk, "ssd-sata", rotational=False, seed=1, restore=False)], ground) as stand,
    ):
        disk.client.set_mode("model")
        attempts = []
        while len(attempts) < ATTEMPTS and (not attempts or attempts[-1]):
            with mixed_load(stand.device.path, 8):
                time.sleep(1)
                found = compared(stand.device.name, 5, near=0.05)
            wrong = [name for name, (*_, near) in found.items() if not near]
            wrong += [name for name in HAPPENING if not found[name][0]]
            attempts.append({name: found[name] for name in wrong})
    assert attempts[-1] == {}, attempts
