"""A study on the real disks of two hosts, which are names of this machine with a state folder and a disk each."""

import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.plan.plan import make_plan
from dbdyno.run.execute import open_run
from dbdyno.run.fleet.asking import as_needs, refusals
from dbdyno.run.fleet.coordinate import identity_of, run_on_hosts
from dbdyno.run.fleet.member import take_part
from dbdyno.run.fleet.message import MemberFacts
from dbdyno.run.fleet.part import HostAccess
from dbdyno.run.fleet.request import make_requests
from dbdyno.store.documents import value_of
from dbdyno.store.header import RUN
from dbdyno.store.run_folder import read_run
from dbdyno.study.load import load_study
from tests.contents import write
from tests.fleets import Fleet
from tests.local_hosts import LocalHosts
from tests.loops import lent_loop
from tests.support import what_is_left
from tests.unit.report.rendered import as_text

pytestmark = pytest.mark.host

MIB = 1024**2
HOSTS = ("db1", "db2")
STUDY = """\
version = 1
[study]
title = "a disk on each host"
[hosts]
under_test = ["db1", "db2"]
{disks}
[stack]
scheduler = "none"
filesystem = "ext4"
server = "none"
[workload]
kind = "fio"
profile = "RND4K Q1T1"
load = "write"
size = "16MiB"
duration = "500ms"
[design]
blocks = 2
interference = "note"
"""


class Disks:
    """Two disks, and the access by which both hosts are reached."""

    def __init__(self, folder, stack):
        self.folder = folder
        self.files = {name: folder / name for name in HOSTS}
        self.disks = {name: stack.enter_context(lent_loop(file, 128 * MIB)) for name, file in self.files.items()}
        self.access = HostAccess(
            LocalHosts(HOSTS), dict, environment_of=lambda host: {"DBDYNO_STATE_DIR": str(folder / f"state-{host}")}
        )

    def plan(self):
        named = (
            f'[hosts.disk.{name}]\ndevice = "{disk}"\nserial = "{self.files[name]}"'
            for name, disk in self.disks.items()
        )
        study = self.folder / "study.toml"
        study.write_text(STUDY.format(disks="\n".join(named)))
        return make_plan(load_study(study), seed=1)

    def asked(self, plan, erase=frozenset()):
        """What each host answers, by the program that it runs, without the seconds in which that starts."""
        made, said = make_requests(plan, "asked", erase, fresh_images=False), []
        for name in HOSTS:
            take_part(made("facts", name), said.append)
        return {name: value_of(MemberFacts, one["facts"]) for name, one in zip(HOSTS, said, strict=True)}

    def sums(self):
        return [subprocess.check_output(["sha256sum", disk]) for disk in self.disks.values()]


@pytest.fixture
def disks_of_hosts(state):  # noqa: ARG001  (where what is asked keeps its things)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dd", dir="/dev/shm")))
        folder.chmod(0o755)
        made = Disks(folder, stack)
        yield made
        assert [what_is_left(folder / f"state-{name}") for name in HOSTS] == [[], []]


def test_each_host_proves_its_own_disk_and_runs_on_it(disks_of_hosts, tmp_path):
    plan = disks_of_hosts.plan()
    write(disks_of_hosts.disks["db2"], 20 * MIB, b"of others")
    before = disks_of_hosts.sums()
    (refused,) = refusals(plan, disks_of_hosts.asked(plan), frozenset())
    assert refused.startswith(f"db2: device {disks_of_hosts.disks['db2']}: ")
    assert f"content without a known signature at offset {20 * MIB}. It is not touched" in refused
    assert disks_of_hosts.sums() == before
    erase = frozenset({str(disks_of_hosts.files["db2"])})
    shown = {one.name: one.said for one in as_needs(plan, disks_of_hosts.asked(plan, erase), erase)}
    assert f"ERASED: {disks_of_hosts.disks['db1']} ({disks_of_hosts.files['db1']}; it is empty" in shown["db1"]
    assert "which --erase allows" in shown["db2"]
    run_it(disks_of_hosts, plan, tmp_path / "run", erase)
    run = read_run(tmp_path / "run")
    serials = {trial.host: trial.observed["device"]["serial"] for trial in run.trials}
    assert serials == {name: str(file) for name, file in disks_of_hosts.files.items()}
    assert f'[fleet.disks.db1]\ndevice = "{disks_of_hosts.disks["db1"]}"\n' in (tmp_path / "run" / RUN).read_text()
    said = " ".join(as_text(run, analyse(run), 1000).split())
    for name in HOSTS:
        assert f"{name} {disks_of_hosts.disks[name]} not read back {disks_of_hosts.files[name]} 134 MB" in said


def run_it(disks_of_hosts, plan, into, erase):
    folder = open_run(plan, into, resume=False, versions={"dbdyno": "0"}, host={})
    try:
        requests = make_requests(plan, identity_of(into), erase, fresh_images=False)
        assert run_on_hosts(plan, folder, Fleet(into, ()), requests, disks_of_hosts.access).how == "done"
    finally:
        folder.close()
