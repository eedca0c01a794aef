"""Where runs go unless ``--into`` says: ``runs/NAME-DATE-TIME``."""

from datetime import datetime
from pathlib import Path

from dbdyno.errors import UserError

RUNS = Path("runs")


def new_folder(name: str) -> Path:
    """Return a folder that is not there yet, by the local clock."""
    base = f"{name}-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    tried = (RUNS / (base if number == 1 else f"{base}-{number}") for number in range(1, 1000))
    return next(path for path in tried if not (path.exists() or path.with_suffix(".toml").exists()))


def folder_for(into: Path | None, study: Path, *, resume: bool) -> Path:
    """Return the folder that was named, or a new one. Raises ``UserError``: there is none to go on with."""
    if into is None and resume:
        raise UserError("--resume needs --into DIR, the run to go on with; dbdyno runs lists them")
    return into or new_folder(study.stem)
