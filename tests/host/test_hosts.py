"""Hosts brought up over ssh, looked at, used and brought down: machines are network namespaces, each with an sshd."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from dbdyno.hosts.inventory import read_inventory
from dbdyno.hosts.reach import offsets, reach
from tests import sampled
from tests.documents import ROOT
from tests.lab import lab, lab_lacking
from tests.support import DBDYNO, dbdyno, wait_for

SHIFT_SECONDS = 1000  # of the second machine's CLOCK_MONOTONIC
TOKEN_MARK = b"DBDYNO_TOKEN="

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
        """Everything of this lab's that is still there: folders, undo logs, processes."""
        folders = [path for path in Path("/dev/shm").glob("dbdyno-ray-*") if self.is_ours(path)]
        return [*self.logs(), *folders, *self.processes()]

    def logs(self):
        """The undo logs here and on all hosts."""
        here = self.state.glob("hosts/clusters/*/state/journals/*")
        return [*here, *self.lab.folder.glob("there/hosts/*/state/journals/*")]

    def is_ours(self, folder):
        try:
            return self.lab.network in (folder / "node.json").read_text()
        except FileNotFoundError:
            return not any(folder.iterdir())

    def processes(self):
        """Those that anything of Ray's was started by: they have the token's file, or the command, of this lab."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                held, words = (process / "environ").read_bytes(), (process / "cmdline").read_bytes()
            except OSError:
                continue
            ours = str(self.lab.folder).encode() in held and TOKEN_MARK in held
            if ours and b"ray" in words:
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


def test_all_are_reached_and_the_same_and_alive(up):
    found, problem = up.status()
    assert problem == ""
    assert list(found) == ["c1", "c2"]
    for one in found.values():
        assert (one["ready"], one["same"], one["ray"], one["reachable"]) == (True, True, True, True)
        assert one["facts"]["root"] is True
        assert one["facts"]["cores"] == os.cpu_count()
    shown = up.hosts("status").stdout.splitlines()
    assert shown[1].split()[:5] == ["c1", "client", "the", "same", "alive"]


def test_another_user_of_a_host_gets_nowhere_near_rays_files(up):
    """Ray itself has them writable by all; what is around them is not."""
    ours = [path for path in Path("/dev/shm").glob("dbdyno-ray-*") if up.is_ours(path)]
    assert len(ours) == 3, "of both hosts, and of this machine"
    inside = [path for folder in ours for path in folder.rglob("*") if path.is_dir() and not path.is_symlink()]
    assert [path for path in inside if path.stat().st_mode & 0o777 == 0o777], "else there would be nothing to see here"
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    for path in [*ours, *inside]:
        for words in (["ls", path], ["mv", path, f"{path}.moved"], ["touch", path / "x"], ["test", "-x", path]):
            assert subprocess.run([*nobody, *words], capture_output=True, check=False).returncode != 0, words
    assert up.status()[1] == ""


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
        "c1: WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED; it was set up anew, or another machine answers in its "
        "place: ask who looks after it; only if the new key is right, log in once by hand "
        f"(ssh -F {up.lab.folder}/config c1), which says how the old key is removed"
    )


def test_a_second_up_starts_nothing_again(up):
    before = up.processes()
    assert len(before) >= 5, "head, raylets, and what helps them"
    said = json.loads(up.hosts("up", "--json").stdout)
    assert [one["started"] for one in said["hosts"]] == [False, False]
    assert up.processes() == before


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


def test_the_token_is_asked_for_and_in_no_command_line(up):
    file = up.state / "hosts/clusters/lab/cluster.json"
    assert file.stat().st_mode & 0o077 == 0
    right = file.read_text()
    token = json.loads(right)["token"]
    assert len(token) == 64
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            assert token.encode() not in process.read_bytes()
    file.write_text(right.replace(token, token[::-1]))
    try:
        found, problem = up.status()
    finally:
        file.write_text(right)
    assert problem.startswith(f"Ray at {up.lab.here}:")
    assert not any(one["ray"] or one["ready"] for one in found.values())


USED = """
import sys
from pathlib import Path

import pytest

from dbdyno.hosts.connect import connected
from dbdyno.hosts.carried import NotQuietError, quiet
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


def test_the_contract_over_ray(up, tmp_path):
    """In a process of its own, as Ray keeps what it once was told."""
    addresses = [up.lab.address(name) for name in up.lab.names]
    environment = {**os.environ, "DBDYNO_STATE_DIR": str(up.state)}
    command = [sys.executable, "-c", USED, up.inventory, tmp_path, *addresses, str(SHIFT_SECONDS * 10**9)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.drawn(1, group="ups and downs")
def test_a_cluster_that_exists_is_joined_and_left_as_it_was(up):
    """The first host is a node of it already; on the second, one more is started, and ended."""
    before = set(up.processes())
    other = up.lab.folder / "joined.toml"
    other.write_text(
        f'version = 1\n[cluster]\nname = "joined"\nfirst_port = {up.lab.first_port + 200}\nssh_config = "config"\n'
        f'[host.c1]\naddress = "{up.lab.address("c1")}"\nroles = ["client"]\n'
        f'[host.c2]\nssh = "c2"\nroles = ["server"]\nfolder = "{up.lab.folder}/there"\n'
    )
    cluster = json.loads((up.state / "hosts/clusters/lab/cluster.json").read_text())
    deaf = f"{up.lab.here}:{up.lab.first_port + 199}"
    said = dbdyno("hosts", "up", other, "--address", deaf, state=up.state).stderr.splitlines()[-1]
    assert said.startswith(
        f"dbdyno: nothing answers at {deaf} (Connection refused); see that Ray's head runs there, and"
    )
    refused = dbdyno("hosts", "up", other, state=up.state)
    assert refused.returncode == 2
    assert f"{other}: host.c1.ssh is missing; only with --address may it be" in refused.stderr
    words = ["hosts", "up", other, "--address", cluster["gcs"], "--json"]
    joined = dbdyno(*words, state=up.state, prefix=["env", f"RAY_AUTH_TOKEN={cluster['token']}"])
    assert joined.returncode == 0, joined.stderr
    assert [one["started"] for one in json.loads(joined.stdout)["hosts"]] == [False, True]
    assert set(up.processes()) > before
    said = json.loads(dbdyno("hosts", "status", other, "--json", state=up.state).stdout)
    assert [(one["ray"], one["reachable"]) for one in said["hosts"]] == [(True, True), (True, True)]
    assert dbdyno("hosts", "down", other, state=up.state).returncode == 0
    assert set(up.processes()) == before
    assert all(one["ready"] for one in up.status()[0].values())


def test_up_touches_nothing_where_any_host_can_not_take_part(desk):
    text = desk.inventory.read_text()
    lost = text + f'[host.c9]\nssh = "root@{desk.lab.network}.99"\nroles = ["client"]\n'
    file = desk.lab.folder / "lost.toml"
    file.write_text(lost.replace("[cluster]", '[cluster]\nname = "other"'))
    done = dbdyno("hosts", "up", file, state=desk.state)
    assert done.returncode == 1
    assert "dbdyno: c9: " in done.stderr
    assert not list(desk.state.glob("hosts/clusters/other/state"))


@pytest.mark.drawn(1, group="ups and downs")
@pytest.mark.timeout(900)
def test_after_down_nothing_is_left_and_a_killed_up_is_no_obstacle(desk):
    """Killed at one of its steps, which is each line of an undo log; with DBDYNO_TEST_LONG at every one."""
    desk.hosts("down")
    assert desk.left() == []
    for lines in sampled.some("steps of hosts up", range(1, 10), 1 / 9):
        environment = {**os.environ, "DBDYNO_STATE_DIR": str(desk.state)}
        started = subprocess.Popen([*DBDYNO, "hosts", "up", desk.inventory], env=environment, stderr=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
        wait_for(lambda at=lines, run=started: log_lines(desk) >= at or run.poll() is not None)
        started.send_signal(signal.SIGKILL)
        started.wait()
        desk.hosts("down")
        assert desk.left() == [], f"killed at line {lines}"
    said = desk.hosts("down").stderr.splitlines()
    announced = "ssh reads "  # what runs by the configuration that the file of hosts names
    assert [line for line in said if "nothing was there" not in line and not line.startswith(announced)] == []


def log_lines(desk):
    """Lines of the undo logs here and on all hosts."""
    found = 0
    for path in desk.logs():
        try:
            found += path.read_bytes().count(b"\n")
        except FileNotFoundError:
            continue
    return found


@pytest.mark.drawn(1, group="ups and downs")
def test_without_ray_one_sentence_says_what_to_install(desk):
    hidden = (
        "import importlib.util as u; f = u.find_spec; u.find_spec = lambda n, *a: None if n == 'ray' else f(n, *a); "
    )
    for verb in ("up", "status"):
        words = ["dbdyno", "hosts", verb, str(desk.inventory)]
        program = f"import sys; {hidden}sys.argv = {words!r}; from dbdyno.cli.main import main; main()"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        said = "dbdyno: many hosts need Ray, which is not installed here: pip install 'dbdyno[ray]'\n"
        assert (done.returncode, done.stderr.splitlines(keepends=True)[-1]) == (2, said)
