"""How a run is laid out and judged, and kernels by name: what study, plan, run, analysis and report share."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal

# A combination of factor levels, and what it is called.


@dataclass(frozen=True)
class Treatment:
    """One combination of factor levels, e.g. ``{"device": "hdd-7200", "scheduler": "none"}``."""

    id: str  # "t1", "t2", ... in the order of the study file
    levels: dict[str, str]  # factor name -> level as written in the study; empty if the study has no factor

    @property
    def label(self) -> str:
        """Levels joined for display, e.g. ``"hdd-7200 / none / clients 10"``: what is no word goes by its factor."""
        return " / ".join(level_label(*factor_level) for factor_level in self.levels.items()) or "as written"

    def label_without(self, factor: str) -> str:
        """The label of all levels but that of one factor."""
        return Treatment("", {name: level for name, level in self.levels.items() if name != factor}).label


def level_label(factor: str, level: str) -> str:
    """Return a level, with its factor's name where it can't stand without: ``"ext4"``, ``"clients 10"``.

    No text at all, such as no options, is the default.
    """
    if not level:
        return f"{factor} default"
    return level if level[:1].isalpha() and level not in {"true", "false"} else f"{factor} {level}"


ALPHA = 0.05  # error allowed to each family of comparisons
HOSTS_MIN = 3  # of which anything is said of hosts like these
HOSTS_OF_LEVEL_MIN = 4  # of what is fixed to hosts: 3 against 3 can't reach p = .05 by rank sum
TREATMENTS_MAX = 256  # a block is every one of them
BLOCKS_MAX = 1000
TRIALS_MAX = 20_000  # that a run is planned with; its event log and its report grow with them
MIN_BLOCKS = 6  # with 5 the exact tests reach p = .0625 at best

# Of a study's section ``workload`` what somebody chooses: what tables are like, and not what is asked of them.
CHOSEN = frozenset({"table_options"})

AS_STANDS = "the study as it stands"  # what a named level is that gives nothing

Until = Literal["blocks", "decided", "precise", "open"]
Interference = Literal["repeat", "note"]  # what is done about a trial that met it: its block anew, or a note
Settle = float | Literal["trial"]  # a rest of so many seconds before each trial's load, or an unmeasured trial
StopReason = Literal["", "blocks", "decided", "precise", "budget"]  # "": measuring goes on, or was cut off


@dataclass(frozen=True)
class Comparison:
    """A planned comparison: ``level`` against ``baseline``, both treatment ids."""

    baseline: str
    level: str


@dataclass(frozen=True)
class Factor:
    """What varies between treatments, e.g. ``device`` of the study's section ``stack``."""

    name: str  # a key of ``Treatment.levels``
    section: str  # "stack", "queue", "server.settings", "workload", ...; "levels" of named levels over several
    levels: list[str]  # in the order of the study file
    hard_to_change: bool = False  # varied between whole plots, not between trials
    gives: dict[str, dict[str, str]] | None = None  # of named levels: level -> field with its section -> value
    groups: dict[str, str] | None = None  # of the loads of a suite: level -> its group; empty where it is in none
    after: dict[str, str] | None = None  # of the loads of a suite: level -> the load on whose tables it goes on

    @property
    def is_load(self) -> bool:
        """Whether it is a circumstance, which nobody chooses: all that it gives belongs to the load."""
        fields = {field for level_fields in (self.gives or {}).values() for field in level_fields}
        places = (name.rpartition(".") for name in fields or {f"{self.section}.{self.name}"})
        return all(
            section.split(".")[0] in {"workload", "beside"} and name not in CHOSEN for section, _, name in places
        )

    def chains(self) -> list[list[str]]:
        """Return the loads of a suite that go on from one another, in their order; none stands alone."""
        rows: dict[str, list[str]] = {}  # by the last
        for level in self.levels:
            before = (self.after or {}).get(level)
            rows[level] = [*(rows.pop(before) if before else []), level]
        return [row for row in rows.values() if len(row) > 1]

    def said(self) -> list[str]:
        """Return what each named level gives: ``"vendor: innodb_flush_method O_DIRECT, scheduler none"``.

        Nothing of a suite's loads, each of which is the file of its name.
        """
        if self.groups is not None:
            return []
        named = {
            level: [f"{field.rpartition('.')[2]} {value}" for field, value in fields.items()]
            for level, fields in (self.gives or {}).items()
        }
        return [f"{level}: {', '.join(fields) or AS_STANDS}" for level, fields in named.items()]

    def differing(self, level: str, other_level: str) -> tuple[tuple[str, str], ...]:
        """Return what differs between two levels: (section, field) of each."""
        if level == other_level:
            return ()
        if not self.gives:
            return ((self.section, self.name),)
        first, second = self.gives.get(level, {}), self.gives.get(other_level, {})
        fields = [name for name in {**first, **second} if first.get(name) != second.get(name)]
        return tuple((section, name) for section, _, name in (field.rpartition(".") for field in fields))


@dataclass(frozen=True)
class SameTreatment:
    """What an A/A run ran under both of its labels."""

    treatment: str  # its label in its own study
    comparisons: int  # of that study, which share its 5 %; 1 where it has none


@dataclass(frozen=True)
class Disk:
    """A real disk, as a study names it."""

    device: str
    serial: str | None = None  # where the name does not hold it


@dataclass(frozen=True)
class Fleet:
    """The hosts that a study is run on, each with whole blocks of its own.

    ``levels`` has what is fixed to hosts, such as the drive in each: factor -> host -> level. No treatment varies it,
    so it is compared between hosts. ``disks`` has the real disk of each host, in a study on such.
    """

    hosts: list[str]  # names of the inventory, in the order of the study file
    levels: dict[str, dict[str, str]] = field(default_factory=dict)
    disks: dict[str, Disk] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ``ValueError`` where there is no host, or a level is given to one that is not there."""
        if not self.hosts:
            raise ValueError("hosts is empty")
        for factor, of in self.levels.items():
            if strange := of.keys() - set(self.hosts):
                raise ValueError(f"levels.{factor} names {min(strange)}, which is not under test")


@dataclass(frozen=True)
class FailIf:
    """What a study wants to fail: a difference of so much or more, a loss, and, unless it may pass, what stays open."""

    slower: float | None = None  # a relative difference: .05 for 5 %; None: it may be
    faster: float | None = None
    unsafe: bool = False
    undecided: Literal["fail", "pass"] = "fail"


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
    interference: Interference = "note"
    secondary_metrics: list[str] = field(default_factory=list)  # exploratory
    steadiness: bool = False  # whether verdicts on steadiness are asked for
    factors: list[Factor] = field(default_factory=list)
    aa: SameTreatment | None = None  # of an A/A run: its treatments differ in nothing but their labels
    settle: Settle = 0.0  # what comes between two trials, so that the one leaves less for the other
    unit: str = ""  # what the figure of a program of the user's own is called
    control: Treatment | None = None  # of a crash study: run in every block, known to lose, compared with nothing
    fleet: Fleet | None = None  # of a study on several hosts
    fail_if: FailIf | None = None

    @property
    def tried(self) -> list[Treatment]:
        """Return all treatments that every block tries: also a control that is no treatment of the study."""
        alone = self.control is not None and self.control not in self.treatments
        return [*self.treatments, self.control] if self.control and alone else self.treatments

    @property
    def factor_of_loads(self) -> Factor | None:
        """Return the factor that is a suite's loads, which are not compared with each other; None of what is none."""
        return next((factor for factor in self.factors if factor.groups is not None), None)

    def steps(self) -> list[list[str]]:
        """Return the treatments that are run one after the other on the same tables, as rows; most are a row alone."""
        loads = self.factor_of_loads
        after = (loads.after or {}) if loads else {}
        rows: dict[tuple[str, str], list[str]] = {}  # by the last load and all other levels
        for treatment in self.tried:  # a load stands behind the one that it goes on from
            load = treatment.levels.get(loads.name, "") if loads else treatment.id
            rest = treatment.label_without(loads.name) if loads else ""
            row = rows.pop((after[load], rest)) if load in after else []
            rows[load, rest] = [*row, treatment.id]
        return list(rows.values())

    def parts(self) -> list[frozenset[str]]:
        """Return the parts of a block, as treatments: those of one are compared with each other, or share tables.

        A part is run in one go and repeated as a whole. A suite has one for each load, or for loads that go on from one
        another; every other block is a single part.
        """
        loads = self.factor_of_loads
        if loads is None:
            return [frozenset(treatment.id for treatment in self.tried)]
        first = {load: chain[0] for chain in loads.chains() for load in chain}
        parts: dict[str, set[str]] = {}
        for treatment in self.tried:
            load = treatment.levels[loads.name]
            parts.setdefault(first.get(load, load), set()).add(treatment.id)
        return [frozenset(part) for part in parts.values()]

    def part_of(self, treatment: str) -> frozenset[str]:
        """Return the part of a block that a treatment is in."""
        return next(part for part in self.parts() if treatment in part)

    def part_label(self, part: Collection[str]) -> str:
        """Return what a part of a block is called: the suite's loads in it; empty where a block is a single part."""
        loads = self.factor_of_loads
        if loads is None:
            return ""
        return ", ".join(dict.fromkeys(t.levels[loads.name] for t in self.tried if t.id in part))

    @property
    def labels(self) -> dict[str, str]:
        """Treatment id -> label, the control's too."""
        return {treatment.id: treatment.label for treatment in self.tried}


# Kernels by the names that a study gives them: those that a virtual machine boots, and those that are simulated.


BOOTED_KERNELS = ("debian-5.10", "debian-6.1", "debian-6.12", "debian-7.2")  # that dbdyno gets; others go by their path
BOOTED = "booted"  # the kind of stack that they are the kernel of
IMAGE = "image"  # the kind of stack that is a machine of the user's own, booted from its disk image
BUSES = ("virtio", "scsi", "ahci", "nvme")  # by which a virtual machine has its disk


def is_booted(kernel: object) -> bool:
    """Whether a kernel of a study is one that a virtual machine boots; else it is simulated."""
    return isinstance(kernel, str) and kernel.startswith(("debian-", "/"))
