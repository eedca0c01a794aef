"""Starting and stopping a MariaDB of our own: private data, private socket, unprivileged user, no TCP."""

import os
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
from dbdyno.servers.user import own_folder, read_log, unprivileged
from dbdyno.study.section import Setting

_SETTING_REFUSED = re.compile(
    r"(unknown (?:variable|option) '[^']*'|ambiguous option '[^']*'.*|Error while setting value .*)"
)
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


def install_data(
    installation: Installation,
    data: Path,
    environment: Mapping[str, str],
    log: Path,
    settings: Mapping[str, Setting],
) -> None:
    """Create the system tables in an empty folder. Raises ``TrialError`` with the installer's words."""
    own_folder(data)
    argv = [str(installation.installer), "--no-defaults", f"--basedir={installation.basedir}", f"--datadir={data}"]
    argv += ["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve", f"--tmpdir={data}"]
    # Page size, log size and the like are settled when the data is created.
    argv += [_option(name, value) for name, value in settings.items() if name.startswith(("innodb_", "aria_"))]
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
    argv = [str(installation.daemon), "--no-defaults", *(_option(name, value) for name, value in settings.items())]
    # Ours come last, where they win.
    argv += [f"--basedir={installation.basedir}", f"--datadir={data}", f"--socket={socket}"]
    # A server that starts removes what it takes for its own old temporary tables, so none may share the folder; and
    # temporary tables belong on the device that is measured.
    argv += [f"--tmpdir={data}", f"--pid-file={data}/server.pid", f"--log-error={log}", "--skip-name-resolve"]
    return [*argv, "--bind-address=127.0.0.1" if "port" in settings else "--skip-networking"]


def _option(name: str, value: Setting) -> str:
    shown = ("ON" if value else "OFF") if isinstance(value, bool) else str(value)
    return f"--{name.replace('_', '-')}={shown}"


def refused_settings(installation: Installation, settings: Mapping[str, Setting]) -> list[str]:
    """What the server says against its settings, without starting it: it reads them all before it prints its help."""
    argv = [str(installation.daemon), "--no-defaults", *(_option(name, value) for name, value in settings.items())]
    try:
        done = subprocess.run(
            unprivileged([*argv, f"--basedir={installation.basedir}", "--datadir=/nonexistent", "--verbose", "--help"]),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=20,
            check=False,
            cwd="/",
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return []  # whatever is wrong, it is not the settings
    lines = done.stderr.decode(errors="replace").splitlines()
    found = [match[1] for line in lines if (match := _SETTING_REFUSED.search(line))]
    return ["".join(char if char.isprintable() else "?" for char in line)[:200] for line in dict.fromkeys(found)]


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
            raise TrialError(f"the server ended while starting ({exit_words(process.returncode)}): {cause_in(log)}")
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
            said = words.format(*match.groups())
            return "".join(char if char.isprintable() else "?" for char in said)[:300]
    last = [line for line in text.splitlines() if line.strip()][-1:]
    return f"its log ends with: {last[0].strip()[:300]}" if last else "its error log is empty"


def exit_words(code: int) -> str:
    """An exit code in words."""
    return f"killed by signal {signal.Signals(-code).name}" if code < 0 else f"exit {code}"
