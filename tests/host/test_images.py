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


def study_of(where):
    text = study_text(amount="queries = 50", blocks=1, **DEVICES[where])
    if where == "here":
        text = "\n".join(
            line for line in text.splitlines() if not line.startswith(("size", "scheduler", "filesystem ="))
        )
    return text.replace('[filesystem]\nmount = ""\n', "")


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
