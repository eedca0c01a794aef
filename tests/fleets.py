"""Hosts under test that are processes of this machine: forked, and playing their trials (see ``tests/scripted.py``)."""

import ctypes
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import pytest

from dbdyno.hosts.host_side import HostSide, _Program, output_file
from dbdyno.run.execute import open_run
from dbdyno.run.fleet.coordinate import identity_of, run_on_hosts
from dbdyno.run.fleet.fold import ARRIVED, fold, fold_leftovers
from dbdyno.run.fleet.member import ThisHost, take_part
from dbdyno.run.fleet.part import HostAccess
from dbdyno.run.fleet.request import Request, make_requests
from dbdyno.store.events import Finished, read_events
from dbdyno.store.run_folder import RunFolder
from tests.local_hosts import LocalHosts
from tests.scripted import Script

HOSTS = ("db1", "db2", "db3")


class Forked:
    """As of ``subprocess.Popen``, as far as ``HostSide`` uses it."""

    def __init__(self, pid):
        self.pid, self.code = pid, None

    def poll(self):
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code

    def wait(self):
        while self.poll() is None:
            time.sleep(0.001)


class Forking(HostSide):
    """A host whose programs are copies of this process, which imports nothing again; ``play`` is what they do."""

    def start(self, _argv, stdin, environment, *_):
        files = (output_file("stdout"), output_file("stderr"))
        pid = os.fork()
        if not pid:
            self._child(files, stdin, environment)
        name = f"program{pid}"
        self._programs[name] = _Program(Forked(pid), files)
        return name

    def _child(self, files, stdin, environment):
        code = 1
        try:
            os.setsid()
            os.closerange(3, min(files))  # a program that is started has none of its starter's files, nor their locks
            os.closerange(min(files) + 1, max(files))
            os.closerange(max(files) + 1, os.sysconf("SC_OPEN_MAX"))
            ctypes.CDLL(None).prctl(1, signal.SIGTERM)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.dup2(files[1], 2)
            self.play(files[0], stdin, environment)
            code = 0
        except BaseException as error:  # noqa: BLE001  (said by the host's program)
            with suppress(OSError):
                os.write(2, repr(error).encode())
        finally:
            os._exit(code)


class ForkedSide(Forking):
    """A host under test."""

    def __init__(self, name, states, script_of, preparing):
        super().__init__()
        self.name, self.states, self.script_of, self.preparing = name, states, script_of, preparing
        self.polling = threading.Lock()

    def play(self, output, stdin, _environment):
        state = self.states / self.name
        state.mkdir(parents=True, exist_ok=True)
        state.chmod(0o755)
        os.environ["DBDYNO_STATE_DIR"] = str(state)
        request = Request.from_json(stdin)
        script = (self.script_of if request.task == "run" else self.preparing)(self.name)
        script.erase = frozenset()
        lock = threading.Lock()

        def send(message):
            with lock:
                for line in self.lines_of(message):
                    os.write(output, line)

        facts = {"cores": 2, "name": self.name}
        versions = {"dbdyno": "0", "kernel": self.name}
        take_part(request, send, ThisHost(script.ports(), lambda *_: [], lambda _: facts, lambda _: versions))

    def lines_of(self, message):
        """What it says in the place of a message: that."""
        return [json.dumps(message).encode() + b"\n"]

    def read(self, name, wait_seconds):
        with self.polling:
            pass
        return super().read(name, wait_seconds)


class ForkedHosts(LocalHosts):
    """Hosts of a fleet. ``script_of`` plays a host's trials, in its own process, ``preparing`` what goes before.

    ``clients`` are hosts as well, on which nothing is played.
    """

    def __init__(self, names, states, script_of=lambda _: Script(), preparing=lambda _: Script(), clients=()):
        super().__init__((*names, *clients))
        self._sides.update({name: ForkedSide(name, states, script_of, preparing) for name in names})

    def pids(self):
        """Host -> the process that plays it now."""
        found = {}
        for name in [name for name, side in self._sides.items() if isinstance(side, ForkedSide)]:
            side = self._sides[name]
            living = [one.process.pid for one in side._programs.values() if one.process.poll() is None]
            found[name] = living[-1] if living else None
        return found


class Fleet:
    """A study on forked hosts, and who is lost of them."""

    def __init__(self, states, names=HOSTS, script_of=lambda _: Script(), preparing=lambda _: Script(), clients=()):
        self.hosts = ForkedHosts(names, states, script_of, preparing, clients)
        self.states = states
        self.lost, self.said, self.trials = {}, [], []
        self.clients = None  # how hosts that the load comes from are reached

    def say(self, text):
        self.said.append(text)

    def trial(self, slot, note, done, outlook):
        self.trials.append((slot, note, done, outlook))

    def trial_done(self, seconds):
        pass

    def run(self, plan, into, *, resume=False, fresh_images=False):
        folder = open_run(plan, into, resume=resume, versions={"dbdyno": "0"}, host={"cores": 1})
        try:
            requests = make_requests(plan, identity_of(into), frozenset(), fresh_images=fresh_images)
            access = HostAccess(self.hosts, lambda: dict(self.lost), clients=self.clients, pause_seconds=0.3)
            return run_on_hosts(plan, folder, self, requests, access)
        finally:
            folder.close()


def by_host(into):
    """Host -> the finished trials of its blocks, by its own count of blocks: (n, attempt, treatment), in order."""
    numbers, found = {}, {}
    for event in read_events(into):
        if isinstance(event, Finished):
            its = numbers.setdefault(event.host, {})
            n = its.setdefault(event.block, len(its) + 1)
            found.setdefault(event.host, []).append((n, event.attempt, event.treatment))
    return found


def lines(path):
    """The lines of JSON of a file that several processes write."""
    return [json.loads(line) for line in Path(path).read_text().splitlines()] if Path(path).exists() else []


def noting(path, seconds=0.0):
    """A maker of scripts that write each trial that is begun to a file, and take so long for each."""

    def script_of(host):
        script = Script()

        def rate(block, treatment):
            with Path(path).open("a") as file:
                file.write(json.dumps({"host": host, **asdict(script.ran[-1])}) + "\n")
            time.sleep(seconds)
            return 100.0 + block + (10.0 if treatment == "t2" else 0.0)

        script.rate = rate
        return script

    return script_of


def half_folded(fleet, plan, into, folder, chosen):
    """Run a plan, and yield copies of the run as a kill left them while db1's last block was folded, now folded.

    ``chosen`` gets the places of db1's events in the journal, and returns before which of them a kill comes.
    """
    arrived = []

    def keeping(run, path):
        arrived.append(shutil.copy(path, folder))
        return fold(run, path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dbdyno.run.fleet.coordinate.fold", keeping)
        fleet.run(plan, into)
    content = (into / "journal.jsonl").read_bytes().splitlines(keepends=True)
    last = [path for path in arrived if Path(path).name.startswith("db1.")][-1]
    places = [place for place, line in enumerate(content) if b'"host":"db1"' in line.replace(b" ", b"")]
    for cut in chosen(places):
        copy = folder / f"cut{cut}"
        subprocess.run(["cp", "-a", into, copy], check=True)
        (copy / "journal.jsonl").write_bytes(b"".join(content[:cut]))
        shutil.copy(last, copy / ARRIVED)
        run = RunFolder(copy)
        try:
            fold_leftovers(run)
        finally:
            run.close()
        yield copy
