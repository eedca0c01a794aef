"""What stands in the way of attaching a disk by hand, in words for one who has no study."""

import os

import pytest

from dbdyno.errors import UserError
from dbdyno.stack.attached import attach_disk
from dbdyno.stack.layers.emulated_disk import DiskSpec


def test_who_is_not_root_is_told_to_use_sudo_and_not_to_change_a_study(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UserError) as refused:
        attach_disk(DiskSpec("hdd-7200", 2**20))
    assert "root: this is an ordinary user; run it with sudo" in str(refused.value).splitlines()
