"""``python -m dbdyno.hosts.agent``: dbdyno's end on a host. Questions come on standard input, and with its end it ends.

Secrets come that way, too: a command line is read by every user of a host.

While a study runs over hosts, empty lines come as beats. Without one for a while, or without Ray, the agent ends too: a
network that was cut brings no end of the input. What was started here is then ended by the guard.
"""

import json
import os
import select
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dbdyno.errors import DbdynoError, HostError
from dbdyno.hosts import node
from dbdyno.hosts.clock import answered, asked
from dbdyno.hosts.guard import holds, put_back
from dbdyno.hosts.installer import MAGIC
from dbdyno.hosts.look import facts
from dbdyno.hosts.node import lacking_for_ray
from dbdyno.hosts.tls import look_at_tls
from dbdyno.hosts.worker_side import inputs_folder, parts_folder
from dbdyno.model.wording import count
from dbdyno.system.state import state_folder

_INPUT, _OUTPUT = 0, 1
_LOOK_SECONDS, _SILENT_LOOKS = 2.5, 4  # without a beat, which comes each second; a host that is stopped counts for one


class Agent:
    """Answers, one question after the other."""

    def __init__(self) -> None:
        self._lines = os.fdopen(os.dup(_INPUT), "rb")
        self._to = os.dup(_OUTPUT)
        os.dup2(2, _OUTPUT)  # what any library prints must not get in between
        self._beaten = False
        self._vital: dict[int, str] = {}  # a pidfd of each process that must not end -> what it is
        self._guard: subprocess.Popen[bytes] | None = None

    def run(self) -> None:
        """Answer until there are no more questions."""
        self._tell({"agent": os.getpid()})
        while line := self._line():
            if not line.strip():
                self._beaten = True
                self._tell({})  # only whether it is answered counts
                continue
            question = json.loads(line)
            try:
                answer = getattr(self, f"do_{question.pop('do')}")(**question)
            except (DbdynoError, OSError) as error:
                answer = {"error": str(error)}
            self._tell(answer)

    def _line(self) -> bytes:
        """The next line; none at the end. Questions come one at a time, so nothing is left in the buffer."""
        looks = _SILENT_LOOKS if self._beaten else 1
        for _ in range(looks):
            ready, _, _ = select.select([_INPUT, *self._vital], [], [], _LOOK_SECONDS if self._beaten else None)
            for ended in set(ready) & set(self._vital):
                self._tell({"error": f"{self._vital[ended]} has ended"})
                return b""
            if ready:
                return self._lines.readline()
        return b""

    def _tell(self, answer: dict[str, Any]) -> None:
        self._write(MAGIC + json.dumps(answer).encode() + b"\n")

    def _write(self, content: bytes) -> None:
        while content:
            content = content[os.write(self._to, content) :]

    def do_facts(self, ray_folder: str, first_port: int = 0, address: str = "") -> dict[str, Any]:
        """What this host is, whence ssh came and where it arrived, the Ray that runs here, and what one would lack.

        With the first port of one that is to be started also Ray's TLS; ``address`` is where ssh arrived if not given.
        """
        words = os.environ.get("SSH_CONNECTION", "").split()
        ray = self._ray()
        asked = first_port and ray is None
        ssh_to = words[2] if words else ""
        return {
            **facts(state_folder(), Path(ray_folder)),
            "ssh_from": words[0] if words else "",
            "ssh_to": ssh_to,
            "ray": ray,
            "lacking": lacking_for_ray(Path(ray_folder), node.ports_of(first_port)) if asked else [],
            **({"tls": asdict(look_at_tls(os.environ, address or ssh_to))} if first_port else {}),
        }

    def _ray(self) -> dict[str, Any] | None:
        found = node.running()
        return asdict(found) if found else None

    def do_echoes(self, count: int) -> dict[str, Any]:
        """Answer so many echoes, then ask for as many."""
        self._write(b"ready\n")
        answered(self._lines.readline, self._write, count)
        found = asked(self._lines.readline, self._write, count)
        return {"echoes": [[one.monotonic, one.realtime] for one in found]}

    def do_watch(self, head: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002  (asked by name)
        """End as soon as Ray does, with its head where that is to be here."""
        for pid, what in node.vital().items():
            with suppress(ProcessLookupError):
                self._vital[os.pidfd_open(pid)] = what
        if len(self._vital) < 1 + head:
            raise HostError("Ray has ended; dbdyno hosts up starts it again")
        node.hold_agents()
        return {"watched": sorted(self._vital.values()), "ray": self._ray()}

    def do_guard(self) -> dict[str, Any]:
        """Have this host put back once the agent is gone, and say by what its work is known."""
        self._guard = subprocess.Popen(
            [sys.executable, "-m", "dbdyno.hosts.guard"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # else it would hold the connection open
            start_new_session=True,
        )
        return self._from_guard()

    def do_release(self) -> dict[str, Any]:
        """Put this host back now; what was undone."""
        if self._guard is None or self._guard.stdin is None:
            return {"undone": [], "whole": True}
        self._guard.stdin.close()
        try:
            return self._from_guard()
        finally:
            self._guard.wait()
            self._guard = None

    def _from_guard(self) -> dict[str, Any]:
        assert self._guard is not None and self._guard.stdout is not None  # noqa: S101, PT018  (a pipe)
        if not (line := self._guard.stdout.readline()):
            raise HostError("its guard has ended; dbdyno restore --hosts puts back what was started here")
        return dict(json.loads(line))

    def do_restore(self, token: str = "") -> dict[str, Any]:
        """Put back what killed processes have left; whether the work of that token is over, with all it changed."""
        undone, left = list[str](), list[str]()
        whole = put_back(undone.append, left.append)
        return {"undone": undone, "left_alone": left, "whole": whole, "over": not holds(token)}

    def do_start(self, fields: dict[str, Any], token: str) -> dict[str, Any]:
        """Start Ray."""
        started = node.start(node.Node(**fields), token)
        return {"started": started, "ray": self._ray()}

    def do_stop(self) -> dict[str, Any]:
        """Put back what was started here."""
        said, whole = node.stop()
        parts = sum(1 for _ in parts_folder().iterdir()) if parts_folder().is_dir() else 0
        for folder, what in (
            (inputs_folder(), "files removed that were sent for simulations"),
            (parts_folder(), f"{count(parts, 'part')} removed of studies that were not ended" if parts else ""),
        ):
            if folder.is_dir():
                shutil.rmtree(folder)  # what can't be removed is said as the error
                said += [what] if what else []
        return {"undone": said, "whole": whole}


if __name__ == "__main__":
    state_folder().mkdir(parents=True, exist_ok=True)
    try:
        Agent().run()
    except BrokenPipeError:
        sys.stderr.close()
