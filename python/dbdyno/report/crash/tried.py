"""What of crash safety was tried in runs, in a clause; so that nothing says that power was cut where it was not."""

from collections.abc import Sequence

from dbdyno.model.cut import CrashMode, Cut
from dbdyno.report.crash.wording import cuts
from dbdyno.store.records import Run

UNTRIED = "power cuts were not tried"


def tried_in(runs: Sequence[Run]) -> str:
    """Return ``"900 power cuts were tried: see crash safety"``; of kills, that no power was cut."""
    found = [cut for run in runs for trial in run.trials for cut in trial.cuts]
    if not found:
        return UNTRIED
    power = [cut for cut in found if cut.mode == "power"]
    if not power:
        return f"{_were(found, 'kill')} tried: see crash safety; {UNTRIED}"
    kills = len(found) - len(power)
    beside = f", and {cuts('kill', kills)}" if kills else ""
    return f"{_were(power, 'power')} tried{beside}: see crash safety"


def _were(found: Sequence[Cut], mode: CrashMode) -> str:
    return f"{cuts(mode, len(found))} {'was' if len(found) == 1 else 'were'}"
