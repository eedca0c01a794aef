"""A load that other hosts offer together: each with its share, an account of its own on the server, all merged."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dbdyno.errors import TrialError
from dbdyno.servers.contract import Address
from dbdyno.stack.layer import Endpoint, StackContext
from dbdyno.stack.layers.server import how_it_ended
from dbdyno.workload.generator import INTERVAL_MS, Generated
from dbdyno.workload.load import Load
from dbdyno.workload.merged import Part, client_figures, merged, part_of
from dbdyno.workload.time_limit import limit_seconds
from dbdyno.workload.together import Asked, Offered

USER = "dbdyno_load"
_FILES = ("json", "series", "hlog")


@dataclass(frozen=True)
class FromHosts:
    """The load of one treatment, from client hosts; its data are prepared and checked from this machine."""

    load: Generated[Any]
    offer: Callable[[Asked], Offered]  # has the hosts do it, as ``Together.offer``

    @property
    def tool(self) -> None:
        """No program but dbdyno's own."""

    def program(self) -> Path:
        """The load generator."""
        return self.load.program()

    def refused(self) -> str:
        """What the load generator has against the load."""
        return self.load.refused()

    def prepare(self, context: StackContext) -> None:
        """Make the data, from this machine. Raises ``TrialError``."""
        self.load.prepare(context)

    def check(self, context: StackContext) -> dict[str, str]:
        """What the tables are. Raises ``TrialError``."""
        return self.load.check(context)

    def run(self, context: StackContext, seed: int, folder: Path) -> Load:
        """Offer the load from all hosts; what each wrote goes to ``folder/clients/HOST``.

        Raises:
            TrialError: It failed on a host, or one was lost meanwhile.
            HostError: A host was lost before.

        """
        address, names = admitted(context.server, self.load.schema), self.load.section.clients_from
        shares = enumerate(names)
        each = {name: asked_of(self.load, address, seed, (number, len(names))) for number, name in shares}
        try:
            offered = self.offer(Asked(each, limit_seconds(self.load.section)))
        except TrialError as error:
            ended = how_it_ended(context.server)
            raise TrialError(f"{error}; {ended}" if ended else str(error)) from None
        parts = [_kept(name, offered.replies[name], folder) for name in names]
        load = merged(parts, offered.start_ns)
        load.result["client_hosts"] = client_figures(parts, offered.before, offered.after, offered.start_ns)
        return load


def asked_of(load: Generated[Any], address: Address, seed: int, share: tuple[int, int]) -> dict[str, Any]:
    """What ``client_side`` is asked for; ``share`` is the number of the host, from 0, and how many there are."""
    number, of = share
    files = {"ssl-ca": address.tls.ca, "ssl-cert": address.tls.cert, "ssl-key": address.tls.key}
    known = replace(address, tls=replace(address.tls, ca=None, cert=None, key=None))
    return {
        "argv": ["dbdyno-load", *load.run_argv(known, seed), f"--share={number + 1}/{of}"],
        "environment": {"LC_ALL": "C", **address.environment()},
        "files": {flag: Path(path).read_text(encoding="utf-8") for flag, path in files.items() if path},
    }


def admitted(endpoint: Endpoint, schema: str) -> Address:
    """How client hosts reach the server and log in; on one of dbdyno's own by an account that is made now.

    It goes with the trial's data. Raises ``TrialError``.
    """
    remote = endpoint.remote
    assert remote is not None  # noqa: S101  (a rule of the study format, and what raises the server)
    if endpoint.process is None:
        return remote
    password = secrets.token_urlsafe(32)
    endpoint.control.admit(USER, password, schema)
    return replace(remote, user=USER, password=password)


def _kept(name: str, reply: Mapping[str, Any], folder: Path) -> Part:
    """What a host came to; its files are kept as they are."""
    own = folder / "clients" / name
    own.mkdir(parents=True, exist_ok=True)
    for text, ending in zip(_FILES, ("load.json", "load.csv", "latency.hlog"), strict=True):
        (own / ending).write_text(reply[text], encoding="utf-8")
    return part_of(name, reply, INTERVAL_MS * 1_000_000)
