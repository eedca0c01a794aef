"""A run folder of another's making whose sums fit: no report of it takes the host's memory, or hides other runs."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import duckdb
import pytest
import typer

from dbdyno.cli.main import app
from dbdyno.errors import UserError
from dbdyno.store.header import header_in
from dbdyno.store.others import TRACEBACK
from dbdyno.store.series import as_csv
from dbdyno.system.files import sealed
from tests.support import DBDYNO, dbdyno

KEPT = Path(__file__).parents[2] / "kept/clients"
MEASURED = """
import resource, subprocess, sys
ended = subprocess.run(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_maxrss, used.ru_utime + used.ru_stime)
sys.exit(ended.returncode)
"""  # from a small process: a fork of this one would begin with all of its memory
RSS_MAX_KIB, SECONDS_MAX = 600 * 1024, 10


def resealed(run):
    """Have the event log say of the files what they are now."""

    def sums(folder, names):
        return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}

    lines = []
    for line in (run / "journal.jsonl").read_text().splitlines():
        event = json.loads(line)
        event.pop("sum", None)
        if event["event"] == "planned":
            event["sha256"] = sums(run, event.get("sha256", ()))
        if event["event"] == "finished":
            folder = run / "trials" / event["trial"]
            event["sha256"] = sums(folder, [file.name for file in sorted(folder.iterdir())])
        lines.append(sealed(event))
    (run / "journal.jsonl").write_bytes(b"".join(lines))


def in_every_trial(query):
    def make(run):
        bomb = run.parent / "bomb.parquet"
        duckdb.execute(f"COPY ({query}) TO '{bomb}' (FORMAT parquet, COMPRESSION snappy, ROW_GROUP_SIZE 10000000)")
        for trial in (run / "trials").iterdir():
            shutil.copy(bomb, trial / "load.parquet")
            shutil.copy(bomb, trial / "block_device.parquet")

    return make


def with_events(run):
    note = sealed({"event": "note", "text": "x"})
    with (run / "journal.jsonl").open("ab") as file:
        file.write(note * 500_000)


def with_values(run):
    for trial in (run / "trials").iterdir():
        found = json.loads((trial / "trial.json").read_text())
        found["observed"]["queue"] = {"x": [[]] * 5_000_000}
        (trial / "trial.json").write_text(json.dumps(found, separators=(",", ":")))


def with_treatments(run):
    text = (run / "run.toml").read_text()
    (run / "run.toml").write_text(f"x = [{'1,' * 7_000_000}]\n{text}")


def with_blocks(run):
    text = (run / "run.toml").read_text()
    (run / "run.toml").write_text(text.replace("\nblocks = ", "\nblocks = 1000000", 1))


ROWS = "'run' AS phase, 1.0::DOUBLE AS events_per_second, 1.0::DOUBLE AS queries_per_second, 1.0::DOUBLE AS iops"
BOMBS = {
    "rows": in_every_trial(f"SELECT 1.0::DOUBLE AS t_s, {ROWS} FROM range(9000000)"),
    "rows of a day": in_every_trial(f"SELECT i / 10::DOUBLE AS t_s, {ROWS} FROM range(900000) AS r(i)"),
    "text": in_every_trial("SELECT 1.0::DOUBLE AS t_s, repeat('x', 4000000) AS phase FROM range(2000)"),
    "columns": in_every_trial(
        "SELECT 1.0::DOUBLE AS t_s, "
        + ", ".join(f'1.0::DOUBLE AS "w{one}/s"' for one in range(3000))
        + " FROM range(99)"
    ),
    "events": with_events,
    "values": with_values,
    "a header": with_treatments,
    "blocks": with_blocks,
}


@pytest.fixture
def run(tmp_path):
    made = tmp_path / "runs/other"
    shutil.copytree(KEPT, made)
    return made


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_one_sentence_or_a_report_within_bounds(run, tmp_path, bomb):
    """In a process of its own: the largest memory of any of its processes is what the kernel counted."""
    BOMBS[bomb](run)
    resealed(run)
    argv = [sys.executable, "-c", MEASURED, *DBDYNO, "report", str(run), "--html", str(tmp_path / "page.html")]
    environment = {**os.environ, "DBDYNO_STATE_DIR": str(tmp_path)}
    ended = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=100, check=False)
    kib, seconds = map(float, ended.stdout.splitlines()[-1].split())
    assert ended.returncode in {0, 1, 2}, ended.stderr
    assert "Traceback" not in ended.stderr
    assert kib < RSS_MAX_KIB
    assert seconds < SECONDS_MAX


def with_most_values(run):
    """Give every trial as many values as one command reads of three such folders, not of four."""
    for trial in (run / "trials").iterdir():
        found = json.loads((trial / "trial.json").read_text())
        found["observed"]["queue"] = {"x": [0] * 50_000}
        (trial / "trial.json").write_text(json.dumps(found, separators=(",", ":")))


@pytest.mark.parametrize("verb", [["report"], ["rank"], ["report", "--format", "csv"]])
def test_many_folders_have_one_budget(run, tmp_path, verb):
    with_most_values(run)
    resealed(run)
    folders = [shutil.copytree(run, tmp_path / f"copy{number}") for number in range(8)]
    argv = [sys.executable, "-c", MEASURED, *DBDYNO, verb[0], *map(str, folders), *verb[1:]]
    environment = {**os.environ, "DBDYNO_STATE_DIR": str(tmp_path)}
    ended = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=100, check=False)
    kib, seconds = map(float, ended.stdout.splitlines()[-1].split())
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert f"{folders[3]}: with it the run folders hold more than one command reads" in ended.stderr
    assert kib < RSS_MAX_KIB
    assert seconds < SECONDS_MAX


STRANGE = {
    "a limit that is none": lambda run: with_disturbance(run, {"limits": {"foreign_cpu": {}}, "foreign_cpu": 1.0}),
    "limits that are none": lambda run: with_disturbance(run, {"limits": "/etc/passwd"}),
    "a metric that is none": lambda run: with_replaced(run, "screened = [\n", 'screened = [\n"1",\n'),
}
VERBS = {
    "report": lambda run: ["report", run],
    "page": lambda run: ["report", run, "--html", run.parent / "page.html"],
    "csv": lambda run: ["report", run, "--format", "csv"],
    "several": lambda run: ["report", run, KEPT],
    "prometheus": lambda run: ["report", run, "--prometheus", run.parent / "a.prom"],
    "junit": lambda run: ["report", run, "--junit", run.parent / "a.xml", "--annotations"],
    "compare": lambda run: ["compare", KEPT, run],
    "rank": lambda run: ["rank", run],
    "history": lambda run: ["history", KEPT, run],
    "runs": lambda run: ["runs", run.parent],
    "crash": lambda run: ["crash", "list", run],
    "simulate": lambda run: ["simulate", "--from", run],
}


def with_disturbance(run, disturbance):
    for trial in (run / "trials").iterdir():
        found = json.loads((trial / "trial.json").read_text())
        found["disturbance"] |= disturbance
        (trial / "trial.json").write_text(json.dumps(found))


def with_replaced(run, old, new):
    text = (run / "run.toml").read_text()
    assert old in text
    (run / "run.toml").write_text(text.replace(old, new, 1))


def server_logs(argv, capsys):
    """Return what a verb prints and its error's text; an error of another kind is raised."""
    try:
        with suppress(typer.Exit):
            app(list(map(str, argv)), prog_name="dbdyno", standalone_mode=False)
    except UserError as error:
        return str(error)
    return capsys.readouterr().out


@pytest.mark.parametrize("strange", STRANGE)
def test_no_verb_shows_a_traceback_for_what_a_folder_holds(run, monkeypatch, capsys, strange):
    STRANGE[strange](run)
    resealed(run)
    monkeypatch.delenv(TRACEBACK, raising=False)
    said = [server_logs(argv(run), capsys) for argv in VERBS.values()]
    wordings = (f"{run}: no report can be made of what it holds", "trial.json: is damaged: disturbance.limits")
    assert any(words in each for each in said for words in wordings)


def test_a_mistake_of_dbdyno_can_be_found(run):
    STRANGE["a metric that is none"](run)
    resealed(run)
    ended = dbdyno("report", run, state=run.parent)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert f"{run}: no report can be made of what it holds (KeyError" in ended.stderr
    with_variable = {**os.environ, "DBDYNO_STATE_DIR": str(run.parent), TRACEBACK: "1"}
    told = subprocess.run([*DBDYNO, "report", run], env=with_variable, capture_output=True, text=True, check=False)
    assert "Traceback (most recent call last)" in told.stderr


def test_one_folder_that_cannot_be_read_hides_no_other(run, tmp_path):
    whole = tmp_path / "runs/whole"
    shutil.copytree(KEPT, whole)
    for trial in (run / "trials").iterdir():
        found = json.loads((trial / "trial.json").read_text())
        found["started_at"] = "\x1b[2Jnever"
        found["metrics"] = {"queries_per_second": 10**19}
        (trial / "trial.json").write_text(json.dumps(found))
    (run / "host.json").write_text('{"a": [')
    resealed(run)
    listed = dbdyno("runs", tmp_path / "runs", state=tmp_path)
    assert listed.returncode == 0
    assert "\x1b" not in listed.stdout
    assert f"{whole}  2026" in listed.stdout
    assert "unreadable" in listed.stdout
    assert "host.json: is damaged" in " ".join(listed.stdout.split())


def test_cells_are_no_formulas_and_numbers_stay_numbers():
    given = [
        "=1+1",
        "+cmd|x",
        "-2-3",
        "@x",
        "\t=1",
        "\rx",
        " =1",
        "\uff1d1",
        "-2.5",
        "+1",
        "a\x1b[2J",
        -2.5,
        True,
        None,
    ]
    found = as_csv({"=head": given})
    assert found.splitlines() == [
        "'=head", "'=1+1", "'+cmd|x", "'-2-3", "'@x", "' =1", "' x", "' =1", "'\uff1d1", "-2.5", "+1", "a [2J",
        "-2.5", "true", '""',
    ]  # fmt: skip


def test_json_shows_no_character_that_a_terminal_obeys(run):
    name = "\x9b31m\u202e\u2066\U000e0041"
    text = (run / "run.toml").read_text()
    header = header_in(run, text.encode())
    title = "".join(f"\\U{ord(one):08x}" for one in name)
    (run / "run.toml").write_text(text.replace(f'title = "{header.title}"', f'title = "{title}"'))
    resealed(run)
    printed = dbdyno("report", run, "--json", state=run.parent)
    assert printed.returncode in {0, 1}, printed.stderr
    assert printed.stdout.replace("\n", "").isprintable()
    assert name in json.dumps(json.loads(printed.stdout), ensure_ascii=False)


def test_a_link_to_itself_is_no_run_folder(tmp_path):
    link = tmp_path / "link"
    link.symlink_to("link")
    for argv in (["report", link], ["report", link, KEPT], ["compare", KEPT, link], ["rank", link, KEPT]):
        ended = dbdyno(*argv, state=tmp_path)
        assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
        assert str(link) in ended.stderr
