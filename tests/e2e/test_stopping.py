"""A real study that ends when it is decided, is left alone then, and goes on only under the always-valid sequence."""

import json
import re

import pytest

from dbdyno.store.events import Finished, read_events
from dbdyno.store.run_folder import read_run
from tests.support import dbdyno, study_text

pytestmark = [pytest.mark.host, pytest.mark.long, pytest.mark.drawn(1, group="stops"), pytest.mark.timeout(600)]


@pytest.fixture
def bench(study_file, state, tmp_path):
    """A study of two disks that differ by far, and a place to run it."""
    fields = {"device": '["hdd-7200", "ideal"]', "scheduler": '"none"', "amount": "queries = 120"}
    study = study_file(study_text(**fields).replace("blocks = 2\n", ""))
    return lambda *argv: dbdyno(*argv, state=state, timeout=400), study, tmp_path


def report_of(call, run):
    return json.loads(call("report", run, "--format", "json").stdout)


def measured(run):
    return [event.trial for event in read_events(run) if isinstance(event, Finished)]


def test_it_ends_when_decided_and_is_left_alone_then(bench):
    call, study, folder = bench
    run = folder / "decided"
    assert "6 to 40 blocks: looked at after 6, 7, 8, 10, 12, ..., 40" in call("plan", study).stdout
    done = call("run", study, "--into", run, "--html", "--details")
    assert done.returncode == 0, done.stderr
    report = report_of(call, run)
    blocks = report["blocks_usable"]  # a clear effect is decided by six, on a busy host by some more
    assert blocks in {6, 7, 8, 10, 12, 14}
    stopped = f"Stopped after {blocks} of at most 40 blocks"
    assert f"{stopped}: every comparison was decided." in done.stdout
    if blocks > 6:
        told = r"(about|at most) \d+ more blocks?, \d+ (s|min)|the number of blocks still needed is unknown.*"
        outlook = rf"^after 6 blocks 0 of 1 comparison decided ideal vs \S+: .* ({told})"
        said = re.sub(r"\s+", " ", done.stderr[done.stderr.index("after 6 blocks") :])
        assert re.match(outlook, said), said
    assert re.search(rf"^trial {2 * blocks}/(~|<=)?\d+, block {blocks}: ", done.stderr, re.MULTILINE)
    assert stopped in (run / "report.html").read_text().replace("\u00a0", " ")
    assert (report["stopped"], report["looks"][0], report["looks"][-1]) == ("decided", 6, blocks)
    [verdict] = report["verdicts"]
    assert (verdict["verdict"], verdict["level"]) == ("faster", "ideal")
    assert 0 < verdict["p_unadjusted"] <= verdict["p"] < 0.05
    before = (run / "journal.jsonl").read_bytes()
    again = call("run", study, "--into", run, "--resume")
    assert again.returncode == 0
    assert f"is finished. {stopped}" in again.stderr
    longer = call("run", study, "--into", run, "--resume", "--max-blocks", "60")
    assert longer.returncode == 2
    assert (run / "journal.jsonl").read_bytes() == before


def test_a_finished_run_is_extended_until_it_is_decided(bench):
    call, study, folder = bench
    run = folder / "extended"
    short = call("run", study, "--into", run, "--blocks", "2")
    assert short.returncode == 0, short.stderr
    assert report_of(call, run)["verdicts"][0]["verdict"] == "undecided"
    first = measured(run)
    done = call("run", study, "--into", run, "--resume", "--until-decided", "--max-blocks", "20", "--details")
    assert done.returncode == 0, done.stderr
    assert measured(run)[:4] == first
    report = report_of(call, run)
    assert (report["until"], report["stopped"], report["extended_from"]) == ("open", "decided", 2)
    assert 6 <= report["blocks_usable"] < 20
    assert report["verdicts"][0]["verdict"] == "faster"
    assert "It was extended from 2 blocks after its results could be seen" in " ".join(done.stdout.split())
    found = read_run(run)
    assert len(found.trials) == 2 * report["blocks_usable"] == len({trial.id for trial in found.trials})
