"""A program that is run to its end, and that no signal leaves behind."""

import json
import os
import resource
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Timer
from typing import IO, Any

from dbdyno.system.interrupt import shielded

Stream = int | IO[bytes]

# Before the words of a program that the kernel is to end with the process that starts it, however that ends.
DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")


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


def run_for_json_lines(
    argv: Sequence[str], limit_seconds: float, take: Callable[[dict[str, Any]], None]
) -> tuple[int, str]:
    """Run a program that prints an object of JSON a line, and hand each on at once; killed after ``limit_seconds``.

    Returns its exit code, -9 where it was killed, and what it complained of.
    """
    with child(argv, env=os.environ) as program:
        assert program.stdout is not None  # noqa: S101  (they are pipes)
        assert program.stderr is not None  # noqa: S101
        watch = Timer(limit_seconds, program.kill)
        watch.start()
        try:
            for line in program.stdout:
                take(json.loads(line))
            return program.wait(), decoded(program.stderr.read()).strip()
        finally:
            watch.cancel()


def decoded(output: bytes) -> str:
    """What a program said, as text; what is no UTF-8 is shown as such."""
    return output.decode(errors="replace")


def exit_words(code: int) -> str:
    """An exit code in words."""
    if code >= 0:
        return f"exit {code}"
    known = -code in {*signal.Signals}  # those between the first and the last of real time have no name
    return f"killed by signal {signal.Signals(-code).name if known else -code}"


# Work on bytes of others in a process of its own, whose memory and CPU time the kernel bounds.
#
# A library that is led to ask for more memory than there is ends its process. Here that is a child, and all that it has
# said until then is still known.


_PAGE_BYTES = resource.getpagesize()


@contextmanager
def bounded(work: Callable[[IO[bytes]], None], memory_bytes: int, seconds: float) -> Iterator[IO[bytes]]:
    """Fork a child that does ``work``, and yield the end of the pipe from which what it writes is read.

    It may take ``memory_bytes`` more than this process has, and ``seconds`` of CPU time. It is gone at the exit. What
    it writes ends early where it was ended by a limit: ``work`` must write something last that says that it is done.
    """
    reader, writer = os.pipe2(os.O_CLOEXEC)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        child = os.fork()
        if not child:
            _be_the_child(work, writer, memory_bytes, seconds)
    except OSError:
        os.close(reader)
        raise
    finally:
        os.close(writer)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    try:
        with os.fdopen(reader, "rb") as stream:
            yield stream
    finally:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(child, 0)


def _be_the_child(work: Callable[[IO[bytes]], None], writer: int, memory_bytes: int, seconds: float) -> None:
    """Do the work and end, whatever happens: nothing of what this process began is undone by its child."""
    try:
        # It answers to no signal but those that it can't refuse, and to the kernel's for its limits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # where a library that lacks memory says so
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        _lower(resource.RLIMIT_AS, pages * _PAGE_BYTES + memory_bytes)
        _lower(resource.RLIMIT_CPU, max(1, round(seconds)))
        with os.fdopen(writer, "wb") as stream:
            work(stream)
    except BaseException:  # noqa: BLE001, S110 - a MemoryError too; the parent sees that the end is missing
        pass
    finally:
        os._exit(0)


def _lower(limit: int, to: int) -> None:
    """Lower a limit: its soft and its hard value, which is never raised."""
    hard = resource.getrlimit(limit)[1]
    least = to if hard == resource.RLIM_INFINITY else min(to, hard)
    resource.setrlimit(limit, (least, least))
