"""Whether a host is as it was after SIGKILL at random moments of runs with a setting, and ``dbdyno restore``.

    sudo .venv/bin/python -m benches.kills [--setting NAME]... [--kills 50] [--seed 1] [--json FILE] [--strict]

Of each setting a study is run again and again; a setting that this host can't have is left out, with what ``plan``
says of it. ``host`` sets every setting of the kernel's at once that this host takes.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from benches.figures import at_most, write
from dbdyno.stack.layers.host_settings import SETTINGS, current, why_not
from tests.kills import UNDONE, announced, kill_after, restore
from tests.support import dbdyno, start_dbdyno, wait_for, what_is_left

STUDY = """\
version = 1
[study]
title = "kills"
[stack]
{stack}
[server.settings]
innodb_buffer_pool_size = "32M"
{settings}
[workload]
kind = "slap"
load = "write"
clients = 4
warmup = "100ms"
duration = "700ms"
{sections}
[design]
blocks = 1
interference = "note"
"""
HERE = 'device = "here"'
EMULATED = 'device = "nvme"\nsize = "512MiB"\nfilesystem = "ext4"'
SECOND, THIRD = (
    f'[stack.disks.{name}]\ndevice = "nvme"\nsize = "512MiB"\nfilesystem = "xfs"\n' for name in ("second", "third")
)
LOGS = "log_bin = true\ninnodb_undo_tablespaces = 2"
# Two levels of each that no host has by itself; of io_uring, without which other programs fail, the one that it has.
OF_KERNEL = {
    "transparent_hugepage": ["never", "always"],
    "transparent_hugepage_defrag": ["never", "defer"],
    "nr_hugepages": [1, 2],
    "swappiness": [37, 43],
    "vfs_cache_pressure": [90, 120],
    "dirty_ratio": [33, 34],
    "dirty_bytes": ["512MiB", "256MiB"],
    "dirty_background_ratio": [7, 8],
    "dirty_background_bytes": ["64MiB", "32MiB"],
    "dirty_expire_centisecs": [2345, 2346],
    "dirty_writeback_centisecs": [432, 433],
    "zone_reclaim_mode": [1, 2],
    "numa_balancing": [0, 1],
    "cpu_governor": ["performance", "powersave"],
}
IN_GUEST = {
    "array": 'array = "raid1"\ndevices = 2',
    "cache": 'cache = "writecache"\n[stack.disks.cache]\ndevice = "nvme"\nsize = "256MiB"',
    "encryption": 'encryption = "luks"',
    "volume": 'volume = "thin"',
}


# Shares of the kills: at any moment of a run, the others once it has changed something; and of runs that prepare data.
ANY_MOMENT, FRESH = 1 / 4, 1 / 4


def host_section(settings):
    """Return ``[host]`` with those of the settings that this host takes; a limit in bytes stands for its ratio."""
    able = {name: levels for name, levels in settings.items() if not why_not(name, levels[0])}
    if len(able) > 1:
        able = {name: levels for name, levels in able.items() if name.replace("_ratio", "_bytes") == name}
        able = {name: levels if name == "swappiness" else levels[0] for name, levels in able.items()}
    return "[host]\n" + "".join(f"{name} = {_toml(value)}\n" for name, value in able.items())


def _toml(value):
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value)


def study(stack=HERE, settings="", sections=""):
    return STUDY.format(stack=stack, settings=settings, sections=sections)


# Name of a setting -> a study that varies it, or has it.
STUDIES = {
    "host": lambda: study(sections=host_section(OF_KERNEL)),
    **{
        f"host.{name}": lambda name=name, levels=levels: study(sections=f"[host]\n{name} = {_toml(levels)}\n")
        for name, levels in OF_KERNEL.items()
    },
    "host.io_uring_disabled": lambda: study(sections=f"[host]\nio_uring_disabled = {current('io_uring_disabled')}\n"),
    "host.awake": lambda: study(sections="[host]\nawake = [false, true]\n"),
    "stack.disks": lambda: study(
        f"{EMULATED}\n{SECOND}{THIRD}",
        LOGS,
        '[server.place]\ninnodb_log = ["data", "second"]\nbinlog = "third"\nundo = "third"\ntmpdir = "second"\n',
    ),
    "server.place": lambda: study(f"{EMULATED}\n{SECOND}", LOGS, '[server.place]\nbinlog = ["data", "second"]\n'),
    "server": lambda: study(
        sections='[server]\nallocator = ["system", "jemalloc"]\nnice = 3\nnuma = "interleave"\nionice = "idle"\n'
    ),
    "server.encryption": lambda: study(
        f'{HERE}\nserver = "mysql-9"', 'default_table_encryption = [false, true]\ninnodb_redo_log_capacity = "16M"'
    ),
    "server.replica": lambda: study(
        f"{EMULATED}\n{SECOND}",
        "log_bin = true",
        '[server.replica]\nmode = ["async", "semisync"]\ndisk = "second"\nround_trip = "2ms"\n',
    ),
    "server.cluster": lambda: study(
        f"{EMULATED}\n{SECOND}{THIRD}", sections='[server.cluster]\nmode = "galera"\ndisks = "second,third"\n'
    ),
    "workload.beside": lambda: study(
        sections='[[workload.beside]]\nname = "backup"\nkind = ["none", "dump"]\nstart = "100ms"\n'
    ),
    "workload.table_options": lambda: study(
        sections='table_options = ["ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8", "ROW_FORMAT=DYNAMIC"]\n'
    ),
    **{
        f"stack.{name}": lambda fields=fields: study(f'kernel = "debian-6.12"\n{EMULATED}\n{fields}')
        for name, fields in IN_GUEST.items()
    },
}


def look(state):
    """What of a host a run may change: settings of its kernel, and what it has of this state folder's."""
    folders = sorted(path.name for path in state.iterdir())
    unfinished = sorted(str(path) for path in state.glob("*/*.part"))
    return {
        "settings": {name: current(name) for name in SETTINGS},
        "folders": [name for name in folders if not name.endswith(".lock")],
        "left": [*what_is_left(state), *unfinished],
    }


def look_alone(state):
    """The same while no other dbdyno of this host has changed a setting."""

    def is_claimed():
        return any((refusal := why_not(name)) and "dbdyno" in refusal.why for name in SETTINGS)

    def look_unclaimed():
        host = None if is_claimed() else look(state)
        return None if is_claimed() else host

    return wait_for(look_unclaimed, every=0.1)


def moment(process, state, spans, rng):
    """Wait for a moment of a run: any, or one after it has announced a change; returns whether it still runs."""
    if rng.random() < ANY_MOMENT:
        return kill_after(process, rng.uniform(0.3, 1.1 * sum(spans)))
    wait_for(lambda: process.poll() is not None or announced(state), every=0.01)
    return kill_after(process, rng.uniform(0, 1.1 * spans[1]))


def whole_run(path, into, state):
    """Run a study to its end; return the seconds before its first change, and those after it."""
    began = time.monotonic()
    process = start_dbdyno("run", path, "--into", into, state=state)
    wait_for(lambda: process.poll() is not None or announced(state), every=0.01)
    announced_at = time.monotonic()
    output = process.communicate(timeout=1800)[0]
    assert process.returncode == 0, output
    return announced_at - began, time.monotonic() - announced_at


def kills_of(name, count, rng, folder):
    """Return what came of so many kills of runs with a setting; why there are none where this host can't have it."""
    state, path = folder / "state", folder / "study.toml"
    state.mkdir()
    for given in ("servers", "kernels"):
        there = Path(os.environ.get("DBDYNO_STATE_DIR", "/var/lib/dbdyno")) / given
        if there.is_dir():
            (state / given).symlink_to(there)
    path.write_text(STUDIES[name](), encoding="utf-8")
    planned = dbdyno("plan", path, state=state)
    if planned.returncode:
        return {"setting": name, "kills": 0, "lacking": (planned.stdout + planned.stderr).strip().splitlines()[-2:]}
    whole_run(path, folder / "first", state)
    spans = whole_run(path, folder / "second", state)  # with prepared data
    before, different, counts, kinds = look_alone(state), [], Counter(), Counter()
    for number in range(20 * count):
        if counts["kills"] == count:
            break
        fresh = ["--fresh-images"] if rng.random() < FRESH else []
        process = start_dbdyno("run", path, "--into", folder / f"run{number}", *fresh, state=state)
        was_killed = moment(process, state, spans, rng)
        counts["kills"] += was_killed
        counts["ended before" if not process.returncode else "failed before"] += not was_killed
        changes = announced(state)
        counts["kills of a changed host"] += was_killed and bool(changes)
        counts["kills of restore"] += restore(state, rng)
        kinds.update(change["kind"] for change in changes)
        undone = [change for change in changes if not UNDONE[change["kind"]](change)]
        after = look_alone(state)
        if undone or after != before:
            different.append({"not_undone": undone, "before": before, "after": after})
            print(different[-1], file=sys.stderr, flush=True)  # at once, as a bench of hours may be ended
    return {"setting": name, "seconds_of_a_run": spans, **counts, "changes": kinds, "different": different}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--setting", choices=STUDIES, action="append", help="all if none is given")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--strict", action="store_true", help="exit 1 where a figure misses its limit")
    parser.add_argument("--json", type=Path, help="write the figures there as well")
    options = parser.parse_args()
    figures, details = [], []
    for name in options.setting or STUDIES:
        with tempfile.TemporaryDirectory(prefix="ddb", dir="/var/tmp") as folder:
            Path(folder).chmod(0o755)  # the server runs as another user
            outcome = kills_of(name, options.kills, random.Random(f"{options.seed} {name}"), Path(folder))
        details.append(outcome)
        print(outcome, flush=True)
        what = f"hosts that differ after {outcome['kills']} kills, {name}"
        figures.append(at_most(what, len(outcome["different"]) if outcome["kills"] else None, 0))
    write(options.json, figures, details)
    return int(options.strict and any(figure.met is False for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
