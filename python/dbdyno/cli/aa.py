"""``dbdyno aa STUDY --into DIR``: how much do trials differ on this host where nothing does."""

import shlex
from pathlib import Path

import typer

from dbdyno.cli.options import ERASE, FRESH_IMAGES, HOSTS, HTML, INTO, RESUME, SCALE, SEED, WAIT, folder_for
from dbdyno.cli.output import DETAILS, JSON, json_or_text
from dbdyno.cli.suggestions import studies


def aa(
    study: Path = typer.Argument(metavar="STUDY", help="The study file.", autocompletion=studies),
    into: Path | None = INTO,
    treatment: str | None = typer.Option(None, metavar="LABEL", help="What to run; the study's baseline if not given."),
    blocks: int | None = typer.Option(None, min=2, help="Blocks of two trials each; 10 if not given."),
    scale: str = SCALE,
    seed: int | None = SEED,
    resume: bool = RESUME,
    html: bool = HTML,
    details: bool = DETAILS,
    wait: bool = WAIT,
    fresh_images: bool = FRESH_IMAGES,
    json_: bool = JSON,
    hosts: Path | None = HOSTS,
    erase: list[str] = ERASE,
) -> None:
    """Measure this host's noise floor: one treatment of a study, run under two labels; exits as run does."""
    from dbdyno.cli.carry_out import carry_out, run_to_resume
    from dbdyno.plan.aa import aa_plan
    from dbdyno.study.load import load_study

    into = folder_for(into, study, resume=resume)
    begun = run_to_resume(into) if resume else None
    scale = scale or (begun.scale if begun else "")
    loaded = load_study(study, scale)
    if begun:
        seed, blocks = begun.design.seed if seed is None else seed, blocks or begun.design.blocks
    plan = aa_plan(loaded, treatment=treatment, blocks=blocks, seed=seed)
    label = ["--treatment", treatment] if treatment else []
    sized = ["--scale", scale] if scale else []
    over = ["--hosts", str(hosts)] if hosts else []
    again = shlex.join(["dbdyno", "aa", str(study), "--into", str(into), *label, *sized, *over])
    carry_out(
        plan,
        into,
        resume=resume,
        erase=frozenset(erase),
        html=html,
        wait=wait,
        fresh_images=fresh_images,
        again=again,
        hosts=hosts,
        format_=json_or_text(json_=json_),
        details=details,
    )
