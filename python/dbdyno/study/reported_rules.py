"""What rows and claims of ``[[reported]]`` must fit: treatments of the study, at one of its scales at least."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any

from dbdyno.store.reported import STEADY
from dbdyno.study.labels import level_label
from dbdyno.study.mistakes import Mistake, did_you_mean, shown
from dbdyno.study.reported import ClaimSection, ReportedSection
from dbdyno.study.schema import FACTOR_SECTIONS
from dbdyno.study.study import Study

Levels = Mapping[str, object]
Path_ = tuple[str | int, ...]


def fitting(study: Study, levels: Levels) -> list[dict[str, str]]:
    """The treatments that have all these levels, each as factor -> label; of a fixed field, all or none has it."""
    wanted = {name: level_label(level) for name, level in levels.items()}
    factors, fixed = {factor.name: factor.labels() for factor in study.factors}, _fixed(study)
    if any(fixed.get(name) != label for name, label in wanted.items() if name not in factors):
        return []
    kept = [[label for label in labels if wanted.get(name, label) == label] for name, labels in factors.items()]
    return [dict(zip(factors, combination, strict=True)) for combination in product(*kept)]


def pairs(study: Study, claim: ClaimSection) -> list[tuple[dict[str, str], dict[str, str]]]:
    """Every treatment that the claim is about with the one of its baseline that is like it in all other factors."""
    if claim.treatment is None or claim.baseline is None:
        return []
    named = claim.treatment.keys() | claim.baseline.keys()
    below = {_rest(one, named): one for one in fitting(study, claim.baseline)}
    above = fitting(study, claim.treatment)
    return [(one, below[_rest(one, named)]) for one in above if below.get(_rest(one, named), one) != one]


def _rest(levels: Mapping[str, str], named: Iterable[str]) -> frozenset[tuple[str, str]]:
    return frozenset((name, label) for name, label in levels.items() if name not in named)


def misplaced(studies: list[Study]) -> Iterator[Mistake]:
    """What can't be held against anything; ``studies`` are one study at all of its scales."""
    for place, table in enumerate(studies[0].reported):
        yield from _rows(studies, table, ("reported", place))
        for number, claim in enumerate(table.claims):
            yield from _claim(studies, claim, ("reported", place, "claims", number))


def _rows(studies: list[Study], table: ReportedSection, path: Path_) -> Iterator[Mistake]:
    seen: dict[frozenset[tuple[str, str]], int] = {}
    for number, row in enumerate(table.rows):
        here = (*path, "rows", number)
        found = list(_levels(studies, row.levels, (*here, "levels")))
        fits = [fitting(study, row.levels) for study in studies]
        if not found and (several := next((one for one in fits if len(one) > 1), None)):
            differ = [name for name in several[0] if len({one[name] for one in several}) > 1]
            text = f"fits {len(several)} treatments; give also the level of {', '.join(differ)}"
            found.append(Mistake((*here, "levels"), text))
        key = frozenset((name, level_label(level)) for name, level in row.levels.items())
        if key in seen:
            found.append(Mistake((*here, "levels"), f"is the same as row {seen[key] + 1} of this table"))
        seen.setdefault(key, number)
        if row.min is not None and row.min > row.value:
            found.append(Mistake((*here, "min"), f"is {row.min}, more than value ({row.value})"))
        if row.max is not None and row.max < row.value:
            found.append(Mistake((*here, "max"), f"is {row.max}, less than value ({row.value})"))
        yield from found


def _claim(studies: list[Study], claim: ClaimSection, path: Path_) -> Iterator[Mistake]:
    checks = [claim.direction, claim.times_min, claim.times_max]
    if (claim.treatment is None) != (claim.baseline is None):
        yield Mistake(path, "gives one of treatment and baseline; a claim that is checked needs both")
    elif claim.treatment is None and any(check is not None for check in checks):
        yield Mistake(path, "gives nothing to check it on; add treatment and baseline")
    elif claim.treatment is not None and all(check is None for check in checks):
        yield Mistake(path, "gives treatment and baseline, but neither direction nor times_min or times_max")
    elif claim.direction in STEADY and (claim.times_min or claim.times_max):
        yield Mistake((*path, "direction"), f"is {shown(claim.direction)}, of which no times_min or times_max is known")
    elif claim.direction in STEADY and not all(study.design.steadiness for study in studies):
        text = f"is {shown(claim.direction)}; that is judged only with design.steadiness = true"
        yield Mistake((*path, "direction"), text)
    elif claim.times_min and claim.times_max and claim.times_min > claim.times_max:
        yield Mistake((*path, "times_min"), f"is {claim.times_min}, more than times_max ({claim.times_max})")
    else:
        found = [
            mistake
            for name, levels in (("treatment", claim.treatment), ("baseline", claim.baseline))
            for mistake in _levels(studies, levels or {}, (*path, name))
        ]
        if not found and claim.treatment is not None and not any(pairs(study, claim) for study in studies):
            found = [Mistake((*path, "treatment"), "and baseline fit no two treatments that are alike otherwise")]
        yield from found


def _levels(studies: list[Study], levels: Levels, path: Path_) -> Iterator[Mistake]:
    """Names that the study doesn't have at any scale, and levels that none of its scales has."""
    known = _known(studies)
    mistakes = []
    for name, level in levels.items():
        label, labels = level_label(level), known.get(name, [])
        if name not in known:
            text = f"is neither a factor nor a field of this study{did_you_mean(name, known)}"
            mistakes.append(Mistake((*path, name), text))
        elif label not in labels:
            text = f"is {shown(level)}, not a level of {name}; levels are {', '.join(labels)}"
            mistakes.append(Mistake((*path, name), text + did_you_mean(label, labels)))
    if not mistakes and not any(fitting(study, levels) for study in studies):
        mistakes.append(Mistake(path, "fit no treatment at any one scale"))
    yield from mistakes


def _known(studies: list[Study]) -> dict[str, list[str]]:
    """Every factor and field with the labels that it has at any scale, in the order of the file."""
    known: dict[str, list[str]] = {}
    for study in studies:
        found = {name: [label] for name, label in _fixed(study).items()}
        found |= {factor.name: factor.labels() for factor in study.factors}
        for name, labels in found.items():
            held = known.setdefault(name, [])
            held += [label for label in labels if label not in held]
    return known


def _fixed(study: Study) -> dict[str, str]:
    """Fields with one value, by name; of two of one name the first section's."""
    found: dict[str, str] = {}
    varied = {path for factor in study.factors for level in factor.levels for path in factor.fields(level)}
    for section in FACTOR_SECTIONS:
        table: Any = study.raw
        for part in section.split("."):
            table = table.get(part, {})
        for name, value in table.items():
            if not isinstance(value, dict | list) and (*section.split("."), name) not in varied:
                found.setdefault(name, level_label(value))
    return found
