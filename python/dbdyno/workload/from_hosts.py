"""A load that other hosts offer together: each with its share, an account of its own on the server, all merged."""

import json
import secrets
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from dbdyno.errors import TrialError
from dbdyno.model.printable import short
from dbdyno.servers.contract import Address
from dbdyno.stack.layer import Endpoint, StackContext
from dbdyno.stack.layers.server import how_it_ended
from dbdyno.workload.client_side import RESULTS
from dbdyno.workload.generator import INTERVAL_MS, SAID_MAX, Generated
from dbdyno.workload.load import FILES, LoadResult, read_load
from dbdyno.workload.time_limit import limit_seconds
from dbdyno.workload.together import JointLoad, JointLoadRequest

USER = "dbdyno_load"


@dataclass(frozen=True)
class FromHosts:
    """The load of one treatment, from client hosts; its data are prepared and checked from this machine."""

    load: Generated[Any]
    offer: Callable[[JointLoadRequest], JointLoad]  # has the hosts do it, as ``Together.offer``

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

    def run(self, context: StackContext, seed: int, folder: Path) -> LoadResult:
        """Offer the load from all hosts; what each wrote goes to ``folder/clients/HOST``.

        Raises:
            TrialError: It failed on a host, or one was lost meanwhile.
            HostError: A host was lost before.

        """
        address, names = admitted(context.server, self.load.schema), self.load.section.clients_from
        shares = enumerate(names)
        requests = {name: asked_of(self.load, address, seed, (number, len(names))) for number, name in shares}
        try:
            offered = self.offer(JointLoadRequest(requests, limit_seconds(self.load.section)))
        except TrialError as error:
            ended = how_it_ended(context.server)
            raise TrialError(f"{error}; {ended}" if ended else str(error)) from None
        return merged(self.program(), offered, names, folder)


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


def merged(program: Path, offered: JointLoad, names: Sequence[str], folder: Path) -> LoadResult:
    """One load of all hosts, whose files lie as those of a load from one; each host's lie in ``folder/clients/HOST``.

    Raises ``TrialError`` where the files of a host are not whole, or no interval is whole on all.
    """
    folders = [folder / "clients" / name for name in names]
    for own in folders:
        own.mkdir(parents=True, exist_ok=True)
        for text, file in zip(RESULTS, FILES, strict=True):
            (own / file).write_text(offered.replies[own.name][text], encoding="utf-8")
    clocks = folder / "clients" / "clocks.json"
    clocks.write_text(json.dumps({"before": asdict(offered.before), "after": asdict(offered.after)}), encoding="utf-8")
    flags = [f"--interval={INTERVAL_MS}ms", f"--start={offered.start_ns}", f"--clocks={clocks}", f"--into={folder}"]
    done = subprocess.run([program, "merge", *flags, *folders], capture_output=True, check=False)
    if done.returncode:
        message = done.stderr.decode(errors="replace").strip().removeprefix("dbdyno-load: ")
        raise TrialError(short(message, SAID_MAX) or f"dbdyno-load: exit {done.returncode}")
    return read_load(*(folder / file for file in FILES))
