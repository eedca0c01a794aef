"""Whether a trial that another machine has handed over is one: a host of a fleet or a guest may be broken, or lie."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from dbdyno.errors import UserError
from dbdyno.hosts.contract import LieError
from dbdyno.plan.order import Slot
from dbdyno.store.cuts import CUT_ID, is_at_its_place
from dbdyno.store.events import Finished
from dbdyno.store.latencies import COLUMNS, LATENCIES, latencies_in
from dbdyno.store.parts import sums_of
from dbdyno.store.records import Trial
from dbdyno.store.series_files import SeriesRequest, read_each
from dbdyno.store.trials import TRIAL, part_of, read_trial


def check_trial(folder: Path, slot: Slot) -> Trial:
    """The trial of a slot whose files lie below ``folder``/trials. Raises ``LieError`` where they are none of it."""
    place = folder / "trials" / slot.id
    try:
        names = [path.name for path in sorted(place.iterdir())]
        sums = sums_of(folder, [part_of(slot.id, name) for name in names if name == TRIAL or name.endswith(".parquet")])
        event = Finished(slot.id, slot.block, slot.attempt, slot.treatment, sha256=sums)
        trial = read_trial(folder, event)
        check_numbers(trial)
        check_series(folder, [event])
    except (OSError, UserError, ValueError) as error:
        raise LieError(f"{slot.id}: {error}") from None
    if trial.position != slot.position:
        raise LieError(f"{slot.id} has the wrong position")
    return trial


def check_series(folder: Path, events: Sequence[Finished]) -> None:
    """Raise ``UserError`` where the series of the trials can't be read within what is allowed to all of them."""
    requests = [
        SeriesRequest(event.trial, series, COLUMNS if series == LATENCIES else ".*")
        for event in events
        for series in sorted(Path(name).stem for name in event.sha256 if name.endswith(".parquet"))
    ]
    for request, columns in read_each(folder, requests, {event.trial: event.sha256 for event in events}):
        if request.series == LATENCIES:
            latencies_in(folder, request.trial, columns)


def check_numbers(trial: Trial) -> None:
    """Raise ``ValueError`` where a figure is none, or a cut names a state outside of its own folder."""
    for name, value in [*trial.metrics.items(), *trial.seconds.items(), *trial.host_speed.items()]:
        if not math.isfinite(value) or value < 0:
            raise ValueError(f"{trial.id}: {name} is {value}")
    ids = [cut.id for cut in trial.cuts]
    if len(set(ids)) != len(ids):
        raise ValueError(f"{trial.id} has a cut twice")
    for cut in trial.cuts:
        if not CUT_ID.fullmatch(cut.id) or (cut.kept and not is_at_its_place(cut)):
            raise ValueError(f"{trial.id}: a cut has an invalid name or folder")
        for name, value in [*asdict(cut).items(), *cut.recovery_s.items()]:
            if isinstance(value, int | float) and not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{trial.id}: {name} of cut {cut.id} is {value}")
