"""The analysis of a run, from its trials to its verdicts. Deterministic: no clock, no random numbers."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from dbdyno.analysis.advice import Advice, AdviceBasis, advise
from dbdyno.analysis.beside import BesideSummary, loads_beside
from dbdyno.analysis.blocks import RefusedError, UsableBlocks, usable_blocks
from dbdyno.analysis.client_hosts import LoadFromHosts, loads_from_hosts
from dbdyno.analysis.cost import Cost, cost
from dbdyno.analysis.curves import Curves, curves
from dbdyno.analysis.explanation import BlockLayer, Seen, Why, block_layer, explain
from dbdyno.analysis.factors import Factorial, factorial
from dbdyno.analysis.fail_if import Thresholds, thresholds
from dbdyno.analysis.fleet import FleetFindings, fleet_findings
from dbdyno.analysis.load_checks import PoolFilling, pools_filling
from dbdyno.analysis.noise_floor import NoiseFloor, noise_floor
from dbdyno.analysis.over_time import LoadSeries, TreatmentStability, drift_of, settling
from dbdyno.analysis.percentiles import PercentileCurve, percentile_curves
from dbdyno.analysis.query_costs import QueryCosts, query_costs
from dbdyno.analysis.ranking import Ranking, Ties, rank_runs, ranking_of_run, ties
from dbdyno.analysis.replicas import ClusterSummary, ReplicaSummary, clusters, replicas
from dbdyno.analysis.reported import PublishedBeside, beside
from dbdyno.analysis.safety import CrashSafety, crash_safety
from dbdyno.analysis.server_defaults import ServerDefaults, server_defaults
from dbdyno.analysis.statistics import Estimate, is_feasible
from dbdyno.analysis.steadiness import Steadiness, steadiness
from dbdyno.analysis.stopping import Allowance, Looked, looked
from dbdyno.analysis.suite import SuiteFindings, suite_findings
from dbdyno.analysis.summary import TreatmentSummary, summarise
from dbdyno.analysis.verdict.evidence import Rule
from dbdyno.analysis.verdict.figures import HostSpeed, MetricFigures
from dbdyno.analysis.verdict.finding import Finding, judge
from dbdyno.analysis.verdict.pairs import compared, pairs_not_planned, secondary_metrics
from dbdyno.analysis.verdict.reasons import Secondary
from dbdyno.analysis.versions import AlongVersions, along_versions
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
    every_pair: list[Finding]  # those that were not planned, a family of their own; empty unless asked for
    secondary: list[Secondary]
    query_costs: QueryCosts
    suite: SuiteFindings | None  # of a suite
    versions: AlongVersions | None  # where three servers or kernels, or more, are compared
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
    beside: list[PublishedBeside]  # what others published of it
    steadiness: Steadiness | None  # where the study asks for it
    server_defaults: list[ServerDefaults]  # of the pairs of servers that it compares
    pools_filling: list[PoolFilling]  # treatments that were measured while their pool still filled
    advice: Advice  # what to do
    percentiles: list[PercentileCurve]  # empty where no histograms were given
    safety: CrashSafety | None  # where trials have cuts
    fleet: FleetFindings | None  # of a study on several hosts
    host_speed: HostSpeed | None  # None: it was not measured beside the trials
    client_hosts: list[LoadFromHosts]  # of the treatments whose load came from other hosts
    loads_beside: list[BesideSummary]  # what ran beside the judged load
    replicas: list[ReplicaSummary]  # of the servers
    clusters: list[ClusterSummary]  # whose first node the servers are
    thresholds: Thresholds | None  # where the study says what is to fail


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
    primary, design = metric_of(run.design), run.design
    failures = Counter(failure.treatment for failure in run.failures)
    rule, feasible = _rule(run), partial(is_feasible, design=design)
    figures = MetricFigures(run, blocks, primary.name)
    pairs = compared(figures, design.comparisons, latencies)
    all_secondary = secondary_metrics(run, blocks, rule)
    verdicts = [
        _add_secondary(finding, all_secondary) for finding in judge(pairs, primary, design.margin, rule, feasible)
    ]
    unplanned = judge(compared(figures, pairs_not_planned(design), latencies), primary, design.margin, rule, feasible)
    steady = steadiness(run, blocks, load_series or {}, rule)
    treatments = summarise(design, blocks, failures, [*verdicts, *unplanned])
    treatment_ids = [treatment.id for treatment in design.treatments if treatment.id not in blocks.dropped]
    # Loads of a suite are not compared, so that no letters can stand for all treatments; they would take hours, too.
    asked = [] if design.factor_of_loads else [*verdicts, *unplanned]
    tied = ties(asked, treatment_ids, more_is_better=primary.more_is_better)
    shown = unplanned if each_pair else []
    why = explain(design, blocks, [*verdicts, *shown], watched or {}, rule)
    filling = pools_filling(design, blocks, watched or {})
    cut = crash_safety(run)
    basis = AdviceBasis(verdicts, unplanned, why, [pool.id for pool in filling])
    return Analysis(
        title=run.title,
        question=run.question,
        metric=primary,
        margin=run.design.margin,
        verdicts=verdicts,
        every_pair=shown,
        secondary=all_secondary,
        suite=suite_findings(design, verdicts, more_is_better=primary.more_is_better),
        versions=along_versions(design, blocks, primary, verdicts),
        query_costs=query_costs(run, blocks, rule, all_secondary),
        ranking=ranking_of_run(run, blocks, rule, [*verdicts, *unplanned]),
        treatments=treatments,
        ties=tied,
        blocks=blocks,
        looks=looked(run.design, len(blocks.trials)),
        without_figure=_without_figure(blocks, primary),
        drift=drift_of(run, blocks),
        noise_floor=noise_floor(run, blocks),
        factors=factorial(figures, primary, rule, [*verdicts, *unplanned]),
        curves=curves(run, blocks, primary, rule, [*verdicts, *unplanned]),
        stability=settling(run.design, blocks, load_series or {}),
        block_layer=block_layer(run.design, blocks),
        why=why,
        cost=cost(run.design, blocks, run.prices, rule, verdicts),
        beside=beside(run, blocks, rule, steady),
        steadiness=steady,
        server_defaults=server_defaults(run),
        pools_filling=filling,
        advice=advise(run, blocks, primary, basis),
        percentiles=percentile_curves(run.design, blocks, latencies or {}),
        safety=cut,
        fleet=fleet_findings(run, blocks, pairs, verdicts),
        host_speed=figures.host_speed,
        client_hosts=loads_from_hosts(run.design, blocks),
        loads_beside=loads_beside(run.design, blocks),
        replicas=replicas(run.design, blocks),
        clusters=clusters(run.design, blocks),
        thresholds=thresholds(run.design.fail_if, verdicts, cut),
    )


def _add_secondary(finding: Finding, all_secondary: Sequence[Secondary]) -> Finding:
    return replace(finding, secondary=tuple(secondary for secondary in all_secondary if secondary.ids == finding.ids))


def planned_verdicts(run: Run, blocks: UsableBlocks, latencies: Mapping[str, Latencies] | None = None) -> list[Finding]:
    """Return one finding per planned comparison; ``latencies`` are needed where the metric is a percentile of them."""
    primary = metric_of(run.design)
    pairs = compared(MetricFigures(run, blocks, primary.name), run.design.comparisons, latencies)
    return judge(pairs, primary, run.design.margin, _rule(run))


def _rule(run: Run) -> Callable[[int], Rule]:
    return Allowance(run.design, ended_by_clock=run.stopped == "budget").rule


def _without_figure(blocks: UsableBlocks, primary: Metric) -> list[str]:
    return sorted(
        trial.id
        for row in blocks.trials.values()
        for trial in row.values()
        if not value_of(trial.metrics, primary.name) > 0
    )


# Several runs side by side: each with a name of its own, and one ranking over all of them where there is one.


@dataclass(frozen=True)
class Member:
    """One of several runs; ``name`` distinguishes it from the others."""

    name: str
    run: Run
    analysis: Analysis


@dataclass(frozen=True)
class Several:
    """Runs that are reported together."""

    members: tuple[Member, ...]
    ranking: Ranking | None
    unranked: RefusedError | None  # why there is no ranking


def together(members: Sequence[Member]) -> Several:
    """Return the runs with the ranking over all of them, or with the reason why they can't be ranked."""
    try:
        ranking = rank_runs([(member.name, member.run) for member in members])
    except RefusedError as error:
        return Several(tuple(members), None, error)
    return Several(tuple(members), ranking, None)


def distinct_names(titles: Sequence[str], folders: Sequence[Path]) -> list[str]:
    """Return a name for each run: its title, and where that repeats its folder too, as short as can be."""
    repeated = {title for title, times in Counter(titles).items() if times > 1}
    alike = [folder for title, folder in zip(titles, folders, strict=True) if title in repeated]
    names = Counter(folder.name for folder in alike)
    return [
        f"{title} ({folder.name if names[folder.name] == 1 else folder})" if title in repeated else title
        for title, folder in zip(titles, folders, strict=True)
    ]
