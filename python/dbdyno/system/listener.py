"""Which process listens on a Unix socket, by the kernel's word."""

import socket
import struct

_CREDENTIALS = struct.Struct("3i")  # struct ucred of unix(7): pid, uid, gid
_PATIENCE_SECONDS = 5.0


def listener_pid(address: str) -> int:
    """The process that called listen(2), which may be a proxy; an abstract ``address`` begins with NUL.

    Raises ``OSError`` where no process listens.
    """
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(_PATIENCE_SECONDS)
        client.connect(address)
        reported = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid: int = _CREDENTIALS.unpack(reported)[0]
    return pid
