"""Hosts that are restarted with another kernel between whole plots, and returned to their own.

A host is a network namespace with an sshd. A program of the file of hosts restarts it: it kills all that runs there,
and brings up an sshd with another ``boot_id``, to which the kernel says another version of itself (``setarch
--uname-2.6``). What is read back there is what any program on that host is told.
"""

import json
import os
import platform
import shlex
import shutil
import signal
import subprocess

import pytest

from dbdyno.analysis.blocks import usable_blocks
from dbdyno.store.events import Note, read_events
from dbdyno.store.run_folder import read_run
from tests.lab import lab, lab_lacking
from tests.support import DBDYNO, dbdyno, wait_for

STUDY = """\
version = 1
[study]
title = "Which kernel"
[hosts]
under_test = ["a"]
[hosts.boot]
kernel = ["{own}", "{other}"]
[stack]
device = "memory"
filesystem = "tmpfs"
size = "512MiB"
[workload]
kind = "slap"
load = "write"
clients = 2
think_time = "5ms"
duration = "1s"
[design]
blocks = 2
seed = 4
interference = "note"
"""
ONLY_OTHER = STUDY.replace('["{own}", "{other}"]', '"{other}"')
WITHOUT_KERNELS = STUDY.replace('[hosts.boot]\nkernel = ["{own}", "{other}"]\n', "")
BOOT = """\
#!/bin/bash
# NAME SSH KERNEL: all that runs there ends at once, as by the button; then it comes up.
set -eu
folder={folder}
echo "$@" >> "$folder/boots"
wanted=$3
[ ! -e "$folder/comes-back-with" ] || wanted=$(cat "$folder/comes-back-with")
ip netns pids {namespace} | xargs -r kill -9
[ ! -e "$folder/stays-away" ] || exit 0
cat /proc/sys/kernel/random/uuid > "$folder/boot_id"
personality=""
[ "${{wanted#2.6.}}" = "$wanted" ] || personality="setarch --uname-2.6"
# The mounts of other tests are no part of it: their filesystems would stay in use.
up='while read -r device place _; do
    case "$device $place" in
        /dev/loop* | *" /tmp/"* | *" /var/tmp/"*) umount -l "$place" 2> /dev/null || true ;;
    esac
done < /proc/mounts
mount --bind "$0/boot_id" /proc/sys/kernel/random/boot_id && exec "$@"'
setsid {nsenter} unshare --mount sh -c "$up" "$folder" $personality {sshd} < /dev/null > "$folder/up.log" 2>&1 &
"""
OWN = platform.release()
OTHER = (
    subprocess.run(["setarch", "--uname-2.6", "uname", "-r"], stdout=subprocess.PIPE, check=False)
    .stdout.decode()
    .strip()
    if shutil.which("setarch")
    else ""
)

pytestmark = [
    pytest.mark.host,
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(lab_lacking()), reason=lab_lacking()),
    pytest.mark.skipif(OTHER in {"", OWN}, reason="setarch --uname-2.6 says no other version here"),
]


class Desk:
    """The machine where a study is typed, and its one host."""

    def __init__(self, made):
        self.lab, self.folder, self.state = made, made.folder, made.folder / "here"
        nsenter, *sshd = made.words("a")[:2], made.words("a")[2:]
        program = self.folder / "boot"
        program.write_text(
            BOOT.format(
                folder=self.folder, namespace=made.namespace("a"), nsenter=shlex.join(nsenter), sshd=shlex.join(*sshd)
            )
        )
        program.chmod(0o755)
        self.inventory = made.inventory(boot='"./boot"', boot_within='"40s"')
        self.inventory.write_text(self.inventory.read_text().replace('["client"]', '["server"]'))

    def kernel(self):
        """What the host says of itself."""
        asked = self.lab.ssh("a", "uname", "-r")
        return subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()

    def boots(self):
        path = self.folder / "boots"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def study(self, folder, text=STUDY):
        path = folder / "study.toml"
        path.write_text(text.format(own=OWN, other=OTHER))
        return path

    def run(self, study, into, *words):
        return dbdyno("run", study, "--hosts", self.inventory, "--into", into, *words, state=self.state)

    def begin(self, study, into, said):
        command = [*DBDYNO, "run", str(study), "--hosts", str(self.inventory), "--into", str(into)]
        environment = {**os.environ, "DBDYNO_STATE_DIR": str(self.state)}
        with said.open("wb") as file:
            return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=file)

    def records(self):
        return [*self.state.glob("hosts/clusters/*/booted/*.json")]

    def end_all(self):
        asked = ["ip", "netns", "pids", self.lab.namespace("a")]
        for pid in subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=True).stdout.split():
            os.kill(int(pid), signal.SIGKILL)


@pytest.fixture(scope="module")
def up():
    with lab("a") as made:
        made.folder.chmod(0o755)
        desk = Desk(made)
        done = dbdyno("hosts", "up", desk.inventory, state=desk.state)
        assert done.returncode == 0, done.stderr
        try:
            yield desk
            down = dbdyno("hosts", "down", desk.inventory, state=desk.state)
            assert down.returncode == 0, down.stderr
        finally:
            desk.end_all()


@pytest.fixture
def desk(up):
    """The host with its own kernel, and nothing known of other times."""
    for name in ("boots", "comes-back-with", "stays-away"):
        (up.folder / name).unlink(missing_ok=True)
    yield up
    for name in ("comes-back-with", "stays-away"):
        (up.folder / name).unlink(missing_ok=True)
    if up.records():
        assert dbdyno("restore", "--hosts", up.inventory, state=up.state).returncode == 0
    assert up.kernel() == OWN


@pytest.mark.drawn(1, group="hosts that are restarted")
def test_trials_run_with_the_kernel_of_their_treatment_and_the_host_gets_its_own_back(desk, tmp_path):
    study, into = desk.study(tmp_path), tmp_path / "run"
    planned = json.loads(dbdyno("plan", study, "--hosts", desk.inventory, "--json", state=desk.state).stdout)
    done = desk.run(study, into)
    assert done.returncode == 0, done.stderr
    found = read_run(into)
    assert (found.ended, len(usable_blocks(found).trials), found.failures) == ("done", 2, [])
    kernels = {"t1": OWN, "t2": OTHER}
    assert all(one.observed["boot"] == {"kernel": kernels[one.treatment]} for one in found.trials)
    assert [event.text for event in read_events(into) if isinstance(event, Note)] == []
    boots = desk.boots()
    assert {(name, ssh) for name, ssh, _ in boots} == {("a", "a")}
    assert boots[-1][2] == OWN
    assert 2 <= len(boots) <= planned["starts_anew"]["a"]
    assert f"a: restarts with kernel {OTHER}" in done.stderr
    assert f"a: runs its own kernel again: {OWN}" in done.stderr
    assert (desk.kernel(), desk.records()) == (OWN, [])


def test_restore_returns_a_host_of_a_study_that_was_killed_and_resume_goes_on_with_whole_blocks(desk, tmp_path):
    study, into, said = desk.study(tmp_path), tmp_path / "run", tmp_path / "said"
    run = desk.begin(study, into, said)
    try:
        wait_for(lambda: run.poll() is not None or any(kernel == OTHER for *_, kernel in desk.boots()), seconds=300)
        run.send_signal(signal.SIGSTOP)  # else it may have ended the plot, and returned the host, before that is asked
        assert run.poll() is None, said.read_text()
        assert [json.loads(record.read_bytes())["kernel"] for record in desk.records()] == [OWN], "before it restarts"
        going_on = dbdyno("restore", "--hosts", desk.inventory, "--json", state=desk.state)
        [there] = json.loads(going_on.stdout)["hosts"]
        assert f"process {run.pid} has restarted it" in there["left_alone"][0]
    finally:
        run.kill()
        run.wait()
    refused = dbdyno("run", desk.study(tmp_path, WITHOUT_KERNELS), "--hosts", desk.inventory, state=desk.state)
    assert refused.returncode == 2
    assert f"restore --hosts {desk.inventory} returns it to {OWN}" in refused.stderr
    restored = json.loads(dbdyno("restore", "--hosts", desk.inventory, "--json", state=desk.state).stdout)
    assert f"it runs its own kernel again: {OWN}" in restored["hosts"][0]["undone"]
    assert (desk.kernel(), desk.records()) == (OWN, [])
    again = dbdyno("restore", "--hosts", desk.inventory, state=desk.state)
    assert "a: nothing to restore" in again.stdout
    done = desk.run(desk.study(tmp_path), into, "--resume")
    assert done.returncode == 0, done.stderr
    found = read_run(into)
    assert (found.ended, len(usable_blocks(found).trials)) == ("done", 2)
    assert all(one.observed["boot"]["kernel"] == {"t1": OWN, "t2": OTHER}[one.treatment] for one in found.trials)


@pytest.mark.drawn(1, group="hosts that are restarted")
@pytest.mark.parametrize("how", ["another kernel", "stays away"])
def test_a_host_that_is_not_back_as_asked_runs_no_trial(desk, how, tmp_path):
    study, into = desk.study(tmp_path, ONLY_OTHER), tmp_path / "run"
    if how == "another kernel":
        (desk.folder / "comes-back-with").write_text(OWN)
        why = f"was restarted with kernel {OTHER}, and came back with {OWN}"
    else:
        (desk.folder / "stays-away").write_text("")
        why = f"is not back with kernel {OTHER} after 40 s: "
    done = desk.run(study, into)
    assert done.returncode == 1
    said = " ".join(done.stderr.split())
    assert f"a no longer takes part: {why}" in said
    assert "no host is left" in said
    assert not read_run(into).trials
    if how == "stays away":
        assert "dbdyno restore --hosts returns it to its own kernel" in said
        (desk.folder / "stays-away").unlink()
        restored = dbdyno("restore", "--hosts", desk.inventory, state=desk.state)
        assert f"a: it runs its own kernel again: {OWN}" in restored.stdout, restored.stderr
    assert (desk.kernel(), desk.records()) == (OWN, [])
