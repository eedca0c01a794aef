"""Broken states that are kept: which, where, bounded; and read back."""

import json
import os
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from dbdyno.crash import trial_cuts as kept_states
from dbdyno.crash.trial_cuts import KeptState, is_wanted, keep_state, planned_of, read_kept
from dbdyno.errors import TrialError, UserError
from dbdyno.model.cut import Cut
from dbdyno.store.cuts import SUMS, verify_list, verify_sums
from dbdyno.workload.ledger import LEDGER


def a_cut(outcome="tail", id_="c3", when="uniform"):
    return Cut(id_, "power", when, "random-512", 7, 1.5, outcome, 40, lost=3, recovery_s={"mount": 0.5})


def a_kept(cut, treatment="t1", name="c3"):
    return KeptState(cut, treatment, name, 8, 3_000, 4_000, 1_000)


@dataclass
class Disk:
    """Writes a state of so many bytes."""

    content_bytes: int = 4096
    fails: bool = False

    def stats(self):
        return {"content_bytes": self.content_bytes}

    def save_cut(self, name, folder):
        folder.mkdir()
        (folder / "base.img").write_bytes(bytes(self.content_bytes))
        (folder / "cut.json").write_text(json.dumps({"name": name}), encoding="utf-8")
        if self.fails:
            raise TrialError("emulated disk, cut-save: No space left on device")


@pytest.fixture
def trial(tmp_path):
    """Make the folder of a trial."""

    def made(name):
        folder = tmp_path / "trials" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / LEDGER).write_bytes(b"what was sent")
        return folder

    return made


def test_a_kept_state_is_whole_in_its_folder_and_read_back(trial):
    folder = trial("b0001a1p001-t1")
    cut = keep_state(Disk(), a_kept(a_cut(when="recovery"), name="c3-2"), folder)
    place = cut.kept
    assert place == "cuts/c3"
    assert {path.name for path in (folder / place).iterdir()} == {"about.json", "base.img", "cut.json", LEDGER, SUMS}
    verify_list(folder / place, cut.kept_sha256)
    verify_sums(folder / place)
    found = read_kept(folder / place)
    assert (found.cut.outcome, found.cut.kept, found.treatment) == ("tail", place, "t1")
    assert (found.content.name, found.content.survivors, found.content.seed) == ("c3-2", "random-512", 8)
    assert (found.cut_ns, found.cut_end_ns, found.window_start_ns) == (3_000, 4_000, 1_000)
    assert (planned_of(found).id, planned_of(found).when) == ("c3", "recovery")


def test_of_each_treatment_the_first_of_each_worse_outcome_is_wanted(trial):
    first, second = trial("b0001a1p001-t1"), trial("b0002a1p001-t1")
    assert is_wanted("worst", a_cut("tail"), "t1", first)
    keep_state(Disk(), a_kept(a_cut("tail")), first)
    assert not is_wanted("worst", a_cut("tail"), "t1", second)
    assert is_wanted("worst", a_cut("tail"), "t2", second)
    assert is_wanted("worst", a_cut("table"), "t1", second)
    keep_state(Disk(), a_kept(a_cut("table")), second)
    assert not is_wanted("worst", a_cut("inconsistent"), "t1", first)
    assert is_wanted("worst", a_cut("filesystem"), "t1", first)


def test_nothing_is_kept_of_a_cut_that_lost_nothing_or_where_none_is_asked_for(trial):
    folder = trial("b0001a1p001-t1")
    assert not is_wanted("all", a_cut("nothing"), "t1", folder)
    assert not is_wanted("none", a_cut("filesystem"), "t1", folder)
    keep_state(Disk(), a_kept(a_cut("filesystem")), folder)
    assert is_wanted("all", a_cut("tail"), "t1", folder)


def test_a_run_keeps_so_many_bytes_and_leaves_room_on_its_disk(trial, monkeypatch):
    first, second = trial("b0001a1p001-t1"), trial("b0002a1p001-t1")
    keep_state(Disk(content_bytes=1 << 20), a_kept(a_cut("tail")), first)
    monkeypatch.setattr(kept_states, "RUN_BYTES_MAX", 3 << 19)
    with pytest.raises(TrialError, match="has kept 1 MiB of states already"):
        keep_state(Disk(content_bytes=1 << 20), a_kept(a_cut("table")), second)
    monkeypatch.setattr(kept_states.shutil, "disk_usage", lambda _: SimpleNamespace(free=kept_states.LEFT_BYTES))
    with pytest.raises(TrialError, match="no room for 0 MiB"):
        keep_state(Disk(), a_kept(a_cut("table")), second)
    assert not (second / "cuts").exists()


def test_a_state_that_could_not_be_written_whole_is_not_there(trial):
    folder = trial("b0001a1p001-t1")
    with pytest.raises(TrialError, match="No space left"):
        keep_state(Disk(fails=True), a_kept(a_cut()), folder)
    assert list((folder / "cuts").iterdir()) == []


@pytest.mark.parametrize(
    "content", [None, "", "no json", "null", "[1]", "{}", '{"cut": {"id": "c1"}}', "[" * 100_000, '{"cut":' * 50_000]
)
def test_a_folder_without_a_state_is_said_so(content, tmp_path):
    if content is not None:
        (tmp_path / "about.json").write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match="holds no kept state"):
        read_kept(tmp_path)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"treatment": 5}, "treatment is not text"),
        ({"seed": "x\x1b[31m"}, "seed is not a whole number"),
        ({"seed": 2**70}, "holds a number of too many digits"),
        ({"seed": -1}, "its numbers are of no power cut"),
        ({"cut_ns": -1, "cut_end_ns": -5}, "its numbers are of no power cut"),
        ({"cut_end_ns": 0}, "its numbers are of no power cut"),
        ({"window_start_ns": None}, "window_start_ns is not a whole number"),
        ({"cut": [1]}, "cut is not a table"),
        ({"cut": None}, "cut is not a table"),
        ({"name": ["c3"]}, "name is not text"),
        ({"more": 1}, "more is unknown"),
        ({"survivors": None}, "is not a power cut"),
        ({"survivors": "x"}, "cut.survivors is no"),
        ({"outcome": "fine"}, "cut.outcome is not one of"),
        ({"id": "../../../../etc/x"}, "is not a power cut"),
        ({"id": ""}, "is not a power cut"),
        ({"mode": "kill"}, "is not a power cut"),
        ({"recovery_s": {"mount": "long"}}, "cut.recovery_s.mount is not a number"),
    ],
)
def test_a_description_that_is_of_no_state_is_refused_with_its_field(changes, why, trial):
    folder = trial("b0001a1p001-t1")
    about = folder / keep_state(Disk(), a_kept(a_cut()), folder).kept / "about.json"
    held = json.loads(about.read_text(encoding="utf-8"))
    for name, value in changes.items():
        (held if name in held or name == "more" else held["cut"])[name] = value
    about.write_text(json.dumps(held), encoding="utf-8")
    with pytest.raises(UserError) as refused:
        read_kept(about.parent)
    assert why in str(refused.value)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/etc/shadow")])
def test_a_description_that_is_no_file_is_refused_and_not_waited_for(make, tmp_path):
    make(tmp_path / "about.json")
    with pytest.raises(UserError, match="holds no kept state"):
        read_kept(tmp_path)
