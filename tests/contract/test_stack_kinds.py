"""The contract of a kind of stack, over every kind that can be raised wherever the tests can, under a load of files."""

import shutil
import tempfile
from pathlib import Path

import pytest

from dbdyno.stack.kinds.catalogue import KINDS
from dbdyno.stack.kinds.kind import Raising
from dbdyno.stack.layer import raised
from dbdyno.stack.layers.scratch import scratch
from dbdyno.study.drives import device_kind, is_real
from dbdyno.study.schema import TrialSpec
from dbdyno.study.stack_rules import broken_stack_rules
from tests.support import what_is_left

pytestmark = pytest.mark.host

# Need a disk, or a server, to spare; or are on no host at all, or in a guest.
ELSEWHERE = {
    "real": "test_real_disk.py",
    "external": "test_external_layers.py",
    "simulated": "test_simulated_stack.py",
    "booted": "test_booted.py",
    "image": "test_machine_image.py",
}
DEVICES = {"emulated": "ideal", "here": "here", "memory": "memory"}  # any other is named with a place
RAISED = sorted(set(KINDS) - set(ELSEWHERE))


class BoomError(Exception):
    pass


@pytest.fixture
def place():
    """A folder on a disk, as an administrator makes one."""
    folder = tempfile.mkdtemp(prefix="dd", dir="/var/tmp")
    yield Path(folder)
    shutil.rmtree(folder)


def spec_of(kind, place):
    """Return a treatment on a stack of this kind."""
    device = DEVICES.get(kind, f"{kind}:{place}")
    stack = {"device": device, "server": "none"}
    if kind != "here":
        stack |= {"size": "128MiB", "filesystem": "tmpfs" if kind == "memory" else "ext4"}
    load = {"kind": "fio", "profile": "RND4K Q1T1", "load": "write", "size": "1MiB"}
    return TrialSpec.model_validate({"stack": stack, "workload": load})


def raising(tmp_path, *, install):
    return Raising(tmp_path / "server.log", lambda _: None, install=install)


@pytest.mark.parametrize("name", RAISED)
def test_a_study_names_it_and_the_host_has_what_it_needs(name, place):
    spec, kind = spec_of(name, place), KINDS[name]
    assert (spec.stack.kind, device_kind(spec.stack.device)) == (name, name)
    assert not is_real(spec.stack.device)
    assert list(broken_stack_rules(spec, Path())) == []
    assert [need for need in kind.needs_of_ground(spec, frozenset()) if not need.ok] == []
    assert all(isinstance(line, str) for line in kind.touches([spec], {}))
    assert all(path.exists() for path in kind.places(spec))
    assert kind.image_key(spec) != ""


@pytest.mark.parametrize("name", RAISED)
def test_what_was_prepared_is_what_every_trial_finds_and_nothing_is_left(name, place, journal, state, tmp_path):
    spec, kind = spec_of(name, place), KINDS[name]
    before, beside = what_is_left(state), sorted(place.iterdir())
    with kind.new_image(spec, journal) as image:
        with (
            scratch(journal) as ground,
            raised(kind.stack(spec, image, raising(tmp_path, install=True)).layers, ground) as up,
        ):
            (up.files / "prepared").write_bytes(b"prepared")
        image.finish()
        for _ in range(2):
            stack = kind.stack(spec, image, raising(tmp_path, install=False))
            with scratch(journal) as ground, raised(stack.layers, ground) as up, stack.device.measuring(journal):
                assert up.observed["device"]["kind"] == name
                assert (up.files / "prepared").read_bytes() == b"prepared"
                (up.files / "prepared").write_bytes(b"changed")
    assert (what_is_left(state), sorted(place.iterdir())) == (before, beside)


@pytest.mark.parametrize("name", RAISED)
def test_it_is_lowered_whatever_happened_above(name, place, journal, state, tmp_path):
    spec, kind = spec_of(name, place), KINDS[name]
    before, beside = what_is_left(state), sorted(place.iterdir())
    with (
        pytest.raises(BoomError),
        kind.new_image(spec, journal) as image,
        scratch(journal) as ground,
        raised(kind.stack(spec, image, raising(tmp_path, install=True)).layers, ground),
    ):
        raise BoomError
    assert (what_is_left(state), sorted(place.iterdir())) == (before, beside)
