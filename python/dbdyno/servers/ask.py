"""A server's program asked for what it prints: never as root, and bounded in time and size."""

import subprocess
import time
from selectors import EVENT_READ, DefaultSelector
from typing import Literal

from dbdyno.servers.user import unprivileged
from dbdyno.system.child import child

_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
_PIECE_BYTES = 65536


def answer(argv: list[str], stream: Literal["stdout", "stderr", "both"], seconds: float, bytes_max: int) -> bytes:
    """What a program prints until it ends, has printed ``bytes_max``, or ``seconds`` are over: then it is killed.

    A study may name any program as its server's. Raises ``OSError`` where it can't be started.
    """
    out = subprocess.DEVNULL if stream == "stderr" else subprocess.PIPE
    err = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "both": subprocess.STDOUT}[stream]
    deadline, output = time.monotonic() + seconds, b""
    with child(unprivileged(argv), env=_ENVIRONMENT, stdout=out, stderr=err, cwd="/") as process:
        pipe = process.stderr if stream == "stderr" else process.stdout
        assert pipe is not None  # noqa: S101  (it was asked for)
        with DefaultSelector() as ready:
            ready.register(pipe, EVENT_READ)
            while len(output) < bytes_max and ready.select(max(0.0, deadline - time.monotonic())):
                piece = pipe.read1(_PIECE_BYTES)  # type: ignore[attr-defined]
                if not piece:
                    break
                output += piece
    return output
