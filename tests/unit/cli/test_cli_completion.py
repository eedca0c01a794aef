"""What the shells are offered, asked as they ask; bash itself is asked, and zsh and fish where they are there."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from dbdyno._native import device_models
from dbdyno.cli.suggestions import LOADS, SCHEDULERS, VERDICTS, WORKLOADS
from dbdyno.model.word import Word
from dbdyno.study.schema import OLD_SCHEDULERS, StackSection
from dbdyno.study.workloads import KINDS
from tests.support import DBDYNO

DRIVES = {one["name"] for one in device_models()}
HERE = {name: value for name, value in os.environ.items() if not name.startswith("DBDYNO")}


@pytest.fixture
def desk(tmp_path, state):
    """A folder with studies and runs, some with names that a shell would read something into."""
    for name in ("a-run", "b-run", "$(touch pwned)", "with space", "q'uote", "semi;colon"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "run.toml").touch()
    (tmp_path / "runs/no-run").mkdir()
    for cut in ("c3", "c4"):
        (tmp_path / "runs/a-run/trials/b0001a1p001-t1/cuts" / cut).mkdir(parents=True)
        (tmp_path / "runs/a-run/trials/b0001a1p001-t1/cuts" / cut / "about.json").touch()
    (tmp_path / "alone/below").mkdir(parents=True)
    for name in ("study.toml", "alone/below/one.toml", "alone/below/two.toml", "`touch pwned`.toml", "notes.txt"):
        (tmp_path / name).touch()
    card = state / "scratch" / "x"
    card.mkdir(parents=True)
    (card / "disk.json").write_text(json.dumps({"name": "slow"}), encoding="utf-8")
    return tmp_path


@pytest.fixture
def offered(desk, state):
    """Ask as bash does, with the words typed so far; the last is the one that is completed."""

    def ask(*words, **environment):
        asking = {"_DBDYNO_COMPLETE": "complete_bash", "COMP_WORDS": "\n".join(["dbdyno", *words]),
                  "COMP_CWORD": str(len(words))}  # fmt: skip
        environment = {**HERE, **asking, "DBDYNO_STATE_DIR": str(state), **environment}
        before = sorted(desk.rglob("*")) + sorted(state.rglob("*"))
        done = subprocess.run(DBDYNO, env=environment, cwd=desk, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert sorted(desk.rglob("*")) + sorted(state.rglob("*")) == before, "nothing was touched"
        return done.stdout.split("\n")[:-1] if done.stdout.strip() else []

    return ask


OFFERED = [
    (["re"], {"report", "restore", "replay-log"}),
    (["disk", "fault", ""], {"latency", "eio", "stuck", "gone", "clear"}),
    (["report", "--fo"], {"--format"}),
    (["report", "--format", ""], {"text", "markdown", "json", "csv", "parquet"}),
    (["report", ""], {"runs/a-run", "runs/b-run"}),
    (["crash", ""], {"list", "keep", "examine"}),
    (["crash", "list", "runs/a"], {"runs/a-run"}),
    (["crash", "examine", "runs/a-run", ""], {"b0001a1p001-t1/c3", "b0001a1p001-t1/c4"}),
    (["crash", "keep", "runs/a-run", "b0001a1p001-t1/c4"], {"b0001a1p001-t1/c4"}),
    (["crash", "keep", "runs/b-run", ""], set()),
    (["rank", "runs/a-run", "runs/b"], {"runs/b-run"}),
    (["plan", "st"], {"study.toml"}),
    (["run", "al"], {"alone/below/one.toml", "alone/below/two.toml"}),
    (["plan", "none/"], set()),
    (["disk", "attach", "hdd-1"], {"hdd-15k", "hdd-10k"}),
    (["disk", "attach", ""], DRIVES),
    (["disk", "stats", ""], {"slow"}),
    (["disk", "mode", "slow", ""], {"instant", "model"}),
    (["try", "scheduler", "="], set(SCHEDULERS)),
    (["try", "scheduler", "=", "no"], {"none"}),
    (["try", "scheduler", "=", "none,m"], {"none,mq-deadline"}),
    (["try", "dev"], {f"device={one}" for one in (*DRIVES, "here", "memory")}),
    (["try", "filesystem", "=", "ext4", "--kind", "sys"], {"sysbench"}),
    (["servers", "add", "mariadb-11"], {"mariadb-11.4", "mariadb-11.8"}),
    (["new", "--server", "mariadb-10."], {"mariadb-10.5", "mariadb-10.11"}),
    (["completion", ""], {"bash", "zsh", "fish"}),
    (["oltp", "point"], {"point_select"}),
    (["slap", "--json"], {"--json"}),
    (["report", "--fail-if", "un"], {"undecided"}),
]


@pytest.mark.parametrize(("words", "expected"), OFFERED, ids=[" ".join(words) for words, _ in OFFERED])
def test_what_is_offered(offered, words, expected):
    assert set(offered(*words)) == expected


def devices():
    return {path.name for path in Path("/sys/block").iterdir()}


def test_devices_to_watch(offered):
    before, found, after = devices(), set(offered("watch", "")), devices()
    assert {*(before & after), "slow"} <= found  # other tests attach theirs meanwhile


def test_where_something_is_amiss_nothing_is_offered(offered, state):
    (state / "scratch/x/disk.json").write_text("{", encoding="utf-8")
    assert offered("disk", "stats", "") == []
    assert offered("disk", "stats", "", DBDYNO_STATE_DIR="/dev/null") == []


def test_words_are_those_of_the_study_and_the_report():
    assert get_args(get_args(StackSection.model_fields["scheduler"].annotation)[0]) == SCHEDULERS + OLD_SCHEDULERS
    assert tuple(KINDS) == (*WORKLOADS, "trace")  # which is for simulated stacks, and `try` measures
    assert get_args(KINDS["slap"].model_fields["load"].annotation) == LOADS
    assert {*VERDICTS, "not comparable"} == set(Word)


HEAVY = ("numpy", "scipy", "duckdb", "jinja2", "rich", "dbdyno.study.schema")
ASKED = f"""
import os, sys
from dbdyno.cli.main import main
try:
    main()
except SystemExit:
    print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)
"""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize("typed", ["dbdyno ", "dbdyno try device=", "dbdyno disk attach "])
def test_an_answer_needs_nothing_heavy(desk, shell, typed):
    asking = {"_DBDYNO_COMPLETE": f"complete_{shell}", "COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split())),
              "_TYPER_COMPLETE_ARGS": typed, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}  # fmt: skip
    command = [sys.executable, "-c", ASKED]
    done = subprocess.run(command, cwd=desk, env={**HERE, **asking}, capture_output=True, text=True, check=True)
    assert done.stdout.strip()
    assert done.stderr.splitlines()[-1] == "[]"


def program(folder):
    """Put a program ``dbdyno`` into a folder, as pip does."""
    file = folder / "bin" / "dbdyno"
    file.parent.mkdir()
    file.write_text(f'#!/bin/sh\nexec {sys.executable} -m dbdyno.cli.main "$@"\n', encoding="utf-8")
    file.chmod(0o755)
    return f"{file.parent}:{os.environ['PATH']}"


def test_bash_itself_is_served(desk, state):
    script = (
        'eval "$(dbdyno completion bash)"\n'
        'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _dbdyno_completion dbdyno; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    environment = {**HERE, "PATH": program(desk), "DBDYNO_STATE_DIR": str(state)}
    for words, expected in ((["report", ""], ["runs/a-run", "runs/b-run"]), (["try", "server", "=", "mysql-5."],
                            ["mysql-5.5", "mysql-5.6", "mysql-5.7"]), (["plan", "`"], [""])):  # fmt: skip
        command = ["bash", "--norc", "-c", script, "bash", "dbdyno", *words]
        done = subprocess.run(command, cwd=desk, env=environment, capture_output=True, text=True, check=True)
        assert (done.stdout.split("\n")[:-1], done.stderr) == (expected, "")
    assert not (desk / "pwned").exists()


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish")
def test_fish_itself_is_served(desk, state):
    environment = {**HERE, "PATH": program(desk), "HOME": str(desk), "DBDYNO_STATE_DIR": str(state)}
    script = 'dbdyno completion fish | source; complete --do-complete "dbdyno report "; complete -C "dbdyno disk fa"'
    done = subprocess.run(["fish", "-c", script], cwd=desk, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["runs/a-run", "runs/b-run", "fault\tPut faults into a disk, and end them."]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh")
def test_zsh_itself_takes_the_answer(desk, state):
    """What is evaluated there is one call of _arguments, with a value and its help each."""
    environment = {**HERE, "PATH": program(desk), "HOME": str(desk), "DBDYNO_STATE_DIR": str(state)}
    script = (
        "compdef() { }; _arguments() { print -r -- $#; eval ws=\\( ${${1#*\\(\\(}%\\)\\)} \\); print -rl -- $ws; }\n"
        'eval "$(dbdyno completion zsh)"; words=(dbdyno ${=1} ""); CURRENT=$#words; _dbdyno_completion'
    )
    for typed, expected in (("report", ["runs/a-run", "runs/b-run"]), ("disk fault", ["latency:Answer late."])):
        command = ["zsh", "-f", "-c", script, "zsh", typed]
        done = subprocess.run(command, cwd=desk, env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[0] == "1"
        assert done.stdout.splitlines()[1 : len(expected) + 1] == expected
    assert not (desk / "pwned").exists()


def test_it_is_installed_where_the_shell_reads_it(tmp_path, dbdyno, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for shell in ("bash", "zsh", "fish"):
        code, out, err = dbdyno("completion", shell, "--install", "--json")
        assert (code, err) == (0, "")
        file = Path(json.loads(out)["file"])
        assert file.is_relative_to(tmp_path)
        assert file.read_text(encoding="utf-8").strip() == dbdyno("completion", shell)[1].strip()
    assert str(tmp_path / ".bash_completions/dbdyno.sh") in (tmp_path / ".bashrc").read_text(encoding="utf-8")
    assert dbdyno("completion", "tcsh")[::2] == (
        2,
        "dbdyno: SHELL 'tcsh' is none of bash, zsh, fish; see dbdyno completion --help\n",
    )
