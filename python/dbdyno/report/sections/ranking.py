"""A ranking in words and rows."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from dbdyno.analysis.ranking import Ranking, Score
from dbdyno.model.wording import count
from dbdyno.report.document import Document, Paragraph, Section, Table
from dbdyno.report.sentences import LETTERS_HEADING, estimate_text, ties_text
from dbdyno.report.source import Source, among, effect_values, fields, marked
from dbdyno.store.records import Run

TESTS_SHOWN = 4  # as columns; more are read by programs
_BY_SPEED = "Ranked by speed alone; for what was lost in cuts, see each run's own report (dbdyno report DIR)."
NAME_MAX = 16  # characters of a heading; longer names are numbered


def section(source: Source) -> Section:
    """Return the ranking over the loads of a run, if it has several."""
    ranking = ranking_section(source.analysis.ranking)
    return replace(ranking, heading=marked(ranking.heading, source.run))


def ranking_section(ranking: Ranking | None) -> Section:
    """Return a ranking by itself; for programs alone where there is none."""
    data = {"ranking": ranking_json(ranking)}
    if ranking is None:
        return Section("ranking", "Ranking", data=data)
    heading = f"Ranking over {count(len(ranking.tests), 'test')}"
    table = Table(heading, ranking_headings(ranking), tuple(_row(score, ranking) for score in ranking.scores))
    notes = (Paragraph(note, "soft") for note in ranking_notes(ranking))
    return Section("ranking", heading, (table, *notes), data=data)


def document(ranking: Ranking, runs: Sequence[Run] = ()) -> Document:
    """Return the report of a ranking alone, of these runs."""
    titles = [run.title for run in runs if run.is_simulated]
    simulated = {"simulated": titles} if titles else {}
    values = {**(ranking_json(ranking) or {}), **simulated, "notes": ranking_notes(ranking)}
    alone = ranking_section(ranking)
    crash = any(trial.cuts for run in runs for trial in run.trials)
    aside = Section("by-speed", "", (Paragraph(_BY_SPEED, "warning"),) if crash else ())
    return Document("", (), (replace(alone, heading=f"{alone.heading}{among(runs)}", data={}), aside), values)


def ranking_headings(ranking: Ranking) -> tuple[str, ...]:
    """Return the headings of the table: each test has a column where there are few."""
    letters = (LETTERS_HEADING,) if any(ranking.ties.letters.values()) else ()
    return ("stack", "place", "score (95 % interval)", *_test_headings(ranking), *letters)


def _test_headings(ranking: Ranking) -> tuple[str, ...]:
    shown = _tests_shown(ranking)
    numbered = any(len(name) > NAME_MAX for name in shown)
    return tuple(f"test {number}" for number in range(1, len(shown) + 1)) if numbered else shown


def _tests_shown(ranking: Ranking) -> tuple[str, ...]:
    return ranking.tests if 1 < len(ranking.tests) <= TESTS_SHOWN else ()


def _row(score: Score, ranking: Ranking) -> tuple[str, ...]:
    tests = (_number(score.by_test[name].value) for name in _tests_shown(ranking))
    letters = (score.letters or "-",) if any(ranking.ties.letters.values()) else ()
    shown = "1 (baseline)" if score.is_baseline else estimate_text(score.score, _number)
    return (score.stack, str(score.place), shown, *tests, *letters)


def _number(ratio: float) -> str:
    """Return a ratio with at least two decimals, three where it is below 1; fewer where they would be noise."""
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.2f}" if ratio >= 1 else f"{ratio:.3f}"  # noqa: PLR2004


def ranking_notes(ranking: Ranking) -> list[str]:
    """Return what a score is, what the letters say, and which stacks could not be ranked."""
    better = "More" if ranking.metric.more_is_better else "Less"
    mean = (
        f"is the geometric mean of the ratios over the {len(ranking.tests)} tests, which all weigh the same"
        if len(ranking.tests) > 1
        else "is the ratio"
    )
    about = f"{ranking.metric.words}, {ranking.baseline} being 1, in {count(ranking.blocks, 'block')}"
    notes = [f"A score {mean}: {about}. {better} is better. Other tests may rank the stacks otherwise."]
    if len(ranking.tests) > 1 and _test_headings(ranking) != ranking.tests:
        each = "; ".join(f"{number}. {name}" for number, name in enumerate(ranking.tests, 1))
        notes.append(f"Tests: {each}.")
    if line := ties_text(ranking.ties, "stacks", "score"):
        notes.append(line)
    if ranking.left_out:
        notes.append(f"Not ranked, as they can't be compared in every test: {', '.join(ranking.left_out)}.")
    return notes


def ranking_json(ranking: Ranking | None) -> dict[str, Any] | None:
    """Return the ranking as the JSON report has it; scores are ratios to the baseline's."""
    if ranking is None:
        return None
    return {
        "metric": ranking.metric.name,
        "more_is_better": ranking.metric.more_is_better,
        **fields(ranking, "baseline tests blocks"),
        "pairs": ranking.ties.pairs,
        "stacks": [
            {
                **fields(score, "place stack"),
                "baseline": score.is_baseline,
                **effect_values(score.score, "score"),
                "letters": score.letters,
                "by_test": {name: asdict(estimate) for name, estimate in score.by_test.items()},
            }
            for score in ranking.scores
        ],
        "left_out": ranking.left_out,
    }
