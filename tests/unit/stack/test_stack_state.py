"""Where state is kept, and who may pass its folders."""

import os
import socket
import tempfile
from pathlib import Path

import pytest

from dbdyno.errors import HostError
from dbdyno.stack.layers.scratch import scratch
from dbdyno.stack.undo_log import Journal
from dbdyno.system.state import make_traversable, new_token, scratch_path, state_folder


@pytest.fixture
def open_state(monkeypatch):
    """Keep state where every user can pass through; pytest's own folders are shut to others."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o711)
        monkeypatch.setenv("DBDYNO_STATE_DIR", f"{name}/state")
        yield Path(name) / "state"


@pytest.mark.usefixtures("open_state")
def test_a_scratch_folder_is_gone_afterwards():
    journal = Journal("test")
    with scratch(journal) as ground:
        folder = ground.scratch
        assert folder.parent == state_folder() / "scratch"
        assert folder.stat().st_mode & 0o777 == (0o710 if os.geteuid() == 0 else 0o700)
        assert folder.parent.stat().st_mode & 0o777 == 0o711
        (folder / "mnt").mkdir()
    assert not folder.exists()


def test_folders_above_the_state_folder_keep_their_mode(open_state):
    mode = open_state.parent.stat().st_mode
    make_traversable(open_state / "scratch" / "x")
    assert open_state.parent.stat().st_mode == mode
    assert [path.stat().st_mode & 0o777 for path in (open_state, open_state / "scratch/x")] == [0o711, 0o711]


def test_a_folder_that_shuts_the_server_s_user_out_is_named(open_state, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    open_state.parent.chmod(0o700)
    with pytest.raises(HostError) as refused:
        make_traversable(open_state / "scratch" / "x")
    assert str(refused.value) == (
        f"the server runs as an ordinary user, whom {open_state.parent} does not let through to {open_state}; "
        "set DBDYNO_STATE_DIR to a folder that all may pass, such as /var/lib/dbdyno"
    )


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"DBDYNO_STATE_DIR": "/given"}, "/given"),
        ({"XDG_STATE_HOME": "/xdg", "HOME": "/home/me"}, "/xdg/dbdyno"),
        ({"HOME": "/home/me"}, "/home/me/.local/state/dbdyno"),
        ({"XDG_STATE_HOME": "", "HOME": "/home/me"}, "/home/me/.local/state/dbdyno"),
    ],
)
def test_where_state_is_kept(monkeypatch, environment, expected):
    for name in ("DBDYNO_STATE_DIR", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert state_folder() == Path(expected)


def test_root_s_state_is_the_host_s(monkeypatch):
    monkeypatch.delenv("DBDYNO_STATE_DIR")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert state_folder() == Path("/var/lib/dbdyno")


def test_a_state_folder_too_long_for_a_socket_is_refused(monkeypatch):
    monkeypatch.setenv("DBDYNO_STATE_DIR", "/" + "s" * 90)
    with pytest.raises(HostError) as refused:
        scratch_path(new_token())
    assert str(refused.value) == (
        f"the state folder /{'s' * 90} has too long a name for a Unix socket in it; "
        "set DBDYNO_STATE_DIR to a shorter path"
    )


@pytest.mark.parametrize("letter", ["s", "é"])
def test_in_any_state_folder_that_is_taken_the_server_s_socket_can_be_made(monkeypatch, letter):
    longest = None
    for length in range(1, 120):
        monkeypatch.setenv("DBDYNO_STATE_DIR", f"/tmp/{letter * length}")
        try:
            longest = scratch_path(new_token())
        except HostError:
            break
    with socket.socket(socket.AF_UNIX) as server, pytest.raises(FileNotFoundError):
        server.bind(str(longest / "server" / "server.sock"))  # too long a name is another OSError
