"""A fixed run with seeded noise: two devices, two schedulers, a failed attempt, and series to draw."""

import numpy as np
import pytest

from dbdyno.model.design import Comparison, Design, Treatment
from dbdyno.store.latencies import Latencies
from dbdyno.store.records import FailedTrial, Run, Trial

TREATMENTS = [
    Treatment("t1", {"device": "hdd-7200", "scheduler": "mq-deadline"}),
    Treatment("t2", {"device": "hdd-7200", "scheduler": "none"}),
    Treatment("t3", {"device": "ssd-sata", "scheduler": "mq-deadline"}),
    Treatment("t4", {"device": "ssd-sata", "scheduler": "none"}),
]
RATE = {"t1": 410.0, "t2": 398.0, "t3": 1690.0, "t4": 1702.0}
PAIRS = [("t1", "t2"), ("t1", "t3"), ("t1", "t4"), ("t3", "t4")]
QUERIES = 5000


def trial(place, treatment, rate, rng):
    """Return the trial at ``place``: (block, attempt, position)."""
    block, attempt, position = place
    seconds = QUERIES / rate
    scheduler = "none" if treatment in {"t2", "t4"} else "mq-deadline"
    metrics = {
        "queries_per_second": rate,
        "seconds_real": seconds,
        "seconds_user": 0.21 * float(np.exp(rng.normal(0, 0.05))),
        "seconds_sys": 0.34 * float(np.exp(rng.normal(0, 0.05))),
        "latency_ms_mean": 10_000 / rate,
        "latency_ms_p50": 8_500 / rate,
        "latency_ms_p95": 19_000 / rate,
        "latency_ms_p99": 31_000 / rate,
        "latency_ms_max": 90_000 / rate,
        "client_cpu_us_per_query": 110.0,
        "server_cpu_us_per_query": 240.0 + 10 * float(rng.random()),
    }
    observed = {
        "device": {"model": "ssd-sata" if treatment in {"t3", "t4"} else "hdd-7200", "size_bytes": 4 << 30},
        "queue": {"scheduler": scheduler, "nr_requests": 64, "rotational": treatment in {"t1", "t2"}},
        "filesystem": {"kind": "ext4", "mount_options": ["rw", "relatime"]},
        "server": {"version": "10.11.14-MariaDB", "innodb_buffer_pool_size": 268435456},
    }
    return Trial(
        id="b{}a{}p{}".format(*place),
        block=block,
        attempt=attempt,
        position=position,
        treatment=treatment,
        started_at=f"2025-01-01T00:{block:02}:{position:02}Z",
        metrics=metrics,
        observed=observed,
        probes={
            "block_device": {"cpu_seconds": 0.004, "cpu_percent": 0.12, "samples": int(10 * seconds), "missed": 0},
            "host_cpu": {"cpu_seconds": 0.003, "cpu_percent": 0.09, "samples": int(10 * seconds), "missed": 0},
        },
        device={"lateness_ns": {"count": 9, "p99": 31_000 + int(rng.integers(1000)), "max": 410_000}},
        seconds={"run": seconds},
    )


def build(blocks=8, *, seed=7, rates=RATE, noise=0.012, pairs=PAIRS, void_block=3, treatments=TREATMENTS):  # noqa: PLR0913
    """Return a run of ``blocks`` blocks whose ``void_block`` failed once and was repeated."""
    rng = np.random.default_rng(seed)
    treatments = [treatment for treatment in treatments if treatment.id in rates]
    trials, failures = [], []
    for block in range(1, blocks + 1):
        for attempt in (1, 2) if block == void_block else (1,):
            for position, index in enumerate(rng.permutation(len(treatments)), start=1):
                id_ = treatments[index].id
                rate = rates[id_] * float(np.exp(rng.normal(0, noise)))
                done = trial((block, attempt, position), id_, rate, rng)
                if block == void_block and attempt == 1 and position == len(treatments):
                    failures.append(FailedTrial(done.id, block, attempt, id_, "the server exited with signal 9"))
                else:
                    trials.append(done)
    return Run(
        title="SSD or HDD",
        question="Is the SSD worth it for this write load, and does the scheduler matter?",
        design=Design(
            treatments=treatments,
            baseline=treatments[0].id,
            comparisons=[Comparison(*pair) for pair in pairs],
            blocks=blocks,
            margin=0.03,
            metric="queries_per_second",
            seed=seed,
        ),
        trials=trials,
        failures=failures,
        host={"cpu": "Intel Xeon, 2 cores", "memory_bytes": 8 << 30, "kernel": "6.12.0", "virtual": True},
        versions={"dbdyno": "0.1.0", "mariadb": "10.11.14", "kernel": "6.12.0", "python": "3.11.7"},
        ended="done",
        stopped="blocks",
        notes=[f"Block {void_block} was repeated: a trial in it failed."] if failures else [],
    )


def series_of(run, rate_hz=10, samples=None):
    """Return series for every trial: ``samples`` each, or as many as the trial's time at ``rate_hz`` gives."""
    rng = np.random.default_rng(run.design.seed)
    return {item.id: _series(item, rng, rate_hz, samples) for item in run.trials}


def _series(item, rng, rate_hz, samples):
    qps = item.metrics["queries_per_second"]
    n = samples or max(3, int(item.metrics["seconds_real"] * rate_hz))
    t = (np.arange(n) + 1) / rate_hz + rng.normal(0, 0.002, n)
    wobble = 1 + 0.15 * np.sin(t / 2) + rng.normal(0, 0.08, n)
    rate = qps * wobble
    zero = np.zeros(n)
    block_device = {
        "t_s": t,
        "r/s": zero,
        "w/s": rate * 2.2,
        "rMB/s": zero,
        "wMB/s": rate * 0.018,
        "r_await": zero,
        "w_await": 4000 / rate,
        "aqu-sz": 8 * wobble,
        "%util": np.minimum(100, 90 * wobble),
        "f/s": rate,
        "f_await": 1000 / rate,
    }
    load = {
        "t_s": t,
        "queries_per_second": rate,
        "errors_per_second": zero,
        "latency_ms_mean": 10_000 / rate,
        "latency_ms_p50": 8_500 / rate,
        "latency_ms_p99": 31_000 / rate * rng.gamma(8, 1 / 8, n),
        "latency_ms_max": 90_000 / rate,
    }
    host = {"t_s": t, "%user": 30 * wobble, "%system": 12 * wobble, "%iowait": 20 * wobble}
    host |= {"%idle": 38 * wobble, "%steal": zero}
    return {"block_device": block_device, "load": load, "host_cpu": host, "server_status": {"t_s": t}}


def latencies_of(run, events=QUERIES):
    """Return how often each latency was met in every trial: most near the typical one, one in 200 in a stall."""
    rng = np.random.default_rng(run.design.seed)
    found = {}
    for item in run.trials:
        ms = 1e4 / item.metrics["queries_per_second"] * rng.lognormal(-0.1, 0.45, events)
        found[item.id] = histogram(1e6 * (ms + (rng.random(events) < 0.005) * rng.gamma(2, 40, events)))
    return found


def histogram(latency_ns):
    """Return latencies as the load generator counts them: in buckets of a 1024th of a power of two."""
    width = np.exp2(np.maximum(np.floor(np.log2(latency_ns)) - 10, 0))
    upper = np.minimum((np.floor(latency_ns / width) + 1) * width - 1, np.floor(latency_ns.max()))
    return Latencies(*np.unique(upper, return_counts=True))


@pytest.fixture(scope="session", name="build")
def build_fixture():
    return build


@pytest.fixture(scope="session", name="series_of")
def series_of_fixture():
    return series_of


@pytest.fixture(scope="session")
def run():
    return build()
