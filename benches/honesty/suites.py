"""Suites of loads along versions: how often a change is named where there is none, and how often a true one is found.

    .venv/bin/python -m benches.honesty.suites [--replicates 200] [--loads 42] [--levels 4] [--blocks 10] [--shared]

``--shared``: the noise of a trial is that of its version's server start, and all loads have it.
"""

import argparse
from collections.abc import Iterator

import numpy as np

from benches.history import NIGHTS
from benches.honesty.noise import NOISES, SD, Floats, Noise
from benches.honesty.row import Row
from benches.honesty.verdicts import limit
from dbdyno.analysis.change_points import changes_along
from dbdyno.analysis.history import shifts
from dbdyno.model.design import ALPHA

STEP = 0.05


def suite(  # noqa: PLR0913, PLR0917
    rng: np.random.Generator, noise: Noise, loads: int, levels: int, blocks: int, shared: float, scale: float
) -> list[Floats]:
    """Return ln(rate) of loads that nothing changed, each (blocks, levels), levels in random order inside blocks."""
    values = scale * noise(rng, loads + 1, levels * blocks).reshape(loads + 1, blocks, levels)
    order = np.argsort(rng.random((blocks, levels)), axis=-1)
    placed = np.empty_like(values)
    np.put_along_axis(placed, np.broadcast_to(order, values.shape), values, axis=-1)
    return list(shared * placed[:1] + (1 - shared) * placed[1:]) if shared else list(placed[1:])


def rates(  # noqa: PLR0913
    noise: Noise, *, replicates: int, loads: int, levels: int, blocks: int, shared: float = 0.0, scale: float = 1.0,
    step: float = STEP, seed: int = 1,
) -> dict[str, float]:  # fmt: skip
    """Return shares of suites: any change named in A/A; of one true step, named, named at its place, others named."""
    rng = np.random.default_rng(seed)
    counts = dict.fromkeys(("wrong", "found", "placed", "wrong beside"), 0)
    for _ in range(replicates):
        nothing = suite(rng, noise, loads, levels, blocks, shared, scale)
        counts["wrong"] += any(load.steps for load in changes_along(nothing, 0.03).loads)
        changed, at = suite(rng, noise, loads, levels, blocks, shared, scale), int(rng.integers(1, levels))
        changed[0][:, at:] += np.log1p(step)
        first, *others = changes_along(changed, 0.03).loads
        counts["found"] += any(one.first < at <= one.last for one in first.steps)
        counts["placed"] += any(one.at + 1 == at for one in first.steps)
        missed = any(not one.first < at <= one.last for one in first.steps)
        counts["wrong beside"] += missed or any(load.steps for load in others)
    return {name: count / replicates for name, count in counts.items()}


SUITES_MOST, LOADS, LEVELS, BLOCKS, FOUND = 200, 42, 4, 10, 0.8
QUIET = 0.02 / SD  # of the independent noise: 2 %, which is what studies are planned by
HISTORIES_MOST, NIGHTS_OF_ONE = 400, 60


def rows(replicates: int, seed: int) -> list[Row]:
    """Return every row about suites along versions, and about runs through time."""
    return [*_suite_rows(min(replicates, SUITES_MOST), seed), *_history_rows(min(replicates, HISTORIES_MOST), seed)]


def _suite_rows(replicates: int, seed: int) -> Iterator[Row]:
    sizes = {"replicates": replicates, "loads": LOADS, "levels": LEVELS, "blocks": BLOCKS, "seed": seed}
    for name, noise in NOISES.items():
        found = rates(noise, **sizes)
        yield Row("suites: wrong change", name, 100 * found["wrong"], "%", None, limit(ALPHA, replicates))
        yield Row("suites: wrong beside a step", name, 100 * found["wrong beside"], "%", None, limit(ALPHA, replicates))
        yield Row("suites: a step of 5 % found", name, 100 * found["found"], "%", None, None)
    quiet = rates(NOISES["iid"], scale=QUIET, **sizes)
    yield Row("suites: a step of 5 % found", "normal, sd 2 %", 100 * quiet["found"], "%", 100 * FOUND, None)


def _history_rows(replicates: int, seed: int) -> Iterator[Row]:
    rng = np.random.default_rng(seed)
    for name, noise in NIGHTS.items():
        nothing = noise(rng, (replicates, NIGHTS_OF_ONE))
        share = sum(bool(shifts(values)) for values in nothing) / replicates
        yield Row("histories: wrong change", name, 100 * share, "%", None, limit(ALPHA, replicates))


def main() -> None:
    """Print a row for each noise."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, usual in (("replicates", 200), ("loads", 42), ("levels", 4), ("blocks", 10)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--shared", type=float, default=0.0)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    sizes = {name: getattr(given, name) for name in ("replicates", "loads", "levels", "blocks", "shared")}
    quiet = ("iid, sd 2 %", NOISES["iid"], 0.02 / SD)
    for name, noise, scale in (quiet, *((name, noise, 1.0) for name, noise in NOISES.items())):
        if given.only in name:
            found = rates(noise, scale=scale, **sizes)
            print(
                f"{name:32s} " + "  ".join(f"{what} {100 * share:5.1f} %" for what, share in found.items()), flush=True
            )


if __name__ == "__main__":
    main()
