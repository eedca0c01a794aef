"""Two runs against each other, in words."""

import json
from dataclasses import replace

import pytest

from dbdyno.analysis.two_runs import compare
from dbdyno.model.design import Factor
from dbdyno.report.comparison import document
from dbdyno.report.render import json as json_report
from dbdyno.report.render import markdown, text

RATES = {"t1": 410.0, "t2": 398.0, "t3": 1690.0, "t4": 1702.0}


@pytest.fixture
def runs(build):
    """Return a run, and one after an upgrade that made t3 faster by 12 %."""
    study = {"stack": {"device": ["hdd-7200", "ssd-sata"]}, "server": {"settings": {"innodb_buffer_pool_size": "64M"}}}
    before = replace(build(8), study=study)
    after = build(10, seed=8, rates={**RATES, "t3": 1690.0 * 1.12})
    changed = {"stack": study["stack"], "server": {"settings": {"innodb_buffer_pool_size": "128M"}}}
    return before, replace(after, study=changed, versions={**after.versions, "mariadb": "11.8.2"})


def told(runs, **options):
    return document(*runs, compare(*runs, **options))


def as_text(found):
    return text.render(found)


def as_markdown(found):
    return markdown.render(found)


def as_json(found):
    return json_report.render(found)


def test_text_and_markdown(runs, snapshot):
    found = told(runs, control="hdd-7200 / none")
    assert as_text(found) == snapshot(name="text")
    assert as_markdown(found) == snapshot(name="markdown")


def test_text_where_nothing_changed_and_where_some_did_not(build, snapshot):
    """The host is 19 % faster after; then two of four treatments have another scheduler as well, and gain by it."""
    before, moved = build(8), build(8, seed=9, rates={id_: rate * 1.19 for id_, rate in RATES.items()})
    assert as_text(told((before, moved))) == snapshot(name="nothing changed")
    gained = build(8, seed=9, rates={**{id_: rate * 1.19 for id_, rate in RATES.items()}, "t2": 398.0 * 1.4})
    trials = [
        replace(trial, observed={**trial.observed, "queue": {"scheduler": "kyber"}})
        if trial.treatment in {"t2", "t4"}
        else trial
        for trial in gained.trials
    ]
    assert as_text(told((before, replace(gained, trials=trials)))) == snapshot(name="some changed")
    busy = [replace(trial, disturbance={"beyond": {"foreign_cpu": 0.4}}) for trial in trials]
    assert as_text(told((before, replace(gained, trials=busy)))) == snapshot(name="interference")


@pytest.mark.parametrize("render", [as_text, as_markdown, as_json])
def test_the_warning_is_never_missing(runs, render):
    for options in ({}, {"control": "hdd-7200 / none"}, {"margin": 0.5}):
        assert "were not interleaved" in " ".join(render(told(runs, **options)).split())
    assert "by --control. The others" in render(told(runs))
    assert "by --control. The others" not in render(told(runs, control="hdd-7200 / none"))


@pytest.mark.parametrize("render", [as_text, as_markdown, as_json])
def test_another_load_is_warned_of(build, render):
    before, after = (replace(build(8), study={"workload": {"clients": "4, 8", "queries": n}}) for n in (2500, 5000))
    said = " ".join(render(told((before, after))).split())
    assert "The load was not the same (queries): part of the difference may come from the load." in said
    assert "The load was not" not in render(told((before, before)))


def test_a_load_that_both_runs_vary_is_in_their_labels(build):
    def varied(levels):
        run = build(8)
        factors = [Factor("clients", "workload", levels)]
        return replace(run, study={"workload": {"clients": levels}}, design=replace(run.design, factors=factors))

    assert "The load was not" not in as_text(told((varied(["4", "8"]), varied(["8", "16"]))))


def test_json(runs):
    found = json.loads(as_json(told(runs)))
    assert [one["verdict"] for one in found["changes"]][2] == "faster"
    third = found["changes"][2]
    assert third["low"] < 0.12 < third["high"]
    assert (third["trials_before"], third["trials_after"]) == (8, 10)
    assert (found["control"], found["against_control"]) == (None, [])
    names = {(one["what"], one["name"]): (one["before"], one["after"]) for one in found["differences"]}
    assert names["version", "mariadb"] == ("10.11.14", "11.8.2")
    assert names["study", "server.settings.innodb_buffer_pool_size"] == ("64M", "128M")
    assert ("study", "stack.device") not in names


def test_what_was_read_back_otherwise(runs):
    before, after = runs
    trials = [
        replace(trial, observed={**trial.observed, "queue": {"scheduler": "bfq", "seen": trial.id}})
        if trial.treatment == "t2"
        else trial
        for trial in after.trials
    ]
    found = told((before, replace(after, trials=trials))).values()["differences"]
    (seen,) = [one for one in found if one["what"] == "observed"]
    values = {"name": "queue.scheduler", "before": "none", "after": "bfq", "of": ("hdd-7200 / none",)}
    assert seen == {"what": "observed", **values}


def test_what_is_of_a_moment_is_no_difference(runs):
    before, after = (
        replace(run, host={**run.host, "load_average_1min": load}) for run, load in zip(runs, (0, 2), strict=True)
    )
    assert not [one for one in told((before, after)).values()["differences"] if one["name"] == "load_average_1min"]


def test_a_control_that_moved_says_that_the_host_did(build):
    before, after = build(8), build(8, seed=9, rates={id_: rate * 1.2 for id_, rate in RATES.items()})
    said = " ".join(as_text(told((before, after), control="hdd-7200 / none")).split())
    assert "so the host changed" in said
    assert "Against the control hdd-7200 / none" in said


def test_a_control_that_moved_within_the_margin_says_so_too(build):
    """Equivalent is not unchanged: p tells that the host moved, by less than anyone cares for."""
    runs = [
        build(8, seed=8 + i, noise=0.002, rates={id_: r * f for id_, r in RATES.items()})
        for i, f in ((0, 1), (1, 1.01))
    ]
    said = " ".join(as_text(told(runs, control="hdd-7200 / none")).split())
    assert "hdd-7200 / none is equivalent before and after" in said
    assert "so the host changed, by less than the margin" in said
    assert "nothing speaks for" not in said


def test_a_drift_inside_a_run_is_told(build):
    before = build(10, noise=0.003)
    drifting = [
        replace(t, metrics={**t.metrics, "queries_per_second": t.metrics["queries_per_second"] * (1 + 0.01 * place)})
        for place, t in enumerate(before.trials)
    ]
    said = " ".join(as_text(told((before, replace(before, trials=drifting)))).split())
    assert "In the run after the host drifted by +" in said
    assert "inside the run before" not in said


def test_untrusted_text_is_made_fit_to_print(runs):
    before, after = runs
    evil = replace(after, versions={"x": "\x1b[31m<b>*bold*</b>\n# heading"})
    for render in (as_text, as_markdown, as_json):
        assert "\x1b" not in render(told((before, evil)))
    assert "<b>" not in as_markdown(told((before, evil)))
    assert "\n# heading" not in as_markdown(told((before, evil)))
