"""Readers of others' bytes, each searched for inputs that break it: see ``tests/fuzzing.py``."""

import gzip
import os
import tarfile
from contextlib import suppress
from mmap import MAP_ANONYMOUS, MAP_POPULATE, MAP_PRIVATE, mmap
from shutil import rmtree
from unittest.mock import patch

import pytest

from dbdyno._native import device_models, read_parquet, trace_contents
from dbdyno.crash.trial_cuts import ABOUT, read_kept
from dbdyno.errors import DbdynoError, HostError, UserError
from dbdyno.hosts.contract import Output, ProgramEnd
from dbdyno.hosts.frames import (
    BODY_BYTES_MAX,
    OBJECT_BYTES_MAX,
    Arriving,
    Facts,
    PutBack,
    read_answer,
    side_value,
)
from dbdyno.hosts.host_side import why_not_copied
from dbdyno.hosts.inventory import read_inventory
from dbdyno.hosts.ssh import Channel
from dbdyno.hosts.ssh_config import why_ssh_is_open_to_others
from dbdyno.mysql.my_cnf import read_options
from dbdyno.run.fleet.asking import messages
from dbdyno.run.fleet.message import OF_BLOCKS, OF_FACTS
from dbdyno.run.sparse_tar import extract
from dbdyno.share.archive import unpacked
from dbdyno.share.atlas import draw
from dbdyno.share.copy import copy_without_names
from dbdyno.simulation.options import read_server_load
from dbdyno.store.cuts import SUMS, verify_sums
from dbdyno.store.events import EVENTS, read_events
from dbdyno.store.run_folder import read_run
from dbdyno.store.series import read_files
from dbdyno.study.load import load_study
from tests.fuzzing import FUZZ, Reader, attempt, search


def file_of(content, folder, name):
    path = folder / name
    path.write_bytes(content)
    return path


def study(content, folder):
    load_study(file_of(content, folder, "study.toml"))


def inventory(content, folder):
    read_inventory(file_of(content, folder, "hosts.toml"))


def server_load(content, folder):
    read_server_load(file_of(content, folder, "load.toml"))


def options(content, folder):
    read_options(file_of(content, folder, "my.cnf"))


def ssh_config(content, folder):
    why_ssh_is_open_to_others(file_of(content, folder, "ssh_config"))


def kept_state(content, folder):
    """What a kept state says of itself, behind a line with a NUL the list of its checksums."""
    about, *rest = content.split(b"\0\n")
    file_of(about, folder, ABOUT)
    file_of(b"".join(rest), folder, SUMS)
    for read in (verify_sums, read_kept):
        with suppress(UserError):
            read(folder)


def drive(content, folder):
    device_models(str(file_of(content, folder, "drive.toml")))


def block_trace(content, folder):
    trace_contents([str(file_of(content, folder, "trace"))])


def parquet(content, folder):
    read_parquet(content, 10**6, lambda _: True)
    trial = folder / "trials" / "t"
    trial.mkdir(parents=True, exist_ok=True)
    file_of(content, trial, "load.parquet")
    read_files(folder, ["t"], "load", ".*", {})


def event_log(content, folder):
    list(read_events(file_of(content, folder, EVENTS).parent))


def run_folder(content, folder):
    """The three files of a run folder that are text, each behind a line with a NUL."""
    header, *rest = content.split(b"\0\n")
    events, trial = (*rest, b"", b"")[:2]
    file_of(header, folder, "run.toml")
    file_of(events, folder, EVENTS)
    for name in ("b1a1-t1", "b1a1-t2"):
        (folder / "trials" / name).mkdir(parents=True, exist_ok=True)
        file_of(trial.replace(b"b1a1-t1", name.encode()), folder / "trials" / name, "trial.json")
    read_run(folder)


def packed_block(content, folder):
    """Nothing is written outside of the folder that a block is unpacked into."""
    into, beside = folder / "into", folder / "beside"
    for path in (into, beside):
        path.mkdir(exist_ok=True)
    try:
        extract(file_of(content, folder, "block.tar"), into)
    finally:
        assert {path.name for path in folder.iterdir()} == {"into", "beside", "block.tar"}
        assert not list(beside.iterdir())


def shared_result(content, folder):
    """Nothing is written but what we write: a run folder of known words, or nothing."""
    into = folder / "imported"
    packed = file_of(gzip.compress(content, 1), folder, "shared.tar.gz")
    with unpacked(packed) as (shared, about), patch.object(os, "fsync", lambda _: None):
        copy_without_names(shared, into, title=about.title, allowed=about.allowed)
    rmtree(into)


def result(content, folder):
    """A file of ``quick --json`` or ``simulate --json`` becomes a page of an atlas."""
    for name in ("runs", "cards"):
        (folder / name).mkdir(exist_ok=True)
    draw(file_of(content, folder, "result.json"), "result", folder)


def answer_of_agent(content, folder):
    """What a host says over ssh, a line each."""
    path = file_of(content, folder, "said")
    with Channel("db1", ["cat", str(path)]) as channel:
        for _ in range(20):
            channel.answer_in_lines(Facts, 20.0)


def frames_of_agent(content, _):
    """What it says then, to questions of every kind."""
    for what in ("content", "read", "entries", "start"):
        bounds = (OBJECT_BYTES_MAX, BODY_BYTES_MAX.get(what, 0))
        for frame in Arriving(lambda number, bounds=bounds: bounds if number < 3 else (0, 0)).take(content):
            with suppress(OSError, KeyError, DbdynoError):
                why_not_copied(side_value("db1", what, frame))
            with suppress(DbdynoError):
                read_answer("db1", frame.content, PutBack)


class Said:
    """A host that says this, in pieces."""

    def __init__(self, content):
        self.content = content

    def stream(self, _host, _process, *, silent_seconds):
        assert silent_seconds
        for at in range(0, len(self.content), 97):
            yield Output(self.content[at : at + 97], to_error=at % 5 == 4)
        yield ProgramEnd(1)


def messages_of_member(content, _):
    for _ in messages(Said(content), "db1", "1", {**OF_BLOCKS, **OF_FACTS}):
        pass


READERS = [
    Reader("study", study, (UserError,)),
    Reader("inventory", inventory, (UserError,)),
    Reader("server_load", server_load, (UserError,)),
    Reader("options", options, (UserError,)),
    Reader("ssh_config", ssh_config, (OSError,)),
    Reader("kept_state", kept_state, ()),
    Reader("drive", drive, (ValueError,)),
    Reader("block_trace", block_trace, (ValueError,)),
    Reader("parquet", parquet, (UserError, ValueError)),
    Reader("event_log", event_log, (UserError,)),
    Reader("run_folder", run_folder, (UserError,)),
    Reader("packed_block", packed_block, (OSError, tarfile.TarError, DbdynoError)),
    Reader("shared", shared_result, (UserError,), inputs=60),
    Reader("result", result, (UserError,), inputs=60),
    Reader("agent", answer_of_agent, (HostError,), inputs=60),
    Reader("frames", frames_of_agent, (HostError,)),
    Reader("member", messages_of_member, (DbdynoError,)),
]


# What was found and is not mended yet.
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_no_bytes_break_a_reader(reader, tmp_path):
    assert search(reader, tmp_path) > 0


def test_every_folder_of_kept_inputs_has_its_reader():
    kept = {path.name for path in (FUZZ / "seeds" / "python").iterdir()}
    assert kept == {reader.name for reader in READERS}


def divides(*_):
    return 1 / 0


def hoards(*_):
    # Pages of its own: malloc might have kept as many of what was freed before.
    with mmap(-1, 64 << 20, flags=MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE) as pages:
        return len(pages)


def steers_the_terminal(*_):
    raise ValueError("\x1b[2J")


@pytest.mark.parametrize(
    ("read", "what"), [(divides, "ZeroDivisionError"), (hoards, "MiB"), (steers_the_terminal, "control")]
)
def test_what_breaks_a_reader_is_named_and_kept(read, what, monkeypatch, tmp_path):
    monkeypatch.setattr("tests.fuzzing.FUZZ", tmp_path)
    monkeypatch.setattr("tests.fuzzing.MEMORY_MAX_BYTES", 16 << 20)
    with pytest.raises(AssertionError, match=what):
        attempt(Reader("any", read, (ValueError,)), b"abc", tmp_path)
    kept = list((tmp_path / "artifacts" / "python" / "any").iterdir())
    assert [path.read_bytes() for path in kept] == [b"abc"]
