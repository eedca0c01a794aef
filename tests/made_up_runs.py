"""Runs of all kinds, each made up from a seed: treatments, effects, noise and mishaps of its own."""

from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np

from dbdyno.model.design import Comparison, Design, Factor, SameTreatment, Treatment
from dbdyno.store.records import FailedTrial, Run, Trial
from dbdyno.store.reported import DevicePrice, Prices
from tests.crash_runs import with_cuts

FLUSH = "innodb_flush_log_at_trx_commit"
BEYOND = {"beyond": ["foreign_cpu"], "foreign_cpu": 0.4, "limits": {"foreign_cpu": 0.05}}
EFFECTS = (0.0, 0.0, 0.0, 0.02, 0.05, 0.2, 3.88)  # relative
LATENCY, P99 = "latency_ms_mean", "latency_ms_p99"
AMOUNTS = ("100", "200", "400", "800", "1600")
LEVELS = {
    "device": ("hdd-7200", "ssd-sata", "nvme", "raid10", "ram"),
    "scheduler": ("mq-deadline", "none", "kyber", "bfq", "adios"),
    "filesystem": ("ext4", "xfs", "btrfs", "zfs", "f2fs"),
    "load": ("read", "write", "mixed"),
    "innodb_io_capacity": AMOUNTS,
    "clients": AMOUNTS,
    FLUSH: ("1", "2", "0"),
}
SECTION = {
    "device": "stack",
    "scheduler": "queue",
    "filesystem": "stack",
    "load": "workload",
    "innodb_io_capacity": "server.settings",
    "clients": "workload",
    FLUSH: "server.settings",
}
LAYOUTS = (  # factors with the fewest and the most levels, and how often there is such a study
    ((("device", 2, 5),), 4),
    ((("scheduler", 2, 5),), 4),
    (((FLUSH, 2, 3),), 4),
    ((("innodb_io_capacity", 3, 5),), 3),
    ((("clients", 3, 5),), 1),
    ((("device", 2, 2), ("scheduler", 2, 3)), 4),
    ((("filesystem", 2, 3), ("load", 2, 3)), 3),
    (((FLUSH, 2, 2), ("load", 2, 2)), 1),
    ((("filesystem", 2, 2), ("innodb_io_capacity", 3, 3)), 1),
)


@dataclass(frozen=True)
class Host:
    """How trials of a run are disturbed, on the logarithm of their rate."""

    sd: float
    related: float = 0.0  # how much a trial is like the one before
    tails: bool = False
    stalls: float = 0.0  # share of trials that take 3 to 20 times as long
    left_behind: float = 0.0  # by which one treatment slows a later trial
    lag: int = 1  # how much later

    def noise(self, rng, order):
        """Return what is added to each trial; ``order`` are the treatments in the order they ran, by number."""
        n = len(order)
        drawn = self.sd * (rng.standard_t(2, n) / 3 if self.tails else rng.normal(0, 1, n))
        for place in range(1, n):
            drawn[place] += self.related * drawn[place - 1]
        drawn -= (rng.random(n) < self.stalls) * np.log(rng.uniform(3, 20, n))
        later = np.concatenate([np.zeros(self.lag), np.asarray(order)[: -self.lag] == 1]) if n > self.lag else 0
        return drawn - self.left_behind * later


def chance(rng, share):
    """Whether something happens that happens so often."""
    return bool(rng.random() < share)


def pick(rng, cases):
    """Return one of the cases."""
    return cases[int(rng.integers(len(cases)))]


def a_host(rng):
    """Return how a host is noisy: independent, with a memory, heavy tails, stalls, or what a trial leaves behind."""
    sd = float(pick(rng, (0.004, 0.01, 0.02, 0.03, 0.05)))
    kinds = (
        *(Host(sd),) * 4,
        Host(sd, related=0.6),
        Host(sd, tails=True),
        Host(sd, stalls=0.05),
        Host(sd, stalls=0.3),
        Host(sd, left_behind=0.05),
        Host(sd, left_behind=0.05, lag=2),
    )
    return pick(rng, kinds)


def a_design(rng):
    """Return treatments, comparisons and when measuring stops."""
    weights = np.array([weight for _, weight in LAYOUTS], dtype=float)
    layout = LAYOUTS[int(rng.choice(len(LAYOUTS), p=weights / weights.sum()))][0]
    levels = {name: LEVELS[name][: int(rng.integers(low, high + 1))] for name, low, high in layout}
    treatments = [
        Treatment(f"t{place}", dict(zip(levels, each, strict=True)))
        for place, each in enumerate(product(*levels.values()), 1)
    ]
    baseline = pick(rng, treatments) if chance(rng, 0.15) else treatments[0]
    design = Design(
        treatments=treatments,
        baseline=baseline.id,
        comparisons=a_family(rng, treatments, baseline),
        blocks=int(pick(rng, (2, 3, 5, 6, 6, 8, 10, 12, 14, 20))),
        margin=float(pick(rng, (0.03, 0.05))),
        metric=P99 if chance(rng, 0.15) else "queries_per_second",
        seed=int(rng.integers(1000)),
        until=pick(rng, ("blocks", "blocks", "blocks", "decided", "open")),
        factors=[Factor(name, SECTION[name], list(each)) for name, each in levels.items()],
    )
    if chance(rng, 0.4) and design.metric != P99:
        design = replace(design, secondary_metrics=[P99])
    if chance(rng, 0.04):
        same = [Treatment("t1", {"label": "A"}), Treatment("t2", {"label": "B"})]
        pair = [Comparison("t1", "t2")]
        aa = SameTreatment("ext4", 1)
        design = replace(design, treatments=same, baseline="t1", comparisons=pair, factors=[], aa=aa, until="blocks")
    return design


def a_family(rng, treatments, baseline):
    """Return each against the baseline, every pair, or what differs in one factor alone."""
    pairs = [(one, other) for one, other in combinations(treatments, 2)]
    alike = [
        (one, other) for one, other in pairs if sum(one.levels[name] != other.levels[name] for name in one.levels) == 1
    ]
    kind = pick(rng, ("baseline", "baseline", "every pair", "one factor"))
    if kind == "baseline":
        return [Comparison(baseline.id, one.id) for one in treatments if one is not baseline]
    return [Comparison(one.id, other.id) for one, other in (pairs if kind == "every pair" else alike)]


def rates_of(rng, design):
    """Return what each treatment truly does, by id: the effects of its levels, at times of both together."""
    effect = {}
    for factor in design.factors:
        for place, level in enumerate(factor.levels):
            size = 0.0 if place == 0 else float(pick(rng, EFFECTS)) * (1 if chance(rng, 0.7) else -0.4)
            effect[factor.name, level] = max(size, -0.7)
    together = float(pick(rng, EFFECTS[:-1])) if chance(rng, 0.3) else 0.0
    rates = {}
    for one in design.treatments:
        rate = 400.0 * np.prod([1 + effect.get(each, 0.0) for each in one.levels.items()])
        rates[one.id] = rate * (1 + together if all(effect.get(each) for each in one.levels.items()) else 1)
    return rates


def settings_of(rng, design):
    """Return what is read back of each treatment's server, by id; nothing where that is not known."""
    kind = pick(rng, ("unknown", "durable", "durable", "mixed"))
    found = {}
    for one in design.treatments:
        level = one.levels.get(FLUSH) or {"durable": "1", "mixed": str(pick(rng, ("0", "1", "2")))}.get(kind, "")
        found[one.id] = {"version": "10.11", "default_storage_engine": "InnoDB"} | ({FLUSH: level} if level else {})
    return found


def made_up(seed):
    """Return a run that a seed alone decides on."""
    rng = np.random.default_rng(seed)
    design, host = a_design(rng), a_host(rng)
    rates, server = rates_of(rng, design), settings_of(rng, design)
    done = design.blocks if chance(rng, 0.85) else max(1, design.blocks // 2)
    unfinished = done < design.blocks and (design.until == "blocks" or chance(rng, 0.3))
    ids = list(rates)
    order = [rng.permutation(len(ids)) for _ in range(done)]
    noise = host.noise(rng, np.concatenate(order)).reshape(done, len(ids))
    slow = {id_: 10.0 if chance(rng, 0.2) else 1.0 for id_ in ids}  # how long its p99 is
    busy = float(pick(rng, (0.0, 0.0, 0.0, 0.3, 1.0)))  # share of blocks in which others use the host
    dropped = pick(rng, ids[1:]) if len(ids) > 2 and chance(rng, 0.12) else ""
    zero = (pick(rng, ids), int(rng.integers(done)) + 1) if chance(rng, 0.03) else None
    coarse = float(pick(rng, (4.0, 12.0, 40.0))) if chance(rng, 0.08) else 0.0
    run = empty(design, ended="interrupted" if unfinished else "done")
    for block, (places, added) in enumerate(zip(order, noise, strict=True), 1):
        is_busy = chance(rng, busy)
        if chance(rng, 0.02):
            run.failures.append(FailedTrial(f"b{block}a1p1", block, 1, ids[int(places[0])], "the server died"))
        attempt = 1 + any(one.block == block for one in run.failures)
        for position, (number, value) in enumerate(zip(places, added, strict=True), 1):
            id_ = ids[int(number)]
            if id_ == dropped and block > 1:
                continue
            rate = rates[id_] * float(np.exp(value))
            figures = figures_of(rate, slow[id_], coarse)
            if zero == (id_, block):
                figures[design.metric] = 0.0
            trial = a_trial((block, attempt, position), id_, figures, server[id_])
            run.trials.append(replace(trial, disturbance=BEYOND) if is_busy and chance(rng, 0.9) else trial)
    run = replace(run, dropped=frozenset({dropped} - {""}), stopped=why_it_stopped(design, done, run.ended))
    if "device" in {factor.name for factor in design.factors} and chance(rng, 0.4):
        run = replace(run, prices=prices_of(rng, design))
    run = with_mishaps(run, np.random.default_rng([seed, 1]))
    return with_cuts(run, number=3) if chance(rng, 0.03) and design.aa is None else run


def with_mishaps(run, rng):
    """Return the run with what may make or hide a difference: the disk's, the CPU's, or one treatment's own."""
    for mishap, share in ((late_disk, 0.3), (emulated_cpu, 0.1), (failures_of_one, 0.2), (busy_beside_one, 0.15)):
        if chance(rng, share):
            run = mishap(run, rng)
    return run


def late_disk(run, rng):
    """Return the run on an emulated disk whose answers are late, or early, at times of some treatments alone."""
    late_us = float(pick(rng, (-3, 0.5, 1, 2, 4, 8, 20, 100)))
    ids = [one.id for one in run.design.treatments]
    late = set(some_of(rng, ids) if chance(rng, 0.3) else ids)
    trials = [
        replace(one, device=disk_stats(late_us * float(rng.uniform(0.8, 1.2)) if one.treatment in late else 0.2))
        for one in run.trials
    ]
    return replace(run, trials=trials)


def disk_stats(late_us):
    """Return what an emulated disk says of 50,000 writes that took 80 us and so much longer."""
    late_ns = late_us * 1e3
    way = {"taken": 0.0, "left": max(0.0, late_ns), "early": max(0.0, -late_ns)}
    return {
        "lateness_ns": {"count": 50_000, "mean": late_ns, **dict.fromkeys(("p50", "p99", "p999", "max"), late_ns)},
        "service_ns": {"write": {"count": 50_000, "mean": 80e3 + late_ns}},
        **{f"path_{name}_ns": {"mean": mean} for name, mean in way.items()},
    }


def emulated_cpu(run, rng):
    """Return the run in virtual machines without KVM, of whose time the CPU has a small or a large part."""
    cpu_us = float(pick(rng, (20, 200, 800, 3000)))
    trials = [
        replace(
            one,
            observed={**one.observed, "guest": {"accelerator": "tcg", "kernel": "6.1", "cpus": 2}},
            metrics={
                **one.metrics,
                "events_per_second": one.metrics["queries_per_second"],
                "server_cpu_us_per_query": 0.7 * cpu_us,
                "client_cpu_us_per_query": 0.3 * cpu_us,
            },
            disturbance={**one.disturbance, "in_guest": {"foreign_cpu": 0.0, "cpu_some": 0.0}},
        )
        for one in run.trials
    ]
    return replace(run, trials=trials)


def failures_of_one(run, rng):
    """Return the run in which one treatment failed in the first attempt at some blocks, most of the times alone."""
    ids, blocks = [one.id for one in run.design.treatments], sorted({one.block for one in run.trials})
    struck = set(blocks[: int(rng.integers(2, 9))])
    whose, others = pick(rng, ids), pick(rng, ids)
    attempts = {block: max(one.attempt for one in run.trials if one.block == block) for block in struck}
    failures = [
        FailedTrial(f"b{block}a{attempt}", block, attempt, whose if chance(rng, 0.8) else others, "the server died")
        for block, attempt in sorted(attempts.items())
    ]
    trials = [replace(one, attempt=one.attempt + 1) if one.block in struck else one for one in run.trials]
    return replace(run, trials=trials, failures=[*run.failures, *failures])


def busy_beside_one(run, rng):
    """Return the run in which others used the host beside many trials of one treatment."""
    whose, share = pick(rng, [one.id for one in run.design.treatments]), float(pick(rng, (0.4, 0.8)))
    trials = [
        replace(one, disturbance={**one.disturbance, **BEYOND})
        if one.treatment == whose and chance(rng, share)
        else one
        for one in run.trials
    ]
    return replace(run, trials=trials)


def why_it_stopped(design, done, ended):
    if ended != "done":
        return ""
    return "blocks" if done == design.blocks or design.until == "open" else "decided"


def figures_of(rate, slow, coarse):
    """Return the metrics of a trial; ``coarse`` is the step that its rate comes in, if it does."""
    if coarse:
        rate = max(coarse, coarse * round(rate / coarse))
    latencies = {LATENCY: 10_000 / rate, P99: slow * 31_000 / rate}
    return {"queries_per_second": rate, "seconds_real": 5000 / rate, **latencies}


def a_trial(place, treatment, figures, server):
    """Return the trial at ``place``: (block, attempt, position)."""
    block, attempt, position = place
    return Trial(
        id=f"b{block}a{attempt}p{position}",
        block=block,
        attempt=attempt,
        position=position,
        treatment=treatment,
        started_at=f"2026-01-01T00:{block:02}:{position:02}Z",
        metrics=figures,
        observed={"device": {"kind": "here"}, "server": dict(server)},
    )


def empty(design, *, ended="done"):
    """Return a run of a design without a trial."""
    about = {"cpu": "Some processor", "cores": 2, "memory_bytes": 8 << 30}
    return Run("A study", "Which is best?", design, [], [], about, {"dbdyno": "0.1.0"}, ended, [])


def prices_of(rng, design):
    """Return what each device costs, at times the same."""
    same = chance(rng, 0.5)
    devices = [
        DevicePrice(
            level,
            [one.id for one in design.treatments if one.levels["device"] == level],
            "a shop",
            80.0 if same else float(rng.integers(50, 300)),
            capacity_bytes=2e12,
        )
        for level in dict.fromkeys(one.levels["device"] for one in design.treatments)
    ]
    return Prices("EUR", 5.0, 0.5, devices=devices)


def two_made_up(seed):
    """Return two runs of one study: the host may have changed between them, and a setting of some treatments."""
    rng = np.random.default_rng(10**6 + seed)
    design, host = a_design(rng), a_host(rng)
    design = replace(design, until="blocks", aa=None)
    rates, server = rates_of(rng, design), settings_of(rng, design)
    shift, gain = float(pick(rng, (0.0, 0.0, 0.02, 0.19, -0.3))), float(pick(rng, (0.0, 0.05, 0.3)))
    changed = set(some_of(rng, list(rates))) if chance(rng, 0.6) else set()
    runs = []
    for number in range(2):
        run, busy = empty(design), float(pick(rng, (0.0, 0.0, 1.0)))
        order = [rng.permutation(len(rates)) for _ in range(design.blocks)]
        noise = host.noise(rng, np.concatenate(order)).reshape(design.blocks, len(rates))
        for block, (places, added) in enumerate(zip(order, noise, strict=True), 1):
            for position, (place, value) in enumerate(zip(places, added, strict=True), 1):
                id_ = list(rates)[int(place)]
                times = (1 + shift * number) * (1 + gain * number * (id_ in changed))
                read = server[id_] | ({"innodb_flush_method": "O_DIRECT"} if number and id_ in changed else {})
                read = {"innodb_flush_method": "fsync", **read}
                figures = figures_of(rates[id_] * times * float(np.exp(value)), 1.0, 0.0)
                trial = a_trial((block, 1, position), id_, figures, read)
                run.trials.append(replace(trial, disturbance=BEYOND) if chance(rng, busy) else trial)
        runs.append(with_mishaps(replace(run, stopped="blocks"), np.random.default_rng([seed, 2 + number])))
    return runs[0], runs[1]


def some_of(rng, cases):
    """Return a part of the cases, at least one."""
    return [one for one in cases if chance(rng, 0.5)] or cases[:1]
