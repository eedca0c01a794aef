"""From a study to its plan: treatments, comparisons, and blocks in seeded random order."""

import hashlib
import json
import secrets
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from dbdyno.analysis.planned_looks import smallest_p
from dbdyno.errors import HostError, UserError
from dbdyno.model.design import MIN_BLOCKS, TRIALS_MAX, Comparison, Design, Disk, Factor, Fleet, Interference
from dbdyno.model.treatment import Treatment
from dbdyno.plan.control import Control, control_of
from dbdyno.plan.cuts import CUT_SECONDS, crash_warnings
from dbdyno.plan.hosts import hosts_warnings
from dbdyno.plan.identity import file_sha256
from dbdyno.plan.metric_fit import cost_warning, page_cache_warning, why_metric_is_useless
from dbdyno.plan.order import Slot, drawn, seed_of_host, slots_of
from dbdyno.plan.prices import prices_in
from dbdyno.plan.reported import reported_tables
from dbdyno.plan.stop_rule import StopRule
from dbdyno.store.header import Header
from dbdyno.store.prices import Prices
from dbdyno.store.reported import ReportedTable
from dbdyno.study.drives import drive_files, is_real, resolved_drive
from dbdyno.study.labels import level_label
from dbdyno.study.schema import TrialSpec
from dbdyno.study.study import Study
from dbdyno.study.workload_section import WorkloadSection
from dbdyno.study.workloads import GeneratedSection
from dbdyno.system.regular_file import SCRIPT_LIMIT_BYTES, read_text

DRAWN_SEED_END = 2**32  # a drawn seed is to be typed again; a given one may be longer

# What raising, restoring and lowering a stack takes on a small machine, and what a load bounded by queries may take:
# a guess until the first block has been measured.
OVERHEAD_SECONDS, GUESSED_LOAD_SECONDS = 1.5, 4.0
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
    reported: list[ReportedTable] = field(default_factory=list)
    prices: Prices | None = None
    seed_is_drawn: bool = False  # none was given: the next plan of the study has another order
    keep_traces: bool = False  # the block traces of trials stay in the run folder
    control: Control | None = None  # of a crash study

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
        )

    def client_hosts(self) -> list[str]:
        """The hosts that loads come from, each once; none where each machine under test is its own client."""
        loads = [spec.workload for spec in self.specs.values()]
        names = [name for load in loads if isinstance(load, GeneratedSection) for name in load.clients_from]
        return list(dict.fromkeys(names))

    @property
    def blocks_at_once(self) -> int:
        """How many hosts run a block at the same time: all, but in turn where they share the hosts that load them."""
        return len(self.design.fleet.hosts) if self.design.fleet and not self.client_hosts() else 1

    @property
    def is_simulated(self) -> bool:
        """Whether its stacks are simulated; all are, or none is."""
        return any(spec.stack.is_simulated for spec in self.specs.values())

    def awake(self) -> list[str]:
        """Treatments for which processors are kept awake; "auto" is none before this host was asked."""
        return [id_ for id_, spec in self.specs.items() if spec.host.awake is True]

    def check_own_files(self) -> None:
        """See that the user's own files are still what was planned. Raises ``HostError``: trials of two are no run."""
        for path, text in (one for files in self.own_files.values() for one in files.items()):
            if _text(path) != text:
                raise HostError(_CHANGED.format(path))
        for path, sha256 in self.file_hashes.items():
            if _sha256(path) != sha256:
                raise HostError(_CHANGED.format(path))

    def seconds_per_trial(self) -> float:
        """A guess; exact only for loads bounded by time."""
        seconds = {id_: _seconds_of(spec) for id_, spec in self.specs.items()}
        settle = self.design.settle
        settling = seconds[self.design.baseline] if settle == "trial" else settle
        return sum(seconds.values()) / len(seconds) + settling

    def seconds(self, blocks: int) -> float:
        """What so many blocks may take; hosts run theirs at once."""
        return -(-blocks // self.blocks_at_once) * len(self.specs) * self.seconds_per_trial()

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

    def _warnings_of_speed(self) -> Iterator[str]:
        """What can be foreseen of verdicts on a metric."""
        blocks, count = self.design.blocks, len(self.design.comparisons)
        if not count:
            if not (self.design.fleet and self.design.fleet.levels):
                yield "there is nothing to compare: no field is given as a list"
        elif self.design.until == "blocks" and blocks < MIN_BLOCKS:
            smallest = min(1, count * smallest_p(blocks))
            yield (
                f"{_counted(blocks, 'block')} can't decide {_counted(count, 'comparison')} at 5 %: "
                f"the smallest p the exact test can show, times {count} (Holm), is {smallest:.3g}; "
                f"give blocks = {MIN_BLOCKS} or more"
            )
        if why := why_metric_is_useless(self.design.metric, self.specs.values()):
            yield f"no verdict can come from {self.design.metric}: {why}"
        if self.prices and (unknown := cost_warning(self.specs.values())):
            yield unknown
        yield from dict.fromkeys(text for spec in self.specs.values() if (text := page_cache_warning(spec)))


def _seconds_of(spec: TrialSpec) -> float:
    load = spec.workload
    seconds = load.seconds_before + (load.seconds_bound or GUESSED_LOAD_SECONDS)
    seconds += spec.crash.cuts_each * CUT_SECONDS if spec.crash else 0.0
    return seconds / GUESSED_SIMULATED_PER_SECOND if spec.stack.is_simulated else seconds + OVERHEAD_SECONDS


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def make_plan(study: Study, *, seed: int | None = None, stop_rule: StopRule | None = None) -> Plan:
    """The plan of a study; ``seed`` and ``stop_rule`` overrule the study's. Without either's seed, one is drawn.

    Drawn, not fixed: else all studies of one shape share one order, and a second run repeats the error of the first.
    """
    given = study.design.seed if seed is None else seed
    made = list(study.combinations())
    treatments = [Treatment(f"t{number}", levels) for number, (levels, _) in enumerate(made, 1)]
    baseline = _baseline(study, treatments)
    stop_rule = stop_rule or StopRule.of_study(study)
    if study.crash and stop_rule.until != "blocks":
        raise UserError(f"{study.path}: a study with [crash] ends after its cuts; give --blocks for fewer or more")
    trials = len(treatments) * stop_rule.blocks
    if trials > TRIALS_MAX and stop_rule.until != "open":
        text = f"{len(treatments)} treatments in {stop_rule.blocks} blocks are {trials:,} trials"
        raise UserError(f"{study.path}: {text}; a run has at most {TRIALS_MAX:,}: give --blocks for fewer")
    specs = {t.id: spec for t, (_, spec) in zip(treatments, made, strict=True)}
    control = control_of(treatments, specs, baseline.id) if study.crash else None
    load = made[0][1].workload
    metric = study.design.metric or load.metric
    design = Design(
        treatments=treatments,
        baseline=baseline.id,
        comparisons=list(_comparisons(study, treatments, baseline)),
        blocks=stop_rule.blocks,
        margin=study.design.margin,
        metric=metric,
        unit=getattr(load, "unit", "") if metric.startswith("figure_") else "",
        seed=secrets.randbelow(DRAWN_SEED_END) if given is None else given,
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
    )
    reported = reported_tables(study, treatments, design.metric)
    prices = prices_in(study.cost, treatments, specs)
    specs |= {control.treatment.id: control.spec} if control else {}
    own_files = _own_files(list(specs.values()))
    secret = dict.fromkeys(path for spec in specs.values() for path in spec.workload.secret_files().values())
    hashes = {path: _sha256(path) for path in secret}
    return Plan(study, design, specs, own_files, hashes, reported, prices, seed_is_drawn=given is None, control=control)


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
            hard_to_change=factor.name in study.design.hard_to_change,
        )
        for factor in study.factors
    ]


def _interference(study: Study) -> Interference:
    """What others do to the host changes how long cuts take, not what they leave: no block of them is repeated."""
    asked = "interference" in study.design.model_fields_set
    return study.design.interference if asked or not study.crash else "note"


def _secondary(study: Study, load: WorkloadSection, primary: str) -> list[str]:
    """The metrics beside that of the verdicts: the study's or its load's usual ones, each once."""
    named = load.SECONDARY if study.design.secondary_metrics is None else study.design.secondary_metrics
    return [name for name in dict.fromkeys(named) if name != primary]


def _own_files(specs: list[TrialSpec]) -> dict[str, dict[str, str]]:
    drives = dict.fromkeys(path for spec in specs for path in _drive_files(spec.stack.device))
    scripts = dict.fromkeys(path for spec in specs for path in spec.workload.own_files().values())
    return {
        "drive_files": {path: _text(path) for path in drives},
        "scripts": {path: _text(path) for path in scripts},
    }


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
    devices = dict.fromkeys(spec.stack.device for spec in plan.specs.values())
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
            yield from (Comparison(one, other) for one, other in combinations(others, 2))
        return
    reference = _reference_levels(study)
    for treatment in treatments:
        for name, level in reference.items():
            if study.design.compare_factors and name not in study.design.compare_factors:
                continue
            if treatment.levels[name] != level:
                against = {**treatment.levels, name: level}
                yield Comparison(next(t.id for t in treatments if t.levels == against), treatment.id)
