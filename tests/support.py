"""Small studies and a clean host for the tests that change one."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

import pytest

from dbdyno.hosts.contract import NotQuietError, check_not_measured
from dbdyno.servers.contract import SettingOutcome
from dbdyno.stack import short_start
from dbdyno.stack.short_start import FOLDER
from dbdyno.stack.tracefs import why_not_mountable as tracefs_lacking
from dbdyno.store.parts import write_synced

KEPT_ANSWERS = "DBDYNO_TEST_ANSWERS"  # a folder that all tests of a session share
NO_REGISTRY = "a server can't be had here"
DBDYNO = [sys.executable, "-m", "dbdyno.cli.main"]

SMALL = """\
version = 1
[study]
title = "small"
[stack]
device = {device}
size = "{size}"
scheduler = {scheduler}
filesystem = {filesystem}
engine = {engine}
memory = "1GiB"
{stack}
[filesystem]
mount = "{mount}"
[server.settings]
innodb_buffer_pool_size = "32M"
{settings}
[workload]
kind = "slap"
load = "write"
clients = 4
warmup = "100ms"
{amount}
[design]
interference = "{interference}"
blocks = {blocks}
seed = 7
"""


@contextmanager
def kept_answers(state):
    """What servers told of settings is known in a new state folder, and from there in later ones: a start each is kept.

    Of the files each is one answer, so that several sessions may add theirs at once.
    """
    ours, shared = state / FOLDER, Path(os.environ[KEPT_ANSWERS])
    ours.mkdir(parents=True)
    for file in shared.glob("*.json"):
        os.link(file, ours / file.name)
    yield
    for file in ours.glob("*.json"):
        with suppress(FileExistsError):
            os.link(file, shared / file.name)


def share_answers(monkeypatch):
    """Have what servers told of settings kept for all tests, whose state folder need not be there."""
    shared = Path(os.environ[KEPT_ANSWERS])

    def kept(key):
        file = shared / f"{key}.json"
        return [SettingOutcome(**one) for one in json.loads(file.read_text())] if file.is_file() else None

    def keep(key, found):
        write_synced(shared / f"{key}.json", json.dumps([asdict(one) for one in found]).encode())

    monkeypatch.setattr(short_start, "_read_answer", kept)
    monkeypatch.setattr(short_start, "_write_answer", keep)


def study_text(**fields):
    """A study that runs in a second or two a trial."""
    given = {
        "device": '"nvme"',
        "size": "512MiB",
        "scheduler": '["none", "mq-deadline"]',
        "filesystem": '"ext4"',
        "engine": '"innodb"',
        "stack": "",
        "mount": "noatime",
        "settings": 'innodb_log_file_size = "8M"',
        "amount": "queries = 200",
        "blocks": 2,
        "interference": "note",  # the host may be busy with other tests
    }
    return SMALL.format(**{**given, **fields})


def dbdyno(*argv, state, timeout=400, prefix=(), **options):
    """Run the command line to its end."""
    environment = {**os.environ, "DBDYNO_STATE_DIR": str(state)}
    command = [*prefix, *DBDYNO, *map(str, argv)]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=timeout, check=False, **options
    )


def start_dbdyno(*argv, state):
    """Start the command line in a session of its own."""
    environment = {**os.environ, "DBDYNO_STATE_DIR": str(state)}
    return subprocess.Popen(
        [*DBDYNO, *map(str, argv)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def called(monkeypatch, capsys, *argv):
    """Run the command line in this process; returns its exit code, standard output and standard error."""
    from dbdyno.cli.main import main

    monkeypatch.setattr(sys, "argv", ["dbdyno", *map(str, argv)])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    return ended.value.code, said.out, said.err


class Quiet:
    """The progress of a download that nobody watches."""

    def step(self, text):
        """Say nothing."""

    def size(self, downloaded_bytes):
        """Say nothing."""


def kill(process):
    """Kill a dbdyno, and wait until it has ended."""
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=180)


def put_back(state):
    """Put the host back after a kill, so that nothing is left on it."""
    done = dbdyno("restore", state=state)
    assert done.returncode == 0, done.stdout + done.stderr
    assert what_is_left(state) == []


def processes_of(state):
    """Number and command line of each server, load, disk, probe and zfs-fuse of a state folder."""
    wanted, marker = str(state).encode(), f"DBDYNO_STATE_DIR={state}".encode()
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            argv = (process / "cmdline").read_bytes().split(b"\0")
            program = argv[0].rpartition(b"/")[2]
            if program in {b"zfs-fuse", b"dbdyno-probe"}:
                ours = marker in (process / "environ").read_bytes()
            else:
                servers = program.startswith((b"mariadbd", b"mysqld", b"ld-linux", b"dbdyno-"))
                ours = servers and any(wanted in word for word in argv)
            if ours:
                found[int(process.name)] = b" ".join(argv).decode()
    return found


def programs_of(state, word):
    """Numbers of programs with ``word`` in their name that work on a state folder's files, whosever they are."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            argv = (process / "cmdline").read_bytes().split(b"\0")
            if word.encode() in argv[0] and any(str(state).encode() in argument for argument in argv):
                found.append(int(process.name))
    return found


def number_of(state, *words):
    """The process of a state folder whose command line holds these words, or None."""
    return next((pid for pid, line in processes_of(state).items() if all(word in line for word in words)), None)


def under_load(state, *words):
    """The same while a load is offered to it."""
    return number_of(state, *words) if number_of(state, "dbdyno-load", "phase=run") else None


def what_is_left(state):
    """Everything of a state folder that is still on the host; empty on a clean host."""
    left = [str(path) for folder in ("journals", "scratch") for path in sorted((state / folder).glob("*"))]
    for entry in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            backing = entry.read_text(encoding="utf-8").strip()
        except OSError:  # somebody else's, gone this moment
            continue
        left += [f"{entry.parts[3]} over {backing}"] if backing.startswith(str(state)) else []
    mounts = Path("/proc/self/mounts").read_text(encoding="utf-8")
    left += [line for line in mounts.splitlines() if f" {state}" in line]
    left += [f"process {pid}: {line}" for pid, line in processes_of(state).items()]
    left += trace_instances_left()
    for group in (*Path("/sys/fs/cgroup").glob("dbdyno-*"), *Path("/sys/fs/cgroup/memory").glob("dbdyno-*")):
        left += [str(group)] if any(group.name.endswith(path.name) for path in (state / "scratch").glob("*")) else []
    return left


def with_own_mounts(script, *arguments, keep="", options=("--mount",)):
    """Words that run a script of the shell with mounts of its own, where it may mount and unmount as it likes.

    Mounts of tests beside it are let go, but for ``keep``: a copy of a mount holds on to the device below. ``options``
    are those of unshare.
    """
    let_go = (
        'keep=$1; shift; while read -r _ place _; do case "$place" in '
        '"$keep") ;; /tmp/*|/var/tmp/*) umount -l "$place" 2>/dev/null ;; esac; done < /proc/self/mounts; '
    )
    words = ["unshare", *options, "--propagation", "private", "sh", "-c", let_go + script]
    return [*words, "sh", str(keep), *map(str, arguments)]


def trace_instances():
    """Names of the trace instances on this host, seen through a mount that lasts for the look alone."""
    if os.geteuid() != 0 or tracefs_lacking():
        return []
    look = 'mount -t tracefs tracefs "$1" && ls "$1/instances"'
    with tempfile.TemporaryDirectory() as place:
        return subprocess.run(with_own_mounts(look, place), check=True, capture_output=True, text=True).stdout.split()


def trace_instances_left():
    """Trace instances of trials that no process reads and no journal is still to remove, whosever they were."""
    of_trials = {name for name in trace_instances() if re.fullmatch(r"dbdyno-[0-9a-f]{12}", name)}
    if not of_trials:
        return []
    # A test beside this one may have killed a run, and not restored it yet.
    for held in (*Path("/proc").glob("[0-9]*/cmdline"), *Path("/var/tmp").glob("dd*/journals/*.jsonl")):
        with suppress(OSError):
            text = os.fsdecode(held.read_bytes())
            of_trials = {name for name in of_trials if name not in text}
    return [f"trace instance {name}" for name in sorted(of_trials.intersection(trace_instances()))]


def without_tracefs(folder):
    """Words before a command that has it run where the kernel seems to have no tracefs: neither mounted nor known."""
    known = Path("/proc/filesystems").read_text(encoding="ascii").splitlines(keepends=True)
    (folder / "filesystems").write_text("".join(line for line in known if "tracefs" not in line), encoding="ascii")
    hide = (
        'for place in /sys/kernel/debug/tracing /sys/kernel/tracing; do umount -l "$place" 2>/dev/null; done; '
        'mount --bind "$1" /proc/filesystems && shift && exec "$@"'
    )
    return with_own_mounts(hide, folder / "filesystems")


def journal_lines(state):
    """Lines of the undo journals: one before each change, and one after each undoing."""
    lines = 0
    for path in (state / "journals").glob("*.jsonl"):
        with suppress(FileNotFoundError):  # the run has ended this moment
            lines += path.read_bytes().count(b"\n")
    return lines


def wait_for(condition, seconds=240.0, every=0.02, what=lambda: ""):
    """Wait until a condition holds and return its value; ``what`` is said of what was waited for in vain."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited in vain {what()}".strip())
        time.sleep(every)
    return value


def is_measured(host):
    """Whether a question to a host would be a fault now."""
    try:
        check_not_measured("a look", host)
    except NotQuietError:
        return True
    return False
