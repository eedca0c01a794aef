"""The layer of an external server: variables are set and read back, nothing is restarted."""

import os
import socket as socketlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.servers.contract import ExternalServer as External
from dbdyno.servers.contract import Server, Settings
from dbdyno.servers.products import DAEMONS, external_server
from dbdyno.stack.layer import Endpoint, StackContext
from dbdyno.stack.layers.server import check_taken, shown_settings
from dbdyno.stack.undo.external_server import SetGlobal
from dbdyno.study.section import Setting
from dbdyno.study.server_url import server_url
from dbdyno.system.listener import listener_pid


@dataclass(frozen=True)
class ExternalServer:
    """A server that dbdyno neither starts nor stops."""

    url: str
    option_file: str | None
    settings: Mapping[str, Setting]
    engine: str
    name: str = "server"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """The server with the study's settings, which are put back afterwards."""
        found = external_server(self.url, self.option_file)
        address = found.address
        with ExitStack() as putting_back:
            with found.session() as session:
                for name, value in self.settings.items():
                    before = session.variable(name)
                    undo = SetGlobal(self.url, self.option_file, name, before)
                    putting_back.enter_context(below.journal.undoing(undo))
                    session.set_variable(name, session.as_set(value, before))
                observed = self._observed(found.server, session.settings())
            pid = process_behind(address.socket) if address.socket else None
            observed |= {"local": is_local(self.url), "process": "unknown" if pid is None else "found"}
            yield below.raised(self.name, observed, endpoint=_endpoint(found, pid))

    def _observed(self, server: Server, found: Settings) -> dict[str, Any]:
        check_taken(server.taken(self.settings, found, ""))  # its error log is its owner's
        shown = shown_settings(found, {*self.settings, "hostname"})
        return {**shown, "tls": found.tls, "started_by": "others"}


def _endpoint(found: External, pid: int | None) -> Endpoint:
    """Other hosts reach it as this one does, but by a socket."""
    address = found.address
    return Endpoint(found.server, address, found_pid=pid, remote=None if address.socket else address)


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

    The kernel knows who called listen(2); that may be a proxy, or a process of another container.
    """
    try:
        pid = listener_pid(str(socket))
        name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
        Path(f"/proc/{pid}/io").read_bytes()  # others' counters are not for everybody
    except OSError:
        return None
    return pid if name in DAEMONS and pid != os.getpid() else None
