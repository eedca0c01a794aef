"""``device = "here"`` needs no root: a real server and a real load as an ordinary user."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import dbdyno

SYSTEM_PYTHON = Path("/usr/bin") / f"python3.{sys.version_info.minor}"
STUDY = """\
version = 1
[study]
title = "clients, here"
[stack]
device = "here"
[workload]
kind = "slap"
load = "mixed"
clients = [2, 8]
queries = 500
warmup = "100ms"
[design]
disturbed = "note"
blocks = 2
"""


def _passable():
    return all(folder.stat().st_mode & 0o001 for folder in Path(dbdyno.__file__).parents)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.skipif(not SYSTEM_PYTHON.exists(), reason=f"no {SYSTEM_PYTHON} that everybody may run")
@pytest.mark.skipif(not _passable(), reason="an ordinary user may not pass through the folders above this checkout")
@pytest.mark.skipif(shutil.which("mariadbd", path="/usr/sbin") is None, reason="no MariaDB server")
def test_an_ordinary_user_runs_a_study_here():
    home = Path("/tmp") / f"ddhere-{os.getpid()}"
    home.mkdir()
    shutil.chown(home, "nobody")
    study = home / "study.toml"
    study.write_text(STUDY, encoding="utf-8")
    environment = {
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": f"{sysconfig.get_path('purelib')}:{Path(dbdyno.__file__).parents[1]}",
    }

    def run(*argv):
        command = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", str(SYSTEM_PYTHON), "-m"]
        command += ["dbdyno.cli.main", *map(str, argv)]
        return subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, check=False)

    try:
        done = run("run", study, "--into", home / "run")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "clients 8" in done.stdout
        refused = run("disk", "attach", "ssd-sata", "--size", "1G")
        assert refused.returncode == 2
        assert "root: this is an ordinary user; run it with sudo" in refused.stderr
        assert list((home / ".local/state/dbdyno/journals").iterdir()) == []
        assert list((home / ".local/state/dbdyno/scratch").iterdir()) == []
    finally:
        shutil.rmtree(home)
