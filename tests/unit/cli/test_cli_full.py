"""Full disks: one sentence with the file and the remedy, nothing half written, and a run that can go on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dbdyno.analysis.blocks import usable_blocks
from dbdyno.errors import HostError, TrialError
from dbdyno.store.events import Dropped, Failed, read_events
from dbdyno.store.run_folder import read_run
from dbdyno.system.locks import only_one
from tests.run_folders import kept_run
from tests.sampled import some
from tests.scripted import perform
from tests.unit.report.conftest import build, series_of

FULL = Path("/dev/full")
PAGE_BYTES = 4096
ROOM = "No space left on device; make room on its filesystem"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    run = build(6, void_block=2)
    return kept_run(tmp_path_factory.mktemp("runs") / "a", run, series_of(run, samples=5))


@pytest.fixture
def small(tmp_path):
    """A filesystem of 1 MiB, and what fills it but for some pages."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount")
    place = tmp_path / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1M,mode=755", "none", place], check=True)
    yield place
    subprocess.run(["umount", place], check=True)


def fill(place, pages_left):
    left = os.statvfs(place).f_bavail - pages_left
    (place / "filler").write_bytes(b"x" * left * PAGE_BYTES)


@pytest.mark.long
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_standard_output_that_is_full_is_one_sentence(folder, state, unbuffered):
    told = b"dbdyno: standard output: No space left on device; make room on its filesystem\n"
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered, "DBDYNO_STATE_DIR": str(state)}
    verbs = (["report"], ["report", "--format", "json"], ["report", "--format", "parquet"], ["rank"])
    for argv in some(f"full {unbuffered}", verbs, 0.5):
        with FULL.open("wb") as full:
            command = [sys.executable, "-m", "dbdyno.cli.main", *argv, str(folder)]
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=environment, check=False)
        assert (done.returncode, done.stderr) == (1, told), argv
    with FULL.open("wb") as full:
        command = [sys.executable, "-m", "dbdyno.cli.main", "report", "nowhere"]
        assert subprocess.run(command, stderr=full, env=environment, check=False).returncode == 2


def test_a_page_for_which_there_is_no_room_leaves_the_one_that_was_there(dbdyno, folder, small):
    page = small / "page.html"
    page.write_text("<!doctype html>as it was")
    fill(small, 8)
    code, _, err = dbdyno("report", folder, "--html", page)
    assert (code, err) == (1, f"dbdyno: {page}: {ROOM}\n")
    assert page.read_text() == "<!doctype html>as it was"
    assert sorted(path.name for path in small.iterdir()) == ["filler", "page.html"]


@pytest.mark.parametrize("what", ["/dev/full", "pipe", "folder"])
def test_a_page_is_a_file(dbdyno, folder, tmp_path, what):
    place = tmp_path / what
    if what == "pipe":
        os.mkfifo(place)
    elif what == "folder":
        place.mkdir()
    code, _, err = dbdyno("report", folder, "--html", place)
    assert code == 2
    assert err.startswith(f"dbdyno: {place}: ")


@pytest.mark.parametrize("pages", [*range(12), 14, 25])
def test_a_run_whose_disk_is_full_goes_on_when_there_is_room(script, plan, small, pages):
    script.series = {"load": {"t_s": [0.1 * i for i in range(400)], "queries_per_second": [100.0] * 400}}
    made, into = plan(blocks=2), small / "run"
    fill(small, pages)
    try:
        perform(script, made, into)
    except HostError as error:
        said = str(error)
        assert said.startswith(str(into))
        assert ROOM in said
        assert len(said.splitlines()) == 1
    else:
        assert pages > 14
    (small / "filler").unlink()
    assert not list(into.rglob("*.part"))
    assert perform(script, made, into, resume=True).how == "done"
    assert list(usable_blocks(read_run(into)).trials) == [1, 2]
    assert not [event for event in read_events(into) if isinstance(event, Failed | Dropped)]


def test_a_trial_that_fails_on_a_full_disk_is_no_treatment_s_fault(dbdyno, script, plan, small):
    made, into = plan(blocks=2), small / "run"
    perform_until_full = iter([True])

    def full():
        if next(perform_until_full, False):
            fill(small, 2)
            raise TrialError("dbdyno-load: writing load.json: No space left on device (os error 28)")

    script.fails = {(1, "t1"): full}
    with pytest.raises(HostError) as ended:
        perform(script, made, into)
    assert str(ended.value) == (
        f"{into}: its filesystem is full; make room on it, then go on with --resume. "
        "What failed: dbdyno-load: writing load.json: No space left on device (os error 28)"
    )
    assert read_run(into).failure == str(ended.value)
    code, report, _ = dbdyno("report", into)
    assert code == 0
    said = " ".join(report.split())
    assert f"The run was stopped by a failure: {ended.value}." in said
    (small / "filler").unlink()
    assert perform(script, made, into, resume=True).failures == 0
    assert read_run(into).failure == ""
    assert list(usable_blocks(read_run(into)).trials) == [1, 2]


def test_a_state_folder_without_any_room_is_named(small, monkeypatch):
    monkeypatch.setenv("DBDYNO_STATE_DIR", str(small))
    fill(small, 0)
    with pytest.raises(HostError) as refused, only_one("a run", wait=False, say=print):
        pass
    assert str(refused.value) == f"{small}/run.lock: {ROOM}, or set DBDYNO_STATE_DIR to a folder on another one"
