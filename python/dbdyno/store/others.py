"""Reading run folders that others may have made: one budget for a command, and a last word for what no check foresaw.

Each folder is bounded for itself (``trials``, ``series_files``, ``events``). A command that is given many of them must
not take many times as much.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

from dbdyno.errors import DbdynoError, UserError
from dbdyno.model.printable import printable, short
from dbdyno.store.parts import MIB

TRACEBACK = "DBDYNO_TRACEBACK"  # a variable of the environment: set, an unexpected error is shown whole
BYTES_OF_A_VALUE = 4  # about what our files take, packed; those of a bomb take a small part of it
FOLDERS_LISTED = 20  # as many times as much for a list of runs, which keeps nothing of a run that it has read


@dataclass
class Budget:
    """What is left of what all run folders of a command may hold together."""

    document_bytes: int = 160 * MIB  # of JSON, TOML and event logs
    document_values: int = 3 * 10**6  # all trials of the largest run, its events and its header
    series_values: int = 2 * 10**7  # and what is measured: a value for so many bytes of the files
    reading_seconds: float = 5.0  # of CPU time of the children that read series

    @classmethod
    def of_a_list(cls) -> "Budget":
        """Return that of a list of runs."""
        return cls(**{limit.name: FOLDERS_LISTED * getattr(cls, limit.name) for limit in fields(cls)})

    def take_document(self, path: Path, content: bytes, values: int) -> None:
        """Count a file of the run folder ``path``. Raises ``UserError`` where it is one too many."""
        self.document_bytes -= len(content)
        self.document_values -= values
        if min(self.document_bytes, self.document_values) < 0:
            raise _too_much(path)

    def take_series(self, path: Path, values: int, size_bytes: int) -> None:
        """Count a file of a series, of so many values and bytes. Raises ``UserError`` where it is one too many."""
        self.series_values += size_bytes // BYTES_OF_A_VALUE - values
        if self.series_values < 0:
            raise _too_much(path)

    def take_seconds(self, path: Path, seconds: float) -> None:
        """Count what a child took beside its due to read a folder's series. Raises ``UserError``: nothing is left."""
        self.reading_seconds -= max(0.0, seconds)
        if self.reading_seconds < 0:
            raise _too_much(path)


def _too_much(path: Path) -> UserError:
    return UserError(
        f"{path}: with it the run folders hold more than one command reads; name fewer of them, or leave it out"
    )


@contextmanager
def last_resort(*folders: Path) -> Iterator[None]:
    """Have an error that nobody foresaw be said of the folders whose content is worked on within.

    Those that are foreseen may name what a folder holds, and a notebook shows an error as it is: they are made fit
    to print. The others may be mistakes of dbdyno's own: ``DBDYNO_TRACEBACK=1`` shows where they were made. Raises
    ``UserError``.
    """
    try:
        yield
    except DbdynoError as error:
        error.args = (printable(str(error), keep="\n"),)
        raise
    except OSError:
        raise
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        names = " and ".join(map(str, folders))
        reason = short(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__, 200)
        raise UserError(
            f"{names}: no report can be made of what it holds ({reason}); it is damaged, or not of this dbdyno's "
            f"making. If it is, this is a mistake of dbdyno: please report what it says with {TRACEBACK}=1"
        ) from error
