"""``dbdyno report DIR... --format csv | parquet``: a row for each finished trial."""

import sys
from pathlib import Path

from dbdyno.cli.members import members
from dbdyno.errors import UserError


def show_trials(folders: list[Path], *, parquet: bool) -> None:
    """Write the table to standard output; of several runs, their names are its first column.

    Raises:
        UserError: Parquet would go to a terminal, or a folder can't be read.

    """
    from dbdyno.notebook.frames import columns_of
    from dbdyno.notebook.rows import trial_rows
    from dbdyno.store.others import last_resort
    from dbdyno.store.tables import as_csv, as_parquet

    if parquet and sys.stdout.isatty():
        raise UserError("parquet is no text: send it into a file, as by > trials.parquet")
    runs = members(folders)
    several = len(runs) > 1
    with last_resort(*folders):
        columns = columns_of(
            {**({"run": one.name} if several else {}), **row}
            for one in runs
            for row in trial_rows(one.run, one.analysis)
        )
        if parquet:
            sys.stdout.buffer.write(as_parquet(columns))
        else:
            sys.stdout.write(as_csv(columns))
