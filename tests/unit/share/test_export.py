"""Export: what names anybody or anything is nowhere in the file, and every figure and verdict is."""

import io
import json
import os
import re
import subprocess
import sys
import tarfile
from functools import partial
from unittest.mock import patch

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.report.contents import document
from dbdyno.share.archive import About, pack
from dbdyno.share.copy import copy_without_names
from dbdyno.store.run_folder import read_run
from dbdyno.store.series import read_analysed, read_series
from tests.crash_runs import crash_run
from tests.made_up_runs import made_up
from tests.run_folders import written
from tests.sampled import some
from tests.unit.report.fleet_runs import on_hosts
from tests.unit.report.suites import suite_run
from tests.unit.share.conftest import MARKERS

pytestmark = pytest.mark.usefixtures("no_fsync")
PARTS = re.compile(
    r"acme|jdoe|hunter2|S4EWNX|83640127593|10\.20\.30|fe80|16:3e|iban|MZVL|0123456789abcdef|abab|cdcd", re.IGNORECASE
)


@pytest.fixture
def no_fsync():
    with patch.object(os, "fsync", lambda _: None):
        yield


def contents(packed):
    """Return name -> bytes of each file in an exported one."""
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar if member.isfile()}


def texts_of(folder):
    """Return all texts of the series of a run folder, names of columns too."""
    series = read_series(folder, [trial.id for trial in read_run(folder).trials])
    for of_trial in series.values():
        for name, columns in of_trial.items():
            yield name
            for column, values in columns.items():
                yield column
                yield from (map(str, values) if values.dtype.kind == "O" else ())


def test_no_planted_name_is_anywhere_in_the_file(marked, tmp_path):
    copied = copy_without_names(marked, tmp_path / "copy")
    files = contents(pack(tmp_path / "copy", About(title=copied.title)))
    assert {name.rpartition("/")[2].partition("name-")[0] for name in files} == {
        "export.json", "run.toml", "host.json", "journal.jsonl", "trial.json", "load.parquet", "block_device_",
    }  # fmt: skip
    for name, content in files.items():
        text = content.decode("utf-8", "replace")
        assert not PARTS.search(name), name
        assert not PARTS.search(text), (name, PARTS.search(text), text[:300])
        assert not any(marker in text for marker in MARKERS.values())
    assert not [text for text in texts_of(tmp_path / "copy") if PARTS.search(text)]


def test_the_markers_were_there(marked):
    """Else the test above could not fail."""
    everything = b"".join(file.read_bytes() for file in marked.rglob("*") if file.is_file()).decode("utf-8", "replace")
    assert all(json.dumps(marker)[1:-1] in everything for marker in MARKERS.values())


def test_the_copy_has_the_same_figures_and_verdicts(plain, tmp_path):
    copy_without_names(plain, tmp_path / "copy")
    runs = [read_run(folder) for folder in (plain, tmp_path / "copy")]
    analyses = [
        analyse(run, **read_analysed(folder, run)) for run, folder in zip(runs, (plain, tmp_path / "copy"), strict=True)
    ]
    assert analyses[0].verdicts == analyses[1].verdicts
    assert [trial.metrics for trial in runs[0].trials] == [trial.metrics for trial in runs[1].trials]
    assert runs[0].design.treatments == runs[1].design.treatments
    assert (runs[0].imported, runs[1].imported) == (False, True)
    assert (runs[1].notes, runs[1].study_text, runs[1].question) == ([], "", "")
    assert [failure.cause for failure in runs[1].failures] == ["left out"]


KINDS = {
    "power cuts": crash_run,
    "a suite": suite_run,
    "hosts": partial(on_hosts, [0.02, 0.05, 0.01]),
    **{f"made up {seed}": partial(made_up, seed) for seed in some("shared runs", range(40), 0.2)},
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_run_keeps_its_verdicts(kind, tmp_path):
    made = KINDS[kind]()
    written(tmp_path / "run", made[0] if isinstance(made, tuple) else made)
    copy_without_names(tmp_path / "run", tmp_path / "copy")
    runs = [read_run(tmp_path / name) for name in ("run", "copy")]
    before, after = (analyse(run) for run in runs)
    findings = [
        [(one.verdict, repr(one.effect), getattr(one.reason, "code", None)) for one in each.verdicts]
        for each in (before, after)
    ]
    assert findings[0] == findings[1]
    assert (before.safety is None) == (after.safety is None)
    if before.safety and after.safety:
        safe = [[(one.word, one.tally, one.failed) for one in each.safety.treatments] for each in (before, after)]
        assert safe[0] == safe[1]
    assert runs[0].is_simulated == runs[1].is_simulated
    assert [(one.block, one.attempt) for one in runs[0].failures] == [
        (one.block, one.attempt) for one in runs[1].failures
    ]
    assert document(runs[1], after).values()["measured_here"] is False


def test_a_copy_of_a_copy_is_the_same(marked, tmp_path):
    once = copy_without_names(marked, tmp_path / "once", title="a title")
    again = copy_without_names(tmp_path / "once", tmp_path / "again", title=once.title)
    assert again.words.replacements() == []
    about = About(title=once.title)
    assert pack(tmp_path / "once", about) == pack(tmp_path / "again", about)


def test_what_varies_by_names_alone_still_varies(marked, tmp_path):
    copy_without_names(marked, tmp_path / "copy")
    run = read_run(tmp_path / "copy")
    assert len({treatment.label for treatment in run.design.treatments}) == 2
    assert run.design.fleet.hosts == ["host-1", "host-2"]
    assert {trial.host for trial in run.trials} == {"host-1"}
    assert run.disk_names == [name for name in run.disk_names if name.startswith("name-")]


def test_the_command_shows_what_goes_in_and_writes_it(dbdyno, plain, tmp_path):
    file = tmp_path / "result.tar.gz"
    code, out, err = dbdyno("export", plain, "--output", file, "--title", "Two drives", "--yes")
    assert (code, err) == (0, "")
    assert '"Two drives", 35 trials, ' in out
    assert "Goes in:" in out
    assert "Left out:" in out
    assert f"Wrote {file}." in out
    assert file.read_bytes().startswith(b"\x1f\x8b")


def test_what_takes_a_while_says_how_far_it_is(dbdyno, plain, tmp_path, monkeypatch):
    monkeypatch.setattr("dbdyno.cli.share.SILENT_SECONDS", 0.0)
    _, _, err = dbdyno("export", plain, "--output", tmp_path / "result.tar.gz", "--yes")
    assert err.startswith("trial 1 of 35\n")


def test_nothing_is_written_where_nobody_consents(dbdyno, marked, tmp_path):
    file = tmp_path / "result.tar.gz"
    code, out, err = dbdyno("export", marked, "--output", file)
    assert (code, out) == (2, "")
    assert "say --yes" in err
    code, out, err = dbdyno("export", marked, "--output", file, "--json")
    shown = json.loads(out)
    assert (code, err, shown["written"], file.exists()) == (0, "", False, False)
    assert {row["text"] for row in shown["replaced"]} >= {MARKERS["drive"], MARKERS["level"], MARKERS["host"]}


@pytest.mark.parametrize(("answer", "is_written"), [(b"y\n", True), (b"n\n", False), (b"\n", False)])
def test_a_person_is_asked_at_a_terminal(plain, tmp_path, answer, is_written):
    file = tmp_path / "result.tar.gz"
    ours, theirs = os.openpty()
    os.write(ours, answer)
    command = [sys.executable, "-m", "dbdyno.cli.main", "export", str(plain), "--output", str(file)]
    done = subprocess.run(
        command, stdin=theirs, stderr=theirs, stdout=subprocess.PIPE, text=True, timeout=60, check=False
    )
    os.close(theirs)
    said = os.read(ours, 10_000).decode()
    os.close(ours)
    assert f"Write {file}? [y/N]" in said
    assert "Left out:" in done.stdout
    assert (done.returncode, file.exists()) == ((0, True) if is_written else (2, False))


def test_a_text_is_let_out_if_it_is_named(dbdyno, marked, tmp_path):
    file = tmp_path / "result.tar.gz"
    code, *_ = dbdyno("export", marked, "--output", file, "--keep", MARKERS["level"], "--json", "--yes")
    assert code == 0
    assert MARKERS["level"].encode() in contents(file.read_bytes())["run/run.toml"]
    dbdyno("import", file, "--into", tmp_path / "imported")
    assert MARKERS["level"] in (tmp_path / "imported/run.toml").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--output", "result.zip"], "name it result.tar.gz"),
        (["--output", "{plain}/run.tar.gz", "--title", "a\nb"], "is not one printable line"),
        (["--output", "none/run.tar.gz"], "there is no folder none"),
    ],
)
def test_wrong_use_is_one_sentence(dbdyno, plain, arguments, said):
    code, out, err = dbdyno("export", plain, *(part.format(plain=plain) for part in arguments), "--yes")
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
