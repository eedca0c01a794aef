"""What is said between a guest and its host: lines of JSON over a virtio-serial port, and files as bytes after a line.

Each line is an object with one field, which is its kind. A guest is trusted no more than a host of a fleet: its lines
and files are bounded, only what is named is taken, and no wait is without end.
"""

import json
import os
import select
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dbdyno.errors import TrialError
from dbdyno.store.documents import json_object

PORT = "dbdyno"  # of virtio-serial
LINE_BYTES_MAX = 1024**2
_CHUNK_BYTES = 256 * 1024


class GuestLostError(TrialError):
    """The guest says nothing more, or nothing that can be understood."""


@dataclass
class GuestChannel:
    """Lines and files over a file in both directions: a socket that QEMU holds, or the port in the guest."""

    handle: int
    _rest: bytearray = field(default_factory=bytearray)

    def send(self, kind: str, value: object) -> None:
        """Say something. Raises ``GuestLostError``."""
        self._write(json.dumps({kind: value}).encode() + b"\n")

    def send_file(self, path: Path) -> None:
        """Write the bytes of a file, the size of which has been said."""
        with path.open("rb") as file:
            while content := file.read(_CHUNK_BYTES):
                self._write(content)

    def receive(self, seconds: float) -> tuple[str, Any]:
        """What is said next, its kind first. Raises ``GuestLostError``."""
        until = time.monotonic() + seconds
        while (end := self._rest.find(b"\n")) < 0:
            if len(self._rest) > LINE_BYTES_MAX:
                raise GuestLostError(f"the guest sent a line of more than {LINE_BYTES_MAX} bytes")
            self._more(until, seconds)
        line = bytes(self._rest[:end])
        del self._rest[: end + 1]
        try:
            ((kind, value),) = json_object(line).items()
        except ValueError as error:
            raise GuestLostError(f"the guest sent an invalid message: {error}") from None
        return kind, value

    def receive_file(self, path: Path, size_bytes: int, seconds: float) -> None:
        """Write the bytes that follow to a new file. Raises ``GuestLostError``."""
        until, left = time.monotonic() + seconds, size_bytes
        with path.open("xb") as file:
            while left:
                if not self._rest:
                    self._more(until, seconds)
                part = self._rest[:left]
                file.write(part)
                left -= len(part)
                del self._rest[: len(part)]

    def _more(self, until: float, seconds: float) -> None:
        ready, _, _ = select.select([self.handle], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            raise GuestLostError(f"no message from the guest for {seconds:.0f} s")
        try:
            content = os.read(self.handle, _CHUNK_BYTES)
        except OSError:
            content = b""
        if not content:
            raise GuestLostError("the guest stopped without a result")
        self._rest += content

    def _write(self, content: bytes) -> None:
        left = memoryview(content)
        try:
            while left:
                left = left[os.write(self.handle, left) :]
        except OSError as error:
            raise GuestLostError(f"the guest is gone: {error.strerror}") from None
