"""``[crash]``: a study of what power cuts, or kills of the server, leave of acknowledged commits."""

from typing import Annotated, TypeVar

from pydantic import AfterValidator, Field, StrictInt

from dbdyno.model.cut import CrashMode, Keep, Survivors, When
from dbdyno.study.section import Section
from dbdyno.study.units import Duration

CUTS = 300  # of 30 runs: nothing lost in them shows at most 9.5 %, with 95 % confidence
CUTS_PER_RUN = 10
_UNIFORM: list[When] = ["uniform"]
_RANDOM: list[Survivors] = ["random-4096"]

Word = TypeVar("Word", bound=str)


def _some(values: list[Word]) -> list[Word]:
    if not values:
        raise ValueError("is an empty list; name at least one")
    if twice := next((one for place, one in enumerate(values) if one in values[:place]), None):
        raise ValueError(f'names "{twice}" twice')
    return values


class CrashSection(Section):
    """``[crash]``: what is cut, and how often; with it, treatments are judged by what they lose.

    Nothing of it can be a factor.
    """

    mode: CrashMode = "power"
    """`power`: the power of the emulated disk is cut, with what no FLUSH has made durable. `kill`: only the server is
    killed, once a trial, and the page cache survives: a weaker test, and the only one on a device that is not emulated.
    """
    cuts: Annotated[StrictInt, Field(ge=1, le=100_000)] = CUTS
    """Cuts of each treatment that are examined, all kinds of cut together. They decide the number of blocks: nothing
    lost in 29 trials shows at most 10 %, in 59 at most 5 %, in 299 at most 1 %.
    """
    cuts_per_run: Annotated[StrictInt, Field(ge=1, le=100)] | None = None
    """Cuts of one trial: 10 if not given, and with `mode = "kill"` 1. They share one load, so what is shown
    goes by trials.
    """
    when: Annotated[list[When], AfterValidator(_some)] = _UNIFORM
    """When the power is cut. `uniform`: at a random time of the load. `ack`: right after a commit was acknowledged.
    `flush`: while a FLUSH is in flight. `page-write`: in a write of a data page or of the doublewrite buffer. `ddl`:
    right after a DDL statement, with `workload.ddl`. `recovery`: during the recovery from another cut.
    """
    survivors: Annotated[list[Survivors], AfterValidator(_some)] = _RANDOM
    """What is left of the writes that no FLUSH made durable. `none`: nothing. `random-512`, `random-4096`: a random
    part of the sectors of that size. `prefix`: all up to a random time. `requests`: a random part of the requests, each
    whole. `versions`: of each sector a random one of its versions. `lying`: of a drive that lies about FLUSH, all but
    what it held back. Each of `when` is combined with each of these.
    """
    hold: Annotated[Duration, Field(ge=0.001, le=10)] | None = None
    """With `lying`: how long the drive holds back what it said to have flushed; 100 ms if not given."""
    recovery_limit: Annotated[Duration, Field(ge=1, le=3600)] = 60.0
    """Of each step of recovery, such as the start of the server; one that takes longer counts as failed."""
    keep: Keep = "worst"
    """Which broken states stay in the run folder as evidence. `none`; `worst`: of each treatment one with the worst
    outcome so far; `all`: every one that lost anything. `dbdyno crash keep` copies one out.
    """

    @property
    def cuts_each(self) -> int:
        """Cuts of one trial."""
        return self.cuts_per_run or (CUTS_PER_RUN if self.mode == "power" else 1)

    @property
    def blocks(self) -> int:
        """How many trials of each treatment that takes."""
        return -(-self.cuts // self.cuts_each)

    @property
    def hold_seconds(self) -> float:
        """How long a drive that lies holds back; 0 where none does."""
        return (self.hold or 0.1) if "lying" in self.survivors else 0.0

    @property
    def strata(self) -> list[tuple[When, Survivors | None]]:
        """The kinds of cut, in the order in which a trial takes them; nothing is drawn of a killed server."""
        if self.mode == "kill":
            return [(when, None) for when in self.when]
        return [(when, survivors) for when in self.when for survivors in self.survivors]

    def stratum(self, cut: int, block: int) -> tuple[When, Survivors | None]:
        """The kind of the cut of that number, from 0, in a trial of that block: rotated, so that all come alike."""
        return self.strata[((block - 1) * self.cuts_each + cut) % len(self.strata)]
