"""A run of a suite with seeded noise: four loads in two groups, three versions."""

from dataclasses import replace

from dbdyno.model.design import Factor, Treatment
from tests.unit.report.conftest import build

GROUPS = {"hot": "point", "cold": "point", "insert": "write", "update": "write"}
RATES = {  # by version
    "hot": (1000.0, 1000.0, 900.0),
    "cold": (1000.0, 1100.0, 1200.0),
    "insert": (1000.0, 800.0, 500.0),
    "update": (1000.0, 970.0, 880.0),
}
VERSIONS = ("v1", "v2", "v3")


def suite_run(blocks=8, **how):
    """Return a run of ``build`` whose treatments are each load with each version."""
    levels = [(load, version) for load in GROUPS for version in VERSIONS]
    treatments = [
        Treatment(f"t{number}", {"load": load, "server": version}) for number, (load, version) in enumerate(levels, 1)
    ]
    rates = {f"t{number}": RATES[load][VERSIONS.index(version)] for number, (load, version) in enumerate(levels, 1)}
    pairs = [(f"t{3 * place + 1}", f"t{3 * place + number}") for place in range(4) for number in (2, 3)]
    run = build(blocks, rates=rates, pairs=pairs, treatments=treatments, void_block=0, **how)
    gives = {load: {"workload.file": f"{load}.sql"} for load in GROUPS}
    factors = [
        Factor("load", "workload", list(GROUPS), gives=gives, groups=GROUPS),
        Factor("server", "stack", list(VERSIONS)),
    ]
    return replace(run, design=replace(run.design, factors=factors))
