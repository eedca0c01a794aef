"""What a run folder holds, as plain values: the only thing analysis and report ever see.

Nothing here reads or writes; ``run_folder`` does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

from dbdyno.model.cut import Cut
from dbdyno.model.design import Design, StopReason, is_booted
from dbdyno.model.disks import disk_names
from dbdyno.model.results import BlockTrace, DiskFigures, LoadRun, Outcome
from dbdyno.store.reported import Prices, ReportedTable

Health = dict[str, float | bool] | str  # of a disk: its figures, or why they are unknown
Observed = dict[str, dict[str, Any]]  # layer -> what was read back of it; each layer has names of its own


class LoadPart(TypedDict, total=False):
    """What the judged load did in a part of the measured time."""

    seconds: float
    events_per_second: float
    latency_ms_mean: float | None
    latency_ms_p99: float | None  # the median of the 99th percentiles of its tenths of a second
    latency_ms_max: float | None


class LoadBeside(TypedDict, total=False):
    """What a load beside the judged one came to; a figure that it does not report is left out."""

    kind: str
    began_s: float  # since measuring began
    seconds: float  # that it ran
    stopped: bool  # whether it still ran when measuring ended
    figures: dict[str, float]  # "megabytes", "rows", "errors", and those of ``model.metrics.METRICS``
    program: str  # that offered it, where that is not dbdyno's own
    version: str
    during: LoadPart  # the judged load while it ran
    outside: LoadPart  # the judged load before and after


class TrialLoad(LoadRun, total=False):
    """What a load came to.

    A program of others reports but some of it, and may report more. Its ``version`` is a text.
    """

    second_half_ratio: float | None  # rate of the second half of the run over that of the first
    steps: dict[str, dict[str, float]]  # metric -> what its figures come in
    simulated: Outcome  # of a simulated stack, without histograms and series
    beside: dict[str, LoadBeside]  # loads beside it, by name


class CacheFigures(TypedDict, total=False):
    """What a cache before a disk did during the load; shares are from 0 to 1."""

    waiting_share: float  # of its blocks: still to be written to the disk behind it when the load ended
    read_hit_share: float  # of the blocks read: those that it answered; left out where none was, or nobody counted


class TrialDevice(DiskFigures, total=False):
    """An emulated disk's own figures; of several below one filesystem those of the slowest, and each."""

    disks: list[DiskFigures]
    rebuilt_share: float  # of an array that was rebuilding: how much of it was done when the load ended, from 0 to 1
    cache: CacheFigures  # of a cache before the disk
    named: dict[str, DiskFigures]  # by name: those of [stack.disks]


class ProbeCost(TypedDict, total=False):
    """What a probe took and gave."""

    cpu_seconds: float
    cpu_percent: float | None  # of one core, while it ran
    outside_cpu_percent: float  # of others' processor time
    samples: int  # in the measured window
    missed: int


class Space(TypedDict, total=False):
    """A filesystem after the load."""

    size_bytes: int
    free_bytes: int
    files: int  # data files of 1 MiB and more
    extents: int | None
    extents_per_GiB: float | None


class Disturbance(TypedDict, total=False):
    """What others did to the host while it was measured."""

    beyond: list[str]  # what of it was beyond its limit
    stolen: float  # share of all processors
    foreign_cpu: float  # share of all processors
    foreign_io: float | None  # bytes per second
    limits: dict[str, float]
    cores: int
    others: dict[str, float]  # process -> cores that it used
    pressure: dict[str, float]
    in_guest: dict[str, float]  # foreign_cpu and pressure of a virtual machine, by its own account


class TrialBlockTrace(BlockTrace, total=False):
    """The figures of the block trace, or why there are none."""

    none: str  # why there are none
    why_not_kernel: str  # why they are of an emulated disk's own trace


class AwakeUse(TypedDict, total=False):
    """What kept processors awake."""

    by: str
    cpus: str
    cpu_seconds: float  # that it took in the measured window


NO_EFFECT = "no_effect"  # in what a trial read back: settings that change nothing on its host, each with the reason
NOT_GRANTED = "not_granted"  # in what a trial read back of its server or tables: what it has in name only
TABLE_OPTIONS = "table_options"  # among these, what CREATE TABLE was given


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
    observed: Observed = field(default_factory=dict)
    load: TrialLoad = field(default_factory=TrialLoad)
    probes: dict[str, ProbeCost] = field(default_factory=dict)
    device: TrialDevice = field(default_factory=TrialDevice)  # empty where no disk is emulated
    seconds: dict[str, float] = field(default_factory=dict)  # phase -> wall clock
    space: Space = field(default_factory=Space)
    disturbance: Disturbance = field(default_factory=Disturbance)
    block_trace: TrialBlockTrace = field(default_factory=TrialBlockTrace)
    smart: dict[str, dict[str, Health]] = field(default_factory=dict)  # disk -> "before" and "after" -> its health
    image: str = ""  # names the prepared data that it began with; empty where nothing was prepared
    image_sha256: str = ""  # of its bytes; empty where they were not kept
    awake: AwakeUse = field(default_factory=AwakeUse)
    server_variables: dict[str, str] = field(default_factory=dict)  # all that are settings; of the first block alone
    cuts: list[Cut] = field(default_factory=list)  # of a study of crash safety
    host_speed: dict[str, float] = field(default_factory=dict)  # what fixed work took just before and after the load
    host: str = ""  # under test, by its name; empty in a study on one host

    @property
    def has_emulated_cpu(self) -> bool:
        """Whether a virtual machine booted for it whose processor QEMU emulated: without KVM."""
        guest = self.observed.get("guest")
        return isinstance(guest, dict) and guest.get("accelerator") == "tcg"

    @property
    def disturbed(self) -> bool:
        """Whether others did more to the host than a result can bear."""
        return bool(self.disturbance.get("beyond"))


@dataclass(frozen=True)
class FailedTrial:
    """A trial that failed; never part of a result, always shown."""

    id: str
    block: int
    attempt: int
    treatment: str
    cause: str
    host: str = ""  # as of a trial


def processor_model(host: Mapping[str, Any]) -> str:
    """Return the name of a host's processor as its facts have it, which may be others' bytes; empty if not known."""
    cpu = host.get("cpu")
    return str(cpu.get("model") or "") if isinstance(cpu, dict) else str(cpu or "")


@dataclass(frozen=True)
class Run:
    """Everything a run folder says, apart from its series."""

    title: str
    question: str
    design: Design
    trials: list[Trial]  # finished, in run order, void blocks included
    failures: list[FailedTrial]
    host: dict[str, Any]  # where ``dbdyno run`` was typed; of a study on one host, what was measured
    versions: dict[str, str]
    ended: str  # "done", "interrupted", "failed", "running"
    notes: list[str]  # deviations in plain words, e.g. why a block was repeated
    setup: str = ""  # what all treatments have in common: "kind slap, load write, clients 10, ..."
    stopped: StopReason = ""
    failure: str = ""  # that ended the run, if it failed and the log says which
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
    imported: bool = False  # it was measured elsewhere, and shared without names

    @property
    def is_simulated(self) -> bool:
        """Whether its stacks are simulated: a kernel is named that no machine boots. All are, or none is."""
        bodies = [self.study, *_tables(self.study.get("levels"))]
        stacks = [stack for body in bodies for stack in _tables({"stack": body.get("stack")}) if "kernel" in stack]
        kernels = (kernel for stack in stacks for kernel in _as_list(stack["kernel"]))
        return bool(stacks) and not any(map(is_booted, kernels))

    @property
    def disk_names(self) -> list[str]:
        """The disks beside that of the data on which any of its trials stood."""
        return list(dict.fromkeys(name for trial in self.trials for name in disk_names(trial.observed)))


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _tables(of: object) -> list[dict[str, Any]]:
    return [table for table in of.values() if isinstance(table, dict)] if isinstance(of, dict) else []
