"""From a study to its plan: treatments, comparisons and blocks; control, prices, published tables, what is foreseen."""

import hashlib
import json
import secrets
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations, pairwise
from math import inf
from pathlib import Path
from typing import Any

from dbdyno._native import device_models
from dbdyno.analysis.planned_looks import smallest_p
from dbdyno.errors import HostError, UserError
from dbdyno.model.cut import BOUND_MOST, RUNS_LEAST, CrashMode
from dbdyno.model.design import (
    HOSTS_MIN,
    HOSTS_OF_LEVEL_MIN,
    MIN_BLOCKS,
    TRIALS_MAX,
    Comparison,
    Design,
    Disk,
    Factor,
    FailIf,
    Fleet,
    Interference,
    SameTreatment,
    Treatment,
)
from dbdyno.model.disks import DATA_DISK
from dbdyno.model.similar import did_you_mean
from dbdyno.model.wording import drive_bytes, listed
from dbdyno.mysql.settings import (
    ARIA,
    BINARY_LOG,
    BUFFER_POOL,
    CLUSTER_SETTINGS,
    FLUSH_LOG,
    INNODB,
    MYISAM,
    REDO,
    ROCKSDB,
    ROCKSDB_FLUSH_LOG,
    setting_bytes,
)
from dbdyno.plan.order import Slot, drawn, seed_of_host, slots_of
from dbdyno.plan.stop_rule import StopRule
from dbdyno.store.header import Header
from dbdyno.store.records import Run
from dbdyno.store.reported import DevicePrice, Prices, ReportedClaim, ReportedRow, ReportedTable
from dbdyno.study.defaults import DEFAULT_AA_BLOCKS
from dbdyno.study.document import Setting, WorkloadSection
from dbdyno.study.drives import drive_files, is_real, resolved_drive
from dbdyno.study.load import names_of
from dbdyno.study.reported import fitting, pairs
from dbdyno.study.schema import (
    ClaimSection,
    ClusterSection,
    CostSection,
    CrashSection,
    DeviceCostSection,
    ReplicaSection,
    ReportedSection,
    RowSection,
    ServerSection,
    StudyCost,
    TrialSpec,
)
from dbdyno.study.study import Study
from dbdyno.study.units import format_bytes, level_label
from dbdyno.study.workloads import BonnieSection, FioSection, GeneratedSection
from dbdyno.system.files import SCRIPT_LIMIT_BYTES, file_sha256, read_text

# The positive control of a crash study: a treatment known to lose, so that "nothing was lost" can be believed.


ID = "control"
_LATE_LOG = "its log is written and synced once a second, not at commit"
REDO_BYTES_MIN = 64 * 1024**2  # with 8 MiB the control lost in 5 of 8 cuts at 7,000 transactions a second
_ON_THE_WAY = "a commit is acknowledged while it is still on the long way to the replica"
FAR_SECONDS = 0.05  # of 200 commits a second, one at least is of the last 25 ms in 99 % of failovers
_UNSYNCED = (MYISAM, ARIA)  # engines whose tables are files that no commit syncs, or not for long


@dataclass(frozen=True)
class PlannedControl:
    """What is run in every block beside the treatments, unless one of them is the same."""

    treatment: Treatment
    spec: TrialSpec
    why: str  # it loses, in words

    def doubt(self) -> str:
        """Return why it may lose too seldom to be a control; nothing where it will not."""
        settings = self.spec.server.settings
        for name in REDO if settings.get(FLUSH_LOG) == 0 else ():
            if name in settings and _bytes_of(settings[name]) < REDO_BYTES_MIN:
                return (
                    f"server.settings.{name} is {settings[name]}: so small a log is synced all the time, whatever is "
                    f"asked for, so that the control may lose too seldom; give {REDO_BYTES_MIN >> 20}M or more"
                )
        return ""


def _bytes_of(value: Setting) -> float:
    """What the server makes of a size; infinite where it is none, of which the server will say so."""
    with suppress(ValueError):
        return setting_bytes(value)
    return inf


def control_of(treatments: Sequence[Treatment], specs: Mapping[str, TrialSpec], baseline: str) -> PlannedControl:
    """Return the control of a crash study: the baseline with what makes it lose, or a treatment that is just that."""
    base = specs[baseline]
    mode: CrashMode = base.crash.mode if base.crash else "power"
    spec, called, why = _losing(base, mode)
    same = next((treatment for treatment in treatments if specs[treatment.id] == spec), None)
    return PlannedControl(same or Treatment(ID, {ID: f"control ({called})"}), spec, why)


def _losing(base: TrialSpec, mode: CrashMode) -> tuple[TrialSpec, str, str]:
    """The baseline made to lose, what was done to it, and why it then loses."""
    if mode == "failover":
        of_base = base.server if base.has_replica else _with_replica(base.server)
        far = {"mode": "async", "round_trip": max(of_base.replica.round_trip, FAR_SECONDS)}
        server = of_base.model_copy(update={"replica": of_base.replica.model_copy(update=far)})
        return base.model_copy(update={"server": server}), f"async, round_trip = {far['round_trip']:g} s", _ON_THE_WAY
    engine = base.stack.engine.lower()
    if engine == ROCKSDB:
        return *_set(base, ROCKSDB_FLUSH_LOG), _LATE_LOG
    if engine in _UNSYNCED and mode == "power":
        stack = base.stack.model_copy(update={"engine": MYISAM})
        return base.model_copy(update={"stack": stack}), "MyISAM", "no statement syncs what it writes"
    if engine == INNODB:
        return *_set(base, FLUSH_LOG), _LATE_LOG
    # Whatever a file of another engine may keep when the server is killed, a log that is still in it is gone.
    changed, called = _set(base, FLUSH_LOG)
    stack = base.stack.model_copy(update={"engine": INNODB})
    return changed.model_copy(update={"stack": stack}), f"InnoDB, {called}", _LATE_LOG


def _with_replica(server: ServerSection) -> ServerSection:
    """The server of a cluster with a replica in place of the other nodes, on the disk of the second."""
    nodes = server.cluster
    beside = {"disk": (*nodes.own_disks, "")[0] or DATA_DISK, "round_trip": nodes.round_trip, "cpus": nodes.cpus}
    replica = ReplicaSection().model_copy(update=beside)
    settings = {name: value for name, value in server.settings.items() if name not in CLUSTER_SETTINGS}
    alone = {"cluster": ClusterSection(), "replica": replica, "settings": {**settings, BINARY_LOG: True}}
    return server.model_copy(update=alone)


def _set(base: TrialSpec, variable: str) -> tuple[TrialSpec, str]:
    settings = {**base.server.settings, variable: 0}
    server = base.server.model_copy(update={"settings": settings})
    return base.model_copy(update={"server": server}), f"{variable} = 0"


# What the study says its devices cost, with the treatments of this plan that stand on each.


def prices_in(cost: StudyCost | None, treatments: Sequence[Treatment], specs: Mapping[str, TrialSpec]) -> Prices | None:
    """The study's prices; ``None`` where it has no ``[cost]``."""
    if cost is None:
        return None
    return _prices(
        cost, {treatment.id: names_of(treatment.levels, specs[treatment.id].stack.device) for treatment in treatments}
    )


def prices_for(study: Study, run: Run) -> Prices:
    """The prices of a study file for a run made before. Raises ``UserError`` where it has none of its devices."""
    if study.cost is None:
        raise UserError(f"{study.path}: has no [cost]")
    stack = run.study.get("stack", {})
    device = stack.get("device")
    if stack.get("devices", 1) != 1:
        raise UserError(
            f"{study.path}: its [cost] counts one disk, but trials of this run stood on two (stack.devices)"
        )
    names = {
        treatment.id: names_of(treatment.levels, device if isinstance(device, str) else "")
        for treatment in run.design.treatments
    }
    prices = _prices(study.cost, names)
    if not prices.devices:
        known = ", ".join(sorted(set().union(*names.values()) - {""}))
        raise UserError(f"{study.path}: its [cost] names no device of this run; those are {known}")
    return prices


def _prices(cost: StudyCost, names: Mapping[str, set[str]]) -> Prices:
    """A device that no treatment stands on is left out; ``names`` are those of each treatment's device."""
    devices = [
        _device(name, device, [id_ for id_, device_names in names.items() if name in device_names], cost.common)
        for name, device in cost.devices.items()
    ]
    return Prices(
        currency=cost.common.currency,
        life_years=float(cost.common.life_years),
        used=cost.common.used,
        price_per_kwh=_float(cost.common.price_per_kwh),
        demand_per_second=_float(cost.common.queries_per_second),
        data_bytes=_float(cost.common.data),
        devices=[device for device in devices if device.treatments],
    )


def _device(name: str, device: DeviceCostSection, treatments: list[str], cost: CostSection) -> DevicePrice:
    replicas = cost.replicas if device.replicas is None else device.replicas
    idle = device.power_watts if device.power_watts_idle is None else device.power_watts_idle
    return DevicePrice(
        name=name,
        treatments=treatments,
        source=device.source,
        price=_float(device.price),
        drives=device.drives,
        data_drives=device.data_drives or device.drives,
        copies=1 + replicas,
        capacity_bytes=_float(device.capacity),
        endurance_bytes=_float(device.endurance),
        rated_write_amplification=float(device.rated_write_amplification),
        watts=_float(device.power_watts),
        watts_idle=_float(idle),
    )


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)


# Published tables, each figure and claim with the treatments of this plan that it is held against.


def reported_tables(study: Study, treatments: Sequence[Treatment], metric: str) -> list[ReportedTable]:
    """The study's published tables; ``metric`` is that of its verdicts, which a table is in unless it says another."""
    return [_table(study, table, treatments, metric) for table in study.reported]


def _table(study: Study, table: ReportedSection, treatments: Sequence[Treatment], metric: str) -> ReportedTable:
    return ReportedTable(
        source=table.source,
        setup=table.setup,
        metric=table.metric or metric,
        unit=table.unit,
        rows=[_row(study, row, treatments) for row in table.rows],
        claims=[_claim(study, claim, treatments) for claim in table.claims],
        differs_because=table.differs_because,
    )


def _row(study: Study, row: RowSection, treatments: Sequence[Treatment]) -> ReportedRow:
    candidates = fitting(study, row.levels)
    order = [factor.name for factor in study.factors]
    names = sorted(row.levels, key=lambda name: order.index(name) if name in order else len(order))
    unmeasured = Treatment("", {name: level_label(row.levels[name]) for name in names})
    treatment = _of(treatments, candidates[0]) if candidates else unmeasured
    return ReportedRow(treatment.label, row.as_, treatment.id, float(row.value), _float(row.min), _float(row.max))


def _claim(study: Study, claim: ClaimSection, treatments: Sequence[Treatment]) -> ReportedClaim:
    comparisons = [
        Comparison(_of(treatments, baseline).id, _of(treatments, treatment).id)
        for treatment, baseline in pairs(study, claim)
    ]
    limits = _float(claim.times_min), _float(claim.times_max)
    return ReportedClaim(claim.text, comparisons, claim.treatment is not None, claim.direction, *limits)


def _of(treatments: Sequence[Treatment], levels: Mapping[str, str]) -> Treatment:
    return next(treatment for treatment in treatments if treatment.levels == levels)


# Metrics that no verdict can come from under a load, as far as that can be foreseen.


def why_metric_is_useless(metric: str, specs: Iterable[TrialSpec]) -> str:
    """Return why ``metric`` can't be had, or is the same whatever is measured, and a remedy; empty if it will do."""
    for spec in specs:
        load = spec.workload
        if metric == "achieved_ratio" and not getattr(load, "rate", 0):
            return "there is no offered rate to compare with; give workload.rate, or judge by queries_per_second"
        if metric == "seconds_real" and load.seconds_bound:
            return "the time is given by workload.duration; give an amount instead, or judge by queries_per_second"
        if metric == "errors" and getattr(load, "ignore_errors", "none") == "none":
            return "a trial with an error fails; give workload.ignore_errors, or judge by another metric"
        if why := _not_reported(metric, load):
            return why
        if metric == "reconnects":
            return "a trial that loses a connection fails, so there are none; judge by another metric"
    return ""


def _not_reported(metric: str, load: WorkloadSection) -> str:
    """Whether the program that offers the load is known not to report this figure."""
    has_orders = metric != "new_orders_per_minute" or load.metric == metric
    if (load.REPORTS is None and has_orders) or metric in (load.REPORTS or ()):
        return ""
    return f"{load.kind} does not report it; judge by {load.metric}"


def cost_warning(specs: Iterable[TrialSpec]) -> str:
    """What of ``[cost]`` will stay unknown, and why; empty if nothing need be."""
    paced = any(getattr(spec.workload, name, 0) for spec in specs for name in ("rate", "think_time", "speed"))
    if not paced:
        return ""
    return (
        "what a query costs, sets for a demand and the break-even will be unknown of treatments that keep up: the load "
        "asks for a rate of its own, by rate, think_time or a log's times, which does not show what they can do at most"
    )


def page_cache_warning(spec: TrialSpec) -> str:
    """Return that a program may read from memory what it was to read from the disk; empty if it won't.

    Who sets how much of what is written waits in memory asks about the page cache.
    """
    load, memory = spec.workload, spec.stack.memory
    buffered = isinstance(load, BonnieSection) or (isinstance(load, FioSection) and not load.job and not load.direct)
    size = load.size_bytes if isinstance(load, FioSection) else getattr(load, "size", 0)
    is_the_question = any(name.startswith("dirty_") for name in spec.host.settings)
    if not buffered or is_the_question or (memory is not None and memory < size):
        return ""
    return f"the page cache may hold all that {load.kind} works on: give stack.memory, less than workload.size"


# What a number of cuts can show before the first of them is taken.


ERROR = 0.05  # of a one-sided bound: it holds with 95 %
CUT_SECONDS = 1.0  # what examining one takes on ext4 with InnoDB: a guess until the first block has been measured


def bound_of_none(number: int) -> float:
    """Return the share that may lose although none of ``number`` trials did: the exact (Clopper-Pearson) 95 % bound.

    The same of that many cuts is what it would be if cuts of one trial had nothing in common.
    """
    return float(1 - ERROR ** (1 / number))


def planned_cuts(crash: CrashSection, blocks: int) -> int:
    """Return the cuts of each treatment in so many blocks: every trial takes as many."""
    return blocks * crash.cuts_each


def pools_warning(specs: Sequence[TrialSpec]) -> str:
    """Return that buffer pools of several sizes are compared, each of which holds all data; empty otherwise."""
    pools, data = set[int](), max((spec.workload.data_bytes for spec in specs), default=0)
    for spec in specs:
        pool = spec.server.settings.get(BUFFER_POOL)
        try:
            pools.add(setting_bytes(pool if pool is not None else ""))
        except ValueError:
            return ""
    if len(pools) < 2 or not data or _PAGES_OF_ROWS * data >= min(pools):  # noqa: PLR2004 - one size is no comparison
        return ""
    return (
        f"the data (about {format_bytes(data)} of rows) fit into each buffer pool, so their sizes can hardly make a "
        "difference: prepare more rows, or compare smaller pools"
    )


_PAGES_OF_ROWS = 3  # at most: bytes of InnoDB's pages for a byte of rows, indexes and room for growth included


def crash_warnings(crash: CrashSection, blocks: int) -> Iterator[str]:
    """Yield what can be foreseen of the answer: trials, or trials with some kind of cut, that are too few for one."""
    per_stratum = planned_cuts(crash, blocks) // len(crash.strata)
    if few := too_few_trials(crash, blocks):
        yield few
    elif min(per_stratum, blocks) < RUNS_LEAST:
        alone = f"{100 * bound_of_none(per_stratum):.3g} %" if per_stratum else "nothing"
        yield (
            f"of each of the {len(crash.strata)} kinds of cut there are about {per_stratum}, which alone show at best "
            f"{alone}; give crash.cuts = {RUNS_LEAST * len(crash.strata)} for a bound of 10 % to each"
        )


def too_few_trials(crash: CrashSection, blocks: int) -> str:
    """Return that so many blocks can call nothing safe, and a remedy; empty where they can."""
    if (bound := bound_of_none(blocks)) <= BOUND_MOST:
        return ""
    few = "1 trial of each treatment is" if blocks == 1 else f"{blocks} trials of each treatment are"
    return (
        f"{few} too few to call anything safe: if none loses, up to {100 * bound:.3g} % of such cuts still may, "
        f"as cuts of one trial are alike; {_remedy(crash, planned_cuts(crash, blocks))}"
    )


def _remedy(crash: CrashSection, cuts: int) -> str:
    """Return what makes enough trials of it: fewer cuts in each, or more cuts."""
    more = f"crash.cuts = {RUNS_LEAST * crash.cuts_each}"
    fewer = cuts // RUNS_LEAST
    if crash.cuts_each == 1:
        return f"give {more} or more"
    if fewer < 1:
        return f"give crash.cuts_per_run = 1 and crash.cuts = {RUNS_LEAST}"
    return f"give crash.cuts_per_run = {fewer}, or {more}"


# What can be foreseen of a study on several hosts: which claims so many of them can bear.


def hosts_warnings(design: Design) -> Iterator[str]:
    """What so few hosts can't show."""
    fleet = design.fleet
    if fleet is None or len(fleet.hosts) < 2:  # noqa: PLR2004 - one host is as a study without the word
        return
    if design.comparisons and design.control is None and len(fleet.hosts) < HOSTS_MIN:  # cuts are of these hosts alone
        yield f"{len(fleet.hosts)} hosts can show what holds on them, not on hosts like them; name at least {HOSTS_MIN}"
    if (design.comparisons or design.control) and design.blocks < len(fleet.hosts):
        yield f"{design.blocks} blocks leave hosts without any; give at least as many as there are hosts"
    yield from _of_levels(fleet)
    yield from _of_disks(fleet)


def _of_levels(fleet: Fleet) -> Iterator[str]:
    for factor, level_of in fleet.levels.items():
        hosts = Counter(level_of.values())
        few = [f"{level} ({number})" for level, number in hosts.items() if number < HOSTS_OF_LEVEL_MIN]
        if len(hosts) < 2:  # noqa: PLR2004
            yield f"all hosts have the same level of {factor}: there is nothing to compare in it"
        elif set(hosts.values()) == {1}:
            yield f"each level of {factor} has only one host, so two machines are compared rather than two levels"
        elif few:
            least = f"{HOSTS_OF_LEVEL_MIN} of each at least"
            yield f"levels of {factor} are compared by hosts, {least}; fewer: {', '.join(few)}"


def _of_disks(fleet: Fleet) -> Iterator[str]:
    """Hosts whose disks may be one: a path is of each host, a serial or a name by it is not."""
    hosts: dict[str, list[str]] = {}
    for host, disk in fleet.disks.items():
        if name := disk.serial or (disk.device if disk.device.startswith("/dev/disk/by-id/") else ""):
            hosts.setdefault(name, []).append(host)
    for name, host_names in hosts.items():
        if len(host_names) > 1:
            all_ = "both" if len(host_names) == 2 else "all"  # noqa: PLR2004
            yield (
                f"{listed(host_names)} name the same disk, {name}; "
                f"if it is one that {all_} of them see, {all_} erase it"
            )


DRAWN_SEED_END = 2**32  # a drawn seed is to be typed again; a given one may be longer

# What raising, restoring and lowering a stack takes on a small machine with all around the load, what is around a
# further load on the same tables, and what a load bounded by an amount may take: a guess until the first block has been
# measured.
OVERHEAD_SECONDS, STEP_OVERHEAD_SECONDS = 1.5, 0.5
GUESSED_LOAD_SECONDS, GUESSED_EVENTS_PER_SECOND = 4.0, 10_000.0
_COUNTED = ("events", "queries")  # amounts of which many take longer
# The same of a virtual machine with an emulated CPU: 12 to 15 s where the host is idle; of an image of a whole system.
GUEST_OVERHEAD_SECONDS, IMAGE_OVERHEAD_SECONDS = 20.0, 45.0
BOOT_SECONDS = 120.0  # of a server with its own firmware; a virtual machine takes a quarter of it
GUESSED_SIMULATED_PER_SECOND = 500.0  # seconds of a load that a processor simulates in one

_CHANGED = "{} has been changed since the run began; use a new folder for what it is now"


@dataclass(frozen=True)
class Plan:
    """Everything that is decided before the host is touched."""

    study: Study
    design: Design
    specs: dict[str, TrialSpec]  # treatment id -> what to raise and offer
    own_files: dict[str, dict[str, str]]  # "drive_files", "scripts" -> path -> text, as they were planned with
    file_hashes: dict[str, str] = field(default_factory=dict)  # of those that are not kept: path -> SHA-256
    variables: dict[str, str] = field(default_factory=dict)  # that stand in the user's own files
    reported: list[ReportedTable] = field(default_factory=list)
    prices: Prices | None = None
    seed_is_drawn: bool = False  # none was given: the next plan of the study has another order
    keep_traces: bool = False  # the block traces of trials stay in the run folder
    control: PlannedControl | None = None  # of a crash study
    profile: bool = False  # after the judged trials the server is profiled, in a trial of each treatment

    def slots(self, block: int, attempt: int) -> list[Slot]:
        """The trials of one attempt at a block, in random order."""
        return slots_of(self.design, block, attempt)

    def on_host(self, host: str) -> "Plan":
        """The plan of one host of several: its blocks by its own count, in the order that the seed gives to it."""
        fleet = self.design.fleet
        assert fleet is not None  # noqa: S101  (who calls this has one)
        return replace(self, design=replace(self.design, seed=seed_of_host(self.design.seed, host, fleet), fleet=None))

    def makers(self) -> list[TrialSpec]:
        """The treatments in the order in which they are asked to make an image that several share: baseline first."""
        return [self.specs[id_] for id_ in sorted(self.specs, key=lambda id_: id_ != self.design.baseline)]

    def trial_seed(self, block: int) -> int:
        """The seed of load and device: common to a block, so that its treatments meet the same chances."""
        return int.from_bytes(drawn(self.design.seed, "trial", block)[:6])

    def study_sha256(self) -> str:
        """Identity of what is measured: equal for two studies whose trials are alike."""
        body: dict[str, Any] = {"body": self.study.raw, "metric": self.design.metric, "baseline": self.design.baseline}
        body |= {name: files for name, files in self.own_files.items() if files}
        body |= {"file_hashes": sorted(self.file_hashes.values())} if self.file_hashes else {}
        body |= {"variables": self.variables} if self.variables else {}
        hard = sorted(factor.name for factor in self.design.factors if factor.hard_to_change)
        body |= {"hard_to_change": hard} if hard else {}
        body |= {"hosts": _identity_of(self.design.fleet)} if self.design.fleet else {}
        body |= {"settle": self.design.settle} if self.design.settle else {}
        return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()

    def header(self, versions: dict[str, str]) -> Header:
        """What the run folder says of a run by this plan."""
        return Header(
            **self.study.about.model_dump(),
            design=self.design,
            study=self.study.raw,
            versions=versions,
            study_sha256=self.study_sha256(),
            study_file=self.study.path.name,
            scale=self.study.scale,
            reported=self.reported,
            cost=self.prices,
            awake=self.awake(),
            drive_files=self.own_files["drive_files"],
            scripts=self.own_files["scripts"],
            file_hashes=self.file_hashes,
            variables=self.variables,
        )

    def client_hosts(self) -> list[str]:
        """The hosts that loads come from, each once; none where each machine under test is its own client."""
        loads = [spec.workload for spec in self.specs.values()]
        names = [name for load in loads if isinstance(load, GeneratedSection) for name in load.clients_from]
        return list(dict.fromkeys(names))

    def host_names(self) -> list[str]:
        """The hosts under test; none where it is the one that runs the plan."""
        return self.design.fleet.hosts if self.design.fleet else []

    @property
    def blocks_at_once(self) -> int:
        """How many hosts run a block at the same time: all, but in turn where they share the hosts that load them."""
        return 1 if self.client_hosts() else max(1, len(self.host_names()))

    @property
    def is_simulated(self) -> bool:
        """Whether its stacks are simulated; all are, or none is."""
        return any(spec.stack.is_simulated for spec in self.specs.values())

    def awake(self) -> list[str]:
        """Treatments for which processors are kept awake; "auto" is none before this host was asked."""
        return [id_ for id_, spec in self.specs.items() if spec.host.awake is True]

    def check_own_files(self) -> None:
        """See that the user's own files are still what was planned. Raises ``HostError``: trials of two are no run."""
        for path, text in (path_and_text for files in self.own_files.values() for path_and_text in files.items()):
            if _text(path) != text:
                raise HostError(_CHANGED.format(path))
        for path, sha256 in self.file_hashes.items():
            if _sha256(path) != sha256:
                raise HostError(_CHANGED.format(path))
        if _variables(self.specs.values()) != self.variables:
            raise HostError(_CHANGED.format(f"what is set for {', '.join(self.variables)}"))

    def seconds_per_trial(self) -> float:
        """A guess; exact only for loads bounded by time."""
        further = {id_ for row in self.design.steps() for id_ in row[1:]}
        seconds = {id_: _seconds_of(spec, is_further_step=id_ in further) for id_, spec in self.specs.items()}
        settle = self.design.settle
        settling = seconds[self.design.baseline] if settle == "trial" else settle
        return sum(seconds.values()) / len(seconds) + settling

    def seconds(self, blocks: int) -> float:
        """What so many blocks may take; hosts run theirs at once."""
        starts = self.reboots(blocks)
        starting = BOOT_SECONDS * (max(starts.values(), default=0) if self.blocks_at_once > 1 else sum(starts.values()))
        return -(-blocks // self.blocks_at_once) * len(self.specs) * self.seconds_per_trial() + starting

    def block_seconds(self) -> float:
        """What one trial of each treatment may take."""
        return len(self.specs) * self.seconds_per_trial()

    def kernels(self) -> list[str]:
        """The kernels that hosts under test are started anew with, in the order of the treatments; else none."""
        return list(dict.fromkeys(spec.booted_kernel for spec in self.specs.values() if spec.booted_kernel))

    def reboots(self, blocks: int) -> dict[str, int]:
        """How often each host under test is started anew for so many blocks of all, where none is repeated.

        Into the first kernel, between two whole plots of different kernels, and back to its own.
        """
        fleet = self.design.fleet
        if fleet is None or not self.kernels():
            return {}
        share, reboots = -(-blocks // len(fleet.hosts)), {}
        for host in fleet.hosts:
            its = self.on_host(host)
            order = [self.specs[slot.treatment].booted_kernel for n in range(1, share + 1) for slot in its.slots(n, 1)]
            reboots[host] = 2 + sum(kernel != next_kernel for kernel, next_kernel in pairwise(order))
        return reboots

    def warnings(self) -> Iterator[str]:
        """What to change in the study file, and what can be foreseen of the answer."""
        yield from self.study.notes
        if self.study.crash is not None:
            yield from crash_warnings(self.study.crash, self.design.blocks)
            if self.control and (doubt := self.control.doubt()):
                yield doubt
        else:
            yield from self._warnings_of_speed()
        yield from hosts_warnings(self.design)
        if self.design.budget_seconds is not None and self.seconds(1) > self.design.budget_seconds:
            yield "the budget is less than a block may take; the first block is run all the same"

    def why_nothing_is_decided(self) -> str:
        """Return why no verdict can come of it whatever is measured, and a remedy; empty if one can."""
        if self.study.crash is not None:
            return too_few_trials(self.study.crash, self.design.blocks)
        return next(self._obstacles(), "")

    def _obstacles(self) -> Iterator[str]:
        blocks, count = self.design.blocks, len(self.design.comparisons)
        if not count:
            if not (self.design.fleet and self.design.fleet.levels):
                yield "there is nothing to compare: no field is given as a list of two values or more"
        elif self.design.until == "blocks" and blocks < MIN_BLOCKS:
            smallest = min(1, count * smallest_p(blocks))
            yield (
                f"{_count_text(blocks, 'block')} can't decide {_count_text(count, 'comparison')} at 5 %: "
                f"the smallest p the exact test can show, times {count} (Holm), is {smallest:.3g}; "
                f"give blocks = {MIN_BLOCKS} or more"
            )
        if why := why_metric_is_useless(self.design.metric, self.specs.values()):
            yield f"no verdict can come from {self.design.metric}: {why}"

    def _warnings_of_speed(self) -> Iterator[str]:
        """What can be foreseen of verdicts on a metric."""
        yield from self._obstacles()
        if self.prices and (unknown := cost_warning(self.specs.values())):
            yield unknown
        if fits := pools_warning(list(self.specs.values())):
            yield fits
        yield from dict.fromkeys(text for spec in self.specs.values() if (text := page_cache_warning(spec)))


def _seconds_of(spec: TrialSpec, *, is_further_step: bool = False) -> float:
    load = spec.workload
    seconds = load.seconds_before + (load.seconds_bound or _guessed(load))
    of_cut = GUEST_OVERHEAD_SECONDS if spec.stack.image else CUT_SECONDS
    seconds += spec.crash.cuts_each * of_cut if spec.crash else 0.0
    if spec.stack.is_simulated:
        return seconds / GUESSED_SIMULATED_PER_SECOND
    if is_further_step:
        return seconds + STEP_OVERHEAD_SECONDS
    if spec.stack.is_in_machine:
        return seconds + (GUEST_OVERHEAD_SECONDS if spec.stack.is_booted else IMAGE_OVERHEAD_SECONDS)
    return seconds + OVERHEAD_SECONDS


def _guessed(load: WorkloadSection) -> float:
    """What a load may take that is bounded by an amount."""
    amount = getattr(load, load.AMOUNT, None) if load.AMOUNT in _COUNTED else None
    return max(GUESSED_LOAD_SECONDS, (amount or 0) / GUESSED_EVENTS_PER_SECOND)


def _count_text(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def make_plan(study: Study, *, seed: int | None = None, stop_rule: StopRule | None = None) -> Plan:
    """The plan of a study; ``seed`` and ``stop_rule`` overrule the study's. Without either's seed, one is drawn.

    Drawn, not fixed: else all studies of one shape share one order, and a second run repeats the error of the first.
    """
    fixed_seed = study.design.seed if seed is None else seed
    levels_and_specs = list(study.combinations())
    treatments = [Treatment(f"t{number}", levels) for number, (levels, _) in enumerate(levels_and_specs, 1)]
    baseline = _baseline(study, treatments)
    stop_rule = stop_rule or StopRule.of_study(study)
    if study.crash and stop_rule.until != "blocks":
        raise UserError(f"{study.path}: a study with [crash] ends after its cuts; give --blocks for fewer or more")
    trials = len(treatments) * stop_rule.blocks
    if trials > TRIALS_MAX and stop_rule.until != "open":
        text = f"{len(treatments)} treatments in {stop_rule.blocks} blocks are {trials:,} trials"
        raise UserError(f"{study.path}: {text}; a run has at most {TRIALS_MAX:,}: give --blocks for fewer")
    specs = {t.id: spec for t, (_, spec) in zip(treatments, levels_and_specs, strict=True)}
    control = control_of(treatments, specs, baseline.id) if study.crash else None
    load = levels_and_specs[0][1].workload
    metric = study.design.metric or load.metric
    design = Design(
        treatments=treatments,
        baseline=baseline.id,
        comparisons=list(_comparisons(study, treatments, baseline)),
        blocks=stop_rule.blocks,
        margin=study.design.margin,
        metric=metric,
        unit=getattr(load, "unit", "") if metric.startswith("figure_") else "",
        seed=secrets.randbelow(DRAWN_SEED_END) if fixed_seed is None else fixed_seed,
        interference=_interference(study),
        settle=study.design.settle or 0.0,
        secondary_metrics=_secondary(study, load, metric),
        steadiness=study.design.steadiness,
        until=stop_rule.until,
        half_width=stop_rule.half_width,
        budget_seconds=stop_rule.budget_seconds,
        factors=_factors(study),
        control=control.treatment if control else None,
        fleet=_fleet(study),
        fail_if=_fail_if(study),
    )
    reported = reported_tables(study, treatments, design.metric)
    prices = prices_in(study.cost, treatments, specs)
    specs |= {control.treatment.id: control.spec} if control else {}
    own_files = _own_files(list(specs.values()))
    secret = dict.fromkeys(path for spec in specs.values() for path in spec.workload.secret_files().values())
    hashes = {path: _sha256(path) for path in secret}
    plan = Plan(
        study, design, specs, own_files, hashes, _variables(specs.values()), reported, prices,
        seed_is_drawn=fixed_seed is None, control=control,
    )  # fmt: skip
    if design.fail_if and (why := plan.why_nothing_is_decided()):
        raise UserError(f"{study.path}: [fail_if] can't be judged: {why}")
    return plan


def _fail_if(study: Study) -> FailIf | None:
    if study.fail_if is None:
        return None
    given = study.fail_if
    return FailIf(_float(given.slower), _float(given.faster), unsafe=given.unsafe, undecided=given.undecided)


def _fleet(study: Study) -> Fleet | None:
    if study.fleet is None:
        return None
    disks = {host: Disk(disk.device, disk.serial) for host, disk in study.fleet.disk.items()}
    return Fleet(list(study.fleet.under_test), study.fleet.level, disks)


def _identity_of(fleet: Fleet) -> dict[str, Any]:
    """What of a fleet is part of what is measured; disks only where there are any, as runs of before know of none."""
    return {name: value for name, value in asdict(fleet).items() if value or name != "disks"}


def _factors(study: Study) -> list[Factor]:
    return [
        Factor(
            name=factor.name,
            section=factor.section,
            levels=factor.labels(),
            gives=factor.gives() or None,
            groups=factor.groups,
            after=factor.after,
            hard_to_change=factor.name in study.design.hard_to_change or factor.starts_hosts_anew,
        )
        for factor in study.factors
    ]


def _interference(study: Study) -> Interference:
    """What others do to the host changes how long cuts take, not what they leave: no block of them is repeated."""
    is_stated = "interference" in study.design.model_fields_set
    return study.design.interference if is_stated or not study.crash else "note"


def _secondary(study: Study, load: WorkloadSection, primary: str) -> list[str]:
    """The metrics beside that of the verdicts: the study's or its load's usual ones, each once."""
    named = load.SECONDARY if study.design.secondary_metrics is None else study.design.secondary_metrics
    return [name for name in dict.fromkeys(named) if name != primary]


def _own_files(specs: list[TrialSpec]) -> dict[str, dict[str, str]]:
    drives = dict.fromkeys(path for spec in specs for path in _drive_files(spec.stack.device))
    scripts = dict.fromkeys(path for spec in specs for load in spec.loads for path in load.own_files().values())
    return {
        "drive_files": {path: _text(path) for path in drives},
        "scripts": {path: _text(path) for path in scripts},
    }


def _variables(specs: Iterable[TrialSpec]) -> dict[str, str]:
    return {name: value for spec in specs for name, value in spec.workload.variables().items()}


def _drive_files(device: str) -> Iterator[str]:
    """The drive files that a drive is made of: those of its name, and those that these name as members of an array."""
    for path in drive_files(device):
        yield path
        for member in tomllib.loads(_text(path)).get("raid", {}).get("members", []):
            yield from _drive_files(resolved_drive(member, Path(path).parent))


def _sha256(path: str) -> str:
    try:
        return file_sha256(Path(path))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None


def _text(path: str) -> str:
    try:
        return read_text(Path(path), SCRIPT_LIMIT_BYTES)
    except OSError as error:
        raise HostError(f"{path}: can't be read: {error.strerror}") from None


def erased_devices(plan: Plan) -> list[str]:
    """Real devices that the study would erase."""
    devices = dict.fromkeys(on.stack.device for spec in plan.specs.values() for on in (spec, *spec.by_disk.values()))
    return [device for device in devices if is_real(device)]


def _reference_levels(study: Study) -> dict[str, str]:
    levels = {factor.name: factor.labels()[0] for factor in study.factors}
    return levels | {name: level_label(level) for name, level in study.design.baseline.items()}


def _baseline(study: Study, treatments: list[Treatment]) -> Treatment:
    levels = _reference_levels(study)
    return next(treatment for treatment in treatments if treatment.levels == levels)


def _comparisons(study: Study, treatments: list[Treatment], baseline: Treatment) -> Iterator[Comparison]:
    if study.design.compare != "one-factor":
        others = [t.id for t in treatments if t is not baseline]
        yield from (Comparison(baseline.id, id_) for id_ in others)
        if study.design.compare == "every-pair":
            yield from (Comparison(baseline_id, level_id) for baseline_id, level_id in combinations(others, 2))
        return
    reference = _reference_levels(study)
    for treatment in treatments:
        for name, level in reference.items():
            if study.design.compare_factors and name not in study.design.compare_factors:
                continue
            if treatment.levels[name] != level:
                against = {**treatment.levels, name: level}
                yield Comparison(next(t.id for t in treatments if t.levels == against), treatment.id)


# The fast caches of the emulated drives that a plan uses: what there is at this size beside what the drive has.


def fast_caches(plan: Plan) -> Iterator[dict[str, Any]]:
    """Return each drive with a fast cache once: its name, and the bytes that its cache has here and on the drive."""
    stacks = [spec.stack for spec in plan.specs.values()]
    for device, size in dict.fromkeys((stack.model, stack.size) for stack in stacks if stack.model):
        drive = device_models(device, size)[0]
        if (cache_bytes := drive.get("fast_cache_bytes")) is not None:
            yield {"device": device, "bytes": cache_bytes, "drive_bytes": drive.get("drive_fast_cache_bytes")}


def fast_cache_lines(plan: Plan) -> list[str]:
    """Return them in words, a line each."""
    return [
        f"{cache['device']}: {drive_bytes(cache['bytes'])}"
        + ("" if cache["bytes"] == cache["drive_bytes"] else f"; the drive has {drive_bytes(cache['drive_bytes'])}")
        for cache in fast_caches(plan)
    ]


# The plan of an A/A run: one treatment of a study under two labels, so that whatever differs is the host's doing.


LABELS = {"t1": "A", "t2": "B"}


def aa_plan(study: Study, *, treatment: str | None = None, blocks: int | None = None, seed: int | None = None) -> Plan:
    """The A/A plan of a study: of the treatment of that label, or else of its baseline.

    Raises:
        UserError: The study has no treatment of that label, or is about cuts, of which nothing is timed.

    """
    if study.crash is not None:
        raise UserError(f"{study.path}: an A/A run is about speed, [crash] about what is lost; leave [crash] out")
    whole = make_plan(study, seed=seed)
    chosen = _treatment_of_label(whole, treatment)
    alone = make_plan(study.at(chosen.levels), seed=seed)
    (spec,) = alone.specs.values()
    hosts = len(alone.design.fleet.hosts) if alone.design.fleet else 1
    host = "this host" if hosts == 1 else "each of these hosts, and from host to host,"
    about = study.about.model_copy(
        update={
            "title": f"A/A: {study.about.title}",
            "question": f"How much do trials differ on {host} where nothing does?",
            "expect": "Equivalent, or undecided on a noisy host.",
            "result": "",
        }
    )
    design = replace(
        alone.design,
        treatments=[Treatment(id_, {"label": label}) for id_, label in LABELS.items()],
        baseline="t1",
        comparisons=[Comparison("t1", "t2")],
        blocks=blocks or DEFAULT_AA_BLOCKS * hosts,
        until="blocks",
        half_width=None,
        budget_seconds=None,  # the study's is for all its treatments; here the number of blocks is what was asked
        aa=SameTreatment(chosen.label, max(1, len(whole.design.comparisons))),
    )
    named = replace(alone.study, about=about)
    return replace(alone, study=named, design=design, specs=dict.fromkeys(LABELS, spec), reported=[], prices=None)


def _treatment_of_label(plan: Plan, label: str | None) -> Treatment:
    if label is None:
        return next(treatment for treatment in plan.design.treatments if treatment.id == plan.design.baseline)
    labels = {treatment.label: treatment for treatment in plan.design.treatments}
    if label not in labels:
        known = ", ".join(f'"{name}"' for name in labels)
        raise UserError(f"--treatment {label!r} is none of this study; it has {known}{did_you_mean(label, labels)}")
    return labels[label]
