"""What factors do, in every format; and the interaction plot."""

import json
import math
import re
from dataclasses import replace
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.analysis.analyse import analyse
from dbdyno.model.design import Factor, Treatment
from dbdyno.report.charts import interaction
from dbdyno.report.document import plain
from dbdyno.report.sections import factors
from tests.browser import browser, in_browser
from tests.unit.report.rendered import as_json, as_markdown, as_page, as_text
from tests.unit.report.test_report_html import HOSTILE

HELPS_ON_THE_DISK = {"t1": 410.0, "t2": 460.0, "t3": 1690.0, "t4": 1685.0}


def with_factors(run, hard=()):
    levels = {name: [t.levels[name] for t in run.design.treatments] for name in run.design.treatments[0].levels}
    made = [Factor(name, "stack", list(dict.fromkeys(each)), name in hard) for name, each in levels.items()]
    return replace(run, design=replace(run.design, factors=made))


@pytest.fixture(scope="module")
def factorial(build):
    return with_factors(build(10, rates=HELPS_ON_THE_DISK), hard=["device"])


def three_factors(build, blocks=9):
    levels = {"device": ["hdd", "ssd", "nvme"], "scheduler": ["none", "bfq"], "clients": ["10", "100"]}
    treatments = [
        Treatment(f"t{n}", dict(zip(levels, each, strict=True))) for n, each in enumerate(product(*levels.values()), 1)
    ]
    rates = {t.id: 100.0 * (1 + (t.levels["device"] != "hdd") * (t.levels["scheduler"] == "bfq")) for t in treatments}
    pairs = [("t1", t.id) for t in treatments[1:]]
    return with_factors(build(blocks, rates=rates, treatments=treatments, pairs=pairs, void_block=0))


def section(told):
    return told[told.index("Factors") : told.index("Failed trials")]


def test_text(snapshot, factorial):
    assert section(as_text(factorial, analyse(factorial))) == snapshot


def test_markdown(snapshot, factorial):
    assert section(as_markdown(factorial, analyse(factorial))) == snapshot


def test_json(snapshot, factorial):
    told = json.loads(as_json(factorial, analyse(factorial)))
    assert json.dumps(told["factors"], indent=1) == snapshot


def test_json_of_one_factor(build):
    run = with_factors(build(8, rates={"t1": 100.0, "t2": 103.0}, pairs=[("t1", "t2")]))
    told = json.loads(as_json(run, analyse(run)))["factors"]
    assert told == {"hard_to_change": [], "main_effects": [], "interactions": []}
    assert "Factors" not in as_text(run, analyse(run)) + as_page(run, analyse(run), {})


# Rates of hdd / deadline, hdd / none, ssd / deadline, ssd / none; and how the sentence goes on.
SAID = {
    "helps, not": (
        (400, 450, 1700, 1700),
        r"differs between device hdd-7200 \(\+1\d % queries per second, faster\) and ssd-sata \(.*, equivalent\): ",
    ),
    "harms, not": ((400, 350, 1700, 1700), r"differs between device hdd-7200 \(-1\d % .*, slower\) and ssd-sata \("),
    "either way": ((400, 360, 1500, 1700), r"differs between .*, slower\) and ssd-sata \(\+1\d %, faster\): "),
    "both": ((400, 450, 1600, 1800), r"does not differ within 3 % between .*, faster\) and ssd-sata \(.*, faster\): "),
    "none": ((400, 400, 1700, 1700), r"does not differ within 3 % between .* \(.* equivalent\) and .* equivalent\): "),
}


@pytest.mark.parametrize(("rates", "expected"), SAID.values(), ids=SAID.keys())
def test_an_interaction_is_one_sentence(build, rates, expected):
    run = with_factors(build(10, rates=dict(zip(("t1", "t2", "t3", "t4"), rates, strict=True)), noise=0.005))
    [(sentence, _)] = factors.interactions(analyse(run))
    assert re.match("The effect of scheduler none against mq-deadline " + expected, plain(sentence)), plain(sentence)


def test_what_is_undecided_claims_nothing(build):
    run = with_factors(build(6, rates=HELPS_ON_THE_DISK, noise=0.2))
    [(sentence, [reason])] = factors.interactions(analyse(run))
    assert sentence[1].text == "undecided"
    assert sentence[0].startswith("Whether the effect of scheduler none against mq-deadline differs between device")
    assert "includes 1" in reason
    assert " 0" not in reason.replace("0.", "")


def test_a_dropped_treatment_is_said(factorial):
    failed = [
        replace(factorial.failures[0], block=block, attempt=attempt, treatment="t4")
        for block, attempt in ((1, 1), (1, 2))
    ]
    trials = [trial for trial in factorial.trials if trial.treatment != "t4"]
    told = analyse(replace(factorial, failures=failed, trials=trials, dropped=frozenset({"t4"})))
    [(sentence, reasons)] = factors.interactions(told)
    assert plain(sentence) == (
        "The effect of scheduler none against mq-deadline is not comparable between device hdd-7200 and ssd-sata: "
        "ssd-sata / none, which it needs, failed again and again and was dropped."
    )
    assert reasons == []
    assert interaction.charts(told) == ()
    assert {plain(each).split(" is ")[1][:14] for each, _ in factors.main_effects(told)} == {"not comparable"}


def test_whole_plots_are_said_and_only_where_there_are_any(factorial, build):
    assert "as a whole plot" in as_page(factorial, analyse(factorial), {})
    assert factors.whole_plots_line(with_factors(build(8)).design) == ""


def test_a_level_that_is_no_word_has_its_factor_beside_it(build):
    told = [plain(sentence) for sentence, _ in factors.main_effects(analyse(three_factors(build)))]
    assert any(
        sentence.startswith("On average over device and scheduler, clients 100 is equivalent to clients 10 within 3 %")
        for sentence in told
    )


def test_charts_are_of_the_clearest_pairs(build):
    found = interaction.charts(analyse(three_factors(build)))
    assert found[0].caption == "Queries per second by scheduler, a line for each device"
    assert len(found) == 3
    assert all(name in found[0].drawn("wide") for name in ("hdd", "ssd", "nvme", "bfq"))


@pytest.mark.parametrize("blocks", [1, 2, 5, 45])
def test_any_number_of_blocks_has_a_page(build, blocks):
    run = three_factors(build, blocks)
    assert "</html>" in as_page(run, analyse(run), {})


@browser
def test_a_hostile_factor_runs_nothing(factorial, tmp_path):
    levels = [
        {HOSTILE: t.levels["device"] + HOSTILE, "b": t.levels["scheduler"] + HOSTILE}
        for t in factorial.design.treatments
    ]
    treatments = [replace(t, levels=each) for t, each in zip(factorial.design.treatments, levels, strict=True)]
    run = with_factors(replace(factorial, design=replace(factorial.design, treatments=treatments)), hard=[HOSTILE])
    page = as_page(run, analyse(run), {})
    assert page.index(">Results</h2>") < page.index(">Factors</h2>")
    dom, console = in_browser(page, tmp_path)
    assert console == []
    assert "<img" not in dom
    assert len(re.findall(r"<script", dom)) == 2
    assert "\x1b" not in as_text(run, analyse(run))


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=6), st.floats(0.01, 3))
def test_labels_are_moved_apart_in_their_order_and_stay_around_where_they_were(heights, apart):
    named = {str(place): height for place, height in enumerate(heights)}
    placed = interaction.spread(named, apart)
    ordered = [placed[name] for name in sorted(named, key=named.__getitem__)]
    assert all(above - below >= apart - 1e-9 for below, above in pairwise(ordered))
    assert math.fsum(placed.values()) == pytest.approx(math.fsum(heights), abs=1e-6)
