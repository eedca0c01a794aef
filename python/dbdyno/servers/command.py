"""The command line of a server of our own: private data, private socket, no TCP unless the study sets a port."""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from dbdyno.servers.installation import Installation
from dbdyno.servers.user import unprivileged
from dbdyno.study.section import Setting

_SETTING_REFUSED = re.compile(
    r"(unknown (?:variable|option) '[^']*'|ambiguous option '[^']*'.*|Error while setting value .*)"
)


def options(  # noqa: PLR0913, PLR0917  (what a server is told)
    installation: Installation, data: Path, socket: Path, log: Path, settings: Mapping[str, Setting], engine: str
) -> list[str]:
    """The server's command line."""
    # Ours come last, where they win. A server that starts removes what it takes for its own old temporary tables, so
    # none may share the folder; and temporary tables belong on the device that is measured.
    ours = [f"--datadir={data}", f"--socket={socket}", f"--tmpdir={data}", f"--pid-file={data}/server.pid"]
    ours += [f"--log-error={log}", "--skip-name-resolve", *_closed(installation)]
    ours.append("--bind-address=127.0.0.1" if "port" in settings else "--skip-networking")
    return installation.command(*_loading(installation, engine), *setting_options(settings), *ours)


def setting_options(settings: Mapping[str, Setting]) -> list[str]:
    """Settings as options."""
    return [_option(name, value) for name, value in settings.items()]


def _option(name: str, value: Setting) -> str:
    if name == "log_bin" and isinstance(value, bool):  # as an option it takes a name, and OFF would be one
        return "--log-bin=binlog" if value else "--skip-log-bin"
    shown = ("ON" if value else "OFF") if isinstance(value, bool) else str(value)
    return f"--{name.replace('_', '-')}={shown}"


def _loading(installation: Installation, engine: str) -> list[str]:
    """The module of an engine that is one; first, so that the server knows the module's settings."""
    module = installation.module_of(engine)
    return [f"--plugin-load-add={module}"] if module else []


def _closed(installation: Installation) -> list[str]:
    """Doors that only some servers have, shut: MySQL's second protocol, and files read or written for a client."""
    if installation.product == "mysql" and installation.release >= (8,):
        return ["--mysqlx=OFF", "--secure-file-priv=NULL"]
    return []


def refused_settings(installation: Installation, settings: Mapping[str, Setting], engine: str) -> list[str]:
    """What the server says against its settings, without starting it: it reads them all before it prints its help.

    MySQL's help forgives what it does not know; it has an option of its own for this.
    """
    validates = installation.product == "mysql" and installation.release >= (8, 0, 16)
    asking = ["--validate-config"] if validates else ["--verbose", "--help"]
    given = [*_loading(installation, engine), *setting_options(settings), *_closed(installation)]
    argv = installation.command(*given, "--datadir=/nonexistent", *asking)
    try:
        done = subprocess.run(
            unprivileged(argv),
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
