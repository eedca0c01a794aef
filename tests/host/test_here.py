"""``device = "here"`` needs no root: a real server and a real load as an ordinary user."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import dbdyno
from dbdyno.stack.layers.here import folder_here
from tests.support import dbdyno as run_dbdyno
from tests.support import with_own_mounts

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
interference = "note"
blocks = 2
"""


def _passable():
    return all(folder.stat().st_mode & 0o001 for folder in Path(dbdyno.__file__).parents)


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.skipif(not SYSTEM_PYTHON.exists(), reason=f"no {SYSTEM_PYTHON} that everybody may run")
@pytest.mark.skipif(not _passable(), reason="an ordinary user may not pass through the folders above this checkout")
@pytest.mark.skipif(shutil.which("mariadbd", path="/usr/sbin") is None, reason="no MariaDB server")
def test_an_ordinary_user_runs_a_study_here():
    home = Path("/var/tmp") / f"ddhere-{os.getpid()}"
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
        done = run("run", study, "--into", home / "run", "--details", "--wait")  # for a run on this host
        assert done.returncode == 0, done.stdout + done.stderr
        assert "clients 8" in done.stdout
        refused = run("disk", "attach", "ssd-sata", "--size", "1G")
        assert refused.returncode == 2
        assert "root: this is an ordinary user; run it with sudo" in refused.stderr
        assert list((home / ".local/state/dbdyno/journals").iterdir()) == []
        assert list((home / ".local/state/dbdyno/scratch").iterdir()) == []
    finally:
        shutil.rmtree(home)


# What the state folder ("$1") is put on, for one process alone, with another folder to use ("$2"); what is said of it.
GROUNDS = {
    "tmpfs": (
        'mount -t tmpfs none "$1"',
        "is on tmpfs at {state}, which is in memory, not on a disk; set DBDYNO_STATE_DIR to ",
    ),
    "an overlay over tmpfs": (
        (
            'mount -t tmpfs none "$2" && mkdir "$2/a" "$2/b" && '
            'mount -t overlay -o "lowerdir=/,upperdir=$2/a,workdir=$2/b" none "$1"'
        ),
        "is on overlay over tmpfs at {state}, which is in memory, not on a disk; set DBDYNO_STATE_DIR to a folder",
    ),
    "read-only": (
        'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1"',
        "can't be written by this user, or is mounted read-only; set DBDYNO_STATE_DIR to a folder of yours",
    ),
    "a full disk": (
        'truncate -s 64M "$2/image" && mkfs.ext4 -q "$2/image" && mount "$2/image" "$1" && chmod 755 "$1"',
        "free; the data and the copy that a trial works on take about 272 MiB; make room, or set DBDYNO_STATE_DIR to ",
    ),
}


@pytest.mark.host
@pytest.mark.drawn(2)
@pytest.mark.parametrize("ground", GROUNDS)
def test_a_folder_that_is_no_disk_or_has_no_room_is_said_by_plan_run_and_doctor(ground, state, tmp_path):
    put, said = GROUNDS[ground]
    study, other = tmp_path / "study.toml", tmp_path / "other"
    study.write_text(STUDY, encoding="utf-8")
    other.mkdir()
    said = said.replace("{state}", str(state))
    alone = with_own_mounts(f'{put} && shift 2 && exec "$@"', state, other)
    planned = run_dbdyno("plan", study, state=state, prefix=alone)
    assert planned.returncode == 2, planned.stderr
    assert f"  here: {state} " in planned.stdout
    assert said in planned.stdout
    refused = run_dbdyno("run", study, "--into", tmp_path / "run", state=state, prefix=alone)
    assert refused.returncode == 2
    assert said in refused.stderr
    assert not (tmp_path / "run").exists()
    doctor = " ".join(run_dbdyno("doctor", "--quick", state=state, prefix=alone).stdout.split())
    assert said in doctor or ground == "a full disk", "how much a study needs, doctor does not know"


def test_room_is_asked_for_what_the_study_says_of_its_data():
    assert folder_here(0)[1] == ""
    assert folder_here(10**18)[1].startswith("make room, or set DBDYNO_STATE_DIR")
