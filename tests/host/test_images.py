"""Prepared data is made once and kept: the next run loads it, the same bytes; a damaged one is made anew."""

import json
import os

import pytest

from tests.support import dbdyno, study_text, what_is_left

pytestmark = [pytest.mark.host, pytest.mark.timeout(300)]

DEVICES = {
    "emulated": {"device": '"nvme"', "scheduler": '"none"'},
    "here": {"device": '"here"', "scheduler": "none", "filesystem": "none", "mount": ""},
}


def study_of(where, **fields):
    text = study_text(amount="queries = 50", blocks=1, **DEVICES[where], **fields)
    if where == "here":
        text = "\n".join(
            line for line in text.splitlines() if not line.startswith(("size", "scheduler", "filesystem ="))
        )
    return text.replace('[filesystem]\nmount = ""\n', "")


@pytest.mark.drawn(1)
@pytest.mark.parametrize("where", DEVICES)
def test_kept_from_run_to_run(state, study_file, tmp_path, where):
    study = study_file(study_of(where))

    def run(number, *flags):
        done = dbdyno("run", study, "--into", tmp_path / f"run{number}", *flags, state=state)
        assert done.returncode == 0, done.stderr
        assert what_is_left(state) == []
        return " ".join(done.stderr.split())

    def images():
        return json.loads(dbdyno("images", "--json", state=state).stdout)["images"]

    assert "preparing data" in run(1)
    (kept,) = images()
    second = run(2)
    assert "using prepared data" in second
    assert "preparing data" not in second
    assert images()[0]["key"] == kept["key"]
    tables = [json.loads(next(tmp_path.glob(f"run{n}/trials/*/trial.json")).read_text()) for n in (1, 2)]
    assert tables[0]["observed"]["tables"] == tables[1]["observed"]["tables"]
    assert "preparing data" in run(3, "--fresh-images")

    (content,) = (path for path in (state / "images" / kept["key"]).rglob("*") if path.name in {"content", "ibdata1"})
    with content.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(16))
    mended = run(4)
    assert "was damaged; it is removed and prepared anew" in mended
    assert "preparing data" in mended
    assert "using prepared data" in run(5)
    cleared = dbdyno("images", "clear", state=state)
    assert cleared.stdout.startswith("removed ")
    assert images() == []


def test_what_does_not_fit_is_not_kept_and_nothing_fails(state, study_file, tmp_path, monkeypatch):
    monkeypatch.setenv("DBDYNO_IMAGES_MAX", "1M")
    done = dbdyno("run", study_file(study_of("emulated")), "--into", tmp_path / "run", state=state)
    assert done.returncode == 0, done.stderr
    assert "is not kept for later runs: the image takes" in " ".join(done.stderr.split())
    assert json.loads(dbdyno("images", "--json", state=state).stdout)["images"] == []


@pytest.mark.long
@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("setting", "images"),
    [("innodb_flush_log_at_trx_commit = [1, 2]", 1), ('innodb_log_file_size = ["16M", "32M"]', 2)],
    ids=["touches no data", "touches data"],
)
def test_treatments_share_an_image_unless_they_differ_in_what_touches_data(
    state, study_file, tmp_path, setting, images
):
    study = study_file(study_of("here", settings=setting))
    planned = dbdyno("plan", study, "--json", state=state)
    assert planned.returncode == 0, planned.stderr
    assert json.loads(planned.stdout)["images"] == ([["t1", "t2"]] if images == 1 else [["t1"], ["t2"]])
    done = dbdyno("run", study, "--into", tmp_path / "run", state=state)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("preparing data") == images
    trials = [json.loads(path.read_text()) for path in tmp_path.glob("run/trials/*/trial.json")]
    assert (len(trials), len({trial["image"] for trial in trials})) == (2, images)
    shown = dbdyno("report", tmp_path / "run", "--details", state=state).stdout
    assert f"Data was prepared in {images} image" in " ".join(shown.split())
    kept = [path.name for path in (state / "images").rglob("*")]
    assert json.loads(dbdyno("report", tmp_path / "run", "--format", "json", state=state).stdout)["images"] == images
    assert kept.count("ibdata1") == images
    assert "ib_buffer_pool" not in kept
