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
{load}
"""
SPEED = """\
[workload]
kind = "slap"
load = "write"
clients = 2
queries = 60
warmup = "0s"
[probes]
trace = true
[design]
blocks = 1
interference = "note"
"""
CUTS = """\
[workload]
kind = "ledger"
clients = 2
accounts = 100
warmup = "1s"
duration = "10s"
[crash]
cuts = 2
cuts_per_run = 2
when = ["ack", "recovery"]
recovery_limit = "300s"
[design]
interference = "note"
"""


@pytest.fixture
def image(tmp_path, state, monkeypatch):  # noqa: ARG001  (kernels lie in it)
    """The image and the key of its root."""
    if not qemu().ok:
        pytest.skip(qemu().said)
    monkeypatch.setattr(kernels, "plain_image", lambda _: None)  # the boot loader in the image unpacks a kernel itself
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


def run_of(load, image, state, folder):
    """The run of a study with a load; nothing is left of it, and the image is as it was."""
    system, key = image
    before = hashlib.sha256(system.read_bytes()).hexdigest()
    study, into = folder / "study.toml", folder / "run"
    words = {"setup": json.dumps(SETUP), "start": json.dumps(START), "load": load}
    study.write_text(STUDY.format(image=system, key=key, **words))
    done = dbdyno("run", str(study), "--into", str(into), state=state, timeout=3000)
    assert done.returncode == 0, done.stderr
    assert hashlib.sha256(system.read_bytes()).hexdigest() == before
    assert not what_is_left(state)
    machines = subprocess.run(["pgrep", "-f", f"qemu-system.*{system}"], capture_output=True, check=False)
    assert not machines.stdout
    return read_run(into)


def test_a_machine_boots_for_a_trial_and_its_image_stays_as_it_is(image, state, tmp_path):
    (trial,) = run_of(SPEED, image, state, tmp_path).trials
    guest, server = trial.observed["guest"], trial.observed["server"]
    assert guest["kernel"].startswith("Linux 6.1.")
    assert (guest["image"], guest["filesystem"], guest["scheduler"]) == (image[0].name, "unknown", "unknown")
    assert (server["started_by"], server["innodb_io_capacity"]) == ("its machine", "300")
    assert trial.observed["device"]["model"] == "hdd-7200"
    assert trial.device["service_ns"]["flush"]["count"] >= 30  # two clients may share one
    assert trial.metrics["events_per_second"] > 0
    assert trial.block_trace["requests"]["write"] >= 30
    assert trial.block_trace["why_not_kernel"].startswith("the requests go through the kernel of a machine")
    report = dbdyno("report", str(tmp_path / "run"), "--details", state=state).stdout
    assert "were not read back, so they are unknown" in " ".join(report.split())


def test_a_machine_boots_again_from_what_a_power_cut_left(image, state, tmp_path):
    trials = {trial.treatment: trial for trial in run_of(CUTS, image, state, tmp_path).trials}
    cuts = {cut.when: cut for cut in trials["t1"].cuts}
    assert {when: cut.outcome for when, cut in cuts.items()} == {"ack": "nothing", "recovery": "nothing"}
    assert min(cut.acked for cut in cuts.values()) > 0
    assert {"boot", "server", "verify"} <= cuts["ack"].recovery_s.keys()
    lost = [cut for cut in trials["control"].cuts if cut.is_loss]
    assert lost, "a log that is not flushed at commit loses the newest ones"
    again = dbdyno("crash", "examine", str(tmp_path / "run"), state=state, timeout=1400)
    assert again.returncode == 0, again.stderr
    assert "1 kept state examined again: the same outcome in 1" in again.stdout
