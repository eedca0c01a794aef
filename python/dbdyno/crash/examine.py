"""What is found after a cut: its state as a disk's content, recovery, and the verifier's judgement."""

import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from dbdyno.crash.kept import load_state, planned_of, read_kept
from dbdyno.crash.recovery import (
    KILLED,
    Defect,
    Rig,
    SpoiltError,
    Steps,
    attached,
    damage,
    defects_of,
    rig_of,
    running,
    worst,
)
from dbdyno.crash.trial_cuts import PlannedCut
from dbdyno.errors import TrialError, UserError
from dbdyno.model.cut import CrashMode, Cut
from dbdyno.stack.disk_client import CutTaken
from dbdyno.stack.kinds.catalogue import KINDS
from dbdyno.stack.kinds.kind import Raising
from dbdyno.stack.layer import Endpoint
from dbdyno.stack.layers.data import Disks
from dbdyno.stack.layers.device import CutContent
from dbdyno.stack.layers.emulated_disk import running_disk
from dbdyno.stack.layers.scratch import unseen_mounts
from dbdyno.stack.layers.server import how_it_ended
from dbdyno.stack.undo.log import Journal
from dbdyno.stack.undo.undos import RemoveTree
from dbdyno.study.schema import TrialSpec
from dbdyno.system.state import make_private, new_token, scratch_path
from dbdyno.workload.generator import DYING_SECONDS
from dbdyno.workload.kinds import workload_of
from dbdyno.workload.ledger import LEDGER, Ledger, Verified

TIMED = ("mount", "server")  # the steps of a recovery in which the power may be cut again


class Verifying(Protocol):
    """A workload that can say what is left of it."""

    def verify(self, endpoint: Endpoint, folder: Path, cut_ns: int, cut_end_ns: int, limit_seconds: float) -> Verified:
        """Hold the recovered tables against the ledger in ``folder``. Raises ``TrialError``."""


@dataclass
class Examiner:
    """Examines the cuts of one trial, one after the other."""

    rig: Rig
    workload: Verifying
    limit_seconds: float
    hold_s: float = 0.0
    recoveries_s: list[float] = field(default_factory=list)  # what mount and start have taken so far

    def examined(self, planned: PlannedCut, taken: CutTaken, window_start_ns: int) -> tuple[Cut, CutContent]:
        """A cut with what was found, and the state that it was found on: of a cut in a recovery, the later one."""
        assert planned.survivors is not None  # noqa: S101  (a power cut has survivors)
        content, state = CutContent(taken.name, planned.survivors, planned.seed), taken
        if planned.when == "recovery":
            state, content = self._cut_again(planned, taken, content)
        cut = self.of_state(planned, content, (taken.cut_ns, taken.cut_end_ns), window_start_ns)
        if planned.when != "recovery" and all(name in cut.recovery_s for name in TIMED):
            self.recoveries_s.append(sum(cut.recovery_s[name] for name in TIMED))
        # Where the disk kept track of too little at the first of several cuts, the loss is understated all the same.
        reached = state.limit_reached or taken.limit_reached
        return replace(cut, unflushed_bytes=state.unflushed_bytes, limit_reached=reached), content

    def of_state(self, planned: PlannedCut, content: CutContent, cut_ns: tuple[int, int], window_start_ns: int) -> Cut:
        """A cut with what is found on a state; ``cut_ns`` is right before and right after it was taken."""
        steps, log = Steps(), self._log(planned)
        defects, verified = self._recovered(content, cut_ns, steps, log)
        cut = cut_of(planned, "power", (cut_ns[0], window_start_ns), defects, verified)
        if cut.outcome in {"nothing", "tail"}:
            log.unlink(missing_ok=True)
        return replace(cut, recovery_s=steps.seconds)

    def _log(self, planned: PlannedCut) -> Path:
        return self.rig.folder / f"recovery-{planned.id}.log"

    def _recovered(
        self, content: CutContent, cut_ns: tuple[int, int], steps: Steps, log: Path
    ) -> tuple[list[Defect], Verified | None]:
        defects: list[Defect] = []
        verified = None
        try:
            with attached(self.rig, content, steps) as on_device:
                defects += damage(self.rig, on_device, steps)
                with running(self.rig, on_device, steps, log) as context, steps.step("verify"):
                    verified = self._verified(context.server, cut_ns)
        except SpoiltError as error:
            defects.append(error.defect)
        return [*defects, *(defects_of(verified) if verified else [])], verified

    def _verified(self, endpoint: Endpoint, cut_ns: tuple[int, int]) -> Verified:
        try:
            verified = verified_by(self.workload, endpoint, self.rig.folder, cut_ns, self.limit_seconds)
        except (SpoiltError, TrialError):
            self.rig.see_that_it_is_well()
            raise
        if defects_of(verified):
            self.rig.see_that_it_is_well()  # or a disk that is gone would pass for tables that can't be read
        return verified

    def _cut_again(self, planned: PlannedCut, taken: CutTaken, content: CutContent) -> tuple[CutTaken, CutContent]:
        """The state that a cut during the recovery from another leaves; of every other such cut, one in that again."""
        state, log = taken, self._log(planned)
        for again in range(1, 2 + planned.seed % 2):
            after_s = planned.share * self._usual_seconds(content, log)
            name = f"{planned.id}-{again}"
            if not (cut := self._cut_while_recovering(content, name, after_s, log)):
                break
            state, content = cut, CutContent(name, content.survivors, content.seed + 1)
        return state, content

    def _usual_seconds(self, content: CutContent, log: Path) -> float:
        """What mount and start take: of the cuts that were examined before, or else of this one."""
        if not self.recoveries_s:
            steps = Steps()
            with (
                suppress(SpoiltError),
                attached(self.rig, content, steps) as on_device,
                running(self.rig, on_device, steps, log),
            ):
                pass
            self.recoveries_s.append(sum(steps.seconds.get(name, 0.0) for name in TIMED))
        return sum(self.recoveries_s) / len(self.recoveries_s)

    def _cut_while_recovering(self, content: CutContent, name: str, after_s: float, log: Path) -> CutTaken | None:
        """Cut the power so long after the mount has begun; ``None`` where the state does not let itself be raised."""
        disk = self.rig.device.disk.client
        with attached(self.rig, content, Steps()) as on_device:
            disk.arm_cuts(round(self.hold_s * 1e9))
            failed: list[TrialError] = []

            def cut() -> None:
                try:
                    disk.cut(name)
                except TrialError as error:
                    failed.append(error)

            timer = threading.Timer(after_s, cut)
            timer.start()
            try:
                with suppress(SpoiltError), running(self.rig, on_device, Steps(), log):
                    timer.join()  # it may come a moment after this start, which was faster than the others
            finally:
                timer.cancel()
                timer.join()
                disk.disarm_cuts()
        if failed:
            raise failed[0]
        return next((cut_taken for cut_taken in disk.cuts() if cut_taken.name == name), None)


def verified_by(
    workload: Verifying, endpoint: Endpoint, folder: Path, cut_ns: tuple[int, int], limit_seconds: float
) -> Verified:
    """What the verifier found.

    Raises ``SpoiltError`` where the server dies of being asked, ``TrialError`` where the verifier fails or another
    process kills the server.
    """
    try:
        verified = workload.verify(endpoint, folder, *cut_ns, limit_seconds)
    except TrialError:
        _see_that_it_lives(endpoint, DYING_SECONDS)
        raise
    if broken := [table.text for table in verified.tables if not table.ok]:
        is_gone = any("connection" in text for text in broken)
        _see_that_it_lives(endpoint, DYING_SECONDS if is_gone else 0.0)
    return verified


def _see_that_it_lives(endpoint: Endpoint, patience_seconds: float) -> None:
    """Raise ``SpoiltError`` where a server has died while it was read, ``TrialError`` where another killed it."""
    if endpoint.process:
        with suppress(Exception):
            endpoint.process.wait(patience_seconds)
    if ended := how_it_ended(endpoint):
        if endpoint.process and endpoint.process.poll() == KILLED and endpoint.cgroup is None:
            raise TrialError(f"another process killed the server while it was read: {ended}") from None
        raise SpoiltError("server", f"it starts, and does not bear being read: {ended}") from None


def cut_of(
    planned: PlannedCut,
    mode: CrashMode,
    cut_and_window_ns: tuple[int, int],
    defects: Sequence[Defect],
    verified: Verified | None,
) -> Cut:
    """The record of a cut. Where nothing could be verified, no transaction is counted."""
    defect = worst(defects)
    cut_ns, window_ns = cut_and_window_ns
    counts = {}
    if verified:
        names = ("acked", "unknown", "lost", "holes", "ghost", "torn", "wrong")
        counts = {name: getattr(verified, name) for name in names}
        oldest = verified.oldest_lost_ack_ns
        counts["lost_ms"] = None if oldest is None else (cut_ns - oldest) / 1e6
    return Cut(
        *(planned.id, mode, planned.when, planned.survivors, planned.seed, (cut_ns - window_ns) / 1e9, defect.outcome),
        **{"acked": 0, **counts},
        cause=defect.cause,
    )


# A kept state examined again, on a disk of its own; nothing of its run folder changes.


def examine_kept(folder: Path, spec: TrialSpec, journal: Journal) -> Cut:
    """What is found on the state that ``folder`` keeps, of a trial with this spec: the same as before, seconds apart.

    The caller has verified its checksums. Raises ``UserError`` where the folder holds no state, ``TrialError`` or
    ``HostError`` where it can't be examined.
    """
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
        load_state(disk.client, kept, folder)
        stack = KINDS[spec.stack.kind].stack(spec, Disks((disk,)), Raising(place / "server.log", workload.prepare))
        limit = spec.crash.recovery_limit
        # Its filesystem may be of another's making: nobody else is to see it mounted.
        rig = replace(rig_of(stack, limit, journal, place), hiding=unseen_mounts)
        examiner = Examiner(rig, workload, limit)
        return examiner.of_state(planned_of(kept), kept.content, (kept.cut_ns, kept.cut_end_ns), kept.window_start_ns)
