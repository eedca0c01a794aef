"""Writing a run's figures for Prometheus, whole or not at all: a textfile collector may read at any moment."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dbdyno.cli.page_file import refuse_to_overwrite, write_whole
from dbdyno.cli.values import path_of
from dbdyno.errors import UserError

if TYPE_CHECKING:
    from dbdyno.analysis.analyse import Analysis
    from dbdyno.store.records import Run

BEGINNING = (b"# help dbdyno_",)
PROMETHEUS = typer.Option(
    None, "--prometheus", parser=path_of, metavar="FILE", help="Write the figures in Prometheus's text format as well."
)


def write_prometheus(path: Path, folders: list[Path], runs: "list[tuple[Run, Analysis]]") -> None:
    """Write the figures of runs, of one folder each. Raises ``UserError``, or ``HostError`` where the disk is full."""
    from dbdyno.report.prometheus import Exported, render
    from dbdyno.store.others import last_resort

    names = [Path(os.path.realpath(folder)).name for folder in folders]
    labels = names if len(set(names)) == len(names) else list(map(str, folders))
    exported = [Exported(label, *one) for label, one in zip(labels, runs, strict=True)]
    with last_resort(*folders):
        content = render(exported).encode("utf-8", "replace")
    write_whole(path, content)


def check_prometheus(path: Path | None) -> None:
    """Raises ``UserError`` where a textfile collector would pass the file over, or it would replace another."""
    if path is None:
        return
    if path.suffix != ".prom":
        raise UserError(f"--prometheus {path}: a textfile collector reads *.prom alone; name it {path.name}.prom")
    refuse_to_overwrite(path, BEGINNING, "holds no figures of dbdyno's")
