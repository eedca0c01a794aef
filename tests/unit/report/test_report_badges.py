"""Badges: what a result rests on, at a glance, in every format; only what says something."""

import json
import re
from dataclasses import replace

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.report.sections.badges import badges
from tests.unit.report.rendered import as_json, as_markdown, as_page, as_text

HOST = {"cores": 2, "cpu": {"model": "AMD EPYC"}, "virtualisation": {"hypervisor_flag": "yes"}}
SERVER = {
    "version": "10.11.19-MariaDB-0+deb12u1",
    "version_comment": "Debian 12",
    "innodb_flush_log_at_trx_commit": "1",
    "default_storage_engine": "InnoDB",
}


@pytest.fixture
def calm(build):
    """A run that nothing speaks against."""
    return observing(replace(build(void_block=0), host=HOST))


def observing(run, **layers):
    observed = {"device": {"kind": "emulated", "model": "hdd-7200"}, "server": SERVER}
    seen = {name: {**observed.get(name, {}), **layers.get(name, {})} for name in {**observed, **layers}}
    return replace(run, trials=[replace(trial, observed=seen) for trial in run.trials])


def shown(run):
    return json.loads(as_json(run, analyse(run)))["badges"]


def texts(run):
    return [one["text"] for one in shown(run)]


def test_a_calm_run_says_what_it_was_measured_on_and_warns_of_nothing(calm):
    assert texts(calm) == [
        "emulated disk",
        "MariaDB 10.11.19",
        "2025-01-01",
        "AMD EPYC, 2 cores, virtual",
        "commits durable",
    ]
    assert not any(one["beware"] for one in shown(calm))


@pytest.mark.parametrize(
    ("kind", "text"),
    [("real", "real disk"), ("here", "this host's disk"), ("external", "external server"), ("other", "disk other")],
)
def test_the_stack_is_named(calm, kind, text):
    assert texts(observing(calm, device={"kind": kind}))[0] == text


def test_two_servers_are_both_named_and_three_are_counted(calm):
    def serving(*versions):
        numbered = zip(calm.trials, versions * len(calm.trials), strict=False)
        return replace(calm, trials=[replace(t, observed={"server": {**SERVER, "version": v}}) for t, v in numbered])

    assert "MySQL 8.4.3 and MariaDB 11.4.2" in texts(serving("8.4.3", "11.4.2-MariaDB"))
    assert "3 server versions" in texts(serving("8.0.40", "8.4.3", "11.4.2-MariaDB"))


def test_what_makes_a_result_less_sure_is_marked_and_leads_to_where_it_stands(calm):
    first, second, *rest = calm.trials
    beyond = {"beyond": ["foreign_cpu"], "foreign_cpu": 0.4, "limits": {"foreign_cpu": 0.05}}
    failed = {"kind": "oltp", "errors": [{"code": 1213, "count": 7, "message": "Deadlock found"}]}
    cache = {"fast_cache": {"bytes": 1e9, "drive_bytes": 2e9, "ran_out_s": 1.5}}
    trials = [replace(first, disturbance=beyond), replace(second, load=failed, device=cache), *rest]
    told = replace(calm, trials=trials, ended="interrupted")
    found = {one["text"]: one for one in shown(told) if one["beware"]}
    assert list(found) == ["not finished", "interference in 1 of 32 trials", "cache ran out", "7 deadlocks, retried"]
    assert found["7 deadlocks, retried"]["title"].startswith("7 deadlocks, retried, in ")
    page = as_page(told, analyse(told))
    links = set(re.findall(r'class="badge[^"]*" href="#([^"]+)"', page))
    assert {"s-disturbed", "s-verdicts", "s-notes", "s-reproduce", "s-observed"} == links
    assert all(f'id="{link}"' in page for link in links)


def test_trials_that_no_verdict_rests_on_are_no_reason_to_warn(build):
    run = build()
    void = {(one.block, one.attempt) for one in run.failures}
    beyond = {"beyond": ["foreign_cpu"], "foreign_cpu": 0.4}
    trials = [replace(t, disturbance=beyond) if (t.block, t.attempt) in void else t for t in run.trials]
    assert not any("interference" in text for text in texts(replace(run, trials=trials)))


def disk(late_us, model_us):
    """What an emulated disk says that was asked 5000 times."""
    took = {"count": 5000, "mean": 1e3 * (late_us + model_us)}
    return {"service_ns": {"write": took}, "lateness_ns": {"count": 5000, "mean": 1e3 * late_us}}


def with_disk(run, late_us, *treatments):
    late = {"t1": 1.0, **dict.fromkeys(treatments, late_us)}
    trials = [replace(one, device=disk(late.get(one.treatment, 1.0), 80.0)) for one in run.trials]
    return replace(run, trials=trials)


def test_a_disk_whose_lateness_exceeds_the_margin_is_a_badge(calm):
    found = shown(with_disk(calm, 312.0, "t2", "t3"))
    (badge,) = [one for one in found if "disk late" in one["text"]]
    assert badge["text"] == "emulated disk late by 312 us"
    assert badge["title"].startswith("Its answers came 312 us late per request, of the 392 us that one took (")
    assert badge["beware"]
    assert not any("disk late" in text for text in texts(with_disk(calm, 2.0, "t2")))
    early = texts(with_disk(calm, -60.0, "t3"))
    assert "emulated disk early by 60.0 us" in early


def test_only_those_trials_of_a_late_disk_count_that_verdicts_rest_on(build):
    run = replace(build(), host=HOST)
    void = {(one.block, one.attempt) for one in run.failures}
    trials = [replace(t, device=disk(900.0, 80.0)) if (t.block, t.attempt) in void else t for t in run.trials]
    assert not any("disk late" in text for text in texts(replace(run, trials=trials)))


def test_interference_that_nobody_could_see_is_a_badge(calm):
    outside = {"started_by": "others", "process": "unknown", "local": False}
    everywhere = observing(calm, server={**SERVER, **outside})
    (badge,) = [one for one in shown(everywhere) if "interference" in one["text"]]
    assert badge["text"] == "interference unknown"
    assert badge["beware"]
    assert "no block was repeated for that" in badge["title"]
    seen = observing(calm, server={**SERVER, **outside, "process": "found", "local": True})
    assert not any("interference" in text for text in texts(seen))
    some = [a if a.treatment == "t2" else b for a, b in zip(everywhere.trials, calm.trials, strict=True)]
    assert "interference unknown in 8 of 32 trials" in texts(replace(calm, trials=some))


def test_commits_that_may_be_lost_say_why_and_with_what(calm):
    lax = {"server": {**SERVER, "innodb_flush_log_at_trx_commit": "2"}}
    trials = [replace(one, observed=lax) if one.treatment == "t2" else one for one in calm.trials]
    found = next(one for one in shown(replace(calm, trials=trials)) if "durable" in one["text"])
    assert found["text"] == "commits not durable in 1 of 4"
    assert "innodb_flush_log_at_trx_commit = 2" in found["title"]
    assert "(hdd-7200 / none)" in found["title"]
    assert found["beware"]


def test_every_format_has_them_and_escapes_what_a_server_said(calm):
    told = observing(calm, server={**SERVER, "version": "9<b>|*x*-MariaDB"})
    analysis = analyse(told)
    assert "emulated disk · MariaDB 9<b>|*x* · 2025-01-01" in " ".join(as_text(told, analysis).split())
    assert r"MariaDB 9\<b\>\|\*x\*" in as_markdown(told, analysis)
    assert "MariaDB 9&lt;b&gt;|*x*" in as_page(told, analysis)


def test_an_old_or_empty_folder_has_unknown_facts(build):
    run = replace(build(2, void_block=0), host={})
    bare = replace(run, trials=[replace(one, observed={}, started_at="") for one in run.trials])
    assert texts(bare) == ["disk unknown", "host unknown"]
    assert [one["text"] for one in badges([(replace(bare, trials=[]), analyse(bare).blocks)]).data["badges"]]
