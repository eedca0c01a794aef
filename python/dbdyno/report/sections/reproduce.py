"""How to run it again: the study as it was run, the command, the versions and the host."""

import shlex
from typing import Any

from dbdyno.model.design import Design
from dbdyno.model.printable import one_line
from dbdyno.model.wording import count
from dbdyno.report.document import Abridged, Block, Code, Details, Paragraph, Section, Table
from dbdyno.report.sections.observed import flattened
from dbdyno.report.source import Source
from dbdyno.store.records import Run

STUDY_LINES_MAX = 60  # of a study that is shown unfolded


def section(source: Source) -> Section:
    """Return the command and the study as it was run, versions and host; elsewhere than on a page the command."""
    run = source.run
    shown: list[Block] = []
    if run.study_text:
        shown = [Paragraph(f"{_how(run)}{_images(run)}"), Code("command", "The command", command(run)), _study(run)]
    versions = (("seed", str(run.design.seed)), *flattened(run.versions).items())
    shown.append(_settings("Versions and seed", versions))
    shown += [_settings(f"The host {one_line(name)}", tuple(flattened(of).items())) for name, of in run.hosts.items()]
    if run.host and not run.hosts:
        shown.append(_settings("The host", tuple(flattened(run.host).items())))
    used = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    how = "Simulated" if run.is_simulated else "Measured"
    short = (
        (
            Code("command", "", one_line(command(run))),
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
    code = Code("study", run.study_file, run.study_text)
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
