"""What docs/container.md says of a container without rights: root with the capabilities that Docker gives to it."""

import shutil

import pytest

from tests.support import dbdyno

DOCKER = (
    "chown,dac_override,fowner,fsetid,kill,setgid,setuid,setpcap,net_bind_service,net_raw,sys_chroot,mknod,"
    "audit_write,setfcap"
)
BOUNDED = f"--bounding-set=-all,{','.join(f'+{name}' for name in DOCKER.split(','))}"
CONTAINED = ("setpriv", BOUNDED, "--inh-caps=-all")
STUDY = """\
version = 1
[study]
title = "In a container"
[stack]
device = {device}
[workload]
kind = "slap"
load = ["write", "read"]
autoincrement = true
queries = 100
warmup = "0s"
[design]
blocks = 1
interference = "note"
"""
EMULATED = '"nvme"\nsize = "512MiB"\nfilesystem = "ext4"'

pytestmark = [
    pytest.mark.host,
    pytest.mark.skipif(shutil.which("setpriv") is None, reason="no setpriv to take capabilities away with"),
]


@pytest.fixture
def study(tmp_path):
    def write(device):
        path = tmp_path / "study.toml"
        path.write_text(STUDY.format(device=device), encoding="utf-8")
        return path

    return write


def test_a_folder_of_the_container_is_measured(study, state, tmp_path):
    done = dbdyno("run", study('"here"'), "--into", tmp_path / "run", state=state, prefix=CONTAINED)
    assert done.returncode == 0, done.stderr
    assert "In a container" in done.stdout


def test_an_emulated_disk_is_refused_with_the_reason(study, state):
    done = dbdyno("plan", study(EMULATED), state=state, prefix=CONTAINED)
    assert done.returncode == 2
    assert "root, but without CAP_SYS_ADMIN" in done.stdout + done.stderr
    assert "no program here may mount, as in a container; give the container CAP_SYS_ADMIN" in done.stdout + done.stderr
