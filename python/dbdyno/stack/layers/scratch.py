"""The ground of a stack: a scratch folder of its own, for mount points and sockets."""

from collections.abc import Iterator
from contextlib import contextmanager

from dbdyno.stack.layer import StackContext
from dbdyno.stack.undo.log import Journal
from dbdyno.stack.undo.undos import RemoveTree
from dbdyno.system.state import make_traversable, new_token, scratch_path


@contextmanager
def scratch(journal: Journal) -> Iterator[StackContext]:
    """An empty context; its folder goes away on exit."""
    folder = scratch_path(new_token())
    with journal.undoing(RemoveTree(str(folder))):
        make_traversable(folder)
        yield StackContext(journal, folder)
