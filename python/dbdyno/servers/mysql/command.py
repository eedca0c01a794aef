"""The command line of a server of our own: private data, private socket, TCP only where a study asks for it."""

from collections.abc import Mapping
from pathlib import Path

from dbdyno.servers.contract import Listening
from dbdyno.servers.sources.installation import Installation
from dbdyno.study.section import Setting


def options(  # noqa: PLR0913, PLR0917  (what a server is started with)
    installation: Installation,
    data: Path,
    socket: Path,
    log: Path,
    settings: Mapping[str, Setting],
    engine: str,
    listening: Listening | None = None,
) -> list[str]:
    """The server's command line."""
    # Ours come last, where they win. A server that starts removes what it takes for its own old temporary tables, so
    # none may share the folder; and temporary tables belong on the device that is measured.
    ours = [f"--datadir={data}", f"--socket={socket}", f"--tmpdir={data}", f"--pid-file={data}/server.pid"]
    ours += [f"--log-error={log}", "--skip-name-resolve", *_closed(installation)]
    ours += _network(settings, listening)
    return installation.command(*_loading(installation, engine), *setting_options(settings), *ours)


def _network(settings: Mapping[str, Setting], listening: Listening | None) -> list[str]:
    """Where it can be reached but by its socket."""
    if listening:
        return [f"--bind-address={listening.host}", f"--port={listening.port}"]
    return ["--bind-address=127.0.0.1" if "port" in settings else "--skip-networking"]


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
