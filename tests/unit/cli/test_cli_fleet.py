"""``dbdyno report`` of a study on several hosts, from its run folder alone."""

import csv
import json
from dataclasses import replace

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.store.run_folder import read_run
from tests.run_folders import written
from tests.unit.report.fleet_runs import on_hosts

LEVELS = {"drive": {"db1": "hdd", "db2": "ssd", "db3": "ssd"}}


@pytest.fixture(scope="module")
def run():
    facts = {name: {"cores": cores} for name, cores in (("db1", 2), ("db2", 4), ("db3", 4))}
    return replace(on_hosts([0.1, 0.11, 0.12], levels=LEVELS, speeds=[0.0, 0.3, 0.31]), hosts=facts)


@pytest.fixture(scope="module")
def folder(run, tmp_path_factory):
    return written(tmp_path_factory.mktemp("fleet") / "run", run)


def test_the_folder_holds_all_that_is_said_of_hosts(folder, run):
    found = read_run(folder)
    assert (found.design, found.trials, found.hosts) == (run.design, run.trials, run.hosts)
    assert analyse(found).fleet == analyse(run).fleet


def test_both_claims_are_printed_apart(dbdyno, folder):
    code, out, _ = dbdyno("report", folder)
    text = " ".join(out.split())
    assert code == 0
    assert "On these 3 hosts: scheduler none is 1" in text
    assert "On hosts like these the same is shown, by 3 hosts." in text
    whole = " ".join(dbdyno("report", folder, "--details")[1].split())
    assert "On hosts like these it is faster, too (3 hosts, +1" in whole
    assert "at least 4 hosts of each level are needed (db2 and db3 against db1: +3" in whole
    assert "fact db1 db2 db3 cores 2 4 4" in whole


def test_json_has_the_hosts(dbdyno, folder):
    found = json.loads(dbdyno("report", folder, "--format", "json")[1])["hosts"]
    assert found["like_these"][0]["word"] == "faster"
    assert found["levels"][0]["reason_code"] == "TOO_FEW_HOSTS"


def test_the_table_of_trials_has_hosts_and_what_is_fixed_to_them(dbdyno, folder, run):
    rows = list(csv.DictReader(dbdyno("report", folder, "--format", "csv")[1].splitlines()))
    assert [one["host"] for one in rows] == [trial.host for trial in run.trials]
    assert [one["drive"] for one in rows] == [LEVELS["drive"][trial.host] for trial in run.trials]
