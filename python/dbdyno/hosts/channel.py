"""A program at the other end of a pair of pipes, ours or one that ssh starts: questions and answers, a line each."""

import json
import os
import select
import shlex
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from dbdyno.errors import HostError
from dbdyno.hosts.installer import MAGIC
from dbdyno.model.printable import short
from dbdyno.system.interrupt import shielded

ANSWER_SECONDS = 60.0
_LINE_MAX_BYTES = 4 * 1024**2
_END_SECONDS = 5.0
_CONNECT_SECONDS = 10
_PIECE_BYTES = 256 * 1024
# What ssh says, and what to do about it.
_REMEDIES = {
    "Host key verification failed": "log in once by hand ({login}), compare the key, and accept it",
    "Permission denied": "nothing is asked for here, so ssh must be able to log in with a key or an agent",
    "Could not resolve hostname": "see ssh in the hosts file, or Host in ~/.ssh/config",
    "Connection refused": "see that sshd runs there, and on that port",
    "No route to host": "see that it is on, and that its address is right",
    "timed out": "see that it is on, and that its address is right",
    "python3: not found": "install Python there, or name one: python = ...",
    "command not found": "install Python there, or name one: python = ...",
    "No such file or directory": "install Python there, or name one: python = ...",
}


class EndedError(HostError):
    """The other end has ended."""

    def __init__(self, text: str, *, said: bool) -> None:
        super().__init__(text)
        self.said = said  # whether it, or ssh, said why


def ssh_command(target: str, config: Path | None, argv: Sequence[str]) -> list[str]:
    """Return the words that run a program on a host: the user's ssh, which checks host keys and asks for nothing."""
    options = ["BatchMode=yes", f"ConnectTimeout={_CONNECT_SECONDS}", "ServerAliveInterval=5", "ServerAliveCountMax=3"]
    given = [word for option in options for word in ("-o", option)]
    file = ["-F", str(config)] if config else []
    # The login shell there splits it into these very words again.
    return ["ssh", "-T", *file, *given, "--", target, shlex.join(argv)]


def login_command(target: str, config: Path | None) -> str:
    """Return the command by which a person logs in to a host."""
    return shlex.join(["ssh", *(["-F", str(config)] if config else []), target])


class Channel:
    """A running program that answers; leaving the context ends it."""

    def __init__(
        self, name: str, argv: Sequence[str], environment: Mapping[str, str] | None = None, *, login: str = ""
    ) -> None:
        """Start it; ``login`` is the command by which a person would log in where it runs."""
        self.name = name
        self._login = login
        self._buffer = b""
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115  (closed below)
        try:
            with shielded():
                self._process = subprocess.Popen(
                    argv,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._complaints,
                    env={**os.environ, "LC_ALL": "C", **(environment or {})},
                    start_new_session=True,  # Ctrl-C is for dbdyno
                )
        except FileNotFoundError:
            self._complaints.close()
            raise HostError(f"{name}: {argv[0]} is not installed here; apt-get install openssh-client") from None
        assert self._process.stdin is not None and self._process.stdout is not None  # noqa: S101, PT018  (pipes)
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._to, False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Say nothing more; the program then ends, or is ended. Any number of times."""
        process = self._process
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._complaints.close()

    def ask(self, question: Mapping[str, Any], seconds: float = ANSWER_SECONDS) -> dict[str, Any]:
        """Send an object and wait for one. Raises ``HostError`` where it is an error, or none comes in time."""
        self.send(json.dumps(question).encode() + b"\n", seconds)
        return self.answer(seconds)

    def answer(self, seconds: float = ANSWER_SECONDS) -> dict[str, Any]:
        """The next object. Raises ``HostError`` as above."""
        deadline = time.monotonic() + seconds
        while not (line := self.line(deadline)).startswith(MAGIC):
            pass  # what a login shell prints
        try:
            found = json.loads(line[len(MAGIC) :])
        except ValueError:
            raise HostError(
                f"{self.name}: its answer is not understood: {short(line.decode(errors='replace'))}"
            ) from None
        if "error" in found:
            raise HostError(f"{self.name}: {short(str(found['error']))}")
        return dict(found)

    def send(self, content: bytes, seconds: float = ANSWER_SECONDS) -> None:
        """Send bytes. Raises ``HostError`` where nothing of them is taken for so long, or the program has ended."""
        left = memoryview(content)
        while left:
            _, ready, _ = select.select([], [self._to], [], seconds)
            if not ready:
                raise HostError(f"{self.name}: takes nothing for {seconds:g} s")
            try:
                left = left[os.write(self._to, left[:_PIECE_BYTES]) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                raise self._ended() from None

    def has_more(self) -> bool:
        """Whether something has come that was not read, or the program has ended."""
        return b"\n" in self._buffer or bool(select.select([self._from], [], [], 0)[0])

    def line(self, deadline: float) -> bytes:
        """The next line, without its end, until a time of ``time.monotonic``. Raises ``HostError``."""
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise HostError(f"{self.name}: no answer in time")
            part = os.read(self._from, _PIECE_BYTES)
            if not part:
                raise self._ended()
            self._buffer += part
            if len(self._buffer) > _LINE_MAX_BYTES:
                raise HostError(f"{self.name}: says too much in one line")
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _ended(self) -> EndedError:
        """Why the other end is gone, as far as it said."""
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._complaints.seek(0)
        said = [line for line in self._complaints.read().decode(errors="replace").splitlines() if line.strip()]
        known = ((line, remedy) for words, remedy in _REMEDIES.items() for line in said if words in line)
        last = said[-1] if said else f"the connection ended (exit {self._process.poll()})"
        cause, remedy = next(known, (last, ""))
        remedy = remedy.format(login=self._login)
        text = short(cause.strip()).removesuffix(".")
        return EndedError(f"{self.name}: {text}{f'; {remedy}' if remedy else ''}", said=bool(said))
