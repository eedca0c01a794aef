"""What was run, how to read it, and how to run it again."""

import shlex
from collections.abc import Sequence
from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.model.design import Design
from dbdyno.model.printable import one_line
from dbdyno.model.word import Word
from dbdyno.model.wording import count, margin_text
from dbdyno.report.document import (
    Abridged,
    Block,
    CodeBlock,
    Details,
    Item,
    List,
    Paragraph,
    Section,
    Strong,
    Table,
    Text,
)
from dbdyno.report.sections.stopped import blocks_used, interval_words
from dbdyno.report.source import Source
from dbdyno.store.records import Run

# What a result rests on: what was expected of it, what its named levels give, and the run in a few facts.


def about_section(source: Source) -> Section:
    """Return what the run expected, its levels and its facts; a terminal has most of the facts elsewhere."""
    run = source.run
    expected = (Paragraph(f"Expected beforehand: {run.expect}", "soft"),) if run.expect else ()
    scale = (Paragraph(f"At scale {run.scale}."),) if run.scale else ()
    levels = tuple(Paragraph(sentence) for factor in run.design.factors for sentence in factor.said())
    named = {factor.name: factor.gives for factor in run.design.factors if factor.gives}
    data = {"levels": named} if named else {}
    return Section("about", "", (*expected, *levels, Abridged((_facts(source),), scale)), data=data)


def _facts(source: Source) -> Paragraph:
    run, analysis = source.run, source.analysis
    facts = (
        f"scale {run.scale}" if run.scale else "",
        blocks_used(run, analysis),
        f"{len(run.design.treatments)} treatments",
        f"judged by {analysis.metric.words}",
        f"margin {margin_text(analysis.margin)}",
        f"seed {run.design.seed}",
        f"run {run.ended}" if run.ended != "done" else "",
    )
    return Paragraph(" · ".join(filter(None, facts)), "soft")


# What was read back from the kernel and the server, per treatment: what differs first, then what is the same.


VALUE_MAX = 160  # characters
UNOBSERVED = "not read back"
SIMULATED_NOTE = "Values that the simulator used in each trial, defaults included."
NOTE = "Read back from the kernel and the server in each trial, not copied from the study."


def observed_section(source: Source) -> Section | None:
    """Return what differs between treatments and what is the same for all; a page alone has the room for it."""
    analysis = source.analysis
    values_by_name = settings(analysis)
    if not values_by_name:
        return None
    headings = ("setting", *(row.label for row in analysis.treatments if row.n))
    differing = tuple((name, *values) for name, values in values_by_name.items() if len(set(values)) > 1)
    same = tuple((name, values[0]) for name, values in values_by_name.items() if len(set(values)) == 1)
    shown: list[Block] = [Paragraph(SIMULATED_NOTE if source.run.is_simulated else NOTE, "soft")]
    if differing:
        table = Table("Settings that differ between treatments", headings, differing, "settings")
        shown.append(Details("What differs between treatments", (table,), len(differing), open=True))
    if same:
        table = Table("Settings that are the same for all treatments", (), same)
        shown.append(Details("What is the same for all", (table,), len(same)))
    return Section("observed", "What was observed", (Abridged(tuple(shown)),))


def settings(analysis: Analysis) -> dict[str, list[str]]:
    """Return what usable trials read back of each treatment, by name; a value that changed shows all it had."""
    seen: dict[str, dict[str, list[str]]] = {}
    for treatment in analysis.treatments:
        for trial in analysis.blocks.of(treatment.id):
            for name, value in flattened(trial.observed).items():
                values = seen.setdefault(name, {}).setdefault(treatment.id, [])
                if value not in values:
                    values.append(value)
    return {
        name: [" then ".join(values.get(row.id, [UNOBSERVED])) for row in analysis.treatments if row.n]
        for name, values in sorted(seen.items())
    }


def flattened(value: Any, prefix: str = "") -> dict[str, str]:  # noqa: ANN401 - whatever JSON can hold
    """Return nested mappings as ``{"queue.scheduler": "none"}``, every value as a short text."""
    if not isinstance(value, dict):
        return {prefix: _text(value)}
    flat: dict[str, str] = {}
    for key in sorted(value, key=str):
        flat |= flattened(value[key], f"{prefix}.{key}" if prefix else str(key))
    return flat


def _text(value: object) -> str:
    match value:
        case True | False:
            return "yes" if value else "no"
        case None:
            return "none"
        case float():
            text = f"{value:.6g}"
        case list() | tuple():
            text = ", ".join(_text(item) for item in value)
        case _:
            text = str(value)
    text = one_line(text)
    return text if len(text) <= VALUE_MAX else f"{text[:VALUE_MAX]}…"


# How to read a verdict: what each word, the interval and p mean.


BLOCKS = (
    "Every block runs each treatment once, in random order, on fresh data and a freshly started server. Treatments are"
    " compared inside blocks, so what changes slowly on the host cannot favour one of them."
)
SIMULATED_BLOCKS = (
    "Every block simulates each treatment once, from a seed of its own, so that all of them meet the same chances."
    " Blocks differ by nothing else: an interval covers these, not how well the simulator knows kernel and drive."
)


def how_to_read_section(source: Source) -> Section:
    """Return the explanation, which a page alone has the room for."""
    words, margin = interval_words(source.analysis), margin_text(source.analysis.margin)
    different = (
        "The difference is too consistent over the blocks to be chance"
        f" ({words.test}, p at most 0.05 after Holm's correction for the number of comparisons), and the 95 % interval"
        " excludes 0."
    )
    meanings = (
        ((Word.FASTER, Word.SLOWER), different),
        (
            (Word.EQUIVALENT,),
            f"If there is a difference, it is smaller than the margin of {margin}: the blocks show this.",
        ),
        ((Word.UNDECIDED,), "These blocks show neither. The reason says why."),
        ((Word.NOT_COMPARABLE,), "Too few usable blocks, a treatment that kept failing, or clients at their limit."),
    )
    closing = (
        "The interval is the range of differences that these blocks are compatible with. p is the chance of a"
        f" difference at least this large if the two were the same. {words.looks}"
    )
    terms = List(tuple(Item(_term(names, meaning)) for names, meaning in meanings))
    blocks = Paragraph(SIMULATED_BLOCKS if source.run.is_simulated else BLOCKS)
    return Section("reading", "How to read a verdict", (Abridged((blocks, terms, Paragraph(closing))),))


def _term(words: Sequence[str], meaning: str) -> Text:
    named = [piece for word in words for piece in (" or ", Strong(word, word))]
    return (*named[1:], f": {meaning}")


# How to run it again: the study as it was run, the command, the versions and the host.


STUDY_LINES_MAX = 60  # of a study that is shown unfolded


def reproduce_section(source: Source) -> Section:
    """Return the command and the study as it was run, versions and host; elsewhere than on a page the command."""
    run = source.run
    shown: list[Block] = []
    if run.study_text:
        shown = [
            Paragraph(f"{_how(run)}{_images(run)}"),
            CodeBlock("command", "The command", command(run)),
            _study(run),
        ]
    versions = (("seed", str(run.design.seed)), *flattened(run.versions).items())
    shown.append(_settings("Versions and seed", versions))
    shown += [_settings(f"The host {one_line(name)}", tuple(flattened(of).items())) for name, of in run.hosts.items()]
    if run.host and not run.hosts:
        shown.append(_settings("The host", tuple(flattened(run.host).items())))
    used = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    how = "Simulated" if run.is_simulated else "Measured"
    short = (
        (
            CodeBlock("command", "", one_line(command(run))),
            Paragraph(f"{how} with {used}.{_images(run)}"),
        )
        if run.study_text
        else ()
    )
    data: dict[str, Any] = {"versions": dict(sorted(run.versions.items()))}
    data |= {"images": images} if (images := images_of(run)) else {}
    return Section("reproduce", "How to reproduce", (Abridged(tuple(shown), short),), data=data)


def _how(run: Run) -> str:
    own = [one_line(name) for name in run.study.get("files", ())]
    beside = f" It uses files of its own, which belong beside it: {', '.join(own)}." if own else ""
    save = f"Save the study below as {run.study_file} and run it"
    return f"{save}; the seed gives the same trials in the same order.{beside}"


def images_of(run: Run) -> int:
    """Return how many images of prepared data the trials began with; 0 where that was not recorded."""
    return len({trial.image for trial in run.trials if trial.image})


def _images(run: Run) -> str:
    images = images_of(run)
    shared = " for all treatments" if images == 1 else ""
    return f" Data was prepared in {count(images, 'image')}{shared}." if images else ""


def _study(run: Run) -> Block:
    code = CodeBlock("study", run.study_file, run.study_text)
    return Details("The study as it was run", (code,), open=run.study_text.count("\n") <= STUDY_LINES_MAX)


def _settings(summary: str, values: tuple[tuple[str, str], ...]) -> Block:
    return Details(summary, (Table(summary, (), values),))


def command(run: Run) -> str:
    """Return the command line: whatever overruled the study's text when it was run is said again."""
    design, file = run.design, run.study_file or "STUDY"
    words = ["dbdyno", "aa" if design.aa else "run", file, "--into", "DIR", "--html", "--seed", str(design.seed)]
    words += ["--scale", run.scale] if run.scale else []
    if design.aa:
        return shlex.join([*words, "--blocks", str(design.blocks), "--treatment", design.aa.treatment])
    return shlex.join([*words, *_ending(design)])


def _ending(design: Design) -> list[str]:
    budget = [] if design.budget_seconds is None else ["--budget", f"{design.budget_seconds:g}s"]
    match design.until:
        case "blocks":
            return ["--blocks", str(design.blocks), *budget]
        case "open":
            return ["--until-decided", *budget]
        case _:
            return ["--max-blocks", str(design.blocks), *budget]


# What the order of trials followed from, and how to have it again.


def seed_section(source: Source) -> Section:
    """Return the seed; a page has it among its facts."""
    seed = source.run.design.seed
    again = Paragraph(f"Seed {seed}: with --seed {seed} the trials come in this order again.", "soft")
    return Section("seed", "", (Abridged((), (again,)),))
