"""SIGKILL at the steps of a run: restore leaves nothing, and resuming loses and doubles nothing."""

import itertools
import json
import os
import signal
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from dbdyno.stack.capabilities import awake, filesystem
from tests.disks import LONG
from tests.sampled import drawn, kill_at_steps
from tests.support import (
    dbdyno,
    journal_lines,
    kill,
    put_back,
    start_dbdyno,
    study_text,
    under_load,
    wait_for,
    what_is_left,
)

pytestmark = [pytest.mark.host, pytest.mark.timeout(900)]

SIGNALS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
INTERRUPTED = range(2, 44) if LONG else sorted(drawn("interrupted").sample(range(2, 44), 2))


AWAKE = "[host]\nawake = true\n" if awake().ok else ""


def finished(run):
    journal = run / "journal.jsonl"
    lines = journal.read_text(encoding="utf-8").splitlines() if journal.exists() else []
    events = [json.loads(line) for line in lines]
    return Counter((e["block"], e["treatment"]) for e in events if e["event"] == "finished")


def afresh(study, folder):
    """Return the command of each step: a run from the beginning."""
    return lambda step: ("run", study, "--into", folder / f"run{step}", "--fresh-images")


@pytest.mark.long
def test_killed_at_any_step_then_restored_and_resumed(state, study_file, tmp_path):
    blocks = 3 if LONG else 2
    study, run = study_file(study_text(blocks=blocks) + "[probes]\ntrace = true\n" + AWAKE), tmp_path / "run"
    kept = Counter()

    def command(_):
        resume = ["--resume"] if (run / "run.toml").exists() else []
        return "run", study, "--into", run, "--fresh-images", *resume

    def nothing_is_lost():
        nonlocal kept
        assert kept <= finished(run), "a finished trial was lost"
        kept = finished(run)

    kill_at_steps("a run that is resumed", 13, command, state, after=nothing_is_lost)
    assert finished(run) == {(block + 1, treatment): 1 for block in range(blocks) for treatment in ("t1", "t2")}


@pytest.mark.long
@pytest.mark.drawn(1, group="stacks of their own sort")
@pytest.mark.parametrize("kind", ["zfs", "tmpfs"])
def test_killed_at_any_step_a_filesystem_of_its_own_sort_is_put_back(kind, state, study_file, tmp_path):
    if not (found := filesystem(kind)).ok:
        pytest.skip(f"this host can't: {found.name}: {found.detail}")
    study = study_file(study_text(filesystem=f'"{kind}"', mount="defaults", blocks=1))
    kill_at_steps(kind, 17, afresh(study, tmp_path), state)


@pytest.mark.long
@pytest.mark.drawn(1, group="stacks of their own sort")
def test_killed_at_any_step_a_file_as_a_disk_is_removed_and_nothing_beside_it(state, study_file, tmp_path, disk_folder):
    (disk_folder / "dbdyno-others.img").write_text("not dbdyno's")
    study = study_file(study_text(device=f'"file:{disk_folder}"', size="128MiB", blocks=1))

    def nothing_is_left_beside():
        assert [path.name for path in disk_folder.iterdir()] == ["dbdyno-others.img"]

    kill_at_steps("file", 17, afresh(study, tmp_path), state, least=15, after=nothing_is_left_beside)
    nothing_is_left_beside()


@pytest.fixture
def disk_folder():
    """A folder on a disk, which pytest's own may not be."""
    with tempfile.TemporaryDirectory(prefix="dd", dir="/var/tmp") as folder:
        yield Path(folder)


def test_killed_while_the_load_runs(state, study_file, tmp_path):
    study, run = study_file(study_text(amount='duration = "20s"', blocks=1)), tmp_path / "run"
    process = start_dbdyno("run", study, "--into", run, state=state)
    wait_for(lambda: under_load(state, "mariadbd"))
    kill(process)
    assert what_is_left(state)
    put_back(state)
    assert dbdyno("restore", state=state).stdout == "nothing to restore\n"


@pytest.mark.drawn(1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_cleanly_and_resumed(state, study_file, tmp_path, number):
    study, run = study_file(study_text(amount='duration = "2s"', blocks=1)), tmp_path / "run"
    process = start_dbdyno("run", study, "--into", run, state=state)
    wait_for(lambda: sum(finished(run).values()) == 1 and under_load(state, "mariadbd"))
    os.kill(process.pid, number)
    output = process.communicate(timeout=180)[0]
    assert process.returncode == 130, output
    assert "--resume" in output
    assert what_is_left(state) == []
    assert sum(finished(run).values()) == 1
    resumed = dbdyno("run", study, "--into", run, "--resume", state=state)
    assert resumed.returncode == 0, resumed.stderr
    assert finished(run) == {(1, "t1"): 1, (1, "t2"): 1}


def test_restore_leaves_a_running_dbdyno_alone(state, study_file, tmp_path):
    study, run = study_file(study_text(amount='duration = "2s"', blocks=1)), tmp_path / "run"
    process = start_dbdyno("run", study, "--into", run, state=state)
    wait_for(lambda: under_load(state, "mariadbd"))
    restored = dbdyno("restore", state=state)
    assert "left alone: run " in restored.stdout
    output = process.communicate(timeout=180)[0]
    assert process.returncode == 0, output


@pytest.mark.parametrize(("number", "steps"), [*zip(itertools.cycle(SIGNALS), INTERRUPTED, strict=False)])
def test_interrupted_at_any_step_the_host_is_put_back(state, study_file, tmp_path, number, steps):
    study, run = study_file(study_text(blocks=1)), tmp_path / "run"
    process = start_dbdyno("run", study, "--into", run, state=state)
    wait_for(lambda: process.poll() is not None or journal_lines(state) >= steps, every=0.003)
    if process.poll() is None:
        os.kill(process.pid, number)
    output = process.communicate(timeout=180)[0]
    assert process.returncode in {0, 130}, output
    assert "Traceback" not in output
    assert what_is_left(state) == []
