"""From a study to its plan: treatments, comparisons, and blocks in seeded random order."""

import hashlib
import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from dbdyno.analysis.looks import can_decide
from dbdyno.analysis.min_blocks import blocks_needed, smallest_p
from dbdyno.errors import HostError
from dbdyno.plan.ending import Ending
from dbdyno.plan.metric_fit import page_cache_warning, why_metric_tells_nothing
from dbdyno.plan.prices import prices_in
from dbdyno.plan.reported import reported_tables
from dbdyno.store.prices import Prices
from dbdyno.store.records import Comparison, Design, Factor, Treatment
from dbdyno.store.reported import ReportedTable
from dbdyno.study.drives import drive_files, is_real, resolved_drive
from dbdyno.study.labels import level_label
from dbdyno.study.load import Study
from dbdyno.study.schema import MAX_BLOCKS, TrialSpec
from dbdyno.study.workload_section import WorkloadSection

# What raising, restoring and lowering a stack takes on a small machine, and what a load bounded by queries may take:
# a guess until the first block has been measured.
OVERHEAD_SECONDS, GUESSED_LOAD_SECONDS = 1.5, 4.0


@dataclass(frozen=True)
class Slot:
    """One trial to be run."""

    block: int  # from 1
    attempt: int  # from 1
    position: int  # from 1, in the run order of its block
    treatment: str

    @property
    def id(self) -> str:
        """Sorts in run order, as files do: ``b0003a1p002-t4``."""
        return f"b{self.block:04d}a{self.attempt}p{self.position:03d}-{self.treatment}"


@dataclass(frozen=True)
class Plan:
    """Everything that is decided before the host is touched."""

    study: Study
    design: Design
    specs: dict[str, TrialSpec]  # treatment id -> what to raise and offer
    own_files: dict[str, dict[str, str]]  # "drive_files", "scripts" -> path -> text, as they were planned with
    reported: list[ReportedTable] = field(default_factory=list)
    prices: Prices | None = None

    def slots(self, block: int, attempt: int) -> list[Slot]:
        """The trials of one attempt at a block, in the random order that the seed gives: the same on every machine.

        Whole plots stand in random order, and the trials inside each; without them a block is a single one.
        """
        plots = whole_plots(self.design)

        def drawn(id_: str) -> tuple[bytes, bytes]:
            return self._draw("plot", block, attempt, plots[id_]), self._draw("order", block, attempt, id_)

        order = sorted(plots, key=drawn)
        return [Slot(block, attempt, position, id_) for position, id_ in enumerate(order, 1)]

    def trial_seed(self, block: int) -> int:
        """The seed of load and device: common to a block, so that its treatments meet the same chances."""
        return int.from_bytes(self._draw("trial", block)[:6])

    def _draw(self, *what: object) -> bytes:
        return hashlib.sha256("/".join(map(str, (self.design.seed, *what))).encode()).digest()

    def study_sha256(self) -> str:
        """Identity of what is measured: equal for two studies whose trials are alike."""
        body: dict[str, Any] = {"body": self.study.raw, "metric": self.design.metric, "baseline": self.design.baseline}
        body |= {name: files for name, files in self.own_files.items() if files}
        hard = sorted(factor.name for factor in self.design.factors if factor.hard_to_change)
        body |= {"hard_to_change": hard} if hard else {}
        return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()

    def check_own_files(self) -> None:
        """See that the user's own files are still what was planned. Raises ``HostError``: trials of two are no run."""
        for path, text in (one for files in self.own_files.values() for one in files.items()):
            if _text(path) != text:
                raise HostError(f"{path} has been changed since the run began; use a new folder for what it is now")

    def seconds_per_trial(self) -> float:
        """A guess; exact only for loads bounded by time."""
        loads = [spec.workload for spec in self.specs.values()]
        seconds = [load.seconds_before + (load.seconds_bound or GUESSED_LOAD_SECONDS) for load in loads]
        return sum(seconds) / len(seconds) + OVERHEAD_SECONDS

    def seconds(self, blocks: int) -> float:
        """What so many blocks may take."""
        return blocks * len(self.design.treatments) * self.seconds_per_trial()

    def warnings(self) -> Iterator[str]:
        """What can be foreseen of the answer."""
        blocks, count = self.design.blocks, len(self.design.comparisons)
        if not count:
            yield "there is nothing to compare: no field is given as a list"
        elif self.design.until == "blocks" and blocks < (needed := blocks_needed(count)):
            smallest = min(1, count * smallest_p(blocks))
            yield (
                f"{_counted(blocks, 'block')} can't decide {_counted(count, 'comparison')} at 5 %: "
                f"the smallest p the exact test can show, times {count} (Holm), is {smallest:.3g}; "
                f"give blocks = {needed} or more"
            )
        elif self.design.until in {"decided", "precise"} and not can_decide(blocks, count):
            needed = next((n for n in range(blocks, MAX_BLOCKS) if can_decide(n, count)), MAX_BLOCKS)
            yield (
                f"{_counted(blocks, 'block')} at most can't decide {_counted(count, 'comparison')} at 5 %, with what "
                f"is left for the last look; give max_blocks = {needed}"
            )
        if why := why_metric_tells_nothing(self.design.metric, self.specs.values()):
            yield f"no verdict can come from {self.design.metric}: {why}"
        yield from dict.fromkeys(said for spec in self.specs.values() if (said := page_cache_warning(spec)))
        if self.design.budget_seconds is not None and self.seconds(1) > self.design.budget_seconds:
            yield "the budget is less than a block may take; the first block is run all the same"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def make_plan(study: Study, *, seed: int | None = None, ending: Ending | None = None) -> Plan:
    """The plan of a study; ``seed`` and ``ending`` overrule the study's."""
    made = list(study.combinations())
    treatments = [Treatment(f"t{number}", levels) for number, (levels, _) in enumerate(made, 1)]
    baseline = _baseline(study, treatments)
    ending = ending or Ending.of_study(study.design)
    load = made[0][1].workload
    metric = study.design.metric or load.metric
    design = Design(
        treatments=treatments,
        baseline=baseline.id,
        comparisons=list(_comparisons(study, treatments, baseline)),
        blocks=ending.blocks,
        margin=study.design.margin,
        metric=metric,
        unit=getattr(load, "unit", "") if metric.startswith("figure_") else "",
        seed=study.design.seed if seed is None else seed,
        disturbed=study.design.disturbed,
        screened=_screened(study, load, metric),
        steadiness=study.design.steadiness,
        until=ending.until,
        half_width=ending.half_width,
        budget_seconds=ending.budget_seconds,
        factors=[
            Factor(
                name=factor.name,
                section=".".join(factor.path[:-1]),
                levels=factor.labels(),
                hard_to_change=factor.name in study.design.hard_to_change,
            )
            for factor in study.factors
        ],
    )
    specs = {t.id: spec for t, (_, spec) in zip(treatments, made, strict=True)}
    reported = reported_tables(study, treatments, design.metric)
    prices = prices_in(study.cost, treatments, specs)
    return Plan(study, design, specs, _own_files(list(specs.values())), reported, prices)


def _screened(study: Study, load: WorkloadSection, primary: str) -> list[str]:
    """The metrics to screen: the study's or its load's usual ones, each once, without the one of the verdicts."""
    named = load.SCREENED if study.design.screened is None else study.design.screened
    return [name for name in dict.fromkeys(named) if name != primary]


def whole_plots(design: Design) -> dict[str, str]:
    """Treatment -> the first treatment with the same levels of all factors that are hard to change: its whole plot."""
    hard = [factor.name for factor in design.factors if factor.hard_to_change]
    first: dict[tuple[str, ...], str] = {}
    return {t.id: first.setdefault(tuple(t.levels[name] for name in hard), t.id) for t in design.treatments}


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


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
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
