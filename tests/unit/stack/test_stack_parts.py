"""What layers read back and refuse, as far as neither root nor a server is needed."""

import os
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import HostError, TrialError
from dbdyno.filesystems.ext import EXT4
from dbdyno.stack import erase_guard
from dbdyno.stack.erase_guard import Identity, check_erasable, identify
from dbdyno.stack.filesystem import check_mount, observed_mount
from dbdyno.stack.journal import Journal
from dbdyno.stack.layer import BlockDevice, Stand, raised
from dbdyno.stack.queue import Queue, read_knob, write_knob
from dbdyno.stack.scratch import scratch
from dbdyno.stack.server import same_setting
from dbdyno.stack.tools import own_binary, run_tool
from dbdyno.state import make_traversable, new_token, scratch_path, state_folder
from dbdyno.study.schema import QueueSection

SAME = [
    (True, "ON"),
    (True, "1"),
    (True, "YES"),
    (False, "OFF"),
    (False, "0"),
    ("on", "ON"),
    ("ON", "1"),
    (1, "ON"),
    (0, "OFF"),
    (2, "2"),
    ("256M", "268435456"),
    ("1G", "1073741824"),
    ("1.5k", "1536"),
    (268435456, "268435456"),
    (0.5, "0.500000"),
    ("75", "75.000000"),
    (" O_DIRECT ", "o_direct"),
    ("", ""),
    (-1, "-1"),
]
OTHER = [
    (True, "OFF"),
    (True, "2"),
    (False, "1"),
    (2, "ON"),
    (1, "OFF"),
    ("256M", "256"),
    ("256M", "256000000"),
    ("256M", "134217728"),
    (64, "65"),
    ("O_DIRECT", "fsync"),
    ("", "0"),
    ("OFF", ""),
    (100, "1000"),
]


@pytest.mark.parametrize(("asked", "observed"), SAME)
def test_a_setting_that_took_is_known_in_any_spelling(asked, observed):
    assert same_setting(asked, observed)


@pytest.mark.parametrize(("asked", "observed"), OTHER)
def test_a_setting_that_did_not_take_is_found(asked, observed):
    assert not same_setting(asked, observed)


@given(
    st.integers(2, 2**40), st.integers(2, 2**40), st.sampled_from([("", 1), ("K", 2**10), ("M", 2**20), ("g", 2**30)])
)
def test_numbers_are_the_same_only_where_they_are_equal(asked, observed, unit):
    assert same_setting(f"{asked}{unit[0]}", str(asked * unit[1]))
    assert same_setting(f"{asked}{unit[0]}", str(observed)) is (asked * unit[1] == observed)


# The erase guard


def test_what_is_no_block_device_is_never_erased(tmp_path):
    file = tmp_path / "file"
    file.write_text("data")
    link = tmp_path / "disk-by-id"
    link.symlink_to(file)
    for path in (file, tmp_path, link, Path("/dev/null")):
        with pytest.raises(HostError) as refused:
            identify(path)
        assert str(refused.value) == f"{path} is not a block device"
    assert file.read_text() == "data"


def test_a_device_that_is_not_there(tmp_path):
    with pytest.raises(HostError) as refused:
        check_erasable(tmp_path / "sdz", None, frozenset())
    assert str(refused.value) == f"{tmp_path / 'sdz'}: No such file or directory"


BY_ID = Path("/dev/disk/by-id/ata-Acme_S1_AB")
KERNEL = Path("/dev/sdb")
FOUND = Identity(KERNEL, "Acme", "S1 AB")


@pytest.mark.parametrize(
    ("device", "serial", "erase", "uses", "content", "refusal"),
    [
        (BY_ID, None, (), (), (), None),
        (BY_ID, "S1 AB", (), (), (), None),
        (KERNEL, "S1 AB", (), (), (), None),
        (KERNEL, "S1 AB", ("S1 AB",), (), ("a gpt signature",), None),
        (KERNEL, None, (), (), (), "/dev/sdb now leads to the disk with serial 'S1 AB', which its name does not hold"),
        (
            Path("/dev/disk/by-id/ata-Acme_S2"),
            None,
            ("S1 AB",),
            (),
            (),
            "/dev/disk/by-id/ata-Acme_S2 now leads to the disk with serial 'S1 AB', which its name does not hold",
        ),
        (
            KERNEL,
            "S2",
            ("S1 AB", "S2"),
            (),
            (),
            "/dev/sdb has the serial 'S1 AB', not 'S2' as the study says; it is not touched",
        ),
        (
            BY_ID,
            None,
            ("S1 AB",),
            ("/dev/sdb1 is mounted at /home", "held by dm-0"),
            (),
            f"{BY_ID} is in use: /dev/sdb1 is mounted at /home; held by dm-0. It is not touched",
        ),
        (
            BY_ID,
            None,
            ("S2",),
            (),
            ("an ext4 signature labelled 'home' at offset 0x438",),
            (
                f"{BY_ID} holds data: an ext4 signature labelled 'home' at offset 0x438. It is not touched; "
                "to erase all of it: dbdyno run ... --erase 'S1 AB'"
            ),
        ),
    ],
)
def test_a_disk_is_erased_only_where_the_study_names_it_and_it_holds_nothing(  # noqa: PLR0913, PLR0917
    monkeypatch, device, serial, erase, uses, content, refusal
):
    monkeypatch.setattr(erase_guard, "identify", lambda _: FOUND)
    monkeypatch.setattr(erase_guard, "_uses", lambda _: iter(uses))
    monkeypatch.setattr(erase_guard, "_contents", lambda _: iter(content))
    if refusal is None:
        assert check_erasable(device, serial, frozenset(erase)) == FOUND
        return
    with pytest.raises(HostError) as refused:
        check_erasable(device, serial, frozenset(erase))
    assert str(refused.value) == refusal


# The filesystem


def test_a_mount_is_read_back():
    root = observed_mount(Path("/"))
    said = subprocess.run(["findmnt", "-no", "FSTYPE", "/"], capture_output=True, text=True, check=True).stdout.split()
    assert root["kind"] in said
    assert {"rw", "ro"} & set(str(root["mount_options"]).split(","))
    assert root["barriers"] is True


def test_what_is_not_mounted_is_said_so(tmp_path):
    with pytest.raises(TrialError) as refused:
        observed_mount(tmp_path)
    assert str(refused.value) == f"{tmp_path} is not mounted although mount said nothing"


@pytest.mark.parametrize(
    ("asked", "listed", "took"),
    [
        ("strictatime", "rw,seclabel", True),
        ("strictatime", "rw,relatime", False),
        ("strictatime", "rw,noatime", False),
        ("noatime", "rw,noatime", True),
        ("noatime", "rw,relatime", False),
        ("defaults,rw", "rw,relatime", True),
        ("data=writeback", "rw,data=ordered", False),
        ("compress=zstd", "rw,compress=zstd:3", True),
        ("commit=5", "rw,commit=60", False),
        ("", "rw", True),
    ],
)
def test_a_mount_option_that_did_not_take_fails_the_trial(asked, listed, took):
    observed = {"kind": "ext4", "mount_options": listed}
    if took:
        check_mount(EXT4, asked, observed)
    else:
        with pytest.raises(TrialError) as refused:
            check_mount(EXT4, asked, observed)
        assert str(refused.value) == f"mount option {asked!r} did not take; the kernel lists {listed}"


def test_a_mount_option_that_only_begins_alike_did_not_take():
    with pytest.raises(TrialError):
        check_mount(EXT4, "commit=5", {"kind": "ext4", "mount_options": "rw,commit=50"})


# The block queue


@pytest.fixture
def queue(tmp_path, monkeypatch):
    """Make a block queue of plain files; what is written is what is read back."""
    folder = tmp_path / "sys/block/sdx/queue"
    folder.mkdir(parents=True)
    for name, value in {
        "scheduler": "none [mq-deadline] kyber",
        "rotational": "1",
        "nr_requests": "64",
        "read_ahead_kb": "128",
        "wbt_lat_usec": "75000",
    }.items():
        (folder / name).write_text(value + "\n")
    real = Path
    monkeypatch.setattr(
        "dbdyno.stack.queue.Path", lambda path: real(str(path).replace("/sys/block", str(tmp_path / "sys/block")))
    )
    return folder


def stand(*, disposable):
    device = BlockDevice(Path("/dev/sdx"), rotational=True, disposable=disposable)
    return Stand(Journal("test"), Path("/nowhere"), device=device)


def test_a_real_device_gets_its_queue_back(queue):
    below = stand(disposable=False)
    before = {path.name: read_knob(path) for path in queue.iterdir()}
    with Queue("kyber", QueueSection(nr_requests=256)).raised(below) as above:
        assert above.observed["queue"] == {**before, "scheduler": "kyber", "nr_requests": "256"}
    assert {path.name: read_knob(path) for path in queue.iterdir()} == before
    below.journal.close()
    assert not below.journal.path.exists()


@pytest.mark.usefixtures("queue")
def test_what_undoes_a_queue_is_written_before_it_is_set(monkeypatch):
    below = stand(disposable=False)
    seen = []

    def write(path, value):
        seen.append((path.name, below.journal.path.read_text().count('"WriteBack"')))
        path.write_text(value)

    monkeypatch.setattr("dbdyno.stack.queue.write_knob", write)
    with Queue("none", QueueSection(nr_requests=32, read_ahead_kb=0)).raised(below):
        pass
    assert seen == [("scheduler", 5), ("nr_requests", 5), ("read_ahead_kb", 5)]


def test_a_queue_setting_that_did_not_take_fails_the_trial_and_is_undone(queue, monkeypatch):
    monkeypatch.setattr(
        "dbdyno.stack.queue.write_knob", lambda path, value: path.write_text(value.replace("256", "255"))
    )
    with (
        pytest.raises(TrialError, match="nr_requests: asked for 256, the kernel took 255"),
        Queue(None, QueueSection(nr_requests=256)).raised(stand(disposable=False)),
    ):
        pass
    assert (queue / "nr_requests").read_text().strip() == "64"


def test_an_emulated_disk_is_told_what_it_is(queue):
    with Queue("none", QueueSection()).raised(stand(disposable=True)) as above:
        observed = above.observed["queue"]
    assert (observed["rotational"], observed["wbt_lat_usec"]) == ("1", "75000")
    with Queue("bfq", QueueSection(rotational=False)).raised(stand(disposable=True)) as above:
        assert above.observed["queue"]["rotational"] == "0"
    assert (queue / "scheduler").read_text() == "bfq"


def test_a_knob_that_can_not_be_written_names_what_is_offered(tmp_path):
    with pytest.raises(TrialError) as refused:
        read_knob(tmp_path / "scheduler")
    assert str(refused.value) == f"{tmp_path / 'scheduler'}: No such file or directory"
    (tmp_path / "nr_requests").mkdir()
    with pytest.raises(TrialError) as refused:
        write_knob(tmp_path / "nr_requests", "9")
    assert str(refused.value) == f"write '9' to {tmp_path / 'nr_requests'}: Is a directory"


# Raising a stack


@dataclass(frozen=True)
class Traced:
    """A layer that says when it is raised and lowered, and fails where it is told to."""

    name: str
    trace: list
    fails: str = ""

    @contextmanager
    def raised(self, below):
        self.trace.append(f"+{self.name}")
        if self.fails == "up":
            raise TrialError(self.name)
        try:
            yield below.raised(self.name, {"on": list(below.observed)})
        finally:
            self.trace.append(f"-{self.name}")
            if self.fails == "down":
                raise TrialError(self.name)


@pytest.mark.parametrize(
    ("fails", "trace"),
    [
        ({}, "+a +b +c use -c -b -a"),
        ({"b": "up"}, "+a +b -a"),
        ({"c": "down"}, "+a +b +c use -c -b -a"),
        ({"a": "down", "c": "down"}, "+a +b +c use -c -b -a"),
    ],
)
def test_a_stack_is_lowered_top_first_whatever_fails(tmp_path, fails, trace):
    seen = []

    def use():
        with raised([Traced(name, seen, fails.get(name, "")) for name in "abc"], Stand(None, tmp_path)) as top:
            assert top.observed == {"a": {"on": []}, "b": {"on": ["a"]}, "c": {"on": ["a", "b"]}}
            seen.append("use")

    if fails:
        with pytest.raises(TrialError):
            use()
    else:
        use()
    assert " ".join(seen) == trace


# The state folder


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
        assert folder.stat().st_mode & 0o777 == 0o711
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
def test_in_any_state_folder_that_is_taken_the_server_s_socket_can_be_made(monkeypatch, tmp_path, letter):
    longest = None
    for length in range(1, 120):
        monkeypatch.setenv("DBDYNO_STATE_DIR", str(tmp_path / (letter * length)))
        try:
            longest = scratch_path(new_token())
        except HostError:
            break
    with socket.socket(socket.AF_UNIX) as server, pytest.raises(FileNotFoundError):
        server.bind(str(longest / "server" / "server.sock"))  # too long a name is another OSError


# Tools


def test_a_tool_that_fails_is_quoted():
    with pytest.raises(TrialError) as failed:
        run_tool(["sh", "-c", "echo one >&2; echo two >&2; exit 3"])
    assert str(failed.value) == "sh -c echo one >&2; echo two >&2; exit 3: exit 3: one / two"


def test_a_tool_that_is_not_installed_is_named_with_its_package(monkeypatch):
    monkeypatch.setattr("dbdyno.stack.tools.tool_path", lambda _: None)
    with pytest.raises(HostError) as refused:
        run_tool(["mkfs.xfs", "/dev/x"])
    assert str(refused.value) == "mkfs.xfs is not installed; install it: apt-get install xfsprogs"


def test_a_tool_that_hangs_is_ended():
    with pytest.raises(TrialError, match=r"sleep 60: not done after 0\.2 s; ended"):
        run_tool(["sleep", "60"], timeout_seconds=0.2)


def test_a_program_of_ours_that_is_not_built():
    with pytest.raises(HostError, match=r"dbdyno-nothing is not beside .* build it with: make build"):
        own_binary("dbdyno-nothing")
