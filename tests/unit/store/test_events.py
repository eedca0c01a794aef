"""The event log: what a kill leaves is forgiven, what is damaged is refused."""

import os
from pathlib import Path

import pytest

from dbdyno.errors import UserError
from dbdyno.store.events import (
    Dropped,
    Ended,
    Failed,
    Finished,
    Joined,
    Lost,
    Note,
    Planned,
    Resumed,
    Started,
    event_in,
    line_of,
    read_events,
)
from dbdyno.store.run_folder import RunFolder, create, read_run
from tests.unit.store.conftest import HEADER, HOST

ABOUT = "b1a1-t1", 1, 1, "t1"
EVERY_KIND = [
    Planned(8, sha256={"run.toml": "00"}),
    Started(*ABOUT),
    Finished(*ABOUT),
    Finished(*ABOUT, disturbed=True, sha256={"trial.json": "ff"}),
    Failed(*ABOUT, cause="the server was killed — «9»\n"),
    Lost(*ABOUT, text="gone"),
    Finished(*ABOUT, host="db1"),
    Failed(*ABOUT, cause="no", host="db1"),
    Joined("db1", {"cores": 2, "cpu": {"model": "Intel®"}}, {"kernel": "6.1"}),
    Dropped("t2", "left out"),
    Note("«é»"),
    Note("given up", given_up=3),
    Resumed(12, "open", 90.0, extended_from=8),
    Resumed(12, "decided"),
    Ended("interrupted"),
    Ended("done", "decided"),
]


@pytest.mark.parametrize("event", EVERY_KIND, ids=repr)
def test_an_event_is_read_as_it_was_written(event):
    line = line_of(event)
    assert line.endswith(b"}\n")
    assert event_in(line[:-1], sealed_before=True) == event
    for place in range(len(line) - 1):
        with pytest.raises((ValueError, TypeError)):
            event_in(line[:place] + bytes([line[place] ^ 1]) + line[place + 1 : -1], sealed_before=True)


def test_an_older_log_does_not_say_why_it_ended():
    assert event_in(b'{"event": "ended", "how": "done"}').stopped == "blocks"
    assert event_in(b'{"event": "ended", "how": "failed"}').stopped == ""


def test_what_a_newer_dbdyno_says_beside_is_left_aside():
    assert event_in(b'{"event": "note", "text": "x", "since": 3}') == Note("x")


def test_a_log_of_one_host_says_nothing_of_hosts():
    assert b"host" not in line_of(Finished(*ABOUT))
    assert event_in(line_of(Started(*ABOUT))[:-1]).host == ""


def test_every_line_is_on_disk_when_append_returns(folder, monkeypatch):
    synced = []
    real = os.fsync

    def fsync(handle):
        real(handle)
        synced.append((str(Path(f"/proc/self/fd/{handle}").readlink()), os.fstat(handle).st_size))

    monkeypatch.setattr(os, "fsync", fsync)
    folder.append(Note("x"))
    log = folder.path / "journal.jsonl"
    assert synced == [(str(log), log.stat().st_size)]


def test_a_torn_last_line_is_forgiven_wherever_it_is_torn(tmp_path):
    folder = create(tmp_path, HEADER, HOST)
    folder.append(Note("first"))
    log = folder.path / "journal.jsonl"
    whole = log.read_bytes()
    folder.append(Note("second: «é»"))
    last = log.read_bytes()[len(whole) :]
    folder.close()
    for length in range(len(last)):
        log.write_bytes(whole + last[:length])
        assert list(read_events(folder.path)) == [Note("first")]
    writer = RunFolder(folder.path)
    writer.append(Note("third"))
    assert list(read_events(folder.path)) == [Note("first"), Note("third")]
    assert log.read_bytes().startswith(whole)
    writer.close()


@pytest.mark.parametrize("damage", [b"{", b"", b"[]", b'"text"', b"{}", b"17", b"\xff\xfe\x00", b'{"event": "note"'])
def test_a_damaged_line_is_refused_by_its_number(folder, damage):
    for text in ("one", "two", "three"):
        folder.append(Note(text))
    log = folder.path / "journal.jsonl"
    lines = log.read_bytes().splitlines()
    log.write_bytes(b"\n".join([lines[0], damage, lines[2]]) + b"\n")
    message = f"{log}:2: not a line of the event log; the run folder is damaged. Put the file back from a copy, "
    with pytest.raises(UserError) as refused:
        read_run(folder.path)
    assert str(refused.value).startswith(message)
    with pytest.raises(UserError) as refused:
        list(read_events(folder.path))
    assert str(refused.value).startswith(message)
