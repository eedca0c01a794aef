"""Starting and stopping a MariaDB of our own: private data, private socket, unprivileged user, no TCP."""

import os
import pwd
import re
import signal
import socket as socketlib
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pymysql

from dbdyno.errors import TrialError
from dbdyno.servers.installation import Installation
from dbdyno.study.schema import Setting

START_SECONDS, STOP_SECONDS, INSTALL_SECONDS = 120.0, 60.0, 180.0

# What the log says, and what it means to somebody who reads one line.
_CAUSES = (
    (r"unknown (?:variable|option) '([^']+)'", "the server does not know the setting {0}"),
    (r"Bind on TCP/IP port", "the TCP port is taken by another server; choose another port or leave it out"),
    (r"Bind on unix socket|Can't start server : Bind|another server running", "the socket is taken by another server"),
    (r"No space left on device|Disk is full|errno: 28", "the disk is full"),
    (r"Cannot allocate memory|Out of memory", "the server found too little memory; look at stack.memory"),
    (r"\[ERROR\] (.+)", "{0}"),
    (r"(?:FATAL ERROR|ERROR|Error|mkdir|chmod): (.+)", "{0}"),  # of the install script
)


def server_user() -> tuple[str, str] | None:
    """User and group that servers run as when dbdyno is root; ``None`` when it is not, and they run as the caller."""
    if os.geteuid() != 0:
        return None
    for name in ("mysql", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return name, str(entry.pw_gid)
    raise TrialError("neither the user mysql nor nobody exists; a database server must not run as root")


def unprivileged(argv: list[str], cgroup: Path | None = None) -> list[str]:
    """The command line that runs ``argv`` as the server's user, inside a control group."""
    user = server_user()
    if user:
        argv = ["setpriv", f"--reuid={user[0]}", f"--regid={user[1]}", "--clear-groups", "--", *argv]
    if cgroup:
        argv = ["/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', str(cgroup / "cgroup.procs"), *argv]
    return argv


def own_folder(folder: Path) -> None:
    """Make a folder that the server's user owns."""
    folder.mkdir(exist_ok=True)
    user = server_user()
    if user:
        os.chown(folder, pwd.getpwnam(user[0]).pw_uid, int(user[1]))
    folder.chmod(0o700)


def install_data(installation: Installation, data: Path, environment: Mapping[str, str], log: Path) -> None:
    """Create the system tables in an empty folder. Raises ``TrialError`` with the installer's words."""
    own_folder(data)
    argv = [str(installation.installer), "--no-defaults", f"--basedir={installation.basedir}", f"--datadir={data}"]
    argv += ["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"]
    with log.open("ab") as out:
        process = subprocess.Popen(
            unprivileged(argv),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=dict(environment),
            cwd="/",
            start_new_session=True,
        )
        try:
            code = process.wait(INSTALL_SECONDS)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if code != 0:
        raise TrialError(f"{installation.installer.name} failed: {cause_in(log)}")


def options(
    installation: Installation, data: Path, socket: Path, log: Path, settings: Mapping[str, Setting]
) -> list[str]:
    """The server's command line."""
    argv = [str(installation.daemon), "--no-defaults", f"--basedir={installation.basedir}", f"--datadir={data}"]
    argv += [f"--socket={socket}", f"--pid-file={data}/server.pid", f"--log-error={log}", "--skip-name-resolve"]
    if "port" not in settings:
        argv.append("--skip-networking")
    for name, value in settings.items():
        shown = ("ON" if value else "OFF") if isinstance(value, bool) else str(value)
        argv.append(f"--{name.replace('_', '-')}={shown}")
    return argv


def connect(socket: Path, timeout_seconds: float = 10) -> "pymysql.Connection[pymysql.cursors.Cursor]":
    """A control connection as root over the private socket. Raises ``pymysql.Error``."""
    return pymysql.connect(
        unix_socket=str(socket), user="root", connect_timeout=round(timeout_seconds), read_timeout=60, autocommit=True
    )


def await_ready(process: "subprocess.Popen[bytes]", socket: Path, log: Path) -> None:
    """Wait until the server answers. Raises ``TrialError`` with the cause when it exits or takes too long."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        if process.poll() is not None:
            raise TrialError(f"the server ended while starting ({_exit_words(process.returncode)}): {cause_in(log)}")
        try:
            _knock(socket)
            connect(socket, 5).close()
        except (OSError, pymysql.Error):
            if time.monotonic() > deadline:
                raise TrialError(f"the server does not answer after {START_SECONDS:g} s: {cause_in(log)}") from None
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
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def cause_in(log: Path) -> str:
    """Why a server would not run, in one sentence, from its error log."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "it left no error log"
    for pattern, words in _CAUSES:
        match = re.search(pattern, text)
        if match:
            said = words.format(*match.groups())
            return "".join(char if char.isprintable() else "?" for char in said)[:300]
    last = [line for line in text.splitlines() if line.strip()][-1:]
    return f"its log ends with: {last[0].strip()[:300]}" if last else "its error log is empty"


def _exit_words(code: int) -> str:
    return f"killed by signal {signal.Signals(-code).name}" if code < 0 else f"exit {code}"
