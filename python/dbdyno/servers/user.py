"""The user that servers run as, and how root handles what that user may have put in its place."""

import os
import pwd
import stat
from pathlib import Path

from dbdyno.errors import TrialError

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
