"""``dbdyno-probe`` at the kernel's block trace of one device: steered by lines, and answering by lines of JSON."""

import json
import os
import select
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.stack.tools import own_binary
from dbdyno.stack.tracefs import tracefs
from dbdyno.stack.undo.log import Journal
from dbdyno.stack.undo.undos import TOKEN_VARIABLE, EndProcesses, RemoveTraceInstance
from dbdyno.system.state import new_token

ANSWER_SECONDS = 60.0  # the end of a trace is all that is left in the buffers of all processors


@dataclass(frozen=True)
class Record:
    """A file for the events of a trace, and how large it may grow."""

    file: Path
    bytes_max: int


class NoTraceError(Exception):
    """There is no trace, and why in a sentence."""


class TraceReader:
    """The program, which traces."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    def ask(self, command: str) -> dict[str, Any]:
        """What it answers. Raises ``NoTraceError`` where it says an error, nothing, or has ended."""
        assert self._process.stdin is not None  # noqa: S101  (it is a pipe)
        with suppress(BrokenPipeError):  # the answer gives the reason
            self._process.stdin.write(command.encode() + b"\n")
            self._process.stdin.flush()
        return self.heard()

    def heard(self) -> dict[str, Any]:
        """The next line that it says. Raises ``NoTraceError``."""
        assert self._process.stdout is not None  # noqa: S101  (it is a pipe)
        ready, _, _ = select.select([self._process.stdout], [], [], ANSWER_SECONDS)
        line = self._process.stdout.readline() if ready else b""
        if not line:
            raise NoTraceError(self._last_words() if ready else "dbdyno-probe does not answer")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise NoTraceError(str(answer["error"]).removeprefix("no block trace: "))
        return answer

    def close(self) -> None:
        """The end of standard input ends the reader, and the reader its instance."""
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe:
                with suppress(BrokenPipeError):
                    pipe.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _last_words(self) -> str:
        assert self._process.stderr is not None  # noqa: S101  (it is a pipe)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        ready, _, _ = select.select([self._process.stderr], [], [], 0)
        said = self._process.stderr.read1().decode(errors="replace").strip() if ready else ""  # type: ignore[attr-defined]
        return said.removeprefix("dbdyno-probe: ").removeprefix("no block trace: ") or "dbdyno-probe ended"


@contextmanager
def reading(journal: Journal, device: Path, record: Record | None = None) -> Iterator[TraceReader]:
    """Trace a device for as long as the context lasts; ``record`` says into which new file its events go, if any.

    Raises ``NoTraceError`` where that can't be done, ``HostError`` where there is no tracefs or no dbdyno-probe.
    """
    token = new_token()
    instance = f"dbdyno-{token}"
    with (
        tracefs(journal) as place,
        journal.undoing(RemoveTraceInstance(instance, str(place))),
        journal.undoing(EndProcesses(token, "the block trace")),
    ):
        block = ["block", str(device), "--control", "--instance", instance, "--tracefs", str(place)]
        if record:
            block += ["--record", str(record.file), "--record-most", str(record.bytes_max)]
        process = subprocess.Popen(
            [own_binary("dbdyno-probe"), *block],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, TOKEN_VARIABLE: token},
        )
        reader = TraceReader(process)
        try:
            reader.heard()  # that it has begun
            yield reader
        finally:
            reader.close()
