"""What is said of the hosts of a study on several."""

from collections.abc import Iterator, Sequence
from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.fleet import ODD_MIN, BetweenLevels, FleetNoise, HostsCode, Left, LevelCode, LikeThese, OfLevel
from dbdyno.analysis.statistics import Estimate
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
    like_these = analysis.fleet.of(verdict) if analysis.fleet and analysis.fleet.like_these else None
    if like_these is None or not like_these.hosts:
        return ""
    size = figures(like_these, analysis)
    match like_these.word:
        case Word.UNDECIDED | Word.NOT_COMPARABLE:
            return f"On hosts like these nothing is shown: {why(like_these)} ({size})."
        case Word.EQUIVALENT:
            within = f"within {margin_text(analysis.margin)} ({size})"
            return f"On hosts like these it is equivalent, too, {within}; {_exclusion_text(like_these)}."
        case _:
            return f"On hosts like these it is {like_these.word}, too ({size})."


def like_these_sentence(like_these: LikeThese, analysis: Analysis) -> Text:
    """Return the sentence a reader may quote."""
    word, size = Strong(like_these.word, like_these.word), figures(like_these, analysis)
    match like_these.word:
        case Word.FASTER | Word.SLOWER:
            return (f"On hosts like these, {like_these.level} is ", word, f" than {like_these.baseline}: {size}.")
        case Word.EQUIVALENT:
            within = f" to {like_these.baseline} within {margin_text(analysis.margin)}"
            return (
                f"On hosts like these, {like_these.level} is ",
                word,
                f"{within}: {size}; {_exclusion_text(like_these)}.",
            )
        case Word.UNDECIDED | Word.NOT_COMPARABLE:
            about = f" of {like_these.level} against {like_these.baseline}: {why(like_these)}"
            nothing = Strong("nothing is shown", Word.UNDECIDED)
            return ("On hosts like these, ", nothing, f"{about} ({size})." if like_these.hosts else f"{about}.")


def _exclusion_text(like_these: LikeThese) -> str:
    """Return what so many hosts leave open: kinds of hosts that none of them is."""
    share = percent(like_these.excludes, sign=False)
    return f"rarer kinds of hosts (fewer than {share} of all) could have been missed"


def figures(like_these: LikeThese, analysis: Analysis) -> str:
    """Return ``"4 hosts, +3.1 % queries per second, 95 % interval -2.0 to +8.4 %, p = 0.160"``."""
    known = count(len(like_these.hosts), "host")
    effect = f"{percent(like_these.effect.value)} {analysis.metric.words}"
    if not like_these.effect.bounded:
        return f"{known}, {effect} on average"
    interval = f"95 % interval {percent_range(like_these.effect.low, like_these.effect.high)}"
    return f"{known}, {effect}, {interval}, {p_value(like_these.p_adjusted)}"


def why(like_these: LikeThese) -> str:
    """Return why no word is said; empty where one is."""
    match like_these.code:
        case HostsCode.TOO_FEW_HOSTS:
            return f"at least {HOSTS_MIN} hosts are needed"
        case HostsCode.NOT_COMPARABLE:
            return "the two are not comparable on these hosts"
        case HostsCode.NOT_ON_THESE_HOSTS:
            return "these hosts themselves do not show it"
        case HostsCode.HOSTS_DIFFER:
            return "the effect differs too much between so few hosts"
        case _:
            return ""


def spread_text(like_these: LikeThese) -> str:
    """Return by how much the effect differs between hosts, as far as it is known; empty where it isn't."""
    if not like_these.spread.known:
        return ""
    if not like_these.spread.value > 0:
        deviation = f"standard deviation{_up_to(like_these.spread)}"
        return f"The effect differs between these hosts by no more than noise ({deviation})."
    return f"The effect differs between these hosts by a standard deviation of {_size(like_these.spread)}."


def _up_to(spread: Estimate) -> str:
    return f" up to {percent(spread.high, sign=False)}"


def _size(spread: Estimate) -> str:
    return spread_words(spread) or percent(spread.value, sign=False)


def spread_words(spread: Estimate) -> str:
    """Return a standard deviation of ln(metric): ``"3.1 % (95 % interval 1.9 to 7.0 %)"``; empty where unknown."""
    if not spread.bounded:
        return ""
    value, low, high = (percent(figure, sign=False) for figure in (spread.value, spread.low, spread.high))
    return f"{value} (95 % interval {low.removesuffix(' %')} to {high})"


def in_brief(comparisons: Sequence[LikeThese]) -> str:
    """Return the sentence of a headline: of how many comparisons more is shown than that it is so on these hosts."""
    judged = [comparison for comparison in comparisons if comparison.code is not HostsCode.NOT_COMPARABLE]
    if not judged:
        return ""
    shown = [comparison for comparison in judged if not comparison.word.is_open]
    hosts = count(max(len(comparison.hosts) for comparison in judged), "host")
    if len(shown) == len(judged):
        return f"On hosts like these the same is shown, by {hosts}."
    if shown:
        return f"On hosts like these {len(shown)} of {len(judged)} comparisons are shown, by {hosts}."
    codes = {comparison.code for comparison in judged}
    because = f": {why(judged[0])}" if len(codes) == 1 else ""
    return f"On hosts like these nothing is shown, by {hosts}{because}."


def like_these_json(like_these: LikeThese, analysis: Analysis) -> dict[str, Any]:
    """Return what is shown of hosts like these as values: differences are fractions; an unknown one is not finite."""
    return {
        **fields(like_these, "baseline level baseline_id level_id method"),
        "word": like_these.word.hosts_text,
        **effect_values(like_these.effect),
        "p": like_these.p_adjusted,
        "p_unadjusted": like_these.p,
        "p_equivalence": like_these.p_equivalence,
        "hosts": len(like_these.hosts),
        "excluded_kinds": like_these.excludes,
        "reason": why(like_these),
        "reason_code": like_these.code.name,
        "spread": fields(like_these.spread, "value low high n"),
        "by_host": [{"host": host.host, "blocks": host.blocks, "effect": host.value} for host in like_these.hosts],
        "sentence": plain(like_these_sentence(like_these, analysis)),
    }


# What is fixed to hosts: a sentence for each two levels.


NAMED_MAX = 4


def level_sentence(difference: BetweenLevels, analysis: Analysis) -> Text:
    """Return the sentence a reader may quote: of hosts as whole plots, or of one machine against another."""
    return _of_effect(difference, analysis) if difference.of else _of_metric(difference, analysis)


def _of_metric(difference: BetweenLevels, analysis: Analysis) -> Text:
    level = f"{difference.factor} {difference.level.level}"
    baseline = level_label(difference.factor, difference.baseline.level)
    size = f"{percent(difference.effect.value)} {analysis.metric.words}"
    match difference.word:
        case Relation.HIGHER | Relation.LOWER:
            direction = level_word(difference, analysis.metric)
            rest = f" than {baseline}: {size} ({_certainty(difference)})."
            return (f"{level} is ", Strong(direction, direction), rest)
        case Relation.EQUIVALENT:
            word, within = Strong(Word.EQUIVALENT, Word.EQUIVALENT), margin_text(analysis.margin)
            return (f"{level} is ", word, f" to {baseline} within {within}: {size} ({_certainty(difference)}).")
        case Relation.UNDECIDED:
            what = f"Whether {level} differs from {baseline} is "
            return (what, Strong("not shown", Word.UNDECIDED), f": {_why(difference, size)}.")


def _of_effect(difference: BetweenLevels, analysis: Analysis) -> Text:
    if difference.of is None:
        return ""
    level = f"{difference.factor} {difference.level.level}"
    baseline = level_label(difference.factor, difference.baseline.level)
    ratio = f"the ratio of the two is {1 + difference.effect.value:.3g}"
    effect = f"effect of {difference.of.level} against {difference.of.baseline}"
    match difference.word:
        case Relation.HIGHER | Relation.LOWER:
            end = f" between {level} and {baseline}: {ratio} ({_certainty(difference, ratio=True)})."
            return (f"The {effect} ", Strong("differs", "differs"), end)
        case Relation.EQUIVALENT:
            end = f" between {level} and {baseline} within {margin_text(analysis.margin)}: {ratio} "
            certainty = f"({_certainty(difference, ratio=True)})."
            return (f"The {effect} ", Strong("does not differ", "does not differ"), f"{end}{certainty}")
        case Relation.UNDECIDED:
            what = f"Whether the {effect} differs between {level} and {baseline} is "
            return (what, Strong("not shown", Word.UNDECIDED), f": {_why(difference, ratio, ratio=True)}.")


def level_word(difference: BetweenLevels, metric: Metric) -> str:
    """Return the word for a difference of the metric: faster or slower; else equivalent, or not shown."""
    return word_of(difference.word, more_is_better=metric.more_is_better).hosts_text


def _certainty(difference: BetweenLevels, *, ratio: bool = False) -> str:
    low, high = difference.effect.low, difference.effect.high
    ends = f"{1 + low:.3g} to {1 + high:.3g}" if ratio else percent_range(low, high)
    interval = f"95 % interval {ends}, " if difference.effect.bounded else ""
    return f"{interval}{_sizes(difference)}, {p_value(difference.p_adjusted)}"


def _sizes(difference: BetweenLevels) -> str:
    return f"{len(difference.level.hosts)} and {count(len(difference.baseline.hosts), 'host')}"


def _why(difference: BetweenLevels, size: str, *, ratio: bool = False) -> str:
    match difference.code:
        case LevelCode.NO_HOST:
            lacking = [side.level for side in (difference.level, difference.baseline) if not side.hosts]
            return f"no host of {listed(lacking)} has a usable block"
        case LevelCode.ONE_HOST_EACH:
            return f"each level has only one host, {_machines(difference, size)}"
        case LevelCode.TOO_FEW_HOSTS:
            between = f"{_host_names(difference.level)} against {_host_names(difference.baseline)}"
            return f"at least {HOSTS_OF_LEVEL_MIN} hosts of each level are needed ({between}: {size})"
        case LevelCode.P_OUT_OF_REACH:
            return f"so many comparisons need more hosts than {_sizes(difference)}: {size}"
        case _:
            figures_and_p = f"{size}, {_certainty(difference, ratio=ratio)}"
            return f"hosts of the same level differ too much among so few ({figures_and_p})"


def _machines(difference: BetweenLevels, size: str) -> str:
    level, baseline = (side.hosts[0] for side in (difference.level, difference.baseline))
    apart = difference.machines
    blocks = f"{level.blocks} and {count(baseline.blocks, 'block')}"
    known = apart is not None and apart.bounded and difference.of is None
    interval = f"95 % interval {percent_range(apart.low, apart.high)}, " if apart and known else ""
    but = "the figure includes everything else that differs between the two"
    return f"{level.host} against {baseline.host}, {size} ({interval}{blocks}); {but}"


def _host_names(level: OfLevel) -> str:
    return listed([host.host for host in level.hosts], NAMED_MAX)


def level_json(difference: BetweenLevels, analysis: Analysis) -> dict[str, Any]:
    """Return a difference between levels as values: relative, or for a comparison's effect the ratio less 1."""
    return {
        "factor": difference.factor,
        "of": fields(difference.of, "baseline_id level_id") if difference.of else None,
        **{
            name: {"level": side.level, "hosts": [fields(host, "host blocks value") for host in side.hosts]}
            for name, side in (("baseline", difference.baseline), ("level", difference.level))
        },
        "word": difference.word.text,
        "reason_code": difference.code.name,
        **effect_values(difference.effect),
        "p": difference.p_adjusted,
        "p_equivalence": difference.p_equivalence,
        "machines": effect_values(difference.machines) if difference.machines else None,
        "sentence": plain(level_sentence(difference, analysis)),
    }


# How much hosts differ, of an A/A run over several.


PARTS = (
    ("between_hosts", "between hosts"),
    ("between_blocks", "between blocks of a host (its moments)"),
    ("between_starts", "between starts of the server in a block"),
    ("inside", "inside a trial"),
)
_ESTIMATE = "value low high n"


def noise_blocks(noise: FleetNoise) -> tuple[Block, ...]:
    """Return what the parts of the variance are, each host against the others, and what follows."""
    parts = tuple((words, _short_size(getattr(noise, name))) for name, words in PARTS)
    rows = tuple(
        (
            contrast.host.host,
            str(contrast.host.blocks),
            number(contrast.host.value),
            percent(contrast.difference),
            _word(contrast, noise),
        )
        for contrast in noise.each
    )
    return (
        Table("Sources of variance", ("part", "standard deviation (95 % interval)"), parts),
        *bullets(noise_lines(noise)),
        Table("Each host against the others", ("host", "blocks", "mean", "against the others", "is it odd"), rows),
    )


def noise_lines(noise: FleetNoise) -> list[str]:
    """Return the share of hosts, and which of them is odd."""
    lines = []
    if noise.share_of_hosts.known:
        low, value, high = (f"{100 * getattr(noise.share_of_hosts, name):.0f}" for name in ("low", "value", "high"))
        interval = f"95 % interval {low} to {high} %; intraclass correlation"
        lines.append(f"Hosts account for {value} % of the variance between two blocks ({interval}).")
    return [*lines, odd_text(noise)]


def odd_text(noise: FleetNoise) -> str:
    """Return which hosts are not like the others."""
    if len(noise.each) < ODD_MIN:
        return f"Hosts that stand out can be found only among {ODD_MIN} hosts or more."
    odd = [
        f"{contrast.host.host} ({percent(contrast.difference)} against the others, {p_value(contrast.p)})"
        for contrast in noise.odd
    ]
    if not odd:
        return "No host stands out: none differs more from the others than they do from each other."
    return f"Different from the other hosts: {listed(odd)}."


def _word(contrast: Left, noise: FleetNoise) -> str:
    if len(noise.each) < ODD_MIN:
        return "-"
    return f"yes, {p_value(contrast.p)}" if contrast.odd else f"no, {p_value(contrast.p)}"


def _short_size(spread: Estimate) -> str:
    return spread_words(spread).replace("95 % interval ", "") or UNKNOWN


def noise_json(noise: FleetNoise) -> dict[str, Any]:
    """Return the noise between hosts as values: standard deviations of ln(metric), a share from 0 to 1."""
    return {
        **{name: fields(getattr(noise, name), _ESTIMATE) for name, _ in PARTS},
        "share_of_hosts": fields(noise.share_of_hosts, _ESTIMATE),
        "hosts": [
            {
                **fields(contrast.host, "host blocks value"),
                "difference": contrast.difference,
                "p": contrast.p,
                "odd": contrast.odd,
            }
            for contrast in noise.each
        ],
    }


# What a headline says of hosts.


LEVELS_MAX = 2  # sentences; more stand in the section


def hosts_used(analysis: Analysis) -> list[str]:
    """Return the hosts with a usable block, of a study on several."""
    return [host for host, blocks in analysis.fleet.blocks.items() if blocks] if analysis.fleet else []


def of_hosts(analysis: Analysis) -> Iterator[str]:
    """Yield what is shown of hosts like these, of what is fixed to hosts, and which host is odd."""
    fleet = analysis.fleet
    if fleet is None or not hosts_used(analysis):
        return
    if text := in_brief(fleet.like_these):
        yield text
    for difference in fleet.levels[:LEVELS_MAX]:
        yield plain(level_sentence(difference, analysis))
    if fleet.noise:
        if text := spread_words(fleet.noise.between_hosts):
            yield f"Hosts differ by a standard deviation of {text}."
        yield odd_text(fleet.noise)


# Whether the hosts of a study began with the same prepared data.


def data_of(run: Run) -> dict[str, list[str | None]]:
    """Return host -> the SHA-256 of each image of prepared data its trials began with; null where it was not kept.

    Empty where nothing was prepared.
    """
    images_by_host: dict[str, dict[str, str | None]] = {}
    for trial in run.trials:
        if trial.image:
            images_by_host.setdefault(trial.host, {})[trial.image] = trial.image_sha256 or None
    return {host: [images[name] for name in sorted(images)] for host, images in images_by_host.items()}


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
