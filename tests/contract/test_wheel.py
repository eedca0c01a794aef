"""The wheel, in an environment that has nothing else: no compiler, no repository, no root needed."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from scripts.manual import PLACES, files

ROOT = Path(__file__).parents[2]
MANUAL = "share/man/man1/dbdyno.1"
# What every glibc brings along, of what a wheel for manylinux may ask a host for (PEP 600).
OF_GLIBC = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "libpthread.so.0", "libdl.so.2"}

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel as ``make wheel`` builds it, of the programs that ``make build`` has built."""
    folder = tmp_path_factory.mktemp("wheel")
    maturin = Path(sys.executable).with_name("maturin")
    with_tools = {**os.environ, "PATH": f"{maturin.parent}:{os.environ['PATH']}"}
    made = [sys.executable, "-m", "scripts.manual", ROOT / "target/programs/data"]
    for command in (made, [maturin, "build", "--locked", "--out", folder]):
        subprocess.run(command, cwd=ROOT, env=with_tools, check=True)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The folder of an environment that the wheel was installed into, and nothing else."""
    clean = tmp_path_factory.mktemp("clean")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", clean], check=True)
    pip = [sys.executable, "-m", "pip", "--python", clean / "bin/python", "--quiet", "--disable-pip-version-check"]
    command = [*pip, "install", "--no-compile", wheel]  # what is imported is compiled then
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and "onnection" in done.stderr:
        pytest.skip(f"the wheel's dependencies can't be had here: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return clean


def test_a_wheel_is_all_that_is_needed(installed, tmp_path):
    bare = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}

    def dbdyno(*arguments, **environment):
        command = [installed / "bin/dbdyno", *arguments]
        environment = {**bare, **environment}
        done = subprocess.run(command, cwd="/var/tmp", env=environment, capture_output=True, text=True, check=True)
        return done.stdout

    assert dbdyno("--version").startswith("dbdyno ")
    found = json.loads(dbdyno("quick", "--rounds", "2", "--json", "--html", str(tmp_path / "page.html")))
    assert {step["operation"] for step in found["targets"][0]["steps"]} == {"fsync", "randread", "randwrite"}
    assert "sysbench" in dbdyno("oltp", "--help")
    assert (installed / "bin/dbdyno-probe").exists()
    asked = dbdyno(_DBDYNO_COMPLETE="complete_bash", COMP_WORDS="dbdyno disk attach hdd-1", COMP_CWORD="3")
    assert asked.split() == ["hdd-10k", "hdd-15k"]
    assert dbdyno("completion", "bash") == (installed / PLACES["bash"]).read_text(encoding="utf-8")


def test_the_manual_and_completion_are_installed_with_it(installed):
    for place, text in files().items():
        assert (installed / place).read_text(encoding="utf-8") == text
    if shutil.which("man") and shutil.which("groff"):
        environment = {"PATH": os.environ["PATH"], "MANPATH": str(installed / "share/man"), "MANPAGER": "cat"}
        done = subprocess.run(["man", "1", "dbdyno"], env=environment, capture_output=True, text=True, check=True)
        assert "dynamometer" in done.stdout


def asks_for(program):
    """What a program or library asks of a host: the newest glibc, and libraries."""
    symbols = subprocess.run(["objdump", "-T", program], capture_output=True, text=True, check=True).stdout
    headers = subprocess.run(["objdump", "-p", program], capture_output=True, text=True, check=True).stdout
    versions = {tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([0-9.]+)", symbols)}
    return max(versions), set(re.findall(r"NEEDED +(\S+)", headers))


@pytest.mark.skipif(shutil.which("objdump") is None, reason="no objdump")
def test_nothing_in_it_asks_for_more_than_its_name_promises(wheel, tmp_path):
    named = re.search(r"-manylinux_(\d+)_(\d+)_x86_64\.whl$", wheel.name)
    assert named, f"{wheel.name} is no wheel that pip takes on other machines"
    with zipfile.ZipFile(wheel) as opened:
        members = [one for one in opened.namelist() if "/scripts/" in one or one.endswith(".so")]
        opened.extractall(tmp_path, members)
    assert {Path(one).name for one in members} == {"dbdyno-load", "dbdyno-disk", "dbdyno-probe", "_native.abi3.so"}
    for one in members:
        newest, libraries = asks_for(tmp_path / one)
        assert newest <= (int(named[1]), int(named[2])), f"{one} asks for glibc {newest}, {wheel.name} promises less"
        assert libraries <= OF_GLIBC, f"{one} asks for more than glibc"
