"""Loads that programs of somebody else's offer: the real program, on a folder of this machine or a private server."""

import os
import shutil
import signal
import tempfile
import threading
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from dbdyno.clock import now_ns
from dbdyno.errors import TrialError
from dbdyno.servers.installation import find_server
from dbdyno.stack.device import Here
from dbdyno.stack.files import Files
from dbdyno.stack.journal import Journal
from dbdyno.stack.layer import raised
from dbdyno.stack.scratch import scratch
from dbdyno.stack.server import Server
from dbdyno.study.workloads import KINDS
from dbdyno.workload.kinds import workload_of
from tests.support import what_is_left

pytestmark = pytest.mark.host


@contextmanager
def standing(folder, *, served):
    """A stack on this machine's disk, with a state folder of its own; afterwards nothing is left of it."""
    state = Path(tempfile.mkdtemp(prefix="dd", dir="/tmp"))  # a short path, since sockets lie below it
    state.chmod(0o755)
    settings = {"innodb_log_file_size": "8M", "innodb_buffer_pool_size": "32M"}
    log = folder / "server.log"
    server = [Server(find_server("mariadb"), settings, "innodb", 8, install=True, log=log)] if served else []
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DBDYNO_STATE_DIR", str(state))
            journal = Journal("a test", folder=state / "journals")
            with closing(journal), scratch(journal) as ground, raised([Here(), Files(), *server], ground) as stand:
                yield stand
            assert what_is_left(state) == []
    finally:
        shutil.rmtree(state)


@pytest.fixture
def bare(tmp_path):
    """A stack without a server."""
    with standing(tmp_path, served=False) as stand:
        yield stand


def offered(engine="innodb", **fields):
    """Make a workload of the fields of ``[workload]``."""
    section = KINDS[fields["kind"]].model_validate(fields)
    return workload_of(SimpleNamespace(workload=section, stack=SimpleNamespace(engine=engine)))


def told(load, before):
    """Return the metrics of a load that ended just now, having looked at its clock and its halves."""
    start, end = load.window_ns
    assert before < start < end < now_ns()
    assert all(value >= 0 for value in load.seconds_before.values())
    return load.metrics()


FIO = {"kind": "fio", "size": "8MiB", "duration": "600ms"}


@pytest.mark.parametrize("way", ["read", "write", "mix"])
def test_a_profile_of_fio(bare, tmp_path, way):
    load = offered(**FIO, profile="RND4K Q4T2", load=way)
    load.prepare(bare)
    assert [path.stat().st_size for path in bare.files.iterdir()] == [8 * 1024**2]
    before = now_ns()
    done = load.run(bare, 1, tmp_path)
    metrics = told(done, before)
    assert metrics["seconds_real"] == pytest.approx(0.6, abs=0.1)
    assert metrics["megabytes_per_second"] == pytest.approx(metrics["iops"] * 4096 / 1e6)
    assert set(done.result["directions"]) == ({"read", "write"} if way == "mix" else {way})
    assert metrics["latency_ms_p50"] <= metrics["latency_ms_p999"] <= metrics["latency_ms_max"]
    assert metrics["seconds_user"] + metrics["seconds_sys"] > 0
    assert load.tool.version().startswith("fio-")
    assert (tmp_path / "tool.out").stat().st_size > 1000
    # Both are about the same operations; the log lacks what came after its last whole interval.
    columns = done.columns()
    mean = sum(columns["iops"]) / len(columns["iops"])
    assert mean == pytest.approx(metrics["iops"], rel=0.35)
    assert columns["t_s"][-1] <= metrics["seconds_real"] + 0.1


def test_a_job_file_of_fio_is_held_to_the_trials_folder(bare, tmp_path):
    job = tmp_path / "mine.fio"
    job.write_text("[global]\nbs=4k\nsize=1m\nioengine=psync\n[reads]\nrw=randread\n[writes]\nrw=write\nfsync=8\n")
    load = offered(kind="fio", job=str(job))
    load.prepare(bare)
    before = now_ns()
    done = load.run(bare, 1, tmp_path)
    assert told(done, before)["iops"] > 0
    assert done.result["directions"]["read"]["operations"] == 256
    assert sorted(path.name for path in bare.files.iterdir()) == ["reads.0.0", "writes.0.0"]


def test_fio_fails_in_its_own_words(bare, tmp_path):
    job = tmp_path / "mine.fio"
    job.write_text("[job]\nrw=read\n")
    with pytest.raises(TrialError, match=r"^fio: exit 1: .*size"):
        offered(kind="fio", job=str(job)).run(bare, 1, tmp_path)
    assert (tmp_path / "tool.err").stat().st_size > 0


def test_a_program_that_is_killed_fails_the_trial_and_none_of_its_jobs_lives_on(bare, tmp_path):
    load = offered(**{**FIO, "duration": "60s"}, profile="RND4K Q4T2", load="write")
    load.prepare(bare)

    def kill():
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                line = (entry / "cmdline").read_bytes()
                if line.startswith(b"fio\0") and str(bare.files).encode() in line:
                    os.kill(int(entry.name), signal.SIGKILL)
                    return

    killer = threading.Timer(1.0, kill)
    killer.start()
    began = time.monotonic()
    with pytest.raises(TrialError, match=r"fio: killed by signal SIGKILL"):
        load.run(bare, 1, tmp_path)
    assert time.monotonic() - began < 20
    assert bare.journal.processes() == set()


def test_a_program_that_takes_too_long_is_ended(bare, tmp_path, monkeypatch):
    monkeypatch.setattr("dbdyno.workload.tool.GRACE_SECONDS", -59.0)
    load = offered(**{**FIO, "duration": "60s"}, profile="RND4K Q1T1", load="read")
    load.prepare(bare)
    began = time.monotonic()
    with pytest.raises(TrialError, match=r"fio was not done after 1 s; fio was ended"):
        load.run(bare, 1, tmp_path)
    assert time.monotonic() - began < 20
