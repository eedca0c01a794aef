"""What many hosts cost one that is measured, and how well clocks agree and starts coincide.

    sudo .venv/bin/python -m benches.hosts [--seconds 60] [--rounds 200] [--starts 100] [--many 60] [--strict]

Hosts are network namespaces of this machine, so the truth is known: their clocks are one, and that of the second is
shifted by a time namespace. Cost is CPU time by the kernel's count while nothing is asked; on a machine that others
use its caches are cold, and it is up to twice as much. Common starts need a quiet machine. The ``--many`` hosts share
what they keep in one folder: what `up` takes of them is ssh, Python and what is read back.
"""

import argparse
import json
import math
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil

from benches.figures import at_least, at_most, write
from dbdyno.hosts.bundle import requirements_of
from dbdyno.hosts.connect import connected
from tests.lab import lab, lab_lacking
from tests.support import dbdyno

PERCENT_MAX = 0.05
INSIDE_MIN, SKEW_MS_MAX = 0.99, 0.5
UP_SECONDS_MAX, MEMORY_MB_MAX, THREADS_MAX = 60.0, 500.0, 1.0  # threads: for each host
DASK_MB_MAX = 60.0
SHIFT_SECONDS = 1000  # of the second host's CLOCK_MONOTONIC
SETTLING_SECONDS = 5  # the longer a program is silent, the less often the agent looks
LEAD_NS = 2_000_000_000  # a busy host takes its time to start a Python
SPIN = "import sys, time\nat = int(sys.argv[1])\nwhile (now := time.monotonic_ns()) < at: pass\nprint(now, flush=True)"


def cpu_seconds(namespace):
    """CPU seconds so far of the processes of a host, by their numbers: dbdyno's agent, its guard, sshd."""
    inside, found = Path(f"/run/netns/{namespace}").stat().st_ino, {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (folder / "ns/net").stat().st_ino != inside:
                continue
            threads = [(one / "schedstat").read_text().split()[0] for one in (folder / "task").iterdir()]
            found[int(folder.name)] = sum(map(int, threads)) / 1e9
    return found


def cost(there, namespace, seconds):
    """Percent of a core that a host pays where nothing is asked, as in a measured window."""
    process = there.hosts.start("c1", ["sleep", "100000"])
    listening = threading.Thread(target=lambda: list(there.hosts.stream("c1", process)), daemon=True)
    listening.start()
    time.sleep(SETTLING_SECONDS)
    before, began = cpu_seconds(namespace), time.monotonic()
    time.sleep(seconds)
    after, passed = cpu_seconds(namespace), time.monotonic() - began
    there.hosts.signal("c1", process, signal.SIGKILL)
    listening.join()
    return 100 / passed * sum(used - before.get(pid, 0.0) for pid, used in after.items())


def inside(there, rounds):
    """The share of offsets whose bound holds the truth, and the greatest bound in milliseconds."""
    truth, good, widest = {"c1": 0, "c2": SHIFT_SECONDS * 10**9}, 0, 0.0
    for _ in range(rounds):
        found = there.offsets()
        good += sum(abs(found[name].offset_ns - truth[name]) <= found[name].bound_ns for name in truth)
        widest = max(widest, *(one.bound_ns / 1e6 for one in found.values()))
    return good / (2 * rounds), widest


def skews(there, starts):
    """Milliseconds between the moments at which both hosts began what they were to begin at once."""
    truth, found = {"c1": 0, "c2": SHIFT_SECONDS * 10**9}, []
    for _ in range(starts):
        offsets = there.offsets()
        at = time.monotonic_ns() + LEAD_NS
        begun = {
            name: there.hosts.start(name, [sys.executable, "-c", SPIN, str(at + offsets[name].offset_ns)])
            for name in truth
        }
        said = {name: next(there.hosts.stream(name, process)).content for name, process in begun.items()}
        passed = [int(said[name]) - truth[name] for name in truth]
        found.append(abs(passed[0] - passed[1]) / 1e6)
    return sorted(found)


def many(count):
    """How long `up` takes of so many hosts once one is up; memory and threads of who is connected to all."""
    names = [f"h{number}" for number in range(1, count + 1)]
    with lab(*names) as made:
        state, inventory = made.folder / "here", made.inventory()
        os.environ["DBDYNO_STATE_DIR"] = str(state)
        first = made.folder / "first.toml"
        first.write_text(inventory.read_text().partition("[host.h2]")[0])
        brought_up(first, state)
        began = time.monotonic()
        brought_up(inventory, state)
        seconds = time.monotonic() - began
        try:
            threads = threading.active_count()
            with connected(inventory) as there:
                started = [there.hosts.start(name, ["sleep", "100000"]) for name in names]
                threads = threading.active_count() - threads
                us = psutil.Process()
                ours = [us, *(one for one in us.children() if one.name() == "ssh")]  # the hosts are children, too
                used = sum(one.memory_full_info().pss for one in ours) / 1e6
                for name, process in zip(names, started, strict=True):
                    there.hosts.signal(name, process, signal.SIGKILL)
        finally:
            dbdyno("hosts", "down", inventory, state=state)
    return seconds, used, threads / count


def brought_up(inventory, state):
    done = dbdyno("hosts", "up", inventory, state=state)
    if done.returncode:
        raise SystemExit(done.stderr)


def figures_of_many(count):
    """The figures of so many hosts; none where there are none."""
    if not count:
        return []
    seconds, used, threads = many(count)
    return [
        at_most(f"`up` of {count} hosts once one is up, seconds", seconds, UP_SECONDS_MAX),
        at_most(f"memory of who is connected to {count} hosts and of its ssh, MB", used, MEMORY_MB_MAX),
        at_most(f"threads for each of {count} hosts", threads, THREADS_MAX),
    ]


def dask_mb():
    """What ``dbdyno[dask]`` installs beside dbdyno, as it lies on disk."""
    ours = requirements_of("dbdyno")
    added = [one for name, one in requirements_of("dask", "distributed").items() if name not in ours]
    files = [Path(str(one.locate_file(file))) for one in added for file in one.files or []]
    return sum(file.stat().st_size for file in files if file.is_file()) / 1e6


def measured(given):
    """All figures, and what they were made from."""
    with lab("c1", "c2") as made:
        made.silence("c2")
        made.listen("c2", "unshare", "--time", "--monotonic", str(SHIFT_SECONDS), "--fork", "--kill-child")
        state, inventory = made.folder / "here", made.inventory()
        os.environ["DBDYNO_STATE_DIR"] = str(state)
        brought_up(inventory, state)
        try:
            with connected(inventory) as there:
                percent = cost(there, made.namespace("c1"), given.seconds)
                share, widest = inside(there, given.rounds)
                apart = skews(there, given.starts)
        finally:
            dbdyno("hosts", "down", inventory, state=state)
    p99 = apart[math.ceil(0.99 * len(apart)) - 1]  # by nearest rank: 99 % are at most that
    figures = [
        at_most("agent, guard and sshd of a host where nothing is asked, percent of a core", percent, PERCENT_MAX),
        at_least("share of clock offsets whose bound holds the truth", share, INSIDE_MIN),
        at_most("p99 of the time between two hosts' starts, milliseconds", p99, SKEW_MS_MAX),
        *figures_of_many(given.many),
        at_most("what dbdyno[dask] installs beside dbdyno, MB", dask_mb(), DASK_MB_MAX),
    ]
    return figures, {"percent": percent, "widest_bound_ms": widest, "skews_ms": apart}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="that nothing is asked for")
    parser.add_argument("--rounds", type=int, default=200, help="offsets of each host")
    parser.add_argument("--starts", type=int, default=100, help="common starts")
    parser.add_argument("--many", type=int, default=60, help="hosts at once; 0 for none")
    parser.add_argument("--strict", action="store_true", help="exit 1 where a limit is not met")
    parser.add_argument("--json", type=Path, help="where the figures go")
    given = parser.parse_args()
    if why := lab_lacking():
        raise SystemExit(why)
    figures, details = measured(given)
    for figure in figures:
        print(f"{figure.value:9.4f}  {figure.name} (limit {figure.limit}): {'met' if figure.met else 'NOT MET'}")
    print(json.dumps({"widest_bound_ms": details["widest_bound_ms"]}))
    write(given.json, figures, details)
    if given.strict and not all(figure.met for figure in figures):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
