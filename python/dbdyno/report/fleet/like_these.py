"""On hosts like these: a sentence for each comparison, and one for all of them."""

from collections.abc import Sequence
from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.fleet import HostsCode, LikeThese
from dbdyno.analysis.statistics.estimate import Estimate
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.model.design import HOSTS_MIN
from dbdyno.model.word import Word
from dbdyno.model.wording import count, margin_text, p_value, percent, percent_range
from dbdyno.report.document import Strong, Text, plain
from dbdyno.report.values import effect_values, fields


def like_these_remark(verdict: Finding, analysis: Analysis) -> str:
    """Return the sentence that stands beside a verdict; empty where it is of one host, or there is none."""
    found = analysis.fleet.of(verdict) if analysis.fleet and analysis.fleet.like_these else None
    if found is None or not found.hosts:
        return ""
    said = figures(found, analysis)
    match found.word:
        case Word.UNDECIDED | Word.NOT_COMPARABLE:
            return f"On hosts like these nothing is shown: {why(found)} ({said})."
        case Word.EQUIVALENT:
            within = f"within {margin_text(analysis.margin)} ({said})"
            return f"On hosts like these it is equivalent, too, {within}; {_excluded(found)}."
        case _:
            return f"On hosts like these it is {found.word}, too ({said})."


def like_these_sentence(one: LikeThese, analysis: Analysis) -> Text:
    """Return the sentence a reader may quote."""
    word, said = Strong(one.word, one.word), figures(one, analysis)
    match one.word:
        case Word.FASTER | Word.SLOWER:
            return (f"On hosts like these, {one.level} is ", word, f" than {one.baseline}: {said}.")
        case Word.EQUIVALENT:
            within = f" to {one.baseline} within {margin_text(analysis.margin)}"
            return (f"On hosts like these, {one.level} is ", word, f"{within}: {said}; {_excluded(one)}.")
        case Word.UNDECIDED | Word.NOT_COMPARABLE:
            about = f" of {one.level} against {one.baseline}: {why(one)}"
            nothing = Strong("nothing is shown", Word.UNDECIDED)
            return ("On hosts like these, ", nothing, f"{about} ({said})." if one.hosts else f"{about}.")


def _excluded(one: LikeThese) -> str:
    """Return what so many hosts say of kinds of hosts that none of them is: ``"4 hosts exclude only kinds of ..."``."""
    known, share = count(len(one.hosts), "host"), percent(one.excludes, sign=False)
    return f"{known} exclude, with 95 %, only kinds of hosts that are more than {share} of all"


def figures(one: LikeThese, analysis: Analysis) -> str:
    """Return ``"4 hosts, +3.1 % queries per second, 95 % interval -2.0 to +8.4 %, p = 0.160"``."""
    known = count(len(one.hosts), "host")
    effect = f"{percent(one.effect.value)} {analysis.metric.words}"
    if not one.effect.bounded:
        return f"{known}, {effect} on average"
    interval = f"95 % interval {percent_range(one.effect.low, one.effect.high)}"
    return f"{known}, {effect}, {interval}, {p_value(one.p_adjusted)}"


def why(one: LikeThese) -> str:
    """Return why no word is said; empty where one is."""
    match one.code:
        case HostsCode.TOO_FEW_HOSTS:
            return f"at least {HOSTS_MIN} hosts are needed"
        case HostsCode.NOT_COMPARABLE:
            return "the two are not comparable on these"
        case HostsCode.NOT_ON_THESE_HOSTS:
            return "it is not said of these hosts either"
        case HostsCode.HOSTS_DIFFER:
            return "the effect differs too much between so few hosts"
        case _:
            return ""


def spread_text(one: LikeThese) -> str:
    """Return by how much the effect differs between hosts, as far as it is known; empty where it isn't."""
    if not one.spread.known:
        return ""
    if not one.spread.value > 0:
        return f"The effect differs between these hosts by no more than noise (standard deviation{_up_to(one.spread)})."
    return f"The effect differs between these hosts by a standard deviation of {_size(one.spread)}."


def _up_to(spread: Estimate) -> str:
    return f" up to {percent(spread.high, sign=False)}"


def _size(spread: Estimate) -> str:
    return spread_words(spread) or percent(spread.value, sign=False)


def spread_words(spread: Estimate) -> str:
    """Return a standard deviation of ln(metric): ``"3.1 % (95 % interval 1.9 to 7.0 %)"``; empty where unknown."""
    if not spread.bounded:
        return ""
    value, low, high = (percent(one, sign=False) for one in (spread.value, spread.low, spread.high))
    return f"{value} (95 % interval {low.removesuffix(' %')} to {high})"


def in_brief(found: Sequence[LikeThese]) -> str:
    """Return the sentence of a headline: of how many comparisons more is shown than that it is so on these hosts."""
    judged = [one for one in found if one.code is not HostsCode.NOT_COMPARABLE]
    if not judged:
        return ""
    shown = [one for one in judged if not one.word.is_open]
    hosts = count(max(len(one.hosts) for one in judged), "host")
    if len(shown) == len(judged):
        return f"On hosts like these the same is shown, by {hosts}."
    if shown:
        return f"On hosts like these {len(shown)} of {len(judged)} comparisons are shown, by {hosts}."
    codes = {one.code for one in judged}
    because = f": {why(judged[0])}" if len(codes) == 1 else ""
    return f"On hosts like these nothing is shown, by {hosts}{because}."


def like_these_json(one: LikeThese, analysis: Analysis) -> dict[str, Any]:
    """Return it for programs; differences are fractions, what is unknown is not finite."""
    return {
        **fields(one, "baseline level baseline_id level_id method"),
        "word": one.word.hosts_text,
        **effect_values(one.effect),
        "p": one.p_adjusted,
        "p_unadjusted": one.p,
        "p_equivalence": one.p_equivalence,
        "hosts": len(one.hosts),
        "excluded_kinds": one.excludes,
        "reason": why(one),
        "reason_code": one.code.name,
        "spread": fields(one.spread, "value low high n"),
        "by_host": [{"host": each.host, "blocks": each.blocks, "effect": each.value} for each in one.hosts],
        "sentence": plain(like_these_sentence(one, analysis)),
    }
