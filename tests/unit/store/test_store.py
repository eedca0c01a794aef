"""The run folder: what is written is read back, what a kill leaves is forgiven, what is damaged is refused."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dbdyno.errors import UserError
from dbdyno.store import run_folder
from dbdyno.store.records import Comparison, Design, Failure, Treatment, Trial
from dbdyno.store.run_folder import RunFolder, create, events, read_run, run_header
from dbdyno.store.series import read_load_series, read_series

DESIGN = Design(
    treatments=[Treatment("t1", {"device": "hdd-7200"}), Treatment("t2", {"device": 'a "quoted" — name'})],
    baseline="t1",
    comparisons=[Comparison("t1", "t2")],
    blocks=8,
    margin=0.03,
    metric="queries_per_second",
    seed=2**62 + 1,
)
HOST = {"cpu": "Intel®", "cores": 2, "memory_bytes": 8 << 30, "load_average_1min": 0.25}


def header():
    return {
        "run": {
            "title": "SSD oder HDD — «quoted»",
            "question": "Which?\nAnd why?",
            "seed": DESIGN.seed,
            "blocks": DESIGN.blocks,
            "margin": DESIGN.margin,
            "metric": DESIGN.metric,
            "baseline": DESIGN.baseline,
            "study_sha256": "0" * 64,
        },
        "versions": {"dbdyno": "0.1.0", "server mariadb": "10.11.14-MariaDB"},
        "treatment": [{"id": one.id, "levels": one.levels} for one in DESIGN.treatments],
        "comparison": [{"baseline": "t1", "level": "t2"}],
        "study": {"stack": {"device": ["hdd-7200", "ssd-sata"]}},
    }


def trial(block, treatment, rate=100.0, attempt=1):
    return Trial(
        id=f"b{block}a{attempt}-{treatment}",
        block=block,
        attempt=attempt,
        position=1,
        treatment=treatment,
        started_at="2025-01-01T00:00:00+00:00",
        metrics={"queries_per_second": rate, "seconds_real": 1000 / rate},
        observed={"queue": {"scheduler": "none"}, "filesystem": {"barriers": True}},
        load={"errors": [{"code": 1213, "count": 2}]},
        probes={"host_cpu": {"cpu_seconds": 0.004, "samples": 10, "cpu_percent": None}},
        device={"lateness_ns": {"p99": 31000}},
        seconds={"raise": 1.5},
    )


SERIES = {
    "load": {"t_s": [0.1, 0.2, 1 / 3], "latency_ms_p99": [1.5, float("nan"), 2.0**-40]},
    "host_cpu": {"t_s": np.array([0.1]), "%user": np.array([12.5])},
}


@pytest.fixture
def folder(tmp_path):
    with_lock = create(tmp_path / "run", header(), HOST)
    yield with_lock
    with_lock.close()


def test_the_study_is_read_back_with_files_of_one_s_own_by_name_and_content(tmp_path):
    path = "/home/somebody/mine.toml"
    study = {"stack": {"device": ["hdd-7200", f"raid1({path}, 2)"]}, "workload": {"clients": 4}}
    create(tmp_path / "run", {**header(), "study": study, "drive_files": {path: "x = 1"}}, HOST).close()
    found = read_run(tmp_path / "run").study
    assert found["stack"] == {"device": ["hdd-7200", "raid1(mine.toml, 2)"]}
    assert found["workload"] == {"clients": 4}
    assert list(found["files"]) == ["mine.toml"]
    assert len(found["files"]["mine.toml"]) == 64


def test_the_study_s_text_is_kept_as_it_was_written(tmp_path):
    text = "version = 1  # «my» study\r\n[study]\n"
    create(tmp_path / "run", {**header(), "run": {**header()["run"], "study_file": "mine.toml"}}, HOST, text).close()
    found = read_run(tmp_path / "run")
    assert (found.study_file, found.study_text) == ("mine.toml", text)
    create(tmp_path / "old", header(), HOST).close()
    assert read_run(tmp_path / "old").study_text == ""


def run_one(folder, one, series=()):
    about = {"block": one.block, "attempt": one.attempt, "treatment": one.treatment}
    folder.trial_folder(one.id)
    folder.note("started", trial=one.id, **about)
    folder.finish(one, dict(series))


def fail_one(folder, one, cause):
    about = {"trial": one.id, "block": one.block, "attempt": one.attempt, "treatment": one.treatment}
    folder.trial_folder(one.id)
    folder.note("started", **about)
    folder.note("failed", **about, cause=cause)


def test_what_is_written_is_read_back(folder):
    folder.note("planned", blocks=8)
    run_one(folder, trial(1, "t2"), SERIES)
    fail_one(folder, trial(1, "t1"), "the server was killed — «9»\n")
    folder.note("dropped", treatment="t1", text="t1 is left out")
    folder.note("note", text="block 1 was given up")
    folder.note("ended", how="done")
    run = read_run(folder.path)
    assert run.design == DESIGN
    assert run.trials == [trial(1, "t2")]
    assert run.failures == [Failure("b1a1-t1", 1, 1, "t1", "the server was killed — «9»\n")]
    assert (run.title, run.question) == ("SSD oder HDD — «quoted»", "Which?\nAnd why?")
    assert (run.host, run.versions, run.ended) == (HOST, header()["versions"], "done")
    assert run.notes == ["t1 is left out", "block 1 was given up"]


def test_series_are_read_back_bit_by_bit(folder):
    run_one(folder, trial(1, "t1"), SERIES)
    found = read_series(folder.path, ["b1a1-t1"])["b1a1-t1"]
    assert found.keys() == SERIES.keys()
    for name, columns in SERIES.items():
        assert list(found[name]) == list(columns)
        for column, values in columns.items():
            np.testing.assert_array_equal(found[name][column], np.asarray(values))
    assert not list(folder.path.rglob("*.part"))


def test_a_trial_without_series_has_none(folder):
    run_one(folder, trial(1, "t1"), {"load": {}})
    assert read_series(folder.path, ["b1a1-t1"]) == {"b1a1-t1": {}}


def test_the_load_of_all_trials_is_read_at_once(folder):
    done = [trial(block, treatment) for block in (1, 2, 3) for treatment in ("t1", "t2")]
    loads = {one.id: {"t_s": [0.1 * i for i in range(place + 1)]} for place, one in enumerate(done)}
    for place, one in enumerate(done):
        loads[one.id]["events_per_second"] = [float(place)] * (place + 1)
        if place == 3:
            loads[one.id] |= {"phase": ["load"] * 4, "latency_ms_p99": [1.0] * 4}
        run_one(folder, one, {"load": loads[one.id]} if place != 4 else {})
    found = read_load_series(folder.path, [one.id for one in done])
    assert set(found) == {one.id for place, one in enumerate(done) if place != 4}
    for id_, columns in found.items():
        assert columns["t_s"].tolist() == loads[id_]["t_s"]
        assert columns["events_per_second"].tolist() == loads[id_]["events_per_second"]
        assert "latency_ms_p99" not in columns
    assert found[done[3].id]["phase"].tolist() == ["load"] * 4
    assert read_load_series(folder.path, ["nobody"]) == {}


def test_the_number_of_blocks_is_the_last_one_asked_for(folder):
    folder.note("planned", blocks=8)
    folder.note("ended", how="done")
    assert read_run(folder.path).ended == "done"
    folder.note("resumed", blocks=12)
    run = read_run(folder.path)
    assert (run.design.blocks, run.ended) == (12, "running")


def test_a_trial_counts_only_when_the_journal_says_finished(folder):
    run_one(folder, trial(1, "t1"))
    half = trial(1, "t2")
    where = folder.trial_folder(half.id)
    folder.note("started", trial=half.id, block=1, attempt=1, treatment="t2")
    shutil.copy(folder.path / "trials/b1a1-t1/trial.json", where / "trial.json")
    fail_one(folder, trial(2, "t1"), "no")
    assert [one.id for one in read_run(folder.path).trials] == ["b1a1-t1"]


def test_a_trial_s_files_are_there_before_the_journal_says_finished(folder, monkeypatch):
    seen = []

    def note(_self, event, **fields):
        where = folder.path / "trials" / fields["trial"]
        seen.append((event, sorted(path.name for path in where.iterdir())))
        json.loads((where / "trial.json").read_text())

    folder.trial_folder("b1a1-t1")
    monkeypatch.setattr(RunFolder, "note", note)
    folder.finish(trial(1, "t1"), SERIES)
    assert seen == [("finished", ["host_cpu.parquet", "load.parquet", "trial.json"])]


def test_every_line_is_on_disk_when_note_returns(folder, monkeypatch):
    synced = []
    real = os.fsync

    def fsync(handle):
        real(handle)
        synced.append((str(Path(f"/proc/self/fd/{handle}").readlink()), os.fstat(handle).st_size))

    monkeypatch.setattr(os, "fsync", fsync)
    folder.note("note", text="x")
    journal = folder.path / "journal.jsonl"
    assert synced == [(str(journal), journal.stat().st_size)]


def test_a_second_try_of_a_trial_starts_from_an_empty_folder(folder):
    (folder.trial_folder("b1a1-t1") / "latency.hlog").write_text("half")
    assert list(folder.trial_folder("b1a1-t1").iterdir()) == []


def test_a_torn_last_line_is_forgiven_wherever_it_is_torn(tmp_path):
    folder = create(tmp_path, header(), HOST)
    folder.note("planned", blocks=8)
    folder.note("note", text="first")
    journal = folder.path / "journal.jsonl"
    whole = journal.read_bytes()
    folder.note("note", text="second: «é»")
    last = journal.read_bytes()[len(whole) :]
    folder.close()
    for length in range(len(last)):
        journal.write_bytes(whole + last[:length])
        assert [event["event"] for event in events(folder.path)] == ["planned", "note"]
    writer = RunFolder(folder.path)
    writer.note("note", text="third")
    assert [event.get("text") for event in events(folder.path)] == [None, "first", "third"]
    assert journal.read_bytes().startswith(whole)
    writer.close()


@pytest.mark.parametrize("damage", [b"{", b"", b"[]", b'"text"', b"{}", b"17", b"\xff\xfe\x00", b'{"event": "note"'])
def test_a_damaged_line_is_refused_by_its_number(folder, damage):
    for text in ("one", "two", "three"):
        folder.note("note", text=text)
    journal = folder.path / "journal.jsonl"
    lines = journal.read_bytes().splitlines()
    journal.write_bytes(b"\n".join([lines[0], damage, lines[2]]) + b"\n")
    message = f"{journal}:2: not a journal line; the run folder is damaged"
    with pytest.raises(UserError) as refused:
        read_run(folder.path)
    assert str(refused.value) == message
    with pytest.raises(UserError) as refused:
        list(events(folder.path))
    assert str(refused.value) == message


def test_a_finished_trial_whose_file_is_gone_is_damage(folder):
    run_one(folder, trial(1, "t1"))
    (folder.path / "trials/b1a1-t1/trial.json").unlink()
    with pytest.raises(UserError, match="the run folder is damaged"):
        read_run(folder.path)


def test_one_writer_at_a_time(tmp_path):
    folder = create(tmp_path, header(), HOST)
    with pytest.raises(UserError) as refused:
        RunFolder(folder.path)
    assert str(refused.value) == f"{folder.path}: another dbdyno is writing this run"
    folder.close()
    RunFolder(folder.path).close()


def test_reading_needs_no_lock(folder):
    folder.note("planned", blocks=8)
    assert read_run(folder.path).ended == "running"


def test_a_folder_that_is_not_empty_is_left_as_it_is(tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(UserError) as refused:
        create(tmp_path, header(), HOST)
    assert str(refused.value) == f"{tmp_path} is not empty; name a new folder, or go on with this run by --resume"
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_an_empty_folder_is_taken(tmp_path):
    create(tmp_path, header(), HOST).close()
    assert run_header(tmp_path)["format"] == run_folder.FORMAT


def test_a_file_in_the_way(tmp_path):
    (tmp_path / "run").write_text("")
    with pytest.raises(UserError) as refused:
        create(tmp_path / "run", header(), HOST)
    assert str(refused.value) == f"{tmp_path / 'run'}: File exists"


def test_what_is_no_run_folder(tmp_path):
    with pytest.raises(UserError) as refused:
        read_run(tmp_path)
    assert str(refused.value) == f"{tmp_path} is not a run folder: it holds no run.toml"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"format = 2\n", "{path}: run format 2; this dbdyno reads format 1"),
        (b"", "{path}: run format None; this dbdyno reads format 1"),
        (b"format = 1\n", "{path}/run.toml: is damaged: KeyError('run')"),
        (b"format = 1\nrun = 3\ntreatment = 4\n", "{path}/run.toml: is damaged: TypeError"),
        (b"format = \n", "{path}/run.toml: can't be read: Invalid value"),
        (b"\xff", "{path}/run.toml: can't be read: "),
    ],
)
def test_a_header_that_can_not_be_read(tmp_path, content, message):
    (tmp_path / "run.toml").write_bytes(content)
    with pytest.raises(UserError) as refused:
        run_header(tmp_path)
    assert str(refused.value).startswith(message.format(path=tmp_path))


def test_a_folder_that_can_not_be_written(tmp_path):
    (tmp_path / "lock").mkdir()
    with pytest.raises(UserError) as refused:
        RunFolder(tmp_path)
    assert str(refused.value) == f"{tmp_path} can't be written: Is a directory"


REPORT = """
import sys
from pathlib import Path
from dbdyno.cli.report import Format, show
show(Path(sys.argv[1]), Format.JSON)
show(Path(sys.argv[1]), Format.JSON)
"""


def test_the_report_of_a_copied_folder_is_the_same_bytes(tmp_path):
    folder = create(tmp_path / "run", header(), HOST)
    folder.note("planned", blocks=8)
    rates = np.random.default_rng(1).normal(0, 0.02, 16).tolist()
    for block in range(1, 9):
        run_one(folder, trial(block, "t1", 100 * np.exp(rates.pop())))
        run_one(folder, trial(block, "t2", 140 * np.exp(rates.pop())))
    folder.note("ended", how="done")
    folder.close()
    copies = [shutil.copytree(folder.path, tmp_path / name) for name in ("copy", "elsewhere")]
    shutil.rmtree(folder.path)
    said = [
        subprocess.run(
            [sys.executable, "-c", REPORT, str(copy)],
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": zone},
            capture_output=True,
            check=True,
        ).stdout
        for copy, seed, zone in zip(copies, ("1", "2"), ("UTC", "Asia/Tokyo"), strict=True)
    ]
    assert said[0] == said[1]
    first, second = said[0][: len(said[0]) // 2], said[0][len(said[0]) // 2 :]
    assert first == second
    document = json.loads(first)
    assert document["verdicts"][0]["verdict"] == "faster"
    assert document["blocks_usable"] == 8
