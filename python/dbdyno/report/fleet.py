"""What is said of the hosts of a study on several."""

from collections.abc import Iterator, Sequence
from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.fleet import ODD_MIN, BetweenLevels, FleetNoise, HostsCode, Left, LevelCode, LikeThese, OfLevel
from dbdyno.analysis.statistics.estimate import Estimate
from dbdyno.analysis.verdict.evidence import Relation
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.analysis.verdict.reasons import word_of
from dbdyno.model.design import HOSTS_MIN, HOSTS_OF_LEVEL_MIN, level_label
from dbdyno.model.metrics import Metric
from dbdyno.model.word import Word
from dbdyno.model.wording import UNKNOWN, count, listed, margin_text, number, p_value, percent, percent_range
from dbdyno.report.document import Block, Strong, Table, Text, bullets, plain
from dbdyno.report.source import effect_values, fields
from dbdyno.store.records import Run

# On hosts like these: a sentence for each comparison, and one for all of them.


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
    """Return what so many hosts leave open: kinds of hosts that none of them is."""
    share = percent(one.excludes, sign=False)
    return f"rarer kinds of hosts (fewer than {share} of all) could have been missed"


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


# What is fixed to hosts: a sentence for each two levels.


NAMED_MAX = 4


def level_sentence(one: BetweenLevels, analysis: Analysis) -> Text:
    """Return the sentence a reader may quote: of hosts as whole plots, or of one machine against another."""
    return _of_effect(one, analysis) if one.of else _of_metric(one, analysis)


def _of_metric(one: BetweenLevels, analysis: Analysis) -> Text:
    level, baseline = f"{one.factor} {one.level.level}", level_label(one.factor, one.baseline.level)
    size = f"{percent(one.effect.value)} {analysis.metric.words}"
    match one.word:
        case Relation.HIGHER | Relation.LOWER:
            said = level_word(one, analysis.metric)
            return (f"{level} is ", Strong(said, said), f" than {baseline}: {size} ({_certainty(one)}).")
        case Relation.EQUIVALENT:
            word, within = Strong(Word.EQUIVALENT, Word.EQUIVALENT), margin_text(analysis.margin)
            return (f"{level} is ", word, f" to {baseline} within {within}: {size} ({_certainty(one)}).")
        case Relation.UNDECIDED:
            what = f"Whether {level} differs from {baseline} is "
            return (what, Strong("not shown", Word.UNDECIDED), f": {_why(one, size)}.")


def _of_effect(one: BetweenLevels, analysis: Analysis) -> Text:
    if one.of is None:
        return ""
    level, baseline = f"{one.factor} {one.level.level}", level_label(one.factor, one.baseline.level)
    ratio = f"the ratio of the two is {1 + one.effect.value:.3g}"
    effect = f"effect of {one.of.level} against {one.of.baseline}"
    match one.word:
        case Relation.HIGHER | Relation.LOWER:
            end = f" between {level} and {baseline}: {ratio} ({_certainty(one, ratio=True)})."
            return (f"The {effect} ", Strong("differs", "differs"), end)
        case Relation.EQUIVALENT:
            end = f" between {level} and {baseline} within {margin_text(analysis.margin)}: {ratio} "
            certainty = f"({_certainty(one, ratio=True)})."
            return (f"The {effect} ", Strong("does not differ", "does not differ"), f"{end}{certainty}")
        case Relation.UNDECIDED:
            what = f"Whether the {effect} differs between {level} and {baseline} is "
            return (what, Strong("not shown", Word.UNDECIDED), f": {_why(one, ratio, ratio=True)}.")


def level_word(one: BetweenLevels, metric: Metric) -> str:
    """Return the word for a difference of the metric: faster or slower; else equivalent, or not shown."""
    return word_of(one.word, more_is_better=metric.more_is_better).hosts_text


def _certainty(one: BetweenLevels, *, ratio: bool = False) -> str:
    low, high = one.effect.low, one.effect.high
    ends = f"{1 + low:.3g} to {1 + high:.3g}" if ratio else percent_range(low, high)
    interval = f"95 % interval {ends}, " if one.effect.bounded else ""
    return f"{interval}{_sizes(one)}, {p_value(one.p_adjusted)}"


def _sizes(one: BetweenLevels) -> str:
    return f"{len(one.level.hosts)} and {count(len(one.baseline.hosts), 'host')}"


def _why(one: BetweenLevels, size: str, *, ratio: bool = False) -> str:
    match one.code:
        case LevelCode.NO_HOST:
            lacking = [each.level for each in (one.level, one.baseline) if not each.hosts]
            return f"no host of {listed(lacking)} has a usable block"
        case LevelCode.ONE_HOST_EACH:
            return f"this machine against that one, {_machines(one, size)}"
        case LevelCode.TOO_FEW_HOSTS:
            between = f"{_named(one.level)} against {_named(one.baseline)}"
            return f"at least {HOSTS_OF_LEVEL_MIN} hosts of either are needed ({between}: {size})"
        case LevelCode.P_OUT_OF_REACH:
            return f"so many questions need more hosts than {_sizes(one)}: {size}"
        case _:
            return f"hosts of the same level differ too much, for so few ({size}, {_certainty(one, ratio=ratio)})"


def _machines(one: BetweenLevels, size: str) -> str:
    level, baseline = (each.hosts[0] for each in (one.level, one.baseline))
    found = one.machines
    blocks = f"{level.blocks} and {count(baseline.blocks, 'block')}"
    known = found is not None and found.bounded and one.of is None
    interval = f"95 % interval {percent_range(found.low, found.high)}, " if found and known else ""
    but = "whatever else differs between the two is in it"
    return f"{level.host} against {baseline.host}, {size} ({interval}{blocks}); {but}"


def _named(one: OfLevel) -> str:
    return listed([each.host for each in one.hosts], NAMED_MAX)


def level_json(one: BetweenLevels, analysis: Analysis) -> dict[str, Any]:
    """Return it for programs; an effect is a relative difference, of a comparison's effect the ratio less 1."""
    return {
        "factor": one.factor,
        "of": fields(one.of, "baseline_id level_id") if one.of else None,
        **{
            name: {"level": each.level, "hosts": [fields(host, "host blocks value") for host in each.hosts]}
            for name, each in (("baseline", one.baseline), ("level", one.level))
        },
        "word": one.word.text,
        "reason_code": one.code.name,
        **effect_values(one.effect),
        "p": one.p_adjusted,
        "p_equivalence": one.p_equivalence,
        "machines": effect_values(one.machines) if one.machines else None,
        "sentence": plain(level_sentence(one, analysis)),
    }


# How much hosts differ, of an A/A run over several.


PARTS = (
    ("between_hosts", "between hosts"),
    ("between_blocks", "between blocks of a host (its moments)"),
    ("between_starts", "between starts of the server in a block"),
    ("inside", "inside a trial"),
)
_ESTIMATE = "value low high n"


def noise_blocks(found: FleetNoise) -> tuple[Block, ...]:
    """Return what the parts of the variance are, each host against the others, and what follows."""
    parts = tuple((words, _short_size(getattr(found, name))) for name, words in PARTS)
    rows = tuple(
        (one.host.host, str(one.host.blocks), number(one.host.value), percent(one.difference), _word(one, found))
        for one in found.each
    )
    return (
        Table("Sources of variance", ("part", "standard deviation (95 % interval)"), parts),
        *bullets(noise_lines(found)),
        Table("Each host against the others", ("host", "blocks", "mean", "against the others", "is it odd"), rows),
    )


def noise_lines(found: FleetNoise) -> list[str]:
    """Return the share of hosts, and which of them is odd."""
    lines = []
    if found.share_of_hosts.known:
        low, value, high = (f"{100 * getattr(found.share_of_hosts, one):.0f}" for one in ("low", "value", "high"))
        interval = f"95 % interval {low} to {high} %; intraclass correlation"
        lines.append(f"Hosts account for {value} % of the variance between two blocks ({interval}).")
    return [*lines, odd_text(found)]


def odd_text(found: FleetNoise) -> str:
    """Return which hosts are not like the others."""
    if len(found.each) < ODD_MIN:
        return f"Odd hosts can be found only among {ODD_MIN} hosts or more."
    odd = [f"{one.host.host} ({percent(one.difference)} against the others, {p_value(one.p)})" for one in found.odd]
    if not odd:
        return "No host is shown to be odd: none is farther from the others than they are from each other."
    return f"Not like the others: {listed(odd)}."


def _word(one: Left, found: FleetNoise) -> str:
    if len(found.each) < ODD_MIN:
        return "-"
    return f"yes, {p_value(one.p)}" if one.odd else f"no, {p_value(one.p)}"


def _short_size(found: Estimate) -> str:
    return spread_words(found).replace("95 % interval ", "") or UNKNOWN


def noise_json(found: FleetNoise) -> dict[str, Any]:
    """Return it for programs; standard deviations of ln(metric), a share from 0 to 1."""
    return {
        **{name: fields(getattr(found, name), _ESTIMATE) for name, _ in PARTS},
        "share_of_hosts": fields(found.share_of_hosts, _ESTIMATE),
        "hosts": [
            {**fields(one.host, "host blocks value"), "difference": one.difference, "p": one.p, "odd": one.odd}
            for one in found.each
        ],
    }


# What a headline says of hosts.


LEVELS_MAX = 2  # sentences; more stand in the section


def hosts_used(analysis: Analysis) -> list[str]:
    """Return the hosts with a usable block, of a study on several."""
    return [host for host, blocks in analysis.fleet.blocks.items() if blocks] if analysis.fleet else []


def of_hosts(analysis: Analysis) -> Iterator[str]:
    """Yield what is shown of hosts like these, of what is fixed to hosts, and which host is odd."""
    found = analysis.fleet
    if found is None or not hosts_used(analysis):
        return
    if text := in_brief(found.like_these):
        yield text
    for one in found.levels[:LEVELS_MAX]:
        yield plain(level_sentence(one, analysis))
    if found.noise:
        if text := spread_words(found.noise.between_hosts):
            yield f"Hosts differ by a standard deviation of {text}."
        yield odd_text(found.noise)


# Whether the hosts of a study began with the same prepared data.


def data_of(run: Run) -> dict[str, list[str | None]]:
    """Return host -> the SHA-256 of each image of prepared data its trials began with; null where it was not kept.

    Empty where nothing was prepared.
    """
    found: dict[str, dict[str, str | None]] = {}
    for trial in run.trials:
        if trial.image:
            found.setdefault(trial.host, {})[trial.image] = trial.image_sha256 or None
    return {host: [images[name] for name in sorted(images)] for host, images in found.items()}


def data_lines(run: Run) -> list[str]:
    """Return a sentence; nothing where nothing was prepared, or on one host only."""
    data = data_of(run)
    if len(data) <= 1:
        return []
    unknown = [host for host, images in data.items() if None in images]
    alike: dict[frozenset[str | None], list[str]] = {}
    for host, images in data.items():
        if host not in unknown:
            alike.setdefault(frozenset(images), []).append(host)
    if unknown:
        whose = f"{listed(unknown)}: {'its' if len(unknown) == 1 else 'their'} data were not kept"
        return [f"Whether all hosts began with the same bytes is unknown of {whose}."]
    if len(alike) == 1:
        return ["All hosts began with the same prepared data, byte for byte."]
    groups = sorted(alike.values(), key=len, reverse=True)
    whole = [f"{listed(hosts)} with the same bytes" for hosts in groups if len(hosts) > 1]
    own = [host for hosts in groups for host in hosts if len(hosts) == 1]
    parts = [*whole, *([f"{listed(own)} with data prepared there"] if own else [])]
    return [f"Hosts did not all begin with the same prepared data: {'; '.join(parts)}."]
