"""What ``Hosts`` asks for, done on the host itself. Nothing but Python's own library: it may be sent anywhere."""

import errno
import fcntl
import hashlib
import os
import secrets
import select
import shutil
import signal as signals
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from dbdyno.hosts.folder_side import FolderSide

CHUNK_BYTES = 4 * 1024**2
OUTPUT_BYTES_MAX = 1024**3  # that a program writes to each of its streams, from its beginning to its end
_LOOK_AGAIN_SECONDS = 0.01
_LOOK_AGAIN_MAX_SECONDS = (
    1.0  # once a program has been silent for a while: it may be measuring; its end is seen at once
)


def output_file(name: str) -> int:
    """Return a file in memory for what a program writes, which takes ``OUTPUT_BYTES_MAX`` and no more.

    It has that size from the beginning and can't grow, so a write beyond it fails, whoever reads it when; what was not
    written is a hole, and takes no memory.
    """
    file = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(file, OUTPUT_BYTES_MAX)
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL)
    return file


@dataclass
class _Program:
    """A program, and the files in memory that it writes to: no pipe that fills up, and nothing on a disk."""

    process: "subprocess.Popen[bytes]"
    files: tuple[int, ...]
    read: list[int] = field(default_factory=lambda: [0, 0])  # bytes of both that have been handed out
    code: int | None = None  # by which it has ended, all having been handed out

    lock: threading.Lock = field(default_factory=threading.Lock)  # around the files, which several threads use

    def news(self) -> list[tuple[bool, bytes]]:
        """What was written since the last time; whether to standard error, and the bytes."""
        found = []
        with self.lock:
            for place, file in enumerate(self.files):
                written = os.lseek(file, 0, os.SEEK_CUR)  # the program has the same place in the file
                content = os.pread(file, min(CHUNK_BYTES, written - self.read[place]), self.read[place])
                self.read[place] += len(content)
                if content:
                    found.append((bool(place), content))
        return found

    def forget_if_over(self) -> None:
        """Give back the memory once it has ended, where nothing is left to be handed out."""
        with self.lock:
            code = self.process.poll()
            places = [os.lseek(file, 0, os.SEEK_CUR) for file in self.files]
            if code is None or places != self.read:
                return
            for file in self.files:
                os.close(file)
            self.code, self.files, self.read = code, (), []

    def wait(self, seconds: float) -> None:
        """Wait for its end, at most so long."""
        with suppress(ProcessLookupError):
            handle = os.pidfd_open(self.process.pid)
            try:
                waiting = select.poll()
                waiting.register(handle, select.POLLIN)
                waiting.poll(seconds * 1000)
            finally:
                os.close(handle)


class HostSide(FolderSide):
    """One host's files, folders and programs."""

    def __init__(self) -> None:
        super().__init__()
        self._programs: dict[str, _Program] = {}
        self._arriving: dict[str, Path] = {}

    def begin(self, path: str) -> str:
        """Begin to write a file; returns what it is called until ``finish``."""
        name = secrets.token_hex(6)
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        self._arriving[name] = target.with_name(f".{target.name}.{name}")
        os.close(os.open(self._arriving[name], os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        return name

    def append(self, name: str, content: bytes) -> None:
        """Write more of it."""
        with self._arriving[name].open("ab") as file:
            file.write(content)

    def finish(self, name: str, path: str) -> str:
        """Let it count, under its own name; returns the SHA-256 of what was read back."""
        arrived = self._arriving.pop(name)
        with arrived.open("rb") as file:
            os.fsync(file.fileno())
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        arrived.replace(path)
        return digest

    def content(self, path: str, offset: int) -> bytes:
        """Part of a file, from an offset on; nothing at its end."""
        with Path(path).open("rb") as file:
            file.seek(offset)
            return file.read(CHUNK_BYTES)

    def start(self, argv: Sequence[str], stdin: bytes, environment: Mapping[str, str], while_there: str = "") -> str:
        """Start a program in a session of its own; it dies with this process. Our Python is first in its PATH.

        Nothing is started where the folder ``while_there`` is gone: a question that a network has held up may arrive
        after this host was put back, which begins with removing that folder.
        """
        self._refuse_gone(while_there)
        for program in list(self._programs.values()):
            program.forget_if_over()  # nobody may ever ask
        path = f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"
        bound = [*(("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()), *argv]
        files = (output_file("stdout"), output_file("stderr"))
        given = os.memfd_create("stdin")
        os.write(given, stdin)
        os.lseek(given, 0, os.SEEK_SET)
        try:
            process = subprocess.Popen(
                bound,
                stdin=given,
                stdout=files[0],
                stderr=files[1],
                env={**os.environ, "PATH": path, **environment},
                start_new_session=True,
            )
        finally:
            os.close(given)
        name = secrets.token_hex(6)
        self._programs[name] = _Program(process, files)
        try:
            self._refuse_gone(while_there)  # who ends all programs may have looked just before this one was there
        except OSError:
            self.signal(name, signals.SIGKILL)
            raise
        return name

    def _refuse_gone(self, folder: str) -> None:
        if folder and not Path(folder).is_dir():
            raise FileNotFoundError(errno.ENOENT, "this host has been put back, as its connection was lost", folder)

    def read(self, name: str, wait_seconds: float) -> tuple[list[tuple[bool, bytes]], int | None]:
        """What a program wrote since the last time, and its exit code once it has ended and all is handed out."""
        program, pause_seconds = self._programs[name], _LOOK_AGAIN_SECONDS
        deadline = time.monotonic() + wait_seconds
        while program.code is None:
            code = program.process.poll()  # before the look: what was written until then is seen by it
            news = program.news()
            if not news and code is not None:
                program.forget_if_over()
            if news or code is not None or time.monotonic() > deadline:
                return news, None if news else code
            program.wait(pause_seconds)
            pause_seconds = min(pause_seconds * 1.1, _LOOK_AGAIN_MAX_SECONDS)
        return [], program.code

    def signal(self, name: str, number: int) -> bool:
        """Send a signal to a program's session; whether it was still there."""
        program = self._programs[name]
        if program.process.poll() is not None:
            return False
        with suppress(ProcessLookupError):
            os.killpg(program.process.pid, number)
            return True
        return False

    def close(self) -> None:
        """End every program."""
        for name, program in self._programs.items():
            self.signal(name, signals.SIGKILL)
            program.process.wait()
            for file in program.files:
                os.close(file)
        self._programs.clear()
