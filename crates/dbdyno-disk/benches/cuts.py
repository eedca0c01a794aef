"""What it costs to be ready for cuts, and to take one."""

from __future__ import annotations

import statistics
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from bench_host import GIB, Disk, disk, fio
from rows import Row

from dbdyno.stack.attached import find_disk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbdyno.stack.disk_client import CutTaken

ROUNDS = 5  # each not armed, then armed
CUT_SECONDS = 0.02  # between two cuts
CUTS_MAX = 100  # that are kept at once


def armed_share(target: Disk, seconds: float, **more) -> tuple[float, float]:
    """How many requests a second an armed disk answers, as a share of one that is not; and the least idle meanwhile."""
    client = find_disk(target.name).client()
    rates: dict[bool, list[float]] = {False: [], True: []}
    idle = []
    for _ in range(ROUNDS):
        for armed in (False, True):
            if armed:
                client.arm_cuts()
            run = fio(target, "randwrite", "4k", 32, seconds, **more)
            client.disarm_cuts()
            rates[armed].append(run.iops)
            idle.append(run.idle)
    return statistics.median(b / a for a, b in zip(rates[False], rates[True], strict=True)), min(idle)


def cuts_under_load(target: Disk, seconds: float, **more) -> list[CutTaken]:
    """Cuts that were taken all the while fio wrote."""
    client, taken, ended = find_disk(target.name).client(), [], threading.Event()

    def cut() -> None:
        while not ended.wait(CUT_SECONDS):
            taken.append(client.cut(str(len(taken))))
            if len(taken) >= CUTS_MAX:
                client.forget_cut(str(len(taken) - CUTS_MAX))

    client.arm_cuts()
    cutting = threading.Thread(target=cut)
    cutting.start()
    try:
        fio(target, "randwrite", "4k", 32, seconds, **more)
    finally:
        ended.set()
        cutting.join()
        client.forget_cuts()
        client.disarm_cuts()
    return taken


def cuts(seconds: float) -> Iterator[Row]:
    """On a disk that is full and answers at once, so that nothing hides the cost."""
    drives = {
        "protected cache": ("ebs-gp3", {}),
        "volatile cache, FLUSH each 32 writes": ("ssd-sata", {"fsync": 32}),
        "volatile cache, never a FLUSH": ("ssd-sata", {}),
    }
    for what, (model, more) in drives.items():
        with disk(model, GIB, limit=6 * GIB) as target:
            find_disk(target.name).client().set_mode("instant")
            fio(target, "write", "1m", 8, 0, time_based=0, runtime=0)
            share, idle = armed_share(target, seconds / ROUNDS, **more)
            note = f"{idle:.2f} processors idle"
            yield Row("cuts", f"{what}: requests/s armed, of not", share, "", low=0.8, note=note)
            taken = cuts_under_load(target, seconds, **more)
            pauses_us = [(cut.cut_end_ns - cut.cut_ns) / 1e3 for cut in taken]
            writes = statistics.median(cut.unflushed_writes for cut in taken)
            pause = Row("cuts", f"{what}: pause for a cut, median", statistics.median(pauses_us), "us", high=100)
            yield replace(
                pause, note=f"{len(taken)} cuts of 1 GiB with {writes:.0f} writes, at most {max(pauses_us):.0f}"
            )
