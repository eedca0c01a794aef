"""A program at the other end of a pair of pipes, ours or one that ssh starts: questions and answers, a line each.

The other end may lie, so all that it says is bounded here: a line, what a login shell prints before an answer, its
standard error, and the time that an answer may take, however much keeps coming.
"""

import json
import os
import select
import shlex
import subprocess
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

from dbdyno.errors import HostError
from dbdyno.hosts.answers import read_answer
from dbdyno.hosts.installer import MAGIC
from dbdyno.model.printable import short
from dbdyno.system.interrupt import shielded

T = TypeVar("T")
ANSWER_SECONDS = 60.0
_LINE_MAX_BYTES = 256 * 1024
_UNASKED_MAX_BYTES = 256 * 1024  # that a login shell prints before one answer
_COMPLAINTS_MAX_BYTES = 256 * 1024  # on standard error, from the beginning to the end
_SLOWEST_BYTES_PER_SECOND = 100_000  # at which what is sent must be taken
_END_SECONDS = 5.0
_CONNECT_SECONDS = 10
_PIECE_BYTES = 64 * 1024
# What ssh says, and what to do about it; the first that fits counts.
_REMEDIES = {
    "REMOTE HOST IDENTIFICATION HAS CHANGED": (
        "it was set up anew, or another machine answers in its place: ask who looks after it; only if the new key is "
        "right, log in once by hand ({login}), which says how the old key is removed"
    ),
    "REVOKED HOST KEY DETECTED": "its key is marked as revoked in your known hosts: ask who looks after it",
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
        self._lines, self._rest = deque[bytes](), b""  # that came and were not read yet; the beginning of the next
        self._complaints: list[bytes] = []
        try:
            with shielded():
                self._process = subprocess.Popen(
                    argv,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env={**os.environ, "LC_ALL": "C", **(environment or {})},
                    start_new_session=True,  # Ctrl-C is for dbdyno
                )
        except FileNotFoundError:
            raise HostError(f"{name}: {argv[0]} is not installed here; apt-get install openssh-client") from None
        to, its, complaints = self._process.stdin, self._process.stdout, self._process.stderr
        assert to is not None and its is not None and complaints is not None  # noqa: S101, PT018  (pipes)
        self._to, self._from, self._errors = to.fileno(), its.fileno(), [complaints.fileno()]
        os.set_blocking(self._to, False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Say nothing more; the program then ends, or is ended. Any number of times."""
        process = self._process
        self._errors.clear()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def ask(self, question: Mapping[str, Any], kind: type[T], seconds: float = ANSWER_SECONDS) -> T:
        """Send an object and wait for one of a kind.

        Raises ``HostError`` where it is an error, none comes in time, or it is no answer to such a question.
        """
        self.send(json.dumps(question).encode() + b"\n", seconds)
        return self.answer(kind, seconds)

    def answer(self, kind: type[T], seconds: float = ANSWER_SECONDS) -> T:
        """The next object. Raises ``HostError`` as above."""
        deadline, left = time.monotonic() + seconds, _UNASKED_MAX_BYTES
        while not (line := self.line(deadline)).startswith(MAGIC):  # what a login shell prints
            left -= len(line) + 1
            if left < 0:
                raise HostError(f"{self.name}: prints more than {_UNASKED_MAX_BYTES // 1024} KiB before its answer")
        return read_answer(self.name, line[len(MAGIC) :], kind)

    def send(self, content: bytes, seconds: float = ANSWER_SECONDS) -> None:
        """Send bytes. Raises ``HostError`` where they are not taken in that time and that for their number."""
        left = memoryview(content)
        deadline = time.monotonic() + seconds + len(content) / _SLOWEST_BYTES_PER_SECOND
        while left:
            seconds_left = min(seconds, deadline - time.monotonic())
            complaints, ready, _ = select.select(self._errors, [self._to], [], max(0.0, seconds_left))
            if complaints:
                self._take_complaint()
            if not (ready or complaints) or seconds_left < 0:
                raise HostError(f"{self.name}: does not take what is sent; see that it and the network work")
            if not ready:
                continue
            try:
                left = left[os.write(self._to, left[:_PIECE_BYTES]) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                raise self._ended() from None

    def has_more(self) -> bool:
        """Whether something has come that was not read. Raises ``HostError`` where the program has ended."""
        if not self._lines:
            self._listen(0.0)
        return bool(self._lines or self._rest)

    def line(self, deadline: float) -> bytes:
        """The next line, without its end, until a time of ``time.monotonic``. Raises ``HostError``.

        A line that is there after that time does not count either: else lines without end would have no end.
        """
        while (seconds := deadline - time.monotonic()) > 0 and not self._lines:
            self._listen(seconds)
        if seconds <= 0:
            raise HostError(f"{self.name}: no answer in time")
        return self._lines.popleft()

    def _listen(self, seconds: float) -> None:
        """Take in what has come, at most a piece; wait for it where nothing has. Raises ``HostError``."""
        ready, _, _ = select.select([self._from, *self._errors], [], [], seconds)
        if self._from in ready:
            part = os.read(self._from, _PIECE_BYTES)
            if not part:
                raise self._ended()
            *lines, self._rest = (self._rest + part).split(b"\n")
            self._lines.extend(lines)
            if max(map(len, (*lines, self._rest))) > _LINE_MAX_BYTES:
                raise HostError(f"{self.name}: says more than {_LINE_MAX_BYTES // 1024} KiB in one line")
        if set(self._errors) & set(ready):
            self._take_complaint()

    def _take_complaint(self) -> None:
        """Take in a piece of what is written to standard error. Raises ``HostError`` where that is too much."""
        part = os.read(self._errors[0], _PIECE_BYTES)
        if not part:
            self._errors.clear()
        self._complaints.append(part)
        if sum(map(len, self._complaints)) > _COMPLAINTS_MAX_BYTES:
            said = f"writes more than {_COMPLAINTS_MAX_BYTES // 1024} KiB to standard error"
            raise HostError(f"{self.name}: {said}, beginning with: {short(self._complained()[:100])}")

    def _complained(self) -> str:
        return b"".join(self._complaints).decode(errors="replace")

    def _ended(self) -> EndedError:
        """Why the other end is gone, as far as it said."""
        deadline, ended = time.monotonic() + _END_SECONDS, os.pidfd_open(self._process.pid)
        try:
            ready: list[int] = []
            while ended not in ready and (seconds := deadline - time.monotonic()) > 0:
                ready, _, _ = select.select([ended, *self._errors], [], [], seconds)
                while self._errors and select.select(self._errors, [], [], 0)[0]:
                    self._take_complaint()
        except HostError as error:
            return EndedError(str(error), said=True)
        finally:
            os.close(ended)
        code = self._process.poll()
        if code is None:
            self._process.kill()
        said = [line for line in self._complained().splitlines() if line.strip()]
        known = ((line, remedy) for words, remedy in _REMEDIES.items() for line in said if words in line)
        last = said[-1] if said else f"the connection ended (exit {code})"
        cause, remedy = next(known, (last, ""))
        remedy = remedy.format(login=self._login)
        text = short(cause.strip(" @\t\r")).rstrip(".!")
        return EndedError(f"{self.name}: {text}{f'; {remedy}' if remedy else ''}", said=bool(said))
