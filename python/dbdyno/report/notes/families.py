"""What each p of a report covers, and how likely any wrong word in all of it is."""

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.model.design import ALPHA
from dbdyno.model.word import Word
from dbdyno.model.wording import count, listed, margin_text
from dbdyno.report.sentences import has_letters


def families_line(analysis: Analysis) -> str:
    """Return one sentence; empty where nothing was judged.

    Each family has 5 % for a wrong difference anywhere in it and, but for letters, 5 % for a wrong equivalence. What
    one family's words have to do with another's is not known, so these add up at worst.
    """
    judged = _judged(analysis)
    if not judged:
        return ""
    letters = [name for name, shown in _lettered(analysis).items() if shown]
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


def _judged(analysis: Analysis) -> list[str]:
    factors = analysis.factors
    steady = analysis.steadiness.verdicts if analysis.steadiness else []
    families: list[tuple[str, list[Finding]]] = [
        ("planned comparison", analysis.verdicts),
        ("further pair", analysis.every_pair),
        ("main effect", [one.verdict for one in factors.main_effects]),
        ("simple effect", [one.verdict for one in factors.simple_effects]),
        ("interaction", [one.verdict for one in factors.interactions]),
        ("verdict on steadiness", steady),
    ]
    found = [_counted(name, len(verdicts)) for name, verdicts in families if _any(verdicts)]
    found += _of_hosts(analysis)
    for each in analysis.beside:
        # A published table is held against verdicts of its own: of planned comparisons, and of what claims ask for.
        beside = f"beside what was published in {each.metric.words}"
        found += [f"those {beside}"] if any(figure.against for figure in each.figures) else []
        found += [f"those of claims {beside}"] if any(claim.outcomes for claim in each.claims) else []
    return found


def _of_hosts(analysis: Analysis) -> list[str]:
    """Return the families of hosts: on hosts like these, levels fixed to hosts, effects between these."""
    if (found := analysis.fleet) is None:
        return []
    like = sum(one.method != "none" for one in found.like_these)
    families = (
        (like, f"{like} on hosts like these"),
        (tested := sum(one.tested for one in found.levels), f"{count(tested, 'difference')} between hosts"),
        (tested := sum(one.tested for one in found.effects), f"{count(tested, 'effect')} between hosts"),
    )
    return [words for number, words in families if number]


def _any(verdicts: list[Finding]) -> bool:
    return any(verdict.verdict is not Word.NOT_COMPARABLE for verdict in verdicts)


def _counted(name: str, number: int) -> str:
    noun, _, rest = name.partition(" on ")
    return f"{count(number, noun)}{f' on {rest}' if rest else ''}"


def _lettered(analysis: Analysis) -> dict[str, bool]:
    ranked = analysis.ranking is not None and any(analysis.ranking.ties.letters.values())
    not_planned = analysis.ties.pairs > sum(one.verdict is not Word.NOT_COMPARABLE for one in analysis.verdicts)
    of_table = has_letters(analysis) and not_planned and not analysis.every_pair
    return {"all other pairs": of_table, "the ranking's": ranked}
