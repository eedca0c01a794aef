"""Writing a run's figures for Prometheus, whole or not at all: a textfile collector may read at any moment."""

from pathlib import Path

import typer

from dbdyno.cli.page_file import refuse_to_overwrite, write_whole
from dbdyno.cli.values import path_of
from dbdyno.errors import UserError

BEGINNING = (b"# help dbdyno_",)
PROMETHEUS = typer.Option(
    None, "--prometheus", parser=path_of, metavar="FILE", help="Write the figures in Prometheus's text format as well."
)


def write_prometheus(path: Path, folders: list[Path]) -> None:
    """Write the figures of runs. Raises ``UserError``, or ``HostError`` where the disk is full."""
    from dbdyno.analysis.analyse import analyse
    from dbdyno.report.prometheus import Exported, render
    from dbdyno.store.run_folder import read_run

    refuse_to_overwrite(path, BEGINNING, "holds no figures of dbdyno's")
    names = [folder.resolve().name for folder in folders]
    labels = names if len(set(names)) == len(names) else list(map(str, folders))
    exported = [
        Exported(label, run := read_run(folder), analyse(run)) for label, folder in zip(labels, folders, strict=True)
    ]
    write_whole(path, render(exported).encode("utf-8", "replace"))


def check_suffix(path: Path | None) -> None:
    """Raises ``UserError`` where a textfile collector would pass the file over."""
    if path is not None and path.suffix != ".prom":
        raise UserError(f"--prometheus {path}: a textfile collector reads *.prom alone; name it {path.name}.prom")
