"""A folder for a program that works on files of its own, such as fio: on the filesystem that is measured."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dbdyno.servers.user import own_folder
from dbdyno.stack.layer import StackContext

FILES = "files"


@dataclass(frozen=True)
class Files:
    """The folder, owned by the user that the program runs as; it goes away with what is below."""

    name: str = "files"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """The folder, with what was prepared in it."""
        assert below.directory is not None  # noqa: S101  (a filesystem or ``here`` is always below)
        files = below.directory / FILES
        own_folder(files)
        prepared = [path.stat().st_size for path in files.rglob("*") if path.is_file() and not path.is_symlink()]
        observed = {"prepared_files": len(prepared), "prepared_bytes": sum(prepared)}
        yield below.raised(self.name, observed, files=files)
