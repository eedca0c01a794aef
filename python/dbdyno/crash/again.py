"""A kept state examined again, on a disk of its own; nothing of its run folder changes."""

import tempfile
from pathlib import Path

from dbdyno.crash.examine import Examiner
from dbdyno.crash.kept import planned_of, read_kept
from dbdyno.crash.recovery import rig_of
from dbdyno.errors import UserError
from dbdyno.model.cut import Cut
from dbdyno.stack.kinds.catalogue import KINDS
from dbdyno.stack.kinds.kind import Raising
from dbdyno.stack.layers.data import Disks
from dbdyno.stack.layers.emulated_disk import running_disk
from dbdyno.stack.undo.log import Journal
from dbdyno.study.schema import TrialSpec
from dbdyno.workload.kinds import workload_of
from dbdyno.workload.ledger import LEDGER, Ledger


def examine_kept(folder: Path, spec: TrialSpec, journal: Journal) -> Cut:
    """What is found on the state that ``folder`` keeps, of a trial with this spec: the same as before, seconds apart.

    Raises ``UserError`` where the folder holds no state, ``TrialError`` or ``HostError`` where it can't be examined.
    """
    kept, workload = read_kept(folder), workload_of(spec)
    if spec.crash is None or spec.stack.size is None or not isinstance(workload, Ledger):
        raise UserError(f"{folder}: this treatment is of no study of power cuts")
    with (
        tempfile.TemporaryDirectory(prefix="dbdyno-") as beside,
        running_disk(journal, model=spec.stack.device, size=spec.stack.size) as disk,
    ):
        place = Path(beside)
        (place / LEDGER).symlink_to((folder / LEDGER).absolute())
        disk.client.load_cut(kept.name, folder.absolute())
        stack = KINDS[spec.stack.kind].stack(spec, Disks((disk,)), Raising(place / "server.log", workload.prepare))
        limit = spec.crash.recovery_limit
        examiner = Examiner(rig_of(stack, limit, journal, place), workload, limit)
        return examiner.of_state(planned_of(kept), kept.content, (kept.cut_ns, kept.cut_end_ns), kept.window_start_ns)
