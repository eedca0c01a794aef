"""Where the server runs, read back: processors, priority and I/O class of every thread, allocator and NUMA memory.

Also the processors of the host that are kept awake meanwhile.
"""

import json
import os
import select
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.errors import HostError, TrialError
from dbdyno.host.allocators import SYSTEM, allocator_of, install_remedy, library_of, memory_policy_of
from dbdyno.host.processor import Means, means_here
from dbdyno.stack.layer import StackContext
from dbdyno.stack.layers.host_settings import ONE_NODE, nodes
from dbdyno.stack.tools import needed, own_binary, run_tool
from dbdyno.stack.undo.actions import TOKEN_VARIABLE, EndProcesses, RemoveCgroup
from dbdyno.stack.undo_log import Journal
from dbdyno.store.records import NO_EFFECT
from dbdyno.study.units import cpu_list, cpu_numbers
from dbdyno.system.child import child, decoded
from dbdyno.system.state import new_token

ATTEMPTS = 5


@dataclass(frozen=True)
class Placement:
    """What the server is started under; it counts its processors when it starts."""

    cpus: str | None = None
    ionice: str | None = None  # "best-effort:0"
    nice: int | None = None
    allocator: str | None = None  # "jemalloc"
    numa: str | None = None  # "bind:0"

    def preloading(self, argv: list[str]) -> list[str]:
        """The command line that runs ``argv`` with its allocator, and nothing around it. Raises ``HostError``."""
        if self.allocator in {None, SYSTEM}:
            return argv
        library = library_of(str(self.allocator))
        if library is None:
            raise HostError(
                f"server.allocator: {self.allocator} is not installed; {install_remedy(str(self.allocator))}"
            )
        return ["env", f"LD_PRELOAD={library}", *argv]

    def around(self, argv: list[str]) -> list[str]:
        """The command line that runs ``argv`` there; its threads inherit all of it."""
        if self.numa:
            argv = [needed("numactl", "numactl"), _numactl_flag(self.numa), "--", *argv]
        if self.nice is not None:  # nice(1) adds to the priority that dbdyno itself has
            argv = ["nice", "-n", str(self.nice - os.getpriority(os.PRIO_PROCESS, 0)), *argv]
        if self.ionice:
            name, _, level = self.ionice.partition(":")
            argv = ["ionice", "--class", name, *(["--classdata", level] if level else []), "--", *argv]
        if self.cpus:
            argv = ["taskset", "--cpu-list", self.cpus, *argv]
        return argv

    def observed(self, pid: int) -> dict[str, Any]:
        """What a process has of each that was set. Raises ``TrialError`` where it, or a thread of it, has another."""
        placement: dict[str, Any] = {}
        if self.cpus:
            placement["cpus"] = _require_agreement(
                "server_cpus",
                cpu_list(cpu_numbers(self.cpus)),
                _value_by_thread(pid, lambda thread: cpu_list(os.sched_getaffinity(thread))),
            )
        if self.ionice:
            placement["ionice"] = _require_agreement("server.ionice", self.ionice, _classes_of(pid))
        if self.nice is not None:
            placement["nice"] = _require_agreement(
                "server.nice",
                str(self.nice),
                _value_by_thread(pid, lambda thread: str(os.getpriority(os.PRIO_PROCESS, thread))),
            )
        if self.allocator:
            placement["allocator"] = _allocator_readback(self.allocator, pid)
        if self.numa:
            placement["numa"] = _policy_readback(self.numa, pid)
            if nodes() == 1:
                placement[NO_EFFECT] = {"numa": ONE_NODE}
        return placement


def _allocator_readback(setting: str, pid: int) -> str:
    """The allocator with its version: ``"jemalloc 5.3.0"``. Raises ``TrialError``."""
    try:
        name, version = allocator_of(pid)
    except OSError as error:
        raise TrialError(f"server.allocator: /proc/{pid}/maps: {error.strerror}") from None
    if name != setting:
        raise TrialError(f"server.allocator: asked for {setting}, the server has {name} {version} mapped")
    return f"{name} {version}"


_NUMACTL = {
    "interleave": "--interleave=all",
    "local": "--localalloc",
    "bind": "--membind={}",
    "prefer": "--preferred={}",
}


def _numactl_flag(policy: str) -> str:
    name, _, node = policy.partition(":")
    return _NUMACTL[name].format(node)


def _policy_readback(setting: str, pid: int) -> str:
    """The policy in the kernel's words. Raises ``TrialError`` where it is another."""
    policy = memory_policy_of(pid)
    if setting not in {policy, policy.partition(":")[0]}:
        raise TrialError(f"server.numa: asked for {setting}, the kernel has {policy} for the server")
    return policy


def _value_by_thread(pid: int, read: Callable[[int], str]) -> dict[str, str]:
    values = {}
    for thread in _threads(pid):
        with suppress(ProcessLookupError):  # a thread may end at any moment
            values[thread] = read(int(thread))
    return values


def _require_agreement(field: str, setting: str, threads: dict[str, str]) -> str:
    for thread, value in threads.items():
        if value != setting:
            raise TrialError(f"{field}: asked for {setting}, thread {thread} of the server has {value}")
    return setting


def _threads(pid: int) -> list[str]:
    return sorted(entry.name for entry in Path(f"/proc/{pid}/task").iterdir())


def _classes_of(pid: int) -> dict[str, str]:
    """Of each thread: ``best-effort:4``, ``idle``. Raises ``TrialError``."""
    for attempt in range(1, ATTEMPTS + 1):
        threads = _threads(pid)
        try:
            lines = run_tool(["ionice", "--pid", *threads]).splitlines()
        except TrialError:  # a thread may end at any moment
            if attempt == ATTEMPTS:
                raise
            continue
        parts = [line.partition(": prio ") for line in lines]
        classes = [name if name in {"idle", "none"} else f"{name}:{level}" for name, _, level in parts]
        return dict(zip(threads, classes, strict=True))
    raise AssertionError


@contextmanager
def pinned(cpus: str | None) -> Iterator[dict[str, str]]:
    """Keep this thread, and the programs it starts meanwhile, on some processors; what was read back is yielded."""
    if cpus is None:
        yield {}
        return
    before, processors = os.sched_getaffinity(0), cpu_numbers(cpus)
    try:
        os.sched_setaffinity(0, processors)
    except OSError as error:
        raise HostError(f"client_cpus: {cpus}: {error.strerror}; this host has {cpu_list(before)}") from None
    try:
        affinity = os.sched_getaffinity(0)
        if affinity != processors:
            raise TrialError(f"client_cpus: asked for {cpu_list(processors)}, the kernel took {cpu_list(affinity)}")
        yield {"cpus": cpu_list(affinity)}
    finally:
        os.sched_setaffinity(0, before)


# Processors that do not halt while a trial runs. ``dbdyno-probe awake`` keeps them so, and ends with dbdyno.


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
        means = self.means or means_here(cpus)
        if not means.by:
            raise HostError(f"host.awake: {means.why}; {means.remedy}")
        token = new_token()
        command = [own_binary("dbdyno-probe"), "awake", "--by", means.by, "--cpus", cpu_list(cpus)]
        command += ["--parent", str(os.getpid())]
        with ExitStack() as ending:
            if means.group:
                group = ending.enter_context(_yielding_group(below.journal, means.group / f"dbdyno-{token}"))
                command += ["--cgroup", str(group)]
            ending.enter_context(below.journal.undoing(EndProcesses(token, "what keeps processors awake")))
            process = ending.enter_context(
                child(command, env={**os.environ, TOKEN_VARIABLE: token}, stdin=subprocess.PIPE)
            )
            assert process.stdin is not None  # noqa: S101  (it is a pipe; its end ends the program)
            ending.enter_context(process.stdin)
            means_name = _await_answer(process)
            observed = {"awake": f"by {'the kernel' if means_name == 'kernel' else means_name}", "cpus": cpu_list(cpus)}
            yield below.raised(self.name, observed, pollers=process.pid if means_name == "pollers" else None)


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


def _await_answer(process: "subprocess.Popen[bytes]") -> str:
    """What keeps them awake, once it does. Raises ``HostError``."""
    assert process.stdout is not None  # noqa: S101
    assert process.stderr is not None  # noqa: S101
    ready, _, _ = select.select([process.stdout], [], [], ANSWER_SECONDS)
    line = process.stdout.readline() if ready else b""
    if line:
        return str(json.loads(line)["awake"])
    message = decoded(process.stderr.read()).strip() if ready else f"no answer for {ANSWER_SECONDS:g} s"
    raise HostError(f"host.awake: {message.removeprefix('dbdyno-probe: ')}; leave host.awake out")
