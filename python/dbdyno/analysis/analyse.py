"""The analysis of a run, from its trials to its verdicts. Deterministic: no clock, no random numbers."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dbdyno.analysis.advice.advise import Advice, Found, advise
from dbdyno.analysis.blocks import UsableBlocks, usable_blocks
from dbdyno.analysis.checks.pool_filling import PoolFilling, pools_filling
from dbdyno.analysis.client_hosts import LoadFromHosts, loads_from_hosts
from dbdyno.analysis.cost.cost import Cost, cost
from dbdyno.analysis.curves.curves import Curves, curves
from dbdyno.analysis.explanation.block_layer import BlockLayer, block_layer
from dbdyno.analysis.explanation.explain import Seen, Why, explain
from dbdyno.analysis.factors.factorial import Factorial, factorial
from dbdyno.analysis.fleet.found import FleetFindings, fleet_findings
from dbdyno.analysis.noise_floor import NoiseFloor, noise_floor
from dbdyno.analysis.over_time.drift import drift_of
from dbdyno.analysis.over_time.steadiness import Steadiness, steadiness
from dbdyno.analysis.over_time.treatment_stability import LoadSeries, TreatmentStability, settling
from dbdyno.analysis.percentiles import PercentileCurve, percentile_curves
from dbdyno.analysis.ranking.letters import Ties, ties
from dbdyno.analysis.ranking.ranking import Ranking, ranking_of_run
from dbdyno.analysis.reported import Beside, beside
from dbdyno.analysis.safety.judge import CrashSafety, crash_safety
from dbdyno.analysis.server_defaults import ServerDefaults, server_defaults
from dbdyno.analysis.statistics.estimate import Estimate
from dbdyno.analysis.stopping import Allowance, Looked, looked
from dbdyno.analysis.summary import TreatmentSummary, summarise
from dbdyno.analysis.verdict.evidence import Rule
from dbdyno.analysis.verdict.finding import Finding, Paired, judge
from dbdyno.analysis.verdict.pairs import considered, every_pair, paired, plans_every_pair
from dbdyno.analysis.verdict.secondary import Secondary, secondary_metrics
from dbdyno.model.metrics import Metric, metric_of, value_of
from dbdyno.store.latencies import Latencies
from dbdyno.store.records import Run


@dataclass(frozen=True)
class Analysis:
    """Everything a report says about a run, apart from its series."""

    title: str
    question: str
    metric: Metric
    margin: float
    verdicts: list[Finding]
    every_pair: list[Finding]  # not planned, a family of their own; empty unless asked for
    secondary: list[Secondary]
    ranking: Ranking | None  # where loads and stacks both vary
    treatments: list[TreatmentSummary]
    ties: Ties  # of the treatments, by id
    blocks: UsableBlocks
    looks: Looked
    without_figure: list[str]  # trials of usable blocks that lack the primary metric
    drift: Estimate  # of the primary metric from the first trial to the last
    noise_floor: NoiseFloor | None  # of an A/A run
    factors: Factorial
    curves: list[Curves]  # of factors that are amounts, such as a number of clients
    stability: list[TreatmentStability]  # empty where no series were given
    block_layer: list[BlockLayer]  # empty where no block trace was asked for
    why: Why  # empty where nothing of what probes saw was given
    cost: Cost | None  # where the study gives prices
    beside: list[Beside]  # what others published of it
    steadiness: Steadiness | None  # where the study asks for it
    server_defaults: list[ServerDefaults]  # of the pairs of servers that it compares
    pools_filling: list[PoolFilling]  # treatments that were measured while their pool still filled
    advice: Advice  # what to do
    percentiles: list[PercentileCurve]  # empty where no histograms were given
    safety: CrashSafety | None  # where trials have cuts
    fleet: FleetFindings | None  # of a study on several hosts
    client_hosts: list[LoadFromHosts]  # of the treatments whose load came from other hosts


def analyse(
    run: Run,
    *,
    each_pair: bool = False,
    load_series: LoadSeries | None = None,
    watched: Seen | None = None,
    latencies: Mapping[str, Latencies] | None = None,
) -> Analysis:
    """Return the verdicts, and the table of a run, finished or not; with ``each_pair`` verdicts of all."""
    blocks = usable_blocks(run)
    primary = metric_of(run.design)
    further = every_pair(run.design) if each_pair and not plans_every_pair(run.design) else []
    unplanned = considered(run, blocks, paired(run.design, blocks, further, primary.name), primary.name)
    failures = Counter(failure.treatment for failure in run.failures)
    rule = _rule(run)
    pairs = _planned(run, blocks)
    verdicts = judge(pairs, primary, run.design.margin, rule)
    steady = steadiness(run, blocks, load_series or {}, rule)
    unplanned_verdicts = judge(unplanned, primary, run.design.margin, rule)
    treatments = summarise(run.design, blocks, failures, rule)
    tied = _ties(run, blocks, primary, rule)
    why = explain(run.design, blocks, [*verdicts, *unplanned_verdicts], watched or {}, rule)
    filling = pools_filling(run.design, blocks, watched or {})
    found = Found(verdicts, unplanned_verdicts, tied, treatments, why, [one.id for one in filling])
    return Analysis(
        title=run.title,
        question=run.question,
        metric=primary,
        margin=run.design.margin,
        verdicts=verdicts,
        every_pair=unplanned_verdicts,
        secondary=secondary_metrics(run.design, blocks, rule),
        ranking=ranking_of_run(run, blocks, rule),
        treatments=treatments,
        ties=tied,
        blocks=blocks,
        looks=looked(run.design, len(blocks.trials)),
        without_figure=_without_figure(blocks, primary),
        drift=drift_of(run, blocks),
        noise_floor=noise_floor(run, blocks),
        factors=factorial(run.design, blocks, primary, rule),
        curves=curves(run.design, blocks, primary, rule),
        stability=settling(run.design, blocks, load_series or {}),
        block_layer=block_layer(run.design, blocks),
        why=why,
        cost=cost(run.design, blocks, run.prices, rule),
        beside=beside(run, blocks, rule, steady),
        steadiness=steady,
        server_defaults=server_defaults(run),
        pools_filling=filling,
        advice=advise(run, blocks, primary, found),
        percentiles=percentile_curves(run.design, blocks, latencies or {}),
        safety=crash_safety(run),
        fleet=fleet_findings(run, blocks, pairs, verdicts),
        client_hosts=loads_from_hosts(run.design, blocks),
    )


def planned_verdicts(run: Run, blocks: UsableBlocks) -> list[Finding]:
    """Return one verdict per planned comparison."""
    return judge(_planned(run, blocks), metric_of(run.design), run.design.margin, _rule(run))


def _planned(run: Run, blocks: UsableBlocks) -> list[Paired]:
    pairs = paired(run.design, blocks, run.design.comparisons, run.design.metric)
    return considered(run, blocks, pairs, run.design.metric)


def _rule(run: Run) -> Callable[[int], Rule]:
    return Allowance(run.design, ended_by_clock=run.stopped == "budget").rule


def _ties(run: Run, blocks: UsableBlocks, primary: Metric, rule: Callable[[int], Rule]) -> Ties:
    kept = [treatment.id for treatment in run.design.treatments if treatment.id not in blocks.dropped]
    values = {id_: blocks.values(id_, primary.name) for id_ in kept}
    return ties(values, rule, more_is_better=primary.more_is_better)


def _without_figure(blocks: UsableBlocks, primary: Metric) -> list[str]:
    return sorted(
        trial.id
        for row in blocks.trials.values()
        for trial in row.values()
        if not value_of(trial.metrics, primary.name) > 0
    )
