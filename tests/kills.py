"""What a killed dbdyno had announced, whether it is undone, and ``restore`` that is killed on the way as well."""

import json
import os
import signal
import subprocess
from pathlib import Path

from dbdyno.host.storage import is_mounted
from dbdyno.stack.emptiness import identify
from dbdyno.stack.erase import Erasing, check_erasable
from dbdyno.stack.loop import loops_over
from dbdyno.stack.undo.actions import marked
from tests.support import dbdyno, start_dbdyno


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
