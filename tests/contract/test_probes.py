"""The contract of a probe, over every source, on a real server and a real block device."""

import json
import os
import shutil
import signal
import subprocess
import time

import pytest

from dbdyno.clock import now_ns
from dbdyno.filesystems.ext import EXT4
from dbdyno.probe.block_device import BlockDeviceSource
from dbdyno.probe.client_process import ClientProcessSource
from dbdyno.probe.host_cpu import HostCpuSource
from dbdyno.probe.pressure import PressureSource
from dbdyno.probe.sampler import Sampler
from dbdyno.probe.server_process import ServerProcessSource
from dbdyno.probe.server_status import ServerStatusSource
from dbdyno.servers.installation import find_server
from dbdyno.stack.device import Emulated
from dbdyno.stack.emulated_disk import running_disk
from dbdyno.stack.filesystem import Filesystem
from dbdyno.stack.layer import raised
from dbdyno.stack.scratch import scratch
from dbdyno.stack.server import Server
from dbdyno.study.schema import FilesystemSection

pytestmark = pytest.mark.host

SOURCES = {
    "block_device": lambda stand: BlockDeviceSource(stand.device.name),
    "client_process": lambda _: ClientProcessSource(),
    "host_cpu": lambda _: HostCpuSource(),
    "pressure": lambda _: PressureSource(),
    "server_process": lambda stand: ServerProcessSource(stand.endpoint.pid),
    "server_status": lambda stand: ServerStatusSource(stand.endpoint.address, stand.endpoint.pid),
}


@pytest.fixture
def stand(journal, tmp_path):
    with running_disk(journal, model="ideal", size=512 * 1024**2) as disk, scratch(journal) as ground:
        settings = {"innodb_log_file_size": "8M", "innodb_buffer_pool_size": "32M"}
        server = Server(find_server("mariadb"), settings, "innodb", 4, install=True, log=tmp_path / "server.log")
        device = Emulated(disk, "ideal", rotational=False, seed=1, restore=False)
        filesystem = Filesystem(EXT4, FilesystemSection(), format=True)
        with raised([device, filesystem, server], ground) as up:
            yield up


def watched(source, during):
    sampler = Sampler([source])
    began = now_ns()
    sampler.start()
    during()
    return sampler.stop()[source.name], began, now_ns()


@pytest.mark.parametrize("name", SOURCES)
def test_samples_on_the_clock_with_constant_columns_and_a_known_cost(name, stand):
    source = SOURCES[name](stand)
    assert source.name == name
    series, began, ended = watched(source, lambda: time.sleep(1))
    assert 7 <= len(series.t_ns) <= 11
    assert series.t_ns == sorted(set(series.t_ns))
    assert began < series.t_ns[0] < series.t_ns[-1] <= ended
    assert {len(values) for values in series.columns.values()} == {len(series.t_ns)}
    assert all(value >= 0 for values in series.columns.values() for value in values)
    assert 0 < series.cpu_seconds < 0.5
    assert series.missed == 0


@pytest.mark.parametrize("name", ["server_process", "server_status"])
def test_a_source_that_goes_away_is_missed_and_breaks_nothing(name, stand):
    source = SOURCES[name](stand)
    series, _, _ = watched(
        source, lambda: (time.sleep(0.3), os.kill(stand.endpoint.pid, signal.SIGKILL), time.sleep(0.5))
    )
    assert series.missed > 0
    assert {len(values) for values in series.columns.values()} == {len(series.t_ns)}


@pytest.mark.skipif(shutil.which("iostat") is None, reason="no iostat")
def test_the_block_device_s_columns_are_iostat_s(stand):
    """Both read the same counters over about the same second of writes at a steady rate."""
    name = stand.device.name
    command = ["iostat", "-x", "-y", "-o", "JSON", "-d", name, "2", "1"]
    target = str(stand.directory / "file")
    fio = ["fio", "--name=x", f"--filename={target}", "--size=64m", "--rw=randwrite", "--bs=4k", "--direct=1"]
    fio += ["--rate_iops=2000", "--time_based", "--runtime=4", "--output=/dev/null"]
    if shutil.which("fio") is None:
        pytest.skip("no fio")
    with subprocess.Popen(fio) as load:
        time.sleep(1)
        told = {}

        def ask():
            told.update(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))

        series, _, _ = watched(BlockDeviceSource(name), ask)
        load.wait()
    [row] = told["sysstat"]["hosts"][0]["statistics"][0]["disk"]
    mean = {column: sum(values) / len(values) for column, values in series.columns.items()}
    assert mean["w/s"] == pytest.approx(row["w/s"], rel=0.15)
    assert mean["wMB/s"] == pytest.approx(row.get("wMB/s", row.get("wkB/s", 0) * 1024 / 1e6), rel=0.15)
    assert mean["aqu-sz"] == pytest.approx(row["aqu-sz"], rel=0.5, abs=0.3)
