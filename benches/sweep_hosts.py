"""Simulated points over four hosts beside the same processors used locally, in pairs; as root, on a quiet machine.

The hosts are network namespaces of this machine, each with an sshd that is pinned to its share of the processors.
Run as ``make bench-hosts``.
"""

import argparse
import itertools
import os
import statistics
import time
from contextlib import contextmanager
from pathlib import Path

import psutil

from benches.figures import Figure, at_least, write
from dbdyno.hosts.connect import connected
from dbdyno.simulation.sweep import combinations, simulated, simulators
from tests.lab import lab, lab_lacking
from tests.support import dbdyno

HOSTS = ("h1", "h2", "h3", "h4")
SHARE_MIN = 0.95  # of the throughput of the same processors here
POINT = {"size_bytes": 1 << 34, "warm_up_s": 0.0, "device": "hdd-15k", "kernel": "6.x", "sample_most": 0,
         "intervals_most": 1, "load": {"kind": "jobs", "jobs": [{"depth": 32}]}}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=150.0, help="simulated, of each point")
    parser.add_argument("--json", type=Path, help="write the figures there as well")
    parser.add_argument("--strict", action="store_true", help="exit 1 where a limit is not kept")
    options = parser.parse_args()
    if lacking := lab_lacking():
        raise SystemExit(f"no hosts can be made here: {lacking}")
    points = combinations(POINT | {"duration_s": options.seconds}, {}, range(1, options.points + 1))
    pairs, connecting_s = measured(points, options.rounds)
    shares = [here["wall_s"] / over["wall_s"] for here, over in pairs]
    figures = [
        at_least(f"{options.points} points over {len(HOSTS)} hosts, throughput beside that here",
                 median(shares), SHARE_MIN),
        Figure("the same, CPU of our processes and those of the hosts beside that here",
               median([over["cpu_s"] / here["cpu_s"] for here, over in pairs])),
        Figure("CPU of a point here, ms", median([here["points_cpu_s"] for here, _ in pairs]) / options.points * 1e3),
        Figure("connecting to the hosts, s", connecting_s),
    ]  # fmt: skip
    for here, over in pairs:
        print(
            f"here {here['wall_s']:6.1f} s, over hosts {over['wall_s']:6.1f} s: {here['wall_s'] / over['wall_s']:.3f}"
        )
    for one in figures:
        print(f"{one.value:8.3f}  {one.name}{f' (at least {one.limit})' if one.limit else ''}")
    write(options.json, figures, [{"here": here, "over_hosts": over} for here, over in pairs])
    if options.strict and not all(one.met is not False for one in figures):
        raise SystemExit(1)


def median(values):
    return statistics.median(values)


def measured(points, rounds):
    """Wall clock and CPU of each pair, in turns; and the seconds until the hosts took points."""
    with hosts_up() as inventory:
        began = time.perf_counter()
        with connected(inventory) as there, simulators([], there) as over, simulators([]) as here:
            connecting_s = time.perf_counter() - began
            for by in (here, over):
                seconds_of(points[:20], by)  # each has loaded what it needs
            pairs = []
            for number in range(rounds):
                order = (here, over) if number % 2 == 0 else (over, here)
                found = {id(by): seconds_of(points, by) for by in order}
                pairs.append((found[id(here)], found[id(over)]))
    return pairs, connecting_s


@contextmanager
def hosts_up():
    """Hosts that share the processors of this machine; yields their inventory."""
    cores = itertools.cycle(sorted(os.sched_getaffinity(0)))
    with lab(*HOSTS) as made:
        for name in HOSTS:
            made.silence(name)
            made.listen(name, "taskset", "--cpu-list", str(next(cores)))
        os.environ["DBDYNO_STATE_DIR"] = str(made.folder / "here")
        inventory = made.inventory()
        try:
            changed("up", inventory, made)
            yield inventory
        finally:
            changed("down", inventory, made)


def changed(verb, inventory, made):
    done = dbdyno("hosts", verb, inventory, state=made.folder / "here")
    if done.returncode:
        raise SystemExit(done.stderr)


def seconds_of(points, by):
    """What all points take, wall clock and CPU."""

    @contextmanager
    def opened(_):
        yield by

    began, used = time.perf_counter(), cpu_s()
    found = dict(simulated(points, None, lambda _: None, opened=opened))
    wall_s = time.perf_counter() - began
    return {"wall_s": wall_s, "cpu_s": cpu_s() - used, "points_cpu_s": sum(one.cpu_s for one in found.values())}


def cpu_s():
    """CPU seconds so far of this process and of the hosts': their sshd is a child, and agents live until the end."""
    us = psutil.Process()
    return sum(sum(one.cpu_times()[:2]) for one in (us, *us.children(recursive=True)))


if __name__ == "__main__":
    main()
