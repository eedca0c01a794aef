"""Cuts of the power of a trial's emulated disk: taken beside the load, examined once the stack is lowered."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from dbdyno.crash.cutting import Taken, cutting
from dbdyno.crash.examine import Examiner
from dbdyno.crash.kept import Kept, is_wanted, keep_state
from dbdyno.crash.recovery import rig_of
from dbdyno.crash.schedule import of
from dbdyno.crash.trial_cuts import EXAMINING, AboutTrial, Planned
from dbdyno.errors import TrialError
from dbdyno.model.cut import OUTCOME_WORDS, Cut
from dbdyno.stack.disk_client import DiskClient
from dbdyno.stack.extents import Range, ranges_of
from dbdyno.stack.kinds.kind import Stack
from dbdyno.stack.layer import StackContext
from dbdyno.stack.layers.server import Server
from dbdyno.study.crash_section import CrashSection


class PowerCuts(Planned):
    """Cuts of the power of the trial's emulated disk."""

    keeps_server: ClassVar[bool] = True

    def __init__(self, about: AboutTrial, section: CrashSection, disk: DiskClient) -> None:
        super().__init__(about, section)
        self.disk, self.taken = disk, Taken()
        acks, ddls = (tuple(cut.after_s for cut in of(self.planned, when)) for when in ("ack", "ddl"))
        socket = disk.control if acks or ddls else None
        self.workload = replace(self.ledger, cut_socket=socket, cut_acks_after_s=acks, cut_ddls_after_s=ddls)

    @contextmanager
    def beside(self, context: StackContext) -> Iterator[None]:
        """A thread asks the disk for cuts, and the load for those after what only it knows."""
        with cutting(
            self.disk,
            self.planned,
            warmup_s=self.warmup_s,
            hold_s=self.section.hold_seconds,
            page_ranges=partial(_page_ranges, self.about.stack, context),
        ) as self.taken:
            yield
        for id_, why in self.taken.refused.items():
            when = next(cut.when for cut in self.planned if cut.id == id_)
            self.about.say(f"cut {id_} ({when}) was not taken: {why}")

    def after_load(self, context: StackContext, _: tuple[int, int]) -> AbstractContextManager[StackContext]:
        """The stack as it is: the load did not notice."""
        return nullcontext(context)

    def examined(self, window_ns: tuple[int, int]) -> list[Cut]:
        """Each state raised, recovered and verified, and kept as evidence where that is asked for."""
        about, found = self.about, []
        rig = rig_of(about.stack, self.section.recovery_limit, about.journal, about.folder)
        examiner = Examiner(rig, self.workload, self.section.recovery_limit, self.section.hold_seconds)
        due = [cut for cut in self.planned if cut.id in self.taken.cuts]
        for number, planned in enumerate(due, 1):
            taken = self.taken.cuts[planned.id]
            cut, content = examiner.examined(planned, taken, window_ns[0])
            kept = Kept(cut, about.treatment, content.name, content.seed, taken.cut_ns, taken.cut_end_ns, window_ns[0])
            found.append(self._keep(kept))
            self.disk.forget_cut(taken.name)  # its memory may be needed
            about.say(f"cut {number} of {len(due)}: {OUTCOME_WORDS[cut.outcome]}")
        about.lap(EXAMINING)
        return found

    def _keep(self, kept: Kept) -> Cut:
        """Keep the state as evidence where that is asked for; returns the cut with where that lies."""
        if not is_wanted(self.section.keep, kept.cut, kept.treatment, self.about.folder):
            return kept.cut
        try:
            return keep_state(self.disk, kept, self.about.folder)
        except (TrialError, OSError) as error:
            self.about.say(f"the state of cut {kept.cut.id} is not kept: {error}")
            return kept.cut

    def observed(self) -> dict[str, dict[str, Any]]:
        """Cuts that were planned, and taken, and why others were not."""
        return {"crash": {"planned": len(self.planned), "taken": len(self.taken.cuts), "not_taken": self.taken.refused}}


def _page_ranges(stack: Stack, context: StackContext) -> list[Range]:
    """Where the server's pages lie on the device."""
    assert context.directory is not None  # noqa: S101  (a filesystem is below every server)
    server = next(layer for layer in stack.above if isinstance(layer, Server))
    return ranges_of(server.page_files(context.directory))
