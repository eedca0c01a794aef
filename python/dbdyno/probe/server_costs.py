"""What a server's work costs beside CPU time and bytes: context switches, and what the processor counts of it."""

import errno
import os
import resource
import socket
import struct
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from dbdyno.host.perf_events import OF_PROCESSOR, Event, count_in, open_event, read_event
from dbdyno.probe.sampler import ProbeSource

INTERVAL_NS = 250_000_000  # a reading may go through all threads of the server

# Context switches: of one process, all its threads, those that have ended too where the kernel tells of them.
#
# The kernel adds them up itself for a process that may ask by taskstats (Documentation/accounting/taskstats.rst; needs
# CAP_NET_ADMIN, and a kernel with CONFIG_TASKSTATS). Else they are read from each thread's status file (proc(5)): what
# a thread did between the last reading and its end is lost then, and what lived between two readings is not seen.


class ServerSwitchesSource(ProbeSource):
    """Context switches of one process: voluntary, where a thread waits, and involuntary, where its time is up.

    Raises ``OSError`` where there is none or it is not for us to see.
    """

    name = "server_switches"

    def __init__(self, pid: int, *, by_taskstats: bool = True) -> None:
        self._pid = pid
        self._taskstats = _Taskstats.open() if by_taskstats else None
        self._living: dict[int, tuple[int, int]] = {}
        self._ended = (0, 0)
        try:
            self.read()
        except OSError:
            self.close()
            raise

    def read(self) -> tuple[int, ...]:
        """Voluntary and involuntary switches so far, and CPU ns where taskstats tell. Raises ``OSError`` at its end."""
        return self._taskstats.used_by_process(self._pid) if self._taskstats else self._sum_threads()

    def counters(self, raw: tuple[int, ...]) -> dict[str, float]:
        """The same by name, CPU in seconds."""
        voluntary, involuntary, *cpu_ns = raw
        counts = {"voluntary": float(voluntary), "involuntary": float(involuntary)}
        return {**counts, "cpu_seconds": cpu_ns[0] / 1e9} if cpu_ns else counts

    def interval(self, before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
        """Switches and CPU seconds since its start, and switches per second."""
        both = ("voluntary", "involuntary")
        return {**after, "cswch/s": sum(after[name] - before[name] for name in both) / seconds}

    def close(self) -> None:
        """End the conversation with the kernel."""
        if self._taskstats:
            self._taskstats.close()

    def _sum_threads(self) -> tuple[int, int]:
        living = {}
        for thread in threads_of(self._pid):
            with suppress(OSError):  # it has just ended
                living[thread] = switches_in(Path(f"/proc/{self._pid}/task/{thread}/status").read_bytes())
        if not living:
            raise ProcessLookupError(errno.ESRCH, "the process has ended")
        for thread in self._living.keys() - living.keys():
            self._ended = _added(self._ended, self._living[thread])
        self._living, whole = living, self._ended
        for switches in living.values():
            whole = _added(whole, switches)
        return whole


def threads_of(pid: int) -> list[int]:
    """Return the numbers of a process's threads. Raises ``OSError`` of one that has ended."""
    return [int(name) for name in os.listdir(f"/proc/{pid}/task")]  # noqa: PTH208  (a tenth of the cost)


def switches_in(status: bytes) -> tuple[int, int]:
    """Return a thread's voluntary and involuntary switches, the last two lines of its status file.

    Raises ``OSError`` where it does not hold them, as of a thread that has ended.
    """
    _, found, rest = status.rpartition(b"\nvoluntary_ctxt_switches:")
    words = rest.split()
    if not found or len(words) < 3:  # noqa: PLR2004  (a number, the other's name, its number)
        raise ProcessLookupError(errno.ESRCH, "no context switches in the thread's status")
    return int(words[0]), int(words[2])


def _added(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return one[0] + other[0], one[1] + other[1]


# linux/netlink.h, linux/genetlink.h, linux/taskstats.h.
_HEADER, _FAMILY_HEADER, _ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=BBH"), struct.Struct("=HH")
_NETLINK_GENERIC, _NLM_F_REQUEST, _NLMSG_ERROR = 16, 1, 2
_GENL_ID_CTRL, _CTRL_CMD_GETFAMILY, _CTRL_ATTR_FAMILY_ID, _CTRL_ATTR_FAMILY_NAME = 16, 3, 1, 2
_CMD_GET, _ATTR_PID, _ATTR_TGID = 1, 1, 2  # of taskstats
_TYPE_STATS, _TYPE_AGGR_PID, _TYPE_AGGR_TGID = 3, 4, 5
# In struct taskstats: CPU ns by the scheduler's own clock (cpu_run_virtual_total); nvcsw and nivcsw, since version 3.
_CPU, _CPU_AT, _SWITCHES, _SWITCHES_AT = struct.Struct("=Q"), 72, struct.Struct("=QQ"), 272
_REPLY_MAX, _PATIENCE_SECONDS = 65536, 2.0


class _Taskstats:
    """The kernel's own sums over the threads of a process."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_GENERIC)
        try:
            self._socket.settimeout(_PATIENCE_SECONDS)
            self._socket.bind((0, 0))
            self._sent = 0
            name = _attribute(_CTRL_ATTR_FAMILY_NAME, b"TASKSTATS\0")
            family = _attributes(self._ask(_GENL_ID_CTRL, _CTRL_CMD_GETFAMILY, name)).get(_CTRL_ATTR_FAMILY_ID, b"")
            self._family = int.from_bytes(family[:2], sys.byteorder)  # 0 is answered by an error
        except OSError:
            self._socket.close()
            raise

    @classmethod
    def open(cls) -> "_Taskstats | None":
        """Return it, where this process may ask and the kernel's figures are where they are looked for."""
        try:
            asking = cls()
        except OSError:
            return None
        with suppress(OSError):
            own = resource.getrusage(resource.RUSAGE_THREAD)
            told = asking._used(_ATTR_PID, _TYPE_AGGR_PID, threading.get_native_id())
            again = resource.getrusage(resource.RUSAGE_THREAD)
            if own.ru_nvcsw <= told[0] <= again.ru_nvcsw and own.ru_nivcsw <= told[1] <= again.ru_nivcsw:
                return asking
        asking.close()
        return None

    def used_by_process(self, pid: int) -> tuple[int, int, int]:
        """Return voluntary and involuntary switches and CPU ns of all its threads, ended ones too, or ``OSError``."""
        return self._used(_ATTR_TGID, _TYPE_AGGR_TGID, pid)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _used(self, of: int, answered: int, number: int) -> tuple[int, int, int]:
        reply = _attributes(self._ask(self._family, _CMD_GET, _attribute(of, struct.pack("=I", number))))
        stats = _attributes(reply.get(answered, b"")).get(_TYPE_STATS, b"")
        if len(stats) < _SWITCHES_AT + _SWITCHES.size:
            raise OSError(errno.ENODATA, "the kernel's taskstats hold no context switches")
        voluntary, involuntary = _SWITCHES.unpack_from(stats, _SWITCHES_AT)
        return int(voluntary), int(involuntary), int(_CPU.unpack_from(stats, _CPU_AT)[0])

    def _ask(self, family: int, command: int, attributes: bytes) -> bytes:
        """Return the attributes of the reply. Raises ``OSError``."""
        self._sent += 1
        body = _FAMILY_HEADER.pack(command, 1, 0) + attributes
        self._socket.send(_HEADER.pack(_HEADER.size + len(body), family, _NLM_F_REQUEST, self._sent, 0) + body)
        while True:
            reply = self._socket.recv(_REPLY_MAX)
            length, kind, _, sequence, _ = _HEADER.unpack_from(reply)
            if sequence != self._sent:
                continue  # late, of a question that was given up
            if kind == _NLMSG_ERROR:
                number = -int.from_bytes(reply[_HEADER.size : _HEADER.size + 4], sys.byteorder, signed=True)
                raise OSError(number, os.strerror(number))
            return reply[_HEADER.size + _FAMILY_HEADER.size : length]


def _attribute(kind: int, value: bytes) -> bytes:
    length = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(length, kind) + value + bytes(-length % 4)


def _attributes(text: bytes) -> dict[int, bytes]:
    """Return attributes by their kinds; what is cut off is left out."""
    found, at = {}, 0
    while at + _ATTRIBUTE.size <= len(text):
        length, kind = _ATTRIBUTE.unpack_from(text, at)
        if length < _ATTRIBUTE.size:
            break
        found[kind] = text[at + _ATTRIBUTE.size : at + length]
        at += length + -length % 4
    return found


# What the processor counts of a process, by ``host/perf_events.py``.
#
# An event is opened for each thread that is there, and inherited by what these start: so the threads of connections
# are counted from their first instruction, and those that have ended still count. What a thread starts in the very
# moment in which its own event is opened may be missed; the load has not begun then.


class ServerCountersSource(ProbeSource):
    """Instructions, cycles, cache and branch misses of one process since now. Raises ``OSError`` where none count."""

    name = "server_counters"

    def __init__(self, pid: int, events: Mapping[str, Event] = OF_PROCESSOR) -> None:
        self._files: dict[str, list[int]] = {}
        try:
            for name, event in events.items():
                self._files[name] = []
                for thread in threads_of(pid):
                    with suppress(ProcessLookupError):  # it has just ended
                        self._files[name].append(open_event(event, thread))
        except OSError:
            self.close()
            raise

    def read(self) -> dict[str, list[bytes]]:
        """The reading of each thread's event."""
        return {name: [read_event(file) for file in files] for name, files in self._files.items()}

    def counters(self, raw: dict[str, list[bytes]]) -> dict[str, float]:
        """How many of each since the source was made."""
        return {name: sum(map(count_in, readings)) for name, readings in raw.items()}

    def close(self) -> None:
        """Let go of the counters."""
        for files in self._files.values():
            while files:
                os.close(files.pop())
