"""The image of the Containerfile, built by buildah on a Debian base, and what works in it without rights."""

import shutil
import subprocess
from pathlib import Path

import pytest

from scripts.release import MACHINES, build_debian_package, build_wheel

ROOT = Path(__file__).parents[2]
BUILDERS = ("buildah", "mmdebstrap")
EXTERNAL = """\
set -eu
cd "$(mktemp -d)"
mkdir data
mariadb-install-db --no-defaults --datadir="$PWD/data" --auth-root-authentication-method=normal >/dev/null
mariadbd --no-defaults --datadir="$PWD/data" --socket="$PWD/s.sock" --skip-networking 2>server.log &
until mariadb --no-defaults --socket="$PWD/s.sock" --user=root -e "CREATE DATABASE lent" 2>refused; do
    kill -0 $! || { cat server.log refused; exit 1; }
    sleep .1
done
cat > study.toml <<S
version = 1
[study]
title = "An external server in a container"
[stack]
server = "mysql://root@/lent?socket=$PWD/s.sock"
[server.settings]
innodb_flush_log_at_trx_commit = [1, 2]
[workload]
kind = "slap"
load = "write"
clients = 2
queries = 200
warmup = "0s"
[design]
blocks = 1
interference = "note"
S
code=0
DBDYNO_STATE_DIR="$PWD/state" dbdyno run study.toml --into run || code=$?
kill %1
wait || true
exit $code
"""

pytestmark = [
    pytest.mark.host,
    pytest.mark.long,
    pytest.mark.drawn(0, group="image"),  # a base, a wheel and an image take ten minutes: with DBDYNO_TEST_LONG alone
    pytest.mark.timeout(3000),
    pytest.mark.skipif(
        not all(map(shutil.which, BUILDERS)), reason=f"no container image is built: {' or '.join(BUILDERS)} is missing"
    ),
]


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A folder with the Debian package of the last commit, as a release has it."""
    source, into = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("package")
    packed = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True)
    subprocess.run(["tar", "--extract", "--directory", source], input=packed.stdout, check=True)
    [machine] = [machine for machine in MACHINES if not machine.prefix]
    build_wheel(source, machine, into)
    [wheel] = into.glob("*.whl")
    build_debian_package(wheel, source, machine, into)
    return into


@pytest.fixture(scope="module")
def container(package, tmp_path_factory):
    """What runs a command in a container of the image, as its user and without rights."""
    folder = tmp_path_factory.mktemp("images")
    base = folder / "base"
    base.mkdir()
    subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", "bookworm", base / "base.tar"], check=True)
    (base / "Containerfile").write_text("FROM scratch\nADD base.tar /\n", encoding="utf-8")
    at = ["buildah", "--storage-driver", "vfs", "--root", folder / "kept", "--runroot", folder / "run"]
    chroot = ["--isolation", "chroot"]

    def buildah(*arguments):
        done = subprocess.run([*at, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"
        return done.stdout

    buildah("bud", *chroot, "--tag", "base", base)
    (base / "base.tar").unlink()
    built = ["--build-arg", "BASE=localhost/base", "--file", ROOT / "Containerfile", "--tag", "dbdyno"]
    buildah("bud", *chroot, *built, package)
    name = buildah("from", "localhost/dbdyno").strip()
    yield lambda *command: buildah("run", *chroot, "--user", "dbdyno", name, "--", *command)
    shutil.rmtree(folder)


def test_quick_measures_the_disk_of_a_container_without_rights(container):
    assert "CapEff:\t0000000000000000" in container("cat", "/proc/self/status")
    assert "How far to trust it" in container("dbdyno", "quick", "--rounds", "2")


def test_an_external_server_in_a_container_is_measured_without_rights(container):
    assert "An external server in a container" in container("bash", "-c", EXTERNAL)
