"""What warm-ups until steady took, in words."""

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.checks.load import WarmUps, warm_ups
from dbdyno.model.wording import count, number


def warm_up_lines(analysis: Analysis) -> list[str]:
    """Return a line per treatment with its median and range; nothing where warm-ups had a length."""
    found = {row.label: warm_ups(analysis.blocks.of(row.id)) for row in analysis.treatments}
    return [f"{label}: {_took(one)}." for label, one in found.items() if one]


def _took(found: WarmUps) -> str:
    spread = f"{number(found.median)} s in the median, {number(found.shortest)} to {number(found.longest)} s"
    missed = f"; {found.not_steady} of {count(found.of, 'trial')} reached the bound" if found.not_steady else ""
    return f"the warm-up until steady took {spread}{missed}"


def warm_up_warning(analysis: Analysis) -> list[str]:
    """Return that warm-ups reached their bound, where that is more than a few of all."""
    found = warm_ups(trial for row in analysis.blocks.trials.values() for trial in row.values())
    if found is None or not found.often_not_steady:
        return []
    trials = f"{found.not_steady} of {count(found.of, 'trial')}"
    why = "the rate was not shown to be steady when the warm-up reached its bound"
    return [f"In {trials} {why}; raise warmup_max, or measure for longer."]
