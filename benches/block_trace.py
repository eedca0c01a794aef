"""What the block trace costs: nanoseconds a request in the kernel, and CPU of the reader.

    .venv/bin/python -m benches.block_trace [--rounds 200] [--record] [--json FILE] [--strict]

A loop device over a file in memory is read one sector at a time, with and without the trace's events in turn. Others
only ever make reads slower, so they are timed by the hundred, and the fast tenth is compared, not the mean. The budget
of 1 us a request is for both parts together. With --record the events are also written to a file in memory, as
`dbdyno trace record` does, and merges are events too.
"""

import argparse
import json
import mmap
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benches.figures import Figure, at_most, write

REQUESTS = 100  # timed together: short enough that most are done without another process in between
TIMED = 20  # in a round
SIZE = 64 * 1024**2
BUDGET_NS = 1000
EVENTS = ("block_bio_queue", "block_rq_issue", "block_rq_requeue", "block_rq_complete")
INSTANCES = Path("/sys/kernel/tracing/instances")
PROBE = Path(sys.executable).parent / "dbdyno-probe"


def tool(*argv):
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


def switch(instance, on):
    for event in EVENTS:
        (instance / "events/block" / event / "enable").write_text(str(int(on)), encoding="ascii")


def round_ns(handle, buffer, places):
    """Nanoseconds a request, by the hundred: one at a time, so that all the kernel does for it is in its time."""
    for _ in range(TIMED):
        began = time.perf_counter_ns()
        for place in places:
            os.preadv(handle, [buffer], place)
        yield (time.perf_counter_ns() - began) / len(places)


def measured(device, instance, rounds):
    """Rounds without and with events, taking turns in random order."""
    chances = random.Random(1)
    buffer = mmap.mmap(-1, 4096)
    handle = os.open(device, os.O_RDONLY | os.O_DIRECT)
    found = {False: [], True: []}
    for _ in range(rounds):
        places = [chances.randrange(SIZE // 4096) * 4096 for _ in range(REQUESTS)]
        for on in chances.sample([False, True], 2):
            switch(instance, on)
            found[on] += round_ns(handle, buffer, places)
    os.close(handle)
    return found


def fast(values):
    """The fast tenth."""
    return statistics.quantiles(values, n=10)[0]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=200)
    options.add_argument("--record", action="store_true")
    options.add_argument("--json", type=Path)
    options.add_argument("--strict", action="store_true")
    asked = options.parse_args()
    if not INSTANCES.is_dir():
        return f"tracefs is not mounted; mount it: mount -t tracefs tracefs {INSTANCES.parent}"
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        image = Path(folder) / "image"
        image.write_bytes(os.urandom(1024**2) * (SIZE // 1024**2))
        device = tool("losetup", "--find", "--show", "--sector-size", "4096", str(image))
        Path("/sys/block", Path(device).name, "queue/scheduler").write_text("none", encoding="ascii")
        name = f"dbdyno-bench-{os.getpid()}"
        command = [PROBE, "block", device, "--control", "--instance", name]
        command += ["--record", Path(folder) / "trace"] if asked.record else []
        probe = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            probe.stdout.readline()
            before = reader_seconds(probe)
            found = measured(device, INSTANCES / name, asked.rounds)
            figures, after = summary(probe), reader_seconds(probe)
        finally:
            probe.stdin.close()
            probe.wait(10)
            tool("losetup", "--detach", device)
    reader_ns = (after - before) * 1e9 / figures["requests"]["read"]
    result = {
        "request_ns": fast(found[False]),
        "kernel_ns": fast(found[True]) - fast(found[False]),
        "reader_ns": reader_ns,
        "lost": figures["lost"],
        "requests": figures["requests"]["read"],
    }
    result["together_ns"] = result["kernel_ns"] + reader_ns
    print(json.dumps(result, indent=1))
    shown = [Figure(name, value) for name, value in result.items() if name != "together_ns"]
    write(asked.json, [at_most("together_ns", result["together_ns"], BUDGET_NS), *shown])
    within = result["together_ns"] <= BUDGET_NS
    print(f"{'within' if within else 'BEYOND'} the budget of {BUDGET_NS} ns a request")
    return 1 if asked.strict and not within else 0


def summary(probe):
    probe.stdin.write("summary\n")
    probe.stdin.flush()
    return json.loads(probe.stdout.readline())["figures"]


def reader_seconds(probe):
    return summary(probe)["cpu_seconds"]


if __name__ == "__main__":
    raise SystemExit(main())
