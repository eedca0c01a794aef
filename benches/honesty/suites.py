"""Suites of loads along versions: how often a change is named where there is none, and how often a true one is found.

    .venv/bin/python -m benches.honesty.suites [--replicates 200] [--loads 42] [--levels 4] [--blocks 10] [--shared]

``--shared``: the noise of a trial is that of its version's server start, and all loads have it.
"""

import argparse

import numpy as np

from benches.honesty.noise import NOISES, SD, Floats, Noise
from dbdyno.analysis.change_points import changes_along

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
