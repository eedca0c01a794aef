"""``dbdyno trace record``: every request that fio made is in the file; what ends it; and that the host is put back."""

import json
import signal
import subprocess
from contextlib import contextmanager

import pytest

from tests.disks import attached, fio
from tests.loops import loop_over
from tests.support import dbdyno, start_dbdyno, study_text, trace_instances, wait_for, without_tracefs

pytestmark = pytest.mark.host

OPTIONS = {"size": "64M", "number_ios": 500, "iodepth": 4}


@pytest.fixture
def device(tmp_path):
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(128 * 1024**2)
    with loop_over(image, "--sector-size", "4096") as found:
        yield found


@contextmanager
def recording(device, file, state, *more):
    """A recording that has begun."""
    with start_dbdyno("trace", "record", device, "--output", file, *more, state=state) as process:
        assert process.stdout.readline().startswith("recording")
        yield process


def shown(file, state):
    done = dbdyno("trace", "show", file, "--json", state=state)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_each_request_is_there_with_its_process(device, state, tmp_path):
    file = tmp_path / "t.blkparse"
    with recording(device, file, state, "--json") as process:
        subprocess.run(fio(device, rw="randrw", fsync=100, **OPTIONS), check=True, capture_output=True)
        process.send_signal(signal.SIGINT)
        said = json.loads(process.communicate()[0])
    assert (process.returncode, said["ended"], said["lost"]) == (0, "interrupted", 0)
    found = shown(file, state)
    assert found["findings"]["requests"] <= said["requests"]
    of_fio = sum(one["requests"] for one in found["processes"] if one["name"] == "fio")
    assert of_fio >= OPTIONS["number_ios"]
    assert found["writes"]["sync"] > 0
    assert found["flushes"] > 0
    assert (found["findings"]["damaged"], found["findings"]["lost_events"], found["findings"]["cut_off"]) == (
        0,
        0,
        False,
    )
    assert said["cpu_us_per_request"] > 0


def test_a_full_file_and_the_time_end_it(device, state, tmp_path):
    file = tmp_path / "t"
    with recording(device, file, state, "--max-size", "64K", "--json") as process:
        subprocess.run(fio(device, rw="randread", **{**OPTIONS, "number_ios": 2000}), check=True, capture_output=True)
        said = json.loads(process.communicate(timeout=180)[0])
    assert (said["ended"], file.stat().st_size <= 65536) == ("full", True)
    assert "--max-size allows more" in said["remarks"][0]
    done = dbdyno("trace", "record", device, "--seconds", "0.5", "--output", tmp_path / "u", state=state)
    assert done.returncode == 0, done.stderr
    again = dbdyno("trace", "record", device, "--output", file, state=state)
    assert (again.returncode, again.stdout) == (2, "")
    assert "exists; name another" in again.stderr


def test_a_killed_recording_leaves_nothing_but_its_file(device, state, tmp_path):
    file = tmp_path / "t"
    with recording(device, file, state) as process:
        [undo_log] = (state / "journals").iterdir()
        [own] = [name for name in trace_instances() if name in undo_log.read_text()]  # others are of tests beside it
        process.kill()
    wait_for(lambda: own not in trace_instances(), every=0.1)
    assert dbdyno("restore", state=state).returncode == 0
    assert shown(file, state)["findings"]["cut_off"] in {True, False}  # its reader may have come to the end


def test_where_there_is_no_trace_it_says_why(device, state, tmp_path):
    argv = ("trace", "record", device, "--seconds", "1", "--output", tmp_path / "t")
    done = dbdyno(*argv, state=state, prefix=without_tracefs(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert "this kernel has no tracefs; use one with CONFIG_FTRACE" in done.stderr
    assert not (tmp_path / "t").exists()


def test_an_emulated_disk_goes_by_its_name(state, tmp_path):
    with attached(state, "ssd-sata", size="64M") as disk:
        with recording(disk.name, tmp_path / "t", state) as process:
            subprocess.run(fio(disk.device, rw="randread", **OPTIONS), check=True, capture_output=True)
            process.send_signal(signal.SIGTERM)
            assert "requests in" in process.communicate()[0]
        assert process.returncode == 0
    assert shown(tmp_path / "t", state)["reads"]["requests"] >= OPTIONS["number_ios"]


def test_a_run_keeps_the_requests_of_its_trials(state, study_file, tmp_path):
    text = study_text(blocks=1, amount="queries = 400")
    done = dbdyno("run", study_file(text), "--into", tmp_path / "run", "--keep-traces", "--details", state=state)
    assert done.returncode == 0, done.stderr
    assert "the requests of 1 trial are kept, trials/*/requests.blkparse" in " ".join(done.stdout.split())
    for path in (tmp_path / "run/trials").glob("*/trial.json"):
        recorded = json.loads(path.read_text(encoding="utf-8"))["block_trace"]["recorded"]
        assert (recorded["full"], recorded["failed"]) == (False, None)
        found = shown(path.parent / "requests.blkparse", state)
        assert found["writes"]["requests"] > 0
        assert found["findings"]["lost_events"] == 0
