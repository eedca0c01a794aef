"""A program that is run to its end, and that no signal leaves behind."""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from dbdyno.system.interrupt import shielded

Stream = int | IO[bytes]


@contextmanager
def child(  # noqa: PLR0913  (what a program is given)
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    stdin: Stream = subprocess.DEVNULL,
    stdout: Stream = subprocess.PIPE,
    stderr: Stream = subprocess.PIPE,
    cwd: Path | str | None = None,
    pass_fds: tuple[int, ...] = (),
) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a program; leaving the context ends it, and what it started, where it has not ended.

    It is known before a signal can raise ``Interrupted``: else it would go on with its change of the host while that
    change is being undone.
    """
    process = None
    try:
        with shielded():
            process = subprocess.Popen(
                argv,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env=dict(env),
                cwd=cwd,
                pass_fds=pass_fds,
                start_new_session=True,  # Ctrl-C is for dbdyno, which then puts the host back
            )
        yield process
    finally:
        with shielded():
            if process is not None:
                _end(process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def decoded(said: bytes) -> str:
    """What a program said, as text; what is no UTF-8 is shown as such."""
    return said.decode(errors="replace")


def exit_words(code: int) -> str:
    """An exit code in words."""
    if code >= 0:
        return f"exit {code}"
    known = -code in {*signal.Signals}  # those between the first and the last of real time have no name
    return f"killed by signal {signal.Signals(-code).name if known else -code}"
