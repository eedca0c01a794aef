"""What must be known of a run as a whole, a sentence each: how it ended, what is left out, what its load met."""

from collections.abc import Iterator, Sequence

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.checks.load import ErrorsMet, errors_met, generator_lateness_ms, reconnects_met
from dbdyno.analysis.over_time import NOTABLE, is_clear
from dbdyno.model.wording import count, number
from dbdyno.report.sentences import with_interval
from dbdyno.store.records import Run, Trial

VOID_NAMED = 6  # more attempts than that are only counted
MESSAGE_MAX = 80  # characters

_ENDED = {
    "running": "The run is not finished: it is still going on, or it was killed (then: dbdyno restore, and go on with "
    "--resume).",
    "interrupted": "The run was interrupted; go on with --resume.",
    "failed": "The run was stopped by a failure.",
}
_LEFT_AT_THAT = "Whoever leaves it at that for what the verdicts say has taken a look that p does not allow for."


def run_notes(run: Run, analysis: Analysis) -> list[str]:
    """Return the sentences."""
    measured = [f"What was {'simulated' if run.is_simulated else 'measured'}: {run.setup}."] if run.setup else []
    notes = [*measured, *_end_notes(run, analysis.blocks), *_block_notes(run, analysis.blocks)]
    if analysis.without_figure:
        notes.append(f"Without a usable {analysis.metric.name}: {', '.join(analysis.without_figure)}.")
    return [*notes, *_load_notes(run, analysis.blocks), *_drift_notes(analysis)]


def failures_met(label: str, trials: Sequence[Trial]) -> Iterator[str]:
    """Yield that trials of a treatment met errors, that they lost connections."""
    if met := errors_met(trials):
        yield f"{label} met and ignored {errors_text(met)}."
    if lost := reconnects_met(trials):
        yield f"{label} lost and replaced {count(lost, 'connection')}."


def errors_text(met: ErrorsMet) -> str:
    """Return ``"12 errors (10 x 1213 Deadlock found ..., 2 x 1205 ...) in 8 trials"``."""
    each = ", ".join(f"{times:,} x {code} {_short(message)}" for times, code, message in met.counts)
    return f"{count(met.total, 'error')} ({each}) in {count(met.trials, 'trial')}"


def _short(message: str) -> str:
    return message if len(message) <= MESSAGE_MAX else f"{message[:MESSAGE_MAX]}..."


def how_it_ended(run: Run) -> str:
    """Return the sentence on a run that is not done."""
    return _ENDED.get(run.ended, f"The run ended otherwise than planned: {run.ended}.")


def _end_notes(run: Run, blocks: UsableBlocks) -> list[str]:
    if run.ended == "done":
        return []
    how = how_it_ended(run)
    looked = run.ended in {"running", "interrupted"} and run.design.until != "open" and blocks.trials
    return [how, _LEFT_AT_THAT] if looked else [how]


def _block_notes(run: Run, blocks: UsableBlocks) -> list[str]:
    begun = len({trial.block for trial in run.trials} | {failure.block for failure in run.failures})
    whole = run.design.blocks if run.design.until == "blocks" and run.stopped in {"", "blocks"} else begun
    notes = []
    if len(blocks.trials) < whole:
        of = "planned block" if whole == run.design.blocks else "block"
        notes.append(f"{len(blocks.trials)} of {count(whole, of)} can be used.")
    if blocks.void:
        notes.append(f"Left out, because a trial in it failed, met interference or is missing: {_void(blocks)}.")
    return notes


def _void(blocks: UsableBlocks) -> str:
    """Each attempt by its numbers; where they are many, how many."""
    if len(blocks.void) <= VOID_NAMED:
        return ", ".join(f"block {block} attempt {attempt}" for block, attempt in blocks.void)
    return f"{count(len(blocks.void), 'attempt')} at {count(len({block for block, _ in blocks.void}), 'block')}"


def _load_notes(run: Run, blocks: UsableBlocks) -> Iterator[str]:
    """Errors that were ignored, connections that were replaced, events that were started late."""
    for treatment in run.design.treatments:
        trials = blocks.of(treatment.id)
        yield from failures_met(treatment.label, trials)
        if late := generator_lateness_ms(trials):
            yield (
                f"{treatment.label}: the load generator itself was late, 1 % of the events by more than"
                f" {number(late)} ms, as it lacked CPU; that is in their latency."
            )


def _drift_notes(analysis: Analysis) -> list[str]:
    drift = analysis.drift
    if not is_clear(drift) or abs(drift.value) < NOTABLE:
        return []
    note = (
        f"From the first trial to the last the {analysis.metric.words} drifted by {with_interval(drift)},"
        " whatever the treatment; comparing inside blocks takes this out of the verdicts."
    )
    return [note]
