"""A kept state examined again, on a disk of its own; nothing of its run folder changes."""

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
from dbdyno.stack.undo.undos import RemoveTree
from dbdyno.store.kept_sums import verify_sums
from dbdyno.study.schema import TrialSpec
from dbdyno.system.state import make_private, new_token, scratch_path
from dbdyno.workload.kinds import workload_of
from dbdyno.workload.ledger import LEDGER, Ledger


def examine_kept(folder: Path, spec: TrialSpec, journal: Journal) -> Cut:
    """What is found on the state that ``folder`` keeps, of a trial with this spec: the same as before, seconds apart.

    Raises ``UserError`` where the folder holds no state or another than was kept, ``TrialError`` or ``HostError`` where
    it can't be examined.
    """
    verify_sums(folder)
    kept, workload = read_kept(folder), workload_of(spec)
    if spec.crash is None or spec.stack.size is None or not isinstance(workload, Ledger):
        raise UserError(f"{folder}: this treatment is of no study of power cuts")
    place = scratch_path(new_token())
    with (
        journal.undoing(RemoveTree(str(place))),
        running_disk(journal, model=spec.stack.device, size=spec.stack.size) as disk,
    ):
        make_private(place)
        (place / LEDGER).symlink_to((folder / LEDGER).absolute())
        disk.client.load_cut(kept.name, folder.absolute())
        stack = KINDS[spec.stack.kind].stack(spec, Disks((disk,)), Raising(place / "server.log", workload.prepare))
        limit = spec.crash.recovery_limit
        examiner = Examiner(rig_of(stack, limit, journal, place), workload, limit)
        return examiner.of_state(planned_of(kept), kept.content, (kept.cut_ns, kept.cut_end_ns), kept.window_start_ns)
