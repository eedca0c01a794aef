"""``[[reported]]``: what its rows and claims must fit, treatments of the study at one of its scales at least."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any

from dbdyno.model.similar import did_you_mean
from dbdyno.store.reported import STEADY
from dbdyno.study.mistakes import Mistake, shown
from dbdyno.study.schema import ClaimSection, ReportedSection, factor_sections
from dbdyno.study.study import Study
from dbdyno.study.units import level_label

Path_ = tuple[str | int, ...]
Levels = Mapping[str, object]


def fitting(study: Study, levels: Levels) -> list[dict[str, str]]:
    """The treatments that have all these levels, each as factor -> label; of a fixed field, all or none has it."""
    labels_wanted = {name: level_label(level) for name, level in levels.items()}
    factors, fixed = {factor.name: factor.labels() for factor in study.factors}, _single_values(study)
    if any(fixed.get(name) != label for name, label in labels_wanted.items() if name not in factors):
        return []
    choices = [
        [label for label in labels if labels_wanted.get(name, label) == label] for name, labels in factors.items()
    ]
    return [dict(zip(factors, combination, strict=True)) for combination in product(*choices)]


def pairs(study: Study, claim: ClaimSection) -> list[tuple[dict[str, str], dict[str, str]]]:
    """Every treatment that the claim is about with the one of its baseline that is like it in all other factors."""
    if claim.treatment is None or claim.baseline is None:
        return []
    factors = claim.treatment.keys() | claim.baseline.keys()
    below = {_rest(treatment, factors): treatment for treatment in fitting(study, claim.baseline)}
    above = fitting(study, claim.treatment)
    return [
        (treatment, below[_rest(treatment, factors)])
        for treatment in above
        if below.get(_rest(treatment, factors), treatment) != treatment
    ]


def _rest(levels: Mapping[str, str], factors: Iterable[str]) -> frozenset[tuple[str, str]]:
    return frozenset((name, label) for name, label in levels.items() if name not in factors)


def misplaced(studies: list[Study]) -> Iterator[Mistake]:
    """What can't be held against anything; ``studies`` are one study at all of its scales."""
    for place, table in enumerate(studies[0].reported):
        yield from _rows(studies, table, ("reported", place))
        for number, claim in enumerate(table.claims):
            yield from _claim(studies, claim, ("reported", place, "claims", number))


def _rows(studies: list[Study], table: ReportedSection, path: Path_) -> Iterator[Mistake]:
    seen: dict[frozenset[tuple[str, str]], int] = {}
    for number, row in enumerate(table.rows):
        row_path = (*path, "rows", number)
        mistakes = list(_levels(studies, row.levels, (*row_path, "levels")))
        fits = [fitting(study, row.levels) for study in studies]
        if not mistakes and (several := next((treatments for treatments in fits if len(treatments) > 1), None)):
            differ = [name for name in several[0] if len({treatment[name] for treatment in several}) > 1]
            text = f"fits {len(several)} treatments; give also the level of {', '.join(differ)}"
            mistakes.append(Mistake((*row_path, "levels"), text))
        key = frozenset((name, level_label(level)) for name, level in row.levels.items())
        if key in seen:
            mistakes.append(Mistake((*row_path, "levels"), f"is the same as row {seen[key] + 1} of this table"))
        seen.setdefault(key, number)
        if row.min is not None and row.min > row.value:
            mistakes.append(Mistake((*row_path, "min"), f"is {row.min}, more than value ({row.value})"))
        if row.max is not None and row.max < row.value:
            mistakes.append(Mistake((*row_path, "max"), f"is {row.max}, less than value ({row.value})"))
        yield from mistakes


def _claim(studies: list[Study], claim: ClaimSection, path: Path_) -> Iterator[Mistake]:
    checks = [claim.direction, claim.times_min, claim.times_max]
    if (claim.treatment is None) != (claim.baseline is None):
        yield Mistake(path, "gives one of treatment and baseline; a claim that is checked needs both")
    elif claim.treatment is None and any(check is not None for check in checks):
        yield Mistake(path, "gives nothing to check it on; add treatment and baseline")
    elif claim.treatment is not None and all(check is None for check in checks):
        yield Mistake(path, "gives treatment and baseline, but neither direction nor times_min or times_max")
    elif claim.direction in STEADY and (claim.times_min or claim.times_max):
        yield Mistake((*path, "direction"), f"is {shown(claim.direction)}, which has no times_min or times_max")
    elif claim.direction in STEADY and not all(study.design.steadiness for study in studies):
        text = f"is {shown(claim.direction)}; that is judged only with design.steadiness = true"
        yield Mistake((*path, "direction"), text)
    elif claim.times_min and claim.times_max and claim.times_min > claim.times_max:
        yield Mistake((*path, "times_min"), f"is {claim.times_min}, more than times_max ({claim.times_max})")
    else:
        mistakes = [
            mistake
            for name, levels in (("treatment", claim.treatment), ("baseline", claim.baseline))
            for mistake in _levels(studies, levels or {}, (*path, name))
        ]
        if not mistakes and claim.treatment is not None and not any(pairs(study, claim) for study in studies):
            mistakes = [
                Mistake((*path, "treatment"), "and baseline fit no pair of treatments that are otherwise alike")
            ]
        yield from mistakes


def _levels(studies: list[Study], levels: Levels, path: Path_) -> Iterator[Mistake]:
    """Names that the study doesn't have at any scale, and levels that none of its scales has."""
    known = _known_labels(studies)
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
        mistakes.append(Mistake(path, "fit no treatment at any scale"))
    yield from mistakes


def _known_labels(studies: list[Study]) -> dict[str, list[str]]:
    """Every factor and field with the labels that it has at any scale, in the order of the file."""
    known: dict[str, list[str]] = {}
    for study in studies:
        labels_of = {name: [label] for name, label in _single_values(study).items()}
        labels_of |= {factor.name: factor.labels() for factor in study.factors}
        for name, labels in labels_of.items():
            all_labels = known.setdefault(name, [])
            all_labels += [label for label in labels if label not in all_labels]
    return known


def _single_values(study: Study) -> dict[str, str]:
    """Fields with one value, by name; of two of one name the first section's."""
    labels: dict[str, str] = {}
    varied = {path for factor in study.factors for level in factor.levels for path in factor.fields(level)}
    for section in factor_sections(study.raw):
        table: Any = study.raw
        for part in section.split("."):
            table = table.get(part, {})
        for name, value in table.items():
            if not isinstance(value, dict | list) and (*section.split("."), name) not in varied:
                labels.setdefault(name, level_label(value))
    return labels
