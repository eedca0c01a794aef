"""The mark of what was simulated: no headline, comparison or ranking of it stands without."""

from collections.abc import Mapping, Sequence

from dbdyno.store.records import Run


def marked(text: str, run: Run) -> str:
    """Return a heading with the mark, if the run's stacks are simulated."""
    return f"{text} (simulated)" if run.is_simulated else text


def before_and_after(runs: Mapping[str, Run]) -> str:
    """Return which of two runs is simulated, as the beginning of a sentence: ``"Simulated before and after: "``."""
    names = [name for name, run in runs.items() if run.is_simulated]
    others = [name for name in runs if name not in names]
    measured = f", measured {others[0]}" if len(others) == 1 else ""
    return f"Simulated {' and '.join(names)}{measured}: " if names else ""


def among(runs: Sequence[Run]) -> str:
    """Return the mark of what several runs have part in: all of them simulated, or some."""
    simulated = sum(run.is_simulated for run in runs)
    if not simulated:
        return ""
    return " (simulated)" if simulated == len(runs) else f" ({simulated} of {len(runs)} simulated)"
