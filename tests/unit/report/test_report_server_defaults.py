"""Settings that two servers differ in though the study did not set them."""

import json
from dataclasses import replace

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.server_defaults import compared_settings
from dbdyno.analysis.two_runs import compare
from dbdyno.analysis.verdict.pairs import not_granted
from dbdyno.model.design import Treatment
from dbdyno.model.word import Word
from dbdyno.report import comparison, contents
from dbdyno.report.notes import external_server_lines, remarks
from dbdyno.report.reasons import reason_text
from dbdyno.report.render import html, text
from dbdyno.report.render import json as json_report
from dbdyno.report.sections.badges import badges
from dbdyno.report.sections.server_defaults import defaults_clauses, headline_defaults
from dbdyno.report.sections.warnings import warning_lines
from tests.unit.report.conftest import build

OLD = {
    "innodb_flush_neighbors": "1",
    "innodb_log_file_size": "50331648",
    "log_bin": "OFF",
    "innodb_buffer_pool_size": "33554432",
    "innodb_doublewrite": "ON",
    "query_cache_limit": "1048576",
    "max_allowed_packet": "4194304",
    "sql_mode": "",
    "default_week_format": "0",
}
NEW = {
    "innodb_flush_neighbors": "0",
    "innodb_redo_log_capacity": "104857600",
    "log_bin": "ON",
    "innodb_buffer_pool_size": "134217728",
    "innodb_doublewrite": "1",
    "max_allowed_packet": "67108864",
    "sql_mode": "STRICT<b>",
    "default_week_format": "0",
    "activate_all_roles_on_login": "OFF",
}
TREATMENTS = [Treatment("t1", {"server": "mysql-5.7"}), Treatment("t2", {"server": "mysql-8.0"})]
VARIABLES = {"t1": ("5.7.22", OLD), "t2": ("8.0.33", NEW)}


def with_variables(run, variables):
    """Return the run, its trials of the first block with what their server says of itself."""
    trials = []
    for one in run.trials:
        version, found = variables[one.treatment]
        observed = {**one.observed, "server": {**one.observed["server"], "version": version}}
        trials.append(replace(one, observed=observed, server_variables=found if one.block == 1 else {}))
    return replace(run, trials=trials)


@pytest.fixture
def run(build):
    made = build(6, rates={"t1": 400.0, "t2": 600.0}, pairs=[("t1", "t2")], treatments=TREATMENTS)
    return with_variables(replace(made, study={"server": {"settings": {"innodb-buffer-pool-size": "32M"}}}), VARIABLES)


def test_those_that_matter_to_storage_come_first_and_what_the_study_sets_is_left_out(run):
    (found,) = analyse(run).server_defaults
    assert (found.before, found.after) == ("mysql-5.7", "mysql-8.0")
    assert [(one.name, one.before, one.after) for one in found.differing] == [
        ("log_bin", "OFF", "ON"),
        ("innodb_flush_neighbors", "1", "0"),
        ("innodb_redo_log_capacity", "absent", "104857600"),
        ("innodb_log_file_size", "50331648", "absent"),
        ("sql_mode", "", "STRICT<b>"),
        ("max_allowed_packet", "4194304", "67108864"),
    ]
    assert [one.matters for one in found.differing] == [True] * 5 + [False]
    assert (found.only_before, found.only_after) == (["query_cache_limit"], ["activate_all_roles_on_login"])


def test_a_terminal_names_a_few_and_a_page_all_of_them(run):
    document = contents.document(run, analyse(run))
    brief = " ".join(text.render(document, brief=True).split())
    assert "Defaults differ, mysql-5.7 -> mysql-8.0: log_bin OFF -> ON, innodb_flush_neighbors 1 -> 0," in brief
    assert "innodb_log_file_size 50331648 -> absent, 4 more on the page (--html FILE)." in brief
    assert "max_allowed_packet" not in brief
    page = html.render(document)
    assert "Defaults that differ between mysql-5.7 and mysql-8.0" in page
    assert "67108864" in page
    assert "STRICT&lt;b&gt;" in page
    (stored,) = json.loads(json_report.render(document))["server_defaults"]
    assert stored["differing"][2] == {
        "name": "innodb_redo_log_capacity",
        "before": None,
        "after": "104857600",
        "matters": True,
        "concern": None,
    }
    assert stored["differing"][0]["concern"] == "logging"
    assert stored["treatments"] == [{"before": "t1", "after": "t2"}]


def test_one_server_or_nothing_known_of_it_is_no_difference(run, build):
    assert analyse(build(4)).server_defaults == []
    unknown = replace(run, trials=[replace(one, server_variables={}) for one in run.trials])
    assert analyse(unknown).server_defaults == []
    assert "Defaults differ" not in text.render(contents.document(unknown, analyse(unknown)))


def test_two_runs_with_different_servers(build):
    first, second = build(6), build(6, seed=9)
    before = with_variables(first, dict.fromkeys(("t1", "t2", "t3", "t4"), ("10.5.29", OLD)))
    after = with_variables(second, dict.fromkeys(("t1", "t2", "t3", "t4"), ("10.11.19", NEW)))
    compared = compare(before, after)
    (found,) = compared.server_defaults
    assert (found.before, found.after) == ("10.5.29", "10.11.19")
    shown = " ".join(text.render(comparison.document(before, after, compared)).split())
    assert "Defaults differ, 10.5.29 -> 10.11.19: log_bin OFF -> ON" in shown
    assert compare(before, before).server_defaults == []


def clauses(before, after, names=("mariadb-11.8", "mysql-9"), asked=()):
    found = compared_settings(*names, before, after, asked)
    return defaults_clauses([found] if found else [])


def test_the_headline_is_told_of_a_binary_log_on_one_side_alone(run):
    found = analyse(run).server_defaults
    told = (
        "mysql-8.0 writes a binary log (log_bin) and mysql-5.7 does not: not set by the study, so part of what was"
        " compared."
    )
    assert headline_defaults(found, [("t1", "t2")]) == told
    assert headline_defaults(found, [("t2", "t1"), ("t1", "t3")]) == "", (
        "other comparisons than those that it speaks of"
    )
    asked = replace(run, study={"server": {"settings": {"log_bin": False}}})
    assert headline_defaults(analyse(asked).server_defaults, [("t1", "t2")]) == ""


def test_what_a_binary_log_does_counts_only_where_both_sides_write_one():
    without = {"log_bin": "OFF", "sync_binlog": "0", "binlog_format": "MIXED"}
    written = {"log_bin": "ON", "sync_binlog": "1", "binlog_format": "ROW"}
    assert clauses(without, {**written, "log_bin": "OFF"}) == []
    assert clauses(without, written) == ["mysql-9 writes a binary log (log_bin) and mariadb-11.8 does not"]
    syncs = "mysql-9 syncs its binary log at each commit and mariadb-11.8 leaves syncing its binary log to the kernel"
    has = "mariadb-11.8 has binlog_format MIXED and mysql-9 has binlog_format ROW"
    assert clauses({**without, "log_bin": "ON"}, written) == [syncs, has]


@pytest.mark.parametrize(
    ("name", "before", "after", "told"),
    [
        (
            "innodb_flush_log_at_trx_commit",
            "2",
            "1",
            "mariadb-11.8 syncs its redo log once a second and mysql-9 syncs its redo log at each commit",
        ),
        ("innodb_doublewrite", "OFF", "1", "mysql-9 writes each page twice and mariadb-11.8 does not"),
        ("general_log", "ON", "OFF", "mariadb-11.8 logs every statement (general_log) and mysql-9 does not"),
        ("innodb_flush_method", "", "fsync", None),  # the same: MySQL up to 5.7 shows nothing
        ("innodb_doublewrite", "ON", "1", None),
        ("log_bin", "absent", "ON", None),
        ("sort_buffer_size", "1", "2", None),
    ],
)
def test_what_a_setting_does_is_put_into_words(name, before, after, told):
    assert clauses({"a": "0", name: before}, {"a": "1", name: after}) == ([told] if told else [])


def test_many_servers_share_a_clause_and_many_clauses_are_counted(build):
    treatments = [Treatment(f"t{place}", {"server": name}) for place, name in enumerate("abcd", start=1)]
    rates = {one.id: 400.0 for one in treatments}
    made = build(6, rates=rates, pairs=[("t1", id_) for id_ in ("t2", "t3", "t4")], treatments=treatments)
    lax = {"log_bin": "OFF", "innodb_doublewrite": "OFF", "general_log": "OFF", "slow_query_log": "OFF"}
    strict = dict.fromkeys(lax, "ON")
    variables = {"t1": ("1", lax), "t2": ("2", strict), "t3": ("3", strict), "t4": ("4", {**lax, "log_bin": "ON"})}
    found = analyse(with_variables(made, variables)).server_defaults
    assert headline_defaults(found, [("t1", "t2"), ("t1", "t3"), ("t1", "t4")]) == (
        "b, c and d write a binary log (log_bin) and a does not; b and c write each page twice and a does not; "
        "2 more differences like that: not set by the study, so part of what was compared."
    )
    assert headline_defaults(found, [("t1", "t4")]).startswith("d writes a binary log (log_bin) and a does not:")


def test_servers_of_one_name_are_told_apart_by_their_run(build):
    ids = ("t1", "t2", "t3", "t4")
    before = with_variables(build(6), dict.fromkeys(ids, ("10.11.19", {**OLD, "only_once": "1"})))
    after = with_variables(build(6, seed=9), dict.fromkeys(ids, ("10.11.19", NEW)))
    compared = compare(before, after)
    document = comparison.document(before, after, compared)
    shown, page = " ".join(text.render(document).split()), html.render(document)
    assert "Settings of 10.11.19 differ between the runs: log_bin OFF -> ON" in shown
    assert "Settings of 10.11.19 that differ between the runs" in page
    assert "Only the server before has 2 further settings: only_once, query_cache_limit." in page
    assert "between 10.11.19 and 10.11.19" not in page


# What is said of servers that ran already.


ANEW, ONCE = {"loaded": "anew for each trial"}, {"loaded": "once, as the load only reads"}


def with_servers(given):
    """A run whose treatments observed these: id -> (server, data)."""
    run = build(blocks=2, void_block=0, rates=dict.fromkeys(given, 400.0), pairs=[])
    trials = []
    for trial in run.trials:
        server, data = given[trial.treatment]
        trials.append(replace(trial, observed={"server": server, "data": data}))
    return replace(run, trials=trials)


def running(process, *, local):
    return {"started_by": "others", "process": process, "local": local}


def test_nothing_is_said_of_servers_of_our_own_or_of_odd_folders():
    assert external_server_lines(with_servers({"t1": ({"version": "10"}, {"from": "tree"}), "t2": ("odd", 1)})) == []


def test_where_the_process_is_watched_only_what_is_below_is_unknown():
    lines = external_server_lines(with_servers({"t1": (running("found", local=True), ANEW)}))
    assert lines == [
        "The server is external and was not restarted between trials: what it keeps in memory stayed warm.",
        "The data was loaded anew for each trial, and dropped at the end.",
        "The server's disks, filesystem and memory limit are unknown.",
    ]


def test_which_trials_started_from_fresh_data_and_what_nobody_saw_is_told():
    given = {"t1": (running("unknown", local=False), ANEW), "t2": (running("unknown", local=False), ONCE)}
    lines = external_server_lines(with_servers(given))
    assert "The data of hdd-7200 / mq-deadline was loaded anew for each trial, and dropped at the end." in lines
    assert "The data of hdd-7200 / none was loaded once, as the load only reads, and dropped at the end." in lines
    assert lines[-2].startswith("Facts about host and processors are about the load")
    assert lines[-1] == (
        "These are unknown, too, because its process is elsewhere: the server's CPU, and the interference that trials "
        "met; no block was repeated for that."
    )


# A setting that the host did not grant stands beside every verdict that it bears on, and above all of them.


SAID = "Couldn't allocate 130023424 bytes"


def analysed(*in_vain, off="OFF"):
    """Analyse a run in which these treatments have large pages in name only, and the others have not."""
    run = build()
    trials = []
    for one in run.trials:
        lacking = one.treatment in in_vain
        server = {**one.observed.get("server", {}), "large_pages": "ON" if lacking else off}
        server |= {"not_granted": {"large_pages": SAID}} if lacking else {}
        trials.append(replace(one, observed={**one.observed, "server": server}))
    run = replace(run, trials=trials)
    return run, analyse(run)


def beside(analysis, level):
    return [one for found in analysis.verdicts if found.level_id == level for one in remarks(found, analysis)]


def test_a_comparison_of_what_was_not_granted_with_nothing_says_so():
    run, analysis = analysed("t3")
    labels = run.design.labels
    (said, *_) = beside(analysis, "t3")
    both = f", so {labels['t3']} and {labels['t1']} were both measured without it"
    assert said == f"The host did not grant large_pages = ON to {labels['t3']}{both}. The server's log: {SAID}."
    assert not any("did not grant" in one for one in beside(analysis, "t2"))
    assert any("did not grant large_pages = ON" in one for one in warning_lines(run, analysis))


def test_where_the_other_was_granted_it_the_comparison_stands_for_itself():
    _, analysis = analysed("t3", off="ON")
    (said, *_) = beside(analysis, "t3")
    assert "both" not in said


def test_what_no_treatment_was_granted_is_said_once_and_beside_no_verdict():
    run, analysis = analysed("t1", "t2", "t3", "t4")
    assert not any("did not grant" in one.casefold() for level in ("t2", "t3", "t4") for one in beside(analysis, level))
    assert [line for line in warning_lines(run, analysis) if "did not grant" in line] == [
        f"The host did not grant large_pages = ON to any treatment: the server's log says {SAID}."
    ]


@pytest.mark.parametrize(("in_vain", "off"), [(["t2"], "OFF"), (["t1", "t2"], "OFF")])
def test_two_that_differ_in_a_setting_not_granted_alone_are_not_compared(in_vain, off):
    run, _ = analysed(*in_vain, off=off)
    levels = {"t1": {"server.large_pages": "false"}, "t2": {"server.large_pages": "true"}}
    treatments = [replace(one, levels=levels[one.id]) for one in run.design.treatments if one.id in levels]
    comparisons = [one for one in run.design.comparisons if {one.level, one.baseline} == set(levels)]
    design = replace(run.design, treatments=treatments, comparisons=comparisons)
    run = replace(run, design=design, trials=[one for one in run.trials if one.treatment in levels])
    (finding,) = analyse(run).verdicts
    assert finding.verdict is Word.NOT_COMPARABLE
    label = run.design.labels[in_vain[-1] if len(in_vain) == 1 else finding.level_id]
    assert reason_text(finding.reason).startswith(f"the host did not grant large_pages = ON to {label}")


def test_two_levels_of_a_setting_that_changes_nothing_on_the_host_are_not_compared():
    why, run = "this host has no swap", build()
    pair = {"t1": "60", "t2": "1"}
    treatments = [replace(one, levels={"swappiness": pair[one.id]}) for one in run.design.treatments if one.id in pair]
    comparisons = [one for one in run.design.comparisons if {one.level, one.baseline} == set(pair)]
    trials = [
        replace(
            one, observed={**one.observed, "host_settings": {"swappiness": value, "no_effect": {"swappiness": why}}}
        )
        for one in run.trials
        if (value := pair.get(one.treatment))
    ]
    run = replace(run, design=replace(run.design, treatments=treatments, comparisons=comparisons), trials=trials)
    analysis = analyse(run)
    (finding,) = analysis.verdicts
    assert finding.verdict is Word.NOT_COMPARABLE
    assert f"changes nothing on this host for {finding.level} ({why})" in reason_text(finding.reason)
    assert f"swappiness = 1 changes nothing on this host: {why}." in list(warning_lines(run, analysis))
    (badge,) = [one for one in badges([(run, analysis.blocks)]).data["badges"] if "without effect" in one["text"]]
    assert badge["beware"]


def test_it_is_a_badge():
    run, analysis = analysed("t3")
    found = badges([(run, analysis.blocks)]).data["badges"]
    (badge,) = [one for one in found if one["text"] == "a setting was not granted"]
    assert badge["beware"]
    assert "large_pages = ON" in badge["title"]


@pytest.mark.parametrize("odd", [None, 3, "text", ["a"], {}, {"large_pages": {"a": 1}}])
def test_an_odd_run_folder_is_none(odd):
    run = build()
    trials = [replace(one, observed={"server": {"not_granted": odd}}) for one in run.trials]
    assert {one.name for one in not_granted(trials)} <= {"large_pages"}
    assert not_granted([replace(trials[0], observed={"server": 3})]) == ()
