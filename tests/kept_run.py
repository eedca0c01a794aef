"""A run folder on disk, written by the store itself from a run made of seeded noise."""

import os
from dataclasses import asdict
from unittest.mock import patch

from dbdyno.store.run_folder import create

STUDY = {
    "stack": {"device": ["hdd-7200", "ssd-sata"], "scheduler": ["mq-deadline", "none"], "filesystem": "ext4"},
    "workload": {"kind": "slap", "load": "write", "clients": 10, "queries": 5000},
}


@patch.object(os, "fsync", lambda _: None)  # it need not outlive a power cut
def kept_run(path, run, series):
    """Write ``run`` and its series into the new folder ``path``; returns the path."""
    design = run.design
    about = {"title": run.title, "question": run.question, "seed": design.seed, "blocks": design.blocks}
    header = {
        "run": {**about, "margin": design.margin, "metric": design.metric, "baseline": design.baseline},
        "versions": run.versions,
        "factor": [asdict(factor) for factor in design.factors],
        "treatment": [asdict(treatment) for treatment in design.treatments],
        "comparison": [asdict(comparison) for comparison in design.comparisons],
        "study": STUDY,
    }
    folder = create(path, header, run.host)
    folder.note("planned", blocks=design.blocks)
    ended = [(trial.block, trial.attempt, trial.position, trial, None) for trial in run.trials]
    ended += [(one.block, one.attempt, 99, one, one.cause) for one in run.failures]
    for block, attempt, _, one, cause in sorted(ended, key=lambda item: item[:3]):
        about = {"trial": one.id, "block": block, "attempt": attempt, "treatment": one.treatment}
        folder.trial_folder(one.id)
        folder.note("started", **about)
        if cause is None:
            folder.finish(one, series[one.id])
        else:
            folder.note("failed", **about, cause=cause)
    for text in run.notes:
        folder.note("note", text=text)
    folder.note("ended", how=run.ended, why=run.stopped)
    folder.close()
    return path
