"""A connection to a host: the system's ssh, one program of it, and at its other end dbdyno's agent.

First it speaks in lines, to the installer, before which a login shell may print; then in frames, to the agent. The
other end may lie, so all that it says is bounded here: a line, what a login shell prints, its standard error, an
answer, and the time that one may take, however much keeps coming.
"""

import json
import os
import select
import shlex
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

from dbdyno.errors import HostError
from dbdyno.hosts.contract import LieError
from dbdyno.hosts.frames import (
    BODY_BYTES_MAX,
    OBJECT_BYTES_MAX,
    Arriving,
    Begun,
    Echoed,
    Frame,
    pack_frame,
    read_answer,
    side_question,
    side_value,
)
from dbdyno.hosts.host_side import CHUNK_BYTES
from dbdyno.hosts.installer import MAGIC
from dbdyno.model.printable import short
from dbdyno.system.clock import Echo, Offset, now, offsets_of
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
_LOOK_SECONDS = 0.25  # between two looks of a thread whose answer another one takes in
# Beside what the user's configuration says. A host that is another's gets to no key, display or port of this machine.
_OPTIONS = (
    "BatchMode=yes",
    f"ConnectTimeout={_CONNECT_SECONDS}",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=3",
    "ForwardAgent=no",
    "ForwardX11=no",
    "ClearAllForwardings=yes",
)
# What ssh says, and what to do about it; the first that fits counts.
_REMEDIES = {
    "REMOTE HOST IDENTIFICATION HAS CHANGED": (
        "it was reinstalled, or another machine answers in its place: ask its administrator; only if the new key is "
        "right, log in once by hand ({login}), which tells how to remove the old key"
    ),
    "REVOKED HOST KEY DETECTED": "its key is marked as revoked in your known hosts: ask its administrator",
    "Host key verification failed": "log in once by hand ({login}), compare the key, and accept it",
    "Permission denied": "dbdyno asks for no password, so ssh must be able to log in with a key or an agent",
    "Could not resolve hostname": "check ssh in the hosts file, or Host in ~/.ssh/config",
    "Connection refused": "check that sshd runs there, on that port",
    "No route to host": "check that it is on, and that its address is right",
    "timed out": "check that it is on, and that its address is right",
    "python3: not found": "install Python there, or name its path in the hosts file: python = ...",
    "command not found": "install Python there, or name its path in the hosts file: python = ...",
    "No such file or directory": "install Python there, or name its path in the hosts file: python = ...",
}


class EndedError(HostError):
    """The other end has ended."""

    def __init__(self, text: str, *, is_explained: bool) -> None:
        super().__init__(text)
        self.is_explained = is_explained  # whether it, or ssh, said why


def ssh_command(target: str, config: Path | None, argv: Sequence[str]) -> list[str]:
    """Return the words that run a program on a host: the user's ssh, which checks host keys and asks for nothing."""
    option_words = [word for option in _OPTIONS for word in ("-o", option)]
    file = ["-F", str(config)] if config else []
    # The login shell there splits it into these very words again.
    return ["ssh", "-T", *file, *option_words, "--", target, shlex.join(argv)]


def login_command(target: str, config: Path | None) -> str:
    """Return the command by which a person logs in to a host."""
    return shlex.join(["ssh", *(["-F", str(config)] if config else []), target])


@dataclass(frozen=True)
class Answer:
    """An answer, and when it came, by both clocks here."""

    frame: Frame
    arrived: tuple[int, int]


@dataclass
class _Open:
    """A question without an answer yet."""

    what: str
    future: "Future[Answer]"


class Channel:
    """A running program that answers; leaving the context ends it.

    Who asks also takes in what comes, unless a thread does so for all (``is_watched``).
    """

    def __init__(
        self, name: str, argv: Sequence[str], environment: Mapping[str, str] | None = None, *, login: str = ""
    ) -> None:
        """Start it; ``login`` is the command by which a person would log in where it runs."""
        self.name = name
        self.is_watched = False
        self.bytes_moved = 0  # in both directions: as long as they do, the host is there
        self._login = login
        self._lines, self._rest = deque[bytes](), b""  # that came and were not read yet; the beginning of the next
        self._complaints: list[bytes] = []
        self._open: dict[int, _Open] = {}
        self._last_number = 0
        self._frames: Arriving | None = None  # once it speaks in frames
        self._sending, self._lock = threading.Lock(), threading.Lock()
        self._ended_by: HostError | None = None
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
        self.fail(HostError(f"{self.name}: the connection was closed"))
        process = self._process
        with self._sending:
            self._errors.clear()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    # Lines.

    def ask_in_lines(self, question: Mapping[str, Any], kind: type[T], seconds: float = ANSWER_SECONDS) -> T:
        """Send an object and wait for one of a kind. Raises ``HostError`` where it is none, or none comes in time."""
        self.send(json.dumps(question).encode() + b"\n", seconds)
        return self.answer_in_lines(kind, seconds)

    def answer_in_lines(self, kind: type[T], seconds: float = ANSWER_SECONDS) -> T:
        """The next object. Raises ``HostError`` as above."""
        deadline, left = time.monotonic() + seconds, _UNASKED_MAX_BYTES
        while not (line := self._line(deadline)).startswith(MAGIC):  # what a login shell prints
            left -= len(line) + 1
            if left < 0:
                raise HostError(f"{self.name}: prints more than {_UNASKED_MAX_BYTES // 1024} KiB before its answer")
        return read_answer(self.name, line[len(MAGIC) :], kind)

    def begin_frames(self) -> Self:
        """Wait until the agent has begun; from then on it speaks in frames. Raises ``HostError``."""
        self.answer_in_lines(Begun)
        self._frames = Arriving(self._bounds)
        rest = b"".join(line + b"\n" for line in self._lines) + self._rest
        self._lines.clear()
        self._take_frames(rest)
        return self

    def _line(self, deadline: float) -> bytes:
        """The next line, without its end, until a time of ``time.monotonic``. Raises ``HostError``.

        A line that is there after that time does not count either: else lines without end would have no end.
        """
        while (seconds := deadline - time.monotonic()) > 0 and not self._lines:
            self.listen(seconds)
        if seconds <= 0:
            raise HostError(f"{self.name}: no answer in time")
        return self._lines.popleft()

    def _take_lines(self, part: bytes) -> None:
        *lines, self._rest = (self._rest + part).split(b"\n")
        self._lines.extend(lines)
        if max(map(len, (*lines, self._rest))) > _LINE_MAX_BYTES:
            raise HostError(f"{self.name}: sent more than {_LINE_MAX_BYTES // 1024} KiB in one line")

    # Frames.

    def ask(self, question: Mapping[str, Any], kind: type[T], seconds: float = ANSWER_SECONDS) -> T:
        """Ask the agent. Raises ``HostError`` where the host is lost, or its answer is an error or none of the kind."""
        answer = self.wait(self.submit(question, b"", seconds), seconds)
        return read_answer(self.name, answer.frame.content, kind)

    def ask_side(self, what: str, arguments: Sequence[Any], seconds: float) -> Any:  # noqa: ANN401  (what it returns)
        """Call a method of the host's ``HostSide``; raises what that raises, and ``HostError`` as above."""
        frame = self.wait(self.submit(*side_question(what, arguments), seconds), seconds).frame
        return side_value(self.name, what, frame)

    def submit(
        self, question: Mapping[str, Any], body: bytes = b"", seconds: float = ANSWER_SECONDS
    ) -> "Future[Answer]":
        """Send a question; the future has its answer. Raises ``HostError`` where it is not taken in time."""
        if not self._sending.acquire(timeout=seconds):
            raise HostError(f"{self.name}: accepts no more data; check the host and the network")
        try:
            return self._submit(question, body, seconds)
        finally:
            self._sending.release()

    def try_submit(self, question: Mapping[str, Any]) -> "Future[Answer] | None":
        """Send a short question, unless that would have to wait."""
        if not self._sending.acquire(blocking=False):
            return None
        try:
            # A pipe that can be written to takes 4 KiB (pipe(7)).
            return self._submit(question, b"", 1.0) if select.select([], [self._to], [], 0)[1] else None
        finally:
            self._sending.release()

    def _submit(self, question: Mapping[str, Any], body: bytes, seconds: float) -> "Future[Answer]":
        open_question = _Open(str(question["do"]), Future())
        with self._lock:
            if self._ended_by:
                raise self._ended_by
            self._last_number += 1
            number = self._last_number
            self._open[number] = open_question
        try:
            with shielded():  # half a frame would be the end of the connection, which is needed to put the host back
                self._send(pack_frame(number, question, body), seconds)
        except HostError as error:
            self.fail(error)  # part of a frame may be on its way
            raise
        return open_question.future

    def wait(self, future: "Future[Answer]", seconds: float = ANSWER_SECONDS) -> Answer:
        """An answer, once it is there. Raises ``HostError``."""
        deadline = time.monotonic() + seconds
        while not future.done():
            left = deadline - time.monotonic()
            if left <= 0:
                raise HostError(f"{self.name}: no answer in {seconds:g} s")
            if self.is_watched:
                with suppress(TimeoutError):
                    future.exception(left)
                continue
            try:
                self.listen(left)
            except HostError as error:
                self.fail(error)
        return future.result()

    def fail(self, error: HostError) -> None:
        """Have all that is asked, and will be, have no answer but this error."""
        with self._lock:
            self._ended_by = self._ended_by or error
            waiting = list(self._open.values())
            self._open.clear()
        for question in waiting:
            question.future.set_exception(self._ended_by)

    def _bounds(self, number: int) -> tuple[int, int]:
        open_question = self._open.get(number)
        if open_question is None:
            raise LieError("has sent an answer without a question")
        return OBJECT_BYTES_MAX, BODY_BYTES_MAX.get(open_question.what, 0)

    def _take_frames(self, part: bytes) -> None:
        """Hand answers to those who asked. Raises ``LieError`` for what is none."""
        arrived = now()
        assert self._frames is not None  # noqa: S101  (who calls this has seen to it)
        try:
            for frame in self._frames.take(part):
                with self._lock:
                    open_question = self._open.pop(frame.number, None)
                if open_question is not None:
                    open_question.future.set_result(Answer(frame, arrived))
        except LieError as error:
            raise LieError(f"{self.name}: {error}") from None

    # Both.

    def files(self) -> list[int]:
        """What to wait for, to ``listen``."""
        return [self._from, *self._errors] if not self._ended_by else []

    def listen(self, seconds: float) -> None:
        """Take in what has come, at most a piece; wait for it where nothing has. Raises ``HostError``."""
        ready, _, _ = select.select([self._from, *self._errors], [], [], seconds)
        if self._from in ready:
            part = os.read(self._from, 4 * _PIECE_BYTES)
            self.bytes_moved += len(part)
            if not part:
                raise self._ended()
            (self._take_lines if self._frames is None else self._take_frames)(part)
        if set(self._errors) & set(ready):
            self._take_complaint()

    def send(self, content: bytes, seconds: float = ANSWER_SECONDS) -> None:
        """Send bytes. Raises ``HostError`` where they are not taken in that time and that for their number."""
        with self._sending:
            self._send(content, seconds)

    def send_file(self, path: Path, seconds: float) -> None:
        """Send what is in a file, a piece at a time: many hosts may be sent to at once. Raises ``HostError``."""
        with path.open("rb") as file:
            while part := file.read(CHUNK_BYTES):
                self.send(part, seconds)

    def _send(self, content: bytes, seconds: float) -> None:
        left = memoryview(content)
        began = time.monotonic()
        deadline, stalled = began + seconds + len(content) / _SLOWEST_BYTES_PER_SECOND, began + seconds
        while left:
            if self._ended_by:
                raise self._ended_by
            pause = min(_LOOK_SECONDS, min(deadline, stalled) - time.monotonic())
            complaints = [] if self.is_watched else self._errors
            complained, ready, _ = select.select(complaints, [self._to], [], max(0.0, pause))
            if complained:
                self._take_complaint()
            if pause < 0:
                raise HostError(f"{self.name}: accepts no more data; check the host and the network")
            if not ready:
                continue
            try:
                written = os.write(self._to, left[:_PIECE_BYTES])
            except BlockingIOError:
                continue
            except BrokenPipeError:
                if self.is_watched:  # the thread that listens learns why
                    raise HostError(f"{self.name}: the connection ended") from None
                raise self._ended() from None
            left, stalled = left[written:], time.monotonic() + seconds
            self.bytes_moved += written

    def _take_complaint(self) -> None:
        """Take in a piece of what is written to standard error. Raises ``HostError`` where that is too much."""
        part = os.read(self._errors[0], _PIECE_BYTES)
        if not part:
            self._errors.clear()
        self._complaints.append(part)
        if sum(map(len, self._complaints)) > _COMPLAINTS_MAX_BYTES:
            reason = f"writes more than {_COMPLAINTS_MAX_BYTES // 1024} KiB to standard error"
            raise HostError(f"{self.name}: {reason}, beginning with: {short(self._complained()[:100])}")

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
            return EndedError(str(error), is_explained=True)
        finally:
            os.close(ended)
        code = self._process.poll()
        if code is None:
            self._process.kill()
        complaint_lines = [line for line in self._complained().splitlines() if line.strip()]
        remedies = _REMEDIES if self._login else {}  # of ssh; another program says other things by the same words
        known = ((line, remedy) for words, remedy in remedies.items() for line in complaint_lines if words in line)
        last = complaint_lines[-1] if complaint_lines else f"the connection ended (exit {code})"
        cause, remedy = next(known, (last, ""))
        remedy = remedy.format(login=self._login)
        text = short(cause.strip(" @\t\r")).rstrip(".!")
        return EndedError(f"{self.name}: {text}{f'; {remedy}' if remedy else ''}", is_explained=bool(complaint_lines))


def offsets(channel: Channel, count: int = 128) -> dict[str, Offset]:
    """How far the clocks at the other end are from ours, by their names, from so many echoes.

    Raises ``HostError``, also where its echoes are none.
    """
    try:
        return offsets_of([*_echoes(channel, count)])
    except ValueError as error:
        raise HostError(f"{channel.name}: its clocks can't be read: {error}") from None


def _echoes(channel: Channel, count: int) -> "Iterator[dict[str, Echo]]":
    for _ in range(count):
        sent = now()
        answer = channel.wait(channel.submit({"do": "echo"}))
        echo_times = read_answer(channel.name, answer.frame.content, Echoed)
        yield Echo.of(sent, echo_times.received, echo_times.answered, answer.arrived)
