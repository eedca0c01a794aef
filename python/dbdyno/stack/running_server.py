"""The layer of a server that runs already: variables are set and read back, nothing is restarted."""

import os
import socket as socketlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.host.listener import listener_pid
from dbdyno.servers.login import address_of
from dbdyno.servers.running import Cursor, as_set, global_value, set_global, talking_to
from dbdyno.stack.layer import Endpoint, Stand
from dbdyno.stack.server import SHOWN, check_settings, engines_of
from dbdyno.stack.server_undo import SetGlobal
from dbdyno.study.section import Setting
from dbdyno.study.server_url import server_url

_DAEMONS = ("mariadbd", "mysqld")


@dataclass(frozen=True)
class RunningServer:
    """A server that dbdyno neither starts nor stops."""

    url: str
    option_file: str | None
    settings: Mapping[str, Setting]
    engine: str
    name: str = "server"

    @contextmanager
    def raised(self, below: Stand) -> Iterator[Stand]:
        """The server with the study's settings, which are put back afterwards."""
        address = address_of(self.url, self.option_file)
        with ExitStack() as putting_back:
            with talking_to(self.url, self.option_file) as cursor:
                for name, value in self.settings.items():
                    before = global_value(cursor, name)
                    undo = SetGlobal(self.url, self.option_file, name, before)
                    putting_back.enter_context(below.journal.undoing(undo))
                    set_global(cursor, name, as_set(value, before))
                observed = self._observed(cursor)
            pid = process_behind(address.socket) if address.socket else None
            observed |= {"local": is_local(self.url), "process": "unknown" if pid is None else "found"}
            yield below.raised(self.name, observed, endpoint=Endpoint(address, found_pid=pid))

    def _observed(self, cursor: Cursor) -> dict[str, Any]:
        cursor.execute("SHOW GLOBAL VARIABLES")
        variables = {str(name): str(value) for name, value in cursor.fetchall()}
        check_settings(self.settings, variables)
        cursor.execute("SHOW SESSION STATUS LIKE 'Ssl_version'")
        tls = cursor.fetchone()
        wanted = sorted({*SHOWN, *self.settings, "hostname"} & variables.keys())
        shown = {name: variables[name] for name in wanted}
        return {
            **shown,
            "engines": ", ".join(engines_of(cursor)),
            "tls": (tls and tls[1]) or "none",
            "started_by": "others",
        }


def is_local(url: str) -> bool:
    """Whether the server's address is one of this host's: then both ends have the same. Sends nothing."""
    named = server_url(url)
    if named.socket:
        return True
    try:
        for family, _, _, _, place in socketlib.getaddrinfo(named.host, named.port, type=socketlib.SOCK_STREAM):
            with socketlib.socket(family, socketlib.SOCK_DGRAM) as end:
                end.connect(place)
                if end.getsockname()[0] == end.getpeername()[0]:
                    return True
    except OSError:
        return False
    return False


def process_behind(socket: Path) -> int | None:
    """The process that listens on a socket, if it is a server that we may watch.

    The kernel tells who called listen(2); that may be a proxy, or a process of another container.
    """
    try:
        pid = listener_pid(str(socket))
        name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
        Path(f"/proc/{pid}/io").read_bytes()  # others' counters are not for everybody
    except OSError:
        return None
    return pid if name in _DAEMONS and pid != os.getpid() else None
