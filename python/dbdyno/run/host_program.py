"""A program of ours that a host runs for another machine: asked by standard input, it says lines of JSON."""

import ctypes
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dbdyno.stack.restore import put_back
from dbdyno.system.locks import alone_on_host, only_one

Send = Callable[[dict[str, Any]], None]
BEAT_SECONDS = 60.0
_PR_SET_PDEATHSIG = 1  # prctl(2)
_INPUT, _OUTPUT, _ERROR = 0, 1, 2


def end_with_starter() -> None:
    """With the end of what started this process comes SIGTERM, by which a stack is lowered, and no sudden end."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def request_and_send() -> tuple[bytes, Send]:
    """What standard input asks for, and what says a line; any thread may."""
    end_with_starter()
    with os.fdopen(os.dup(_INPUT), "rb") as standard_input:
        content = standard_input.read()
    output, lock = os.dup(_OUTPUT), threading.Lock()
    os.dup2(_ERROR, _OUTPUT)  # what any library prints must not get in between

    def send(message: dict[str, Any]) -> None:
        with lock:
            os.write(output, json.dumps(message).encode() + b"\n")

    return content, send


@contextmanager
def heartbeat(send: Send) -> Iterator[None]:
    """Report each minute that this program is alive, whatever it waits for; a caller that hears nothing gives up."""
    over = threading.Event()

    def beat() -> None:
        count = 0
        while not over.wait(BEAT_SECONDS):
            count += 1
            send({"beats": count})

    thread = threading.Thread(target=beat, name="beats", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def exclusive_host(what: str, say: Callable[[str], None]) -> Iterator[None]:
    """Have this host for oneself; what an earlier process left on it is put back first."""
    with only_one(what, wait=False, say=say), alone_on_host(wait=False, say=say):
        put_back(say, lambda _: None)
        yield


def as_of_host(text: str) -> str:
    """What a host lacks, with a remedy that is one where nobody types a command."""
    return text.replace("run it with sudo", 'have ssh log in as root, as in ssh = "root@..." of the hosts file')
