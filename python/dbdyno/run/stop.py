"""Between two blocks: whether the run goes on, and about how much is still to come."""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from dbdyno.analysis.blocks import usable_blocks
from dbdyno.model.design import Design, StopReason
from dbdyno.model.wording import count
from dbdyno.store.run_folder import read_run
from dbdyno.study.schema import TrialSpec
from dbdyno.study.units import format_roughly

if TYPE_CHECKING:
    from dbdyno.analysis.verdict.finding import Finding


@dataclass(frozen=True)
class Outlook:
    """How many blocks there will be in all, as far as that is known."""

    blocks: int | None
    how: Literal["", "at most ", "about "] = ""

    @classmethod
    def at_first(cls, design: Design) -> "Outlook":
        """What the design alone says."""
        if design.until == "open":
            return cls(None)
        return cls(design.blocks, "" if design.until == "blocks" else "at most ")


@dataclass
class BlockPace:
    """How long blocks take, by a clock that counts seconds. What a run took before it was resumed is ``before``."""

    before_seconds: float = 0.0
    lengths: list[float] = field(default_factory=list)  # of the blocks so far
    first_here: float | None = None  # of the first block of this process, which prepares the data
    clock: Callable[[], float] = time.monotonic
    _began: float = field(init=False)
    _block_began: float = field(init=False)

    def __post_init__(self) -> None:
        self._began = self._block_began = self.clock()

    def begin(self) -> None:
        """A block begins."""
        self._block_began = self.clock()

    def end(self) -> None:
        """It has ended."""
        length = self.clock() - self._block_began
        if self.first_here is None:
            self.first_here = length
        else:
            self.lengths.append(length)

    @property
    def seconds(self) -> float:
        """What the run has taken so far."""
        return self.before_seconds + self.clock() - self._began

    @property
    def block_seconds(self) -> float | None:
        """The mean length of the blocks so far. The one that prepared the data counts only while there is no other."""
        return sum(self.lengths) / len(self.lengths) if self.lengths else self.first_here


def pace_of(folder: Path, timed: Collection[str], clock: Callable[[], float] = time.monotonic) -> BlockPace:
    """How long the blocks of a run took that were run before, by what its trials took; ``timed`` are on the budget."""
    before, lengths = 0.0, defaultdict[int, float](float)
    for trial in read_run(folder).trials:
        seconds = sum(trial.seconds.values())
        before += seconds if trial.id in timed else 0.0
        lengths[trial.block] += seconds
    last = max(lengths, default=0)  # may be half a block
    return BlockPace(before, [seconds for block, seconds in lengths.items() if block != last], clock=clock)


class StartAnew(Exception):  # noqa: N818  (says what is to be done, and is no error)
    """The next trial needs the host to be started anew with another kernel; what is stored stays."""

    def __init__(self, kernel: str) -> None:
        super().__init__(kernel)
        self.kernel = kernel


class Deciding(Protocol):
    """What a run asks between two blocks, and before each trial."""

    @property
    def pace(self) -> BlockPace:
        """How long blocks take."""

    @property
    def outlook(self) -> Outlook:
        """How many blocks there will be."""

    def before(self, block: int, *, begun: bool) -> StopReason:
        """Why ``block`` is not begun, or not gone on with where it was ``begun`` before; nothing where it is."""

    def before_trial(self, spec: TrialSpec) -> None:
        """Raise ``StartAnew`` where the host runs another kernel than the trial needs."""

    def look(self, blocks: int) -> StopReason:
        """Why there are no more, ``blocks`` being over; nothing where the results give no reason."""


@dataclass
class Stop:
    """Decides between two blocks of one run; what it needs to know of the results it reads from the run folder."""

    folder: Path
    design: Design
    pace: BlockPace
    say: Callable[[str], None]
    at_once: int = 1  # blocks, each on a host of its own
    outlook: Outlook = field(init=False)
    _looked_at: int = 0  # usable blocks

    def __post_init__(self) -> None:
        self.outlook = Outlook.at_first(self.design)

    def before(self, block: int, *, begun: bool = False) -> StopReason:
        """As ``Deciding`` says; one that was begun is ended."""
        return "" if begun else self.look(block - 1) or self.out_of_time()

    def before_trial(self, spec: TrialSpec) -> None:
        """Nothing: the machine that decides is never started anew, and the trial itself reads its kernel."""

    def look(self, blocks: int) -> StopReason:
        """Look at the data where the design plans a look, ``blocks`` being over; say how much is still to come."""
        if self.design.until == "blocks":
            return ""
        # Not of the hosts under test, which decide nothing: SciPy takes longer to import than all else.
        from dbdyno.analysis.analyse import planned_verdicts
        from dbdyno.analysis.stopping import is_look, more_blocks, reason_to_stop
        from dbdyno.model.metrics import percentile_of
        from dbdyno.store.series import read_latencies

        run = read_run(self.folder)
        blocks_that_count = usable_blocks(run)
        usable = len(blocks_that_count.trials)
        if not is_look(run.design, usable):
            return ""
        latencies = read_latencies(self.folder, run) if percentile_of(run.design.metric) else None
        verdicts = planned_verdicts(run, blocks_that_count, latencies)
        why = reason_to_stop(run.design, usable, verdicts)
        if not why and usable > self._looked_at:
            self._expect(blocks, usable, more_blocks(run.design, usable, verdicts), verdicts)
        self._looked_at = usable
        return why if why != "blocks" else ""  # the runner counts those by itself

    def _expect(self, blocks: int, usable: int, more: int | None, verdicts: "Sequence[Finding]") -> None:
        from dbdyno.analysis.stopping import settled
        from dbdyno.report.sentences import so_far
        from dbdyno.report.why import lack_text

        done = sum(settled(verdict, self.design) for verdict in verdicts)
        kind, state = ("interval", "precise") if self.design.until == "precise" else ("comparison", "decided")
        self.say(f"after {count(usable, 'block')} {done} of {count(len(verdicts), kind)} {state}")
        for line in so_far(verdicts, self.design.treatments):
            self.say(line)
        if more is None:
            unsettled = [verdict for verdict in verdicts if not settled(verdict, self.design)]
            doubt = next((verdict.lack for verdict in unsettled if verdict.lack and verdict.doubted_for), None)
            why = f": {lack_text(doubt)}" if doubt else ""
            if any(verdict.mostly_disturbed for verdict in unsettled):
                why = ": most blocks met interference; stop other programs on this host"
            self.outlook = Outlook.at_first(self.design)  # an earlier estimate no longer holds
            self.say(f"the number of blocks still needed is unknown{why}")
            return
        # What is expected to take longer than the plan allows takes as long as that.
        self.outlook = Outlook(
            min(blocks + more, self.design.blocks), "at most " if usable + more >= self.design.blocks else "about "
        )
        left = format_roughly(more * (self.pace.block_seconds or 0.0) / self.at_once)
        self.say(f"{self.outlook.how}{count(more, 'more block')}, {left}")

    def out_of_time(self) -> StopReason:
        """Whether a further block would end after the budget."""
        budget, length = self.design.budget_seconds, self.pace.block_seconds
        if budget is None or length is None:
            return ""  # the first block always runs
        return "budget" if self.pace.seconds + length > budget else ""
