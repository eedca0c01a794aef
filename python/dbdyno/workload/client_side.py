"""What runs ``dbdyno-load`` on a client host, for ``together``. Nothing but Python's own library.

All its files are in memory and have no name: whatever ends it, nothing is left. What it is to do, passwords included,
comes on standard input as JSON; what it has to say goes to standard output, a line of JSON each: that the load is ready
and where the time of the start is to be written, then what the load came to. In between it sleeps.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

RESULTS = ("json", "series", "hlog")  # as the flags are called


def in_memory(name: str, content: str = "") -> int:
    """Return a file of that content which is nowhere but in memory."""
    file = os.memfd_create(name)
    os.write(file, content.encode())
    return file


def path_of(file: int) -> str:
    """What a child that inherits it calls it."""
    return f"/proc/self/fd/{file}"


def text_in(file: int) -> str:
    """All that is in a file."""
    return os.pread(file, os.fstat(file).st_size, 0).decode(errors="replace")


def offer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Run the load that is asked for: ``argv``, ``environment``, and ``files``, flag -> content of the file it names.

    Returns exit code, what was said of a failure, and the text of each file of results.
    """
    inputs = {flag: in_memory(flag, content) for flag, content in request["files"].items()}
    results = {flag: in_memory(flag) for flag in RESULTS}
    start, messages = in_memory("start"), in_memory("said")
    flags = [f"--{flag}={path_of(file)}" for flag, file in {**inputs, **results, "start-file": start}.items()]
    # With this process the load ends too.
    argv = ["setpriv", "--pdeathsig", "KILL", *request["argv"], *flags]
    with subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=messages,
        env={**os.environ, **request["environment"]},
        pass_fds=[*inputs.values(), *results.values(), start],
    ) as load:
        assert load.stdout is not None  # noqa: S101  (it is a pipe)
        for line in load.stdout:
            if line.startswith(b"ready "):
                send({"ready_ns": int(line.split()[1]), "start": f"/proc/{os.getpid()}/fd/{start}"})
    return {
        "code": load.returncode,
        "said": text_in(messages),
        **{flag: text_in(file) for flag, file in results.items()},
    }


def send(event: Mapping[str, Any]) -> None:
    """Say one thing."""
    line = f"{json.dumps(event)}\n".encode()
    while line:
        line = line[os.write(1, line) :]


if __name__ == "__main__":
    send(offer(json.load(sys.stdin)))
