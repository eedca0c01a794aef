"""``dbdyno doctor``: what this host can do, the remedy for what it can't, and which studies it is good for."""

import sys
from typing import TYPE_CHECKING, Any

import typer

from dbdyno.cli.doctor_text import capability_lines, host_lines
from dbdyno.cli.output import JSON, print_json

if TYPE_CHECKING:
    from dbdyno.analysis.host_figures import HostFigures


def doctor(
    quick: bool = typer.Option(False, "--quick", help="List what this host can do; measure nothing."),
    json_: bool = JSON,
) -> None:
    """Show what this host can do, with the remedy for each no; then measure for 10 s which studies it is good for."""
    from dbdyno.stack.capabilities import look_around

    found = look_around()
    if not json_:
        print("\n".join(capability_lines(found)), flush=True)
    host = None if quick else _measured()
    if json_:
        able = all(one.ok for one in found if one.needed)
        rows = [{"name": o.name, "ok": o.ok, "needed": o.needed, "detail": o.detail, "remedy": o.remedy} for o in found]
        print_json({"able": able, "capabilities": rows, **({} if host is None else _as_values(host))})
    elif host:
        print("\n".join(host_lines(host)))


def _measured() -> "HostFigures":
    from dbdyno.run.measure_host import measure_host

    found = measure_host(_progress)
    if sys.stderr.isatty():
        typer.echo(f"\r{'':60}\r", err=True, nl=False)
    return found


def _progress(what: str) -> None:
    line = f"measuring for about 10 s: {what}"
    typer.echo(f"\r{line:60}" if sys.stderr.isatty() else line, err=True, nl=not sys.stderr.isatty())


def _as_values(host: "HostFigures") -> dict[str, Any]:
    """What was measured and what follows, for a script; what is unknown is null."""
    from dataclasses import asdict

    from dbdyno.report.host_advice import advice, fitness

    figures = {name: None if value != value or value == "unknown" else value for name, value in asdict(host).items()}  # noqa: PLR0124 - NaN
    return {
        "measured": figures,
        "studies": [asdict(one) for one in fitness(host)],
        "advice": [asdict(one) for one in advice(host)],
    }
