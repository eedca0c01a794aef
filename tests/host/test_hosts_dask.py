"""Points that a Dask cluster simulates, of one scheduler and one worker here; and what such a cluster gets of us."""

import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from dbdyno.errors import HostError, UserError
from dbdyno.hosts.connect import connected_to_dask
from dbdyno.servers.user import unprivileged
from dbdyno.simulation.sweep import simulate_point, simulators
from tests.certificates import OPENSSL, authority, certificate
from tests.support import wait_for
from tests.unit.hosts.workers_contract import POINT

pytest.importorskip("distributed")
pytestmark = [pytest.mark.host, pytest.mark.long, pytest.mark.timeout(180)]
NAMES = {
    "CA_FILE": "ca.crt",
    "CLIENT__CERT": "us.crt",
    "CLIENT__KEY": "us.key",
    "SCHEDULER__CERT": "us.crt",
    "SCHEDULER__KEY": "us.key",
    "WORKER__CERT": "us.crt",
    "WORKER__KEY": "us.key",
}


@contextmanager
def cluster(folder, scheme, environment=os.environ):
    """A scheduler and a worker; its address."""
    with ExitStack() as stack:

        def started(*words):
            environ = {**os.environ, **environment}
            said = stack.enter_context((folder / f"{words[0]}.log").open("wb"))
            argv = [sys.executable, "-m", f"distributed.cli.{words[0]}", *map(str, words[1:])]
            process = subprocess.Popen(argv, env=environ, stdout=said, stderr=said)
            stack.callback(process.wait)
            stack.callback(process.kill)

        file = folder / "scheduler.json"
        given = ["--protocol", scheme, "--host", "127.0.0.1", "--port", 0, "--no-dashboard"]
        started("dask_scheduler", *given, "--scheduler-file", file)
        wait_for(lambda: file.exists() and file.read_text().endswith("}"))
        own = ["--nthreads", 2, "--no-nanny", "--no-dashboard", "--local-directory", folder]
        started("dask_worker", "--protocol", scheme, "--scheduler-file", file, *own)
        yield json.loads(file.read_text())["address"]


@pytest.mark.skipif(OPENSSL is None, reason="no openssl")
def test_points_and_the_files_they_name_over_tls(tmp_path):
    authority(tmp_path)
    certificate(tmp_path, "us", "127.0.0.1")
    own = {f"DASK_DISTRIBUTED__COMM__TLS__{name}": str(tmp_path / file) for name, file in NAMES.items()}
    trace = tmp_path / "trace.csv"
    trace.write_text("time_s,offset,size,op\n0.0,0,4096,r\n0.1,8192,4096,w\n")
    points = [POINT | {"seed": seed} for seed in range(6)]
    points.append(POINT | {"load": {"kind": "trace", "files": [str(trace)], "replay": "open"}})
    wrong = POINT | {"size_bytes": 1 << 60}
    with cluster(tmp_path, "tls", own) as address, connected_to_dask(address, own) as there:
        with simulators(points, there) as by:
            begun = [by.begin(point) for point in [*points, wrong]]
            found = [by.result(one).text for one in begun[:-1]]
            with pytest.raises(ValueError, match="size_bytes: a disk of"):
                by.result(begun[-1])
        with pytest.raises(HostError, match="no Dask cluster with a worker"), connected_to_dask(f"tcp://{address[6:]}"):
            pass
    assert found == [simulate_point(json.dumps(point), lambda _: None) for point in points]


# What a member of a cluster may send: an object whose unpickling runs a command.
HOSTILE = """
import asyncio, os, sys
from distributed.comm import listen
from distributed.protocol.serialize import ToPickle

class Trap:
    def __reduce__(self):
        return (os.system, (f"id -u > {sys.argv[1]}; touch {sys.argv[2]}",))

async def handle(comm):
    await comm.read()
    await comm.write({"op": "x", "trap": ToPickle(Trap())})

async def main():
    async with listen("tcp://127.0.0.1:0", handle) as listener:
        print(listener.contact_address, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture
def reachable():
    """A folder to which every user gets."""
    with tempfile.TemporaryDirectory(prefix="dddask", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_what_a_hostile_cluster_has_run_is_no_root(reachable):
    """Dask takes pickles apart, whatever it is set to: in a process that has no rights, and nothing of ours in it."""
    drop, ours = reachable / "drop", reachable / "ours"
    drop.mkdir()
    drop.chmod(0o777)
    ours.mkdir()
    (drop / "trap.py").write_text(HOSTILE)
    words = [sys.executable, str(drop / "trap.py"), str(drop / "who"), str(ours / "touched")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as hostile:
        try:
            address = hostile.stdout.readline().strip()
            with pytest.raises(HostError, match=r"^dask: "), connected_to_dask(address):
                pass
        finally:
            hostile.kill()
    who = subprocess.run(unprivileged(["id", "-u"]), capture_output=True, text=True, check=True).stdout
    assert (drop / "who").read_text() == who != "0\n"
    assert not (ours / "touched").exists()


@pytest.mark.parametrize("given", ["", "http://x:1", "x", "x:port", "tls://x", "tcp://:8786", "-x:1/a", "tls://[::1"])
def test_what_is_no_address_of_a_scheduler(given):
    with (
        pytest.raises(UserError, match="is not the address of a scheduler, such as tls://"),
        connected_to_dask(given, {}),
    ):
        pass


def test_tls_is_the_default_and_says_which_files_it_needs(tmp_path):
    with pytest.raises(UserError, match="DASK_DISTRIBUTED__COMM__TLS__CA_FILE is not set"):
        connected_to_dask("10.0.0.1:8786", {}).__enter__()
    gone = {f"DASK_DISTRIBUTED__COMM__TLS__{name}": str(tmp_path / file) for name, file in NAMES.items()}
    with pytest.raises(UserError, match=r"ca.crt \(DASK_DISTRIBUTED__COMM__TLS__CA_FILE\): No such file"):
        connected_to_dask("10.0.0.1:8786", gone).__enter__()
