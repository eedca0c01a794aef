"""Runs made of plain numbers: what each treatment scored in each block."""

from collections import Counter

import pytest

from dbdyno.model.design import Comparison, Design, Treatment
from dbdyno.store.records import FailedTrial, Run, Trial


def a_trial(treatment, block, value, *, attempt=1, metric="queries_per_second", **metrics):
    return Trial(
        id=f"{treatment}-{block}-{attempt}",
        block=block,
        attempt=attempt,
        position=1,
        treatment=treatment,
        started_at="2025-01-01T00:00:00Z",
        metrics={metric: value, **metrics},
    )


def a_run(scores, *, pairs=None, margin=0.03, metric="queries_per_second", trials=None, failures=()):  # noqa: PLR0913
    """Return a run; ``scores`` maps treatment id -> its metric by block, the first treatment being the baseline."""
    ids = list(scores)
    blocks = max(len(values) for values in scores.values())
    made = [
        a_trial(id_, block, scores[id_][block - 1], metric=metric)
        for block in range(1, blocks + 1)
        for id_ in ids
        if block <= len(scores[id_])
    ]
    return Run(
        title="A study",
        question="Which?",
        design=Design(
            treatments=[Treatment(id_, {"level": f"level {id_}"}) for id_ in ids],
            baseline=ids[0],
            comparisons=[Comparison(*pair) for pair in (pairs or [(ids[0], id_) for id_ in ids[1:]])],
            blocks=blocks,
            margin=margin,
            metric=metric,
            seed=1,
        ),
        trials=made if trials is None else trials,
        failures=[
            FailedTrial(f"f{i}", block, attempt, id_, "died") for i, (id_, block, attempt) in enumerate(failures)
        ],
        host={},
        versions={},
        ended="done",
        notes=[],
        dropped=left_out(failures),
    )


def left_out(failures):
    """Return the treatments that a run would have left out: those that failed in two attempts at the same block."""
    places = {(id_, block, attempt) for id_, block, attempt in failures}
    often = Counter((id_, block) for id_, block, _ in places)
    return frozenset(id_ for (id_, _), times in often.items() if times > 1)


@pytest.fixture(scope="session", name="a_run")
def a_run_fixture():
    return a_run


@pytest.fixture(scope="session", name="a_trial")
def a_trial_fixture():
    return a_trial
