"""Studies in virtual machines: a kernel boots for a trial, and nothing is left of it, however it ends."""

import json
import os
import signal
import subprocess
from contextlib import closing

import pytest

from dbdyno.stack.guest.channel import GuestLostError
from dbdyno.stack.guest.machine import Machine, booted
from dbdyno.stack.undo_log import Journal
from dbdyno.store.run_folder import read_run
from dbdyno.store.series import read_series
from tests.disks import LONG
from tests.guest_kernels import fetch_kernel, kept_kernels
from tests.support import dbdyno, put_back, start_dbdyno, wait_for, what_is_left

pytestmark = [pytest.mark.host, pytest.mark.long, pytest.mark.timeout(1500)]

KERNEL = "debian-6.1"
DRIVES = ["hdd-7200", "ssd-sata"] if LONG else ["ssd-sata"]  # a boot each, besides that which makes the image

STUDY = f"""\
version = 1
[study]
title = "a kernel"
[stack]
kernel = "{KERNEL}"
device = {json.dumps(DRIVES)}
size = "512MiB"
filesystem = "ext4"
scheduler = "mq-deadline"
[server.settings]
innodb_buffer_pool_size = "32M"
[workload]
kind = "slap"
load = "write"
clients = 2
queries = 60
warmup = "0s"
[design]
blocks = 1
"""


@pytest.fixture(scope="module", autouse=True)
def kept():
    """The kernel, which all tests here boot."""
    with kept_kernels():
        yield


@pytest.fixture
def kernel(state, monkeypatch):
    """The kernel in the state folder of the test."""
    return fetch_kernel(KERNEL, state, monkeypatch)


def machines(state):
    """Processes of QEMU that belong to a state folder."""
    found = subprocess.run(
        ["pgrep", "-f", f"qemu-system.*{state}/scratch"], capture_output=True, text=True, check=False
    )
    return found.stdout.split()


def test_a_kernel_boots_for_each_trial(state, kernel, tmp_path):
    study, into = tmp_path / "study.toml", tmp_path / "run"
    study.write_text(STUDY)
    done = dbdyno("run", str(study), "--into", str(into), state=state, timeout=1400)
    assert done.returncode == 0, done.stderr
    run = read_run(into)
    assert run.ended == "done"
    by_drive = {trial.observed["device"]["model"]: trial for trial in run.trials}
    assert by_drive.keys() == {*DRIVES}
    for trial in run.trials:
        assert trial.observed["guest"]["kernel"] == kernel.release
        assert trial.observed["queue"]["scheduler"] == "mq-deadline"
        assert trial.observed["filesystem"]["kind"] == "ext4"
        assert trial.observed["filesystem"]["flushes_on_fsync"] is True
        assert trial.device["lateness_ns"]["count"] > 0
        assert (into / "trials" / trial.id / "load.parquet").is_file()
        assert trial.disturbance["in_guest"]["foreign_cpu"] >= 0
        assert trial.device["service_ns"]["flush"]["count"] > 0
    rotational = {name: trial.observed["queue"]["rotational"] for name, trial in by_drive.items()}
    assert rotational == {name: "1" if name == "hdd-7200" else "0" for name in DRIVES}
    badges = json.loads(dbdyno("report", str(into), "--format", "json", state=state).stdout)["badges"]
    assert {"booted"} <= {badge["text"] for badge in badges}
    assert not what_is_left(state)
    assert not machines(state)


@pytest.mark.drawn(0)  # a boot for each bus takes minutes: with DBDYNO_TEST_LONG alone
def test_each_bus_has_the_queues_that_it_is_known_for(state, kernel, tmp_path):
    del kernel
    study, into = tmp_path / "study.toml", tmp_path / "run"
    buses = STUDY.replace(json.dumps(DRIVES), '"ssd-sata"\nbus = ["virtio", "scsi", "ahci", "nvme"]')
    study.write_text(buses)
    done = dbdyno("run", str(study), "--into", str(into), state=state, timeout=1400)
    assert done.returncode == 0, done.stderr
    queues = {trial.observed["guest"]["bus"]: trial.observed["queue"] for trial in read_run(into).trials}
    cpus = str(min(4, len(os.sched_getaffinity(0))))
    assert {bus: queue["queues"] for bus, queue in queues.items()} == {
        "virtio": cpus,
        "scsi": cpus,
        "ahci": "1",
        "nvme": cpus,
    }
    assert queues["ahci"]["queue_depth"] == "32"  # of NCQ
    assert {queue["scheduler"] for queue in queues.values()} == {"mq-deadline"}
    assert all(int(queue["nr_requests"]) > 0 for queue in queues.values())


@pytest.mark.drawn(0)  # as above
def test_a_log_has_a_disk_of_its_own_whose_power_is_cut_with_that_of_the_data(state, kernel, tmp_path):
    del kernel
    study, into = tmp_path / "study.toml", tmp_path / "run"
    log = '[stack.disks.log]\ndevice = "nvme"\nsize = "512MiB"\nfilesystem = "xfs"\nscheduler = "none"\n'
    log += '[server.place]\ninnodb_log = "log"\n[server.settings]\n'
    ledger = 'kind = "ledger"\nclients = 2\naccounts = 100\nwarmup = "1s"\nduration = "10s"\n'
    text = (
        STUDY.partition("[workload]")[0].replace("[server.settings]\n", log).replace(json.dumps(DRIVES), '"hdd-7200"')
    )
    study.write_text(
        f'{text}[workload]\n{ledger}[crash]\ncuts = 3\ncuts_per_run = 3\nwhen = ["uniform", "ack", "flush"]\n'
    )
    done = dbdyno("run", str(study), "--into", str(into), state=state, timeout=1400)
    assert done.returncode == 0, done.stderr
    trials = {trial.treatment: trial for trial in read_run(into).trials}
    trial = trials.pop("t1")
    assert (trial.observed["device"]["model"], trial.observed["device of log"]["model"]) == ("hdd-7200", "nvme")
    assert (trial.observed["queue"]["rotational"], trial.observed["queue of log"]["rotational"]) == ("1", "0")
    assert (trial.observed["queue"]["scheduler"], trial.observed["queue of log"]["scheduler"]) == (
        "mq-deadline",
        "none",
    )
    assert trial.observed["filesystem of log"]["kind"] == "xfs"
    assert trial.observed["server"]["place of innodb_log"] == "log"
    assert trial.device["named"]["log"]["lateness_ns"]["count"] > 0
    series = read_series(into, [trial.id])[trial.id]
    assert float(series["block_device_log"]["written_bytes"][-1]) > 0
    assert [cut.when for cut in trial.cuts if cut.is_loss] == []
    assert sorted(cut.when for cut in trial.cuts) == ["ack", "flush", "uniform"]
    assert min(cut.acked for cut in trial.cuts) > 0
    assert [name for name in trials if name != "control"] == []
    assert not what_is_left(state)


def test_a_run_that_is_killed_leaves_no_machine(state, kernel, tmp_path):
    del kernel
    study = tmp_path / "study.toml"
    study.write_text(STUDY)
    with start_dbdyno("run", str(study), "--into", str(tmp_path / "run"), state=state) as process:
        wait_for(lambda: machines(state))
        process.send_signal(signal.SIGKILL)
    wait_for(lambda: not machines(state))  # it ends with who started it
    put_back(state)


def test_a_guest_that_floods_its_host_costs_its_trial_only(state, kernel):
    """Lines without end on its console and on its port: what is kept is bounded, and the machine ends."""
    port = "/dev/$(basename $(dirname $(echo /sys/class/virtio-ports/*/name)))"
    flood = f"yes console > /dev/console & cat /dev/zero > {port}"
    with (
        closing(Journal("a flood")) as journal,
        booted(Machine(kernel, 512 * 1024**2, flood), journal, "tcg") as guest,
        pytest.raises(GuestLostError, match="a line of more than"),
    ):
        guest.channel.receive(240)
    assert len(guest.console.text) < 5000
    assert guest.process.poll() is not None
    assert not machines(state)
