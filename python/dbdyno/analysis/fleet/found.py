"""All that a run on several hosts says of hosts."""

from collections.abc import Sequence
from dataclasses import dataclass

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.fleet.by_host import OnHosts, block_levels
from dbdyno.analysis.fleet.levels import BetweenLevels, between_levels, effects_between_levels
from dbdyno.analysis.fleet.like_these import LikeThese, like_these
from dbdyno.analysis.fleet.noise import FleetNoise, fleet_noise
from dbdyno.analysis.noise_floor import RATES
from dbdyno.analysis.statistics.effect import log_ratios
from dbdyno.analysis.verdict.finding import Finding, Paired
from dbdyno.analysis.verdict.reasons import TwoTreatments
from dbdyno.model.metrics import metric_of
from dbdyno.store.records import Run


@dataclass(frozen=True)
class FleetFindings:
    """What is said of hosts, beside verdicts that hold on these."""

    blocks: dict[str, int]  # host -> usable blocks, in the order of the study
    like_these: list[LikeThese]  # of each planned comparison; empty of an A/A run
    levels: list[BetweenLevels]  # of what is fixed to hosts
    effects: list[BetweenLevels]  # whether a comparison's effect goes with what is fixed to hosts
    noise: FleetNoise | None  # of an A/A run

    def of(self, compared: TwoTreatments) -> LikeThese:
        """Return what a planned comparison says of hosts like these."""
        ids = compared.baseline_id, compared.level_id
        return next(one for one in self.like_these if (one.baseline_id, one.level_id) == ids)


def fleet_findings(
    run: Run, blocks: UsableBlocks, pairs: Sequence[Paired], verdicts: Sequence[Finding]
) -> FleetFindings | None:
    """Return it for a run on several hosts; ``pairs`` and ``verdicts`` are those of the planned comparisons."""
    design = run.design
    if design.fleet is None:
        return None
    on = OnHosts.of(design.fleet, blocks)
    usable = list(on.of_block.values())
    kept = [one.id for one in design.treatments if one.id not in blocks.dropped]
    levels = block_levels(blocks, kept, design.metric)
    judged = [] if design.aa else [pair for pair in pairs if not pair.obstacle]
    effects = [(_two(pair), dict(zip(pair.log_ratios, pair.d.tolist(), strict=True))) for pair in judged]
    return FleetFindings(
        blocks={host: usable.count(host) for host in design.fleet.hosts},
        like_these=[] if design.aa else like_these(on, pairs, verdicts, metric_of(design), design.margin),
        levels=between_levels(on, levels, design.margin),
        effects=effects_between_levels(on, effects, design.margin),
        noise=_noise(run, blocks, levels, on) if design.aa else None,
    )


def _two(pair: Paired) -> TwoTreatments:
    return TwoTreatments(pair.baseline, pair.level, pair.baseline_id, pair.level_id)


def _noise(run: Run, blocks: UsableBlocks, levels: dict[int, float], on: OnHosts) -> FleetNoise:
    metric = run.design.metric
    a, b = (blocks.values(one.id, metric) for one in run.design.treatments)
    trials = [trial for row in blocks.trials.values() for trial in row.values()] if metric in RATES else []
    halves = [ratio for trial in trials if (ratio := trial.load.get("second_half_ratio"))]
    return fleet_noise(on, levels, log_ratios(b, a), halves)
