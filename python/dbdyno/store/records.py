"""What a run folder holds, as plain values: the only thing analysis and report ever see.

Nothing here reads or writes; ``run_folder`` does.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from dbdyno.store.prices import Prices
    from dbdyno.store.reported import ReportedTable

Until = Literal["blocks", "decided", "precise", "open"]
Disturbed = Literal["repeat", "note"]  # what is done about a disturbed trial: its block anew, or no more than a note
Why = Literal["", "blocks", "decided", "precise", "budget"]  # measuring stopped; "": it goes on, or was cut off


@dataclass(frozen=True)
class Treatment:
    """One combination of factor levels, e.g. ``{"device": "hdd-7200", "scheduler": "none"}``."""

    id: str  # "t1", "t2", ... in the order of the study file
    levels: dict[str, str]  # factor name -> level as written in the study; empty if the study has no factor

    @property
    def label(self) -> str:
        """Levels joined for display, e.g. ``"hdd-7200 / none / clients 10"``: what is no word goes by its factor."""
        words = (level if is_word(level) else f"{name} {level}" for name, level in self.levels.items())
        return " / ".join(words) or "as written"


def is_word(level: str) -> bool:
    """Return whether a level can stand without its factor's name: "ext4" can, "10" and "true" can't."""
    return level[:1].isalpha() and level not in {"true", "false"}


@dataclass(frozen=True)
class Comparison:
    """A planned comparison: ``level`` against ``baseline``, both treatment ids."""

    baseline: str
    level: str


@dataclass(frozen=True)
class Factor:
    """What varies between treatments, e.g. ``device`` of the study's section ``stack``."""

    name: str  # a key of ``Treatment.levels``
    section: str  # "stack", "queue", "filesystem", "server.settings", "workload"
    levels: list[str]  # in the order of the study file
    hard_to_change: bool = False  # varied between whole plots, not between trials


@dataclass(frozen=True)
class SameTreatment:
    """What an A/A run ran under both of its labels."""

    treatment: str  # its label in its own study
    comparisons: int  # of that study, which share its 5 %; 1 where it has none


@dataclass(frozen=True)
class Design:
    """How the run was laid out and how its verdicts are to be drawn.

    ``until`` says when measuring stops: after ``blocks``; when every comparison is ``decided`` or its interval
    ``precise``, at the planned looks and after ``blocks`` at the latest; or ``open``: looked at after every block, with
    intervals that allow it.
    """

    treatments: list[Treatment]
    baseline: str  # treatment id
    comparisons: list[Comparison]
    blocks: int  # at most, where ``until`` is another than "blocks"
    margin: float  # 0.03 for 3 %
    metric: str  # primary metric, a key of Trial.metrics
    seed: int
    until: Until = "blocks"
    half_width: float | None = None  # that makes an interval precise: 0.02 for 2 %
    budget_seconds: float | None = None  # no block is begun that would end after it
    disturbed: Disturbed = "note"
    screened: list[str] = field(default_factory=list)  # further metrics to judge, as screening only
    steadiness: bool = False  # whether verdicts on steadiness are asked for
    factors: list[Factor] = field(default_factory=list)
    aa: SameTreatment | None = None  # of an A/A run: its treatments differ in nothing but their labels
    unit: str = ""  # what the figure of a program of the user's own is called


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
    observed: dict[str, Any] = field(default_factory=dict)  # layer -> what was read back
    load: dict[str, Any] = field(default_factory=dict)  # the load generator's result, as stored
    probes: dict[str, Any] = field(default_factory=dict)  # probe -> {"cpu_seconds", "samples", ...}
    device: dict[str, Any] = field(default_factory=dict)  # the emulated disk's own figures, if any
    seconds: dict[str, float] = field(default_factory=dict)  # phase -> wall clock
    space: dict[str, Any] = field(default_factory=dict)  # of the filesystem after the load: free room, fragmentation
    disturbance: dict[str, Any] = field(default_factory=dict)  # what others did to the host meanwhile
    block_trace: dict[str, Any] = field(default_factory=dict)  # its figures, or {"none": why there are none}
    smart: dict[str, Any] = field(default_factory=dict)  # disk -> {"before": figures or why unknown, "after": ...}

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


@dataclass(frozen=True)
class Run:
    """Everything a run folder says, apart from its series."""

    title: str
    question: str
    design: Design
    trials: list[Trial]  # finished, in run order, void blocks included
    failures: list[Failure]
    host: dict[str, Any]
    versions: dict[str, str]
    ended: str  # "done", "interrupted", "failed", "running"
    notes: list[str]  # deviations in plain words, e.g. why a block was repeated
    setup: str = ""  # what all treatments have in common: "kind slap, load write, clients 10, ..."
    stopped: Why = ""
    study: dict[str, Any] = field(default_factory=dict)  # section -> field -> value or levels, as the study gave it
    extended_from: int | None = None  # blocks there were when a finished run was begun to be extended
    expect: str = ""  # what the author of the study expected, in prose
    scale: str = ""  # of the study's scales; empty: as the study stands
    reported: "list[ReportedTable]" = field(default_factory=list)  # what others published of it
    study_file: str = ""  # the study file's name and text; empty for a folder that does not hold them
    study_text: str = ""
    prices: "Prices | None" = None  # what its devices cost, if the study says so


# Metrics that a trial may carry, and whether more is better. Names end in their unit.
METRICS: dict[str, bool] = {
    "queries_per_second": True,
    "events_per_second": True,
    "rows_per_second": True,
    "megabytes_per_second": True,
    "iops": True,
    "seeks_per_second": True,
    "write_megabytes_per_second": True,
    "rewrite_megabytes_per_second": True,
    "read_megabytes_per_second": True,
    "file_creates_per_second": True,
    "file_stats_per_second": True,
    "file_deletes_per_second": True,
    "figure_more": True,
    "figure_less": False,
    "achieved_ratio": True,
    "seconds_real": False,
    "seconds_user": False,
    "seconds_sys": False,
    "latency_ms_mean": False,
    "latency_ms_p50": False,
    "latency_ms_p95": False,
    "latency_ms_p99": False,
    "latency_ms_p999": False,
    "latency_ms_max": False,
    "client_cpu_us_per_query": False,
    "server_cpu_us_per_query": False,
    "written_bytes_per_query": False,
    "read_bytes_per_query": False,
    "errors": False,
    "reconnects": False,
    # Of the block trace, reads and writes together.
    "queue_ms_mean": False,
    "queue_ms_p99": False,
    "device_ms_mean": False,
    "device_ms_p99": False,
    "flush_ms_mean": False,
    "seek_bytes_mean": False,
    "sorted_run_requests_mean": True,
    "device_depth_mean": True,
}

# Metrics that are looked at beside the primary one unless the study names others.
SCREENED = (
    "queries_per_second",
    "latency_ms_p99",
    "client_cpu_us_per_query",
    "server_cpu_us_per_query",
    "written_bytes_per_query",
)
