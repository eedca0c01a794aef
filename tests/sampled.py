"""What tests try of what is too much to try at every run: drawn from a seed, and with ``DBDYNO_TEST_LONG`` all of it.

The seed is always the same, so that a test that fails here fails wherever this commit, the one before it or a change to
it is tested. ``DBDYNO_TEST_SEED`` gives another, as ``make test-all`` does; ``DBDYNO_KILLS`` says how often to kill
where no step is counted.
"""

import os
import random

from tests.disks import LONG
from tests.support import journal_lines, kill, put_back, start_dbdyno, wait_for, what_is_left

KILLS = int(os.environ.get("DBDYNO_KILLS", "40" if LONG else "4"))


def seed():
    """Return the seed of this run; it stands in the header of pytest."""
    return int(os.environ.get("DBDYNO_TEST_SEED", "1"))


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


def kill_at_steps(what, mean, command, state, *, least=25, after=lambda: None):  # noqa: PLR0913
    """Run a command again and again, killed some steps later each time and put back; returns what the last one says.

    A step is a line of the undo log: before each change, and after each undoing. ``command`` gets the step, ``mean`` is
    how many are gone on in the mean, ``least`` how many there are; ``after`` looks at each host that was put back.
    """
    rng, steps = drawn(what), 0
    while True:
        steps += 1 if LONG else rng.randint(1, 2 * mean - 1)
        process = start_dbdyno(*command(steps), state=state)
        wait_for(lambda p=process, n=steps: p.poll() is not None or journal_lines(state) >= n, every=0.001)
        if process.poll() is not None:
            break
        kill(process)
        put_back(state)
        after()
    output = process.communicate(timeout=180)[0]
    assert process.returncode == 0, output
    assert steps > least, "too few steps: the log no longer shows them"
    assert what_is_left(state) == []
    return output
