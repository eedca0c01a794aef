"""How to run it again: the study as it was run, the command, the versions and the host."""

import shlex
from typing import Any

from dbdyno.clean import one_line
from dbdyno.report.observed import flattened
from dbdyno.store.records import Design, Run


def how_to_reproduce(run: Run) -> dict[str, Any]:
    """Return what the page shows; ``study`` is empty for a run folder that does not hold the study's text."""
    return {
        "name": run.study_file,
        "study": run.study_text,
        "command": command(run),
        "own_files": [one_line(name) for name in run.study.get("files", ())],
        "versions": [("seed", str(run.design.seed)), *flattened(run.versions).items()],
        "host": list(flattened(run.host).items()),
    }


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
