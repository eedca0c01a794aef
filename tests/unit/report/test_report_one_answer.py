"""One answer: whatever a report says of two treatments follows from one finding, in its opening as in its tables.

Each test has the smallest run in which two parts of a report once said different things, or said more than was found.
It reads what a person or a program reads, the document's text and its JSON, and nothing of how that is made.
"""

import json
import re
from dataclasses import replace
from itertools import product

import pytest
from typer.testing import CliRunner

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.two_runs import compare
from dbdyno.cli.main import app
from dbdyno.model.design import Factor, Treatment
from dbdyno.report import comparison
from dbdyno.report.contents import document
from dbdyno.report.document import List, plain
from dbdyno.report.outcome import compared
from dbdyno.report.render import text
from tests.crash_runs import crash_run
from tests.run_folders import kept_run, written
from tests.statements import Report, around_the_word, blocks_of, opening
from tests.unit.report.conftest import build, series_of
from tests.unit.report.shared_pages import observing
from tests.unit.report.test_report_server_defaults import NEW, OLD, with_variables

FLUSH = "innodb_flush_log_at_trx_commit"
RISK = re.compile(r"may lose|may take|power cut")
BEYOND = {"beyond": ["foreign_cpu"], "foreign_cpu": 0.4, "limits": {"foreign_cpu": 0.05}}
STACK = [
    Factor("device", "stack", ["hdd-7200", "ssd-sata"]),
    Factor("scheduler", "queue", ["mq-deadline", "none"]),
]


def told(run):
    """What a report says of a run, as values."""
    return document(run, analyse(run)).values()


def opening_of(run):
    """What a terminal shows of a run without --details, in one line."""
    return opening(document(run, analyse(run)))


def disturbed(run):
    """The run as if others had used the host beside each of its trials."""
    return replace(run, trials=[replace(one, disturbance=BEYOND) for one in run.trials])


def levels_of(factor, *levels):
    """Treatments that differ in one factor, the first being the baseline."""
    return [Treatment(f"t{place}", {factor: level}) for place, level in enumerate(levels, 1)]


def one_factor(factor, rates, *, section="stack", blocks=8, noise=0.008, seed=7):  # noqa: PLR0913
    """A run that compares each level of a factor with the first; ``rates`` is level -> queries per second."""
    treatments = levels_of(factor, *rates)
    pairs = [("t1", one.id) for one in treatments[1:]]
    of = {one.id: float(rate) for one, rate in zip(treatments, rates.values(), strict=True)}
    made = build(blocks, seed=seed, rates=of, treatments=treatments, pairs=pairs, noise=noise, void_block=0)
    return replace(made, design=replace(made.design, factors=[Factor(factor, section, list(rates))]))


def without(run, treatment):
    """The run as if a treatment had failed again and again from its second block on, and was left out."""
    trials = [one for one in run.trials if one.treatment != treatment or one.block == 1]
    return replace(run, trials=trials, dropped=frozenset({treatment}))


def with_figure(run, treatment, name, factor):
    """The run with a figure of one treatment so many times as large."""
    trials = [
        replace(one, metrics={**one.metrics, name: one.metrics[name] * factor}) if one.treatment == treatment else one
        for one in run.trials
    ]
    return replace(run, trials=trials)


def flushing(run):
    """The run with each treatment's setting of when commits are flushed, as read back from the server."""
    levels = {one.id: one.levels[FLUSH] for one in run.design.treatments}
    served = observing(run, kind="here")
    trials = [
        replace(one, observed={**one.observed, "server": {**one.observed["server"], FLUSH: levels[one.treatment]}})
        for one in served.trials
    ]
    return replace(served, trials=trials)


# A more durable setting is not advised against for speed alone, and a less durable one never without its risk.


@pytest.mark.parametrize("levels", [("1", "2"), ("2", "1"), ("1", "2", "0"), ("0", "1")])
@pytest.mark.parametrize("is_quiet", [True, False])
@pytest.mark.parametrize("times", [1.0, 1.6])
def test_durable_commits_are_never_advised_against_for_speed_alone(levels, is_quiet, times):
    """Only ``1`` keeps commits; each other level is so many times as fast."""
    run = flushing(one_factor(FLUSH, {level: 400 * (1 if level == "1" else times) for level in levels}))
    advice = told(run if is_quiet else disturbed(run))["advice"]["text"]
    assert f"not {FLUSH} 1" not in advice
    assert not re.search(rf"{FLUSH} 1[^.]*\bslower", advice)
    if re.search(rf"(take|keep) (?:{FLUSH} )?[02]\b", advice, re.IGNORECASE):
        assert RISK.search(advice)
        assert f"{FLUSH} = " in advice


def test_a_disturbed_run_of_durable_commits_says_what_the_faster_setting_may_lose_or_nothing_of_it():
    run = disturbed(flushing(one_factor(FLUSH, {"1": 400, "2": 640})))
    advice = told(run)["advice"]["text"]
    assert advice.startswith(("Not conclusive", "Not final"))
    assert "slower" not in advice


# Where the design could not have decided, no quiet host would have helped; and what is shown is what the word is of.


@pytest.mark.parametrize("is_quiet", [True, False])
def test_six_blocks_that_no_quiet_host_could_have_decided_are_not_called_disturbed(is_quiet):
    rates = dict(zip(("a", "b", "c", "d", "e", "f"), (100, 488, 103, 98, 101, 100), strict=True))
    run = one_factor("device", rates, blocks=6, noise=0.1)
    run = run if is_quiet else disturbed(run)
    values = told(run)
    largest = next(one for one in values["verdicts"] if one["level_id"] == "t2")
    row = row_of(run, "b vs a")
    if largest["verdict"] == "undecided":
        assert not largest["low"] > 0, "an interval that excludes 0 stands beside undecided"
        assert "interference" not in row
        assert "interference" not in values["headline"]
        assert not values["advice"]["text"].startswith("Not conclusive. Stop other programs")
    else:
        assert largest["verdict"] == "faster"
        assert largest["low"] > 0
        assert is_quiet or "interference" in opening_of(run)


def row_of(run, name):
    """The row of a comparison in the opening's table, as text."""
    cells = next(row for one, row in Report(run, analyse(run)).rows() if one.name == name)
    return " | ".join(cell if isinstance(cell, str) else f"{cell.text} {cell.below}" for cell in cells)


# An average over cells is called that, and does not answer what its cells leave open.


def test_an_average_over_cells_that_are_open_is_worded_as_an_average():
    run = build(
        12,
        seed=4,
        rates={"t1": 410.0, "t2": 410.0, "t3": 1690.0, "t4": 1690.0},
        noise=0.035,
        pairs=[("t1", "t2"), ("t3", "t4")],
        void_block=0,
    )
    run = replace(run, design=replace(run.design, factors=STACK, margin=0.05))
    values = told(run)
    assert {one["verdict"] for one in values["verdicts"]} == {"undecided"}
    (effect,) = [one for one in values["factors"]["main_effects"] if one["factor"] == "scheduler"]
    if effect["verdict"] in {"undecided", "not comparable"}:
        return
    item = next(
        item
        for section, block in blocks_of(document(run, analyse(run)))
        if section.id == "factors" and isinstance(block, List)
        for item in block.items
        if "scheduler none" in plain(item.text)
    )
    assert re.search(r"average|mean", around_the_word(item.text)[0], re.IGNORECASE), plain(item.text)
    assert re.search(r"undecided|open|single", " ".join([plain(item.text), *item.reasons])), item


# What nothing distinguishes between two runs shows what the host did.


def reading_back(trial, flush_method):
    """The trial with how its server flushes, as read back."""
    server = {**trial.observed["server"], "innodb_flush_method": flush_method}
    return replace(trial, observed={**trial.observed, "server": server})


def two_runs(*, faster, changed=(), gains=1.0):
    """A run, and one in which all is so much faster.

    ``changed`` are treatments of whose server a setting changed, which ``gains`` them so much more.
    """
    before, after = (observing(build(11, seed=seed, pairs=[("t1", "t2")], void_block=0)) for seed in (3, 5))
    trials = []
    for one in after.trials:
        times = faster * (gains if one.treatment in changed else 1.0)
        metrics = {**one.metrics, "queries_per_second": one.metrics["queries_per_second"] * times}
        trials.append(reading_back(replace(one, metrics=metrics), "O_DIRECT" if one.treatment in changed else "fsync"))
    before = replace(before, trials=[reading_back(one, "fsync") for one in before.trials])
    return before, replace(after, trials=trials)


def test_two_runs_between_which_nothing_changed_show_what_the_host_did():
    before, after = two_runs(faster=1.19)
    after = disturbed(after)
    found = comparison.document(before, after, compare(before, after))
    assert not [one.sentence for one in compared(found) if one.word.is_different]
    headline = found.values()["headline"]
    assert not re.search(r"(is|are) [^.;]*(faster|slower) than before", headline)
    assert "host" in headline
    assert "19 %" in headline, "the shift is shown first"


def test_what_changed_between_two_runs_is_held_against_what_did_not():
    before, after = two_runs(faster=1.19, changed={"t4"})
    found = comparison.document(before, after, compare(before, after))
    assert not [one.sentence for one in compared(found) if one.word.is_different]
    assert re.search(r"\+1[89] %", opening(found)), "the shift is shown first"
    before, after = two_runs(faster=1.19, changed={"t4"}, gains=1.3)
    found = comparison.document(before, after, compare(before, after))
    (one,) = [one for one in compared(found) if one.word.is_different]
    assert one.name.startswith("ssd-sata / none")
    assert one.word == "faster"
    assert one.effect == pytest.approx(0.3, abs=0.05)


# One rule for advice: nothing is said of what was left out, of what stands out beside, nor where others disturbed it.


def test_either_is_not_said_where_a_third_was_dropped():
    run = without(one_factor("device", {"hdd-7200": 400, "ssd-sata": 400, "nvme": 400}, noise=0.004), "t3")
    advice = told(run)["advice"]["text"]
    assert not re.search(r"\b(either|any) device\b", advice)
    assert "all are as good" not in advice


def test_all_is_not_said_where_one_of_four_was_dropped():
    rates = {"hdd-7200": 400, "ssd-sata": 400, "nvme": 400, "ram": 400}
    run = without(one_factor("device", rates, noise=0.004), "t4")
    assert not re.search(r"\ball\b|\b(either|any) device\b", told(run)["advice"]["text"])


def test_either_is_not_said_where_the_latency_of_one_is_ten_times_as_long():
    run = one_factor("scheduler", {"mq-deadline": 400, "none": 400}, section="queue", noise=0.004)
    alike = told(run)["advice"]["text"]
    assert "either scheduler will do" in alike
    run = replace(run, design=replace(run.design, secondary_metrics=["latency_ms_p99"]))
    advice = told(with_figure(run, "t2", "latency_ms_p99", 10))["advice"]["text"]
    assert "either scheduler will do" not in advice or "p99" in advice


def test_a_size_does_not_stand_in_the_headline_without_the_total_that_says_otherwise():
    run = one_factor("scheduler", {"mq-deadline": 100, "none": 104.9}, section="queue", blocks=14, noise=0.004)
    stalled = [
        replace(one, metrics={**one.metrics, "queries_per_second": one.metrics["queries_per_second"] / 14})
        if (one.treatment, one.block) == ("t2", 5)
        else one
        for one in run.trials
    ]
    run = replace(run, trials=stalled)
    values = told(run)
    (verdict,) = values["verdicts"]
    assert verdict["totals"]["apart"]
    assert verdict["totals"]["effect"] > 0.8
    headline = values["headline"]
    assert not re.search(r"\d % faster", headline) or re.search(r"[Aa]verage and typical block disagree", headline), (
        headline
    )


def test_a_knee_stands_in_the_headline_with_its_interval():
    rates = {"100": 100, "200": 101, "400": 108, "800": 109, "1600": 109}
    run = one_factor("io_capacity", rates, section="server.settings", noise=0.01, seed=21)
    values = told(run)
    (line,) = values["curves"][0]["lines"]
    assert (line["knee"]["low"], line["knee"]["high"]) != (line["knee"]["at"],) * 2
    headline = values["headline"]
    if "knee" in headline:
        assert f"{line['knee']['low']} to {line['knee']['high']}" in headline


@pytest.mark.parametrize("best", ["t1", "t2"])
def test_a_winner_under_interference_is_not_yet_one_whether_it_is_the_baseline_or_not(best):
    rates = {"mq-deadline": 500 if best == "t1" else 400, "none": 500 if best == "t2" else 400}
    advice = told(disturbed(one_factor("scheduler", rates, section="queue", blocks=12)))["advice"]["text"]
    assert advice.startswith("Not final")


# Defaults that differ stand where the difference does.


def servers(before, after, *, differ):
    """A run of two servers, one of which logs binary where they ``differ``."""
    run = one_factor("server", {before: 400, after: 140}, section="server")
    old, new = {**OLD, "log_bin": "OFF"}, {**OLD, "log_bin": "ON" if differ else "OFF", "sql_mode": "ANSI"}
    return with_variables(observing(run), {"t1": ("8.4.0", old), "t2": ("9.1.0", new)})


def test_defaults_that_touch_logging_stand_in_the_headline():
    assert "log_bin" in told(servers("mysql-8", "mysql-9", differ=True))["headline"]
    assert "log_bin" not in told(servers("mysql-8", "mysql-9", differ=False))["headline"]


def test_defaults_are_not_said_to_differ_between_a_server_and_itself():
    before, after = (
        with_variables(build(6, seed=seed), dict.fromkeys(("t1", "t2", "t3", "t4"), ("8.4.0", variables)))
        for seed, variables in ((3, OLD), (5, NEW))
    )
    found = comparison.document(before, after, compare(before, after))
    assert "log_bin" in text.render(found)
    assert not re.search(r"between (\S+) and \1(\W|$)", repr(found))


# An emulated drive that is late by more than the margin says nothing of the drive.


def with_late_answers(run, p99_us):
    """The run with answers of its emulated drives so late."""
    late = {"count": 50_000, "min": 0, "mean": 0.9 * p99_us * 1e3, "p50": int(0.9e3 * p99_us), "p90": int(1e3 * p99_us)}
    late |= {"p99": int(1e3 * p99_us), "max": int(2e3 * p99_us)}
    path = {name: {**late} for name in ("path_taken_ns", "path_left_ns")} | {"path_early_ns": {"mean": 0.0}}
    took = {"write": {"count": 50_000, "mean": 1e3 * (80 + 0.9 * p99_us)}}
    device = {"lateness_ns": late, "service_ns": took, **path}
    return replace(run, trials=[replace(one, device=device) for one in run.trials])


def on_a_late_drive(p99_us):
    """Two NVMe drives that differ by 20 %, answers of an emulated drive being so late."""
    return with_late_answers(observing(one_factor("device", {"nvme-1": 10_000, "nvme-2": 12_000})), p99_us)


def test_a_late_emulated_drive_is_a_badge_and_nothing_is_called_faster():
    values = told(on_a_late_drive(p99_us=300))
    assert [one for one in values["badges"] if one["beware"] and re.search(r"\blate", one["text"])]
    (verdict,) = values["verdicts"]
    assert verdict["verdict"] in {"undecided", "not comparable"}
    assert "faster" not in values["headline"]


def test_a_drive_that_is_in_time_is_believed():
    values = told(on_a_late_drive(p99_us=1))
    assert not [one for one in values["badges"] if re.search(r"\blate", one["text"])]
    assert values["verdicts"][0]["verdict"] == "faster"


def four_stacks(times, factors=STACK):
    """Two factors of two levels: the first factor's second level is so many times as fast."""
    rates = {"t1": 400.0, "t2": 400.0, "t3": 400.0 * times, "t4": 400.0 * times}
    run = build(10, seed=4, rates=rates, noise=0.005, pairs=[("t1", "t3"), ("t2", "t4")], void_block=0)
    treatments = [
        Treatment(one.id, dict(zip((factor.name for factor in factors), levels, strict=True)))
        for one, levels in zip(run.design.treatments, product(*(factor.levels for factor in factors)), strict=True)
    ]
    return observing(replace(run, design=replace(run.design, factors=factors, treatments=treatments)))


DRIVES_AND_LOADS = [Factor("device", "stack", ["nvme-1", "nvme-2"]), Factor("load", "workload", ["read", "write"])]


@pytest.mark.parametrize("factors", [STACK, DRIVES_AND_LOADS])
@pytest.mark.parametrize("times", [1.0, 1.2])
def test_an_average_and_a_ranking_are_as_doubtful_as_what_they_are_made_from(times, factors):
    """Lateness that may account for every comparison may account for their average."""
    word = "faster" if times > 1 else "equivalent"
    for p99_us, is_believed in ((1, True), (300, False)):
        values = told(with_late_answers(four_stacks(times, factors), p99_us))
        assert {one["verdict"] for one in values["verdicts"]} == {word if is_believed else "undecided"}
        averages = {one["verdict"] for one in values["factors"]["main_effects"]}
        assert (averages == {"undecided"}) != is_believed
        assert "on average" not in values["headline"]
        if values["ranking"]:
            letters = {one["letters"] for one in values["ranking"]["stacks"]}
            assert (len(letters) > 1) == (is_believed and times > 1)
            assert (" is ahead of " in values["headline"]) == (is_believed and times > 1)


def test_an_average_says_what_lateness_can_not_account_for():
    values = told(with_late_answers(four_stacks(4.0), 10))
    assert {one["verdict"] for one in values["verdicts"]} == {"faster"}
    assert values["factors"]["main_effects"][0]["verdict"] == "faster"


def test_two_runs_are_not_told_apart_by_how_late_their_drives_were():
    for p99_us, word in ((1, "faster"), (300, "undecided")):
        before, after = (with_late_answers(one, p99_us) for one in two_runs(faster=1.0, changed={"t4"}, gains=1.3))
        found = comparison.document(before, after, compare(before, after))
        (one,) = compared(found)
        assert one.word == word
        assert ("late per request" in one.reason) == (word == "undecided")
        assert ("faster than before" in found.values()["headline"]) == (word == "faster")


def test_what_lateness_may_turn_round_has_no_small_p_and_no_other_figure_stands_out():
    """Each bound by itself is sure, one of more and one of less: together they show nothing."""
    run = one_factor("device", {"nvme-1": 10_000, "nvme-2": 10_100})
    run = replace(run, design=replace(run.design, secondary_metrics=["latency_ms_mean"]))
    values = told(with_late_answers(observing(run), 300))
    assert values["verdicts"][0]["verdict"] == "undecided"
    assert values["verdicts"][0]["p"] == 1
    (other,) = values["screened"]
    assert other["low"] < 0 < other["high"]
    assert not other["stands_out"]


def with_emulated_cpu(run):
    """The run in virtual machines whose CPU QEMU emulates, as far as is known for all of the time."""
    guest = {"accelerator": "tcg", "kernel": "6.1", "cpus": 2}
    return replace(run, trials=[replace(one, observed={**one.observed, "guest": guest}) for one in run.trials])


def test_of_two_causes_that_one_is_named_that_reaches_farther():
    run = with_late_answers(observing(one_factor("device", {"nvme-1": 10_000, "nvme-2": 10_050})), 10)
    for shown, lack in ((run, "A_DISK_IN_TIME"), (with_emulated_cpu(run), "A_REAL_CPU")):
        values = told(shown)
        assert values["verdicts"][0]["lacks"] == lack
        assert ("the CPU was emulated" in values["headline"]) == (lack == "A_REAL_CPU")


# A few blocks of a run without a planned end are few, and no effect is too close to anything.


@pytest.mark.parametrize("ended", ["done", "interrupted"])
def test_two_blocks_are_not_too_close_to_the_margin(ended):
    run = one_factor("device", {"hdd-7200": 400, "ssd-sata": 700}, blocks=2)
    run = replace(run, design=replace(run.design, until="open", blocks=100), ended=ended, stopped="")
    (verdict,) = told(run)["verdicts"]
    assert (verdict["lacks"], verdict["blocks_lacking"]) == ("MORE_BLOCKS", 4)
    assert "too close" not in opening_of(run)


# What is the same in fact is not compared, nor averaged, nor ranked.


FLUSH_AND_LOAD = [
    Factor("innodb_flush_method", "server.settings", ["fsync", "O_DIRECT"]),
    Factor("load", "workload", ["read", "write"]),
]


def test_a_setting_that_was_not_granted_has_no_effect_on_average_and_no_place():
    run = four_stacks(1.0, FLUSH_AND_LOAD)
    refused = {"not_granted": {"innodb_flush_method": "it is not supported"}}
    trials = [
        replace(one, observed={**one.observed, "server": {**one.observed["server"], **refused}}) for one in run.trials
    ]
    values = told(replace(run, trials=trials))
    assert {one["verdict"] for one in values["verdicts"]} == {"not comparable"}
    words = {one["factor"]: one["verdict"] for one in values["factors"]["main_effects"]}
    assert words["innodb_flush_method"] == "not comparable"
    assert words["load"] != "not comparable"
    assert {one["verdict"] for one in values["factors"]["interactions"]} == {"not comparable"}
    assert values["ranking"] is None
    assert values["headline"].startswith("Nothing can be compared")


def test_a_place_in_one_test_has_the_interval_of_its_comparison():
    values = told(four_stacks(1.2, DRIVES_AND_LOADS))
    second = next(one for one in values["ranking"]["stacks"] if not one["baseline"])
    for verdict, estimate in zip(values["verdicts"], second["by_test"].values(), strict=True):
        shown = [estimate[end] - 1 for end in ("value", "low", "high")]
        assert shown == pytest.approx([verdict[end] for end in ("effect", "low", "high")])
        assert estimate["n"] == verdict["blocks"]


# Where interference can't be seen that is said first, and nobody is sent to run hundreds of blocks.


def on_an_external_server(noise):
    run = observing(one_factor("scheduler", {"mq-deadline": 400, "none": 404}, section="queue", noise=noise))
    server = {"started_by": "others", "process": "not found", "local": False}
    trials = [replace(one, observed={"server": {**one.observed["server"], **server}}) for one in run.trials]
    return replace(run, trials=trials)


def test_unknown_interference_is_a_badge():
    badges = told(on_an_external_server(0.01))["badges"]
    (badge,) = [one for one in badges if "interference" in one["text"]]
    assert "unknown" in badge["text"]
    assert badge["beware"]
    here = told(observing(one_factor("scheduler", {"mq-deadline": 400, "none": 404}, section="queue")))["badges"]
    assert not [one for one in here if "interference" in one["text"]]


def test_hundreds_of_more_blocks_are_not_advised():
    run = on_an_external_server(0.15)
    values, shown = told(run), opening_of(run)
    assert values["verdicts"][0]["verdict"] == "undecided"
    assert not re.search(r"\b\d{3,} more blocks", shown), shown
    assert re.search(r"not feasible|longer trials", values["advice"]["text"])


# A list of runs shows what each run's own report begins with.


def test_the_list_of_runs_shows_each_headline(tmp_path):
    speed = build(8)
    kept_run(tmp_path / "speed", speed, series_of(speed, samples=20))
    written(tmp_path / "crash", crash_run(blocks=12))
    unfinished = replace(build(4), ended="interrupted", stopped="")
    kept_run(tmp_path / "unfinished", unfinished, series_of(unfinished, samples=20))
    listed = CliRunner().invoke(app, ["runs", str(tmp_path), "--json"])
    assert listed.exit_code == 0, listed.output
    shown = {one["folder"].rpartition("/")[2]: one["headline"] for one in json.loads(listed.stdout)}
    assert len(shown) == 3
    for name, headline in shown.items():
        report = CliRunner().invoke(app, ["report", str(tmp_path / name), "--format", "json"])
        assert report.exit_code == 0, report.output
        assert json.loads(report.stdout)["headline"] == headline
