"""A MariaDB that a test runs by itself, as if it were somebody's own: with a password, over a socket and TCP."""

import os
import random
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path

from dbdyno.servers.mysql.connection import connect
from dbdyno.servers.mysql.own import install_data
from dbdyno.servers.mysql.server import await_ready
from dbdyno.servers.sources.installation import find_server
from dbdyno.servers.user import own_folder, unprivileged

PASSWORD = "tell-nobody#7"
USER, DATABASE = "bench", "lent"


def free_port():
    """A port that nothing listens at; not one of those that the kernel gives to whoever asks for any."""
    while True:
        with socket.socket() as tried, suppress(OSError):
            tried.bind(("127.0.0.1", random.SystemRandom().randrange(10_000, 32_000)))
            return tried.getsockname()[1]


class ExternalServer:
    """One server with its data; it may be killed and started again."""

    def __init__(self, folder, *options):
        self.folder, self.options, self.process = folder, options, None
        self.installation = find_server("mariadb")
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
        own_folder(folder)
        install_data(self.installation, folder / "data", environment, folder / "install.log", {})
        self.port = free_port()
        self.start()
        self.ask(f"CREATE DATABASE {DATABASE}")
        self.ask(f"CREATE USER {USER} IDENTIFIED BY '{PASSWORD}'")
        self.ask(f"GRANT ALL ON {DATABASE}.* TO {USER} WITH GRANT OPTION")
        self.ask(f"GRANT SUPER, PROCESS, CREATE USER ON *.* TO {USER}")

    @property
    def socket(self):
        return self.folder / "s.sock"

    def url(self, *, by="tcp", more=""):
        if by == "socket":
            return f"mysql://{USER}@/{DATABASE}?socket={self.socket}{more}"
        return f"mysql://{USER}@127.0.0.1:{self.port}/{DATABASE}{more}"

    def start(self):
        argv = [f"--datadir={self.folder}/data", f"--socket={self.socket}", f"--port={self.port}"]
        argv += ["--bind-address=127.0.0.1", f"--log-error={self.folder}/error.log", "--innodb-buffer-pool-size=32M"]
        argv = unprivileged(self.installation.command(*argv, *self.options))
        self.process = subprocess.Popen(argv, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        await_ready(self.process, self.socket, self.folder / "error.log")

    def ask(self, statement):
        """The rows that root is told."""
        with connect(self.socket) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall()

    def variable(self, name):
        return self.ask(f"SELECT @@GLOBAL.{name}")[0][0]

    def tables(self):
        return [row[0] for row in self.ask(f"SHOW TABLES FROM {DATABASE}")]

    @contextmanager
    def lock_of_another_run(self):
        """The lock of a run on another host."""
        with connect(self.socket) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT GET_LOCK('dbdyno {DATABASE}', 0)")
            yield

    def kill(self):
        self.process.kill()
        self.process.wait()


@contextmanager
def running_server(*options):
    """A server for as long as the context lasts."""
    folder = Path(tempfile.mkdtemp(prefix="ddrun", dir="/tmp"))
    folder.chmod(0o755)
    server = ExternalServer(folder, *options)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.terminate()
            server.process.wait()
        shutil.rmtree(folder)
