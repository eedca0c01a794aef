"""Locks on single bytes of an open file, held by the open file description (fcntl_locking(2)).

The kernel ends such a lock when the last descriptor of that description is closed, however its process ends; a process
that inherits the descriptor holds it too. It is seen in every PID namespace, and asking about it takes nothing.
"""

import errno
import fcntl
import struct

_FLOCK = "hhqqi4x"  # struct flock: type, whence, start, length, pid


def _lock(kind: int, byte: int) -> bytes:
    return struct.pack(_FLOCK, kind, 0, byte, 1, 0)


def take(handle: int, byte: int, *, wait: bool = False) -> bool:
    """Take the lock on a byte of a file that is open for writing; whether it was had. Raises ``OSError``."""
    try:
        fcntl.fcntl(handle, fcntl.F_OFD_SETLKW if wait else fcntl.F_OFD_SETLK, _lock(fcntl.F_WRLCK, byte))
    except OSError as error:
        if error.errno in {errno.EAGAIN, errno.EACCES}:
            return False
        raise
    return True


def is_taken(handle: int, byte: int) -> bool:
    """Whether another open file description holds the lock on a byte. Raises ``OSError``."""
    answer = fcntl.fcntl(handle, fcntl.F_OFD_GETLK, _lock(fcntl.F_WRLCK, byte))
    return bool(struct.unpack(_FLOCK, answer)[0] != fcntl.F_UNLCK)
