"""What is said beside the figures: of the host, of the server, of what the run itself cost."""

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.load_checks import (
    CacheRanOut,
    ErrorsMet,
    PoolFilling,
    WarmUps,
    errors_met,
    generator_lateness_ms,
    reconnects_met,
    warm_ups,
)
from dbdyno.analysis.over_time import NOTABLE, is_clear
from dbdyno.analysis.summary import TreatmentSummary
from dbdyno.analysis.verdict.figures import HostSpeed
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.analysis.verdict.pairs import NotGranted, is_without, not_granted
from dbdyno.model.design import ALPHA, Design, Settle, Treatment
from dbdyno.model.disks import disk_names, layer_of
from dbdyno.model.metrics import part_of
from dbdyno.model.printable import one_line, short
from dbdyno.model.word import Word
from dbdyno.model.wording import UNKNOWN, count, drive_bytes, listed, margin_text, number, percent
from dbdyno.mysql.settings import CONFLICTS
from dbdyno.report.fleet import like_these_remark
from dbdyno.report.reasons import totals_text
from dbdyno.report.sections.stability import rate_text, regime_remarks, seconds
from dbdyno.report.sentences import has_letters, treatments_named, with_interval
from dbdyno.report.source import figure
from dbdyno.store.records import Run, Trial

# What must be known of a run as a whole, a sentence each: how it ended, what is left out, what its load met.


VOID_NAMED = 6  # more attempts than that are only counted
MESSAGE_MAX = 80  # characters

# How a run ended -> what is said of it, and the remedy where it was measured here.
_ENDED = {
    "running": (
        "The run is not finished: it is still going on, or it was killed",
        " (then: dbdyno restore, and go on with --resume)",
    ),
    "interrupted": ("The run was interrupted", "; go on with --resume"),
    "failed": ("The run was stopped by a failure", "; once that is mended, go on with --resume"),
}
_LEFT_AT_THAT = "Verdicts are not valid if the run was stopped because of them: p does not allow for that look."


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
        yield f"{label}: {errors_text(met)}."
    if lost := reconnects_met(trials):
        yield f"{label} lost and replaced {count(lost, 'connection')}."


def errors_text(met: ErrorsMet) -> str:
    """Return ``"10 deadlocks and 2 lock wait timeouts, retried, in 8 trials"``."""
    return f"{errors_named(met)}, in {count(met.trials, 'trial')}"


_RETRYING = {"oltp", "tpcc", "ledger", "script", "bulk"}  # loads that send a transaction again after a conflict


def errors_named(met: ErrorsMet) -> str:
    """Return ``"10 deadlocks, retried; 2 errors 1062 (Duplicate entry), ignored"``."""
    retried = [error for error in met.counts if met.kind in _RETRYING and error[1] in CONFLICTS]
    ignored = [error for error in met.counts if error not in retried]
    return "; ".join(
        f"{listed([_error_text(*error) for error in errors])}, {what}"
        for errors, what in ((retried, "retried"), (ignored, "ignored"))
        if errors
    )


def _error_text(times: int, code: int, message: str) -> str:
    conflict, plural = CONFLICTS.get(code), "s" if times > 1 else ""
    return f"{times:,} {conflict}{plural}" if conflict else f"{times:,} error{plural} {code} ({_short(message)})"


def _short(message: str) -> str:
    return message if len(message) <= MESSAGE_MAX else f"{message[:MESSAGE_MAX]}..."


def how_it_ended(run: Run) -> str:
    """Return the sentence on a run that is not done."""
    text, remedy = _ENDED.get(run.ended, (f"The run ended otherwise than planned: {run.ended}", ""))
    if run.failure:
        text += f": {short(run.failure).removesuffix('.')}"
    return f"{text}{'' if run.imported or '--resume' in text else remedy}."


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
        notes.append(f"Left out, because a trial in it failed, met interference or is missing: {_void(run, blocks)}.")
    return notes


def _void(run: Run, blocks: UsableBlocks) -> str:
    """Each attempt by its numbers, in a suite with its load; where they are many, how many."""
    if len(blocks.void) > VOID_NAMED:
        load = "a load of " if run.design.factor_of_loads else ""
        return (
            f"{count(len(blocks.void), 'attempt')} at {load}{count(len({block for block, *_ in blocks.void}), 'block')}"
        )
    named = ((run.design.part_label(part), block, attempt) for block, attempt, part in blocks.void)
    return ", ".join(
        f"{f'{label} in ' if label else ''}block {block} attempt {attempt}" for label, block, attempt in named
    )


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
        " whatever the treatment; comparing inside blocks keeps this out of the verdicts."
    )
    return [note]


# What kept processors from halting, and the time it took that would have been idle.


def awake_lines(run: Run) -> list[str]:
    """Return a sentence for each means and the treatments it stood for; nothing where processors halted as usual."""
    treatments_by_means: dict[str, set[str]] = {}
    for trial in run.trials:
        if by := trial.awake.get("by"):
            treatments_by_means.setdefault(str(by), set()).add(trial.treatment)
    return [_line(run, by, treatments) for by, treatments in sorted(treatments_by_means.items())]


def _line(run: Run, by: str, treatments: set[str]) -> str:
    all_of_them = treatments >= {treatment.id for treatment in run.design.treatments}
    of = "" if all_of_them else f" for {', '.join(run.design.labels.get(id_, id_) for id_ in sorted(treatments))}"
    line = f"Processors were kept awake {by}{of}"
    trials = [trial for trial in run.trials if trial.treatment in treatments and trial.awake.get("by") == by]
    used = [seconds for trial in trials if (seconds := figure(trial.awake, "cpu_seconds"))]
    if not used:
        return f"{line}."
    return (
        f"{line}, which used {number(fmean(used))} s of otherwise idle time a trial (mean). It counts as %idle,"
        " which then includes waiting for I/O (%iowait); CPU pressure is unknown."
    )


# What a report says of an external server: not restarted, loaded by us, and what could not be seen.


OTHERS = "others"  # who started the server, as it is observed


def external_server_lines(run: Run) -> list[str]:
    """Return how each treatment on an external server got its data, and what is unknown; empty where there is none."""
    trials = [trial for trial in run.trials if part_of(trial.observed, "server").get("started_by") == OTHERS]
    if not trials:
        return []
    return [
        "The server is external and was not restarted between trials: what it keeps in memory stayed warm.",
        *_data_lines(run, trials),
        *_unknown_lines(trials),
    ]


def machine_lines(run: Run) -> list[str]:
    """Return what is unknown of machines that were booted from images of the user's own; empty without any."""
    images = dict.fromkeys(image for trial in run.trials if (image := part_of(trial.observed, "guest").get("image")))
    if not images:
        return []
    names = ", ".join(one_line(str(image)) for image in images)
    unknown = "its filesystem, its I/O scheduler and its use of the CPU were not read back, so they are unknown"
    return [
        f"The server ran in a machine of your own ({names}): {unknown}.",
        "Each trial began with a fresh boot; what the machine wrote beside its emulated drive was thrown away.",
    ]


def is_unwatched(trial: Trial) -> bool:
    """Return whether the server's process was not seen, so that nothing is known of what others did beside it."""
    server = part_of(trial.observed, "server")
    return server.get("started_by") == OTHERS and server.get("process") != "found"


def _data_lines(run: Run, trials: list[Trial]) -> Iterator[str]:
    labels = run.design.labels
    by_origin: dict[str, dict[str, None]] = {}
    for trial in trials:
        how = str(part_of(trial.observed, "data").get("loaded", "unknown"))
        by_origin.setdefault(how, {})[labels.get(trial.treatment, trial.treatment)] = None
    for how, of in by_origin.items():
        which = "The data" if len(by_origin) == 1 else f"The data of {'; '.join(of)}"
        yield f"{which} was loaded {how}, and dropped at the end."


def _unknown_lines(trials: list[Trial]) -> Iterator[str]:
    yield "The server's disks, filesystem and memory limit are unknown."
    elsewhere = not any(part_of(trial.observed, "server").get("local") for trial in trials)
    if elsewhere:
        yield "Facts about host and processors are about the load generator's host, not the server's."
    if any(map(is_unwatched, trials)):
        where = "elsewhere" if elsewhere else "out of sight"
        yield (
            f"These are unknown, too, because its process is {where}: the server's CPU, and the interference that"
            " trials met; no block was repeated for that."
        )


# What each p of a report covers, and how likely any wrong word in all of it is.


def families_line(analysis: Analysis) -> str:
    """Return one sentence; empty where nothing was judged.

    Each family has 5 % for a wrong difference anywhere in it and, but for letters, 5 % for a wrong equivalence. What
    one family's words have to do with another's is not known, so these add up at worst.
    """
    judged = _verdict_families(analysis)
    if not judged:
        return ""
    letters = [name for name, shown in _letter_families(analysis).items() if shown]
    each, most = margin_text(ALPHA), margin_text(min(1.0, ALPHA * (2 * len(judged) + len(letters))))
    line = (
        f'Each p covers its own family: a wrong "different" anywhere in it has a chance of at most {each}, a wrong'
        f' "equivalent" as well. Here these are {listed(judged)}'
    )
    if letters:
        line += f"; letters say only who differs, with {each} for {listed(letters)}"
    line += f". So the chance of any wrong word in this report is at most {most}."
    if analysis.secondary:
        line += f" Secondary metrics are hints beside that: of those that stand out {each} are wrong on average."
    return line


def _verdict_families(analysis: Analysis) -> list[str]:
    factors = analysis.factors
    steady = analysis.steadiness.verdicts if analysis.steadiness else []
    families: list[tuple[str, list[Finding]]] = [
        ("planned comparison", analysis.verdicts),
        ("further pair", analysis.every_pair),
        ("main effect", [effect.verdict for effect in factors.main_effects]),
        ("simple effect", [effect.verdict for effect in factors.simple_effects]),
        ("interaction", [effect.verdict for effect in factors.interactions]),
        ("verdict on steadiness", steady),
    ]
    texts = [_family_text(name, len(verdicts)) for name, verdicts in families if _any(verdicts)]
    texts += _of_hosts(analysis)
    for each in analysis.beside:
        # A published table is held against verdicts of its own: of planned comparisons, and of what claims ask for.
        beside = f"beside what was published in {each.metric.words}"
        texts += [f"those {beside}"] if any(figure.against for figure in each.figures) else []
        texts += [f"those of claims {beside}"] if any(claim.outcomes for claim in each.claims) else []
    return texts


def _of_hosts(analysis: Analysis) -> list[str]:
    """Return the families of hosts: on hosts like these, levels fixed to hosts, effects between these."""
    if (fleet := analysis.fleet) is None:
        return []
    like = sum(comparison.method != "none" for comparison in fleet.like_these)
    levels = sum(difference.tested for difference in fleet.levels)
    effects = sum(difference.tested for difference in fleet.effects)
    families = (
        (like, f"{like} on hosts like these"),
        (levels, f"{count(levels, 'difference')} between hosts"),
        (effects, f"{count(effects, 'effect')} between hosts"),
    )
    return [words for number, words in families if number]


def _any(verdicts: list[Finding]) -> bool:
    return any(verdict.verdict is not Word.NOT_COMPARABLE for verdict in verdicts)


def _family_text(name: str, number: int) -> str:
    noun, _, rest = name.partition(" on ")
    return f"{count(number, noun)}{f' on {rest}' if rest else ''}"


def _letter_families(analysis: Analysis) -> dict[str, bool]:
    ranked = analysis.ranking is not None and any(analysis.ranking.ties.letters.values())
    not_planned = analysis.ties.pairs > sum(verdict.verdict is not Word.NOT_COMPARABLE for verdict in analysis.verdicts)
    of_table = has_letters(analysis) and not_planned and not analysis.every_pair
    return {"all other pairs": of_table, "the ranking's": ranked}


# What the filesystems below the data did: whether a sync reached the device, how full and how fragmented they were.


LISTED_MAX = 6  # figures that are given one by one
NEARLY_FULL = 0.1  # below this share of free room filesystems allocate worse


def filesystem_lines(run: Run) -> list[str]:
    """Return a sentence on syncs that did not reach the device, on fragmentation, and on room where it was short."""
    return [*_sync_lines(run), *_extent_lines(run), *_room_lines(run)]


def _by_treatment(run: Run) -> Iterator[tuple[Treatment, list[Trial]]]:
    for treatment in run.design.treatments:
        trials = [trial for trial in run.trials if trial.treatment == treatment.id]
        if trials:
            yield treatment, trials


def _sync_lines(run: Run) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for treatment, trials in _by_treatment(run):
        unsynced = [
            _why_unsynced(trial, disk)
            for trial in trials
            for disk in ("", *disk_names(trial.observed))
            if layer_of(trial.observed, "filesystem", disk).get("flushes_on_fsync") is False
        ]
        for reason in dict.fromkeys(unsynced):
            reasons.setdefault(reason, []).append(treatment.id)
    where = "; ".join(
        f"{treatments_named(ids, run.design.treatments, ', ')} ({reason})" for reason, ids in reasons.items()
    )
    if not where:
        return []
    return [f"A sync did not make the device empty its cache with {where}. What that gains, a power cut may take."]


def _why_unsynced(trial: Trial, disk: str) -> str:
    of = f"disk {disk}: " if disk else ""
    if part_of(trial.observed, "device").get("kind") == "memory":
        return "there is no device"
    if layer_of(trial.observed, "queue", disk).get("write_cache") == "write through":
        return f"{of}to the kernel it has none that a power cut takes"
    barriers = layer_of(trial.observed, "filesystem", disk).get("barriers")
    return f"{of}barriers are off" if barriers is False else f"{of}for no known reason"


def _extent_lines(run: Run) -> list[str]:
    means = {}
    for treatment, trials in _by_treatment(run):
        densities = [value for trial in trials if (value := figure(trial.space, "extents_per_GiB")) is not None]
        if densities:
            means[treatment.label] = fmean(densities)
    if not means:
        return []
    figures = "; ".join(f"{label}: {number(mean)}" for label, mean in means.items())
    if len(means) > LISTED_MAX:
        least, most = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
        figures = f"from {number(means[least])} ({least}) to {number(means[most])} ({most})"
    return [f"After the load the large data files lay in so many extents per GiB, mean over trials: {figures}."]


def _room_lines(run: Run) -> list[str]:
    short = []
    for treatment, trials in _by_treatment(run):
        shares = [share for trial in trials if (share := _free_share(trial.space)) is not None]
        if shares and min(shares) < NEARLY_FULL:
            short.append(f"{treatment.label} {percent(min(shares), sign=False)}")
    return [f"The filesystem was nearly full after the load; free were: {', '.join(short)}."] if short else []


def _free_share(space: Mapping[str, Any]) -> float | None:
    size, free = figure(space, "size_bytes"), figure(space, "free_bytes")
    return None if not size or free is None else free / size


# What the host's own speed, timed beside every trial, explains of what trials differ by.


NAMES = {"work_wall_ns": "a fixed piece of CPU work", "flush_ns": "a durable write to another disk"}
LEAST = 0.1  # r below which nothing is worth saying of it


def host_speed_lines(speed: HostSpeed | None) -> list[str]:
    """Return one sentence; nothing where it was not measured."""
    if speed is None:
        return []
    timed = f"Timed just before and after each load: {listed([NAMES[name] for name in speed.covariates])}."
    if not speed.used:
        return [f"{timed} Treatments differ in it, so it is not the host's own, and is not used."]
    if speed.r < LEAST:
        return [f"{timed} It does not explain the differences between trials (r = {speed.r:.2f})."]
    saved = percent(speed.saved, sign=False)
    explained = f"It explains what trials of a block differ by with r = {speed.r:.2f}, and that is taken off"
    return [f"{timed} {explained}: about {saved} fewer blocks are needed for the same intervals."]


def host_speed_json(speed: HostSpeed | None) -> dict[str, Any] | None:
    """Return what the host's speed explains as values; None where it was not measured."""
    return {"covariates": speed.covariates, "used": speed.used, "r": speed.r, "saved": speed.saved} if speed else None


# What came between two trials so that the one leaves less for the other, in words.


def settle_words(settle: Settle) -> str:
    """Return what comes before each load, as a study writes it: ``"30 s"``, ``"trial"``; empty for nothing."""
    return settle if settle == "trial" else f"{settle:g} s" if settle else ""


def settle_lines(design: Design) -> list[str]:
    """Return what every trial came after; nothing where nothing came between."""
    if not design.settle:
        return []
    if design.settle == "trial":
        baseline = next(treatment.label for treatment in design.treatments if treatment.id == design.baseline)
        return [f"Before each trial {baseline} ran once, unmeasured: so every trial follows the same load."]
    return [f"Each trial rested {settle_words(design.settle)} between the raising of its stack and its load."]


def step_lines(design: Design) -> list[str]:
    """Return which loads of a suite go on from one another, and what that means for what they show."""
    loads = design.factor_of_loads
    return [
        f"{', '.join(row)}: each goes on, on the same server, with the tables and the warm memory that the one before"
        " leaves. So what a level did in an earlier step is part of its figures in a later one."
        for row in (loads.chains() if loads else [])
    ]


# The health that the disks below the data report; an unknown figure is called unknown.


def smart_lines(run: Run) -> list[str]:
    """Return one sentence per disk: its figures before the first trial and after the last, or why there are none."""
    first: dict[str, Any] = {}
    last: dict[str, Any] = {}
    for trial in run.trials:
        for disk, health in trial.smart.items():
            if isinstance(health, Mapping):
                first.setdefault(disk, health.get("before"))
                last[disk] = health.get("after")
    return [f"SMART of {disk}: {_changes(before, last[disk])}." for disk, before in sorted(first.items())]


def _changes(before: object, after: object) -> str:
    if not (isinstance(before, Mapping) and isinstance(after, Mapping)):
        return str(before if not isinstance(before, Mapping) else after)
    changed = [
        f"{name.replace('_', ' ')} {_text(before.get(name))} to {_text(value)}"
        for name, value in after.items()
        if before.get(name) != value
    ]
    same = [f"{name.replace('_', ' ')} {_text(value)}" for name, value in after.items() if before.get(name) == value]
    return "; ".join(
        part for part in (", ".join(changed), f"as before: {', '.join(same)}" if same else "") if part
    ) or "it reported nothing"  # fmt: skip


def _text(value: object) -> str:
    return {True: "yes", False: "no", None: "unknown"}[value] if isinstance(value, bool | None) else str(value)


# What warm-ups until steady took, in words.


def warm_up_lines(analysis: Analysis) -> list[str]:
    """Return a line per treatment with its median and range; nothing where warm-ups had a length."""
    by_label = {row.label: warm_ups(analysis.blocks.of(row.id)) for row in analysis.treatments}
    return [f"{label}: {_took(summary)}." for label, summary in by_label.items() if summary]


def _took(summary: WarmUps) -> str:
    spread = f"{number(summary.median)} s in the median, {number(summary.shortest)} to {number(summary.longest)} s"
    missed = f"; {summary.not_steady} of {count(summary.of, 'trial')} reached the bound" if summary.not_steady else ""
    return f"the warm-up until steady took {spread}{missed}"


def warm_up_warning(analysis: Analysis) -> list[str]:
    """Return that warm-ups reached their bound, where that is more than a few of all."""
    summary = warm_ups(trial for row in analysis.blocks.trials.values() for trial in row.values())
    if summary is None or not summary.often_not_steady:
        return []
    trials = f"{summary.not_steady} of {count(summary.of, 'trial')}"
    why = "the rate was not shown to be steady when the warm-up reached its bound"
    return [f"In {trials} {why}; raise warmup_max, or measure for longer."]


# What must be known beside a verdict: carry-over, other totals, overload, a fast cache that ran out, regimes.


# That the buffer pool was still being filled while a treatment was measured, and the remedy.


LONGER = "measure for longer, after a longer warm-up if the load has one"


def filling_line(design: Design, fillings: Sequence[PoolFilling]) -> str:
    """Return one sentence for all treatments; nothing where no pool was still being filled."""
    if not fillings:
        return ""
    whose = "every treatment was"
    if len(fillings) < len(design.treatments):
        names = treatments_named([filling.id for filling in fillings], design.treatments)
        whose = f"{names} {'was' if len(fillings) == 1 else 'were'}"
    most = max(fillings, key=lambda filling: filling.found.first_per_query - filling.found.last_per_query)
    return f"The buffer pool was still being filled while {whose} measured ({_reads(most)}): {LONGER}."


def filling_text(filling: PoolFilling) -> str:
    """Return that one treatment's pool was still being filled, and what that means for its figures."""
    trials = "" if filling.trials == filling.of else f" in {filling.trials} of {count(filling.of, 'trial')}"
    return (
        f"The buffer pool was still being filled{trials}: {_reads(filling)}. The figures are those of a server that is"
        f" warming up, and depend on how long the trial was; {LONGER}."
    )


def _reads(filling: PoolFilling) -> str:
    reads = filling.found
    fell = f"pages read per query fell from {number(reads.first_per_query)} to {number(reads.last_per_query)}"
    if not math.isfinite(reads.free_at_the_end):
        return fell
    return f"{fell}, {percent(reads.free_at_the_end, sign=False)} of the pool was still free"


def filling_json(fillings: Sequence[PoolFilling]) -> list[dict[str, Any]]:
    """Return the figures."""
    return [
        {
            "id": filling.id,
            "pages_per_query_first_third": filling.found.first_per_query,
            "pages_per_query_last_third": filling.found.last_per_query,
            "free_at_the_end": filling.found.free_at_the_end,
            "trials": filling.trials,
            "of": filling.of,
        }
        for filling in fillings
    ]


REMEDY = (
    'In [design], set settle = "30s" or longer to rest before each load, or settle = "trial" to run the same trial'
    " before each."
)


def remarks(verdict: Finding, analysis: Analysis) -> list[str]:
    """Return what must be known beside a verdict.

    That a setting was not granted to one of the two; what is shown of hosts like these; that trials depend on the trial
    before, other totals, a treatment behind its rate, with a fast cache that ran out, with a buffer pool that was still
    being filled, or of changing regime.
    """
    compared = (verdict.level_id, verdict.baseline_id)
    behind = [text for row in analysis.treatments if row.id in compared and (text := overload_text(row))]
    apart = [text] if (text := totals_text(verdict.totals, verdict.blocks)) else []
    carried = _carry_over(verdict, analysis.metric.words)
    caches = [text for row in analysis.treatments if row.id in compared and (text := cache_text(row))]
    filling = [filling_text(pool) for pool in analysis.pools_filling if pool.id in compared]
    in_vain = list(_settings_not_granted(verdict, analysis))
    hosts = [text] if (text := like_these_remark(verdict, analysis)) else []
    return [*in_vain, *hosts, *carried, *apart, *behind, *caches, *filling[:1], *regime_remarks(analysis, compared)]


def overload_text(row: TreatmentSummary) -> str:
    """Return that a treatment fell behind an open loop's rate, and what its latencies are then; else nothing."""
    overload = row.overload
    if overload is None:
        return ""
    where = "" if overload.trials == overload.of else f" in {overload.trials} of {count(overload.of, 'trial')}"
    offered, achieved = rate_text(overload.offered_per_second), rate_text(overload.achieved_per_second)
    return (
        f"{row.label} was offered {offered}/s, achieved {achieved}/s{where}: the queue grew to {overload.backlog_max:,}"
        "; latencies are those of an overloaded server."
    )


def _carry_over(verdict: Finding, words: str) -> list[str]:
    """Return that trials depend on which trial ran before, where they do, and what became of that; else nothing."""
    carry_over = verdict.carry_over
    if carry_over is None or not carry_over.seen:
        return []
    size = with_interval(carry_over.difference)
    seen = f"Carry-over: trials after {verdict.level} differ from trials after {verdict.baseline} by {size} {words}."
    if not carry_over.taken_out:
        rest = "the verdict stands only if it survives removing this effect"
        return [f"{seen} As measured, about {percent(carry_over.shift)} of the difference is that; {rest}. {REMEDY}"]
    measured = with_interval(verdict.as_measured) if verdict.as_measured else UNKNOWN
    return [f"{seen} Effect, interval and verdict are corrected for it; as measured the effect is {measured}. {REMEDY}"]


def _settings_not_granted(verdict: Finding, analysis: Analysis) -> Iterator[str]:
    """Yield what one of the two had in name only, which the other had not or was granted."""
    sides = {verdict.level_id: verdict.level, verdict.baseline_id: verdict.baseline}
    settings = {id_: {setting.name: setting for setting in not_granted(analysis.blocks.of(id_))} for id_ in sides}
    for id_, other in zip(sides, reversed(sides), strict=True):
        for name, setting in settings[id_].items():
            if name in settings[other]:
                continue
            if not setting.by_server:
                yield f"{name} = {setting.value} changes nothing on this host for {sides[id_]}: {setting.said}."
                continue
            without = is_without(analysis.blocks.of(other), name)
            both = f", so {sides[id_]} and {sides[other]} were both measured without it" if without else ""
            if setting.is_of_tables:
                yield f"The tables of {sides[id_]} have their options in name only: {setting.said}."
                continue
            refusal = f"The host did not grant {name} = {setting.value} to {sides[id_]}{both}"
            yield f"{refusal}. The server's log: {setting.said}."


def not_granted_lines(run: Run, analysis: Analysis) -> Iterator[str]:
    """Yield a line for each setting that treatments had in name only."""
    treatments: dict[tuple[str, str], list[str]] = {}
    refusals: dict[tuple[str, str], NotGranted] = {}
    for treatment in run.design.treatments:
        for setting in not_granted(analysis.blocks.of(treatment.id)):
            treatments.setdefault((setting.name, setting.value), []).append(treatment.id)
            refusals.setdefault((setting.name, setting.value), setting)
    for (name, value), ids in treatments.items():
        refusal = refusals[name, value]
        whose = (
            "any treatment" if len(ids) == len(run.design.treatments) else treatments_named(ids, run.design.treatments)
        )
        if refusal.is_of_tables:
            yield f"Tables of {whose} have options in name only ({value}): {refusal.said}."
        elif refusal.by_server:
            yield f"The host did not grant {name} = {value} to {whose}: the server's log says {refusal.said}."
        else:
            yield f"{name} = {value} changes nothing on this host: {refusal.said}."


def cache_text(row: TreatmentSummary) -> str:
    """Return that the drive's fast cache ran out, how large it was, and when; else nothing."""
    cache = row.cache_ran_out
    if cache is None:
        return ""
    trials = count(cache.of, "trial")
    where = f" ({trials})" if cache.trials == cache.of else f" ({cache.trials} of {trials})"
    if cache.after_s <= 0:
        what = "before measuring began", "its figure is the rate of a drive without one"
    else:
        after = f"{seconds(cache.after_s)} after measuring began"
        what = after, "its figure is a mean of the rate before and after, and depends on how long the run was"
    return f"The fast cache of {row.label}, {_size(cache)}, ran out {what[0]}{where}: {what[1]}."


def _size(cache: CacheRanOut) -> str:
    part = math.isfinite(cache.drive_bytes) and cache.bytes < cache.drive_bytes
    return drive_bytes(cache.bytes) + (f" where the drive has {drive_bytes(cache.drive_bytes)}" if part else "")
