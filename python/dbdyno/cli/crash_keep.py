"""``dbdyno crash keep``: a state that a run has kept, as a raw image to be looked at by hand."""

from pathlib import Path

import typer

from dbdyno.cli.crash_arguments import CUT, RUN
from dbdyno.cli.formats import JSON
from dbdyno.cli.printed import print_done
from dbdyno.errors import UserError


def keep(
    run: Path = RUN,
    cut: str = CUT,
    folder: Path = typer.Argument(metavar="FOLDER", help="A new folder, or one without a disk.img."),
    json_: bool = JSON,
) -> None:
    """Copy a kept state out as a raw image, FOLDER/disk.img, and say how to mount it by hand."""
    from dbdyno.cli.crash_examined_text import UNCHECKED
    from dbdyno.cli.crash_text import image_as_text
    from dbdyno.run.kept_states import copy_out, lacking, spec_of
    from dbdyno.store.cuts import cut_called, kept_folder
    from dbdyno.store.others import last_resort
    from dbdyno.store.run_folder import read_run

    with last_resort(run):
        trial, found = cut_called(read_run(run), cut)
    state = kept_folder(run, trial, found)
    if missing := lacking(examining=False):
        raise UserError("\n".join(one.said for one in missing))
    spec = spec_of(run, trial.treatment)
    folder.mkdir(parents=True, exist_ok=True)
    image = copy_out(state, spec.stack.device, folder)
    filesystem = spec.stack.filesystem or ""
    values = {"image": str(image), "filesystem": filesystem, "cut": cut, "outcome": found.outcome}
    text = image_as_text(image, filesystem, cut, found)
    is_checked = bool(found.kept_sha256)
    print_done(text if is_checked else f"{text}\n{UNCHECKED}", {**values, "checked": is_checked}, json_=json_)
