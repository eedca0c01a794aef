"""Hosts brought up over ssh, looked at, used and brought down: machines are network namespaces, each with an sshd."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dbdyno.hosts.connections import reach
from dbdyno.hosts.inventory import read_inventory
from dbdyno.hosts.ssh import offsets
from tests import sampled
from tests.documents import ROOT
from tests.lab import lab, lab_lacking
from tests.support import DBDYNO, dbdyno, wait_for

SHIFT_SECONDS = 1000  # of the second machine's CLOCK_MONOTONIC

pytestmark = [
    pytest.mark.host,
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(lab_lacking()), reason=lab_lacking()),
]


class Desk:
    """The machine that brings up: its state folder, and a file of hosts."""

    def __init__(self, made):
        self.lab = made
        self.state = made.folder / "here"
        self.inventory = made.inventory()

    def hosts(self, verb, *words, code=0):
        done = dbdyno("hosts", verb, self.inventory, *words, state=self.state)
        assert done.returncode == code, done.stderr
        return done

    def status(self, code=0):
        said = json.loads(self.hosts("status", "--json", code=code).stdout)
        return {one["name"]: one for one in said["hosts"]}, said["problem"]

    def left(self):
        """Everything of this lab's that is still there: undo logs, processes of hosts."""
        return [*self.logs(), *self.processes()]

    def packages(self):
        """What was unpacked on hosts, whole."""
        return [path for path in self.lab.folder.glob("there/packages/*") if not path.name.endswith(".part")]

    def logs(self):
        """The undo logs on all hosts."""
        return [*self.lab.folder.glob("there/hosts/*/state/journals/*")]

    def processes(self):
        """Those that have their state on a host of this lab."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                held, words = (process / "environ").read_bytes(), (process / "cmdline").read_bytes()
            except OSError:
                continue
            if f"DBDYNO_STATE_DIR={self.lab.folder}/there".encode() in held:
                found.append(f"{process.name}: {words[:200]}")
        return found


@pytest.fixture(scope="module")
def desk():
    with lab("c1", "c2", bare=True) as made:
        made.silence("c2")
        made.listen("c2", "unshare", "--time", "--monotonic", str(SHIFT_SECONDS), "--fork", "--kill-child")
        yield Desk(made)


@pytest.fixture(scope="module")
def up(desk):
    """All hosts are up, for as many tests as there are."""
    desk.hosts("up")
    yield desk
    desk.hosts("down")
    assert desk.left() == []


def test_all_are_reached_and_the_same_and_nothing_runs_there(up):
    found, problem = up.status()
    assert problem == ""
    assert list(found) == ["c1", "c2"]
    for one in found.values():
        assert (one["ready"], one["same"], one["reachable"]) == (True, True, True)
        assert one["facts"]["root"] is True
        assert one["facts"]["cores"] == os.cpu_count()
    shown = up.hosts("status").stdout.splitlines()
    assert shown[1].split()[:4] == ["c1", "client", "the", "same"]
    assert up.processes() == []


def test_a_host_key_that_has_changed_is_said_with_what_to_do(up):
    known = up.lab.folder / "known"
    before = known.read_text()
    other = " ".join((up.lab.folder / "user.pub").read_text().split()[:2])
    known.write_text(f"{up.lab.address('c1')} {other}\n" + before.split("\n", 1)[1])
    try:
        found, _ = up.status()
    finally:
        known.write_text(before)
    assert (found["c1"]["reachable"], found["c2"]["ready"]) == (False, True)
    assert found["c1"]["problem"] == (
        "c1: WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED; it was reinstalled, or another machine answers in its "
        "place: ask its administrator; only if the new key is right, log in once by hand "
        f"(ssh -F {up.lab.folder}/config c1), which tells how to remove the old key"
    )


def test_a_second_up_sends_and_changes_nothing(up):
    there = up.lab.folder / "there"
    before = {path: path.stat().st_mtime_ns for path in there.glob("packages/*")}
    said = json.loads(up.hosts("up", "--json").stdout)
    assert [one["address"] for one in said["hosts"]] == [up.lab.address("c1"), up.lab.address("c2")]
    assert {path: path.stat().st_mtime_ns for path in there.glob("packages/*")} == before
    assert up.processes() == []


def test_clocks_are_within_their_bounds(up):
    """One kernel has all clocks: the truth is known, 0 and what the time namespace adds."""
    host = read_inventory(up.inventory)
    for name, monotonic in {"c1": 0, "c2": SHIFT_SECONDS * 10**9}.items():
        with reach(host, name, host.hosts[name], None) as channel:
            for _ in range(20):
                found = offsets(channel)
                assert abs(found["monotonic"].offset_ns - monotonic) <= found["monotonic"].bound_ns < 10**8
                assert abs(found["realtime"].offset_ns) <= found["realtime"].bound_ns
                assert found["monotonic"].echoes == 128


REACHED = """
import sys
from contextlib import suppress
from pathlib import Path

import psutil

from dbdyno.hosts.connect import connected

file, lab = sys.argv[1:]
with connected(Path(file)) as there:
    hosts = there.hosts
    for name in hosts.names:
        shown = hosts.start(name, ["env"])
        said = b"".join(one.content for one in [*hosts.stream(name, shown)][:-1]).decode()
        assert "SSH_CONNECTION=" in said
        assert "SSH_AUTH_SOCK=" not in said, "a host may use no key of this machine"
        assert "DISPLAY=" not in said
    ours = [psutil.Process(), *psutil.Process().children(recursive=True)]
    words = {one: " ".join(one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"])}
    ours += [one for one, said in words.items() if lab in said or "dbdyno.hosts" in said]
    for one in ours:
        with suppress(psutil.NoSuchProcess):
            listening = [at for at in one.net_connections("inet") if at.status == "LISTEN"]
            assert not listening or "sshd" in one.name(), (one, listening)
"""


def test_a_host_reaches_nothing_here_whatever_the_users_own_configuration_lets_others_do(up):
    """No port, no key, no display: with agents, X11 and ports forwarded by the configuration that the file names."""
    config = up.lab.folder / "config"
    before = config.read_text()
    free = "  ForwardAgent yes\n  ForwardX11 yes\n  ForwardX11Trusted yes\n  RemoteForward 26999 127.0.0.1:22\n"
    config.write_text(before + free)
    started = subprocess.run(["ssh-agent", "-s"], capture_output=True, text=True, check=True).stdout
    given = dict(part.split(";")[0].split("=") for part in started.splitlines() if "=" in part)
    try:
        environment = {**os.environ, **given, "DISPLAY": ":9", "DBDYNO_STATE_DIR": str(up.state)}
        command = [sys.executable, "-c", REACHED, up.inventory, up.lab.folder]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    finally:
        config.write_text(before)
        os.kill(int(given["SSH_AGENT_PID"]), signal.SIGTERM)
    assert done.returncode == 0, done.stderr


USED = """
import sys
from pathlib import Path

import pytest

from dbdyno.hosts.connect import connected
from dbdyno.hosts.contract import NotQuietError, quiet
from tests.unit.hosts.contract import keeps_the_contract

file, folder, first, second, shift_ns = sys.argv[1:]
with connected(Path(file)) as there:
    hosts = there.hosts
    keeps_the_contract(hosts, "c1", "c2", Path(folder))
    for name, truth in {"c1": 0, "c2": int(shift_ns)}.items():
        offset = there.offsets()[name]
        assert abs(offset.offset_ns - truth) <= offset.bound_ns
    with quiet(), pytest.raises(NotQuietError):
        hosts.alive()
    with quiet("c1"), pytest.raises(NotQuietError):
        hosts.start("c1", ["true"])
    assert there.lost() == frozenset()
    for name, address in {"c1": first, "c2": second}.items():
        shown = hosts.start(name, ["ip", "-o", "-4", "address"])
        said = b"".join(one.content for one in [*hosts.stream(name, shown)][:-1]).decode()
        assert f" {address}/24 " in said, said
"""


def test_the_contract_over_ssh(up, tmp_path):
    addresses = [up.lab.address(name) for name in up.lab.names]
    environment = {**os.environ, "DBDYNO_STATE_DIR": str(up.state)}
    command = [sys.executable, "-c", USED, up.inventory, tmp_path, *addresses, str(SHIFT_SECONDS * 10**9)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_up_names_each_host_that_can_not_take_part(desk):
    text = desk.inventory.read_text()
    lost = text + f'[host.c9]\nssh = "root@{desk.lab.network}.99"\nroles = ["client"]\n'
    file = desk.lab.folder / "lost.toml"
    file.write_text(lost.replace("[cluster]", '[cluster]\nname = "other"'))
    done = dbdyno("hosts", "up", file, state=desk.state)
    assert done.returncode == 1
    assert "dbdyno: c9: " in done.stderr
    assert dbdyno("hosts", "down", file, state=desk.state).returncode == 1, "c9 may have been up, as far as is known"


@pytest.mark.drawn(1, group="ups and downs")
@pytest.mark.timeout(900)
def test_after_down_nothing_is_left_and_a_killed_up_is_no_obstacle(desk):
    """Killed before the first package is there, or after some are: what is half there never counts."""
    desk.hosts("down")
    assert desk.left() == []
    refused = dbdyno("simulate", "--rw", "randread", "--hosts", desk.inventory, state=desk.state)
    up = f"dbdyno hosts up {desk.inventory}"
    assert refused.stderr.endswith(f"dbdyno: {desk.inventory}: its hosts are not up; run {up}\n")
    packages, whole = desk.lab.folder / "there/packages", {path.name for path in desk.packages()}
    for number in sampled.some("packages of hosts up", range(len(whole)), 1 / len(whole)):
        shutil.rmtree(packages)
        environment = {**os.environ, "DBDYNO_STATE_DIR": str(desk.state)}
        started = subprocess.Popen([*DBDYNO, "hosts", "up", desk.inventory], env=environment, stderr=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
        wait_for(lambda at=number, run=started: len(desk.packages()) >= at or run.poll() is not None)
        started.send_signal(signal.SIGKILL)
        started.wait()
        wait_for(lambda: desk.left() == [])
        desk.hosts("up")
        assert {path.name for path in desk.packages()} == whole
        assert all(one["ready"] for one in desk.status()[0].values())
    desk.hosts("down")
    said = desk.hosts("down").stderr.splitlines()
    announced = "ssh reads "  # what runs by the configuration that the file of hosts names
    assert [line for line in said if "nothing was there" not in line and not line.startswith(announced)] == []
