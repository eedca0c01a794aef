"""Calls made by a Dask cluster that exists: see ``dask_agent``, which alone talks to it."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from dbdyno.errors import UserError
from dbdyno.hosts.connect import Connected, SshHosts
from dbdyno.hosts.connections import Connections
from dbdyno.hosts.frames import Cores
from dbdyno.hosts.inventory import Inventory, InventoryCluster
from dbdyno.hosts.ssh import Channel
from dbdyno.servers.user import unprivileged
from dbdyno.system.files import TEXT_LIMIT_BYTES, read_regular

NAME = "dask"
_JOIN_SECONDS = 360.0
# Dask's own names for the files of certificates in the environment, and what they are for.
_FILES = {
    "tls_ca_file": "DASK_DISTRIBUTED__COMM__TLS__CA_FILE",
    "tls_client_cert": "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT",
    "tls_client_key": "DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY",
}


@contextmanager
def connected_to_dask(address: str, environment: Mapping[str, str] = os.environ) -> Iterator[Connected]:
    """Be connected to the cluster whose scheduler listens at an address; leaving the context ends all calls.

    Raises ``UserError`` where Dask is not installed here, or the address or a certificate is none; ``HostError`` where
    no cluster answers.
    """
    if find_spec("distributed") is None:
        raise UserError("--dask needs Dask, which is not installed here: pip install 'dbdyno[dask]'")
    address, tls = _checked(address, environment)
    with ExitStack() as stack:
        argv = unprivileged([sys.executable, "-m", "dbdyno.hosts.dask_agent"])
        channel = stack.enter_context(Channel(NAME, argv, {"HOME": "/nonexistent", "SSH_AUTH_SOCK": ""}))
        channel.begin_frames().ask({"do": "join", "address": address, "tls": tls}, Cores, _JOIN_SECONDS)
        connections = Connections({NAME: channel})
        stack.callback(connections.close)
        yield Connected(
            SshHosts(connections, [NAME], {}), Inventory(Path(address), InventoryCluster(), {}), connections
        )


def _checked(address: str, environment: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The address with its scheme, and the texts of the certificates, none for TCP alone. Raises ``UserError``."""
    url = address if "://" in address else f"tls://{address}"
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in {"tls", "tcp"} and parts.hostname and parts.port and not parts.path and not parts.query
    except ValueError:
        is_one = False
    if not is_one:
        raise UserError(f"--dask {address[:100]!r}: is not the address of a scheduler, such as tls://10.0.0.1:8786")
    if parts.scheme == "tcp":
        return url, {}
    tls = {}
    for what, name in _FILES.items():
        if not environment.get(name):
            names = ", ".join(_FILES.values())
            raise UserError(
                f"--dask {url}: {name} is not set; TLS needs {names}, each the path of a PEM file; "
                "write tcp:// for a cluster without TLS"
            )
        try:
            tls[what] = read_regular(Path(environment[name]), TEXT_LIMIT_BYTES).decode("ascii")
        except (OSError, ValueError) as error:
            raise UserError(f"{environment[name]} ({name}): {getattr(error, 'strerror', None) or error}") from None
    return url, tls
