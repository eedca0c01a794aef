"""A loop device that another's copy of the mounts holds on to."""

import subprocess

import pytest

from dbdyno.errors import HostError
from dbdyno.stack.loop import loops_over
from dbdyno.stack.undo import actions
from tests.loops import loop_over
from tests.support import with_own_mounts

pytestmark = pytest.mark.host


def test_who_holds_a_device_is_named_and_afterwards_it_is_let_go(tmp_path, monkeypatch):
    monkeypatch.setattr(actions, "LET_GO_SECONDS", 0.5)
    file, place = tmp_path / "disk", tmp_path / "mounted"
    place.mkdir()
    subprocess.run(["truncate", "--size", "16M", file], check=True)
    subprocess.run(["mkfs.ext4", "-q", file], check=True)
    undo = actions.DetachLoops(str(file))
    with loop_over(file) as device:
        subprocess.run(["mount", device, place], check=True)
        words = with_own_mounts("echo ready; exec sleep 60", keep=place)
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as holder:
            assert holder.stdout.readline() == "ready\n"
            subprocess.run(["umount", place], check=True)
            where = rf"{place} in the mount namespace of process {holder.pid}"
            with pytest.raises(HostError, match=rf"{device}: still in use: .*{where}.*dbdyno restore"):
                undo.apply()
            holder.kill()
        undo.apply()  # the kernel may have been before it
        assert loops_over(str(file)) == []
