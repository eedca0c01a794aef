"""Crash runs with cuts that a test made up: what each treatment loses is known."""

from dataclasses import dataclass, replace

import numpy as np

from dbdyno.model.cut import Cut
from dbdyno.model.design import Comparison, Design, Treatment
from dbdyno.store.records import Run, Trial

FACTOR = "innodb_flush_log_at_trx_commit"
CONTROL = Treatment("control", {"control": f"control ({FACTOR} = 0)"})  # as a plan calls it
STRATA = (("uniform", "random-4096"),)


@dataclass(frozen=True)
class Loses:
    """How a treatment behaves: queries per second, and in which share of its cuts it has which outcome."""

    rate: float
    tail: float = 0.0
    damage: float = 0.0
    worst: str = "inconsistent"
    ms: float = 1000.0  # at most, where the newest commits are lost


SAFE, FLUSH_2, FLUSH_0 = Loses(900.0), Loses(2600.0, tail=0.97), Loses(2900.0, tail=0.985)


def cut(place, loses, rng, *, stratum=STRATA[0], mode="power", within=0.5):  # noqa: PLR0913
    """Return one cut; ``within`` (0 to 1) is the place in its run that sets how much is lost."""
    draw = rng.random()
    outcome = loses.worst if draw < loses.damage else "tail" if draw < loses.damage + loses.tail else "nothing"
    lost_ms = float(max(1.0, loses.ms * within)) if outcome != "nothing" else None
    return Cut(
        id=f"c{place}",
        mode=mode,
        when=stratum[0],
        survivors=None if mode == "kill" else stratum[1],
        seed=place,
        at_s=float(place),
        outcome=outcome,
        acked=1000 + 50 * place,
        unknown=4,
        lost=int((lost_ms or 0) * loses.rate / 2000),
        lost_ms=lost_ms,
        unflushed_bytes=3 << 20,
        recovery_s=_seconds(0.8 + 0.2 * float(rng.random())),
        cause="InnoDB: page 7 is corrupt" if outcome == loses.worst else "",
    )


def _seconds(server):
    """Return what the steps of a recovery took; all but mounts and server are dbdyno's own."""
    return {"attach": 0.3, "first mount": 0.04, "mount": 0.01, "check": 0.1, "server": server, "verify": 0.2}


def crash_run(  # noqa: PLR0913
    treatments=None, *, blocks=30, cuts=10, mode="power", control=FLUSH_0, strata=STRATA, seed=3, related=0.0
):
    """Return a run of treatments (level -> ``Loses``), each with so many cuts in each block.

    ``related`` (0 to 1): how much what is lost in a run's cuts has in common.
    """
    treatments = treatments or {"1": SAFE, "2": FLUSH_2, "0": FLUSH_0}
    named = [Treatment(f"t{place}", {FACTOR: level}) for place, level in enumerate(treatments, start=1)]
    behave = dict(zip([one.id for one in named], treatments.values(), strict=True))
    same = next((one for one in named if one.levels == {FACTOR: "0"}), None)
    known = None if control is None else same or CONTROL
    order = [one.id for one in named] + ([] if known is None or same else ["control"])
    rng, trials = np.random.default_rng(seed), []
    for block in range(1, blocks + 1):
        for position, id_ in enumerate(order, start=1):
            loses, common = behave.get(id_, control), float(rng.random())
            shares = [common if rng.random() < related else float(rng.random()) for _ in range(cuts)]
            found = [
                cut(
                    place,
                    loses,
                    rng,
                    stratum=strata[(place + block) % len(strata)],
                    mode=mode,
                    within=shares[place - 1],
                )
                for place in range(1, cuts + 1)
            ]
            rate = loses.rate * float(np.exp(rng.normal(0, 0.02)))
            trials.append(trial((block, 1, position), id_, rate, found))
    design = Design(
        treatments=named,
        baseline=named[0].id,
        comparisons=[Comparison(named[0].id, one.id) for one in named[1:]],
        blocks=blocks,
        margin=0.03,
        metric="queries_per_second",
        seed=seed,
        control=known,
    )
    return Run(
        title="Safe commits",
        question="Is a faster setting as safe?",
        design=design,
        trials=trials,
        failures=[],
        host={"cpu": "Intel Xeon, 2 cores", "memory_bytes": 8 << 30, "kernel": "6.12.0"},
        versions={"dbdyno": "0.1.0", "mariadb": "10.11.14", "kernel": "6.12.0", "python": "3.11.7"},
        ended="done",
        notes=[],
        stopped="blocks",
    )


def trial(place, treatment, rate, cuts):
    """Return the trial at ``place``: (block, attempt, position)."""
    level = {"t1": "1", "t2": "2"}.get(treatment, "0")
    return Trial(
        id="b{}a{}p{}".format(*place),
        block=place[0],
        attempt=place[1],
        position=place[2],
        treatment=treatment,
        started_at=f"2026-01-01T00:{place[0]:02}:{place[2]:02}Z",
        metrics={"queries_per_second": rate, "seconds_real": 5.0, "latency_ms_p99": 31_000 / rate},
        observed={
            "device": {"kind": "emulated", "model": "ssd-sata", "size_bytes": 4 << 30},
            "filesystem": {"kind": "ext4", "mount_options": ["rw", "relatime"], "flushes_on_fsync": True},
            "server": {"version": "10.11.14-MariaDB", FACTOR: level, "default_storage_engine": "InnoDB"},
        },
        seconds={"run": 5.0},
        cuts=cuts,
    )


def with_cuts(run, loses=SAFE, number=10):
    """Return a run of speed as if cuts had been made in it as well."""
    rng = np.random.default_rng(run.design.seed)
    trials = [replace(one, cuts=[cut(place, loses, rng) for place in range(1, number + 1)]) for one in run.trials]
    return replace(run, trials=trials)


def speed_run(run):
    """Return the same treatments as a run of speed: without cuts, without control."""
    ids = run.design.labels
    trials = [replace(one, cuts=[]) for one in run.trials if one.treatment in ids]
    return replace(run, title="Fast commits", trials=trials, design=replace(run.design, control=None))
