"""What a report says of hosts: two claims apart, what is fixed to hosts, which host is odd."""

import json
from dataclasses import replace

import pytest

from dbdyno.analysis.analyse import analyse
from tests.unit.report.fleet_runs import on_hosts, same_on_hosts
from tests.unit.report.rendered import as_json, as_markdown, as_page, as_text

DRIVES = {"drive": {f"db{number}": "hdd" if number <= 4 else "ssd" for number in range(1, 9)}}


def said(run):
    return " ".join(as_text(run, analyse(run), 1000).split())


def test_both_claims_stand_apart():
    text = said(on_hosts([0.15, 0.01, 0.10, 0.0]))
    assert "On these 4 hosts: " in text
    assert "On hosts like these nothing is shown, by 4 hosts: the effect differs too much between so few hosts." in text
    assert "On hosts like these nothing is shown: the effect differs too much between so few hosts (4 hosts, +" in text
    assert "The effect differs between these hosts by a standard deviation of " in text
    text = said(on_hosts([0.10, 0.11, 0.09, 0.10]))
    assert "On hosts like these the same is shown, by 4 hosts." in text
    assert "On hosts like these it is faster, too (4 hosts, +1" in text
    text = said(on_hosts([0.0, 0.001, -0.001, 0.0], noise=0.003))
    excluded = "; rarer kinds of hosts (fewer than 53 % of all) could have been missed."
    assert "On hosts like these it is equivalent, too, within 3 % (4 hosts, " in text
    assert text.count(excluded) == 2  # beside the verdict, and in the section
    text = said(on_hosts([0.1, 0.1]))
    assert "On hosts like these nothing is shown, by 2 hosts: at least 3 hosts are needed." in text


def test_text_and_markdown(snapshot):
    run = on_hosts([0.15, 0.01, 0.10, 0.0, 0.02, 0.05, 0.07, 0.02], levels=DRIVES, speeds=[0.0] * 4 + [0.4] * 4)
    plain, marked = as_text(run, analyse(run)), as_markdown(run, analyse(run))
    assert plain.split("\nHosts\n")[1].split("\nStopped")[0] == snapshot(name="text")
    assert marked.split("## Hosts")[1].split("\n## ")[0] == snapshot(name="markdown")


def test_levels_of_hosts_are_said_in_a_word():
    text = said(on_hosts([0.0] * 8, levels=DRIVES, speeds=[0.0, 0.01, 0.02, 0.0] + [0.4] * 4))
    assert "drive ssd is faster than hdd: +4" in text
    assert "4 and 4 hosts, p = 0.029)" in text
    text = said(on_hosts([0.0] * 2, levels={"drive": {"db1": "hdd", "db2": "ssd"}}, speeds=[0.0, 0.4]))
    assert "Whether drive ssd differs from hdd is not shown: each level has only one host, db2 against db1, +5" in text
    assert "the figure includes everything else that differs between the two." in text


def test_an_a_a_run_names_the_odd_host(snapshot):
    run = same_on_hosts([0.0, 0.01, -0.01, 0.005, -0.2, 0.0])
    assert "Hosts differ by a standard deviation of " in said(run)
    assert "Different from the other hosts: db5 (-1" in said(run)
    assert as_text(run, analyse(run)).split("\nHosts\n")[1].split("\nStopped")[0] == snapshot
    assert "No host stands out" in said(same_on_hosts([0.0, 0.01, -0.01, 0.005]))
    assert "can be found only among 4 hosts or more" in said(same_on_hosts([0.0, 0.01, -0.2]))


def test_the_facts_in_which_hosts_differ_are_shown():
    facts = {"cores": 8, "cpu": {"model": "Xeon"}, "load_average_1min": 0.1}
    hosts = {"db1": facts, "db2": {**facts, "cpu": {"model": "EPYC"}, "load_average_1min": 0.7}, "db3": facts}
    run = replace(on_hosts([0.1, 0.1, 0.12]), hosts=hosts)
    assert "fact db1 db2 db3 cpu.model Xeon EPYC Xeon The verdicts" in said(run)
    assert "load_average" not in said(run)
    assert "3 hosts · durability" in said(run)
    alike = replace(run, hosts=dict.fromkeys(hosts, facts))
    assert "fact db1" not in said(alike)
    assert "3 hosts · durability" in said(alike)


def test_json_has_all_of_it():
    levels = {"drive": {"db1": "hdd", "db2": "ssd", "db3": "ssd", "db4": "ssd"}}
    fleet = on_hosts([0.10, 0.11, 0.09, 0.10], levels=levels)
    found = json.loads(as_json(fleet, analyse(fleet)))["hosts"]
    assert found["blocks"] == {"db1": 6, "db2": 6, "db3": 6, "db4": 6}
    (like,) = found["like_these"]
    assert (like["word"], like["reason_code"], like["method"], like["hosts"]) == ("faster", "DIFFERENT", "t", 4)
    assert like["low"] < like["effect"] < like["high"]
    assert [one["host"] for one in like["by_host"]] == ["db1", "db2", "db3", "db4"]
    (level,) = found["levels"]
    assert (level["word"], level["reason_code"], level["low"]) == ("not shown", "TOO_FEW_HOSTS", None)
    same = same_on_hosts([0.0, 0.01, -0.01, 0.005, -0.2])
    noise = json.loads(as_json(same, analyse(same)))["hosts"]["noise"]
    assert [one["host"] for one in noise["hosts"] if one["odd"]] == ["db5"]


@pytest.mark.parametrize("fleet", [on_hosts([0.1, 0.1, 0.12]), same_on_hosts([0.0, 0.1, 0.0, 0.0])])
def test_the_page_has_the_section(fleet, run):
    assert "Hosts under test: db1" in as_page(fleet, analyse(fleet), {})
    assert "Hosts under test" not in as_page(run, analyse(run), {})


DATA = {
    ("", "", ""): ("", {}),
    ("a", "a", "a"): ("All hosts began with the same prepared data, byte for byte.", "a"),
    ("a", "b", "a"): (
        "data: db1 and db3 with the same bytes; db2 with data prepared there.",
        "b",
    ),
    ("a", "a", None): (
        "Whether all hosts began with the same bytes is unknown of db3: its data were not kept.",
        "a",
    ),
}


@pytest.mark.parametrize("bytes_of", DATA, ids=str)
def test_whether_all_began_with_the_same_bytes_is_said(bytes_of):
    run = on_hosts([0.10, 0.11, 0.09])
    of = dict(zip(("db1", "db2", "db3"), bytes_of, strict=True))

    def began(trial):
        sha256 = of[trial.host]
        return replace(trial, image="" if sha256 == "" else "mariadb", image_sha256=sha256 or "")

    made = replace(run, trials=[began(trial) for trial in run.trials])
    sentence, second = DATA[bytes_of]
    assert sentence in said(made)
    assert ("the same bytes" in said(made) or "byte for byte" in said(made)) == bool(sentence)
    found = json.loads(as_json(made, analyse(made)))["hosts"]["data_sha256"]
    assert found == ({host: [sha256] for host, sha256 in of.items()} if sentence else {})
    assert not sentence or found["db2"] == [second]
