"""Every file of a run folder, damaged in every way: a right report or one sentence, and a run that can go on."""

import json
import os
import random
import shutil

import pytest

from dbdyno.analysis.blocks import usable_blocks
from dbdyno.cli.run import run_to_resume
from dbdyno.errors import UserError
from dbdyno.store.events import Lost, read_events
from dbdyno.store.run_folder import read_run
from tests.scripted import perform

SERIES = {
    "load": {"t_s": [0.1 * i for i in range(40)], "queries_per_second": [100.0 + i % 3 for i in range(40)]},
    "host_cpu": {"t_s": [0.1 * i for i in range(40)], "%idle": [50.0] * 40},
    "latency": {"latency_ns": [1e6 * i for i in range(1, 41)], "count": [25.0] * 40},
}
BLOCKS = 2


def truncated(path):
    os.truncate(path, path.stat().st_size // 2)


def flipped(path):
    chance = random.Random(path.name)
    content = bytearray(path.read_bytes())
    for _ in range(3 if content else 0):  # the lock is empty
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def replaced_by(make):
    def damage(path):
        path.unlink()
        make(path)

    return damage


def a_link(path):
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


DAMAGE = {
    "empty": lambda path: os.truncate(path, 0),
    "half": truncated,
    "flipped": flipped,
    "not text": lambda path: path.write_bytes(b"\xff\xfe\x00\x80" * 99),
    "a list": lambda path: path.write_text("[]\n"),
    "other": lambda path: path.write_text('{"id": 3, "metrics": []}\n'),
    "deep": lambda path: path.write_text("[" * 200_000),
    "digits": lambda path: path.write_text("9" * 5000 + "\n"),
    "missing": lambda path: path.unlink(),
    "a folder": replaced_by(lambda path: path.mkdir()),
    "a pipe": replaced_by(os.mkfifo),
    "a link": a_link,
    "a loop": replaced_by(lambda path: path.symlink_to(path.name)),
}


@pytest.fixture
def whole(script, plan, tmp_path):
    """A run folder as a run leaves it, and its plan."""
    script.series = SERIES
    made = plan(blocks=BLOCKS)
    perform(script, made, tmp_path / "run")
    return tmp_path / "run", made


def files_of(run):
    trial = sorted((run / "trials").iterdir())[1]
    mine = [run / name for name in ("run.toml", "host.json", "study.toml", "journal.jsonl", "lock")]
    series = ("load.parquet", "host_cpu.parquet", "latency.parquet", "latency.hlog")
    return [*mine, *(trial / name for name in ("trial.json", *series))]


def said(dbdyno, *argv):
    """Output of a command that ends well or with one sentence about the input."""
    code, out, err = dbdyno(*argv)
    assert code in {0, 2}, err
    if code:
        assert err.startswith("dbdyno: ")
        assert len(err.splitlines()) == 1
        assert "Error(" not in err
        assert out == "", "a report is not begun that can't be ended"
    return code, out, err


def resume(script, plan, run):
    """Go on with a run as ``dbdyno run --resume`` does; why that can't be, if it can't."""
    try:
        begun = run_to_resume(run)
        if begun is None or not begun.stopped:
            perform(script, plan, run, resume=True)
    except (UserError, OSError) as error:  # the command line says both
        return str(error)
    return ""


@pytest.mark.long
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_one_sentence_or_the_same_report(dbdyno, script, whole, tmp_path, damage):
    run, plan = whole
    _, right, _ = said(dbdyno, "report", run, "--format", "json")
    for name in [str(path.relative_to(run)) for path in files_of(run)]:
        copy = tmp_path / "copy"
        shutil.copytree(run, copy)
        DAMAGE[damage](copy / name)
        code, out, err = said(dbdyno, "report", copy, "--format", "json")
        if code:
            assert (copy / name).name in err, "it names the file"
        elif not (damage == "missing" and name.endswith("parquet")) and name != "journal.jsonl":
            assert out == right, f"{damage} {name}"
        if name.endswith(("trial.json", "load.parquet")):
            said(dbdyno, "report", copy, "--html", tmp_path / "page.html")
            said(dbdyno, "compare", run, copy)
            said(dbdyno, "rank", copy)
            said(dbdyno, "report", copy, "--format", "csv")
        if refused := resume(script, plan, copy):
            assert (copy / name).name in refused
            assert damage in {"a link", "a loop"} or "/trials/" not in refused, "a trial is measured again"
        else:
            found = read_run(copy)
            assert len(usable_blocks(found).trials) == BLOCKS, f"{damage} {name}"
            assert found.ended == "done"
            assert said(dbdyno, "report", copy)[0] == 0
        shutil.rmtree(copy)


@pytest.mark.parametrize("damage", ["missing", "a file", "a pipe", "a link"])
@pytest.mark.parametrize("place", [lambda run: run / "trials", lambda run: min((run / "trials").iterdir())])
def test_a_folder_that_is_none(dbdyno, script, whole, place, damage):
    run, plan = whole
    folder, away = place(run), run.parent / "away"
    inside = {path.name for path in folder.iterdir()}
    folder.rename(away)
    if damage == "a file":
        folder.write_text("")
    elif damage == "a pipe":
        os.mkfifo(folder)
    elif damage == "a link":
        folder.symlink_to(away)
    code, _, err = said(dbdyno, "report", run)
    assert code == 2
    assert folder.name in err
    refused = resume(script, plan, run)
    assert not refused or folder.name in refused
    assert {path.name for path in away.iterdir()} == inside, "what a link leads to is left alone"


def test_the_block_of_a_damaged_trial_is_measured_again(script, whole):
    run, plan = whole
    before, (lost, *_) = len(script.ran), sorted((run / "trials").iterdir())
    (lost / "trial.json").write_text("")
    resume(script, plan, run)
    assert [(slot.block, slot.attempt) for slot in script.ran[before:]] == [(1, 2), (1, 2)]
    (told,) = [event for event in read_events(run) if isinstance(event, Lost)]
    assert (told.trial, told.block, told.attempt) == (lost.name, 1, 1)
    assert told.text in script.said
    why = f"trials/{lost.name}/trial.json: is damaged: it is empty"
    assert told.text == f"trial {lost.name} can't be read any more and is left out: {why}"
    found = read_run(run)
    assert told.text in found.notes
    assert sorted(usable_blocks(found).trials) == [1, 2]
    assert run_to_resume(run).stopped == "blocks", "it has ended again"


def test_damage_at_the_last_attempt_costs_no_block(script, whole):
    run, plan = whole
    for attempt in range(1, 5):
        (
            run / "trials" / next(one.id for one in read_run(run).trials if one.attempt == attempt) / "trial.json"
        ).unlink()
        resume(script, plan, run)
    blocks = usable_blocks(read_run(run)).trials
    assert {trial.attempt for trial in blocks[1].values()} == {5}


def test_folders_written_before_there_were_checksums_are_read(whole):
    run, _ = whole
    kept = read_run(run)
    lines = [json.loads(line) for line in (run / "journal.jsonl").read_bytes().splitlines()]
    plain = [{name: value for name, value in line.items() if name not in {"sum", "sha256"}} for line in lines]
    (run / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in plain))
    assert read_run(run) == kept
    (run / "study.toml").unlink()
    assert read_run(run).study_text == ""


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ({"id": "{id}"}, "block is missing"),
        ({"surprise": 1}, "surprise is unknown"),
        ({"block": "1"}, "block is not a whole number"),
        ({"block": 2}, "it is about another trial"),
        ({"metrics": {"queries_per_second": "fast"}}, "metrics.queries_per_second is not a number"),
        ({"metrics": {"queries_per_second": True}}, "metrics.queries_per_second is not a number"),
        ({"observed": {"queue": 3}}, "observed.queue is not a table"),
        ({"seconds": []}, "seconds is not a table"),
    ],
)
def test_other_types_in_a_trial_of_an_older_folder(whole, content, why):
    run, _ = whole
    journal = run / "journal.jsonl"
    lines = [{**json.loads(line)} for line in journal.read_bytes().splitlines()]
    for line in lines:
        line.pop("sum"), line.pop("sha256", None)
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    trial = min((run / "trials").iterdir()) / "trial.json"
    kept = json.loads(trial.read_text())
    changed = {"id": kept["id"]} if "id" in content else {**kept, **content}
    trial.write_text(json.dumps(changed))
    with pytest.raises(UserError) as refused:
        read_run(run)
    assert str(refused.value).startswith(f"{trial}: is damaged: {why}")


@pytest.mark.parametrize("trial", ["../../../etc", "", ".", "a/b", 3, None])
def test_a_trial_s_name_leads_nowhere_else(whole, trial):
    run, _ = whole
    with (run / "journal.jsonl").open("a") as journal:
        journal.write(
            json.dumps({"event": "finished", "trial": trial, "block": 1, "attempt": 1, "treatment": "t1"}) + "\n"
        )
    with pytest.raises(UserError, match="not a line of the event log"):
        read_run(run)
