"""A machine of the user's own: it boots from its disk image, which stays as it is, and nothing is left of it."""

import hashlib
import json
import subprocess

import pytest

from dbdyno.errors import HostError
from dbdyno.servers.sources import debian
from dbdyno.stack.guest import kernels
from dbdyno.stack.kinds.booted import qemu
from dbdyno.store.run_folder import read_run
from tests.machine_image import SETUP, START, make_image, packages, run
from tests.support import NO_REGISTRY, Quiet, dbdyno, what_is_left

pytestmark = [
    pytest.mark.host,
    pytest.mark.long,
    pytest.mark.timeout(3600),
    pytest.mark.drawn(0),  # two boots of an emulated CPU take minutes: with DBDYNO_TEST_LONG alone
]

STUDY = """\
version = 1
[study]
title = "a machine"
[stack]
image = "{image}"
key = "{key}"
setup = {setup}
start = {start}
server = "mysql://trial@localhost:3306/trials"
device = "hdd-7200"
size = "512MiB"
guest_memory = "768MiB"
[server.settings]
innodb_io_capacity = 300
[workload]
kind = "slap"
load = "write"
clients = 2
queries = 60
warmup = "0s"
[design]
blocks = 1
interference = "note"
"""


@pytest.fixture
def image(tmp_path, state):  # noqa: ARG001  (kernels lie in it)
    """The image and the key of its root."""
    if not qemu().ok:
        pytest.skip(qemu().said)
    try:
        kernels.add("debian-6.1", Quiet())
    except HostError as error:
        if debian._REMEDY in str(error) or "name no Debian" in str(error):
            pytest.skip(f"{NO_REGISTRY}: {error}")
        raise
    if not packages(tmp_path):
        pytest.skip(NO_REGISTRY)
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "key")
    return make_image(tmp_path, kernels.find_kernel("debian-6.1"), tmp_path / "key"), tmp_path / "key"


def test_a_machine_boots_for_a_trial_and_its_image_stays_as_it_is(image, state, tmp_path):
    system, key = image
    before = hashlib.sha256(system.read_bytes()).hexdigest()
    study, into = tmp_path / "study.toml", tmp_path / "run"
    study.write_text(STUDY.format(image=system, key=key, setup=json.dumps(SETUP), start=json.dumps(START)))
    done = dbdyno("run", str(study), "--into", str(into), state=state, timeout=3000)
    assert done.returncode == 0, done.stderr
    (trial,) = read_run(into).trials
    guest, server = trial.observed["guest"], trial.observed["server"]
    assert guest["kernel"].startswith("Linux 6.1.")
    assert (guest["image"], guest["filesystem"], guest["scheduler"]) == (system.name, "unknown", "unknown")
    assert (server["started_by"], server["innodb_io_capacity"]) == ("its machine", 300)
    assert trial.observed["device"]["model"] == "hdd-7200"
    assert trial.device["service_ns"]["flush"]["count"] >= 60  # each commit waits for the emulated drive
    assert trial.metrics["events_per_second"] > 0
    report = dbdyno("report", str(into), state=state).stdout
    assert "were not read back, so they are unknown" in report
    assert hashlib.sha256(system.read_bytes()).hexdigest() == before
    assert not what_is_left(state)
    machines = subprocess.run(["pgrep", "-f", f"qemu-system.*{system}"], capture_output=True, check=False)
    assert not machines.stdout
