"""Where dbdyno keeps what must outlive a process: undo journals, and scratch folders for mounts and sockets."""

import os
import secrets
from pathlib import Path

from dbdyno.errors import HostError

# An AF_UNIX address holds 108 bytes with its final NUL (unix(7)); "/server.sock" is the longest name used below.
_SOCKET_PATH_MAX = 107
_LONGEST_NAME = "/xxxxxxxxxxxx/server/server.sock"


def state_folder() -> Path:
    """``$DBDYNO_STATE_DIR``, else ``/var/lib/dbdyno`` for root, else the user's XDG state folder."""
    given = os.environ.get("DBDYNO_STATE_DIR")
    if given:
        return Path(given).resolve()
    if os.geteuid() == 0:
        return Path("/var/lib/dbdyno")
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state"
    return Path(base) / "dbdyno"


def journal_folder() -> Path:
    """Where undo journals lie, one per process that changes the host."""
    return state_folder() / "journals"


def new_token() -> str:
    """A name for one raised thing, unique on this host."""
    return secrets.token_hex(6)


def scratch_path(token: str) -> Path:
    """The scratch folder of a token, not yet made. Raises ``HostError`` where a socket in it could have no address."""
    path = state_folder() / "scratch" / token
    if len(os.fsencode(path.parent)) + len(_LONGEST_NAME) > _SOCKET_PATH_MAX:
        raise HostError(
            f"the state folder {state_folder()} has too long a name for a Unix socket in it; "
            "set DBDYNO_STATE_DIR to a shorter path"
        )
    return path


def make_traversable(folder: Path) -> None:
    """Make a folder that other users can pass through but not list: servers run as another user.

    Raises ``HostError`` where a folder above the state folder keeps them out, which is not ours to change.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for above in state_folder().parents if os.geteuid() == 0 else ():
        if not above.stat().st_mode & 0o001:
            raise HostError(
                f"the server runs as an ordinary user, whom {above} does not let through to {state_folder()}; "
                "set DBDYNO_STATE_DIR to a folder that all may pass, such as /var/lib/dbdyno"
            )
    for part in (state_folder(), *(p for p in folder.parents if state_folder() in p.parents), folder):
        if part.stat().st_uid == os.geteuid():
            part.chmod(0o711)
