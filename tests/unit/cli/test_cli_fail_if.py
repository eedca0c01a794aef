"""The thresholds of a study, from a run folder: what is said, to people and to programs, and the exit code."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from dbdyno.analysis.fail_if import Thresholds, thresholds
from dbdyno.model.design import FailIf
from dbdyno.model.word import CONDITION_HOLDS, NOT_JUDGED
from dbdyno.store.run_folder import read_run
from tests.crash_runs import FLUSH_2, SAFE, crash_run
from tests.run_folders import written
from tests.unit.report.conftest import build

PAIR = [("t1", "t3")]  # the SSD is 4.1 times as fast
BACK = [("t3", "t1")]
ALIKE = [("t1", "t2")]


@pytest.fixture
def judged(dbdyno, tmp_path):
    """Write a run with thresholds; return the exit code of its report, its text, and what its JSON says of them."""

    def make(limits, run):
        folder = written(tmp_path / "run", replace(run, design=replace(run.design, fail_if=limits)))
        code, out, err = dbdyno("report", folder)
        json_code, values, _ = dbdyno("report", folder, "--json")
        assert code == json_code == json.loads(values)["thresholds"]["exit_code"]
        return code, " ".join(out.split()), json.loads(values)["thresholds"], err

    return make


def test_what_is_slower_by_more_fails(judged):
    code, text, values, err = judged(FailIf(slower=0.05), build(8, pairs=BACK))
    assert code == CONDITION_HOLDS
    assert "Failed (exit code 3), as something is slower by 5 % or more: hdd-7200 vs ssd-sata" in text
    (failed,) = values["failed"]
    assert (failed["level"], failed["verdict"]) == ("hdd-7200 / mq-deadline", "slower")
    assert failed["effect"] < -0.5
    assert (values["outcome"], values["not_judged"]) == ("failed", [])
    assert "[fail_if] slower by 5 %: hdd-7200 / mq-deadline against ssd-sata / mq-deadline: slower" in err


@pytest.mark.parametrize(
    ("limits", "pairs"),
    [
        (FailIf(slower=0.9), BACK),  # it is slower, by less
        (FailIf(slower=0.05), PAIR),
        (FailIf(slower=0.05, faster=0.05), ALIKE),
    ],
)
def test_what_is_within_the_thresholds_passes(judged, limits, pairs):
    code, text, values, err = judged(
        limits, build(30, pairs=pairs, rates=dict.fromkeys(["t1", "t2"], 400) | {"t3": 1700})
    )
    assert (code, values["outcome"]) == (0, "passed")
    assert "Passed: nothing was found to be slower by" in text
    assert "[fail_if]" not in err


def test_faster_has_a_threshold_too(judged):
    code, text, _, _ = judged(FailIf(faster=0.5), build(8, pairs=PAIR))
    assert code == CONDITION_HOLDS
    assert "as something is faster by 50 % or more: ssd-sata vs hdd-7200" in text


@pytest.mark.parametrize(("undecided", "code"), [("fail", NOT_JUDGED), ("pass", 0)])
def test_what_is_undecided_never_passes_in_silence(judged, undecided, code):
    found = judged(FailIf(slower=0.05, undecided=undecided), build(6, pairs=ALIKE, noise=0.2))
    assert (found[0], found[2]["outcome"]) == (code, "undecided")
    then = "exit code 4" if code else "the study lets that pass"
    assert (
        f"Not judged ({then}): whether anything is slower by 5 % or more is undecided of none vs mq-deadline"
        in found[1]
    )
    assert [one["verdict"] for one in found[2]["not_judged"]] == ["undecided"]


def test_a_failure_outweighs_what_is_undecided(judged):
    run = build(8, pairs=[*BACK, ("t1", "t2")], rates={"t1": 410.0, "t2": 398.0, "t3": 1700.0}, noise=0.15)
    code, _, values, _ = judged(FailIf(slower=0.5), run)
    assert (code, values["outcome"]) == (CONDITION_HOLDS, "failed")
    assert values["not_judged"]


def test_a_run_that_has_hardly_begun_passes_nothing(judged):
    code, text, values, _ = judged(
        FailIf(slower=0.05), replace(build(1, void_block=0, pairs=ALIKE), ended="", stopped="")
    )
    assert (code, values["outcome"]) == (NOT_JUDGED, "undecided")
    assert "Not judged (exit code 4)" in text


@pytest.mark.parametrize(
    ("treatments", "code", "said"),
    [
        ({"1": SAFE}, 0, "Passed: nothing was found to be unsafe."),
        ({"1": SAFE, "2": FLUSH_2}, CONDITION_HOLDS, "something is unsafe: innodb_flush_log_at_trx_commit 2 loses"),
    ],
)
def test_what_loses_commits_is_unsafe(judged, treatments, code, said):
    found = judged(FailIf(unsafe=True), crash_run(treatments))
    assert found[0] == code
    assert said in found[1]


def test_too_few_cuts_to_call_it_safe_are_not_judged(judged):
    code, text, values, _ = judged(FailIf(unsafe=True), crash_run({"1": SAFE}, blocks=3, cuts=2))
    assert (code, values["outcome"]) == (NOT_JUDGED, "undecided")
    assert "whether anything is unsafe is undecided of innodb_flush_log_at_trx_commit 1" in text


def test_without_a_cut_nothing_is_safe():
    found = thresholds(FailIf(unsafe=True), [], None)
    assert found == Thresholds(FailIf(unsafe=True), (), (), untried=True)
    assert (found.outcome, found.exit_code) == ("undecided", NOT_JUDGED)


def test_junit_and_several_runs_have_them_too(dbdyno, tmp_path):
    run = build(8, pairs=BACK)
    limited = replace(run, design=replace(run.design, fail_if=FailIf(slower=0.05)))
    folders = [written(tmp_path / "a", run), written(tmp_path / "b", limited)]
    assert dbdyno("report", *folders)[0] == CONDITION_HOLDS
    assert dbdyno("report", folders[0])[0] == 0
    assert dbdyno("report", folders[0], "--fail-if", "slower")[0] == CONDITION_HOLDS
    assert dbdyno("report", folders[1], "--junit", tmp_path / "v.xml")[0] == CONDITION_HOLDS
    (failure,) = ET.parse(tmp_path / "v.xml").getroot().iter("failure")
    assert failure.get("message") == "[fail_if] slower by 5 %"
    assert read_run(folders[1]).design.fail_if == FailIf(slower=0.05)


@pytest.mark.parametrize(("blocks", "kinds"), [(30, ["failure", ""]), (3, ["failure", "failure"])])
def test_junit_and_annotations_fail_by_what_is_unsafe(dbdyno, tmp_path, blocks, kinds):
    """Of three runs it is open whether the safe one is; that does not pass in this study."""
    run = crash_run({"2": FLUSH_2, "1": SAFE}, blocks=blocks, cuts=2)
    limited = replace(run, design=replace(run.design, fail_if=FailIf(unsafe=True)))
    folder, file = written(tmp_path / "run", limited), tmp_path / "v.xml"
    code, out, err = dbdyno("report", folder, "--junit", file, "--annotations")
    assert code == CONDITION_HOLDS
    cases = [case for case in ET.parse(file).getroot() if case.get("name").startswith("crash safety of")]
    assert ["failure" if case.find("failure") is not None else "" for case in cases] == kinds
    assert cases[0].find("failure").get("message") == "[fail_if] unsafe"
    assert cases[0].find("failure").text == f"{cases[0].get('name')}: loses the newest commits"
    assert f"[fail_if] unsafe: {cases[0].get('name')}: loses the newest commits" in err
    assert out.count("::error title=") == kinds.count("failure")


def test_a_study_s_thresholds_judge_its_own_run_alone(dbdyno, tmp_path):
    run = build(8, pairs=BACK)
    limited = replace(run, design=replace(run.design, fail_if=FailIf(slower=0.05)))
    folders = [written(tmp_path / "a", run), written(tmp_path / "b", limited)]
    assert dbdyno("report", *folders, "--junit", tmp_path / "v.xml")[0] == CONDITION_HOLDS
    (failing,) = (case for case in ET.parse(tmp_path / "v.xml").getroot() if case.find("failure") is not None)
    assert failing.get("classname").endswith("(b)")
