"""What is fixed to hosts: a sentence for each two levels."""

from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.fleet import BetweenLevels, LevelCode, OfLevel
from dbdyno.analysis.verdict.evidence import Relation
from dbdyno.analysis.verdict.reasons import word_of
from dbdyno.model.design import HOSTS_OF_LEVEL_MIN
from dbdyno.model.metrics import Metric
from dbdyno.model.treatment import level_label
from dbdyno.model.word import Word
from dbdyno.model.wording import count, listed, margin_text, p_value, percent, percent_range
from dbdyno.report.document import Strong, Text, plain
from dbdyno.report.values import effect_values, fields

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
