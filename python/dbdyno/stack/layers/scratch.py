"""The ground of a stack: a scratch folder of its own, for mount points and sockets."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from dbdyno.errors import HostError
from dbdyno.host.storage import mounts
from dbdyno.servers.user import server_user
from dbdyno.stack.layer import StackContext
from dbdyno.stack.undo.actions import RemoveTree
from dbdyno.stack.undo_log import Journal
from dbdyno.system.interrupt import shielded
from dbdyno.system.state import make_private, new_token, scratch_path

# Of sched.h and sys/mount.h, whose calls Python has from 3.12 on, or not at all.
_CLONE_FS, _CLONE_NEWNS = 0x200, 0x20000
_MS_REC, _MS_SLAVE = 0x4000, 0x80000
_MNT_DETACH, _UMOUNT_NOFOLLOW = 2, 8


@contextmanager
def scratch(journal: Journal) -> Iterator[StackContext]:
    """An empty context; its folder goes away on exit.

    What is mounted in it may be another user's making, so only root and the server's user pass it. What is known to be
    of others is also mounted where nobody else sees it (``unseen_mounts``).
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


@contextmanager
def unseen_mounts() -> Iterator[None]:
    """A mount namespace of its own for what is mounted, and started, in the context; by the main thread of root.

    Its mounts end with its last process, so a killed dbdyno leaves none. A loop device over a mounted file must be
    attached before: it holds the mount that the file lies on, and ``dbdyno restore`` finds it by the path that the file
    has outside. Raises ``HostError``.
    """
    with ExitStack() as handles:
        namespace, root, here = (handles.enter_context(_open(place)) for place in ("/proc/self/ns/mnt", "/", "."))
        try:
            _call("unshare", _CLONE_NEWNS)
            _keep_mounts_inside()
            yield
        finally:
            with shielded():
                _call("unshare", _CLONE_FS)  # threads that ended may still count as users of its folders
                _call("setns", namespace, _CLONE_NEWNS)  # which goes to the root of the namespace
                os.fchdir(root)
                os.chroot(".")
                os.fchdir(here)


def _keep_mounts_inside() -> None:
    """Make later mounts visible in this namespace only, and hold none of the disks of other runs.

    What others unmount outside is unmounted here as well, where their mounts are shared. Ours may be private, so those
    in scratch folders are taken out of this namespace at once: else a filesystem would be busy for its own run.
    """
    try:
        _call("mount", None, b"/", None, ctypes.c_ulong(_MS_REC | _MS_SLAVE), None)
    except HostError as error:
        raise HostError(
            f"{error}: the root folder is not a mount point, as in a chroot, so others would see what dbdyno mounts; "
            "outside the chroot, first bind its folder to itself: mount --bind FOLDER FOLDER"
        ) from None
    scratch_folders = scratch_path("any").parent
    for mount in reversed(mounts()):
        if scratch_folders in Path(mount.place).parents:
            _call("umount2", os.fsencode(mount.place), _MNT_DETACH | _UMOUNT_NOFOLLOW)


@contextmanager
def _open(place: str) -> Iterator[int]:
    handle = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield handle
    finally:
        os.close(handle)


def _call(name: str, *values: object) -> None:
    """Call a function of the C library that answers 0. Raises ``HostError``."""
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*values):
        raise HostError(f"{name}: {os.strerror(ctypes.get_errno())}")
