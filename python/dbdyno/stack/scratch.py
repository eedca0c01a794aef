"""The ground of a stack: a scratch folder of its own, for mount points and sockets."""

from collections.abc import Iterator
from contextlib import contextmanager

from dbdyno.stack.journal import Journal
from dbdyno.stack.layer import Stand
from dbdyno.stack.undo import RemoveTree
from dbdyno.state import make_traversable, new_token, scratch_path


@contextmanager
def scratch(journal: Journal) -> Iterator[Stand]:
    """An empty stand; its folder goes away on exit."""
    folder = scratch_path(new_token())
    with journal.undoing(RemoveTree(str(folder))):
        make_traversable(folder)
        yield Stand(journal, folder)
