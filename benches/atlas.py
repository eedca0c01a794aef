"""What an atlas of many runs costs: to build, to open, to search.

    .venv/bin/python -m benches.atlas [--runs 200] [--blocks 6] [--rounds 9] [--strict] [--json FILE]

Small run folders are made up with a seed, no two of the same drive's speed. One process builds the site of all of them;
then headless Chromium opens its first page from the disk, and types words into its search.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from benches.figures import at_most, write
from tests.browser import CHROMIUM, opened
from tests.run_folders import kept_run
from tests.unit.report.conftest import RATE, build, latencies_of, series_of

BUILD_SECONDS_MAX, OPEN_MS_MAX, SEARCH_MS_MAX = 60, 300, 100
TYPED = ("s", "ssd", "study 17", "no such thing", "")
# From asking for the page to all that it needs at first, and until it was drawn: whichever comes later.
OPENED = """(() => { const [page] = performance.getEntriesByType('navigation');
    const paints = performance.getEntriesByType('paint').map(one => one.startTime);
    return Math.max(page.loadEventEnd, ...paints); })()"""
SEARCHED = """(() => { const field = document.querySelector('#filters input'), began = performance.now();
    field.value = %r; field.dispatchEvent(new Event('input', { bubbles: true }));
    document.body.offsetHeight; return performance.now() - began; })()"""


def made_up(folder, runs, blocks):
    """Write so many run folders, each with series, into a folder."""
    for number in range(1, runs + 1):
        rates = {id_: rate * (1 + number / 100) for id_, rate in RATE.items()}
        run = replace(build(blocks, rates=rates, seed=number), title=f"Study {number}")
        series = series_of(run, samples=60)
        for id_, met in latencies_of(run).items():
            series[id_]["latency"] = {"latency_ns": met.latency_ns, "count": met.count}
        with patch.object(os, "fsync", lambda _: None):
            kept_run(folder / f"run-{number}", run, series)


def in_browser(page, rounds):
    """Return the medians of opening and of the slowest search, in ms; None of each without Chromium."""
    if CHROMIUM is None:
        return None, None
    opens, searches = [], []
    for _ in range(rounds):
        with (
            tempfile.TemporaryDirectory(prefix="dbdyno-bench") as empty,
            opened("<title>empty</title>", Path(empty)) as tab,
        ):
            tab.call("Page.navigate", url=page.as_uri())
            tab.wait(f"location.href === {page.as_uri()!r} && document.readyState === 'complete'")
            tab.wait("performance.getEntriesByType('paint').length > 0")
            opens.append(tab.value(OPENED))
            searches.append(max(tab.value(SEARCHED % words) for words in TYPED))
    return statistics.median(opens), statistics.median(searches)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("runs", 200), ("blocks", 6), ("rounds", 9)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--strict", action="store_true", help="end with 1 where a limit is not met")
    parser.add_argument("--json", type=Path, help="write the figures there as well")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dbdyno-bench") as base:
        runs, site = Path(base) / "runs", Path(base) / "site"
        runs.mkdir()
        made_up(runs, options.runs, options.blocks)
        began = time.perf_counter()
        command = [sys.executable, "-m", "dbdyno.cli.main", "atlas", runs, "--into", site]
        subprocess.run(list(map(str, command)), check=True, capture_output=True)
        seconds = time.perf_counter() - began
        open_ms, search_ms = in_browser(site / "index.html", options.rounds)
        size = (site / "index.html").stat().st_size
    figures = [
        at_most(f"atlas of {options.runs} runs, build, s", seconds, BUILD_SECONDS_MAX),
        at_most(f"atlas of {options.runs} runs, open, ms", open_ms, OPEN_MS_MAX),
        at_most(f"atlas of {options.runs} runs, search, ms", search_ms, SEARCH_MS_MAX),
    ]
    for figure in figures:
        value = "unknown (no Chromium)" if figure.value is None else f"{figure.value:,.1f}"
        print(f"{figure.name:40s} {value:>10s}  at most {figure.limit}")
    print(f"its first page has {size:,} bytes")
    write(options.json, figures)
    if options.strict and any(figure.met is False for figure in figures):
        sys.exit(1)


if __name__ == "__main__":
    main()
