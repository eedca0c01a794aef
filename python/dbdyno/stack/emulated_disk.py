"""An emulated disk: a process that serves a drive model through FUSE, and the loop device over its file."""

import json
import os
import select
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from dbdyno._native import device_models
from dbdyno.errors import HostError, TrialError
from dbdyno.interrupt import shielded
from dbdyno.stack.journal import Journal
from dbdyno.stack.loop import attach_loop
from dbdyno.stack.tools import own_binary
from dbdyno.stack.undo import TOKEN_VARIABLE, DetachLoops, EndProcesses, RemoveTree, Undo, Unmount
from dbdyno.state import make_traversable, new_token, scratch_path

START_SECONDS = 20.0


@dataclass(frozen=True)
class EmulatedDisk:
    """A running disk process. Its content lives as long as the process does."""

    control: Path
    file: Path
    process: "subprocess.Popen[bytes]"
    observed: dict[str, Any]  # what the process said of itself: locked_memory, io_flusher, notes

    @property
    def pid(self) -> int:
        """The process that serves it."""
        return self.process.pid

    def ask(self, op: str, **arguments: object) -> dict[str, Any]:
        """One request to the disk's control socket. Raises ``TrialError`` where the disk refuses or is gone."""
        request = json.dumps({"op": op, **arguments}).encode() + b"\n"
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(60)
                client.connect(str(self.control))
                client.sendall(request)
                with client.makefile("r", encoding="utf-8") as reply:
                    answer: dict[str, Any] = json.loads(reply.readline() or "{}")
        except (OSError, ValueError) as error:
            raise TrialError(f"emulated disk (pid {self.pid}), {op}: no answer: {error}") from None
        if not answer.get("ok"):
            raise TrialError(f"emulated disk (pid {self.pid}), {op}: {answer.get('error', 'closed the connection')}")
        return answer


def is_rotational(model: str) -> bool:
    """What the kernel should believe of an emulated drive. Raises ``ValueError`` where there is no such drive."""
    return any(drive["rotational"] for drive in device_models(model))


def disk_undos(token: str, scratch: Path) -> list[Undo]:
    """What undoes a disk, in the order in which to announce it."""
    return [
        RemoveTree(str(scratch)),
        Unmount(str(scratch / "disk")),
        EndProcesses(token, "the emulated disk"),
        DetachLoops(str(scratch / "disk" / "disk.img")),
    ]


def start_disk(  # noqa: PLR0913  (what a disk consists of)
    token: str, scratch: Path, *, model: str, size: int, seed: int, mode: str
) -> EmulatedDisk:
    """Start a disk process; its undos must have been announced. ``size`` in bytes. Raises ``HostError``."""
    make_traversable(scratch)
    mount, control, log = scratch / "disk", scratch / "disk.sock", scratch / "disk.log"
    mount.mkdir()
    argv = [own_binary("dbdyno-disk"), "serve", "--model", model, "--size", str(size), "--seed", str(seed)]
    argv += ["--mode", mode, "--mount", str(mount), "--control", str(control)]
    argv += ["--max-content", str(_content_bytes_max(size))]
    with log.open("wb") as errors:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
            env={**os.environ, TOKEN_VARIABLE: token},
        )
    assert process.stdout is not None  # noqa: S101  (it is a pipe)
    with process.stdout as out:
        ready, _, _ = select.select([out], [], [], START_SECONDS)
        line = out.readline() if ready else b""
    if not line:
        process.kill()
        process.wait()
        said = log.read_text(encoding="utf-8", errors="replace").strip() or "it said nothing"
        raise HostError(f"the emulated disk {model} did not start: {said}")
    said = json.loads(line)
    # Its memory is locked: should the host run short, it is the disk that must go, not somebody's server.
    Path(f"/proc/{process.pid}/oom_score_adj").write_text("1000", encoding="ascii")
    return EmulatedDisk(control, Path(said["file"]), process, said)


def _content_bytes_max(size: int) -> int:
    """What a disk may hold in memory: its content twice, for the snapshot's sake, but at most half of what is free."""
    return min(2 * size, psutil.virtual_memory().available // 2)


@contextmanager
def running_disk(journal: Journal, *, model: str, size: int) -> Iterator[EmulatedDisk]:
    """An empty disk in instant mode, for as long as the context lasts. ``size`` in bytes."""
    token = new_token()
    scratch = scratch_path(token)
    numbers = [journal.announce(undo) for undo in disk_undos(token, scratch)]
    disk = None
    try:
        disk = start_disk(token, scratch, model=model, size=size, seed=0, mode="instant")
        yield disk
    finally:
        with shielded():
            for number in reversed(numbers):
                journal.settle(number)
            if disk:
                disk.process.wait()


def attached_device(disk: EmulatedDisk, *, rotational: bool) -> Path:
    """Attach a disk as a fresh loop device, with what the kernel should believe of it; its undo must be announced."""
    path = attach_loop(disk.file)
    (Path("/sys/block") / path.name / "queue/rotational").write_text("1" if rotational else "0", encoding="ascii")
    return path


def wait_idle(disk: EmulatedDisk, seconds: float = 60.0) -> None:
    """Wait until the disk has nothing in flight. Raises ``TrialError`` after ``seconds``."""
    deadline = time.monotonic() + seconds
    while disk.ask("stats").get("in_flight", 0):
        if time.monotonic() > deadline:
            raise TrialError(f"the emulated disk (pid {disk.pid}) still has requests in flight after {seconds:g} s")
        time.sleep(0.01)
