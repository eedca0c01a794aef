"""Runs on several hosts whose truth is known, made up with a seed."""

from dataclasses import replace

import numpy as np

from dbdyno.model.design import Fleet, SameTreatment, Treatment
from tests.unit.report.conftest import build

SCHEDULERS = {"t1": 400.0, "t2": 400.0}


def on_hosts(effects, *, blocks_each=6, speeds=None, levels=None, noise=0.01, rates=None, pairs=(("t1", "t2"),)):  # noqa: PLR0913
    """Return a run on as many hosts as there are ``effects``: the log ratio of t2 to t1 on each, in blocks in turn."""
    names = [f"db{number}" for number in range(1, len(effects) + 1)]
    run = build(blocks_each * len(names), rates=rates or SCHEDULERS, pairs=list(pairs), void_block=0, noise=noise)
    speed = dict(zip(names, speeds or [0.0] * len(names), strict=True))
    effect = dict(zip(names, effects, strict=True))

    def placed(trial):
        host = names[(trial.block - 1) % len(names)]
        log = speed[host] + (effect[host] if trial.treatment == "t2" else 0.0)
        rate = trial.metrics["queries_per_second"] * float(np.exp(log))
        return replace(trial, host=host, metrics={**trial.metrics, "queries_per_second": rate})

    design = replace(run.design, fleet=Fleet(names, levels or {}))
    return replace(run, design=design, trials=[placed(trial) for trial in run.trials])


def same_on_hosts(speeds, **made):
    """Return an A/A run on hosts of these speeds, log: one treatment under two labels."""
    run = on_hosts([0.0] * len(speeds), speeds=speeds, **made)
    rng = np.random.default_rng(1)
    trials = [replace(one, load={"second_half_ratio": float(np.exp(rng.normal(0, 0.004)))}) for one in run.trials]
    labels = [Treatment(id_, {"label": name}) for id_, name in (("t1", "A"), ("t2", "B"))]
    return replace(run, trials=trials, design=replace(run.design, treatments=labels, aa=SameTreatment("mine", 1)))
