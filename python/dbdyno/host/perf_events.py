"""Events that the kernel or the processor counts of a thread and all that it starts: perf_event_open(2).

Without any right to trace: an event is counted, and nothing is recorded. Many virtual machines have no counters.
"""

import ctypes
import errno
import os
import platform
import struct
import threading

_CALLS = {"x86_64": 298, "aarch64": 241, "ppc64le": 319, "s390x": 331, "riscv64": 241}
_ATTRIBUTES = struct.Struct("=IIQQQQQ")  # type, size, config, sample_period, sample_type, read_format, flags
_ATTRIBUTES_BYTES = 112  # PERF_ATTR_SIZE_VER5
_TIMES = 1 | 2  # PERF_FORMAT_TOTAL_TIME_ENABLED, PERF_FORMAT_TOTAL_TIME_RUNNING
_INHERIT, _EXCLUDE_HYPERVISOR = 1 << 1, 1 << 6
_CLOSE_ON_EXEC = 1 << 3
_READING = struct.Struct("=QQQ")  # value, time enabled, time running
HARDWARE, SOFTWARE = 0, 1
Event = tuple[int, int]  # type and number, by linux/perf_event.h
OF_PROCESSOR: dict[str, Event] = {
    "instructions": (HARDWARE, 1),
    "cycles": (HARDWARE, 0),
    "cache_misses": (HARDWARE, 3),
    "branch_misses": (HARDWARE, 5),
}


def open_event(event: Event, thread: int) -> int:
    """Return a file that counts the event in this thread and all that it will start, user and kernel, beginning now.

    Raises ``OSError`` where it can't be counted, or not by this process.
    """
    call = _CALLS.get(platform.machine())
    if call is None:
        raise OSError(errno.ENOSYS, f"the number of perf_event_open on {platform.machine()} is not known")
    kind, number = event
    fields = _ATTRIBUTES.pack(kind, _ATTRIBUTES_BYTES, number, 0, 0, _TIMES, _INHERIT | _EXCLUDE_HYPERVISOR)
    attributes = ctypes.create_string_buffer(fields, _ATTRIBUTES_BYTES)
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long
    opened = int(syscall(call, attributes, thread, -1, -1, _CLOSE_ON_EXEC))
    if opened < 0:
        raise OSError(ctypes.get_errno(), f"perf_event_open: {os.strerror(ctypes.get_errno())}")
    return opened


def read_event(file: int) -> bytes:
    """Return an event's reading as the kernel gives it. Raises ``OSError``."""
    return os.read(file, _READING.size)


def count_in(reading: bytes) -> float:
    """Return how many there were.

    A processor counts few events at a time; where there are more, each is counted for a part of the time and scaled to
    the whole, as ``perf stat`` does (tools/perf/util/counts.h).
    """
    value, enabled, running = _READING.unpack(reading)
    return float(value * enabled / running) if running else 0.0


def why_no_counters(events: dict[str, Event] | None = None) -> tuple[str, str]:
    """Return why this process can't read the processor's counters, and what to do; two empty texts where it can."""
    for event in (OF_PROCESSOR if events is None else events).values():
        try:
            os.close(open_event(event, threading.get_native_id()))
        except OSError as error:
            if error.errno in {errno.EACCES, errno.EPERM}:
                return (
                    "the kernel lets this user count nothing",
                    "sysctl kernel.perf_event_paranoid=1, or run it with sudo",
                )
            return (
                f"this host's processor, or what virtualises it, offers no counters ({error.strerror})",
                "use a host, or a virtual machine, whose performance counters are exposed (QEMU: -cpu host,pmu=on)",
            )
    return "", ""
