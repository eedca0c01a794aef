"""The block trace against what else is known: the kernel's own counters, and the emulated disk's own trace."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import psutil
import pytest

from dbdyno.probe.block_trace import tracing
from dbdyno.stack.layer import BlockDevice, StackContext
from dbdyno.stack.tools import own_binary
from dbdyno.stack.tracefs import mounted_tracefs, tracefs
from dbdyno.stack.undo_log import Journal
from tests.disks import attached, fio, make_filesystem, mounted
from tests.loops import loop_over
from tests.support import dbdyno, study_text, trace_instances, wait_for, with_own_mounts, without_tracefs

pytestmark = pytest.mark.host

# Places in /sys/block/DEV/stat.
READS, READ_MERGES, READ_SECTORS, WRITES, WRITE_MERGES, WRITE_SECTORS, IN_FLIGHT = 0, 1, 2, 4, 5, 6, 8
DISCARDS, FLUSHES = 11, 15


@contextmanager
def loop(tmp_path, scheduler, mib=128):
    """A loop device over a file."""
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(mib * 1024**2)
    with loop_over(image, "--sector-size", "4096") as device:
        (Path("/sys/block") / device.name / "queue/scheduler").write_text(scheduler, encoding="ascii")
        yield device


def undisturbed(look):
    """What a look returns; taken again where another test's look at all block devices read this one beside it."""
    for _ in range(4):
        if (found := look())[0]:
            break
    assert found[0], found
    return found


@contextmanager
def traced(device, *more):
    """The trace of a device; what it yields holds the figures when the context has ended."""
    figures = {}
    with ExitStack() as ending:
        undo_log = ending.enter_context(closing(Journal("a test")))
        place = ending.enter_context(tracefs(undo_log))
        argv = [own_binary("dbdyno-probe"), "block", str(device), "--control", "--tracefs", str(place), *more]
        probe = ending.enter_context(subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        assert json.loads(probe.stdout.readline()) == {"tracing": Path(device).name}
        yield figures
        said = probe.communicate("stop\nsummary\n")[0].splitlines()
    assert json.loads(said[0]) == {"stopped": True}
    figures |= json.loads(said[1])["figures"]


@pytest.mark.skipif(mounted_tracefs() is not None, reason="this host can't: tracefs: it is mounted already")
def test_tracefs_that_nobody_has_mounted_is_mounted_for_the_trace_alone(journal):
    with tracefs(journal) as place:
        assert (place / "events/block").is_dir()
        assert place.is_relative_to(os.environ["DBDYNO_STATE_DIR"])
    assert not place.exists()


def counters(device):
    return [int(word) for word in (Path("/sys/block") / device.name / "stat").read_text().split()]


def run(argv):
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["jobs"][0]


@pytest.mark.parametrize("scheduler", ["none", "mq-deadline"])
def test_every_request_that_the_kernel_counted_is_there(scheduler, tmp_path):
    def look():
        before = counters(device)
        with traced(device) as found:
            run(fio(device, rw="randrw", size="128M", number_ios=4000, iodepth=16, fsync=40))
            subprocess.run(["blkdiscard", "--length", "1M", str(device)], check=True)
        delta = [after - start for start, after in zip(before, counters(device), strict=True)]
        return found["requests"]["read"] == delta[READS], found, delta

    with loop(tmp_path, scheduler) as device:
        _, found, delta = undisturbed(look)
    requests, size = found["requests"], found["bytes"]
    # The kernel counts the empty write that asks for a flush as a write, beside the flush.
    assert requests["write"] + found["flushes_asked"] == delta[WRITES]
    assert (requests["read"], requests["discard"], requests["flush"]) == (
        delta[READS], delta[DISCARDS], delta[FLUSHES],
    )  # fmt: skip
    assert (size["read"], size["write"]) == (512 * delta[READ_SECTORS], 512 * delta[WRITE_SECTORS])
    assert found["completed"] == requests
    assert (found["lost"], found["unmatched"], found["open"], found["errors"]) == (0, 0, 0, 0)
    assert found["device_depth"]["max"] <= 16 + 1  # with a flush
    # Places drawn at random lie a third of the whole apart, and their runs are of 2.
    assert found["seek_bytes_mean"] == pytest.approx(128 * 1024**2 / 3, rel=0.1)
    assert found["sorted_run_requests_mean"] == pytest.approx(2, rel=0.1)
    assert found["queue_ms"]["all"]["count"] == requests["read"] + requests["write"]


@pytest.mark.parametrize(("kind", "scheduler"), [("ext4", "mq-deadline"), ("xfs", "none")])
def test_what_a_filesystem_merges_and_forces_is_counted_as_the_kernel_counts_it(kind, scheduler, tmp_path):
    with loop(tmp_path, scheduler, mib=384) as device:
        make_filesystem(kind, device)
        with mounted(device, tmp_path / "mnt") as place:
            os.sync()
            wait_for(lambda: counters(device)[IN_FLIGHT] == 0)
            with traced(device) as found:
                before = counters(device)
                files = {
                    "filename": None,
                    "directory": place,
                    "size": "8M",
                    "direct": 0,
                    "ioengine": "psync",
                    "iodepth": 1,
                }
                run(
                    fio(
                        device, **files, rw="randwrite", numjobs=3, thread=1, fsync=5, number_ios=600, group_reporting=1
                    )
                )
                os.sync()
                wait_for(lambda: counters(device)[IN_FLIGHT] == 0)
                delta = [after - start for start, after in zip(before, counters(device), strict=True)]
    requests, size = found["requests"], found["bytes"]
    assert requests["write"] + requests["other"] + found["flushes_asked"] == delta[WRITES]
    assert (requests["read"], requests["flush"]) == (delta[READS], delta[FLUSHES])
    assert size["write"] + size["other"] == 512 * delta[WRITE_SECTORS]
    assert delta[FLUSHES] > 0
    # A bio that was not merged is a request.
    assert found["bios"] == sum(requests.values()) - requests["flush"] + delta[READ_MERGES] + delta[WRITE_MERGES]
    assert (found["lost"], found["unmatched"], found["open"]) == (0, 0, 0)


def test_what_one_client_reads_in_order_is_one_run(tmp_path):
    def look():
        with traced(device) as found:
            job = run(fio(device, rw="read", size="16M", iodepth=1))
        return found["requests"]["read"] == job["read"]["total_ios"] == 4096, found, job

    with loop(tmp_path, "mq-deadline") as device:
        _, found, job = undisturbed(look)
    assert (found["sorted_runs"], found["seek_bytes_mean"], found["sequential_ratio"]) == (1, 0, 1)
    assert found["device_depth"] == {"mean": 1, "max": 1}
    # What a request takes as fio sees it is its time in queue and device, and fio's own part.
    both = found["queue_ms"]["all"]["mean"] + found["device_ms"]["all"]["mean"]
    assert both < job["read"]["lat_ns"]["mean"] / 1e6 < both + 5  # it may wait for a processor


def test_what_does_not_fit_into_the_buffer_is_counted(tmp_path):
    with loop(tmp_path, "none") as device, traced(device, "--buffer", "16K") as found:
        before = counters(device)
        run(fio(device, rw="randread", size="128M", number_ios=20_000, iodepth=32))
        done = counters(device)[READS] - before[READS]
    assert found["lost"] > 0
    # Nothing is made up.
    assert found["requests"]["read"] < done
    assert found["device_ms"]["read"]["max"] < 10_000
    assert found["device_depth"]["max"] <= 32


def test_a_short_queue_makes_its_requests_wait_before_it(state):
    with attached(state, "hdd-15k", size="256M") as disk:
        (Path("/sys/block") / disk.device.name / "queue/nr_requests").write_text("4", encoding="ascii")
        with traced(disk.device) as found:
            run(fio(disk.device, rw="randread", size="256M", number_ios=30, iodepth=1, numjobs=8, thread=1,
                    group_reporting=1, ioengine="psync"))  # fmt: skip
    # Eight ask at a time and four are in the device: each waits about as long as it is served.
    assert found["device_depth"]["max"] == 4
    assert 0.3 < found["queue_ms"]["read"]["mean"] / found["device_ms"]["read"]["mean"] < 2


@pytest.mark.alone
def test_the_emulated_disk_tells_the_same_of_itself(state, tmp_path):
    file = tmp_path / "trace.csv"
    with attached(state, "ssd-sata", size="256M") as disk:
        (Path("/sys/block") / disk.device.name / "queue/scheduler").write_text("none", encoding="ascii")
        for depth in (1, 8):
            disk("trace", str(file), "--format", "binary" if depth == 1 else "csv")
            with traced(disk.device) as kernel:
                run(fio(disk.device, rw="randrw", size="256M", number_ios=800, iodepth=depth, fsync=100))
            disk("trace", "--stop")
            asked = [own_binary("dbdyno-probe"), "disk", str(file)]
            own = json.loads(subprocess.run(asked, check=True, capture_output=True, text=True).stdout)
            assert (own["requests"], own["bytes"]) == (kernel["requests"], kernel["bytes"])
            assert own["queue_ms"]["all"]["mean"] is None
            # The way through loop device and FUSE is the kernel's part of the time in the device. As answers leave
            # earlier to make up for it, next to nothing may be left of it.
            difference = kernel["device_ms"]["all"]["mean"] - own["device_ms"]["all"]["mean"]
            assert -0.02 < difference < 0.5 + own["device_ms"]["all"]["mean"]
            exact = 1e-9 if depth == 1 else 0.05  # several at a time may overtake each other on the way
            for name in ("seek_bytes_mean", "sorted_run_requests_mean", "ascending_ratio"):
                assert own[name] == pytest.approx(kernel[name], rel=exact), name


def test_a_study_with_a_trace_has_its_figures(state, study_file, tmp_path):
    text = study_text(blocks=1, amount="queries = 400") + "[probes]\ntrace = true\n"
    done = dbdyno("run", study_file(text), "--into", tmp_path / "run", state=state)
    assert done.returncode == 0, done.stderr
    for path in (tmp_path / "run/trials").glob("*/trial.json"):
        trial = json.loads(path.read_text(encoding="utf-8"))
        assert trial["block_trace"]["requests"]["write"] > 0
        assert trial["block_trace"]["lost"] == 0
        assert trial["metrics"]["device_ms_mean"] == trial["block_trace"]["device_ms"]["all"]["mean"]
        assert trial["probes"]["block_trace"]["cpu_seconds"] > 0
        assert (path.parent / "block_trace.parquet").is_file()


def test_where_the_kernel_tells_nothing_the_emulated_disk_does(state, study_file, tmp_path):
    text = study_text(blocks=1, scheduler='"none"', amount="queries = 400") + "[probes]\ntrace = true\n"
    argv = ("run", study_file(text), "--into", tmp_path / "run", "--details")
    done = dbdyno(*argv, state=state, prefix=without_tracefs(tmp_path))
    assert done.returncode == 0, done.stderr
    [path] = (tmp_path / "run/trials").glob("*/trial.json")
    trial = json.loads(path.read_text(encoding="utf-8"))
    found = trial["block_trace"]
    assert found["why_not_kernel"] == "this kernel has no tracefs; use one with CONFIG_FTRACE"
    assert found["requests"]["write"] > 0
    assert found["lost"] == 0
    assert "queue_ms_mean" not in trial["metrics"]
    assert trial["metrics"]["seek_bytes_mean"] == found["seek_bytes_mean"] > 0
    assert "the kernel made no block trace: this kernel has no tracefs" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (
            with_own_mounts('umount -l /sys/kernel/tracing 2>/dev/null; exec "$@"'),
            "tracefs is not mounted",
        ),
        (
            [
                *with_own_mounts('mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null; exec "$@"'),
                *("setpriv", "--reuid=65534", "--clear-groups"),
            ],
            "can't be read by this user; run it with sudo",
        ),
    ],
)
def test_where_there_can_be_no_trace_it_says_why(how, said, tmp_path):
    program = tmp_path / "dbdyno-probe"  # where anybody may start it
    shutil.copy(own_binary("dbdyno-probe"), program)
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    with loop(tmp_path, "none") as device:
        command = [*how, str(program), "block", device.name, "--for", "1"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("dbdyno-probe: no block trace: ")
    assert said in done.stderr


HOLDING = """
import pathlib, sys, time
from dbdyno.probe.block_trace import tracing
from dbdyno.stack.undo_log import Journal
from dbdyno.stack.undo_log import Journal
from dbdyno.stack.layer import BlockDevice, StackContext
stand = StackContext(Journal("a test"), pathlib.Path("."), BlockDevice(pathlib.Path(sys.argv[1]), False, True))
with tracing(stand, wanted=True) as trace:
    print("tracing", flush=True)
    time.sleep(60)
"""


def reader_of(process):
    """The reader that a process has started, and the name of its trace instance."""
    child = next(child for child in process.children() if child.name() == "dbdyno-probe")
    words = child.cmdline()
    return child, words[words.index("--instance") + 1]


@contextmanager
def held(tmp_path):
    """A process that traces a device until it is killed; its reader, and the reader's instance."""
    with loop(tmp_path, "none") as device:
        holding = [sys.executable, "-c", HOLDING, str(device)]
        with subprocess.Popen(holding, stdout=subprocess.PIPE, text=True) as holder:
            assert holder.stdout.readline() == "tracing\n"
            yield holder, *reader_of(psutil.Process(holder.pid))
            holder.kill()


def test_what_a_killed_trace_left_is_restored(state, tmp_path):
    with held(tmp_path) as (holder, reader, instance):
        holder.send_signal(signal.SIGSTOP)  # or it would clean up after its reader
        reader.kill()
        holder.kill()
        holder.wait()
        assert instance in trace_instances()
        said = dbdyno("restore", state=state)
        assert f"remove the trace instance {instance}" in said.stdout
        assert instance not in trace_instances()


def test_a_reader_whose_dbdyno_is_killed_takes_its_instance_along(state, tmp_path):
    with held(tmp_path) as (holder, _, instance):
        holder.kill()
        holder.wait()
        wait_for(lambda: instance not in trace_instances(), every=0.1)
        assert dbdyno("restore", state=state).returncode == 0


def test_a_reader_that_is_killed_fails_no_trial(journal, tmp_path):
    with loop(tmp_path, "none") as device:
        stand = StackContext(journal, tmp_path, BlockDevice(device, rotational=False, disposable=True))
        with tracing(stand, wanted=True) as trace:
            reader, instance = reader_of(psutil.Process())
            reader.kill()
            found = trace.within((0, 1))
        assert found.figures == {"none": "dbdyno-probe ended"}
        assert instance not in trace_instances()
