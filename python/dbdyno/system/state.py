"""Where dbdyno keeps what must outlive a process: undo journals, and scratch folders for mounts and sockets."""

import os
import secrets
from pathlib import Path

from dbdyno.errors import HostError

# An AF_UNIX address holds 108 bytes with its final NUL (unix(7)); "/server.sock" is the longest name used below.
_SOCKET_PATH_MAX = 107
_LONGEST_NAME = "/xxxxxxxxxxxx/server/server.sock"
OWN_FOLDER = "set DBDYNO_STATE_DIR to a folder of your own"


def state_folder() -> Path:
    """``$DBDYNO_STATE_DIR``, else ``/var/lib/dbdyno`` for root, else the user's XDG state folder.

    Raises ``HostError`` where the user has no home.
    """
    folder = os.environ.get("DBDYNO_STATE_DIR")
    if folder:
        return Path(folder).resolve()
    if os.geteuid() == 0:
        return Path("/var/lib/dbdyno").resolve()
    try:
        base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state"
    except RuntimeError:
        raise HostError(f"this user has no home folder; {OWN_FOLDER}") from None
    return (Path(base) / "dbdyno").resolve()


def existing(folder: Path) -> Path:
    """The folder, or the nearest above it that is there already."""
    return next(path for path in (folder, *folder.parents) if path.exists())


def state_folder_is_given() -> bool:
    """Whether the environment names the state folder."""
    return bool(os.environ.get("DBDYNO_STATE_DIR"))


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


def check_state_folder(folder: Path) -> None:
    """Raise ``HostError`` where others could write to the state folder: its undo logs are obeyed with our rights."""
    status = folder.stat()
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise HostError(
            f"the state folder {folder} must be yours and writable by no one else: it says what is done to this host; "
            "set DBDYNO_STATE_DIR to a folder of its own"
        )


def make_state_folder() -> Path:
    """The state folder, made if need be. Raises ``HostError`` where it can't be, or others could write to it."""
    folder = state_folder()
    try:
        if not folder.exists():
            folder.mkdir(parents=True)
            folder.chmod(0o711)
    except PermissionError as error:
        raise HostError(f"the state folder {folder} can't be made: {error.strerror}; {OWN_FOLDER}") from None
    check_state_folder(folder)
    return folder


def make_private(folder: Path) -> None:
    """Make a folder below the state folder that no other user can pass, in one that they can. Raises ``HostError``."""
    make_traversable(folder.parent)
    folder.mkdir(mode=0o700)


def make_traversable(folder: Path) -> None:
    """Make a folder below the state folder that other users can pass through: servers run as another user.

    Raises ``HostError`` where a folder that is not ours to change keeps them out.
    """
    state = make_state_folder()
    for part in (*(path for path in reversed(folder.parents) if state in path.parents), folder):
        if not part.exists():
            part.mkdir()
            part.chmod(0o711)
    for above in (state, *state.parents) if os.geteuid() == 0 else ():
        if not above.stat().st_mode & 0o001:
            raise HostError(
                f"the server runs as an ordinary user, whom {above} does not let through to {state}; "
                "set DBDYNO_STATE_DIR to a folder that all may pass, such as /var/lib/dbdyno"
            )


def parts_folder() -> Path:
    """The folder of this host's part of each study that runs over hosts, until the machine that began it has it all.

    ``dbdyno hosts down`` removes what studies that were not gone on with have left in it.
    """
    return state_folder() / "fleet"
