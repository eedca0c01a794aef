"""Processors that do not halt while a trial runs. ``dbdyno-probe awake`` keeps them so, and ends with dbdyno."""

import json
import os
import select
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from dbdyno.errors import HostError
from dbdyno.host.awake import Means, means_here
from dbdyno.stack.layer import StackContext
from dbdyno.stack.tools import own_binary
from dbdyno.stack.undo.log import Journal
from dbdyno.stack.undo.undos import TOKEN_VARIABLE, EndProcesses, RemoveCgroup
from dbdyno.study.cpus import cpu_list
from dbdyno.system.child import child, decoded
from dbdyno.system.state import new_token

ANSWER_SECONDS = 30.0  # pollers on every processor of a large and busy host


@dataclass(frozen=True)
class Awake:
    """All processors that this process may use, whichever the study gives to server and client."""

    means: Means | None = None  # the best that this host has, if not given
    name: str = "host"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """Begins below all other layers, as what they measure of themselves depends on it."""
        cpus = frozenset(os.sched_getaffinity(0))
        found = self.means or means_here(cpus)
        if not found.by:
            raise HostError(f"host.awake: {found.why}; {found.remedy}")
        token = new_token()
        command = [own_binary("dbdyno-probe"), "awake", "--by", found.by, "--cpus", cpu_list(cpus)]
        command += ["--parent", str(os.getpid())]
        with ExitStack() as ending:
            if found.group:
                group = ending.enter_context(_yielding_group(below.journal, found.group / f"dbdyno-{token}"))
                command += ["--cgroup", str(group)]
            ending.enter_context(below.journal.undoing(EndProcesses(token, "what keeps processors awake")))
            process = ending.enter_context(
                child(command, env={**os.environ, TOKEN_VARIABLE: token}, stdin=subprocess.PIPE)
            )
            assert process.stdin is not None  # noqa: S101  (it is a pipe; its end ends the program)
            ending.enter_context(process.stdin)
            took = _heard(process)
            observed = {"awake": f"by {'the kernel' if took == 'kernel' else took}", "cpus": cpu_list(cpus)}
            yield below.raised(self.name, observed, pollers=process.pid if took == "pollers" else None)


@contextmanager
def _yielding_group(journal: Journal, group: Path) -> Iterator[Path]:
    """A control group that yields to all others as a whole."""
    with journal.undoing(RemoveCgroup(str(group))):
        try:
            group.mkdir()
            (group / "cpu.idle").write_text("1", encoding="ascii")
        except OSError as error:
            raise HostError(f"host.awake: {group}: {error.strerror}; leave host.awake out") from None
        yield group


def _heard(process: "subprocess.Popen[bytes]") -> str:
    """What keeps them awake, once it does. Raises ``HostError``."""
    assert process.stdout is not None  # noqa: S101
    assert process.stderr is not None  # noqa: S101
    ready, _, _ = select.select([process.stdout], [], [], ANSWER_SECONDS)
    line = process.stdout.readline() if ready else b""
    if line:
        return str(json.loads(line)["awake"])
    said = decoded(process.stderr.read()).strip() if ready else f"no answer for {ANSWER_SECONDS:g} s"
    raise HostError(f"host.awake: {said.removeprefix('dbdyno-probe: ')}; leave host.awake out")
