"""Advice: nothing that a comparison shows to be slower is recommended, and nothing silently that is less durable."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbdyno.analysis.advice import AdviceBasis, Choice, Hold, Relations, Safety, advise, choose
from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.blocks import usable_blocks
from dbdyno.analysis.explanation import Why
from dbdyno.analysis.statistics import Estimate
from dbdyno.analysis.verdict.reasons import Lack, NextStep, hardest
from dbdyno.model.design import Comparison, Factor, SameTreatment, Treatment
from dbdyno.model.metrics import METRICS
from dbdyno.model.word import Word
from dbdyno.report.sections.advice import advice_text, risk_text
from tests.unit.report.conftest import build
from tests.unit.report.shared_pages import observing

FACTORS = {"scheduler": ["none", "kyber", "bfq"], "device": ["hdd", "ssd"], "clients": ["1", "16"]}
WORDS = list(Word)
ONE = {"a": {"x": "1"}, "b": {"x": "2"}, "c": {"x": "3"}}


def relations(faster=(), alike=(), behind=(), baseline="a", stacks=ONE):
    pairs = frozenset(map(frozenset, alike))
    return Relations(stacks, baseline, frozenset(map(tuple, faster)), pairs, frozenset(behind))


@pytest.mark.parametrize(
    ("known", "choice"),
    [
        (relations(["ba", "bc"]), Choice("take", ("b",))),
        (relations(["ba", "ca"]), Choice("take", ("b", "c"))),
        (relations(["ba"], ["bc"]), Choice("take", ("b",), ("c",))),
        (relations(["ba", "cb"]), Choice("take", ("c",))),
        (relations(["ab"], ["ac"]), Choice("keep", ("a",), ("c",))),
        (relations(["ab", "ac"]), Choice("keep", ("a",))),
        (relations([], ["ab", "ac"]), Choice("any", ("a",), ("b", "c"))),
        (relations([], ["ab"]), Choice("open")),  # of c nothing is known
        (relations(["bc"], ["ab"]), Choice("keep", ("a",), ("b",))),
        (relations(["bc"]), Choice("open")),  # whether b is better than the baseline is not known
        (relations(["cb"], ["ab"]), Choice("open")),  # c may be better than the baseline
        (relations(["ab", "bc", "ca"]), Choice("open")),  # they contradict each other
        (relations(["ba"], behind=["b"]), Choice("open")),
        (relations([], behind=["a"]), Choice("open")),  # what was not planned speaks for nothing
        (relations(["bc"], baseline=None), Choice("take", ("b", "a")[:1])),
        (relations(stacks={"a": {"x": "1"}}), Choice("open")),  # all others failed, so nothing speaks for it
    ],
)
def test_what_verdicts_on_three_treatments_carry(known, choice):
    assert choose(known) == choice


def test_a_change_that_is_faster_wherever_it_was_compared_is_taken_wherever_it_is():
    names = {"hq": ("hdd", "mq"), "hn": ("hdd", "none"), "sq": ("ssd", "mq"), "sn": ("ssd", "none")}
    stacks = {id_: dict(zip(("device", "scheduler"), levels, strict=True)) for id_, levels in names.items()}
    faster = [("sq", "hq"), ("sn", "hn")]
    known = relations(faster, [("hq", "hn")], baseline="hq", stacks=stacks)
    assert choose(known) == Choice("take", ("sq", "sn"))
    known = relations(faster, [("hq", "hn"), ("sq", "sn")], baseline="hq", stacks=stacks)
    assert set(choose(known).pool) == {"sq", "sn"}
    known = relations([*faster, ("sq", "sn")], [("hq", "hn")], baseline="hq", stacks=stacks)
    assert choose(known) == Choice("take", ("sq",))
    known = relations([("sq", "hq")], [("hq", "hn")], baseline="hq", stacks=stacks)
    assert choose(known) == Choice("take", ("sq",)), "of ssd and none nothing is known"


def truth_table(draw):
    """Treatments of up to three factors, some of their pairs with any word, and settings of any durability."""
    names = draw(st.lists(st.sampled_from(list(FACTORS)), min_size=1, max_size=3, unique=True))
    levels = [FACTORS[name][: draw(st.integers(2, 3))] for name in names]
    treatments = [
        Treatment(f"t{place}", dict(zip(names, each, strict=True)))
        for place, each in enumerate(itertools.product(*levels), 1)
    ]
    pairs = draw(
        st.lists(
            st.sampled_from(list(itertools.combinations([one.id for one in treatments], 2))),
            min_size=1,
            max_size=12,
            unique=True,
        )
    )
    words = [draw(st.sampled_from(WORDS)) for _ in pairs]
    flushed = {one.id: draw(st.sampled_from(["0", "1", "2"])) for one in treatments}
    return treatments, dict(zip(pairs, words, strict=True)), flushed


TEMPLATE = build(6, pairs=[("t1", "t3")], void_block=0)
ANALYSIS = analyse(TEMPLATE)
VERDICT = ANALYSIS.verdicts[0]


def advised(treatments, words, flushed, *, unplanned=None, disturbed=()):
    """The advice on a truth table, its run and its analysis."""
    factors = [
        Factor(
            name,
            "workload" if name == "clients" else "stack",
            list(dict.fromkeys(one.levels[name] for one in treatments)),
        )
        for name in treatments[0].levels
    ]
    design = replace(
        TEMPLATE.design,
        treatments=treatments,
        baseline="t1",
        comparisons=[Comparison(*pair) for pair in words],
        factors=factors,
    )
    server = {"version": "10.11", "default_storage_engine": "InnoDB"}
    trials = [
        replace(
            TEMPLATE.trials[0],
            id=f"b1p{place}",
            treatment=one.id,
            position=place,
            observed={"server": {**server, "innodb_flush_log_at_trx_commit": flushed[one.id]}},
        )
        for place, one in enumerate(treatments, 1)
    ]
    run = replace(TEMPLATE, design=design, trials=trials, failures=[], notes=[])

    def verdict(pair, word):
        baseline, level = pair
        value = {"faster": 0.2, "slower": -0.2}.get(word, 0.0)
        return replace(
            VERDICT,
            baseline_id=baseline,
            level_id=level,
            baseline=design.labels[baseline],
            level=design.labels[level],
            verdict=word,
            effect=Estimate(value, value - 0.01, value + 0.01, 6),
            lack=NextStep(Lack.MORE_BLOCKS, 4) if word.is_open else None,
            disturbed=6 if pair in disturbed else 0,
        )

    planned = [verdict(*each) for each in words.items()]
    further = [verdict(*each) for each in (unplanned or {}).items()]
    found = AdviceBasis(planned, further, Why([], {}))
    advice = advise(run, usable_blocks(run), METRICS["queries_per_second"], found)
    return advice, run, replace(ANALYSIS, verdicts=planned, advice=advice)


def shown_slower(words):
    """(the faster, the slower) of every pair that differs."""
    return {pair[::-1] if word == "faster" else pair for pair, word in words.items() if word in {"faster", "slower"}}


@settings(max_examples=300)
@given(st.data())
def test_nothing_is_recommended_that_is_slower_or_silently_less_durable(data):
    treatments, words, flushed = truth_table(data.draw)
    left = [pair for pair in itertools.combinations(flushed, 2) if pair not in words]
    unplanned = {pair: data.draw(st.sampled_from(WORDS)) for pair in left[:4]}
    disturbed = {pair for pair in words if data.draw(st.booleans()) and data.draw(st.booleans())}
    advice, run, analysis = advised(treatments, words, flushed, unplanned=unplanned, disturbed=disturbed)
    text = advice_text(run, analysis)
    loads = {one.id: one.levels.get("clients", "") for one in treatments}
    worst = {"1": 0, "2": 1, "0": 2}
    every = shown_slower(words | unplanned)
    carried = shown_slower({pair: word for pair, word in words.items() if pair not in disturbed})
    alike = {frozenset(pair) for pair, word in words.items() if word == "equivalent" and pair not in disturbed}
    for part in advice.parts:
        pool = part.choice.pool
        assert len(set(pool)) == len(pool)
        for one in pool:
            assert not any(slower == one and loads[faster] == loads[one] for faster, slower in every)
            safer = [other for other in flushed if worst[flushed[other]] < worst[flushed[one]]]
            assert not safer or set(part.safety.safer) & set(safer)
            assert not safer or part.choice.kind == "open" or "nly if a power cut may take data" in text
        if part.choice.kind in {"take", "safer"}:
            ahead = {faster for faster, _ in carried}
            by_id = {one.id: one for one in treatments}
            for one in part.choice.take:  # faster, or as good as what is, under one of the loads at least
                same = [each for each in part.choice.take if same_stack(by_id[each], by_id[one])]
                assert part.choice.kind == "safer" or any(
                    each in ahead or any(frozenset((each, of)) in alike for of in ahead) for each in same
                )
            in_part = {loads[one] for one in pool}
            base = [one.id for one in treatments if loads[one.id] in in_part and same_stack(one, treatments[0])]
            assert not set(base) & set(part.choice.take), "the baseline is no news"
        assert (not pool) == (part.choice.kind == "open") == (part.step is not None)
        assert bool(pool) or part.safety is None
        for one in part.choice.as_good:
            assert any(one in pair for pair in alike)
    taken = [part for part in advice.parts if part.choice.pool]
    if not taken:
        undecided = "Not conclusive" in text or "Not final" in text
        assert undecided or not any(word in text for word in ("ake ", "keep", " will do"))
        assert "Safety" not in text


def same_stack(one, other):
    return all(level == other.levels[name] for name, level in one.levels.items() if name != "clients")


@settings(max_examples=60)
@given(st.data())
def test_labels_do_not_matter_nor_which_side_of_a_comparison_is_called_the_baseline(data):
    treatments, words, flushed = truth_table(data.draw)
    swapped = {Word.FASTER: Word.SLOWER, Word.SLOWER: Word.FASTER}
    turned = {pair[::-1]: swapped.get(word, word) for pair, word in words.items()}
    one, other = advised(treatments, words, flushed)[0], advised(treatments, turned, flushed)[0]
    assert [(part.choice, part.step, part.free) for part in one.parts] == [
        (part.choice, part.step, part.free) for part in other.parts
    ]


def text_of(run, **options):
    return advice_text(run, analyse(run, **options))


ONE_FACTOR = [("t1", "t2"), ("t1", "t3"), ("t2", "t4"), ("t3", "t4")]
DEMO = {"t1": 298.7, "t2": 298.0, "t3": 1737.0, "t4": 1745.0}


@pytest.mark.parametrize("seed", [7, 11])
def test_a_measured_demo(seed):
    run = observing(build(pairs=ONE_FACTOR, rates=DEMO, noise=0.008, seed=seed))
    assert text_of(run) == (
        "Take ssd-sata; either scheduler will do. Safety: commits are durable as set (innodb_flush_log_at_trx_commit ="
        " 1 read back); power cuts were not tried. The drives were emulated; this holds for drives like them."
    )


def lax(run, treatment, **server):
    """The run with other settings read back of one treatment."""
    trials = [
        replace(trial, observed={**trial.observed, "server": {**trial.observed["server"], **server}})
        if trial.treatment == treatment
        else trial
        for trial in run.trials
    ]
    return replace(run, trials=trials)


NAMED = [Treatment("t1", {"flush_log": "1"}), Treatment("t2", {"flush_log": "2"})]
PAIR = [("t1", "t2")]


def test_a_winner_that_is_less_durable_comes_with_that_first():
    run = observing(build(rates={"t1": 410.0, "t2": 640.0}, treatments=NAMED, pairs=PAIR), kind="real")
    assert text_of(run).startswith("Take flush_log 2. Safety: commits are durable")
    assert text_of(lax(run, "t2", innodb_flush_log_at_trx_commit="2")) == (
        "Only if a power cut may take data, take flush_log 2: with innodb_flush_log_at_trx_commit = 2 the log is synced"
        " about once a second (safer: flush_log 1). Safety: a power cut may take data, see above; power cuts were not"
        " tried."
    )
    text = text_of(lax(run, "t2", innodb_doublewrite="OFF"))
    assert text.startswith("Only if a power cut may take data, take flush_log 2: with innodb_doublewrite = OFF")


def test_of_two_that_are_alike_the_safer_one_is_taken():
    run = observing(build(rates={"t1": 410.0, "t2": 410.0}, treatments=NAMED, pairs=PAIR), kind="real")
    assert text_of(run).startswith(
        "Nothing to change: either flush_log will do within 3 %. Safety: commits are durable"
    )
    other = lax(run, "t2", innodb_flush_log_at_trx_commit="2")
    assert text_of(other).startswith("Nothing to change: keep flush_log 1. Safety: commits are durable")
    other = lax(run, "t1", innodb_flush_log_at_trx_commit="2")
    assert text_of(other).startswith(
        "Take flush_log 2: as fast within 3 %, and safer than the baseline. Safety: commits"
    )


def test_a_run_without_a_verdict_recommends_nothing_but_what_to_do_next():
    few = build(3, pairs=ONE_FACTOR, void_block=0)
    assert text_of(few) == ("Not conclusive. Run at least 3 more blocks: go on with --resume --until-decided.")
    assert text_of(replace(build(pairs=PAIR), ended="interrupted")) == (
        "Not conclusive. The run is not finished; go on with --resume"
    )
    assert text_of(replace(few, imported=True)) == (
        "Not conclusive. Run at least 3 more blocks where it was measured"
        " (a result that was imported can't be gone on with here)."
    )
    assert text_of(replace(build(pairs=PAIR), ended="interrupted", imported=True)) == (
        "Not conclusive. The run is not finished; a result that was imported can't be gone on with here"
    )
    assert text_of(replace(few, trials=[], ended="done")).startswith("No recommendation: no block is usable")
    assert text_of(build(pairs=[])).startswith("No recommendation: nothing was compared")
    loads = [Treatment("t1", {"clients": "1"}), Treatment("t2", {"clients": "16"})]
    run = build(rates={"t1": 100.0, "t2": 900.0}, treatments=loads, pairs=PAIR)
    run = replace(run, design=replace(run.design, factors=[Factor("clients", "workload", ["1", "16"])]))
    assert text_of(run) == "No setting to choose: only the load varied."


def test_a_disturbed_run_recommends_to_end_what_runs_beside():
    run = build(pairs=[("t1", "t3")])
    beyond = {"beyond": ["foreign_cpu"], "foreign_cpu": 0.4, "limits": {"foreign_cpu": 0.05}}
    assert text_of(run).startswith("Take ssd-sata / mq-deadline.")
    disturbed = replace(run, trials=[replace(trial, disturbance=beyond) for trial in run.trials])
    assert text_of(disturbed).startswith("Not final. Stop other programs and run again")


def test_rates_that_the_load_asked_for_show_no_equivalence():
    run = build(rates={"t1": 100.0, "t2": 100.0}, pairs=PAIR)
    assert text_of(run).startswith("Nothing to change: either scheduler will do")
    load = {"loop": {"kind": "open", "rate": 100.0}, "offered": 5000, "achieved_per_second": 100.0}
    kept_up = [replace(trial, load=load, metrics={**trial.metrics, "achieved_ratio": 1.0}) for trial in run.trials]
    assert text_of(replace(run, trials=kept_up)).startswith("No recommendation: the load's rate was below the limit")


def test_a_winner_that_is_slower_in_total_is_not_recommended():
    run = build(rates={"t1": 100.0, "t2": 130.0}, pairs=PAIR, noise=0.004, void_block=0)
    assert text_of(run).startswith("Take scheduler none.")
    stalled = [
        replace(trial, metrics={**trial.metrics, "queries_per_second": trial.metrics["queries_per_second"] / 20})
        if trial.treatment == "t2" and trial.block == 5
        else trial
        for trial in build(14, rates={"t1": 100.0, "t2": 130.0}, pairs=PAIR, noise=0.004, void_block=0).trials
    ]
    run = build(14, rates={"t1": 100.0, "t2": 130.0}, pairs=PAIR, noise=0.004, void_block=0)
    run = replace(run, trials=stalled)
    analysis = analyse(run)
    assert analysis.verdicts[0].verdict == "faster"
    assert analysis.verdicts[0].totals.effect.value > 0
    assert advice_text(run, analysis).startswith("No recommendation: average and typical block disagree")


@pytest.mark.parametrize("taken", ["ON", "OFF"])
def test_what_is_given_up_without_a_binary_log_is_said_where_another_treatment_has_one(taken):
    def with_binary_log(trial, value):
        server = {**trial.observed.get("server", {}), "log_bin": value, "sync_binlog": "1"}
        return replace(trial, observed={**trial.observed, "server": server})

    of = {"t1": "OFF" if taken == "ON" else "ON", "t2": taken}
    run = build(rates={"t1": 100.0, "t2": 130.0}, pairs=PAIR, noise=0.004)
    text = text_of(replace(run, trials=[with_binary_log(trial, of[trial.treatment]) for trial in run.trials]))
    assert text.startswith("Take scheduler none.")
    assert ("Without the binary log there is no replica" in text) == (taken == "OFF")
    assert "binary log" not in text_of(replace(run, trials=[with_binary_log(trial, "OFF") for trial in run.trials]))


def test_what_is_said_of_the_disks():
    def said(*kinds):
        return risk_text([Safety(durable=True, served=True, lacking=(), worse=(), safer=(), less_known=False,
                                 synced=("1",), disks=kinds)]).rpartition("tried.")[2].strip()  # fmt: skip

    assert said("emulated") == "The drives were emulated; this holds for drives like them."
    assert said("emulated", "real") == "Some drives were emulated; this holds for drives like them."
    assert said("memory") == "The data was in memory, so no disk was measured."
    assert said("memory", "real") == said("here") == ""


def test_under_loads_that_want_another_stack_each_it_is_said_under_which():
    levels = [("none", "1"), ("kyber", "1"), ("none", "16"), ("kyber", "16")]
    treatments = [
        Treatment(f"t{place}", {"scheduler": one, "clients": load}) for place, (one, load) in enumerate(levels, 1)
    ]
    factors = [Factor("scheduler", "queue", ["none", "kyber"]), Factor("clients", "workload", ["1", "16"])]

    def said(*rates):
        rates = {one.id: float(rate) for one, rate in zip(treatments, rates, strict=True)}
        run = build(12, treatments=treatments, rates=rates, pairs=[("t1", "t2"), ("t3", "t4")], noise=0.008)
        return text_of(replace(run, design=replace(run.design, factors=factors))).partition(" Safety")[0]

    assert said(100, 150, 400, 600) == "Take kyber."
    assert said(100, 150, 400, 400) == "Take kyber."
    assert (
        said(100, 150, 600, 400)
        == "With clients 1: take kyber. With clients 16: nothing to change: keep scheduler none."
    )
    assert said(100, 100, 400, 400) == "Nothing to change: either scheduler will do within 3 %."


def test_an_a_a_run_says_whether_its_host_can_be_relied_on():
    run = build(8, rates={"t1": 400.0, "t2": 400.0}, pairs=PAIR)
    run = replace(run, design=replace(run.design, aa=SameTreatment("x", 1)))
    assert analyse(run).advice.hold is Hold.SAME_TREATMENTS
    assert text_of(run) == "Nothing to change: differences beyond 3 % on this host are credible."


def test_what_is_lacking_first_is_what_makes_the_rest_useless():
    steps = [NextStep(Lack.MORE_BLOCKS, 5), NextStep(Lack.MORE_BLOCKS, 9), NextStep(Lack.A_WIDER_MARGIN)]
    assert hardest(steps) == NextStep(Lack.MORE_BLOCKS, 9)
    assert hardest([*steps, NextStep(Lack.QUIET_HOST)]) == NextStep(Lack.QUIET_HOST)
    assert hardest([]) is None
