"""Attaching a loop device where others attach theirs: a number that was taken meanwhile is no failure."""

import os

import pytest

from dbdyno.errors import HostError, TrialError, UserError
from dbdyno.stack import loop
from dbdyno.stack.attached import attach_disk
from dbdyno.stack.layers.emulated_disk import DiskSpec


@pytest.fixture
def numbers(monkeypatch):
    """Have the kernel give one answer after another; an exception is raised."""

    def give(*answers):
        coming = iter(answers)

        def number():
            if isinstance(answer := next(coming), Exception):
                raise answer
            return answer

        monkeypatch.setattr(loop, "_pristine_number", number)
        monkeypatch.setattr(loop, "AGAIN_SECONDS", 0.0)

    return give


def test_a_number_that_another_takes_is_asked_for_again(numbers, monkeypatch, tmp_path):
    taken = TrialError("/dev/loop-control: Device or resource busy")
    numbers(taken, 7, 8)
    tried = []

    def losetup(argv):
        tried.append(argv[-2])
        if argv[-2] == "/dev/loop7":
            raise TrialError("losetup: /dev/loop7: Device or resource busy")

    monkeypatch.setattr(loop, "run_tool", losetup)
    monkeypatch.setattr(loop.Path, "read_text", lambda *_, **__: "1\n")
    assert str(loop.attach_loop(tmp_path / "file")) == "/dev/loop8"
    assert tried == ["/dev/loop7", "/dev/loop8"]


def test_one_that_stays_taken_is_a_host_error(numbers, tmp_path):
    numbers(*[TrialError("/dev/loop-control: Device or resource busy")] * loop.ATTEMPTS)
    with pytest.raises(HostError, match="no loop device could be attached: /dev/loop-control: Device or resource busy"):
        loop.attach_loop(tmp_path / "file")


# What stands in the way of attaching a disk by hand, in words for one who has no study.


def test_who_is_not_root_is_told_to_use_sudo_and_not_to_change_a_study(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UserError) as refused:
        attach_disk(DiskSpec("hdd-7200", 2**20))
    assert "root: this is an ordinary user; run it with sudo" in str(refused.value).splitlines()
