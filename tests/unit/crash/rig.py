"""A rig without a host: its layers do as they are told."""

from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from dbdyno.crash.rig import LayersRig
from dbdyno.errors import TrialError
from dbdyno.stack.layer import StackContext
from tests.unit.crash.support import taken


class Played:
    """What happens at each step; ``steps`` are those that were gone through."""

    def __init__(self):
        self.steps, self.fails, self.damage = [], {}, ""
        self.stats = {"errors": {"reads": 0}, "enospc_errors": 0}
        self.alive, self.log = True, "InnoDB: starting crash recovery"
        self.states, self.is_attached = {}, True

    def at(self, step):
        self.steps.append(step)
        fault = self.fails.get(step)
        if isinstance(fault, list):
            fault = fault.pop(0) if fault else None
        if callable(fault):
            fault()
        elif fault:
            raise fault


@dataclass(frozen=True)
class Client:
    played: Played

    def stats(self, *, reset=False):
        return self.played.stats

    def arm_cuts(self, hold_ns):
        self.played.at("arm")

    def disarm_cuts(self):
        self.played.at("disarm")

    def cut(self, name):
        self.played.at(f"cut {name}")
        self.played.states[name] = taken(name)
        return self.played.states[name]

    def cuts(self):
        return list(self.played.states.values())


@dataclass(frozen=True)
class Device:
    played: Played
    cut: object = None
    name: str = "device"

    @property
    def disk(self):
        process = SimpleNamespace(poll=lambda: None if self.played.alive else 1)
        return SimpleNamespace(process=process, pid=1, file="/disk.img", client=Client(self.played))

    def is_attached(self):
        return self.played.is_attached

    @contextmanager
    def raised(self, below):
        self.played.at(f"attach {self.cut.name} {self.cut.survivors} {self.cut.seed}")
        yield below
        self.played.at("detach")


@dataclass(frozen=True)
class Mounted:
    played: Played
    name: str = "filesystem"

    @contextmanager
    def raised(self, below):
        self.played.at("mount")
        yield below
        self.played.at("umount")

    def damage(self, _below):
        self.played.at("check")
        return self.played.damage


@dataclass(frozen=True)
class Running:
    played: Played
    log: object = None
    name: str = "server"

    @contextmanager
    def raised(self, below):
        self.log.write_text(self.played.log, encoding="utf-8")
        self.played.at("start")
        endpoint = SimpleNamespace(process=None, error_log=None, cgroup=None, in_machine=False)
        yield StackContext(below.journal, below.scratch, endpoint=endpoint)
        self.played.at("kill")


@dataclass(frozen=True)
class Verifier:
    played: Played
    found: object
    limits: list = field(default_factory=list)

    def verify(self, _endpoint, _folder, cut_ns, cut_end_ns, limit_seconds):
        self.played.at("verify")
        self.limits.append((cut_ns, cut_end_ns, limit_seconds))
        return self.found


@pytest.fixture
def played():
    return Played()


@pytest.fixture
def rig(played, tmp_path):
    @contextmanager
    def ground(journal):
        yield StackContext(journal, tmp_path)

    layers = Device(played), (), Mounted(played), (), Running(played)
    return LayersRig(*layers, journal=None, folder=tmp_path, ground=ground)


def refused(text="wrong fs type"):
    return TrialError(f"mount -t ext4: exit 32: {text}")
