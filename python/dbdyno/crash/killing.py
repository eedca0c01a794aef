"""A kill of the server beside its load, and its start on the same folder: what it wrote is in the page cache yet."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from dbdyno.crash.examine import cut_of, verified_by
from dbdyno.crash.power import PowerCuts
from dbdyno.crash.recovery import SpoiltError, Steps, defects_of, not_starting
from dbdyno.crash.trial_cuts import EXAMINING, AboutTrial, Crashing, Planned, PlannedCut
from dbdyno.errors import TrialError
from dbdyno.model.cut import OUTCOME_WORDS, Cut
from dbdyno.stack.layer import Endpoint, StackContext
from dbdyno.stack.layers.device import Emulated
from dbdyno.stack.layers.server import Server, how_it_ended
from dbdyno.study.schema import CrashSection
from dbdyno.system.clock import now_ns
from dbdyno.workload.workload import Workload


@dataclass
class Killed:
    """When the server was killed; 0 where it was not."""

    cut_ns: int = 0  # right before: what was acknowledged by then must be kept
    cut_end_ns: int = 0  # right after


@contextmanager
def killing(endpoint: Endpoint, planned: PlannedCut, *, warmup_s: float) -> Iterator[Killed]:
    """Kill the server with SIGKILL at the planned moment of the load that the context holds."""
    killed, ended = Killed(), threading.Event()
    begins_ns = now_ns() + round(warmup_s * 1e9)

    def kill() -> None:
        if not ended.wait(max(0.0, (begins_ns - now_ns()) / 1e9 + planned.after_s)) and endpoint.process:
            cut_ns = now_ns()
            endpoint.process.kill()
            killed.cut_ns, killed.cut_end_ns = cut_ns, now_ns()

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    try:
        yield killed
    finally:
        ended.set()
        thread.join()


class Kill(Planned):
    """One kill of the server, whose page cache survives."""

    keeps_server: ClassVar[bool] = False

    def __init__(self, about: AboutTrial, section: CrashSection) -> None:
        super().__init__(about, section)
        self.workload = replace(self.ledger, expect_loss=True)
        self.killed = Killed()
        self.cuts: list[Cut] = []

    @contextmanager
    def beside(self, context: StackContext) -> Iterator[None]:
        """A thread kills it, and the load ends by that."""
        with killing(context.server, self.planned[0], warmup_s=self.warmup_s) as self.killed:
            yield
        if not self.killed.cut_ns:
            if ended := how_it_ended(context.server):
                raise TrialError(f"before it was killed, {ended}")
            self.about.say(f"cut {self.planned[0].id} was not taken: the load had ended by then")

    @contextmanager
    def after_load(self, context: StackContext, window_ns: tuple[int, int]) -> Iterator[StackContext]:
        """The server started again on the same folder, and what it holds verified; without one if it does not start."""
        if not self.killed.cut_ns:
            yield context
            return
        with ExitStack() as lowering:
            without = replace(context, endpoint=None)
            again, cut = self._again(lowering, without, window_ns[0])
            self.cuts = [cut]
            self.about.say(f"cut 1 of 1: {OUTCOME_WORDS[cut.outcome]}")
            self.about.lap(EXAMINING)
            yield again

    def _again(self, lowering: ExitStack, below: StackContext, window_start_ns: int) -> tuple[StackContext, Cut]:
        about, steps, planned, limit = self.about, Steps(), self.planned[0], self.section.recovery_limit
        log = about.folder / f"recovery-{planned.id}.log"
        layer = next(layer for layer in about.stack.above if isinstance(layer, Server))
        layer = replace(layer, ready_seconds=limit, is_killed=True, log=log)
        cut_ns, verified, context = (self.killed.cut_ns, self.killed.cut_end_ns), None, below
        try:
            with steps.step("server"), not_starting(log, is_bounded=below.cgroup is not None):
                context = lowering.enter_context(layer.raised(below))
            with steps.step("verify"):
                verified = verified_by(self.workload, context.server, about.folder, cut_ns, limit)
            defects = defects_of(verified)
        except SpoiltError as error:
            defects, context = [error.defect], below
        cut = cut_of(planned, "kill", (cut_ns[0], window_start_ns), defects, verified)
        if cut.outcome in {"nothing", "tail"}:
            log.unlink(missing_ok=True)
        return context, replace(cut, recovery_s=steps.seconds)

    def examined(self, _: tuple[int, int]) -> list[Cut]:
        """The one, whose server was started again in the trial's own stack."""
        return self.cuts

    def observed(self) -> dict[str, dict[str, Any]]:
        """Whether it was taken."""
        return {"crash": {"planned": 1, "taken": len(self.cuts)}}


# The cuts that a study asks for, if any.


@dataclass(frozen=True)
class NoCrash:
    """A study of speed."""

    keeps_server: ClassVar[bool] = True

    workload: Workload

    def beside(self, _: StackContext) -> AbstractContextManager[None]:
        """Nothing beside the load."""
        return nullcontext()

    def after_load(self, context: StackContext, _: tuple[int, int]) -> AbstractContextManager[StackContext]:
        """The stack as it is."""
        return nullcontext(context)

    def examined(self, _: tuple[int, int]) -> list[Cut]:
        """No cuts."""
        return []

    def observed(self) -> dict[str, dict[str, Any]]:
        """Nothing."""
        return {}


@contextmanager
def crashing(about: AboutTrial) -> Iterator[Crashing]:
    """The cuts that a study asks for; the disk's states of them are dropped in the end."""
    section = about.spec.crash
    if section is None:
        yield NoCrash(about.workload)
    elif section.mode == "kill":
        yield Kill(about, section)
    else:
        assert isinstance(about.stack.device, Emulated)  # noqa: S101  (a rule of the study format)
        disk = about.stack.device.disk.client
        try:
            yield PowerCuts(about, section, disk)
        finally:
            with suppress(TrialError):  # a disk that is gone has dropped them
                disk.forget_cuts()
