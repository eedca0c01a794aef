"""The sentence for each reason of a verdict, amounts of time in it, and what the tool itself took from the host."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from dbdyno.analysis.lateness import EmulatedCpu, LateDisk
from dbdyno.analysis.verdict.evidence import Exaggeration, Resolution
from dbdyno.analysis.verdict.finding import Totals, excluded_share
from dbdyno.analysis.verdict.reasons import (
    CarryOver,
    Cause,
    Code,
    Dropped,
    EventsTogether,
    InNameOnly,
    Lack,
    LimitedClients,
    Obstacle,
    Reason,
    TooFew,
    UnequalFailures,
    ZeroFigures,
)
from dbdyno.model.design import ALPHA
from dbdyno.model.disks import disks_of, named_disks_of
from dbdyno.model.wording import count, is_or_are, listed, margin_text, number, p_value, percent, percent_range
from dbdyno.report.source import figure
from dbdyno.store.records import Run

# Amounts of time as an explanation gives them: three digits, once where two are about the same.


SAME = 0.05  # figures that differ by less are given once
_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def duration(ms: float) -> str:
    """Return milliseconds with three digits: ``"33.1 ms"``, or ``"62.4 us"`` below 1 ms."""
    value, unit = (ms * 1000, "us") if abs(ms) < 1 else (ms, "ms")
    return f"{digits(value)} {unit}"


def signed(ms: float) -> str:
    """Return a duration with its sign: ``"+33.1 ms"``."""
    return f"{'+' if ms > 0 else ''}{duration(ms)}"


def digits(value: float) -> str:
    """Return three digits: ``"0.311"``."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == 0 else f"{value:#.3g}"  # noqa: PLR2004 - three digits


def rounded(value: float) -> str:
    """Return a mean number of things with two digits: ``"9.9"``, ``"20"``."""
    return f"{float(f'{value:.2g}'):,g}"


def about(value: float) -> str:
    """Return a mean number of things in a word: ``"ten"`` of 9.9; of many in figures."""
    whole = max(1, round(value))
    return _WORDS[whole - 1] if whole <= len(_WORDS) else rounded(value)


def share(fraction: float) -> str:
    """Return a fraction in percent: ``"31 %"``, ``"0.4 %"``."""
    return f"{100 * fraction:.0f} %" if fraction >= 0.01 or fraction == 0 else f"{100 * fraction:.1g} %"  # noqa: PLR2004


def one_or_two(new: float, old: float, form: Callable[[float], str] = duration) -> str:
    """Return one figure where both are about the same, else ``"1.5 ms instead of 10.1 ms"``."""
    return f"{form(new)}" if about_the_same(new, old) else f"{form(new)} instead of {form(old)}"


def about_the_same(new: float, old: float) -> bool:
    """Return whether two figures are given as one."""
    return abs(new - old) <= SAME * max(abs(new), abs(old))


# What the tool itself took from the host: CPU of the probes, and how late the emulated disk answered.


def overhead_lines(run: Run) -> list[str]:
    """Return a sentence each about what the run folder has of it, over all finished trials."""
    return [*_probe_lines(run), *_disk_lines(run)]


def late_text(late_us: float) -> str:
    """Return ``"312 us late"``, or ``"12.0 us early"``."""
    return f"{duration(abs(late_us) / 1e3)} {'late' if late_us >= 0 else 'early'}"


def beside_the_request(late_us: float, request_us: float) -> str:
    """Return what a request took, of which lateness was a part: ``"of the 380 us that one took"``."""
    took = duration(request_us / 1e3)
    return f"of the {took} that one took" if late_us >= 0 else f"beside the {took} that one took"


def _probe_lines(run: Run) -> list[str]:
    lines = []
    own, outside = _shares(run, "cpu_percent"), _shares(run, "outside_cpu_percent")
    if own:
        line = f"The probes took {number(math.fsum(own.values()))} % of one core on average ({_each(own)})"
        outside_text = f", and answering them took {number(math.fsum(outside.values()))} % ({_each(outside)})"
        lines.append(f"{line}{outside_text if outside else ''}.")
    missed = math.fsum(figure(probe, "missed") or 0 for trial in run.trials for probe in trial.probes.values())
    if missed:
        lines.append(f"The probes missed {count(round(missed), 'sample')}.")
    return lines


def _shares(run: Run, figure_name: str) -> dict[str, float]:
    """Probe to its share of one core in percent, mean over the trials that have it."""
    shares: dict[str, list[float]] = {}
    for trial in run.trials:
        for name, probe in trial.probes.items():
            share = figure(probe, figure_name)
            if share is not None:
                shares.setdefault(name, []).append(share)
    return {name: fmean(values) for name, values in sorted(shares.items())}


def _each(shares: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {number(share)} %" for name, share in shares.items())


def _disk_lines(run: Run) -> list[str]:
    late = [disk.get("lateness_ns") for trial in run.trials for disk in (trial.device, *named_disks_of(trial.device))]
    p99 = [value / 1e3 for each in late if (value := figure(each, "p99")) is not None]
    largest = [value / 1e3 for each in late if (value := figure(each, "max")) is not None]
    if not p99:
        return []
    path = _path_line(run)
    when = "they were due" if path else "the model's time"
    line = (
        f"The emulated disk answered 99 % of its requests at most {number(fmean(p99))} us after {when}"
        f" (mean over trials; {number(max(p99))} us in the worst trial"
    )
    return [f"{line}; {number(max(largest))} us the latest single answer)." if largest else f"{line}).", *path]


def _path_line(run: Run) -> list[str]:
    """What loop device, FUSE and wake-ups take of each request, and how much of it the answers made up for."""
    both = [path_us for trial in run.trials for disk in disks_of(trial.device) if (path_us := _path_us(disk))]
    if not both:
        return []
    taken, left = (fmean(each) for each in zip(*both, strict=True))
    seems = "slower" if left >= 0 else "faster"
    line = (
        f"The path to the emulated disk and back takes {number(taken + left)} us a request; answers left"
        f" {number(taken)} us earlier to make up for it, so the drive seems {seems} by {number(abs(left))} us a"
        f" request (means over trials)."
    )
    return [line]


def _path_us(device: Mapping[str, Any]) -> tuple[float, float] | None:
    """How much earlier answers left on average, and what of the path remained, us; none if unknown."""
    mean = {name: figure(device.get(f"path_{name}_ns"), "mean") for name in ("taken", "left", "early")}
    taken, left, early = mean["taken"], mean["left"], mean["early"]
    if taken is None:
        return None
    if left is not None and early is not None:
        return taken / 1e3, (left - early) / 1e3
    path = figure(device, "path_ns")  # all of it, as it was measured when the disk was attached
    return None if path is None else (taken / 1e3, max(0.0, path - taken) / 1e3)


def reason_text(reason: Reason | Obstacle) -> str:
    """Return why a word was chosen, without a capital letter or a full stop."""
    if not isinstance(reason, Reason):
        return _obstacle_text(reason)
    if reason.withheld_for is not None:
        return f"as measured it is {reason.withheld}, but {cause_text(reason.withheld_for)}"
    coarse = "" if reason.code is Code.TOO_COARSE else resolution_text(reason.resolution, reason.margin)
    text = _TEXTS[reason.code](reason)
    if reason.hidden_by is not None:
        help_of_blocks = "may" if reason.blocks_may_help else "would"
        text = f"{text}: {cause_text(reason.hidden_by)}, so more blocks {help_of_blocks} not help"
    elif reason.code in _OPEN:
        text = _then(reason, text)
    return f"{text}; {coarse}" if coarse else text


def reason_code(reason: Reason | Obstacle) -> str:
    """Return the reason for programs, in a word that stays: ``"DIFFERENT"``, ``"CARRY_OVER"``, ``"TOO_FEW"``."""
    cause = reason.withheld_for or reason.code if isinstance(reason, Reason) else reason
    return cause.name if isinstance(cause, Code) else re.sub(r"(?<!^)(?=[A-Z])", "_", type(cause).__name__).upper()


def as_sentence(reason: Reason | Obstacle) -> str:
    """Return the reason as a sentence of its own."""
    text = reason_text(reason)
    return f"{text[0].upper()}{text[1:]}."


def exaggeration_text(exaggeration: Exaggeration) -> str:
    """Return how often such runs find the effect, and how large it then looks; empty where that matters little."""
    if not exaggeration.notable:
        return ""
    share = percent(exaggeration.power, sign=False)
    factor = f"{exaggeration.factor:.1f}"
    return f"so few blocks detect such an effect in {share} of runs, and then overstate it {factor} times"


def resolution_text(resolution: Resolution, margin: float) -> str:
    """Return how coarse the figures are; empty where that is little beside the margin."""
    if not resolution.notable(margin):
        return ""
    if resolution.relative:
        width = percent(resolution.log_width, sign=False)
        steps = f"the figures come from a histogram with buckets that are {width} wide"
    else:
        size = f"{resolution.step:g}" if resolution.unit in {"", "1"} else f"{resolution.step:g} {resolution.unit}"
        steps = (
            f"the figures are rounded to steps of {size}, {percent(resolution.log_width, sign=False)} of their value"
        )
    if resolution.too_coarse(margin):
        more = f"more than half the margin of {margin_text(margin)}"
        return f"{steps}: {more}, so no number of blocks can show equivalence"
    return f"{steps}, so the interval is widened by that at either end"


def totals_text(totals: Totals, blocks: int) -> str:
    """Return the sentence that stands beside the verdict; empty where the totals say the same."""
    if not totals.apart:
        return ""
    value, interval = totals.effect.value, percent_range(totals.effect.low, totals.effect.high)
    what = "the time of all work" if totals.of_time else "the sum over all blocks"
    total = f"{what} is {percent(abs(value), sign=False)} {'more' if value > 0 else 'less'}, 95 % interval {interval}"
    if not totals.far_off:
        return f"Average and typical block disagree: {total}."
    few = "one block was" if totals.far_off == 1 else "a few blocks were"
    far = ("slower" if value > 0 else "faster") if totals.of_time else ("higher" if value > 0 else "lower")
    return f"Average and typical block disagree: {few} far {far} ({totals.far_off} of {blocks}; {total})."


def _obstacle_text(obstacle: Obstacle) -> str:
    run = f" {obstacle.run}" if obstacle.run else ""
    match obstacle:
        case TooFew():
            return f"{count(obstacle.usable, f'usable {obstacle.unit}')}{run}, at least {obstacle.needed} are needed"
        case Dropped():
            return f"{_label_text(obstacle)} failed again and again{run} and was dropped"
        case InNameOnly(why=why) if why:
            return (
                f"{obstacle.setting} = {obstacle.value} changes nothing on this host for {obstacle.label} ({why}), so"
                " that both were measured alike"
            )
        case InNameOnly():
            return (
                f"the host did not grant {obstacle.setting} = {obstacle.value} to {obstacle.label}, so that both were"
                " measured without it"
            )
        case LimitedClients():
            clients = clients_named(obstacle.hosts)
            return f"{_label_text(obstacle)} was limited{run} by {clients}, so its figures are not the server's"
        case ZeroFigures():
            no_ratio = f"{';' if run else ', and'} there is no ratio to 0"
            return (
                f"{obstacle.metric} of {_label_text(obstacle)} is 0 in {count(obstacle.blocks, 'block')}{run}{no_ratio}"
            )


def clients_named(hosts: Sequence[str]) -> str:
    """Return ``"client c1"``, ``"clients c1 and c2"``."""
    return f"{'client' if len(hosts) == 1 else 'clients'} {listed(hosts)}"


def _label_text(obstacle: Dropped | ZeroFigures | LimitedClients) -> str:
    return f"{obstacle.label}, which it needs," if obstacle.of_contrast else obstacle.label


def cause_text(cause: Cause) -> str:
    """Return what may have made the word that the figures give."""
    match cause:
        case CarryOver(difference=size):
            return (
                f"carry-over from one trial to the next may explain it: corrected for the estimated carry-over"
                f" ({percent(size.value)}, {percent_range(size.low, size.high)}) the verdict does not hold"
            )
        case LateDisk():
            return (
                f"the emulated disk of {cause.label} answered {late_text(cause.late_us)} per request, which may change"
                f" the ratio by up to {percent(cause.reach, sign=False)}"
            )
        case EmulatedCpu():
            return (
                f"QEMU emulated the CPU, whose work took up to {percent(cause.share, sign=False)} of the time of"
                f" {cause.label} and may change the ratio by up to {percent(cause.reach, sign=False)}"
            )
        case EventsTogether(percentile=share, ratio=ratio):
            together = percent_range(ratio.low, ratio.high) if ratio.bounded else "unknown"
            return (
                f"the {100 * share:g}th percentile of all trials' events together does not confirm it"
                f" ({percent(ratio.value)},"
                f" 95 % interval {together}): some trials stall and others don't"
            )
        case UnequalFailures():
            return (
                f"{cause.label} failed or met interference in {count(cause.attempts, 'attempt')},"
                f" {cause.other} in {cause.other_attempts:,}, and unequal failures may explain the difference"
            )


def _over(reason: Reason) -> str:
    return f"over {count(reason.family, 'treatment' if reason.two_runs else 'comparison')}"


def _p(reason: Reason) -> str:
    return f"{p_value(reason.p_adjusted)} {_over(reason)}"


def agreeing_text(reason: Reason) -> str:
    """Return in how many blocks, or pairs of trials, the difference has the sign of the effect: "all 10 blocks"."""
    same, of = reason.agreeing
    if reason.two_runs:
        return f"{same:,} of the {of:,} pairs of a trial before and one after"
    return f"all {of} blocks" if same == of else f"{same} of {of} blocks"


def _different(reason: Reason) -> str:
    text = f"{reason.word} in {agreeing_text(reason)} ({_p(reason)}), and the interval excludes 0"
    exaggerated = exaggeration_text(reason.exaggeration)
    return f"{text}; {exaggerated}" if exaggerated else text


def _every_part(reason: Reason) -> str:
    return f"{reason.word} in each of the comparisons averaged"


def _real_but_small(reason: Reason) -> str:
    p, margin = p_value(reason.p_adjusted), margin_text(reason.margin)
    if reason.two_runs:
        return f"there is a difference ({p}), smaller than the margin of {margin}{_stalls(reason)}"
    return f"the difference is real ({p}) but smaller than the margin of {margin}{_stalls(reason)}"


def _margin_ruled_out(reason: Reason) -> str:
    p = f"{p_value(reason.p_equivalence)} {_over(reason)}"
    return f"a difference as large as the margin of {margin_text(reason.margin)} is ruled out ({p}){_stalls(reason)}"


def _stalls(reason: Reason) -> str:
    """Return what so many blocks, of which some may be far off, exclude of stalls."""
    n, unit = min(reason.sizes), "trial" if reason.two_runs else "block"
    if reason.far_off:
        return f"; {count(reason.far_off, unit)} {is_or_are(reason.far_off)} far off"
    share = percent(excluded_share(n), sign=False)
    return f". No {unit} stalled, but stalls in up to {share} of {unit}s could have been missed"


def _p_out_of_reach(reason: Reason) -> str:
    best, n = f"can at best reach p = {reason.p_best:.3f} {_over(reason)}", reason.sizes[0]
    if reason.two_runs:
        return f"{n} and {reason.sizes[1]} trials {best}"
    best = f"{count(n, 'block')} {best}"
    if reason.hidden_by is not None:
        return best
    fewest, to_resolve = reason.fewest or n, ""
    if reason.needed > fewest and not reason.excludes_zero:
        to_resolve = f", and about {reason.needed:,} to resolve {margin_text(reason.margin)}"
    return f"{best}; {fewest} blocks are needed{to_resolve}" if fewest > n else f"{best}{to_resolve}"


def _mean_not_inside(reason: Reason) -> str:
    margin, far = margin_text(reason.margin), reason.far_off
    if reason.two_runs:
        out = f"the typical trial lies inside the margin of {margin}, but the mean may not"
        return f"{out}: {count(far, 'trial')} far off"
    out = f"the typical block lies inside the margin of {margin}, but the mean, {percent(reason.mean)}, may not"
    return f"{out}: {far} of {count(reason.sizes[0], 'block')} {is_or_are(far)} far off" if far else out


def _then(reason: Reason, text: str) -> str:
    """Return a text with what it would take to decide; of two runs that is not known."""
    n, margin = reason.sizes[0], margin_text(reason.margin)
    match reason.lack.lack if reason.lack else None:
        case Lack.QUIET_HOST:
            which = f"all {n} blocks" if reason.disturbed == n else f"{reason.disturbed} of {n} blocks"
            return f"{text}; interference in {which}: stop other programs on this host; more blocks would not help"
        case Lack.LESS_NOISE:
            return f"{text}; resolving {margin} needs less noise: longer trials, or an idle host"
        case Lack.MORE_BLOCKS:
            return f"{text}; about {count(reason.lack.blocks if reason.lack else 0, 'more block')} to resolve {margin}"
        case Lack.A_WIDER_MARGIN:
            return f"{text}; that many blocks usually resolve {margin}, but this effect is too close to call"
        case _:
            return text


_TEXTS: dict[Code, Callable[[Reason], str]] = {
    Code.DIFFERENT: _different,
    Code.EVERY_PART: _every_part,
    Code.REAL_BUT_SMALL: _real_but_small,
    Code.MARGIN_RULED_OUT: _margin_ruled_out,
    Code.TOO_COARSE: lambda reason: resolution_text(reason.resolution, reason.margin),
    Code.P_OUT_OF_REACH: _p_out_of_reach,
    Code.NO_SPREAD: lambda reason: f"all {reason.sizes[0]} blocks have the same ratio, so the noise is unknown",
    Code.NO_INTERVAL: lambda reason: f"{count(reason.sizes[0], 'block')} are too few for an interval",
    Code.INTERVAL_INCLUDES_0: lambda reason: f"{_p(reason)}, but the interval includes 0",
    Code.P_TOO_LARGE: lambda reason: f"the interval excludes 0, but {_p(reason)} is more than {ALPHA:g}",
    Code.MEAN_NOT_INSIDE: _mean_not_inside,
    Code.NOT_SURELY_INSIDE: lambda reason: (
        f"the interval lies inside the margin of {margin_text(reason.margin)}, but not surely enough {_over(reason)}"
    ),
    Code.INTERVAL_TOO_WIDE: lambda reason: (
        f"the interval includes 0 and reaches beyond the margin of {margin_text(reason.margin)}"
    ),
}
_OPEN = {Code.INTERVAL_INCLUDES_0, Code.P_TOO_LARGE, Code.NOT_SURELY_INSIDE, Code.INTERVAL_TOO_WIDE}
