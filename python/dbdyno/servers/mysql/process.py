"""A server's process: when it answers, how it is stopped, why it ended."""

import re
import socket as socketlib
import subprocess
import time
from pathlib import Path

from dbdyno.errors import TrialError
from dbdyno.model.printable import short
from dbdyno.servers.contract import NotStartedError, ServerError
from dbdyno.servers.mysql.connection import connect
from dbdyno.servers.user import read_log
from dbdyno.system.child import exit_words

START_SECONDS, STOP_SECONDS = 120.0, 60.0

# What the log says, and what it means to a reader of one line.
_CAUSES = (
    (r"unknown (?:variable|option) '([^']+)'", "the server does not know the setting {0}"),
    (r"Bind on TCP/IP port", "the TCP port is taken by another server; choose another port or leave it out"),
    (r"Bind on unix socket|Can't start server : Bind|another server running", "the socket is taken by another server"),
    (r"No space left on device|Disk is full|errno: 28", "the disk is full"),
    (r"Cannot allocate memory|Out of memory", "the server found too little memory; look at stack.memory"),
    (r"\[ERROR\] (.+)", "{0}"),
    (r"(?:FATAL ERROR|ERROR|Error|mkdir|chmod): (.+)", "{0}"),  # of the install script
)


def await_ready(
    process: "subprocess.Popen[bytes]", socket: Path, log: Path, limit_seconds: float | None = None
) -> None:
    """Wait until the server answers. Raises ``NotStartedError`` with the cause when it exits or takes too long."""
    limit = START_SECONDS if limit_seconds is None else limit_seconds
    deadline = time.monotonic() + limit
    while True:
        if process.poll() is not None:
            ended = exit_words(process.returncode)
            raise NotStartedError(f"the server ended while starting ({ended}): {cause_in(log)}", process.returncode)
        try:
            _knock(socket)
            connect(socket, 5).close()
        except (OSError, ServerError):
            if time.monotonic() > deadline:
                said = f"the server does not answer after {limit:g} s: {cause_in(log)}"
                raise NotStartedError(said, None) from None
            time.sleep(0.02)
        else:
            return


def _knock(address: Path) -> None:
    """See whether anybody listens, which costs less than a login. Raises ``OSError``."""
    with socketlib.socket(socketlib.AF_UNIX) as client:
        client.settimeout(5)
        client.connect(str(address))


def stop(process: "subprocess.Popen[bytes]") -> None:
    """End the server: politely, then for good."""
    if process.poll() is None:
        process.terminate()
    for _ in range(2):
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
        else:
            return
    raise TrialError(f"the server (pid {process.pid}) does not end, even killed: the device below it does not answer")


def cause_in(log: Path) -> str:
    """Why a server would not run, in one sentence, from its error log."""
    content = read_log(log)
    if content is None:
        return "it left no error log"
    text = content.decode(errors="replace")
    for pattern, words in _CAUSES:
        match = re.search(pattern, text)
        if match:
            return short(words.format(*match.groups()), 300)
    last = [line for line in text.splitlines() if line.strip()][-1:]
    return f"its log ends with: {short(last[0], 300)}" if last else "its error log is empty"
