"""dbdyno: a dynamometer for database servers and the storage they stand on."""

from os import PathLike
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dbdyno.notebook import OpenedRun

__version__ = "1.0.0"
__all__ = ["__version__", "open_run"]


def open_run(folder: str | PathLike[str]) -> "OpenedRun":
    """Return a run folder opened for a notebook; nothing is written.

    Raises ``UserError`` where it is no run folder, or a damaged one.
    """
    from dbdyno.notebook import OpenedRun  # numpy and the statistics: not for ``dbdyno --help``

    return OpenedRun(folder)
