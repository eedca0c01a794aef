"""The command line in a process of its own, forked from one that has imported everything: a command starts at once.

A process that starts by itself imports for half a second, and tests run some thousand commands. What is to be seen, or
killed, as users start it is started so: ``start_dbdyno``, ``DBDYNO``.
"""

import atexit
import functools
import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

REQUEST_BYTES_MAX = 1 << 20


def run(argv, environment, timeout, cwd=None):
    """Run the command line to its end, as ``subprocess.run(capture_output=True, text=True)`` would."""
    readers, writers = zip(*(os.pipe() for _ in range(3)), strict=True)
    request = {"argv": ["dbdyno", *argv], "environment": environment, "cwd": str(cwd or Path.cwd())}
    socket.send_fds(_loader(), [json.dumps(request).encode()], writers)
    for writer in writers:
        os.close(writer)
    with ThreadPoolExecutor(2) as pool, os.fdopen(readers[2]) as status:
        output, errors = (pool.submit(_read, reader) for reader in readers[:2])
        pid = int(status.readline())
        try:
            texts = output.result(timeout), errors.result(timeout)
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired(request["argv"], timeout) from None
        return subprocess.CompletedProcess(request["argv"], int(status.readline()), *texts)


def _read(reader):
    with os.fdopen(reader) as file:
        return file.read()


@functools.cache
def _loader():
    """Start what forks the commands of this process and ends with it; returns the socket that it listens to."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    # Without the folder of this file, whose modules would hide others.
    command = [sys.executable, "-P", __file__, str(theirs.fileno())]
    # Nor does it belong to the test that happens to start it.
    environment = {name: value for name, value in os.environ.items() if name != "DBDYNO_STATE_DIR"}
    process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, env=environment)
    theirs.close()
    atexit.register(process.wait)
    atexit.register(ours.close)
    return ours


def serve(listening):
    """Fork a command for each request, until whoever sends them has ended."""
    import dbdyno

    for module in pkgutil.walk_packages(dbdyno.__path__, "dbdyno."):
        importlib.import_module(module.name)
    gc.freeze()  # so that collectors leave the pages alone that all commands share
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        data, descriptors, _, _ = socket.recv_fds(listening, REQUEST_BYTES_MAX, 3)
        if not data:
            return
        if os.fork() == 0:
            listening.close()
            _answer(json.loads(data), *descriptors)
            return
        for descriptor in descriptors:
            os.close(descriptor)


def _answer(request, output, errors, status):
    """Run one command in a child, and write its process ID and its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if pid := os.fork():
        for descriptor in (output, errors):
            os.close(descriptor)
        os.write(status, f"{pid}\n".encode())
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.write(status, f"{code}\n".encode())
        os._exit(0)
    os.close(status)
    for descriptor, standard in ((output, 1), (errors, 2)):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w")
    sys.stderr = sys.__stderr__ = os.fdopen(2, "w", buffering=1, errors="backslashreplace")
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["cwd"])
    sys.argv = request["argv"]
    from dbdyno.cli.main import main

    try:
        main()
    except SystemExit as ended:
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        # An interpreter that clears up after seven hundred modules takes as long as the command.
        os._exit(int(ended.code or 0))


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
