"""A kernel for tests that boot a guest, fetched once into a folder that outlives their state folders."""

import os
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

from dbdyno.errors import HostError
from dbdyno.servers.sources import debian
from dbdyno.stack.guest import kernels
from dbdyno.stack.kinds.booted import qemu
from tests.support import NO_REGISTRY, Quiet

KEPT = Path(os.environ.get("DBDYNO_TEST_SERVERS_DIR", f"/var/tmp/dbdyno-test-kernels-{os.getpid()}"))


@contextmanager
def kept_kernels():
    """The folder, which is gone afterwards unless the environment names one; skips where no kernel can be booted."""
    if not qemu().ok:
        pytest.skip(qemu().said)
    KEPT.mkdir(exist_ok=True, mode=0o755)
    yield
    if "DBDYNO_TEST_SERVERS_DIR" not in os.environ:
        shutil.rmtree(KEPT, ignore_errors=True)


def fetch_kernel(name, state, monkeypatch):
    """Return a kernel in the state folder of a test, which is skipped where no registry can be reached."""
    monkeypatch.setenv("DBDYNO_STATE_DIR", str(KEPT))
    try:
        kernels.add(name, Quiet())
    except HostError as error:
        if debian._REMEDY in str(error) or "name no Debian" in str(error):
            pytest.skip(f"{NO_REGISTRY}: {error}")
        raise
    monkeypatch.setenv("DBDYNO_STATE_DIR", str(state))
    (state / "kernels").symlink_to(KEPT / "kernels")
    return kernels.find_kernel(name)
