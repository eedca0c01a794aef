"""``dbdyno suite NAME``: many small loads over the levels of a factor, from one command; its study is kept."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from dbdyno.cli.options import BLOCKS, ERASE, FRESH_IMAGES, HTML, INTO, PROFILE, RESUME, WAIT, new_folder, write_study
from dbdyno.cli.output import DETAILS, JSON, json_or_text
from dbdyno.cli.run import carry_out, command_again, discard_if_refused, run_to_resume, show_as_it_is, show_or_refuse
from dbdyno.cli.suggestions import levels
from dbdyno.errors import UserError

SUITES = Path("studies/suites")
INSTALLED = "share/dbdyno/suites"  # where a wheel puts them
HEAD = "dbdyno suite: "  # the first words of a study that is written here


def suite(
    name: str = typer.Argument(metavar="NAME", help="A suite of studies/suites, or a study file with [suite]."),
    fields: list[str] = typer.Argument(
        None,
        metavar="FIELD=LEVEL,LEVEL",
        help="Fields of a study; what is given with several levels is compared instead of the file's own.",
        autocompletion=levels,
    ),
    servers: str = typer.Option(None, metavar="NAME,NAME", help="Servers to compare, the first with the others."),
    only: list[str] = typer.Option([], metavar="PATTERN", help='Only loads of this name, such as "point-*".'),
    blocks: int | None = BLOCKS,
    into: Path | None = INTO,
    resume: bool = RESUME,
    html: bool = HTML,
    details: bool = DETAILS,
    wait: bool = WAIT,
    fresh_images: bool = FRESH_IMAGES,
    profile: bool = PROFILE,
    erase: list[str] = ERASE,
    plan: bool = typer.Option(False, "--plan", help="Write the study and show what it would do; run nothing."),
    json_: bool = JSON,
) -> None:
    """Run many small loads, as in: dbdyno suite microbench --servers mysql-5.7,mysql-8.0; exits as run does."""
    from dbdyno.plan.plan import make_plan
    from dbdyno.run.execute import see_that_it_is_the_same
    from dbdyno.run.profile import lacks_profile, profiling
    from dbdyno.study.load import load_study

    if resume:
        study = _begun_study(into, [*(fields or []), *only, *filter(None, [servers])])
    else:
        source = suite_file(name)
        into = into or new_folder(source.stem)
        study = Path(f"{into}.toml")
        _write_study(source, fields or [], servers, only, blocks, study)
    assert into is not None  # noqa: S101  (it was named, or made)
    begun = run_to_resume(into) if resume else None
    with discard_if_refused(study, into, {"--servers": servers, "--only": only, "--blocks": blocks}):
        made = make_plan(load_study(study), seed=begun.design.seed if begun else None)
        made = profiling(made) if profile else made
        typer.echo(f"study: {study}", err=True)
        if plan:
            show_or_refuse(made, frozenset(erase), json_=json_)
            return
        if begun and begun.stopped and not (profile and lacks_profile(made, into)):
            see_that_it_is_the_same(made, into)
            show_as_it_is(begun, into, json_or_text(json_=json_), html=html, details=details)
            return
        carry_out(
            made,
            into,
            resume=resume,
            erase=frozenset(erase),
            html=html,
            wait=wait,
            fresh_images=fresh_images,
            again=command_again("run", study, into, {"--profile": profile}),
            format_=json_or_text(json_=json_),
            details=details,
        )


def suite_file(name: str) -> Path:
    """The study of a suite: a file, or one of those that come with dbdyno. Raises ``UserError``."""
    from dbdyno.model.similar import did_you_mean

    if name.endswith(".toml") or "/" in name:
        return Path(name)
    # Of the same name that counts which is nearest: here, in this checkout, in the wheel.
    folders = [Path(sys.prefix) / INSTALLED, Path(__file__).parents[3] / SUITES, SUITES]
    known = {path.stem: path for folder in folders for path in sorted(folder.glob("*.toml"))}
    if name not in known:
        there_are = f"there are {', '.join(sorted(known))}" if known else f"there is no {SUITES} here"
        another = "a study file with [suite] may be named, too"
        raise UserError(f"{name} is no suite; {there_are}; {another}{did_you_mean(name, known)}")
    return known[name]


def _begun_study(into: Path | None, given: Sequence[str]) -> Path:
    """The study that a run was begun with. Raises ``UserError``."""
    if into is None:
        raise UserError("--resume needs --into DIR, the run to go on with; dbdyno runs lists them")
    if given:
        raise UserError(f"--resume goes on with the study as it was begun; leave out {given[0]}")
    study = Path(f"{into}.toml")
    if not study.is_file():
        raise UserError(f"{study} is not there, the study that dbdyno suite wrote for {into}")
    return study


def _only_planned(study: Path) -> bool:
    """Whether ``--plan`` wrote the study and no run was begun with it: then it may be written over."""
    head = f"# {HEAD}".encode()
    with study.open("rb") as file:
        return file.read(len(head)) == head and not study.with_suffix("").exists()


def _write_study(
    source: Path, fields: Sequence[str], servers: str | None, only: Sequence[str], blocks: int | None, study: Path
) -> None:
    """Write the study of a suite with these changes. Raises ``UserError``."""
    from dbdyno.study.document import read_document
    from dbdyno.study.new_study import put, written
    from dbdyno.study.suite import SUITE, has_several_levels, with_changes
    from dbdyno.study.workloads import ScriptSection

    _, raw, _ = read_document(source)
    loads = raw[SUITE].get("loads") if isinstance(raw.get(SUITE), dict) else None
    if not isinstance(loads, str):
        raise UserError(f"{source}: has no [suite] with loads; dbdyno run {source} runs it as it is")
    if study.exists() and not _only_planned(study):
        raise UserError(f"{study} is there already, the study of another run; name another folder by --into")
    sections: dict[str, dict[str, object]] = {}
    varied = put(sections, [*fields, *([f"server={servers}"] if servers else [])], ScriptSection)
    folder = os.path.relpath(os.path.realpath(source.parent / loads), os.path.realpath(study.parent))
    sections.setdefault(SUITE, {})["loads"] = folder
    if blocks is not None:
        sections.setdefault("design", {})["blocks"] = blocks
    changed = with_changes(raw, sections, only, replaces_factors=bool(varied))
    if not has_several_levels(changed):
        given = f"--servers {servers}" if servers else " ".join(fields) or str(source)
        raise UserError(f"{given} leaves nothing to compare; give several, such as --servers mysql-8.0,mysql-9")
    text = written(changed, head=[f"{HEAD}{source.name}"])
    write_study(study, text)
