"""The report of a crash run: what leads it, table, picture, warnings, advice; and a crash run beside a speed run."""

import json
from dataclasses import replace
from itertools import combinations

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.blocks import RefusedError
from dbdyno.analysis.ranking import rank_runs
from dbdyno.analysis.safety import joined
from dbdyno.analysis.two_runs import compare
from dbdyno.model.design import Comparison, Fleet, Treatment
from dbdyno.report import comparison
from dbdyno.report.contents import document
from dbdyno.report.crash import names_of
from dbdyno.report.render import html, text
from dbdyno.report.render import json as as_values
from dbdyno.report.sections.ranking import document as ranking_document
from dbdyno.report.several import message
from dbdyno.report.source import CrashRunBeside
from tests.browser import browser, opened
from tests.crash_runs import FACTOR, FLUSH_0, FLUSH_2, SAFE, Loses, crash_run, speed_run
from tests.unit.report.rendered import as_json, as_markdown, as_page, as_text

TORN = Loses(3100.0, tail=0.3, damage=0.04, worst="table", ms=4000.0)
KINDS = {
    "usual": {},
    "kill": {"mode": "kill", "cuts": 1, "treatments": {"1": SAFE, "2": Loses(2600.0), "0": FLUSH_0}},
    "torn": {"treatments": {"1": SAFE, "torn": TORN, "slow": Loses(500.0)}},
    "undecided": {"treatments": {"1": SAFE, "2": FLUSH_2}, "control": Loses(2900.0, tail=0.6)},
    "few": {"blocks": 3},
    "all lose": {"treatments": {"2": FLUSH_2, "0": FLUSH_0}},
}


def brief(run, **more):
    return text.render(document(run, analyse(run), **more), 120, brief=True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_terminal_answers_in_25_lines(kind, snapshot):
    told = brief(crash_run(**KINDS[kind]))
    assert len(told.splitlines()) <= 25
    assert max(map(len, told.splitlines())) <= 140
    assert told == snapshot


def test_the_headline_is_the_answer():
    found = json.loads(as_json(run := crash_run(), analyse(run)))
    assert found["headline"].startswith(
        "innodb_flush_log_at_trx_commit = 1 lost nothing in 300 power cuts (at most 9.5 % of such cuts lose"
        " anything, counting 30 trials); 2 and 0 lose up to 1.0 s of commits."
    )
    assert found["advice"]["take"] == ["t1"]
    assert found["advice"]["parts"] == []
    safety = found["safety"]
    assert [one["verdict"] for one in safety["treatments"]] == ["no loss seen", *["loses the newest commits"] * 2]
    assert safety["control"]["enough"] is True
    assert safety["treatments"][0]["lost"]["at_most"] == pytest.approx(0.0950, abs=1e-4)
    assert safety["pareto"][0] == "t3"


@pytest.mark.parametrize("kind", KINDS)
def test_all_formats_have_it(kind):
    run = crash_run(**KINDS[kind])
    analysis = analyse(run)
    page, wiki = as_page(run, analysis), as_markdown(run, analysis)
    assert "Speed against safety" in page
    assert "by runs: it holds" in " ".join(as_text(run, analysis).split())
    for told in (page, wiki):
        assert "Crash safety" in told
        assert "innodb_flush_log_at_trx_commit" in told


def test_kills_are_never_called_power_cuts():
    run = crash_run(**KINDS["kill"])
    analysis = analyse(run)
    for told in (as_text(run, analysis), as_markdown(run, analysis), brief(run)):
        said = [line for line in told.replace("\n", " ").split(". ") if "power cut" in line.lower()]
        assert all(
            "kill of the server is not a power cut" in one or "Power cuts may lose more" in one for one in said
        ), said
        assert "kills of the server" in told
    told = brief(run).replace("\n", " ")
    assert (
        "lost nothing in 30 kills of the server each (at most 9.5 % of such kills of the server lose anything)" in told
    )


def test_badges_and_risks_say_what_was_tried():
    run = crash_run()
    page = as_page(run, analyse(run)).replace("\u00a0", " ")
    assert "900 power cuts were tried: see crash safety" in page
    assert "power cuts were not tried" not in page
    speed = speed_run(run)
    assert "power cuts were not tried" in as_page(speed, analyse(speed)).replace("\u00a0", " ")
    kills = crash_run(**KINDS["kill"])
    page = as_page(kills, analyse(kills)).replace("\u00a0", " ")
    assert "90 kills of the server were tried: see crash safety; power cuts were not tried" in page


def test_a_limit_that_was_reached_makes_it_at_least():
    run = crash_run()
    trials = [
        replace(one, cuts=[replace(each, limit_reached=True) for each in one.cuts]) if one.treatment == "t2" else one
        for one in run.trials
    ]
    told = brief(replace(run, trials=trials)).replace("\n", " ")
    assert "2 and 0 lose 1.0 s of commits or more" in told
    assert "so the loss is at least this" in told
    assert "at least 292 of 300" in told


def test_correlated_cuts_are_bounded_by_runs():
    told = brief(crash_run(related=0.9)).replace("\n", " ")
    assert "at most 9.5 % of such cuts lose anything" in told
    assert "Power cuts of one run resemble each other (correlation" in told


def test_losses_in_some_strata_alone_are_said():
    strata = (("uniform", "random-4096"), ("uniform", "lying"))
    run = crash_run({"1": FLUSH_0}, strata=strata)
    trials = [
        replace(one, cuts=[each if each.survivors == "lying" else replace(each, outcome="nothing", lost=0, lost_ms=None)
                           for each in one.cuts]) if one.treatment == "t1" else one for one in run.trials
    ]  # fmt: skip
    told = brief(replace(run, trials=trials)).replace("\n", " ")
    assert "(only with uniform / lying)" in told
    assert "1 lost only with uniform / lying; with the other power cuts nothing" in told
    assert "By stratum" in as_text(run, analyse(run))


def test_a_speed_run_beside_a_crash_run():
    crash = crash_run()
    speed = speed_run(crash_run({"0": FLUSH_0, "1": SAFE, "2": FLUSH_2}, seed=9))  # in another order
    beside = CrashRunBeside(crash, joined(speed, crash))
    assert [one.label for one in beside.safety.treatments] == [one.label for one in speed.design.treatments]
    assert [one.word for one in beside.safety.treatments][1] == "no loss seen"
    told = brief(speed, beside=beside).replace("\n", " ")
    assert 'Power cuts are those of "Safe commits"' in told
    assert "Take innodb_flush_log_at_trx_commit = 1" in told
    assert "900 power cuts were tried" in html.render(document(speed, analyse(speed), beside=beside)).replace(
        "\u00a0", " "
    )
    assert (
        json.loads(as_values.render(document(speed, analyse(speed), beside=beside)))["safety"]["run"] == "Safe commits"
    )


def test_runs_of_other_treatments_are_refused():
    crash, speed = crash_run({"1": SAFE, "2": FLUSH_2}), speed_run(crash_run())
    with pytest.raises(RefusedError) as refused:
        joined(speed, crash)
    assert message(refused.value) == (
        "the crash run 'Safe commits' lacks \"innodb_flush_log_at_trx_commit 0\"; it has"
        ' "innodb_flush_log_at_trx_commit 1", "innodb_flush_log_at_trx_commit 2"; run both studies with the same'
        " factors and levels"
    )
    with pytest.raises(RefusedError) as refused:
        joined(speed, speed)
    assert "has no cuts" in message(refused.value)


def test_what_is_equally_fast_and_safe_is_offered_as_well():
    run = crash_run({"1": SAFE, "o-direct": SAFE, "0": FLUSH_0})
    told = brief(run).replace("\n", " ")
    assert "Take innodb_flush_log_at_trx_commit = 1 or o-direct: the fastest that lost nothing" in told
    assert "they show no difference in speed" in told


def test_compare_says_what_both_lost():
    before, after = crash_run(), crash_run({"1": Loses(900.0, tail=0.2), "2": FLUSH_2, "0": FLUSH_0}, seed=4)
    found = comparison.document(before, after, compare(before, after))
    told = " ".join(text.render(found).split())
    assert "anything lost in 0 of 300 cuts before" in told
    assert "differs, p < 0.001, by runs" in told
    assert len(json.loads(as_values.render(found))["lost_in_cuts"]) == 3
    speed = speed_run(before)
    told = text.render(comparison.document(speed, after, compare(speed, after)))
    assert "Cuts are not compared: only the run after has any of these treatments." in told.replace("\n", " ")


def test_rank_says_that_it_ranks_speed():
    runs = [("one", crash_run()), ("two", crash_run(seed=5))]
    told = text.render(ranking_document(rank_runs(runs, None), [run for _, run in runs]))
    assert "Ranked by speed alone" in told


def several_factors():
    """Return a crash run of twelve treatments over three factors, in which only both logs synced lose nothing."""
    run = crash_run(blocks=30, cuts=3)
    levels = [
        {FACTOR: log, "sync_binlog": binlog, "device": device}
        for log in ("1", "2", "0")
        for binlog in ("1", "0")
        for device in ("ssd-sata", "ssd-plp")
    ]
    named = [Treatment(f"t{place}", each) for place, each in enumerate(levels, start=1)]
    made = crash_run({str(place): _behaves(each) for place, each in enumerate(levels)}, blocks=30, cuts=3, control=None)
    pairs = [Comparison("t1", one.id) for one in named[1:]]
    design = replace(run.design, treatments=named, comparisons=pairs, blocks=30, control=named[9])
    return replace(run, trials=made.trials, design=design)


def _behaves(levels):
    rate = {"1": 700.0, "2": 2500.0, "0": 2800.0}[levels[FACTOR]] * (1.6 if levels["device"] == "ssd-plp" else 1)
    tail = {"1": 0.0 if levels["sync_binlog"] == "1" else 0.3, "2": 0.97, "0": 1.0}[levels[FACTOR]]
    return Loses(rate, tail=tail)


def test_many_treatments_are_called_by_what_they_have_in_common(snapshot):
    told = brief(several_factors())
    assert len(told.splitlines()) <= 25
    assert told == snapshot
    flat = told.replace("\n", " ")
    assert "innodb_flush_log_at_trx_commit = 1 / sync_binlog = 1 (2 treatments) lost nothing" in flat
    assert "the other 10 lose" in flat
    assert "Take innodb_flush_log_at_trx_commit = 1 / sync_binlog = 1 / ssd-plp: the fastest that lost nothing" in flat


def test_names_of_several_treatments():
    names = names_of(several_factors().design.treatments)
    assert names.together(["t5", "t6", "t7", "t8", "t9", "t10", "t11", "t12"]) == (
        "innodb_flush_log_at_trx_commit = 2 and 0 (8 treatments)"
    )
    assert names.together(["t1"]) == "innodb_flush_log_at_trx_commit = 1 / sync_binlog = 1 / ssd-sata"
    assert names.together(["t1", "t4", "t7"]).endswith(" and 2 more")
    assert names.together([f"t{place}" for place in range(1, 13)]) == "all 12"
    assert names.short("t3") == "1 / 0 / ssd-sata"
    one = names_of(crash_run({"1": SAFE, "xfs": SAFE, "off": SAFE}).design.treatments)
    assert one.together(["t2", "t1", "t3"]) == "xfs, innodb_flush_log_at_trx_commit = 1 and off"
    assert one.together(["t3"], ["t1"]) == "off"


def test_all_but_one_are_not_listed_and_a_terminal_shows_the_one_that_is_damaged():
    levels = dict.fromkeys(("ext4", "xfs", "btrfs", "zfs", "ext3", "jfs", "ext2"), SAFE)
    told = brief(crash_run({**levels, "nobarrier": TORN}))
    said = told.replace("\n", " ")
    assert "All but nobarrier lost nothing in 300 power cuts each" in said
    assert "Take any but nobarrier: the fastest that lost nothing" in said
    assert any(line.startswith("nobarrier ") for line in told.splitlines()), "the worst of them is a row that is shown"


@browser
@pytest.mark.parametrize("width", [1280, 390])
def test_the_picture_in_a_browser(width, tmp_path):
    """Every treatment is a mark inside the drawing, and says its figures; no name lies on another one."""
    run = several_factors()
    with opened(as_page(run, analyse(run)), tmp_path, width=width) as tab:
        found = tab.value(
            """(() => {
              const box = one => { const r = one.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; };
              const drawn = [...document.querySelectorAll('svg')].find(
                one => one.getAttribute('aria-label')?.includes('anything is lost') && box(one)[2]);
              const marks = [...drawn.querySelectorAll('g[data-says]')];
              const names = [...drawn.querySelectorAll('text')].filter(one => one.textContent.includes(' / '));
              return {drawn: box(drawn), marks: marks.map(box), names: names.map(box), wide: innerWidth,
                      says: marks.map(one => one.dataset.says)};
            })()"""
        )
        assert tab.console() == []
    left, top, right, bottom = found["drawn"]
    assert left >= 0
    assert right <= found["wide"]
    assert len(found["marks"]) == 12
    assert len(found["names"]) == 12, "a name without room beside its mark stands farther off"
    for box in found["marks"] + found["names"]:
        assert left <= box[0] < box[2] <= right + 1
        assert top <= box[1] < box[3] <= bottom
    assert any("lost in 0 of 90, at most 9.5 %" in text for text in found["says"])
    touching = [
        (one, other)
        for one, other in combinations(found["names"], 2)
        if one[0] < other[2] and other[0] < one[2] and one[1] + 2 < other[3] and other[1] + 2 < one[3]
    ]
    assert touching == []


def on_three(treatments, lost):
    """Return a crash run whose blocks are of three hosts; where ``lost(host, treatment)``, every cut lost its tail."""
    run = crash_run(treatments, blocks=30, cuts=5)
    trials = []
    for trial in run.trials:
        host = f"db{1 + trial.block % 3}"
        cuts = trial.cuts
        if lost(host, trial.treatment):
            cuts = [replace(one, outcome="tail", lost=3, lost_ms=700.0) for one in cuts]
        trials.append(replace(trial, host=host, cuts=cuts))
    return replace(run, trials=trials)


def test_each_host_is_said_where_outcomes_differ_by_host():
    run = on_three({"1": SAFE, "2": FLUSH_2}, lambda host, treatment: (host, treatment) == ("db3", "t1"))
    told = as_text(run, analyse(run))
    lines = " ".join(told.split())
    assert (
        "innodb_flush_log_at_trx_commit = 1 differs by host: db3 commits lost in 50 of 50 power cuts; db2 and db1 "
        "nothing in 100 power cuts; more than chance (db3: p" in lines
    )
    assert "Runs of 3 hosts together: bounds hold for these hosts." in lines
    assert "By host" in told
    found = json.loads(as_json(run, analyse(run)))["safety"]["by_host"]
    assert [(one["id"], one["differs"]) for one in found] == [("t1", True), ("t2", False), ("control", False)]
    assert {one["host"]: one["lost"]["seen"] for one in found[0]["hosts"]} == {"db1": 0, "db2": 0, "db3": 50}


def test_the_headline_claims_no_safety_of_hosts_like_these():
    run = on_three({"1": SAFE, "2": FLUSH_2}, lambda _host, _treatment: False)
    hosts = ["db1", "db2", "db3"]
    run = replace(run, design=replace(run.design, fleet=Fleet(hosts)), hosts={one: {"cores": 2} for one in hosts})
    found = json.loads(as_json(run, analyse(run)))
    assert found["headline"].startswith("On these 3 hosts: innodb_flush_log_at_trx_commit = 1 lost nothing in 150")
    assert "as fast as" in found["headline"]
    assert "hosts like these" not in found["headline"]


def test_a_difference_that_may_be_chance_is_said_to_be_so():
    run = on_three({"1": SAFE}, lambda _host, _treatment: False)
    first = next(one for one in run.trials if one.treatment == "t1" and one.host == "db2")
    lost = replace(first, cuts=[replace(first.cuts[0], outcome="tail", lost=1, lost_ms=3.0), *first.cuts[1:]])
    run = replace(run, trials=[lost if one is first else one for one in run.trials])
    lines = " ".join(as_text(run, analyse(run)).split())
    few = "db2 commits lost in 1 of 50 power cuts; db3 and db1 nothing in 100 power cuts; which may be chance."
    assert few in lines


def test_hosts_that_do_not_differ_are_one_sentence():
    run = on_three({"1": SAFE, "2": FLUSH_2}, lambda _host, _treatment: False)
    lines = " ".join(as_text(run, analyse(run)).split())
    assert "differs by host" not in lines
    assert "Runs of 3 hosts together, which show no difference between them: bounds hold for these hosts." in lines
    one = crash_run(blocks=6)
    assert "bounds hold for these hosts" not in as_text(one, analyse(one))


def test_beside_a_speed_run_hosts_go_by_that_run_s_names():
    crash = on_three({"2": FLUSH_2, "1": SAFE}, lambda host, treatment: (host, treatment) == ("db3", "t2"))
    speed = speed_run(crash_run({"1": SAFE, "2": FLUSH_2}, blocks=6))
    found = joined(speed, crash)
    assert [(one.treatment, one.differs) for one in found.by_host] == [("t2", False), ("t1", True), ("control", False)]
    assert {on.treatment for each in found.by_host for on in each.hosts} == {"t1", "t2", "control"}


def slow_and_fast(blocks):
    """A speed run of so many blocks, of two treatments that lost nothing, one of which is a third faster."""
    crash = crash_run({"1": SAFE, "3": Loses(1200.0), "0": FLUSH_0})
    run = speed_run(crash_run({"1": SAFE, "3": Loses(1200.0), "0": FLUSH_0}, blocks=blocks, cuts=1))
    return run, CrashRunBeside(crash, joined(run, crash))


@pytest.mark.parametrize(("blocks", "is_shown"), [(4, False), (10, True)])
def test_the_fastest_that_lost_nothing_is_what_its_comparison_says(blocks, is_shown):
    """Four blocks lie apart and can't show it; the table of speed says undecided, and so does the advice."""
    speed, beside = slow_and_fast(blocks)
    values = document(speed, analyse(speed), beside=beside).values()
    assert (values["verdicts"][0]["verdict"] == "faster") is is_shown
    assert values["advice"]["take"] == (["t2"] if is_shown else ["t2", "t1"])
    assert ("they show no difference in speed" in values["advice"]["text"]) is not is_shown


@pytest.mark.parametrize(("blocks", "is_said"), [(5, True), (30, False)])
def test_a_loss_that_may_be_worse_is_said_where_few_runs_show_it(blocks, is_said):
    """t2 lost its newest commits in all runs; so few do not exclude that it does damage."""
    run = crash_run({"1": SAFE, "2": FLUSH_2, "0": FLUSH_0})
    trials = [replace(one, cuts=[]) if one.treatment == "t2" and one.block > blocks else one for one in run.trials]
    told = document(replace(run, trials=trials), analyse(replace(run, trials=trials))).values()["advice"]["text"]
    assert "may lose 1.0 s of commits" in told
    assert ("and worse in up to 45 % of such cuts" in told) is is_said
    assert ("worse" in told) is is_said
