"""A real burner beside real trials: it is seen, named, and the block is repeated."""

import json
import os
import subprocess
import sys

import pytest

from dbdyno.host.storage import disks_under
from dbdyno.store.series import read_series
from tests.support import dbdyno, study_text

pytestmark = [pytest.mark.host, pytest.mark.alone, pytest.mark.timeout(300)]

# Its parent ends at once, so that it is no child of the test's, let alone of dbdyno's.
BURNER = """
import os, sys, time
if os.fork():
    os._exit(0)
print(os.getpid(), flush=True)
os.closerange(0, 3)
end = time.monotonic() + 120
while time.monotonic() < end:
    pass
"""


@pytest.fixture
def burners():
    started = []
    for _ in range(2):
        said = subprocess.run([sys.executable, "-c", BURNER], capture_output=True, text=True, check=True, timeout=180)
        started.append(int(said.stdout))
    yield started
    subprocess.run(["kill", *map(str, started)], check=True)


@pytest.mark.usefixtures("burners")
def test_a_burner_beside_a_trial_is_seen_and_its_block_repeated(state, study_file, tmp_path):
    fields = {"scheduler": '"none"', "amount": 'duration = "2s"', "blocks": 1, "interference": "repeat"}
    done = dbdyno("run", study_file(study_text(**fields)), "--into", tmp_path / "run", "--details", state=state)
    assert done.returncode == 0, done.stderr
    trials = [json.loads(path.read_text()) for path in sorted(tmp_path.glob("run/trials/*/trial.json"))]
    assert [trial["attempt"] for trial in trials] == [1, 2, 3]
    assert all("foreign_cpu" in trial["disturbance"]["beyond"] for trial in trials)
    assert all(sum(trial["disturbance"]["others"].values()) > 0.3 for trial in trials)
    assert done.stdout.count(", not used: other processes took") == 2
    assert done.stdout.count(", kept: other processes took") == 1
    assert "block 1 is repeated whole" in done.stderr
    assert "block 1 is kept despite the interference" in done.stderr


def test_what_the_trial_itself_does_is_no_disturbance(state, study_file, tmp_path):
    """Client, server, disk process, kernel threads: busy as they are, none of them is foreign."""
    fields = {"scheduler": '"none"', "amount": 'duration = "4s"', "blocks": 1}
    done = dbdyno("run", study_file(study_text(**fields)), "--into", tmp_path / "run", "--details", state=state)
    assert done.returncode == 0, done.stderr
    (trial,) = [json.loads(path.read_text()) for path in tmp_path.glob("run/trials/*/trial.json")]
    disturbance, seconds = trial["disturbance"], trial["metrics"]["seconds_real"]
    cpu = read_series(tmp_path / "run", [trial["id"]])[trial["id"]]["host_cpu"]
    idle = sum(cpu[name] for name in ("%idle", "%iowait", "%steal")).mean() / 100
    busy = (1 - idle) * disturbance["cores"] * seconds
    ours = sum(trial["load"][name] for name in ("seconds_user", "seconds_sys")) + trial["device"]["cpu_seconds"]
    ours += trial["metrics"]["server_cpu_us_per_query"] * trial["load"]["queries"] / 1e6
    assert ours > 0.3
    foreign = disturbance["foreign_cpu"] * disturbance["cores"] * seconds
    assert foreign < busy - 0.7 * ours  # other tests may run beside this one, so compare with all that was used
    assert disturbance["foreign_io"] is None  # nobody else can reach an emulated disk


WRITER = """
import os, sys, time
if os.fork():
    os._exit(0)
print(os.getpid(), flush=True)
os.closerange(0, 3)
handle = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
end = time.monotonic() + 120
while time.monotonic() < end:
    os.pwrite(handle, os.urandom(1 << 20), 0)
    os.fsync(handle)
    time.sleep(0.02)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may see what others write")
def test_a_writer_on_the_disk_below_is_seen(state, study_file, tmp_path):
    text = study_text(device='"here"', amount='duration = "3s"', blocks=1, settings="")
    for line in ('size = "512MiB"\n', 'scheduler = ["none", "mq-deadline"]\n', 'filesystem = "ext4"\n'):
        text = text.replace(line, "")
    study = study_file(text.replace('[filesystem]\nmount = "noatime"\n', ""))
    command = [sys.executable, "-c", WRITER, str(state / "writer")]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=180)
    try:
        done = dbdyno("run", study, "--into", tmp_path / "run", "--details", state=state)
    finally:
        subprocess.run(["kill", said.stdout.strip()], check=True)
        (state / "writer").unlink()
    assert done.returncode == 0, done.stderr
    (trial,) = [json.loads(path.read_text()) for path in tmp_path.glob("run/trials/*/trial.json")]
    if not disks_under(state):  # a container's root is on no disk that can be seen
        assert trial["disturbance"]["foreign_io"] is None
        return
    assert "foreign_io" in trial["disturbance"]["beyond"]
    assert set(trial["smart"]) == set(disks_under(state))
    assert ", kept: " in done.stdout
    assert "others moved " in done.stdout
