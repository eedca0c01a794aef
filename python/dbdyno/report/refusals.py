"""The sentence for each question that runs can't answer, and the remedy."""

from collections.abc import Callable, Iterable

from dbdyno.analysis.refused import Code, RefusedError
from dbdyno.errors import DbdynoError
from dbdyno.model.wording import margin_text


def message(error: DbdynoError) -> str:
    """Return what an error says to the user."""
    return _TEXTS[error.code](**error.given) if isinstance(error, RefusedError) else str(error)


def _quoted(labels: Iterable[str]) -> str:
    return ", ".join(f'"{label}"' for label in labels)


def _too_few(common: list[str], stacks: dict[str, list[str]]) -> str:
    each = "; ".join(f"{name} has {', '.join(map(repr, found))}" for name, found in stacks.items())
    shared = f"only {common[0]!r}" if common else "none"
    needed = "a ranking needs at least 2 stacks with usable blocks in every test"
    return f"{needed}; these runs have {shared} in common: {each}"


_TEXTS: dict[Code, Callable[..., str]] = {
    "other metric": "the runs are judged by different metrics, {before} and {after}, so there is no change".format,
    "other load": (
        "the runs are of different loads, {name} {before} and {name} {after}; compare like with like".format
    ),
    "other margin": lambda before, after: (
        f"the runs have different margins, {margin_text(before)} and {margin_text(after)}; say which one to judge by:"
        " --margin 3%"
    ),
    "nothing in common": lambda before, after: (
        f"the runs have no treatment in common: before {_quoted(before)}; after {_quoted(after)}; match them by"
        ' --map "LABEL BEFORE=LABEL AFTER"'
    ),
    "named twice": "--map names a treatment twice".format,
    "no such pair": lambda name, before, after: (
        f'--map {name!r} is not "LABEL BEFORE=LABEL AFTER"; before there are {_quoted(before)}; after {_quoted(after)}'
    ),
    "no such control": lambda label, known: f"--control {label!r} is not in both runs; what is: {_quoted(known)}",
    "control alone": (
        "--control {label!r} is the only treatment in both runs, so there is nothing left to compare".format
    ),
    "metrics of runs": lambda metrics: (
        "runs about different metrics can't be ranked together: "
        + ", ".join(f"{name} about {metric}" for metric, name in metrics.items())
    ),
    "too few stacks": _too_few,
    "no such baseline": lambda baseline, known: (
        f"{baseline!r} is no stack of every test; those are: {', '.join(map(repr, known))}"
    ),
    "no cuts": (
        '--safety takes the folder of a crash run; "{title}" has no cuts: its study needs a section [crash]'.format
    ),
    "other treatments": lambda lacking, theirs, title: (
        f"the crash run {title!r} lacks {_quoted(lacking)}; it has {_quoted(theirs)}; run both studies with the same"
        " factors and levels"
    ),
}
