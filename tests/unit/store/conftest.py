"""A header, trials and an empty run folder."""

import numpy as np
import pytest

from dbdyno.model.design import Comparison, Design, Treatment
from dbdyno.store.events import Failed, Started
from dbdyno.store.header import Header
from dbdyno.store.records import Trial
from dbdyno.store.run_folder import create

DESIGN = Design(
    treatments=[Treatment("t1", {"device": "hdd-7200"}), Treatment("t2", {"device": 'a "quoted" — name'})],
    baseline="t1",
    comparisons=[Comparison("t1", "t2")],
    blocks=8,
    margin=0.03,
    metric="queries_per_second",
    seed=2**62 + 1,
)
HOST = {"cpu": "Intel®", "cores": 2, "memory_bytes": 8 << 30, "load_average_1min": 0.25}
HEADER = Header(
    title="SSD oder HDD — «quoted»",
    question="Which?\nAnd why?",
    design=DESIGN,
    study={"stack": {"device": ["hdd-7200", "ssd-sata"]}},
    versions={"dbdyno": "0.1.0", "server mariadb": "10.11.14-MariaDB"},
    study_sha256="0" * 64,
)

SERIES = {
    "load": {"t_s": [0.1, 0.2, 1 / 3], "latency_ms_p99": [1.5, float("nan"), 2.0**-40]},
    "host_cpu": {"t_s": np.array([0.1]), "%user": np.array([12.5])},
}


def trial(block, treatment, rate=100.0, attempt=1):
    return Trial(
        id=f"b{block}a{attempt}-{treatment}",
        block=block,
        attempt=attempt,
        position=1,
        treatment=treatment,
        started_at="2025-01-01T00:00:00+00:00",
        metrics={"queries_per_second": rate, "seconds_real": 1000 / rate},
        observed={"queue": {"scheduler": "none"}, "filesystem": {"barriers": True}},
        load={"errors": [{"code": 1213, "count": 2}]},
        probes={"host_cpu": {"cpu_seconds": 0.004, "samples": 10, "cpu_percent": None}},
        device={"lateness_ns": {"p99": 31000}},
        seconds={"raise": 1.5},
    )


def run_one(folder, one, series=()):
    folder.trial_folder(one.id)
    folder.append(Started(one.id, one.block, one.attempt, one.treatment))
    folder.finish(one, dict(series))


def fail_one(folder, one, cause):
    about = one.id, one.block, one.attempt, one.treatment
    folder.trial_folder(one.id)
    folder.append(Started(*about))
    folder.append(Failed(*about, cause))


@pytest.fixture
def folder(tmp_path):
    with_lock = create(tmp_path / "run", HEADER, HOST)
    yield with_lock
    with_lock.close()
