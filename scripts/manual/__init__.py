"""What a wheel puts below ``share/`` beside the programs: manual page, completion for three shells, suites of loads."""

from pathlib import Path

from scripts.manual.page import manual

ROOT = Path(__file__).parents[2]
PLACES = {
    "bash": "share/bash-completion/completions/dbdyno",
    "zsh": "share/zsh/site-functions/_dbdyno",
    "fish": "share/fish/vendor_completions.d/dbdyno.fish",
}


def files() -> dict[str, str]:
    """Path below the prefix -> content."""
    from typer._completion_shared import get_completion_script

    from dbdyno.cli.completion import PROGRAM, VARIABLE

    made = {"share/man/man1/dbdyno.1": manual((ROOT / "docs/commands.md").read_text(encoding="utf-8"))}
    for shell, place in PLACES.items():
        script = get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=shell)
        made[place] = script + "\n"
    suites = ROOT / "studies/suites"
    for path in sorted((*suites.rglob("*.toml"), *suites.rglob("*.sql"))):
        made[f"share/dbdyno/suites/{path.relative_to(suites)}"] = path.read_text(encoding="utf-8")
    return made
