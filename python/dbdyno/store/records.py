"""What a run folder holds, as plain values: the only thing analysis and report ever see.

Nothing here reads or writes; ``run_folder`` does.
"""

from dataclasses import dataclass, field
from typing import Any

from dbdyno.model.cut import Cut
from dbdyno.model.design import Design, StopReason
from dbdyno.store.reported import Prices, ReportedTable

NOT_GRANTED = "not_granted"  # in what a trial read back of its server: settings that it has in name only


@dataclass(frozen=True)
class Trial:
    """A finished trial. ``metrics`` are scalars in the unit that ends their name."""

    id: str
    block: int  # 1-based
    attempt: int  # 1-based; a block with a failed trial is repeated whole under the next attempt
    position: int  # 1-based place in the run order of its block
    treatment: str  # treatment id
    started_at: str  # ISO 8601, UTC
    metrics: dict[str, float]
    observed: dict[str, dict[str, Any]] = field(default_factory=dict)  # layer -> what was read back
    load: dict[str, Any] = field(default_factory=dict)  # the load generator's result, as stored
    probes: dict[str, dict[str, Any]] = field(default_factory=dict)  # probe -> {"cpu_seconds", "samples", ...}
    device: dict[str, Any] = field(default_factory=dict)  # the emulated disk's own figures, if any
    seconds: dict[str, float] = field(default_factory=dict)  # phase -> wall clock
    space: dict[str, Any] = field(default_factory=dict)  # of the filesystem after the load: free room, fragmentation
    disturbance: dict[str, Any] = field(default_factory=dict)  # what others did to the host meanwhile
    block_trace: dict[str, Any] = field(default_factory=dict)  # its figures, or {"none": why there are none}
    smart: dict[str, Any] = field(default_factory=dict)  # disk -> {"before": figures or why unknown, "after": ...}
    image: str = ""  # names the prepared data that it began with; empty where nothing was prepared
    image_sha256: str = ""  # of its bytes; empty where they were not kept
    awake: dict[str, Any] = field(default_factory=dict)  # what kept processors awake, CPU seconds it took for that
    server_variables: dict[str, str] = field(default_factory=dict)  # all that are settings; of the first block alone
    cuts: list[Cut] = field(default_factory=list)  # of a study of crash safety
    host_speed: dict[str, float] = field(default_factory=dict)  # what fixed work took just before and after the load
    host: str = ""  # under test, by its name; empty in a study on one host

    @property
    def disturbed(self) -> bool:
        """Whether others did more to the host than a result can bear."""
        return bool(self.disturbance.get("beyond"))


@dataclass(frozen=True)
class Failure:
    """A trial that failed; never part of a result, always shown."""

    id: str
    block: int
    attempt: int
    treatment: str
    cause: str
    host: str = ""  # as of a trial


@dataclass(frozen=True)
class Run:
    """Everything a run folder says, apart from its series."""

    title: str
    question: str
    design: Design
    trials: list[Trial]  # finished, in run order, void blocks included
    failures: list[Failure]
    host: dict[str, Any]  # where ``dbdyno run`` was typed; of a study on one host, what was measured
    versions: dict[str, str]
    ended: str  # "done", "interrupted", "failed", "running"
    notes: list[str]  # deviations in plain words, e.g. why a block was repeated
    setup: str = ""  # what all treatments have in common: "kind slap, load write, clients 10, ..."
    stopped: StopReason = ""
    study: dict[str, Any] = field(default_factory=dict)  # section -> field -> value or levels, as the study gave it
    dropped: frozenset[str] = frozenset()  # treatments that failed again and again and were left out from then on
    extended_from: int | None = None  # blocks there were when a finished run was begun to be extended
    expect: str = ""  # what the author of the study expected, in prose
    scale: str = ""  # of the study's scales; empty: as the study stands
    reported: list[ReportedTable] = field(default_factory=list)  # what others published of it
    study_file: str = ""  # the study file's name and text; empty for a folder that does not hold them
    study_text: str = ""
    prices: Prices | None = None  # what its devices cost, if the study says so
    hosts: dict[str, dict[str, Any]] = field(default_factory=dict)  # host under test -> its facts, as of ``host``

    @property
    def is_simulated(self) -> bool:
        """Whether its stacks are simulated: a kernel is named. All are, or none is."""
        bodies = [self.study, *_tables(self.study.get("levels"))]
        return any("kernel" in stack for body in bodies for stack in _tables({"stack": body.get("stack")}))


def _tables(of: object) -> list[dict[str, Any]]:
    return [one for one in of.values() if isinstance(one, dict)] if isinstance(of, dict) else []
