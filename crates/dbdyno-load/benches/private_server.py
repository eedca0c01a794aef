"""A private MariaDB for a benchmark: its socket, its CPU time, and what a client and it say to each other."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

READ_SIZE = 1 << 20


@dataclass(frozen=True)
class PrivateServer:
    """Where it is, and what it costs."""

    socket: str
    port: int
    pid: int

    def cpu_seconds(self) -> float:
        """CPU time of all its threads so far, those that have ended included."""
        process_clock = (~self.pid << 3) | 2  # as clock_getcpuclockid(3) makes it
        return time.clock_gettime(process_clock)

    def sql(self, text: str) -> None:
        """Runs statements."""
        command = ["mariadb", "--no-defaults", "-uroot", f"-S{self.socket}", "-e", text]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def free_port() -> int:
    """A TCP port that no process listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def running(max_connections: int) -> Iterator[PrivateServer]:
    """Starts one with default settings but for the log flush, so that no disk is in the figures."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="dbdyno-bench-", dir="/tmp"))
    folder.chmod(0o755)
    datadir, path, port = folder / "data", folder / "data" / "s", free_port()
    scratch = folder / "tmp"
    scratch.mkdir()
    scratch.chmod(0o777)
    common = ["--no-defaults", f"--datadir={datadir}", f"--tmpdir={scratch}"]
    if os.geteuid() == 0:
        common.append("--user=nobody")
    install = ["mariadb-install-db", *common, "--auth-root-authentication-method=normal", "--skip-test-db"]
    subprocess.run(install, check=True, stdout=subprocess.DEVNULL)
    own = [
        f"--socket={path}",
        f"--port={port}",
        "--bind-address=127.0.0.1",
        f"--max-connections={max_connections}",
        f"--table-open-cache={max_connections + 400}",
        "--innodb-flush-log-at-trx-commit=0",
        "--skip-log-bin",
    ]
    process = subprocess.Popen(["mariadbd", *common, *own], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        probe = ["mariadb", "--no-defaults", "-uroot", f"-S{path}", "-e", "SELECT 1"]
        for _ in range(600):
            if subprocess.run(probe, capture_output=True, check=False).returncode == 0:
                break
            if process.poll() is not None:
                sys.exit("the server ended before it was ready")
            time.sleep(0.1)
        yield PrivateServer(str(path), port, process.pid)
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


ASKS, ANSWERS = ">", "<"
Said = list[tuple[str, bytes]]


class Recorder:
    """Stands between a client and the server's socket and keeps what passes."""

    def __init__(self, server: str, own: str) -> None:
        self.server = server
        self.connections: list[Said] = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(own)
        self.listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            upstream = socket.socket(socket.AF_UNIX)
            upstream.connect(self.server)
            said: Said = []
            self.connections.append(said)
            for source, sink, way in ((client, upstream, ASKS), (upstream, client, ANSWERS)):
                threading.Thread(target=self._pass_on, args=(source, sink, said, way), daemon=True).start()

    @staticmethod
    def _pass_on(source: socket.socket, sink: socket.socket, said: Said, way: str) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(READ_SIZE):
                said.append((way, data))
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def last_exchange(self) -> tuple[bytes, bytes]:
        """The last request and its reply on the connection that said most."""
        said = max(self.connections, key=len)
        while said[-1][0] == ASKS:  # what ends the session, and has no reply
            said = said[:-1]
        reply = b""
        while said[-1][0] == ANSWERS:
            reply, said = said[-1][1] + reply, said[:-1]
        return said[-1][1], reply


def captured(server: PrivateServer, command: Sequence[str]) -> tuple[bytes, bytes]:
    """Last request and reply of a run of ``command``, in which SOCKET stands for the path to connect to."""
    with tempfile.TemporaryDirectory(prefix="dbdyno-bench-", dir="/tmp") as folder:
        path = f"{folder}/s"
        recorder = Recorder(server.socket, path)
        subprocess.run([part.replace("SOCKET", path) for part in command], check=True, stdout=subprocess.DEVNULL)
        recorder.listener.close()
    return recorder.last_exchange()
