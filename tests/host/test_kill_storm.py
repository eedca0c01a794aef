"""SIGKILL at random moments of mixed studies, and of ``restore`` itself: nothing that was announced is left.

DBDYNO_KILLS=200 DBDYNO_TEST_SEED=7 pytest tests/host/test_kill_storm.py -s
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from dbdyno.host.storage import is_mounted
from dbdyno.stack.emptiness import identify
from dbdyno.stack.erase import Erasing, check_erasable
from dbdyno.stack.loop import loops_over
from dbdyno.stack.undo.actions import marked
from tests.loops import lent_loop
from tests.sampled import KILLS, drawn
from tests.support import dbdyno, start_dbdyno, study_text, what_is_left

SHOWN_KNOBS = ("scheduler", "nr_requests", "read_ahead_kb", "rotational", "wbt_lat_usec", "nomerges", "rq_affinity")

pytestmark = [pytest.mark.host, pytest.mark.long, pytest.mark.timeout(120 + 60 * KILLS)]


def without(text, *starts):
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(starts))


def emulated(rng, _loop):
    kind = rng.choice(["ext4", "xfs", "btrfs"])
    size = {"ext4": "256MiB", "xfs": "512MiB", "btrfs": "512MiB"}[kind]
    fields = {"device": rng.choice(['"nvme"', '["hdd-7200", "ssd-sata"]', '"raid0(nvme, 2)"']), "size": size}
    return study_text(**fields, filesystem=f'"{kind}"', amount='duration = "700ms"', blocks=1)


def real(rng, loop):
    kind = rng.choice(["ext4", "xfs"])
    fields = {"device": f'"{loop[0]}"', "stack": f'serial = "{loop[1]}"', "filesystem": f'"{kind}"'}
    queue = "[queue]\nread_ahead_kb = 64\nnr_requests = 32\n[workload]"
    text = study_text(**fields, scheduler='["mq-deadline", "bfq"]', amount='duration = "700ms"', blocks=1)
    return without(text.replace("[workload]", queue), "size")


def here(rng, _loop):
    engine = rng.choice(['["innodb", "myisam"]', '"aria"'])
    text = study_text(device='"here"', engine=engine, amount='duration = "700ms"', blocks=1)
    text += "[host]\nvfs_cache_pressure = [90, 120]\n"
    return without(text, "size", "scheduler", "filesystem =", "[filesystem]", "mount")


def in_memory(_rng, _loop):
    text = study_text(device='"memory"', filesystem='"tmpfs"', amount='duration = "700ms"', blocks=1)
    return without(text, "scheduler", "[filesystem]", "mount")


STUDIES = {"emulated": emulated, "real": real, "here": here, "memory": in_memory}


def announced(state):
    """Return every undo of every journal there is."""
    found = []
    for path in (state / "journals").glob("*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            found += [entry] if "undo" in entry else []
    return found


def holds(path):
    """Return what a kernel setting is, of a list the chosen one."""
    shown = Path(path).read_text(encoding="ascii")
    return shown.partition("[")[2].partition("]")[0] or shown.strip()


def signatures(device):
    return subprocess.run(["wipefs", "--no-act", device], capture_output=True, text=True, check=True).stdout


def may_be_erased(device):
    """Return whether the next trial would find the disk as its own."""
    path = Path(device)
    return bool(check_erasable(path, identify(path).serial, Erasing()))


# Whether nothing of a change is left; looked at by itself, and not by the code that undoes.
UNDONE = {
    "EndProcesses": lambda undo: not marked({undo["token"]}),
    "Unmount": lambda undo: not is_mounted(undo["path"]),
    "DetachLoops": lambda undo: not loops_over(undo["backing_file"]),
    "RemoveTree": lambda undo: not Path(undo["path"]).exists(),
    "RemoveCgroup": lambda undo: not Path(undo["path"]).exists(),
    "RestoreSysfs": lambda undo: holds(undo["path"]) == undo["value"],
    "WipeOurs": lambda undo: not signatures(undo["device"]),
    "MarkHalfMade": lambda undo: may_be_erased(undo["device"]),
    "SetInstantMode": lambda undo: not Path(undo["control"]).exists(),
}


def settings(loop):
    queue = Path("/sys/block") / Path(loop[0]).name / "queue"
    return {name: (queue / name).read_text(encoding="ascii") for name in SHOWN_KNOBS if (queue / name).exists()}


def kill_after(process, seconds):
    """SIGKILL after so long; returns whether there was still something to kill."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=180)
    return process.returncode == -signal.SIGKILL


def restore(state, rng):
    """Restore, itself killed up to three times on the way; returns how often."""
    killed = 0
    while killed < 3 and rng.random() < 0.7:
        killed += kill_after(start_dbdyno("restore", state=state), rng.uniform(0.1, 0.9))
    done = dbdyno("restore", state=state)
    assert done.returncode == 0, done.stdout + done.stderr
    return killed


def test_nothing_is_left_after_random_kills(state, study_file, tmp_path):
    rng, counts, kills = drawn("storm"), Counter(), 0
    longest = dict.fromkeys(STUDIES, 6.0)  # seconds that a run takes, as far as it was seen
    with lent_loop(tmp_path / "lent") as device:
        loop = (str(device), str(tmp_path / "lent"))
        before = settings(loop)
        for number in range(20 * KILLS):
            if kills == KILLS:
                break
            name = list(STUDIES)[number % len(STUDIES)]
            study = study_file(STUDIES[name](rng, loop))
            began = time.monotonic()
            process = start_dbdyno("run", study, "--into", tmp_path / f"run{number}", state=state)
            if kill_after(process, rng.uniform(0.3, 1.1 * longest[name])):
                kills += 1
                counts[name] += 1
            else:
                assert process.returncode == 0, f"{name}: a run that nobody killed failed"
                longest[name] = 0.3 * longest[name] + 0.7 * (time.monotonic() - began)
            changes = announced(state)
            counts["restore"] += restore(state, rng)
            assert what_is_left(state) == [], name
            assert [one for one in changes if not UNDONE[one["kind"]](one)] == [], name
            assert settings(loop) == before, name
            counts["changes"] += len(changes)
    assert kills == KILLS
    sys.stdout.write(f"\n{kills} kills: {dict(counts)}\n")
