"""The user that servers run as, how root handles its files, and what a server's program prints."""

import os
import pwd
import stat
import subprocess
import time
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import Literal

from dbdyno.errors import TrialError
from dbdyno.system.child import child

# Not mysql: on a host with a production server, that user may write the production data.
USER = "nobody"
LOG_BYTES_MAX = 1_000_000


def server_user() -> pwd.struct_passwd | None:
    """The user that servers run as when dbdyno is root; ``None`` when it is not, and they run as the caller."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam(USER)
    except KeyError:
        raise TrialError(f"the user {USER} does not exist; a database server must not run as root") from None


def unprivileged(argv: list[str], cgroup: Path | None = None) -> list[str]:
    """The command line that runs ``argv`` as the server's user, inside a control group."""
    user = server_user()
    if user:
        argv = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", "--", *argv]
    if cgroup:
        argv = ["/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', str(cgroup / "cgroup.procs"), *argv]
    return argv


def own_folder(folder: Path) -> None:
    """Make a folder that the server's user owns."""
    folder.mkdir(exist_ok=True)
    user = server_user()
    if user:
        os.chown(folder, user.pw_uid, user.pw_gid, follow_symlinks=False)
    folder.chmod(0o700)


def own_file(path: Path, text: str) -> None:
    """Write a new file in a folder of the server's user, which then owns it, too."""
    user = server_user()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
        if user:
            os.fchown(file.fileno(), user.pw_uid, user.pw_gid)
        file.write(text)


def read_log(path: Path, bytes_max: int = LOG_BYTES_MAX) -> bytes | None:
    """The end of a file that the server's user wrote; ``None`` where there is none, or something else in its place.

    The folder is that user's own, so a link could stand there to have root read what the user may not.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        user = server_user()
        owner = user.pw_uid if user else os.geteuid()
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1 or status.st_uid not in {owner, os.geteuid()}:
            return None
        file.seek(max(0, status.st_size - bytes_max))
        return file.read(bytes_max)


# A server's program asked for what it prints: never as root, and bounded in time and size.


_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
_PIECE_BYTES = 65536


def answer(argv: list[str], stream: Literal["stdout", "stderr", "both"], seconds: float, bytes_max: int) -> bytes:
    """What a program prints until it ends, has printed ``bytes_max``, or ``seconds`` are over: then it is killed.

    A study may name any program as its server's. Raises ``OSError`` where it can't be started.
    """
    out = subprocess.DEVNULL if stream == "stderr" else subprocess.PIPE
    err = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "both": subprocess.STDOUT}[stream]
    deadline, output = time.monotonic() + seconds, b""
    with child(unprivileged(argv), env=_ENVIRONMENT, stdout=out, stderr=err, cwd="/") as process:
        pipe = process.stderr if stream == "stderr" else process.stdout
        assert pipe is not None  # noqa: S101  (it was asked for)
        with DefaultSelector() as ready:
            ready.register(pipe, EVENT_READ)
            while len(output) < bytes_max and ready.select(max(0.0, deadline - time.monotonic())):
                piece = pipe.read1(_PIECE_BYTES)  # type: ignore[attr-defined]
                if not piece:
                    break
                output += piece
    return output
