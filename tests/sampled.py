"""What tests try of what is too much to try at every run: drawn from a seed, and with ``DBDYNO_TEST_LONG`` all of it.

The seed is the commit's, so each commit tries others and a checkout always the same. ``DBDYNO_TEST_SEED`` gives it,
``DBDYNO_KILLS`` says how often to kill where no step is counted.
"""

import os
import random
import subprocess
from functools import cache
from pathlib import Path

from tests.disks import LONG

KILLS = int(os.environ.get("DBDYNO_KILLS", "40" if LONG else "4"))


@cache
def seed():
    """Return the seed of this run; it stands in the header of pytest."""
    if given := os.environ.get("DBDYNO_TEST_SEED"):
        return int(given)
    # ``make test`` may run the tests as root over another user's checkout.
    command = ["git", "-c", "safe.directory=*", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return int(commit[:6] or "1", 16)


def drawn(what):
    """Return a generator for one test."""
    return random.Random(f"{seed()} {what}")


def some(what, cases, part):
    """Return a drawn part of the cases, in their order; one at least."""
    cases = list(cases)
    kept = len(cases) if LONG else max(1, round(part * len(cases)))
    return [cases[place] for place in sorted(drawn(what).sample(range(len(cases)), kept))]


def left_out(items):
    """Return the tests that are not drawn, of those marked ``drawn(count, group="its function's name")`` in a file."""
    groups = {}
    for item in items:
        if marker := item.get_closest_marker("drawn"):
            of = marker.kwargs.get("group", item.originalname)
            groups.setdefault((item.path.name, of), (marker.args[0], []))[1].append(item)
    return [
        one
        for (file, of), (count, its) in groups.items()
        if count < len(its) and not LONG
        for one in drawn(f"{file} {of}").sample(its, len(its) - count)
    ]


def stride(rng, mean):
    """Return how many steps to go on before the next kill."""
    return 1 if LONG else rng.randint(1, 2 * mean - 1)
