"""What every implementation of ``Hosts`` does; called for each with the names of two hosts."""

import hashlib
import os
import signal
from pathlib import Path
from threading import Thread

import pytest

from dbdyno.errors import HostError, UserError
from dbdyno.hosts.contract import NotQuietError, Output, ProgramEnd, quiet
from dbdyno.stack.undo_log import ProcessIdentity
from tests.support import wait_for

ROOM_BYTES = 64 * 1024**2  # more than any folder has here


def output(hosts, host, process):
    """What a program wrote to each stream, and its end."""
    *said, ended = hosts.stream(host, process)
    assert all(isinstance(one, Output) for one in said)
    assert isinstance(ended, ProgramEnd)
    texts = [b"".join(one.content for one in said if one.to_error is error) for error in (False, True)]
    return (*texts, ended.code)


def keeps_the_contract(hosts, first, second, folder):
    """``folder`` is the same on all hosts, as they are one machine."""
    assert hosts.names == (first, second)
    assert hosts.alive() == {first, second}
    carries_files(hosts, first, folder)
    carries_folders(hosts, first, second, folder)
    runs_programs(hosts, first, second, folder)
    says_what_is_wrong(hosts, first, folder)


def carries_files(hosts, host, folder):
    (folder / "there").mkdir()
    for size in (0, 1, 9 * 1024**2):
        given, back = folder / "given", folder / "back"
        given.write_bytes(os.urandom(size))
        digest = hashlib.sha256(given.read_bytes()).hexdigest()
        assert hosts.put(host, given, str(folder / "there/it")) == digest
        assert hosts.fetch(host, str(folder / "there/it"), back, size) == digest
        assert back.read_bytes() == given.read_bytes()
    assert sorted(path.name for path in (folder / "there").iterdir()) == ["it"]
    with pytest.raises(HostError, match="No such file or directory"):
        hosts.put(host, given, str(folder / "removed/it"))
    assert not (folder / "removed").exists()


def a_folder(path):
    """A folder with what folders have, of which a file has a hole of 20 MiB and zeros that are none."""
    (path / "tree/empty").mkdir(parents=True)
    (path / "tree/random").write_bytes(os.urandom(6 * 1024**2 + 1))
    (path / "tree/nothing").touch(mode=0o640)
    (path / "tree/link").symlink_to("random")
    (path / "tree/empty").chmod(0o711)
    with (path / "content").open("wb") as file:
        file.write(b"words " * 10**6)
        file.seek(20 * 1024**2, os.SEEK_CUR)
        file.write(bytes(1024**2))
        file.truncate(40 * 1024**2)
    if os.geteuid() == 0:
        os.chown(path / "tree/random", 65534, 65534)
    os.utime(path / "content", (10**9, 10**9))


def told_of(path):
    """What a folder is: kinds, modes, owners, times, rooms and bytes."""
    found = {}
    for one in sorted(path.rglob("*")):
        about = one.lstat()
        content = one.read_bytes() if one.is_file() else b""
        what = (about.st_mode, about.st_uid, about.st_gid, about.st_mtime, about.st_blocks if content else 0)
        found[str(one.relative_to(path))] = (*what, one.is_symlink() and one.readlink(), content)
    return found


def carries_folders(hosts, first, second, folder):
    given, far = folder / "folder", []
    a_folder(given)
    with pytest.raises(HostError, match=rf"{second}: .*far: No such file or directory"):
        hosts.copy(first, str(given), second, str(folder / "far/it"), ROOM_BYTES, lambda *_: None)
    (folder / "far").mkdir()
    hosts.copy(first, str(given), second, str(folder / "far/it"), ROOM_BYTES, lambda *reached: far.append(reached))
    assert told_of(folder / "far/it") == told_of(given)
    assert [path.name for path in (folder / "far").iterdir()] == ["it"]
    done, of = zip(*far, strict=True)
    assert len(set(of)) == 1
    assert (list(done), done[-1]) == (sorted(done), of[0])
    assert of[0] < 14 * 1024**2  # the hole is not carried

    def stop(*_):
        raise InterruptedError

    with pytest.raises(InterruptedError):
        hosts.copy(first, str(given), second, str(folder / "far/other"), ROOM_BYTES, stop)
    with pytest.raises(HostError, match=rf"{first}: .*none: Not a directory"):
        hosts.copy(first, str(folder / "none"), second, str(folder / "far/other"), ROOM_BYTES, stop)
    with quiet(first), pytest.raises(NotQuietError):
        hosts.copy(second, str(given), first, str(folder / "far/other"), ROOM_BYTES, stop)
    (given / "content").chmod(0)
    (given / "tree/random").unlink()
    (given / "tree/random").symlink_to("content")
    hosts.copy(first, str(given), second, str(folder / "far/linked"), ROOM_BYTES, lambda *_: None)
    assert (folder / "far/linked/tree/random").readlink() == Path("content")
    assert sorted(path.name for path in (folder / "far").iterdir()) == ["it", "linked"]


def runs_programs(hosts, first, second, folder):
    script = 'cat; echo wrong >&2; echo "$WORD"; exit 3'
    process = hosts.start(first, ["sh", "-c", script], stdin=b"secret\n", environment={"WORD": "given"})
    assert output(hosts, first, process) == (b"secret\ngiven\n", b"wrong\n", 3)
    much = hosts.start(second, ["head", "-c", "6000000", "/dev/zero"])  # more than any pipe holds, read by nobody yet
    out, _, code = output(hosts, second, much)
    assert (len(out), code) == (6_000_000, 0)
    sleeping = hosts.start(second, ["sh", "-c", f"sleep 1000 & echo $! > {folder}/pid; echo up; wait"])
    stream = hosts.stream(second, sleeping)
    assert next(stream).content == b"up\n"
    assert hosts.signal(second, sleeping, signal.SIGTERM)
    assert list(stream) == [ProgramEnd(-signal.SIGTERM)]
    assert not hosts.signal(second, sleeping, signal.SIGTERM)
    started = int((folder / "pid").read_text())
    wait_for(lambda: ProcessIdentity.of(started) is None)  # what it had started has ended, too
    waits_through_a_window(hosts, first)


def waits_through_a_window(hosts, host):
    """What was asked before a window may be answered after it, and meanwhile the program be signalled."""
    process = hosts.start(host, ["sh", "-c", "echo up; exec sleep 1000"])
    stream, found = hosts.stream(host, process), []
    assert next(stream).content == b"up\n"
    waiting = Thread(target=lambda: found.extend(stream))
    with quiet(host):
        waiting.start()
        with pytest.raises(NotQuietError):
            hosts.signal(host, process, signal.SIGTERM)
        assert (waiting.is_alive(), found) == (True, [])
    assert hosts.signal(host, process, signal.SIGTERM)
    waiting.join(10)
    assert found == [ProgramEnd(-signal.SIGTERM)]


def says_what_is_wrong(hosts, host, folder):
    with pytest.raises(UserError, match="'nobody' is not a host; there are"):
        hosts.start("nobody", ["true"])
    with pytest.raises(HostError, match=rf"{host}: .*none: No such file or directory"):
        hosts.fetch(host, str(folder / "none"), folder / "back", 1)
    with pytest.raises(HostError, match=f"{host}: .*was not started there"):
        next(hosts.stream(host, "nothing"))
