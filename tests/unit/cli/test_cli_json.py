"""What --json prints: one JSON value and nothing else, an object with its schema where it is no list."""

import json

import pytest

from tests.run_folders import written
from tests.unit.report.conftest import build


@pytest.fixture
def desk(tmp_path, write_study, monkeypatch):
    """The current folder, with a study and two runs."""
    monkeypatch.chdir(tmp_path)
    write_study()
    for seed, name in enumerate("ab", start=1):
        written(tmp_path / "runs" / name, build(6, seed=seed))
    return tmp_path


ASKED = [
    "plan study.toml",
    "try device=here clients=1,2 --load write --plan",
    "new made.toml --vary clients=1,2",
    "report runs/a",
    "report runs/a runs/b",
    "report runs/a --annotations --html page.html",
    "rank runs/a",
    "simulate --rw randread --seconds 1s",
    "compare runs/a runs/b --annotations",
    "history runs/a runs/b",
    "doctor --quick",
    "restore",
    "crash list runs/a",
    "images",
    "images clear",
    "servers remove mariadb-11.4",
    "completion zsh",
]


@pytest.mark.parametrize("typed", ASKED)
def test_an_object_with_its_schema(dbdyno, desk, typed):
    code, out, _ = dbdyno(*typed.split(), "--json")
    assert code == 0 or typed.startswith("plan"), "a host that can't run the study is shown it all the same"
    assert json.loads(out)["schema"] == 1
    assert desk.exists()


@pytest.mark.parametrize("typed", ["runs", "servers", "disk models", "disk list"])
def test_a_list(dbdyno, desk, typed):
    code, out, err = dbdyno(*typed.split(), "--json")
    assert (code, err) == (0, "")
    assert isinstance(json.loads(out), list)
    assert desk.exists()


@pytest.mark.parametrize(
    ("verb", "names", "record_file"),
    [
        ("servers", ["mariadb-11.4", "mysql-5.6"], "server.json"),
        ("kernels", ["debian-6.1", "debian-6.12"], "kernel.json"),
    ],
)
def test_what_is_added_is_an_object_for_one_name_and_a_list_for_several(dbdyno, state, verb, names, record_file):
    """What is there already is not fetched again, so no registry is asked."""
    for name in names:
        folder = state / verb / name
        folder.mkdir(parents=True)
        (folder / record_file).write_text(json.dumps({"name": name, "version": "1", "release": "1"}))
    _, one, _ = dbdyno(verb, "add", names[0], "--json")
    code, several, _ = dbdyno(verb, "add", *names, "--json")
    assert code == 0
    assert (json.loads(one)["schema"], json.loads(one)["name"]) == (1, names[0])
    assert [record["name"] for record in json.loads(several)] == names
    assert dbdyno(verb, "add", *names)[1].splitlines() == [f"{name}: 1, in {state / verb / name}" for name in names]


@pytest.mark.parametrize("typed", ["report runs/a", "report runs/a runs/b", "rank runs/a", "compare runs/a runs/b"])
def test_it_is_the_format_of_that_name(dbdyno, desk, typed):
    assert dbdyno(*typed.split(), "--json") == dbdyno(*typed.split(), "--format", "json")
    assert desk.exists()


def test_restore_says_what_it_undid(dbdyno, state, killed):
    code, out, err = dbdyno("restore", "--json")
    (restored,) = json.loads(out)["restored"]
    assert restored == {
        "what": "run study.toml",
        "pid": killed,
        "whole": True,
        "undone": [f"remove {state}/scratch/x"],
    }
    assert code == 0
    assert f"remove {state}/scratch/x" in err
    assert json.loads(dbdyno("restore", "--json")[1])["restored"] == []
