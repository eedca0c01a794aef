"""``make atlas``: a simulated study, sweeps of every drive and the run folders that are there become a site."""

import html
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dbdyno
from dbdyno._native import device_models
from dbdyno.study.load import load_study

pytestmark = [pytest.mark.long, pytest.mark.timeout(580)]

ROOT = Path(__file__).parents[2]


def atlas(*arguments, state):
    environment = {**os.environ, "DBDYNO_STATE_DIR": str(state)}
    command = [sys.executable, "-m", "scripts.atlas", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=560, check=False)


def test_the_first_atlas_is_made_and_nothing_is_made_twice(state, tmp_path):
    shutil.copytree(ROOT / "tests/kept/clients", tmp_path / "runs/field-reports/clients")
    asked = ("simulated", "--no-quick", "--into", tmp_path / "runs/atlas", "--runs", tmp_path / "runs")
    done = atlas(*asked, state=state)
    assert done.returncode == 0, done.stderr
    shared = [file.name.removesuffix(".tar.gz") for file in (ROOT / "studies/results").iterdir()]
    assert "kernels" in shared
    assert f"atlas of {6 + len(shared)} results" in done.stdout
    site = tmp_path / "runs/atlas/site"
    names = [dbdyno.__version__, "clients", "durable-writes", "random-reads", "random-writes", "simulated", *shared]
    assert {page.stem for page in (site / "runs").iterdir()} == set(names)
    index = (site / "index.html").read_text(encoding="utf-8")
    assert [model["name"] for model in device_models() if f'value="{model["name"]}"' not in index] == ["ideal"]
    lacking = index.partition("Not measured yet")[2]
    measured = ["field-reports/server-versions-mysql", "examples/safe-commits"]
    not_lacking = ["field-reports/kernels", "field-reports/queue-depth-2009"]  # imported, simulated
    studies = measured + not_lacking
    titles = {name: html.escape(load_study(ROOT / f"studies/{name}.toml").about.title) for name in studies}
    assert [name for name, title in titles.items() if f"<li>{title}</li>" in lacking] == measured
    again = atlas(*asked, state=state)
    assert again.returncode == 0, again.stderr
    assert "==" not in again.stdout


def test_a_study_that_is_none_is_named(state, tmp_path):
    done = atlas("demo", "--no-quick", "--into", tmp_path / "atlas", "--runs", tmp_path, state=state)
    assert done.returncode == 1
    assert "no simulated study is called demo; there are" in done.stderr
