"""Logs on a disk of their own, on real kernels and servers: placed, watched, put back, and cut together."""

import json
import socket
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dbdyno.errors import TrialError
from dbdyno.stack.disk_client import DiskClient, DiskLine
from dbdyno.stack.emptiness import MIB
from dbdyno.stack.layers.emulated_disk import running_disk
from dbdyno.store.run_folder import read_run
from dbdyno.store.series import read_series
from dbdyno.system.interrupt import now_ns
from tests.disks import LONG, direct
from tests.loops import lent_loop
from tests.sampled import kill_at_steps
from tests.support import dbdyno, what_is_left

pytestmark = [pytest.mark.host, pytest.mark.timeout(900)]

STUDY = """\
version = 1
[study]
title = "a log of its own"
[stack]
device = "hdd-7200"
size = "512MiB"
filesystem = "ext4"
[stack.disks.log]
device = "ssd-sata"
size = "512MiB"
filesystem = "xfs"
scheduler = "mq-deadline"
mount = "noatime"
[server.place]
{place}
[server.settings]
innodb_buffer_pool_size = "32M"
innodb_log_file_size = "64M"
log_bin = true
sync_binlog = 1
{settings}
[workload]
{workload}
"""
SLAP = 'kind = "slap"\nload = "write"\nclients = 4\nqueries = 200\n[design]\nblocks = 1\ninterference = "note"\n'
LEDGER = 'kind = "ledger"\nclients = 4\naccounts = 1000\nwarmup = "200ms"\nduration = "2s"\n[design]\nseed = 7\n'
BOTH = 'innodb_log = "log"\nbinlog = "log"\n'


@pytest.fixture
def disk_folder():
    with tempfile.TemporaryDirectory(prefix="dbdyno-test-", dir="/dev/shm") as folder:
        yield Path(folder)


def study_of(place, workload, settings=""):
    return STUDY.format(place=place, workload=workload, settings=settings)


def trials_of(run):
    return {trial.treatment: trial for trial in read_run(run).trials}


def test_what_is_placed_lies_on_its_disk_which_has_probes_and_figures_of_its_own(state, study_file, tmp_path):
    place = 'innodb_log = ["data", "log"]\nbinlog = "log"\ntmpdir = "log"\nundo = "log"'
    study, run = study_file(study_of(place, SLAP, "innodb_undo_tablespaces = 3")), tmp_path / "run"
    done = dbdyno("run", study, "--into", run, "--json", state=state)
    assert done.returncode == 0, done.stderr
    assert what_is_left(state) == []
    beside, apart = (trials_of(run)[name] for name in ("t1", "t2"))
    placed = {name: disk for name, disk in apart.observed["server"].items() if name.startswith("place of ")}
    assert placed == {f"place of {name}": "log" for name in ("innodb_log", "binlog", "tmpdir", "undo")}
    assert "place of innodb_log" not in beside.observed["server"]
    assert apart.observed["filesystem of log"]["kind"] == "xfs"
    assert "noatime" in apart.observed["filesystem of log"]["mount_options"]
    assert apart.observed["queue of log"]["scheduler"] == "mq-deadline"
    assert (apart.observed["queue"]["rotational"], apart.observed["queue of log"]["rotational"]) == ("1", "0")
    assert apart.device["named"]["log"]["model"] == "ssd-sata"
    series = read_series(run, [apart.id])[apart.id]
    written = {name: float(series[name]["written_bytes"][-1]) for name in ("block_device", "block_device_log")}
    assert written["block_device_log"] > 0
    assert apart.metrics["written_bytes_per_query"] > 0
    figures = {side["label"]: side["figures"] for side in json.loads(done.stdout)["why"]["treatments"]}
    parts = sum(figures["log"][name] for name in ("read_ms", "flush_ms", "write_ms"))
    assert figures["log"]["on_log_ms"] + figures["log"]["on_data_ms"] == pytest.approx(parts, abs=1e-3)
    contents = {path.name for path in state.glob("images/*/*")}
    assert contents == {"content", "content-log", "image.json"}
    again = dbdyno("run", study, "--into", tmp_path / "again", state=state)
    assert again.returncode == 0, again.stderr
    assert "preparing data" not in again.stderr, "an image of two disks is kept and loaded"


@pytest.mark.long
def test_killed_at_any_step_both_disks_are_put_back(state, study_file, tmp_path):
    study = study_file(study_of(BOTH, SLAP))
    kill_at_steps(
        "named disks", 13, lambda step: ("run", study, "--into", tmp_path / f"run{step}", "--fresh-images"), state
    )


@pytest.mark.long
def test_a_cut_of_both_disks_takes_no_commit_that_both_logs_have_synced(state, study_file, tmp_path):
    """The data's disk is a slow one with a volatile cache, the logs' a fast one: at any moment they are far apart."""
    cuts = (
        f'[crash]\ncuts = {1000 if LONG else 20}\ncuts_per_run = 10\nwhen = ["uniform", "ack", "flush", "recovery"]\n'
    )
    study, run = study_file(study_of(BOTH, LEDGER + cuts)), tmp_path / "run"
    done = dbdyno("run", study, "--into", run, state=state, timeout=850)
    assert done.returncode == 0, done.stdout + done.stderr
    assert what_is_left(state) == []
    control, durable = ([cut for trial in trials for cut in trial.cuts] for trials in _by_treatment(run))
    assert {cut.when for cut in durable} == {"uniform", "ack", "flush", "recovery"}
    assert [cut for cut in durable if cut.is_loss] == []
    assert min(cut.acked for cut in durable) > 0
    assert any(cut.is_loss for cut in control), "a log that is synced once a second loses on a disk of its own too"


@pytest.mark.long
def test_real_disks_are_each_proved_erased_and_left_for_the_next(state, study_file, tmp_path, disk_folder):
    def of(device, file):
        return f'device = "{device}"\nserial = "{file}"\n'

    files = [disk_folder / name for name in ("data", "log")]
    with lent_loop(files[0], 400 * MIB) as data, lent_loop(files[1], 400 * MIB) as log:
        text = study_of(BOTH, SLAP.replace("blocks = 1", "blocks = 2"))
        text = text.replace('device = "hdd-7200"\nsize = "512MiB"\n', of(data, files[0]))
        text = text.replace('device = "ssd-sata"\nsize = "512MiB"\n', of(log, files[1]))
        study, run = study_file(text), tmp_path / "run"
        planned = dbdyno("plan", study, state=state).stdout
        assert [line.partition(",")[0] for line in planned.splitlines() if "ERASED" in line] == [
            f"  ERASED: {data}",
            f"  ERASED: {log}",
        ]
        done = dbdyno("run", study, "--into", run, state=state)
        assert done.returncode == 0, done.stdout + done.stderr
        trials = read_run(run).trials
        assert [trial.observed["device of log"]["kind"] for trial in trials] == ["real", "real"]
        assert {trial.observed["server"]["place of innodb_log"] for trial in trials} == {"log"}
        assert what_is_left(state) == []
        same = study_file(text.replace(of(log, files[1]), of(f"/dev/../dev/{data.name}", files[0])))
        assert f"is the same disk as {data}" in dbdyno("plan", same, state=state).stdout


def _by_treatment(run):
    trials = read_run(run).trials
    is_control = [trial.treatment == "control" for trial in trials]
    yield [trial for trial, control in zip(trials, is_control, strict=True) if control]
    yield [trial for trial, control in zip(trials, is_control, strict=True) if not control]


def test_a_disk_answers_no_write_between_its_cut_and_that_of_the_next(journal, tmp_path):
    """The next is a socket of the test's, which takes its time."""
    following = DiskClient(tmp_path / "next")
    with (
        running_disk(journal, model="nvme", size=64 * MIB) as disk,
        socket.socket(socket.AF_UNIX) as listener,
        ThreadPoolExecutor(2) as threads,
        disk.file.open("r+b", buffering=0) as file,
    ):
        listener.bind(str(following.control))
        listener.listen()
        disk.client.arm_cuts(next_=following)
        cutting = threads.submit(disk.client.cut, "c1")
        peer, _ = listener.accept()

        def write():
            file.write(b"after the cut" * 512)
            return now_ns()

        with peer, peer.makefile("rw") as lines:
            assert json.loads(lines.readline()) == {"op": "cut", "name": "c1"}
            written = threads.submit(write)
            time.sleep(0.3)  # of a disk that answers meanwhile, the write would have ended
            answered_ns = now_ns()
            lines.write('{"ok": true}\n')
        assert written.result() > answered_ns
        assert cutting.result().cut_end_ns < answered_ns
        disk.client.restore_cut("c1", "requests", 1)
        assert disk.file.read_bytes()[:13] == bytes(13), "what came after the cut is not in its state"


def test_cuts_of_disks_in_line_are_taken_by_all_or_by_none(journal):
    with (
        running_disk(journal, model="hdd-7200", size=64 * MIB) as data,
        running_disk(journal, model="nvme", size=64 * MIB) as log,
    ):
        line = DiskLine({"log": log.client, "data": data.client})
        line.arm_cuts()
        line.cut_on("c1", "write", 1)
        direct(log.file, 0, 1)
        taken = line.cut("c2")
        assert [cut.name for cut in line.cuts()] == ["c1", "c2"]
        of_data = {cut.name: cut for cut in data.client.cuts()}
        assert taken.cut_ns < of_data["c2"].cut_ns <= taken.cut_end_ns
        assert taken.unflushed_bytes == 4096, "the page on the log's disk"
        data.client.forget_cut("c1")
        with pytest.raises(TrialError, match="cut c1: the power of disk data was not cut with that of the others"):
            line.cuts()
        line.disarm_cuts()


def test_what_a_server_has_no_place_for_is_refused_with_the_reason(state, study_file):
    place = 'doublewrite = "log"\nundo = "log"'
    done = dbdyno("plan", study_file(study_of(place, SLAP)), state=state)
    assert (
        "server.place.doublewrite: MariaDB 10.11 keeps its doublewrite buffer in the system tablespace" in done.stdout
    )
    assert "server.place.undo: MariaDB 10.11 keeps undo records in the system tablespace" in done.stdout
