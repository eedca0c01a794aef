"""How many blocks the margin will likely take, from this host's noise floor where an A/A run has measured it."""

import math
import os
import statistics
from dataclasses import replace

import numpy as np
import pytest

from benches.honesty.designs import sequential
from dbdyno.analysis.planned_looks import BLOCKS_WHERE_ALIKE, SPREADS, likely_blocks
from dbdyno.cli.plan import likely_blocks_json, likely_blocks_text, spread_of_this_host
from dbdyno.host.processor import processor_facts
from dbdyno.model.design import SameTreatment, Treatment
from tests.run_folders import written
from tests.unit.report.conftest import build


def an_aa_run(noise, **host):
    """An A/A run of this host's processors, or of others."""
    same = [Treatment("t1", {"label": "A"}), Treatment("t2", {"label": "B"})]
    run = build(20, rates={"t1": 400.0, "t2": 400.0}, treatments=same, pairs=[("t1", "t2")], noise=noise, void_block=0)
    design = replace(run.design, aa=SameTreatment("x", 1))
    return replace(
        run,
        design=design,
        host={**run.host, "cpu": {"model": processor_facts().get("model", "")}, "cores": os.cpu_count(), **host},
    )


@pytest.mark.parametrize("place", [2, 4])
def test_the_table_is_what_the_product_s_own_rule_takes(place):
    spread = SPREADS[place] * math.log1p(0.03)
    d = np.random.default_rng(1).normal(0, spread, (400, 1, 40))
    assert float(sequential(d).blocks.mean()) == pytest.approx(BLOCKS_WHERE_ALIKE[place], rel=0.12)


def test_more_noise_takes_more_blocks_and_too_much_is_said():
    each = [likely_blocks(spread, 0.03) for spread in (0.001, 0.01, 0.02, 0.03, 0.04)]
    assert each == sorted(each)
    assert each[0] == (10, 6)
    assert likely_blocks(0.06, 0.03) is None


def test_a_plan_goes_by_the_aa_run_of_this_host_and_no_other(plan, tmp_path):
    design = replace(plan().design, until="decided", blocks=40)
    assert likely_blocks_text(design, tmp_path) == (
        "likely blocks: about 11 if two trials of a block differ by 2 %, 20 if two trials of a block differ by"
        " 4 %; dbdyno aa measures this host's spread"
    )
    assert likely_blocks_json(design, tmp_path) is None
    written(tmp_path / "other", an_aa_run(0.01, cpu={"model": "another"}))
    assert spread_of_this_host(tmp_path) is None
    run = an_aa_run(0.01)
    written(tmp_path / "ours", run)
    a, b = ([one.metrics[run.design.metric] for one in run.trials if one.treatment == id_] for id_ in ("t1", "t2"))
    found = spread_of_this_host(tmp_path)
    assert found == pytest.approx(statistics.stdev(math.log(y / x) for x, y in zip(a, b, strict=True)))
    text = likely_blocks_text(design, tmp_path)
    assert "two trials of a block differ by" in text
    assert "if two are alike" in text
    assert likely_blocks_json(design, tmp_path)["spread"] == found
    for name in ("a pipe", "damaged"):
        (tmp_path / name).mkdir()
    os.mkfifo(tmp_path / "a pipe/run.toml")
    (tmp_path / "damaged/run.toml").write_text("\n[aa]\n[")
    written(
        tmp_path / "strange" / "run", replace(run, design=replace(run.design, treatments=run.design.treatments[:1]))
    )
    assert spread_of_this_host(tmp_path) == found
    wild = replace(design, margin=0.001)
    assert "make trials longer" in likely_blocks_text(wild, tmp_path)
    assert likely_blocks_text(replace(design, until="blocks"), tmp_path) == ""
    assert likely_blocks_text(replace(design, comparisons=[]), tmp_path) == ""
