"""The report of several runs: the ranking over them, then each one's verdicts and table, then what differs."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from dbdyno.analysis.analyse import Member, Several
from dbdyno.analysis.blocks import Code, RefusedError
from dbdyno.errors import DbdynoError
from dbdyno.model.similar import did_you_mean
from dbdyno.model.wording import count, margin_text
from dbdyno.report import contents
from dbdyno.report.comparison import ABSENT, facts
from dbdyno.report.document import Abridged, Block, Details, Document, Paragraph, Section, Table, bullets
from dbdyno.report.sections.badges import badges
from dbdyno.report.sections.ranking import ranking_section
from dbdyno.report.source import among
from dbdyno.report.summaries import ranking_sentence

# The sentence for each question that runs can't answer, and the remedy.


def message(error: DbdynoError) -> str:
    """Return what an error says to the user."""
    return _TEXTS[error.code](**error.given) if isinstance(error, RefusedError) else str(error)


def _quote(labels: Iterable[str]) -> str:
    return ", ".join(f'"{label}"' for label in labels)


def _too_few(common: list[str], stacks: dict[str, list[str]]) -> str:
    stacks_of_runs = "; ".join(
        f"{name} has {', '.join(map(repr, stack_names))}" for name, stack_names in stacks.items()
    )
    shared = f"only {common[0]!r}" if common else "none"
    needed = "a ranking needs at least 2 stacks with usable blocks in every test"
    return f"{needed}; these runs have {shared} in common: {stacks_of_runs}"


_TEXTS: dict[Code, Callable[..., str]] = {
    "other metric": "the runs are judged by different metrics, {before} and {after}; compare runs with the same"
    " metric".format,
    "other load": (
        "the runs are of different loads, {name} {before} and {name} {after}; compare like with like".format
    ),
    "other margin": lambda before, after: (
        f"the runs have different margins, {margin_text(before)} and {margin_text(after)}; say which one to judge by:"
        " --margin 3%"
    ),
    "too few runs": "a history needs two runs or more; given: {count}".format,
    "no such run": lambda name, known: (
        f"--since {name!r} is no run of these, nor a date: {', '.join(known)}{did_you_mean(name, known)}"
    ),
    "nothing in common": lambda before, after: (
        f"the runs have no treatment in common: before {_quote(before)}; after {_quote(after)}; match them by"
        ' --map "LABEL BEFORE=LABEL AFTER"'
    ),
    "named twice": "--map names a treatment twice".format,
    "no such pair": lambda name, before, after: (
        f'--map {name!r} is not "LABEL BEFORE=LABEL AFTER"; before there are {_quote(before)}; after {_quote(after)}'
    ),
    "no such control": lambda label, known: (
        f"--control {label!r} is not in both runs; choose one of: {_quote(known)}{did_you_mean(label, known)}"
    ),
    "control alone": (
        "--control {label!r} is the only treatment in both runs, so there is nothing left to compare".format
    ),
    "metrics of runs": lambda metrics: (
        "runs about different metrics can't be ranked together: "
        + ", ".join(f"{name} about {metric}" for metric, name in metrics.items())
    ),
    "too few stacks": _too_few,
    "no such baseline": lambda baseline, known: (
        f"{baseline!r} is not a stack of every test; choose one of: {', '.join(map(repr, known))}"
        f"{did_you_mean(baseline, known)}"
    ),
    "no cuts": (
        '--safety takes the folder of a crash run; "{title}" has no cuts: its study needs a section [crash]'.format
    ),
    "other treatments": lambda lacking, theirs, title: (
        f"the crash run {title!r} lacks {_quote(lacking)}; it has {_quote(theirs)}; run both studies with the same"
        " factors and levels"
    ),
}


NOT_INTERLEAVED = (
    "These runs were not interleaved with each other: each had its own blocks, at its own time. Treatments of one"
    " run are compared inside blocks; a comparison between runs also includes anything that changed on the host."
)
DIFFERENCES_MAX = 40  # rows
UNFOLDED_MAX = 30


def document(several: Several) -> Document:
    """Return the whole report of several runs."""
    members, ranked = several.members, ranking_section(several.ranking)
    if several.ranking is None:
        ranked = replace(ranked, heading="", blocks=(Paragraph(unranked_line(several)),))
    else:
        ranked = replace(ranked, heading=f"{ranked.heading}{among([member.run for member in members])}")
    reports = [contents.document(member.run, member.analysis) for member in members]
    values = {
        "interleaved": False,  # with each other
        "unranked": message(several.unranked) if several.unranked else None,
        "runs": [{"name": member.name, **report.values()} for member, report in zip(members, reports, strict=True)],
    }
    runs = [_member(place, *each) for place, each in enumerate(zip(members, reports, strict=True), start=1)]
    headline = _headline(several, [report.values()["headline"] for report in reports])
    over_all = badges([(member.run, member.analysis.blocks) for member in members], linked=False)
    sections = (headline, over_all, ranked, *runs, _differences(several), *_pick_sections(reports[0], "reading"))
    names = Abridged((Paragraph(" · ".join(member.name for member in members), "soft"),))
    return Document(heading(several), (names, Paragraph(NOT_INTERLEAVED)), sections, values)


def _headline(several: Several, results: Sequence[str]) -> Section:
    """Return who leads over all runs, and the result of each."""
    over_all = ranking_sentence(several.ranking) if several.ranking else unranked_line(several)
    over_all += among([member.run for member in several.members])
    each = [f"{member.name}: {result}" for member, result in zip(several.members, results, strict=True)]
    blocks: tuple[Block, ...] = (Paragraph(over_all, "headline"), *bullets(each))
    return Section("headline", "", blocks, data={"headline": " ".join([over_all, *each])}, opening=True)


def _member(place: int, member: Member, own: Document) -> Section:
    """Return what is shown of a run: less than its own report, in the same words."""
    aside = Details("Failures, interference and notes", _pick_sections(own, "failures", "disturbed", "notes"))
    parts = (
        *_pick_sections(own, "advice", "verdicts", "stopped", "effect", "results"),
        Section("aside", "", (Abridged((aside,)),)),
    )
    return Section(f"run-{place}", member.name, (*own.head, Paragraph(f"{member_line(member)}.", "soft"), *parts))


def _pick_sections(report: Document, *ids: str) -> tuple[Section, ...]:
    """Return sections of a report in this order, those that it has."""
    by_id = {section.id: section for section in report.sections}
    return tuple(by_id[id_] for id_ in ids if id_ in by_id)


def _differences(several: Several) -> Section:
    rows = tuple(differences(several))
    names = [member.name for member in several.members]
    table = Table("What differs between the runs", ("fact", *names), rows, "settings")
    full = Details("Versions, host and study", (table,), len(rows), open=len(rows) <= UNFOLDED_MAX)
    lines = [
        f"{fact}: {'; '.join(f'{value} ({name})' for value, name in zip(values, names, strict=True))}"
        for fact, *values in rows[:DIFFERENCES_MAX]
    ]
    rest = len(rows) - DIFFERENCES_MAX
    short = bullets([*lines, *([f"{rest} more are in the HTML report."] if rest > 0 else [])])
    return Section("differences", "What differs between the runs", (Abridged((full,), short),) if rows else ())


def heading(several: Several) -> str:
    """Return the title of the whole report: that of the runs, if they have one in common."""
    titles = {member.run.title for member in several.members}
    runs = count(len(several.members), "run")
    return f"{next(iter(titles))}: {runs}" if len(titles) == 1 else f"{runs} side by side"


def member_line(member: Member) -> str:
    """Return when a run was measured and how much of it there is."""
    trials = member.run.trials
    usable = f"{count(len(member.analysis.blocks.trials), 'usable block')}, {count(len(trials), 'trial')}"
    days = sorted({trial.started_at[:10] for trial in trials if trial.started_at})
    when = f", measured {days[0]}{f' to {days[-1]}' if len(days) > 1 else ''} (UTC)" if days else ""
    scale = f", at scale {member.run.scale}" if member.run.scale else ""
    ended = "" if member.run.ended == "done" else f", {member.run.ended}"
    return f"{usable}{when}{scale}, judged by {member.analysis.metric.words}{ended}"


def unranked_line(several: Several) -> str:
    """Return why there is no ranking; empty where there is one."""
    return f"No ranking over these runs: {message(several.unranked)}." if several.unranked else ""


def differences(several: Several) -> list[tuple[str, ...]]:
    """Return (fact, its value in each run) for versions, host and study, where the runs differ."""
    known = [facts(member.run) for member in several.members]
    keys = dict.fromkeys(key for each in known for key in each)
    rows = [(": ".join(key), *(each.get(key, ABSENT) for each in known)) for key in keys]
    return [row for row in rows if len(set(row[1:])) > 1]
