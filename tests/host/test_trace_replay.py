"""A trace of an emulated disk, replayed closed on the same drive in virtual time, is as fast as it was."""

import json
import signal
import subprocess
from pathlib import Path

import pytest

from dbdyno._native import simulate
from tests.disks import attached, fio
from tests.host.test_trace_record import recording
from tests.support import dbdyno

pytestmark = [pytest.mark.host, pytest.mark.alone]

SIZE = 256 * 1024**2


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("drive", "job", "faster_at_most"),
    [
        ("hdd-7200", {"rw": "randread", "iodepth": 1, "number_ios": 300}, 1.05),
        # What the way to the disk's process takes longer than the drive would stays in fio's time, and is in no model:
        # a write into the drive's cache is over in less.
        ("hdd-7200", {"rw": "randrw", "iodepth": 1, "number_ios": 300}, 1.2),
        ("ssd-sata", {"rw": "randread", "iodepth": 1, "number_ios": 4000}, 1.6),
    ],
)
def test_a_closed_replay_on_the_same_drive_is_as_fast(drive, job, faster_at_most, state, tmp_path):
    file = tmp_path / "t"
    with attached(state, drive, size="256M") as disk:
        (Path("/sys/block") / disk.device.name / "queue/scheduler").write_text("none", encoding="ascii")
        with recording(disk.name, file, state) as process:
            done = subprocess.run(fio(disk.device, size="256M", **job), check=True, capture_output=True, text=True)
            process.send_signal(signal.SIGTERM)
            process.communicate()
    fio_job = json.loads(done.stdout)["jobs"][0]
    measured = sum(fio_job[way]["total_ios"] for way in ("read", "write")) / (fio_job["job_runtime"] / 1e3)
    load = {"kind": "trace", "files": [str(file)], "replay": "closed"}
    point = {"device": drive, "size_bytes": SIZE, "kernel": "6.x", "scheduler": "none", "load": load}
    found = json.loads(simulate(json.dumps(point)))
    predicted = (found["reads"]["requests"] + found["writes"]["requests"]) / found["measured_s"]
    assert found["load"]["replay"] == "closed"
    assert 0.95 < predicted / measured < faster_at_most


STUDY = """\
version = 1
[study]
title = "Two drives"
[stack]
device = ["hdd-7200", "hdd-15k"]
size = "512MiB"
scheduler = "none"
filesystem = "ext4"
[workload]
kind = "fio"
profile = "RND4K Q1T1"
load = "read"
size = "64MiB"
duration = "3s"
[design]
blocks = 1
interference = "note"
seed = 7
"""


def test_a_run_s_trace_predicts_its_other_treatment(state, study_file, tmp_path):
    folder = tmp_path / "run"
    done = dbdyno("run", study_file(STUDY), "--into", folder, "--keep-traces", state=state)
    assert done.returncode == 0, done.stderr
    for path in (folder / "trials").glob("*/trial.json"):
        recorded = json.loads(path.read_text(encoding="utf-8"))["block_trace"]["recorded"]
        begin, end = recorded["measured_s"]
        assert 0 <= begin < recorded["seconds"]
        assert end - begin == pytest.approx(3, abs=0.5)
    for source in ("hdd-7200", "hdd-15k"):
        told = dbdyno("simulate", "--from", folder, "--treatment", source, "--json", state=state)
        assert told.returncode == 0, told.stderr
        found = json.loads(told.stdout)
        assert found["source"]["label"] == source
        # A busy host thinks longer between two requests, in the trace or in the run that it is held against; disks take
        # milliseconds, so that it matters little.
        for one in found["treatments"]:
            assert 0.7 < one["predicted_over_measured"]["requests_per_s"] < 1.4, one
        slow, fast = found["treatments"]
        ratio = fast["predicted"]["requests_per_s"] / slow["predicted"]["requests_per_s"]
        measured = fast["measured"]["requests_per_s"] / slow["measured"]["requests_per_s"]
        assert 0.7 < ratio / measured < 1.4
        assert ratio > 1.2
