"""The analysis of a run, from its trials to its verdicts. Deterministic: no clock, no random numbers."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from dbdyno.analysis.block_layer import BlockLayer, block_layer
from dbdyno.analysis.blocks import UsableBlocks, usable_blocks
from dbdyno.analysis.cost import Cost, cost
from dbdyno.analysis.drift import drift_over_run
from dbdyno.analysis.evidence import Rule
from dbdyno.analysis.factorial import Factorial, factorial
from dbdyno.analysis.letters import Ties, ties
from dbdyno.analysis.load_met import errors_met, generator_lateness_ms, reconnects_met
from dbdyno.analysis.metrics import Metric, metric_of, number, value_of
from dbdyno.analysis.noise_floor import NoiseFloor, noise_floor
from dbdyno.analysis.pairs import every_pair, paired, plans_every_pair
from dbdyno.analysis.ranking import Ranking, ranking_of_run
from dbdyno.analysis.reported import Beside, beside
from dbdyno.analysis.screening import Screened, screen
from dbdyno.analysis.settling import LoadSeries, TreatmentStability, settling
from dbdyno.analysis.steadiness import Steadiness, steadiness
from dbdyno.analysis.stopping import Allowance, Looked, looked
from dbdyno.analysis.summary import TreatmentSummary, summarise
from dbdyno.analysis.verdict import Verdict, judge
from dbdyno.analysis.why import Seen, Why, explain
from dbdyno.analysis.wording import count, percent, percent_range
from dbdyno.store.records import Run

DRIFT_WORTH_A_NOTE = 0.01
VOID_NAMED = 6  # more attempts than that are only counted


@dataclass(frozen=True)
class Analysis:
    """Everything a report says about a run, apart from its series."""

    title: str
    question: str
    metric: Metric
    margin: float
    verdicts: list[Verdict]
    every_pair: list[Verdict]  # not planned, a family of their own; empty unless asked for
    screened: list[Screened]
    ranking: Ranking | None  # where loads and stacks both vary
    treatments: list[TreatmentSummary]
    ties: Ties  # of the treatments, by id
    blocks: UsableBlocks
    looks: Looked
    notes: list[str]
    noise_floor: NoiseFloor | None  # of an A/A run
    factors: Factorial
    stability: list[TreatmentStability]  # empty where no series were given
    block_layer: list[BlockLayer]  # empty where no block trace was asked for
    why: Why  # empty where nothing of what probes saw was given
    cost: Cost | None  # where the study gives prices
    beside: list[Beside]  # what others published of it
    steadiness: Steadiness | None  # where the study asks for it


def analyse(
    run: Run, *, each_pair: bool = False, load_series: LoadSeries | None = None, watched: Seen | None = None
) -> Analysis:
    """Return the verdicts, the table and the notes of a run, finished or not; with ``each_pair`` verdicts of all."""
    blocks = usable_blocks(run)
    primary = metric_of(run.design)
    further = every_pair(run.design) if each_pair and not plans_every_pair(run.design) else []
    unplanned = paired(run.design, blocks, further, primary.name)
    failures = Counter(failure.treatment for failure in run.failures)
    rule = _rule(run)
    verdicts = planned_verdicts(run, blocks)
    steady = steadiness(run, blocks, load_series or {}, rule)
    unplanned_verdicts = judge(unplanned, primary, run.design.margin, rule)
    return Analysis(
        title=run.title,
        question=run.question,
        metric=primary,
        margin=run.design.margin,
        verdicts=verdicts,
        every_pair=unplanned_verdicts,
        screened=screen(run.design, blocks, rule),
        ranking=ranking_of_run(run, blocks, rule),
        treatments=summarise(run.design, blocks, failures, rule),
        ties=_ties(run, blocks, primary, rule),
        blocks=blocks,
        looks=looked(run.design, len(blocks.trials)),
        notes=_notes(run, blocks, primary),
        noise_floor=noise_floor(run, blocks),
        factors=factorial(run.design, blocks, primary, rule),
        stability=settling(run.design, blocks, load_series or {}),
        block_layer=block_layer(run.design, blocks),
        why=explain(run.design, blocks, [*verdicts, *unplanned_verdicts], watched or {}, rule),
        cost=cost(run.design, blocks, run.prices, rule),
        beside=beside(run, blocks, rule, steady),
        steadiness=steady,
    )


def planned_verdicts(run: Run, blocks: UsableBlocks) -> list[Verdict]:
    """Return one verdict per planned comparison."""
    pairs = paired(run.design, blocks, run.design.comparisons, run.design.metric)
    return judge(pairs, metric_of(run.design), run.design.margin, _rule(run))


def _rule(run: Run) -> Callable[[int], Rule]:
    return Allowance(run.design, ended_by_clock=run.stopped == "budget").rule


def _ties(run: Run, blocks: UsableBlocks, primary: Metric, rule: Callable[[int], Rule]) -> Ties:
    kept = [treatment.id for treatment in run.design.treatments if treatment.id not in blocks.dropped]
    values = {id_: blocks.values(id_, primary.name) for id_ in kept}
    return ties(values, rule, more_is_better=primary.more_is_better)


_ENDED = {
    "running": "The run is not finished: it is still going on, or it was killed (then: dbdyno restore, and go on with "
    "--resume).",
    "interrupted": "The run was interrupted; go on with --resume.",
    "failed": "The run was stopped by a failure.",
}
_LEFT_AT_THAT = "Whoever leaves it at that for what the verdicts say has taken a look that p does not allow for."


def _load_notes(run: Run, blocks: UsableBlocks) -> list[str]:
    """Errors that were ignored, connections that were replaced, events that were started late."""
    notes = []
    for treatment in run.design.treatments:
        trials = blocks.of(treatment.id)
        if met := errors_met(trials):
            notes.append(f"{treatment.label} met and ignored {met}.")
        if lost := reconnects_met(trials):
            notes.append(f"{treatment.label} lost and replaced {count(lost, 'connection')}.")
        if late := generator_lateness_ms(trials):
            notes.append(
                f"{treatment.label}: the load generator itself was late, 1 % of the events by more than"
                f" {number(late)} ms, for want of CPU; that is in their latency."
            )
    return notes


def _notes(run: Run, blocks: UsableBlocks, primary: Metric) -> list[str]:
    notes = []
    if run.ended != "done":
        notes.append(_ENDED.get(run.ended, f"The run ended otherwise than planned: {run.ended}."))
        if run.ended in {"running", "interrupted"} and run.design.until != "open" and blocks.trials:
            notes.append(_LEFT_AT_THAT)
    whole = run.design.blocks if run.design.until == "blocks" and run.stopped in {"", "blocks"} else _blocks_run(run)
    if len(blocks.trials) < whole:
        of = "planned block" if whole == run.design.blocks else "block"
        notes.append(f"{len(blocks.trials)} of {count(whole, of)} can be used.")
    if blocks.void:
        notes.append(f"Left out, because a trial in it failed, was disturbed or is missing: {_void(blocks)}.")
    lacking = sorted(
        trial.id
        for row in blocks.trials.values()
        for trial in row.values()
        if not value_of(trial.metrics, primary.name) > 0
    )
    if lacking:
        notes.append(f"Without a usable {primary.name}: {', '.join(lacking)}.")
    measured = [f"What was measured: {run.setup}."] if run.setup else []
    return [*measured, *notes, *_load_notes(run, blocks), *_drift_notes(run, blocks, primary)]


def _void(blocks: UsableBlocks) -> str:
    """Each attempt by its numbers; where they are many, how many."""
    if len(blocks.void) <= VOID_NAMED:
        return ", ".join(f"block {block} attempt {attempt}" for block, attempt in blocks.void)
    return f"{count(len(blocks.void), 'attempt')} at {count(len({block for block, _ in blocks.void}), 'block')}"


def _blocks_run(run: Run) -> int:
    return len({trial.block for trial in run.trials} | {failure.block for failure in run.failures})


def _drift_notes(run: Run, blocks: UsableBlocks, primary: Metric) -> list[str]:
    used = {trial.id for row in blocks.trials.values() for trial in row.values()}
    ordered = [(place, trial) for place, trial in enumerate(run.trials) if trial.id in used]
    drift = drift_over_run(
        [place for place, _ in ordered],
        [trial.treatment for _, trial in ordered],
        [value_of(trial.metrics, primary.name) for _, trial in ordered],
    )
    if not drift.known or abs(drift.value) < DRIFT_WORTH_A_NOTE or drift.low <= 0 <= drift.high:
        return []
    note = (
        f"From the first trial to the last the {primary.words} drifted by {percent(drift.value)}"
        f" (95 % interval {percent_range(drift.low, drift.high)}), whatever the treatment;"
        " comparing inside blocks takes this out of the verdicts."
    )
    return [note]
