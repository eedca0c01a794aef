"""What is written down of hosts that are restarted, by which they are returned; and what may go into it."""

import json
import os
import subprocess
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path

import pytest

from dbdyno.errors import HostError
from dbdyno.hosts import reboot
from dbdyno.hosts.contract import LieError, NotInstalledError
from dbdyno.hosts.frames import Nothing, Running, read_answer
from dbdyno.hosts.inventory import read_inventory
from dbdyno.hosts.reboot import own_kernel, record_own_kernel, restart_host, restore_kernel
from dbdyno.system.locks import only_one
from tests.unit.hosts.agents import agent

HOSTS = '[host.db1]\nssh = "root@db1.lab"\nroles = ["server"]\nboot = "./boot"\nboot_within = "20s"\n'
OWN, OTHER = "6.1.0-28-amd64", "6.12.9-amd64"


class PlayedHost:
    """A host that restarts at once; ``questions`` are those that it was asked."""

    def __init__(self):
        self.kernel, self.boots, self.questions = OWN, 0, []

    def ask(self, question, kind):
        self.questions.append(question["do"])
        if question["do"] == "boot":
            self.restart(question["kernel"])
        return Running(self.kernel, f"{self.boots:08x}") if kind is Running else Nothing()

    def restart(self, kernel):
        self.kernel, self.boots = kernel, self.boots + 1

    def connect(self):
        return nullcontext(self)


@pytest.fixture
def host(state, monkeypatch):
    assert os.environ["DBDYNO_STATE_DIR"] == str(state)
    monkeypatch.setattr(reboot, "_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(reboot, "_GOING_DOWN_SECONDS", 0.0)
    return PlayedHost()


@pytest.fixture
def inventory(tmp_path):
    def given(boot="grub", ssh="root@db1.lab", text="#!/bin/sh\n"):
        program, path = tmp_path / "boot", tmp_path / "hosts.toml"
        program.write_text(text)
        program.chmod(0o755)
        path.write_text("version = 1\n" + HOSTS.replace("./boot", boot).replace("root@db1.lab", ssh))
        return read_inventory(path)

    return given


def left_by_a_killed_study(inventory, boot=""):
    """The record of a process that has ended; where it is."""
    record_own_kernel(inventory, "db1", inventory.hosts["db1"], OWN, boot)
    [path] = Path(os.environ["DBDYNO_STATE_DIR"]).glob("hosts/clusters/*/booted/db1.json")
    ended = subprocess.Popen(["true"])
    ended.wait()
    path.write_text(json.dumps({**json.loads(path.read_text()), "pid": ended.pid}))
    return path


@pytest.mark.parametrize(
    "said",
    [
        {"kernel": "$(touch /tmp/x)", "boot": "0a"},
        {"kernel": "--force", "boot": "0a"},
        {"kernel": "", "boot": "0a"},
        {"kernel": "6.1\n6.2", "boot": "0a"},
        {"kernel": "é" * 60, "boot": "0a"},
        {"kernel": "6" * 65, "boot": "0a"},
        {"kernel": "6.1", "boot": "z" * 900},
    ],
)
def test_what_a_host_calls_its_kernel_reaches_neither_a_record_nor_a_program_if_it_is_none(said):
    with pytest.raises(LieError, match=r"db1: its answer can't be read: kernel is "):
        read_answer("db1", json.dumps(said).encode(), Running)


def test_a_killed_restart_is_taken_up_and_the_next_start_is_the_usual_one(host, inventory):
    read, section = inventory(), inventory().hosts["db1"]
    path = left_by_a_killed_study(read)
    host.restart(OTHER)
    assert restore_kernel(read, "db1", section, host.connect) == (f"it runs its own kernel again: {OWN}", "")
    assert host.questions[-1] == "booted"
    assert (host.kernel, path.exists()) == (OWN, False)
    assert restore_kernel(read, "db1", section, host.connect) == ("", "")


def test_killed_before_the_restart_nothing_is_restarted(host, inventory):
    left_by_a_killed_study(inventory(), boot="00000000")
    kernel, left_alone = restore_kernel(inventory(), "db1", inventory().hosts["db1"], host.connect)
    assert (kernel, left_alone, host.boots) == (f"it runs its own kernel again: {OWN}", "", 0)


def test_who_restores_a_host_has_it_and_a_second_one_leaves_it_alone(host, inventory):
    read, section, second = inventory(), inventory().hosts["db1"], []
    left_by_a_killed_study(read)
    restart = host.restart
    host.restart(OTHER)

    def meanwhile(kernel):
        second.append(restore_kernel(read, "db1", section, host.connect))
        restart(kernel)

    host.restart = meanwhile
    restore_kernel(read, "db1", section, host.connect)
    [(undone, left_alone)] = second
    assert undone == ""
    assert f"process {os.getpid()} has restarted it" in left_alone


def test_a_record_of_another_machine_of_that_name_restarts_nothing(host, inventory):
    left_by_a_killed_study(inventory())
    other = inventory(ssh="root@elsewhere")
    with pytest.raises(HostError, match=r'it is of ssh = "root@db1.lab", and .*hosts.toml has "root@elsewhere"'):
        restore_kernel(other, "db1", other.hosts["db1"], host.connect)
    assert host.questions == []


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"kernel": "$(id)"}', b"\xff", b"{" * 5000])
@pytest.mark.usefixtures("host")
def test_a_damaged_record_names_its_file_and_what_to_do(inventory, content):
    path = left_by_a_killed_study(inventory())
    path.write_bytes(content)
    with pytest.raises(HostError, match=r"booted/db1.json .* by hand, then remove the file"):
        own_kernel(inventory(), "db1", inventory().hosts["db1"])


@pytest.mark.usefixtures("host")
def test_a_host_that_lost_its_dbdyno_is_named_at_once_and_its_record_stays(inventory):
    path = left_by_a_killed_study(inventory())

    def connect():
        raise NotInstalledError("db1: dbdyno is not installed there; run dbdyno hosts up")

    with pytest.raises(HostError, match=f"then dbdyno restore --hosts returns it to kernel {OWN}") as error:
        restore_kernel(inventory(), "db1", inventory().hosts["db1"], connect)
    assert not isinstance(error.value, NotInstalledError)
    assert path.exists()


def test_a_program_that_leaves_another_behind_is_not_waited_for(host, inventory, tmp_path):
    text = f'#!/bin/sh\nsleep 600 & echo $! > {tmp_path}/left\necho "$3" > {tmp_path}/kernel\n'
    read = inventory("./boot", text=text)
    record_own_kernel(read, "db1", read.hosts["db1"], OWN)
    ask, kernel = host.ask, tmp_path / "kernel"

    def answer(question, kind):
        if kernel.exists():
            host.restart(kernel.read_text().strip())
            kernel.unlink()
        return ask(question, kind)

    host.ask = answer
    try:
        restart_host(read, "db1", read.hosts["db1"], OTHER, host.connect)
    finally:
        os.kill(int((tmp_path / "left").read_text()), 9)
    assert host.kernel == OTHER


def test_what_a_program_says_last_is_why_it_failed(host, inventory):
    read = inventory("./boot", text="#!/bin/sh\necho one >&2; echo 'no\033[2J power' >&2; exit 3\n")
    record_own_kernel(read, "db1", read.hosts["db1"], OWN)
    with pytest.raises(HostError, match=r"db1: .*/boot: no \[2J power$"):
        restart_host(read, "db1", read.hosts["db1"], OTHER, host.connect)
    assert asdict(own_kernel(read, "db1", read.hosts["db1"]))["boot"] == "00000000"


def test_a_host_that_another_run_uses_is_not_restarted(tmp_path, monkeypatch):
    monkeypatch.setenv("DBDYNO_STATE_DIR", str(tmp_path / "db1"))
    why = r"db1: another run is going on there: a run of somebody else \(pid"
    with (
        agent(tmp_path, "db1") as channel,
        only_one("a run of somebody else", wait=False, say=print),
        pytest.raises(HostError, match=why),
    ):
        channel.ask({"do": "boot", "kernel": OTHER, "way": "grub"}, Nothing)
