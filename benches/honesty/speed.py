"""How long the analysis of a large study takes: 40 blocks of 16 treatments, 8 metrics, every pair and a ranking."""

import time
from itertools import product

import numpy as np

from benches.honesty.row import Row
from dbdyno.analysis.analyse import analyse
from dbdyno.model.design import Comparison, Design, Factor, Treatment, Until
from dbdyno.model.metrics import METRICS
from dbdyno.store.records import Run, Trial

BLOCKS, METRICS_COUNT = 40, 8
LEVELS = {"device": "abcd", "clients": "1248"}
MOST_MS = 1000


def rows(replicates: int, seed: int) -> list[Row]:  # noqa: ARG001  (every group is called alike)
    """Return the processor time of one analysis under each rule, in milliseconds."""
    name = f"{BLOCKS} blocks x 16 treatments x {METRICS_COUNT} metrics"
    return [Row("analysis takes", f"{name}, {until}", _ms(until, seed), "ms", None, MOST_MS) for until in RULES]


RULES: tuple[Until, ...] = ("blocks", "decided", "open")


def _ms(until: Until, seed: int) -> float:
    run = a_run(until, seed)
    began = time.process_time()
    analyse(run, each_pair=True)
    return 1000 * (time.process_time() - began)


def a_run(until: Until, seed: int) -> Run:
    """Return a study of two factors of four levels, its metrics drawn at random around a level for each treatment."""
    rng = np.random.default_rng(seed)
    treatments = [
        Treatment(f"t{n}", dict(zip(LEVELS, levels, strict=True)))
        for n, levels in enumerate(product(*LEVELS.values()), 1)
    ]
    metrics = ["queries_per_second", *(name for name in METRICS if name != "queries_per_second")][:METRICS_COUNT]
    trials = [
        Trial(
            id=f"b{block}-{treatment.id}",
            block=block,
            attempt=1,
            position=place,
            treatment=treatment.id,
            started_at="",
            metrics={name: float(np.exp(rng.normal(5 + 0.02 * place, 0.03))) for name in metrics},
        )
        for block in range(1, BLOCKS + 1)
        for place, treatment in enumerate(treatments, 1)
    ]
    design = Design(
        treatments=treatments,
        baseline="t1",
        comparisons=[Comparison("t1", treatment.id) for treatment in treatments[1:]],
        blocks=BLOCKS,
        margin=0.03,
        metric=metrics[0],
        seed=seed,
        until=until,
        secondary_metrics=metrics[1:],
        factors=[
            Factor(name, section, list(levels))
            for (name, levels), section in zip(LEVELS.items(), ("stack", "workload"), strict=True)
        ],
    )
    return Run("A large study", "", design, trials, [], {}, {}, "done", [])
