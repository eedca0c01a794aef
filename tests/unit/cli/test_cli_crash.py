"""``dbdyno crash``: cuts listed, and what is said where there is no such cut."""

import json
from dataclasses import replace

import pytest

from dbdyno.cli.crash import examined_as_text, image_as_text
from dbdyno.errors import TrialError
from dbdyno.filesystems import KINDS
from dbdyno.store.cuts import cut_called
from dbdyno.store.run_folder import read_run
from tests.crash_runs import FLUSH_0, SAFE, Loses, crash_run, speed_run
from tests.run_folders import written
from tests.unit.report.conftest import build

BROKEN = Loses(900.0, tail=0.2, damage=0.3, worst="table")


@pytest.fixture
def run(tmp_path):
    """A run with three treatments of 2 blocks, 3 cuts each, of which the first table that needs repair is kept."""
    made = crash_run({"1": SAFE, "2": BROKEN}, blocks=2, cuts=3, control=FLUSH_0)
    return written(tmp_path / "runs" / "one", replace(made, trials=[with_kept(one) for one in made.trials]))


def with_kept(trial):
    cuts = [replace(cut, kept=f"cuts/{cut.id}" if cut.outcome == "table" else "") for cut in trial.cuts]
    return replace(trial, cuts=cuts)


def test_a_line_for_each_cut_the_worst_first(dbdyno, run, snapshot):
    code, out, err = dbdyno("crash", "list", run)
    assert (code, err) == (0, "")
    assert out == snapshot


def test_only_those_that_lost_or_are_kept(dbdyno, run):
    every = json.loads(dbdyno("crash", "list", run, "--json")[1])["cuts"]
    lost = json.loads(dbdyno("crash", "list", run, "--lost", "--json")[1])["cuts"]
    kept = json.loads(dbdyno("crash", "list", run, "--kept", "--json")[1])["cuts"]
    assert len(every) == 18
    assert lost == [one for one in every if one["outcome"] != "nothing"]
    assert kept == [one for one in every if one["kept"]]
    assert 0 < len(kept) < len(lost) < len(every)
    assert {one["label"] for one in every} >= {"innodb_flush_log_at_trx_commit 1"}
    assert all(one["name"].endswith(f"/{one['id']}") for one in every)


def test_cuts_of_several_hosts_are_listed_with_their_host(dbdyno, tmp_path):
    made = crash_run({"1": SAFE}, blocks=2, cuts=2, control=None)
    trials = [replace(one, host=f"db{one.block}") for one in made.trials]
    path = written(tmp_path / "two", replace(made, trials=trials))
    head, *rows = dbdyno("crash", "list", path)[1].splitlines()
    assert head.split()[:3] == ["cut", "host", "treatment"]
    assert [row.split()[:2] for row in rows if "/c" in row] == [
        [f"b{block}a1p1/c{place}", f"db{block}"] for block in (1, 2) for place in (1, 2)
    ]
    found = json.loads(dbdyno("crash", "list", path, "--json")[1])["cuts"]
    assert [one["host"] for one in found] == ["db1", "db1", "db2", "db2"]
    one_host = json.loads(dbdyno("crash", "list", written(tmp_path / "one", made), "--json")[1])["cuts"]
    assert {one["host"] for one in one_host} == {None}


def test_a_run_of_speed_has_no_cuts(dbdyno, tmp_path):
    path = written(tmp_path / "speed", build(2))
    assert dbdyno("crash", "list", path) == (0, "this run has no cuts: they are of studies with [crash]\n", "")


def test_none_of_them(dbdyno, tmp_path):
    path = written(tmp_path / "safe", crash_run({"1": SAFE}, blocks=1, control=None))
    assert dbdyno("crash", "list", path, "--lost")[1] == "no such cut\n"


def test_no_run_folder(dbdyno, tmp_path):
    code, _, err = dbdyno("crash", "list", tmp_path)
    assert code == 2
    assert "is not a run folder" in err


@pytest.mark.parametrize("verb", ["keep", "examine"])
def test_a_state_that_was_not_kept(dbdyno, run, tmp_path, verb):
    code, _, err = dbdyno("crash", verb, run, "b1a1p1/c1", *([tmp_path / "new"] if verb == "keep" else []))
    assert code == 2
    assert "b1a1p1/c1: its state was not kept; dbdyno crash list RUN --kept names those that were, and" in err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("verb", ["keep", "examine"])
def test_a_state_that_is_gone(dbdyno, run, tmp_path, verb):
    code, _, err = dbdyno("crash", verb, run, "b2a1p2/c3", *([tmp_path / "new"] if verb == "keep" else []))
    assert code == 2
    assert f"{run}/trials/b2a1p2/cuts/c3 is not there: the state of b2a1p2/c3 was removed, or the run was copied" in err


@pytest.fixture
def kept_run(run, monkeypatch, state):  # noqa: ARG001  (whose lock is held)
    """The same run with the folders of its states, which are examined as ``found`` has it."""
    for trial in read_run(run).trials:
        for cut in trial.cuts:
            if cut.kept:
                (run / "trials" / trial.id / cut.kept).mkdir(parents=True)
    found = {}

    def again(folder, state):
        assert folder == run
        name = f"{state.parents[1].name}/{state.name}"
        found.setdefault(name, replace(cut_called(read_run(run), name)[1], recovery_s={"mount": 9.0}, cause="again"))
        if isinstance(found[name], TrialError):
            raise found[name]
        return found[name]

    monkeypatch.setattr("dbdyno.run.kept_states.examine_again", again)
    monkeypatch.setattr("dbdyno.run.kept_states.missing_capabilities", lambda **_: [])
    return run, found


def names_of_kept(dbdyno, run):
    return [one["name"] for one in json.loads(dbdyno("crash", "list", run, "--kept", "--json")[1])["cuts"]]


def test_all_kept_states_are_examined_in_the_run_s_order(dbdyno, kept_run):
    run, _ = kept_run
    names = names_of_kept(dbdyno, run)
    code, out, err = dbdyno("crash", "examine", run)
    assert (code, err) == (0, "")
    *lines, total = out.splitlines()
    assert [line.partition(":")[0] for line in lines] == names
    assert all("a table needs repair (as when it was examined first); " in line for line in lines)
    assert "again" not in lines[0]
    assert total == f"{len(names)} kept states examined again: the same outcome in {len(names)}"
    found = json.loads(dbdyno("crash", "examine", run, "--json")[1])
    assert found["same_outcome"]
    assert [one["cut"] for one in found["examined"]] == names
    assert all(one["again"] == one["before"] and "recovery_s" not in one["again"] for one in found["examined"])


def test_one_with_another_outcome_and_one_that_can_not_be_examined(dbdyno, kept_run):
    run, found = kept_run
    first, second, *_ = names_of_kept(dbdyno, run)
    found |= {first: replace(CUT, outcome="server", cause="it ended"), second: TrialError("no loop device")}
    code, out, _ = dbdyno("crash", "examine", run)
    assert code == 1
    lines = out.splitlines()
    assert lines[0].startswith(f"{first}: the server does not start: it ended (before: a table needs repair); ")
    assert lines[1] == f"{second}: not examined: no loop device"
    values = json.loads(dbdyno("crash", "examine", run, "--json")[1])
    assert not values["same_outcome"]
    assert [one["why_not"] for one in values["examined"]][:2] == [None, "no loop device"]
    assert dbdyno("crash", "examine", run, second)[0] == 1


def test_a_run_that_has_kept_nothing(dbdyno, tmp_path, state):  # noqa: ARG001  (whose lock is held)
    path = written(tmp_path / "safe", crash_run({"1": SAFE}, blocks=1, control=None))
    assert dbdyno("crash", "examine", path) == (0, "this run has kept no state\n", "")


@pytest.fixture
def image(tmp_path):
    made = tmp_path / "disk.img"
    with made.open("wb") as file:
        file.write(b"x" * 8192)
        file.truncate(1024**3)
    return made


CUT = crash_run({"2": BROKEN}, blocks=1, control=None).trials[0].cuts[0]
LOOKED_AT = {
    "ext2": "mount -o loop,ro {image}",
    "ext4": "mount -o loop,ro,noload {image}",
    "xfs": "mount -o loop,ro,norecovery {image}",
    "btrfs": "mount -o loop,ro,rescue=nologreplay {image}",
    "zfs": "zpool import -d {folder} -o readonly=on -a",
}


@pytest.mark.parametrize("filesystem", LOOKED_AT)
def test_how_an_image_is_looked_at_without_a_change(image, filesystem):
    said = image_as_text(image, filesystem, "b1/c1", CUT)
    assert said.startswith(f"{image}: 1 GiB, of which 8 KiB are on the disk; {filesystem} as cut b1/c1 left it")
    assert LOOKED_AT[filesystem].format(image=image, folder=image.parent) in said
    assert all(one in said for one in (" ".join(KINDS[filesystem].check), CUT.cause))


def test_whether_an_examination_found_the_same():
    again = replace(CUT, recovery_s={"mount": 0.25, "server": 1.5}, outcome="tail", cause="", lost=3, acked=40)
    assert examined_as_text("b1/c1", again, again) == (
        "b1/c1: the newest commits are lost (as when it was examined first)\n"
        "3 acknowledged commits lost of 40; mount 0.25 s, server 1.50 s"
    )
    other = replace(again, outcome="server", cause="it ended")
    assert examined_as_text("b1/c1", again, other).startswith(
        "b1/c1: the server does not start: it ended (before: the newest commits are lost)\n"
    )


# Reports of crash runs by the command line, from what a run has written.


@pytest.fixture
def crash(tmp_path):
    return written(tmp_path / "crash", crash_run())


@pytest.fixture
def speed(tmp_path):
    return written(tmp_path / "speed", speed_run(crash_run(seed=8)))


def test_a_crash_run_in_text_and_as_a_page(dbdyno, crash, tmp_path):
    code, out, _ = dbdyno("report", crash, "--html", tmp_path / "crash.html")
    assert code == 0
    assert "lost nothing in 300 power cuts" in " ".join(out.split())
    assert "Speed against safety" in (tmp_path / "crash.html").read_text(encoding="utf-8")


def test_a_speed_run_beside_a_crash_run(dbdyno, crash, speed):
    code, out, _ = dbdyno("report", speed, "--safety", crash, "--json")
    assert code == 0
    assert json.loads(out)["advice"]["take"] == ["t1"]
    code, out, err = dbdyno("report", speed, "--safety", crash)
    assert "900" not in out  # figures of the page alone
    assert f"--safety {crash}" in err


def test_what_does_not_fit_is_refused(dbdyno, crash, speed, tmp_path):
    code, _, err = dbdyno("report", crash, "--safety", speed)
    assert (code, "has no cuts" in err) == (2, True)
    code, _, err = dbdyno("report", speed, crash, "--safety", crash)
    assert (code, err) == (2, "dbdyno: --safety is for one run; give one folder\n")
    other = written(tmp_path / "other", crash_run({"1": SAFE, "2": SAFE}))
    code, _, err = dbdyno("report", speed, "--safety", other)
    assert (code, "lacks" in err) == (2, True)


def test_several_crash_runs_on_one_page(dbdyno, crash, tmp_path):
    code, out, _ = dbdyno("report", crash, written(tmp_path / "again", crash_run(seed=5)))
    assert code == 0
    assert " ".join(out.split()).count("lost nothing in 300 power cuts") == 2


def test_kinds_of_runs_are_ranked_by_speed_alone(dbdyno, crash, tmp_path):
    code, out, _ = dbdyno("rank", crash, written(tmp_path / "again", crash_run(seed=5)))
    assert code == 0
    assert "Ranked by speed alone" in out
