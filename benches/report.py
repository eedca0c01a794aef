"""What the HTML page of a large run costs, beside the least that any reader of its files pays.

    .venv/bin/python -m benches.report [--treatments 16] [--blocks 40] [--samples 1000000] [--rounds 5] [--json FILE]

A run folder is made up with a seed: so many treatments, blocks and samples (rows of all series together). Then, in
turn, one process writes its page, and another has DuckDB read every row of the same Parquet files, the histograms of
latency among them. A ratio says what dbdyno adds. Of a page as the demo's (four treatments, eight blocks) its bytes,
and when headless Chromium paints it.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

from benches.figures import Figure, at_most, write
from dbdyno.model.design import Treatment
from tests.browser import CHROMIUM, opened
from tests.run_folders import written
from tests.unit.report.conftest import build, latencies_of, series_of
from tests.unit.report.shared_pages import comparison

SECONDS_MAX, BYTES_MAX = 2.0, 1_000_000
SMALL_BYTES_MAX, PAINT_MS_MAX = 500_000, 150
PAINTED = "performance.getEntriesByName('first-contentful-paint').map(one => one.startTime)[0]"
DRAWN = ("load", "block_device", "host_cpu")  # series that the made-up trials have
READ_ALL = """
import sys, duckdb
for name in sys.argv[2:]:
    duckdb.execute(f"SELECT * FROM read_parquet('{sys.argv[1]}/trials/*/{name}.parquet')").fetchnumpy()
"""


def made_up(folder, treatments, blocks, samples):
    """A run whose treatments are devices x schedulers, of so many samples in all."""
    combinations = list(product(range(-(-treatments // 4)), ("none", "mq-deadline", "kyber", "bfq")))[:treatments]
    named = [
        Treatment(f"t{place}", {"device": f"ssd-{device}", "scheduler": scheduler})
        for place, (device, scheduler) in enumerate(combinations, 1)
    ]
    rates = {one.id: 400.0 + 37 * place for place, one in enumerate(named)}
    pairs = [("t1", one.id) for one in named[1:]]
    run = build(blocks, rates=rates, treatments=named, pairs=pairs, void_block=0)
    each = -(-samples // (len(run.trials) * len(DRAWN)))
    series = {id_: {name: one[name] for name in DRAWN} for id_, one in series_of(run, samples=each).items()}
    for id_, met in latencies_of(run).items():
        series[id_]["latency"] = {"latency_ns": met.latency_ns, "count": met.count}
    return written(folder, run, series)


def seconds_of(command):
    """Wall clock and CPU of a process."""
    began, used = time.perf_counter(), sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    subprocess.run(list(map(str, command)), check=True, capture_output=True)
    return time.perf_counter() - began, sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - used


def first_paint_ms(page, rounds):
    """Median time from asking for the page to its first content on the screen; None without Chromium."""
    if CHROMIUM is None:
        return None
    found = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="dbdyno-bench") as folder, opened(page, Path(folder)) as tab:
            found.append(tab.value(PAINTED))
    return statistics.median(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("treatments", 16), ("blocks", 40), ("samples", 1_000_000), ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--json", type=Path, help="write the figures there as well")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dbdyno-bench") as base:
        run, page = Path(base) / "run", Path(base) / "page.html"
        made_up(run, options.treatments, options.blocks, options.samples)
        commands = {
            "page": [sys.executable, "-m", "dbdyno.cli.main", "report", run, "--html", page],
            "text": [sys.executable, "-m", "dbdyno.cli.main", "report", run],
            "duckdb": [sys.executable, "-c", READ_ALL, run, *DRAWN, "latency"],
        }
        seconds = {name: [] for name in commands}
        for _ in range(options.rounds):
            for name, command in commands.items():
                seconds[name].append(seconds_of(command))
        size = page.stat().st_size
    wall, cpu = ({name: statistics.median(each[part] for each in seconds[name]) for name in seconds} for part in (0, 1))
    run_of = f"{options.treatments} treatments x {options.blocks} blocks, {options.samples:,} samples"
    print(f"{run_of}; medians of {options.rounds}\n{'':14s} {'wall s':>7s} {'CPU s':>7s}  x duckdb's CPU")
    for name in commands:
        print(f"{name:14s} {wall[name]:7.2f} {cpu[name]:7.2f}  {cpu[name] / cpu['duckdb']:.1f}")
    print(
        f"at most        {SECONDS_MAX:7.2f}          for the page\nthe page has {size:,} bytes (at most {BYTES_MAX:,})"
    )
    small = comparison()
    small_bytes, paint_ms = len(small.encode()), first_paint_ms(small, options.rounds)
    painted = "unknown (no Chromium)" if paint_ms is None else f"{paint_ms:.0f} ms (at most {PAINT_MS_MAX})"
    print(f"as the demo's: {small_bytes:,} bytes (at most {SMALL_BYTES_MAX:,}), first paint after {painted}")
    figures = [
        at_most("page of a run, s", wall["page"], SECONDS_MAX),
        at_most("page of a run, bytes", size, BYTES_MAX),
        at_most("page like the demo's, bytes", small_bytes, SMALL_BYTES_MAX),
        at_most("page like the demo's, first paint, ms", paint_ms, PAINT_MS_MAX),
        Figure("page of a run, CPU beside DuckDB's", cpu["page"] / cpu["duckdb"]),
    ]
    write(options.json, figures, {"wall_seconds": wall, "cpu_seconds": cpu})


if __name__ == "__main__":
    main()
