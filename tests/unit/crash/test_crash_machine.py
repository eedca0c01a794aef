"""What is found of a cut in a machine of the user's own: what its system says, and never that the machine was lost."""

from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from dbdyno.crash.rig import MachineRig
from dbdyno.errors import TrialError
from dbdyno.servers.contract import ServerError
from dbdyno.stack.guest.image import NotUpError
from dbdyno.stack.layer import Endpoint
from tests.unit.crash.rig import Device, Played
from tests.unit.crash.support import verified
from tests.unit.crash.test_crash_examine import examine

STEPS = ["boot c1 random-4096 9", "start", "settings", "verify", "power off"]


@dataclass(frozen=True)
class Machine:
    """A machine that is booted in name alone."""

    played: Played
    drive: Device

    @property
    def disk(self):
        return self.drive.disk

    @contextmanager
    def powered(self, _journal):
        cut = self.drive.cut
        self.played.at(f"boot {cut.name} {cut.survivors} {cut.seed}")
        yield SimpleNamespace(check_power=self.check_power, console=SimpleNamespace(text="EXT4-fs error"))
        self.played.at("power off")

    def check_power(self):
        if not self.played.has_power:
            raise TrialError("the machine of system.qcow2: it turned off")

    def start(self, _running, _command_seconds, _server_seconds):
        self.played.at("start")


@dataclass(frozen=True)
class Server:
    """The layer of its server."""

    played: Played

    @contextmanager
    def raised(self, below):
        self.played.at("settings")
        control = SimpleNamespace(settings=lambda: self.played.at("asked"))
        yield below.raised("server", {}, endpoint=Endpoint(control, None, in_machine=True))


@pytest.fixture
def played():
    played = Played()
    played.has_power = True
    return played


@pytest.fixture
def rig(played, tmp_path):
    return MachineRig(Machine(played, Device(played)), Server(played), 60.0, None, tmp_path)


def power_lost(played, error):
    def fail():
        played.has_power = False
        raise error

    return fail


def test_it_boots_for_each_state_and_starts_as_in_the_trial(played, rig, tmp_path):
    cut, _ = examine(played, rig)
    assert played.steps == STEPS
    assert (cut.outcome, cut.acked) == ("nothing", 40)
    assert {"boot", "server", "verify"} <= cut.recovery_s.keys()
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_does_not_come_up_is_an_outcome_whose_console_stays(played, rig, tmp_path):
    played.fails["start"] = NotUpError("stack.start: exit 32: mount: wrong fs type")
    cut, _ = examine(played, rig)
    assert (cut.outcome, cut.cause) == ("server", "stack.start: exit 32: mount: wrong fs type")
    assert (tmp_path / "recovery-c1.log").read_text() == "EXT4-fs error\n"
    assert played.steps == ["boot c1 random-4096 9", "start", "power off"]


def test_a_lost_machine_is_no_outcome(played, rig):
    played.fails["start"] = power_lost(played, NotUpError("stack.start: exit 1"))
    with pytest.raises(TrialError, match="turned off"):
        examine(played, rig)


def test_a_server_that_dies_of_being_read_is_an_outcome_unless_the_machine_is_lost(played, rig):
    broken = verified(tables=["lost the connection to 127.0.0.1"], complete=False)
    assert examine(played, rig, broken)[0].outcome == "table"
    played.fails["asked"] = ServerError("Connection refused")
    assert examine(played, rig, broken)[0].outcome == "server"
    played.fails["asked"] = power_lost(played, ServerError("Connection refused"))
    with pytest.raises(TrialError, match="turned off"):
        examine(played, rig, broken)


def test_what_is_refused_over_a_drive_that_is_gone_is_no_outcome(played, rig):
    def fail():
        played.alive = False
        raise NotUpError("stack.start: exit 5: Input/output error")

    played.fails["start"] = fail
    with pytest.raises(TrialError, match="ended by itself"):
        examine(played, rig)


def test_its_recovery_is_cut_between_start_and_answer(played, rig):
    cut, content = examine(played, rig, when="recovery", seed=8, share=0.5)
    assert (content.name, cut.outcome) == ("c1-1", "nothing")
    armed = played.steps.index("arm")
    assert played.steps[armed - 1].startswith("boot c1 ")
    assert {"start", "cut c1-1"} <= set(played.steps[armed : played.steps.index("disarm")])
