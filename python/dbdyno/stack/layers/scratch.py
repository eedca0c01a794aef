"""The ground of a stack: a scratch folder of its own, for mount points and sockets."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dbdyno.servers.user import server_user
from dbdyno.stack.layer import StackContext
from dbdyno.stack.undo.log import Journal
from dbdyno.stack.undo.undos import RemoveTree
from dbdyno.system.state import make_private, new_token, scratch_path


@contextmanager
def scratch(journal: Journal) -> Iterator[StackContext]:
    """An empty context; its folder goes away on exit.

    What is mounted in it may be another user's making, so only root and the server's user pass it. A mount namespace
    would hide the mounts from all others, but the kernel would keep the device busy until the last process in it has
    ended, and ``dbdyno restore``, which starts outside of it, could not unmount what a killed dbdyno left.
    """
    folder = scratch_path(new_token())
    with journal.undoing(RemoveTree(str(folder))):
        make_private(folder)
        let_server_pass(folder)
        yield StackContext(journal, folder)


def let_server_pass(folder: Path) -> None:
    """Let the user that servers run as pass a folder that nobody else passes; where that is the caller, it can."""
    user = server_user()
    if user:
        os.chown(folder, -1, user.pw_gid)
        folder.chmod(0o710)
