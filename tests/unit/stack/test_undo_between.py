"""What undoes arrays and mappings: nothing of another's, and not before a tool that is about to make one has ended."""

import subprocess
import sys
import threading
import time
import uuid
from types import SimpleNamespace

import pytest

from dbdyno.errors import HostError
from dbdyno.stack.undo import actions
from dbdyno.stack.undo.actions import RemoveMappings, StopArray, arrays_over
from tests.support import wait_for


@pytest.fixture
def block(tmp_path, monkeypatch):
    """A /sys/block of two arrays: one over loop3 and loop4, one over loop4 and sda."""
    for array, disks in {"md127": ("loop3", "loop4"), "md9": ("loop5", "sda")}.items():
        for disk in disks:
            (tmp_path / array / "md" / f"dev-{disk}").mkdir(parents=True)

    class Places(type(tmp_path)):
        def glob(self, pattern):
            return tmp_path.glob(pattern) if str(self) == "/sys/block" else super().glob(pattern)

    monkeypatch.setattr(actions, "Path", Places)


@pytest.mark.usefixtures("block")
def test_an_array_that_has_another_disk_is_left_alone():
    assert arrays_over(["/dev/loop3", "/dev/loop4", "/dev/loop5"]) == ["md127"]
    assert arrays_over(["/dev/loop3"]) == []
    assert StopArray(("/dev/loop5",)).apply() is False


def test_after_a_boot_nothing_is_stopped():
    assert StopArray(("/dev/loop3",), boot="another").apply() is False


@pytest.mark.parametrize("prefix", ["", "vg-", "cryptroot", "dbdyno", "dbdyno-xyz-crypt"])
def test_a_mapping_that_is_not_called_as_only_ours_is_left_alone(prefix):
    with pytest.raises(HostError, match="is not a mapping of dbdyno's; it is left alone"):
        RemoveMappings(prefix).apply()


def test_a_tool_that_has_not_ended_is_waited_for(monkeypatch):
    rests, device = [], f"/dev/dbdyno-test-{uuid.uuid4().hex}"
    clock = SimpleNamespace(
        monotonic=time.monotonic, sleep=lambda seconds: (rests.append(seconds), time.sleep(seconds))
    )
    monkeypatch.setattr(actions, "time", clock)
    code = "import time; time.sleep(600)"
    with subprocess.Popen(["mdadm", "-c", code, device], executable=sys.executable) as tool:
        try:
            wait_for(lambda: actions._tools_given({device}) == [tool.pid])
            undo, ended = StopArray((device,)), []
            waiting = threading.Thread(target=lambda: ended.append((undo.apply(), tool.poll())))
            waiting.start()
            wait_for(lambda: len(rests) > 1)
            assert not ended, "it may make an array yet"
        finally:
            tool.kill()
        tool.wait()
        waiting.join()
        assert ended == [(False, tool.returncode)]
    assert actions._tools_given({device}) == []
