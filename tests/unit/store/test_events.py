"""The event log: what a kill leaves is forgiven, what is damaged is refused."""

import os
from pathlib import Path

import pytest

from dbdyno.errors import UserError
from dbdyno.store.events import (
    EVENTS_MAX,
    Dropped,
    Ended,
    Failed,
    Finished,
    Joined,
    LogSize,
    Lost,
    Note,
    Planned,
    Resumed,
    Started,
    append_event,
    event_in,
    line_of,
    log_size,
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


FULL = {
    "events": LogSize(events=EVENTS_MAX - 500),
    "bytes": LogSize(size_bytes=64 * 1024**2 - 500 * 1024, events=9),
}


@pytest.mark.parametrize("held", FULL.values(), ids=FULL)
def test_no_trial_begins_in_a_log_that_is_almost_full_and_the_run_can_still_be_ended(held, tmp_path):
    with pytest.raises(OSError, match=r"which is all that is read; begin a new run") as refused:
        append_event(tmp_path, Started(*ABOUT), held)
    assert refused.value.filename == str(tmp_path / "journal.jsonl")
    assert list(read_events(tmp_path)) == []
    append_event(tmp_path, Ended("failed"), append_event(tmp_path, Failed(*ABOUT, cause="x"), held))
    assert len(list(read_events(tmp_path))) == 2


def test_nothing_is_appended_beyond_what_is_read(tmp_path):
    for held in (LogSize(events=EVENTS_MAX), LogSize(size_bytes=64 * 1024**2), LogSize(escapes=10**6 + 1)):
        with pytest.raises(OSError, match="than"):
            append_event(tmp_path, Ended("done"), held)
    with pytest.raises(OSError, match="more values than are read"):
        append_event(tmp_path, Joined("db1", {"x": [0] * 300_000}), LogSize())
    assert log_size(tmp_path) == LogSize()


def test_a_log_as_full_as_can_be_is_read_and_one_event_more_is_not(tmp_path):
    line = line_of(Note("x"))
    (tmp_path / "journal.jsonl").write_bytes(line * EVENTS_MAX)
    assert next(read_events(tmp_path)) == Note("x")
    with pytest.raises(OSError, match=f"more than {EVENTS_MAX} events"):
        append_event(tmp_path, Note("x"), log_size(tmp_path))
    with (tmp_path / "journal.jsonl").open("ab") as file:
        file.write(line)
    with pytest.raises(UserError, match=f"a run has at most {EVENTS_MAX}"):
        next(read_events(tmp_path))


def test_a_run_folder_knows_how_full_its_log_is(tmp_path):
    folder = create(tmp_path / "run", HEADER, HOST)
    for event in EVERY_KIND[:6]:
        folder.append(event)
    assert folder._size == log_size(folder.path)
    folder.close()
    again = RunFolder(folder.path)
    assert again._size == folder._size
    again.close()
