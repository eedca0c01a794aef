"""Nightly runs: how often ``dbdyno history`` names a change that is none, how late it names a true one; and Otava.

    .venv/bin/python -m benches.history [--replicates 200] [--nights 60] [--step 0.05] [--otava PYTHON] [--json FILE]

Every night the question is asked anew of all nights so far, as a job does. A false alarm is a series in which nothing
changes and a change is named on any night. The delay is the number of nights from the first with the step on until a
change is named that lies within two nights of it. ``--otava`` is a Python that has Apache Otava (E-divisive, Hunter's
windows and t-test, its defaults), best in a virtual environment of its own.
"""

import argparse
import json
import statistics
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benches.figures import Figure, at_most, write
from benches.honesty.noise import Floats
from benches.honesty.verdicts import limit
from dbdyno.analysis.history import shifts
from dbdyno.model.design import ALPHA

SD = 0.01  # of a night
BAD, SLOW = 0.05, 0.4  # shares of nights
NEAR = 2  # nights
OTAVA = """
import json, sys
from otava.analysis import compute_change_points
given = json.load(sys.stdin)
def change_points(series):
    told = {}
    for n in range(given["from"], len(series) + 1):
        points, _ = compute_change_points(series[:n], window_len=50, max_pvalue=0.001)
        for point in points:
            told.setdefault(int(point.index), n - 1)
    return sorted(told.items())
json.dump([change_points(series) for series in given["series"]], sys.stdout)
"""
Named = list[tuple[int, int]]  # (place of the change, night on which it was named)


def memory(rng: np.random.Generator, size: tuple[int, int]) -> Floats:
    """AR(1), rho .6."""
    values = rng.normal(0, SD * 0.8, size)
    values[:, 0] /= 0.8
    for night in range(1, size[1]):
        values[:, night] += 0.6 * values[:, night - 1]
    return values


NIGHTS: dict[str, Callable[[np.random.Generator, tuple[int, int]], Floats]] = {
    "iid": lambda rng, size: rng.normal(0, SD, size),
    "5 % of nights 10 % slow": lambda rng, size: rng.normal(0, SD, size) - 0.1 * (rng.random(size) < BAD),
    "heavy tails (t, 2)": lambda rng, size: SD / 2 * rng.standard_t(2, size),
    "AR(1), rho .6": memory,
    "two regimes 5 % apart": lambda rng, size: rng.normal(0, SD, size) - 0.05 * (rng.random(size) < SLOW),
}


def by_dbdyno(series: Floats) -> list[Named]:
    """Return what ``dbdyno history`` names: an answer once given is kept, so one call tells of every night."""
    return [[(shift.place, shift.found) for shift in shifts(values)] for values in series]


def by_otava(python: str, series: Floats) -> list[Named]:
    """Return what Otava names when it is asked every night, beginning with the sixth."""
    given = json.dumps({"series": np.exp(series).tolist(), "from": 6})
    told = subprocess.run([python, "-c", OTAVA], input=given, capture_output=True, text=True, check=True)
    return [[tuple(point) for point in points] for points in json.loads(told.stdout)]


@dataclass(frozen=True)
class Found:
    """What a tool made of a number of series, as shares; and the nights until it named a step that it found."""

    false_alarms: float
    steps: float
    elsewhere: float
    delays: list[int]

    @property
    def text(self) -> str:
        """Return it as the end of a line."""
        late = "-"
        if self.delays:
            late = f"{statistics.median(self.delays):.0f} (90 %: {np.quantile(self.delays, 0.9):.0f})"
        return (
            f"false alarms {100 * self.false_alarms:5.1f} %  found {100 * self.steps:5.1f} %"
            f"  nights until named {late:14s}  named elsewhere {100 * self.elsewhere:5.1f} %"
        )

    def figures(self, name: str, most: float) -> Iterator[Figure]:
        """Return it as figures; false alarms may be ``most`` percent."""
        yield at_most(f"{name}: false alarms (%)", 100 * self.false_alarms, most)
        yield Figure(f"{name}: steps found (%)", 100 * self.steps)
        yield Figure(f"{name}: named elsewhere (%)", 100 * self.elsewhere)
        yield Figure(f"{name}: nights until named (median)", statistics.median(self.delays) if self.delays else None)


def error_rates(named_of: Callable[[Floats], list[Named]], nothing: Floats, stepped: Floats, at: int) -> Found:
    """Return what a tool makes of series without a change, and of others with a step at a night."""
    delays, elsewhere = [], 0
    for named in named_of(stepped):
        near = [night - at for place, night in named if abs(place - at) <= NEAR and night >= at]
        delays += [min(near)] if near else []
        elsewhere += any(abs(place - at) > NEAR for place, _ in named)
    false_alarms = sum(bool(named) for named in named_of(nothing)) / len(nothing)
    return Found(false_alarms, len(delays) / len(stepped), elsewhere / len(stepped), delays)


def main() -> None:
    """Print a row for each noise and tool."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--nights", type=int, default=60)
    parser.add_argument("--step", type=float, default=0.05)
    parser.add_argument("--otava", metavar="PYTHON")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rng, at, figures = np.random.default_rng(1), given.nights // 2, list[Figure]()
    for name, noise in NIGHTS.items():
        nothing, stepped = (noise(rng, (given.replicates, given.nights)) for _ in range(2))
        stepped[:, at:] += np.log1p(-given.step)
        found = error_rates(by_dbdyno, nothing, stepped, at)
        figures += found.figures(name, limit(ALPHA, given.replicates))
        print(f"{name:24s} dbdyno  {found.text}", flush=True)
        if given.otava:
            otava = error_rates(lambda series: by_otava(given.otava, series), nothing, stepped, at)
            print(f"{'':24s} otava   {otava.text}", flush=True)
    write(given.json, figures)


if __name__ == "__main__":
    main()
