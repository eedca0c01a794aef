"""``python -m dbdyno.hosts.agent``: dbdyno's end on a host. Questions come on standard input, and with its end it ends.

Secrets come that way, too: a command line is read by every user of a host.
"""

import json
import os
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dbdyno.errors import DbdynoError
from dbdyno.hosts import node
from dbdyno.hosts.echoes import answered, asked
from dbdyno.hosts.facts import facts
from dbdyno.hosts.installer import MAGIC
from dbdyno.hosts.worker_side import inputs_folder
from dbdyno.system.state import state_folder

_INPUT, _OUTPUT = 0, 1


class Agent:
    """Answers, one question after the other."""

    def __init__(self) -> None:
        self._lines = os.fdopen(os.dup(_INPUT), "rb")
        self._to = os.dup(_OUTPUT)
        os.dup2(2, _OUTPUT)  # what any library prints must not get in between

    def run(self) -> None:
        """Answer until there are no more questions."""
        self._tell({"agent": os.getpid()})
        while line := self._lines.readline():
            if not line.strip():
                self._tell({})  # a beat: only whether it is answered counts
                continue
            question = json.loads(line)
            try:
                answer = getattr(self, f"do_{question.pop('do')}")(**question)
            except (DbdynoError, OSError) as error:
                answer = {"error": str(error)}
            self._tell(answer)

    def _tell(self, answer: dict[str, Any]) -> None:
        self._write(MAGIC + json.dumps(answer).encode() + b"\n")

    def _write(self, content: bytes) -> None:
        while content:
            content = content[os.write(self._to, content) :]

    def do_facts(self, ray_folder: str) -> dict[str, Any]:
        """What this host is, whence ssh came and where it arrived, and the Ray that runs here."""
        words = os.environ.get("SSH_CONNECTION", "").split()
        found = node.running()
        return {
            **facts(state_folder(), Path(ray_folder)),
            "ssh_from": words[0] if words else "",
            "ssh_to": words[2] if words else "",
            "ray": asdict(found) if found else None,
        }

    def do_echoes(self, count: int) -> dict[str, Any]:
        """Answer so many echoes, then ask for as many."""
        self._write(b"ready\n")
        answered(self._lines.readline, self._write, count)
        found = asked(self._lines.readline, self._write, count)
        return {"echoes": [[one.monotonic, one.realtime] for one in found]}

    def do_start(self, fields: dict[str, Any], token: str) -> dict[str, Any]:
        """Start Ray."""
        return {"started": node.start(node.Node(**fields), token)}

    def do_stop(self) -> dict[str, Any]:
        """Put back what was started here."""
        said, whole = node.stop()
        if inputs_folder().is_dir():
            shutil.rmtree(inputs_folder(), ignore_errors=True)
            said.append("files removed that were sent for simulations")
        return {"undone": said, "whole": whole}


if __name__ == "__main__":
    state_folder().mkdir(parents=True, exist_ok=True)
    try:
        Agent().run()
    except BrokenPipeError:
        sys.stderr.close()
