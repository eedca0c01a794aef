"""Settings that two servers differ in though the study did not set them."""

import json
from dataclasses import replace

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.two_runs.compare import compare
from dbdyno.model.treatment import Treatment
from dbdyno.report import comparison, contents
from dbdyno.report.render import html, text
from dbdyno.report.render import json as json_report

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
    }


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
