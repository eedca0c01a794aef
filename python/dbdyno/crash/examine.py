"""What is found after a cut, once its state is recovered on a rig, and the outcome."""

import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from dbdyno.crash.rig import KILLED, Defect, Rig, SpoiltError, Steps, rig_of
from dbdyno.crash.trial_cuts import PlannedCut, load_state, planned_of, read_kept
from dbdyno.errors import TrialError, UserError
from dbdyno.model.cut import OUTCOMES, CrashMode, Cut
from dbdyno.model.printable import short
from dbdyno.model.wording import count
from dbdyno.servers.contract import ServerError
from dbdyno.stack.disk_client import CutTaken
from dbdyno.stack.kinds.catalogue import KINDS
from dbdyno.stack.kinds.kind import Raising
from dbdyno.stack.layer import Endpoint
from dbdyno.stack.layers.data import Disks
from dbdyno.stack.layers.device import CutContent
from dbdyno.stack.layers.emulated_disk import running_disk
from dbdyno.stack.layers.scratch import unseen_mounts
from dbdyno.stack.layers.server import how_it_ended
from dbdyno.stack.undo.actions import RemoveTree
from dbdyno.stack.undo_log import Journal
from dbdyno.study.schema import TrialSpec
from dbdyno.system.state import make_private, new_token, scratch_path
from dbdyno.workload.generator import DYING_SECONDS
from dbdyno.workload.kinds import workload_of
from dbdyno.workload.ledger import LEDGER, Ledger, Verified

# Which of the six outcomes a cut had, and why, in the server's, the tool's or the verifier's own words.


CAUSE_MAX = 600  # characters


def worst(defects: Iterable[Defect]) -> Defect:
    """The worst of what was found, with all causes, worst first; nothing where nothing was found."""
    ordered = sorted(defects, key=lambda defect: OUTCOMES.index(defect.outcome))
    if not ordered:
        return Defect("nothing", "")
    return Defect(ordered[0].outcome, short("; ".join(defect.cause for defect in ordered if defect.cause), CAUSE_MAX))


def defects_of(verified: Verified) -> list[Defect]:
    """What the verifier has against the recovered tables."""
    defects = [
        Defect("table", f"table {table.table} needs repair: {table.text}") for table in verified.tables if not table.ok
    ]
    if not (verified.complete or defects):
        defects.append(Defect("table", "a table can't be read to its end"))
    if spoilt := _spoilt(verified):
        examples = "; ".join(
            f"{example.what}: {example.text}" for example in verified.examples[:2] if example.what != "lost"
        )
        defects.append(Defect("inconsistent", f"{spoilt}{f' ({examples})' if examples else ''}"))
    if verified.lost:
        defects.append(Defect("tail", f"{count(verified.lost, 'acknowledged commit')} lost"))
    return defects


def _spoilt(verified: Verified) -> str:
    """What is worse than a lost tail, in words."""
    counts = {
        "lost with younger ones kept": verified.holes,
        "there in part": verified.torn,
        "there with other values": verified.wrong,
        "there although refused or never sent": verified.ghost,
    }
    phrases = [f"{count(number, 'commit')} {words}" for words, number in counts.items() if number]
    if verified.index_differences:
        phrases.append(f"{count(verified.index_differences, 'difference')} between an index and its table")
    if verified.balance_off:
        phrases.append("the sum of all balances is off")
    return ", ".join(phrases)


class Verifying(Protocol):
    """A workload that can say what is left of it."""

    def verify(self, endpoint: Endpoint, folder: Path, cut_ns: int, cut_end_ns: int, limit_seconds: float) -> Verified:
        """Hold the recovered tables against the ledger in ``folder``. Raises ``TrialError``."""


@dataclass
class Examiner:
    """Examines the cuts of one trial, one after the other."""

    rig: Rig[Any]
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
        if planned.when != "recovery" and all(name in cut.recovery_s for name in self.rig.TIMED):
            self.recoveries_s.append(sum(cut.recovery_s[name] for name in self.rig.TIMED))
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
            with self.rig.attached(content, steps) as on:
                defects += self.rig.damage(on, steps)
                with self.rig.running(on, steps, log) as context, steps.step("verify"):
                    verified = self._verified(context.server, cut_ns)
        except SpoiltError as error:
            defects.append(error.defect)
        return [*defects, *(defects_of(verified) if verified else [])], verified

    def _verified(self, endpoint: Endpoint, cut_ns: tuple[int, int]) -> Verified:
        try:
            verified = verified_by(self.workload, endpoint, self.rig.folder, cut_ns, self.limit_seconds)
        except (SpoiltError, TrialError):
            self.rig.check_health()
            raise
        if defects_of(verified):
            self.rig.check_health()  # or a disk that is gone would pass for tables that can't be read
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
                self.rig.attached(content, steps) as on,
                self.rig.running(on, steps, log),
            ):
                pass
            self.recoveries_s.append(sum(steps.seconds.get(name, 0.0) for name in self.rig.TIMED))
        return sum(self.recoveries_s) / len(self.recoveries_s)

    def _cut_while_recovering(self, content: CutContent, name: str, after_s: float, log: Path) -> CutTaken | None:
        """Cut the power so long after the mount has begun; ``None`` where the state does not let itself be raised."""
        disk = self.rig.line
        with self.rig.attached(content, Steps()) as on:
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
                with suppress(SpoiltError), self.rig.running(on, Steps(), log):
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
    if endpoint.in_machine:
        try:
            endpoint.control.settings()
        except ServerError as error:
            raise SpoiltError("server", f"it starts, but its tables cannot be read: {error}") from None
    if endpoint.process:
        with suppress(Exception):
            endpoint.process.wait(patience_seconds)
    if ended := how_it_ended(endpoint):
        if endpoint.process and endpoint.process.poll() == KILLED and endpoint.cgroup is None:
            raise TrialError(f"another process killed the server while it was read: {ended}") from None
        raise SpoiltError("server", f"it starts, but its tables cannot be read: {ended}") from None


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
        examiner = Examiner(rig_of(stack, limit, journal, place, unseen_mounts), workload, limit)
        return examiner.of_state(planned_of(kept), kept.content, (kept.cut_ns, kept.cut_end_ns), kept.window_start_ns)
