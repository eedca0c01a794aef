"""What a request takes to reach an emulated disk's model, and its answer to get back: loop device, FUSE, wake-ups.

The disk answers so much before its model's time, as far as the model knows that time so early. Where the host lets
the disk read the trace point block_rq_issue, it sees when each request was handed to the loop device, and counts from
there. Elsewhere all requests count as late as the median read: measured with answers that are due after a millisecond,
for a processor that has gone to rest takes longer to wake than one that never did. Once for all disks of a process:
two estimates would make two drives differ by their error.
"""

import mmap
import os
import statistics
import time
from pathlib import Path

from dbdyno.stack.disk_client import DiskClient, Fault

ASKED_NS = 1_000_000
READS = 200
READ_BYTES = 4096
PATH_NS_MAX = 1_000_000  # of a host that is too busy to say; the disk itself refuses more than twice of it

_measured_ns: list[int] = []


def compensate(device: Path, client: DiskClient) -> None:
    """Have a disk make up for its path; ``device`` is a loop device over it, read alone, and it takes no requests.

    Raises ``TrialError`` if the disk refuses, ``OSError`` if it can't be read.
    """
    if client.follow(device):
        return
    if not _measured_ns:
        _measured_ns.append(path_ns(device, client))
    client.set_path(_measured_ns[0])


def path_ns(device: Path, client: DiskClient) -> int:
    """Median time that a read of 4 KiB takes beyond what is asked for, ns."""
    mode = client.stats()["mode"]
    client.set_path(0)
    client.set_mode("instant")
    client.add_fault(Fault("latency", target="read", extra_ns=ASKED_NS))
    try:
        taken_ns = statistics.median(read_ns(device, READS))
    finally:
        client.clear_faults()
        client.set_mode(mode)
        client.stats(reset=True)  # these reads are none of its users'
    return min(PATH_NS_MAX, max(0, round(taken_ns) - ASKED_NS))


def read_ns(device: Path, reads: int) -> list[int]:
    """Time of each of so many reads, one after the other, past the page cache."""
    handle = os.open(device, os.O_RDONLY | os.O_DIRECT)
    found = []
    try:
        with mmap.mmap(-1, READ_BYTES) as page:  # which is aligned as direct I/O wants it
            blocks = os.lseek(handle, 0, os.SEEK_END) // READ_BYTES
            for number in range(reads):
                offset = number * 7919 % blocks * READ_BYTES
                began_ns = time.perf_counter_ns()
                os.preadv(handle, [page], offset)
                found.append(time.perf_counter_ns() - began_ns)
    finally:
        os.close(handle)
    return found
