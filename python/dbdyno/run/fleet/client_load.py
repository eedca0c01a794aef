"""A load that client hosts offer to a server on a host under test: asked for there, offered from here.

The host under test says what each client is to do, the password of this trial's account among it, on the standard
output that it has to us alone, which lies in memory there. What came of it is put there as a file.
"""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dbdyno.errors import HostError, TrialError
from dbdyno.run.fleet.message import HostsLoad
from dbdyno.workload.together import JointLoad, JointLoadRequest, Together

_LOOK_AGAIN_SECONDS = 0.1  # costs the measured host some 20 us a time
_ANSWER = "offered.json"


class ClientsLostError(HostError):
    """A host that the load comes from is lost."""


@dataclass(frozen=True)
class ClientsOffer:
    """The load as a host under test has it: ``send`` sends a message to who began the run."""

    folder: Path  # for what came of it
    send: Callable[[dict[str, Any]], None]

    def offer(self, request: JointLoadRequest) -> JointLoad:
        """As ``Together.offer``; whose host is lost is no matter of this host, which is then ended from there."""
        answer = self.folder / _ANSWER
        answer.unlink(missing_ok=True)
        self.send({"load": asdict(request), "answer": str(answer)})
        while not answer.exists():  # it comes whole or not at all
            time.sleep(_LOOK_AGAIN_SECONDS)
        document = json.loads(answer.read_text(encoding="utf-8"))
        answer.unlink()
        if "failed" in document:
            raise TrialError(document["failed"])
        return JointLoad.from_dict(document)


def offer_load(clients: Together, load: HostsLoad, patience_seconds: float) -> dict[str, Any]:
    """Have client hosts offer the load that a host under test asks for; what it is sent then.

    ``patience_seconds`` are waited to learn who is lost.

    Raises:
        ClientsLostError: A client host is.
        HostError: The host under test is, or the load was to end before its time.

    """
    request, connected = (
        JointLoadRequest({name: asdict(part) for name, part in load.each.items()}, load.limit_seconds),
        clients.connected,
    )
    try:
        return clients.offer(request).to_dict()
    except (TrialError, HostError) as error:
        known = {clients.server, *request.each}
        until = time.monotonic() + (patience_seconds if isinstance(error, HostError) else 0.0)
        while not known & connected.lost() and not clients.ended() and time.monotonic() < until:
            time.sleep(_LOOK_AGAIN_SECONDS)
        lost = connected.why_lost()
        if clients.ended() or clients.server in lost:
            raise HostError(str(error)) from None
        if gone := [f"client host {name} is lost: {lost[name]}" for name in request.each if name in lost]:
            raise ClientsLostError("; ".join(gone)) from None
        return {"failed": str(error)}
