"""A power cut, and what was found after it: what crash trials store and safety verdicts are drawn from."""

from dataclasses import dataclass, field
from typing import Literal, get_args

Outcome = Literal["filesystem", "server", "table", "inconsistent", "tail", "nothing"]
"""What was found, worst first: the filesystem needs repair; the server does not start; a table needs repair; a hole, or
something torn, wrong or never asked for; the newest commits are lost; nothing is lost."""
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

OUTCOME_WORDS: dict[Outcome, str] = {
    "filesystem": "the filesystem needs repair",
    "server": "the server does not start",
    "table": "a table needs repair",
    "inconsistent": "data is inconsistent (commits in part, wrong, or gone while later ones are there)",
    "tail": "the newest commits are lost",
    "nothing": "nothing is lost",
}

When = Literal["uniform", "ack", "flush", "page-write", "ddl", "recovery"]
"""When the power is cut: at a random time; right after a commit was acknowledged; in a FLUSH in flight; in a write
of a data page or of the doublewrite buffer; right after a DDL statement; during the recovery from another cut."""
WHEN: tuple[When, ...] = get_args(When)

Survivors = Literal["none", "random-512", "random-4096", "prefix", "requests", "versions", "lying"]
"""What is left of writes that no FLUSH made durable: nothing; a random part of the sectors of that size; all up to a
random time; a random part of the requests, each whole; of each sector a random one of its versions; and of a drive that
lies about FLUSH, all but what it held back."""
SURVIVORS: tuple[Survivors, ...] = get_args(Survivors)

CrashMode = Literal["power", "kill", "failover"]
"""The power of the disk is cut; or only the server is killed, and the page cache survives; or the server is killed for
good, and its replica takes over."""

Keep = Literal["none", "worst", "all"]
"""Which broken states are kept: none, of each treatment one with the worst outcome, or all that lost anything."""

BOUND_MOST = 0.10  # a bound beyond it says too little for "no loss seen"
RUNS_LEAST = 29  # of a treatment, none of which lost anything, for a bound of 10 %: 1 - .05^(1/29) = 9.8 %


@dataclass(frozen=True)
class Cut:
    """One power cut, kill of the server or failover, and what was found after it.

    Transactions are counted as of the moment of the cut: ``acked`` before it; ``unknown``: sent, not answered by then.
    """

    id: str  # of its trial: "c1", "c2", ...
    mode: CrashMode
    when: When
    survivors: Survivors | None  # none is drawn of a killed server
    seed: int  # that the survivors were drawn by
    at_s: float  # seconds since measuring began
    outcome: Outcome
    acked: int
    unknown: int = 0
    lost: int = 0  # acknowledged, and gone
    holes: int = 0  # of these: younger ones are there
    ghost: int = 0  # there, though refused or never sent
    torn: int = 0  # there in part
    wrong: int = 0  # there, with other values
    lost_ms: float | None = None  # from the acknowledgement of the oldest one lost to the cut; None: none is lost
    unflushed_bytes: int = 0  # written and not durable at the cut
    limit_reached: bool = False  # more was unflushed than is kept track of: losses may be larger
    recovery_s: dict[str, float] = field(default_factory=dict)  # step -> seconds: mount, check, server, verify
    cause: str = ""  # in words: why it does not mount, start, ...; empty where nothing is lost
    kept: str = ""  # the state's folder within the trial's, if it was kept as evidence
    kept_sha256: str = ""  # of the list of checksums in that folder; empty: kept by a version that wrote none

    @property
    def is_loss(self) -> bool:
        """Whether anything acknowledged was lost or spoiled."""
        return self.outcome != "nothing"
