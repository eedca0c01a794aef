"""Factorial studies: what each factor does over the others, and whether its effect depends on them.

Every combination of levels is a treatment, so each block holds them all and gives one value of every contrast. These
values are judged over blocks exactly as the differences of two treatments are: n is the number of blocks, never of
trials. In a split-plot design that is the right error term for the factors that are hard to change too: what the trials
of a whole plot have in common varies from block to block, and with it the contrast.

Three families, each corrected by Holm on its own: main effects, interactions, and the simple effects that put an
interaction into words.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from dbdyno.analysis.statistics import Floats
from dbdyno.analysis.verdict.evidence import Rule
from dbdyno.analysis.verdict.figures import Contrast, Contrasted, MetricFigures, pairs_of
from dbdyno.analysis.verdict.finding import Finding, Paired, adopt_common_word, doubt_as_parts, either_way, judge
from dbdyno.analysis.verdict.pairs import alternatives_of, disturbed_in, obstacle_of
from dbdyno.model.design import Design, Factor, Treatment
from dbdyno.model.metrics import Metric
from dbdyno.model.word import Word

# Contrasts: weighted sums of treatments' ln(metric) inside one block, the weights adding up to 0.


NOWHERE: Mapping[str, str] = {}


def effect_of(
    treatments: Sequence[Treatment], factor: str, level: str, baseline: str, at: Mapping[str, str] = NOWHERE
) -> Contrast:
    """Return the mean over treatments at ``level`` less the mean over those at ``baseline``.

    Only treatments that have the levels ``at`` count: none given, it is a main effect; some given, a simple effect.
    """
    matching = [treatment for treatment in treatments if at.items() <= treatment.levels.items()]
    above = [treatment.id for treatment in matching if treatment.levels[factor] == level]
    below = [treatment.id for treatment in matching if treatment.levels[factor] == baseline]
    return {id_: 1 / len(above) for id_ in above} | {id_: -1 / len(below) for id_ in below}


def difference(minuend: Contrast, subtrahend: Contrast) -> Contrast:
    """Return ``minuend - subtrahend``: of two simple effects of one factor, its interaction with the other."""
    return {id_: minuend.get(id_, 0.0) - subtrahend.get(id_, 0.0) for id_ in {**minuend, **subtrahend}}


def weights(contrast: Contrast, treatments: Sequence[Treatment]) -> Floats:
    """Return the weights in the order of ``treatments``: logs of shape (..., treatments) @ weights is the contrast."""
    return np.array([contrast.get(treatment.id, 0.0) for treatment in treatments])


@dataclass(frozen=True)
class MainEffect:
    """A level of a factor against the factor's baseline level, averaged over all combinations of the other factors."""

    factor: str
    level: str
    baseline: str
    averaged_over: tuple[str, ...]  # factors
    depends_on: tuple[str, ...]  # those of them of which it is known that the effect differs with them
    verdict: Finding


@dataclass(frozen=True)
class SimpleEffect:
    """A level of a factor against its baseline level where another factor has the level ``at``."""

    factor: str
    level: str
    baseline: str
    other: str
    at: str
    verdict: Finding


@dataclass(frozen=True)
class Interaction:
    """Two simple effects of one factor, at a level of another and at that other's baseline level."""

    here: SimpleEffect  # at the other factor's baseline level
    there: SimpleEffect
    verdict: Finding  # its effect is the ratio of ``there`` to ``here``, less 1

    @property
    def word(self) -> Word:
        """Whether the two differ: ``Word.interaction_text`` is its text."""
        return self.verdict.verdict


@dataclass(frozen=True)
class Factorial:
    """What the factors of a study do; nothing where fewer than two of them vary."""

    main_effects: list[MainEffect]
    simple_effects: list[SimpleEffect]
    interactions: list[Interaction]

    def pairs(self) -> list[tuple[str, str]]:
        """Return (factor, other) of each interaction, the clearest first."""
        ranked = sorted(self.interactions, key=_clearness)
        return list(dict.fromkeys((interaction.here.factor, interaction.here.other) for interaction in ranked))


def _clearness(interaction: Interaction) -> tuple[bool, bool, float, float]:
    verdict = interaction.verdict
    if not verdict.effect.known:
        return (True, True, 1.0, 0.0)
    return (False, not interaction.word.is_different, verdict.p_adjusted, -abs(math.log1p(verdict.effect.value)))


@dataclass(frozen=True)
class _Study:
    design: Design
    figures: MetricFigures
    metric: Metric
    rule: Callable[[int], Rule]
    findings: Mapping[tuple[str, str], Finding]  # by the ids of level and baseline, either way round

    def find_or_judge(self, contrasts: dict[str, Contrast]) -> dict[str, Finding]:
        """Return the same, where each contrast that is a pair with a finding has that."""
        known_findings = {
            name: finding for name, contrast in contrasts.items() if (finding := self.findings.get(_pair_of(contrast)))
        }
        return known_findings | self.judge_contrasts(
            {name: contrast for name, contrast in contrasts.items() if name not in known_findings}
        )

    def judge_contrasts(self, contrasts: dict[str, Contrast]) -> dict[str, Finding]:
        """Return a finding for each contrast; all of them are one family."""
        rows = self.figures.contrasted(list(contrasts.values()))
        pairs = [
            self._pair_contrast(name, contrast, contrasted)
            for (name, contrast), contrasted in zip(contrasts.items(), rows, strict=True)
        ]
        findings = judge(pairs, self.metric, self.design.margin, self.rule)
        return {
            name: doubt_as_parts(finding, self.parts(contrast))
            for (name, contrast), finding in zip(contrasts.items(), findings, strict=True)
        }

    def parts(self, contrast: Contrast) -> list[tuple[float, Finding]]:
        """Return the findings of the pairs that a contrast is made from, with weights; nothing where any has none."""
        parts = pairs_of(contrast, self.design.treatments)
        findings = [(part.weight, self.findings.get((part.level, part.baseline))) for part in parts]
        known = [(weight, finding) for weight, finding in findings if finding]
        return known if len(known) == len(findings) else []

    def _pair_contrast(self, name: str, contrast: Contrast, contrasted: Contrasted) -> Paired:
        pair = Paired(
            *("", "", "", name),
            log_ratios=dict(contrasted.by_block),
            obstacle=obstacle_of(self.figures, contrast),
            resolution=self.figures.resolution(contrast),
            carry_over=contrasted.carry_over,
            without_carry_over=contrasted.without_carry_over,
            disturbed=disturbed_in(self.figures.blocks, contrast, contrasted.by_block),
        )
        return pair if pair.obstacle else replace(pair, alternatives=alternatives_of(self.figures, contrast, pair))

    def baseline(self, factor: Factor) -> str:
        levels = next(treatment.levels for treatment in self.design.treatments if treatment.id == self.design.baseline)
        return levels[factor.name]

    def others(self, factor: Factor) -> list[str]:
        """Return the levels of a factor without its baseline level."""
        return [level for level in factor.levels if level != self.baseline(factor)]


def factorial(
    figures: MetricFigures, metric: Metric, rule: Callable[[int], Rule], findings: Sequence[Finding] = ()
) -> Factorial:
    """Return main effects and two-way interactions of a study of two or more factors.

    ``rule`` says, of a number of usable blocks, how often the data were looked at. ``findings`` are those of pairs: a
    simple effect that is the difference of two treatments is what their finding says, and has no word of its own.
    """
    design = figures.run.design
    factors = [factor for factor in design.factors if len(factor.levels) > 1]
    if len(factors) < 2:  # noqa: PLR2004
        return Factorial([], [], [])
    study = _Study(design, figures, metric, rule, either_way(findings))
    # What differs from load to load of a suite is what its comparisons show; loads are not compared.
    of_interest = [factor for factor in factors if factor is not design.factor_of_loads]
    pairs = [_effect_and_other(*pair) for pair in combinations(of_interest, 2)]
    simple = _simple_effects(study, pairs)
    interactions = _interactions(study, pairs, simple)
    return Factorial(_main_effects(study, factors, of_interest, interactions), list(simple.values()), interactions)


def _pair_of(contrast: Contrast) -> tuple[str, str]:
    """Return the level and the baseline of a contrast of two treatments; nothing of one of more."""
    above, below = ([id_ for id_, weight in contrast.items() if sign * weight > 0] for sign in (1, -1))
    return (above[0], below[0]) if len(above) == len(below) == 1 else ("", "")


def _effect_and_other(earlier: Factor, later: Factor) -> tuple[Factor, Factor]:
    """Return whose effect an interaction is put as, and under which other factor.

    The load is a circumstance rather than a remedy; so is what is hard to change; so is what a study names first.
    """
    rank = (later.section == "workload", later.hard_to_change) > (earlier.section == "workload", earlier.hard_to_change)
    return (earlier, later) if rank else (later, earlier)


def _main_effects(
    study: _Study, factors: list[Factor], of_interest: list[Factor], interactions: list[Interaction]
) -> list[MainEffect]:
    keys = {f"{factor.name}={level}": (factor, level) for factor in of_interest for level in study.others(factor)}
    treatments = study.design.treatments
    contrasts = {key: effect_of(treatments, f.name, level, study.baseline(f)) for key, (f, level) in keys.items()}
    findings = study.judge_contrasts(contrasts)
    names = [factor.name for factor in factors]
    return [
        MainEffect(
            factor=factor.name,
            level=level,
            baseline=study.baseline(factor),
            averaged_over=tuple(name for name in names if name != factor.name),
            depends_on=tuple(name for name in names if _depends(interactions, factor.name, level, name)),
            verdict=adopt_common_word(findings[key], [part for _, part in study.parts(contrasts[key])]),
        )
        for key, (factor, level) in keys.items()
    ]


def _depends(interactions: list[Interaction], factor: str, level: str, on: str) -> bool:
    """Return whether the effect of a level is known to differ with another factor, whichever way it was put."""
    differing = (
        {
            (interaction.there.factor, interaction.there.level, interaction.there.other),
            (interaction.there.other, interaction.there.at, interaction.there.factor),
        }
        for interaction in interactions
        if interaction.word.is_different
    )
    return any((factor, level, on) in ways for ways in differing)


_Place = tuple[str, str, str, str]  # factor, level, other, its level


def _simple_effects(study: _Study, pairs: list[tuple[Factor, Factor]]) -> dict[_Place, SimpleEffect]:
    places = [
        (factor, level, other, at)
        for factor, other in pairs
        for level in study.others(factor)
        for at in (study.baseline(other), *study.others(other))
    ]
    findings = study.find_or_judge({_key(*place): _simple_contrast(study, *place) for place in places})
    return {
        (factor.name, level, other.name, at): SimpleEffect(
            factor.name, level, study.baseline(factor), other.name, at, findings[_key(factor, level, other, at)]
        )
        for factor, level, other, at in places
    }


def _simple_contrast(study: _Study, factor: Factor, level: str, other: Factor, at: str) -> Contrast:
    return effect_of(study.design.treatments, factor.name, level, study.baseline(factor), {other.name: at})


def _key(factor: Factor, level: str, other: Factor, at: str) -> str:
    return f"{factor.name}={level} at {other.name}={at}"


def _interactions(
    study: _Study, pairs: list[tuple[Factor, Factor]], simple: dict[_Place, SimpleEffect]
) -> list[Interaction]:
    places = [
        (factor, level, other, at)
        for factor, other in pairs
        for level in study.others(factor)
        for at in study.others(other)
    ]
    contrasts = {
        _key(*place): difference(
            _simple_contrast(study, *place), _simple_contrast(study, *place[:3], study.baseline(place[2]))
        )
        for place in places
    }
    findings = study.judge_contrasts(contrasts)
    return [
        Interaction(
            here=simple[factor.name, level, other.name, study.baseline(other)],
            there=simple[factor.name, level, other.name, at],
            verdict=findings[_key(factor, level, other, at)],
        )
        for factor, level, other, at in places
    ]
