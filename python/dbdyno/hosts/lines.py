"""What a program of ours on a host says, line by line: bounded, as the host may lie or the program be broken."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf

from dbdyno.hosts.contract import Ended, Hosts, LieError
from dbdyno.model.printable import short
from dbdyno.system.child import exit_words

_ERRORS_KEPT_BYTES = 4096  # of standard error: its end, which says why the program ended


@dataclass
class Lines:
    """The lines of one program, for as long as it runs; more than its bounds allow is a lie."""

    hosts: Hosts
    host: str
    process: str
    line_bytes_max: int
    lines_max: int  # until ``renew`` is called
    bytes_max: int  # the same, standard error included
    silent_seconds: float = inf  # that it may say nothing
    code: int | None = field(default=None, init=False)  # by which it has ended
    _errors: bytes = field(default=b"", init=False)
    _lines: int = field(default=0, init=False)
    _bytes: int = field(default=0, init=False)

    def read(self) -> Iterator[bytes]:
        """Each whole line; it ends as the program does.

        Raises ``LieError`` where it says too much, else what ``Hosts.stream`` raises.
        """
        rest, rest_bytes = list[bytes](), 0  # the beginning of a line, as it came
        for one in self.hosts.stream(self.host, self.process, patient=True, silent_seconds=self.silent_seconds):
            if isinstance(one, Ended):
                self.code = one.code
                return
            self._bytes += len(one.content)
            if one.to_error:
                self._errors = (self._errors + one.content)[-_ERRORS_KEPT_BYTES:]
                self._check(rest_bytes)
                continue
            first, *others = one.content.split(b"\n")
            rest, rest_bytes = [*rest, first], rest_bytes + len(first)
            for other in others:
                self._lines += 1
                self._check(rest_bytes)
                yield b"".join(rest)
                rest, rest_bytes = [other], len(other)
            self._check(rest_bytes)

    def renew(self) -> None:
        """It has brought something that takes work: what it may say begins anew."""
        self._lines = self._bytes = 0

    def why_ended(self) -> str:
        """What it said last on standard error, or by what it has ended."""
        said = self._errors.decode(errors="replace").strip()
        return short(said[-200:]) or exit_words(self.code or 0)

    def _check(self, line_bytes: int) -> None:
        """Raise ``LieError`` where that is too much."""
        if line_bytes > self.line_bytes_max or self._lines > self.lines_max or self._bytes > self.bytes_max:
            said = f"{self._lines} lines, {self._bytes} bytes"
            raise LieError(f"{self.host}: says too much: {said}, and there is no end of it")
