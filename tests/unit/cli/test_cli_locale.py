"""Terminals that can't show every character: no verb fails for it, and what dbdyno itself says is ASCII."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.cli.watch import BARS, PLAIN_BARS, bars_of, sparkline
from tests.run_folders import kept_run
from tests.sampled import some
from tests.unit.report.conftest import build, series_of

LOCALES = {
    "ascii": {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
    "latin-1": {"LC_ALL": "C", "LANG": "de_DE.ISO-8859-1", "PYTHONIOENCODING": "latin-1:strict"},
    "cp1252": {"PYTHONIOENCODING": "cp1252:strict"},
}
STUDY = """version = 1
[study]
title = "größer — 漢字"
[stack]
device = ["hdd-7200", "nö"]
size = "1GiB"
filesystem = "ext4"
[workload]
kind = "slap"
queries = 1000
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A run whose words are in no code page, in a folder whose name is no UTF-8."""
    base = tmp_path_factory.mktemp("runs")
    first, second = build(6, void_block=2), build(6, seed=11, void_block=0)
    first = replace(first, title="SSD oder HDD — «größer» 漢字 €", question="≥ µs?")
    odd = Path(os.fsdecode(os.fsencode(base) + b"/b\xe4\xff"))
    (base / "stüdy.toml").write_text(STUDY, encoding="utf-8")
    return kept_run(odd, first, series_of(first, samples=5)), kept_run(base / "a", second, series_of(second, samples=5))


def verbs(odd, other):
    study = other.parent / "stüdy.toml"
    return [
        (0, ["report", odd]),
        (0, ["report", odd, other, "--html", f"{odd}.html"]),
        (0, ["report", odd, "--format", "json"]),
        (0, ["report", odd, "--format", "csv"]),
        (0, ["compare", odd, other]),
        (0, ["rank", odd]),
        (2, ["plan", study]),
        (2, ["run", study, "--into", f"{odd}-ö€"]),
        (0, ["doctor", "--quick"]),
        (2, ["watch", "nö€"]),
    ]


@pytest.mark.long
@pytest.mark.parametrize("name", LOCALES)
def test_no_verb_fails_for_what_a_terminal_can_t_show(folders, state, name):
    without = {key: value for key, value in os.environ.items() if not key.startswith(("LC_", "LANG", "PYTHONIO"))}
    environment = {**without, **LOCALES[name], "DBDYNO_STATE_DIR": str(state)}
    for expected, argv in some(name, verbs(*folders), 0.4):
        command = [sys.executable, "-m", "dbdyno.cli.main", *map(str, argv)]
        done = subprocess.run(command, capture_output=True, env=environment, check=False)
        said = done.stdout + done.stderr
        assert done.returncode == expected, said
        assert b"Traceback" not in said
        said.decode(name)


def test_watch_draws_with_what_the_terminal_has():
    assert (bars_of("utf-8"), bars_of("latin-1"), bars_of("cp1252"), bars_of("no such")) == (BARS, *[PLAIN_BARS] * 3)
    assert sparkline([0, 50, 100], 3, bars=PLAIN_BARS) == " =@"
    assert len(PLAIN_BARS) == len(BARS)
