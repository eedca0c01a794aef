"""Simulated sweeps over hosts that were brought up: machines are network namespaces, each with an sshd."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.crash_studies import KEPT
from tests.documents import ROOT
from tests.host.test_hosts import Desk
from tests.lab import lab, lab_lacking
from tests.support import DBDYNO, dbdyno, wait_for

pytestmark = [
    pytest.mark.host,
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(lab_lacking()), reason=lab_lacking()),
]

WORKER = "dbdyno.hosts.agent"  # which simulates in its threads
TIMES = {"seconds": 0, "started_at": ""}  # when it was simulated and how long that took


@pytest.fixture(scope="module")
def desk():
    with lab("c1", "c2") as made:
        desk = Desk(made)
        desk.hosts("up")
        yield desk
        desk.hosts("down")
        assert desk.left() == []
        assert not list(made.folder.glob("there/hosts/*/state/inputs"))


def workers(desk):
    """The processes of this lab that simulate."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        try:
            ours = str(desk.lab.folder) in str(process.environ().get("DBDYNO_STATE_DIR"))
        except (psutil.Error, OSError):
            continue
        if ours and WORKER in " ".join(process.info["cmdline"] or ()):
            found.append(process)
    return found


def simulate(desk, *words, hosts=True, **options):
    given = ["--hosts", str(desk.inventory)] if hosts else []
    return dbdyno("simulate", *words, *given, "--json", state=desk.state, **options)


CONTRACT = """
import sys
from pathlib import Path
from dbdyno.hosts.connect import connected
from dbdyno.simulation.sweep import simulate_point
from tests.unit.hosts.workers_contract import keeps_the_contract

inventory, folder = map(Path, sys.argv[1:])
with connected(inventory) as there:
    keeps_the_contract(there.hosts, there.hosts.workers(simulate_point, there.why_lost), folder)
"""


def test_the_contract_of_workers_over_ssh(desk, tmp_path):
    command = [sys.executable, "-c", CONTRACT, desk.inventory, tmp_path]
    environment = {**os.environ, "DBDYNO_STATE_DIR": str(desk.state)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    wait_for(lambda: not workers(desk))


def test_the_same_bytes_as_on_one_host_also_of_files_that_only_this_machine_has(desk, tmp_path):
    drive = (ROOT / "crates/dbdyno-device/drives/hdd-15k.toml").read_text()
    (tmp_path / "mine.toml").write_text(drive)
    lines = [
        f"{time_ms / 1000},{4096 * (time_ms * 7919 % 100_000)},4096,{'rw'[time_ms % 2]}\n" for time_ms in range(2000)
    ]
    (tmp_path / "trace.csv").write_text("time_s,offset,size,op\n" + "".join(lines))
    given = ["trace.csv", "--device", "mine.toml,raid1(mine.toml, 2),ssd-sata", "--scheduler", "none,mq-deadline"]
    given += ["--repeat", "2", "--size", "1G"]
    over, here = (simulate(desk, *given, hosts=hosts, cwd=tmp_path) for hosts in (True, False))
    assert over.returncode == here.returncode == 0, over.stderr
    assert over.stdout == here.stdout
    assert over.stderr.count(": sending ") == 2
    again = simulate(desk, *given, cwd=tmp_path)
    assert again.stdout == here.stdout
    assert ": sending " not in again.stderr
    for file in ("mine.toml", "trace.csv"):
        digest = hashlib.sha256((tmp_path / file).read_bytes()).hexdigest()
        there = [*desk.lab.folder.glob(f"there/hosts/*/state/inputs/{digest}.*")]
        assert len(there) == 2, f"{file}, once on each host"


def test_what_is_wrong_with_a_point_is_said_as_on_one_host(desk, tmp_path):
    (tmp_path / "mine.toml").write_text("nothing = 1\n")
    given = ["--rw", "randread", "--device", "mine.toml"]
    over, here = (simulate(desk, *given, hosts=hosts, cwd=tmp_path) for hosts in (True, False))
    assert over.returncode == here.returncode == 2
    assert "mine.toml" in here.stderr
    assert over.stderr.endswith(here.stderr)


SWEEP = ["--rw", "randread", "--iodepth", "32", "--seconds", "100s", "--repeat", "60"]


def started(desk, *words):
    command = [*DBDYNO, "simulate", *words, "--hosts", str(desk.inventory)]
    environment = {**os.environ, "DBDYNO_STATE_DIR": str(desk.state)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def lines_of(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.mark.drawn(1, group="sweeps that go wrong")
def test_ctrl_c_ends_all_and_a_killed_one_is_gone_on_with(desk, tmp_path):
    """Kept results are not simulated again; nothing runs on any host afterwards."""
    results = tmp_path / "r.jsonl"
    for number, code in ((signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)):
        before = lines_of(results)
        process = started(desk, *SWEEP, "--into", str(results))
        wait_for(lambda at=before, one=process: lines_of(results) > at or one.poll() is not None)
        assert process.poll() is None
        process.send_signal(number)
        out, err = process.communicate(timeout=180)
        assert (process.returncode, out) == (code, ""), err
        assert "Traceback" not in err
        wait_for(lambda: not workers(desk))
    kept = results.read_bytes()
    assert simulate(desk, *SWEEP, "--into", results).returncode == 0
    assert results.read_bytes().startswith(kept[: kept.rfind(b"\n") + 1])
    assert_each_once_and_as_here(desk, results)


def assert_each_once_and_as_here(desk, results):
    kept = [json.loads(line) for line in results.read_text().splitlines()]
    assert len(kept) == len({one["key"] for one in kept}) == 60
    here = results.with_name("here.jsonl")
    if not here.exists():
        assert simulate(desk, *SWEEP, "--into", here, hosts=False).returncode == 0
    expected = {one["key"]: one["outcome"] for one in map(json.loads, here.read_text().splitlines())}
    assert {one["key"]: one["outcome"] for one in kept} == expected


@pytest.mark.drawn(1, group="sweeps that go wrong")
def test_points_of_a_lost_host_are_done_again_by_others(desk, tmp_path):
    """All processes of one host stop at once, as where a machine's power fails, and its ssh answers no more."""
    results = tmp_path / "r.jsonl"
    process = started(desk, *SWEEP, "--into", str(results))
    wait_for(lambda: lines_of(results) > 3 or process.poll() is not None)
    gone = [one for one in psutil.process_iter() if is_of(one, desk.lab, "c2")]
    try:
        for one in gone:
            one.suspend()
        out, err = process.communicate(timeout=200)
    finally:
        for one in gone:
            one.resume()
    assert process.returncode == 0, err
    assert "c2: has not answered for" in err
    assert err.count("other hosts repeat its work") == 1
    assert out.startswith("Simulated: jobs of rw=randread, iodepth=32\n")
    assert_each_once_and_as_here(desk, results)
    wait_for(lambda: not workers(desk))


@pytest.mark.drawn(1, group="sweeps that go wrong")
def test_a_host_that_comes_back_takes_part_again(desk, tmp_path):
    """The connection to it is killed; what is simulated there meanwhile counts for nothing."""
    results, said = tmp_path / "r.jsonl", tmp_path / "said"
    words = ["simulate", *SWEEP[:-1], "1000", "--into", str(results), "--hosts", str(desk.inventory)]
    with said.open("wb") as errors:
        environment = {**os.environ, "DBDYNO_STATE_DIR": str(desk.state)}
        process = subprocess.Popen([*DBDYNO, *words], env=environment, stdout=subprocess.DEVNULL, stderr=errors)
    try:
        wait_for(lambda: lines_of(results) > 3 or process.poll() is not None)
        desk.lab.silence("c2")
        desk.lab.listen("c2")
        back = b"c2 is back, and takes part"
        wait_for(lambda: back in said.read_bytes() or process.poll() is not None)
        before = lines_of(results)
        wait_for(lambda: lines_of(results) > before or process.poll() is not None)
        assert process.poll() is None, said.read_text()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130, said.read_text()
    finally:
        process.kill()
        process.wait()
    assert said.read_text().count("other hosts repeat its work") == 1
    kept = [json.loads(line)["key"] for line in results.read_text().splitlines()]
    assert len(kept) == len(set(kept))
    wait_for(lambda: not workers(desk))


def is_of(process, made, name):
    """Whether a process is in the network of a machine of the lab."""
    try:
        return (
            Path(f"/proc/{process.pid}/ns/net").stat().st_ino
            == Path(f"/run/netns/{made.namespace(name)}").stat().st_ino
        )
    except OSError:
        return False


def test_hosts_that_are_not_up(desk, tmp_path):
    other = tmp_path / "other.toml"
    other.write_text('version = 1\n[cluster]\nname = "other"\n[host.a]\nssh = "a"\nroles = ["client"]\n')
    done = dbdyno("simulate", "--rw", "randread", "--hosts", other, state=desk.state)
    said = f"dbdyno: {other}: its hosts are not up; run dbdyno hosts up {other}\n"
    assert (done.returncode, done.stderr) == (2, said)


STUDY = """\
version = 1
[study]
title = "Simulated"
[stack]
kernel = ["2.6.18", "2.6.32"]
device = "mine.toml"
size = "1GiB"
[workload]
kind = "fio"
profile = "RND4K Q1T1"
load = "read"
[design]
seed = 3
blocks = 6
"""


def test_a_simulated_study_has_the_same_trials_as_on_one_host(desk, tmp_path):
    drive = ROOT / "crates/dbdyno-device/drives/hdd-15k.toml"
    (tmp_path / "mine.toml").write_bytes(drive.read_bytes())
    (tmp_path / "study.toml").write_text(STUDY)
    said = {}
    for where, given in {"over": ["--hosts", desk.inventory], "here": []}.items():
        done = dbdyno("run", tmp_path / "study.toml", "--into", tmp_path / where, *given, state=desk.state)
        assert done.returncode == 0, done.stderr
        said[where] = done.stdout.replace(str(tmp_path / where), "")
    assert said["over"] == said["here"]
    over, here = (sorted((tmp_path / where).glob("trials/*/trial.json")) for where in ("over", "here"))
    assert len(over) == len(here) == 12
    for one, other in zip(over, here, strict=True):
        assert {**json.loads(one.read_text()), **TIMES} == {**json.loads(other.read_text()), **TIMES}


def left_of_examining(desk):
    """What lies in the state folders of the hosts but for what keeps this connection."""
    logs = []
    for log in desk.lab.folder.glob("there/hosts/*/state/journals/*"):
        with suppress(FileNotFoundError):  # it has been undone this moment
            logs += [log] if b"kept state" in log.read_bytes() else []
    return [*logs, *desk.lab.folder.glob("there/hosts/*/state/scratch/*/tasks")]


@pytest.mark.drawn(1, group="sweeps that go wrong")
def test_kept_states_are_examined_on_hosts_with_the_same_output_and_put_back_after_a_kill(desk, tmp_path):
    desk.lab.folder.chmod(0o755)
    (tmp_path / "crash.toml").write_text(KEPT.format(hosts="", cuts_per_run=4))
    run = tmp_path / "crash"
    done = dbdyno("run", tmp_path / "crash.toml", "--into", run, "--seed", "1", state=desk.state)
    assert done.returncode == 0, done.stderr
    here = dbdyno("crash", "examine", run, state=desk.state)
    assert here.returncode == 0, here.stderr
    assert here.stdout.count("as when it was examined first") >= 2
    over = dbdyno("crash", "examine", run, "--hosts", desk.inventory, state=desk.state)
    assert (over.returncode, over.stdout) == (0, here.stdout)
    assert "dbdyno: " not in over.stderr  # all hosts took part
    assert left_of_examining(desk) == []

    command = [*DBDYNO, "crash", "examine", str(run), "--hosts", str(desk.inventory)]
    environment = {**os.environ, "DBDYNO_STATE_DIR": str(desk.state)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as killed:
        wait_for(lambda: len(left_of_examining(desk)) > 2)
        killed.kill()
    wait_for(lambda: not left_of_examining(desk))
    wait_for(lambda: not mounted_below(desk.lab.folder))
    assert dbdyno("restore", state=desk.state).returncode == 0  # of what is packed here on its way


def mounted_below(folder):
    return [line for line in Path("/proc/mounts").read_text().splitlines() if str(folder) in line]
