"""``dbdyno doctor``: what this host can do, the remedy for what it can't, and which studies it is good for."""

from typing import TYPE_CHECKING, Any

import typer

from dbdyno.cli.output import JSON, ProgressLine, hanging, print_json

if TYPE_CHECKING:
    from dbdyno.analysis.quick import HostMeasurement
    from dbdyno.stack.capabilities import Capability


# What ``dbdyno doctor`` prints: what this host can do, what was measured, what it is good for, what to change.


def capability_lines(found: "list[Capability]") -> list[str]:
    """Return a line for each thing that a host can or can't do, then whether it is enough."""
    width = max(len(one.name) for one in found)
    return [*(_capability(one, width) for one in found), "", *_enough(found)]


def _capability(one: "Capability", width: int) -> str:
    mark = "yes" if one.ok else "no" if one.needed else "-"
    remedy = f"; {one.remedy}" if one.remedy and not one.ok else ""
    return hanging(f"{mark:3s}  {one.name:{width}s}  ", f"{one.detail}{remedy}")


def _enough(found: "list[Capability]") -> list[str]:
    lacking = [one.name for one in found if one.needed and not one.ok]
    optional = [one.name for one in found if one.used and not one.needed and not one.ok]
    if lacking:
        said = f"Studies on emulated disks need what is missing here: {', '.join(lacking)}. See the remedy beside each."
    else:
        said = "This host has everything that studies on emulated disks need."
    return [hanging("", f"{said} Optional and missing: {', '.join(optional)}." if optional else said)]


def host_lines(host: "HostMeasurement") -> list[str]:
    """Return what was measured of a host and what follows from it."""
    from dbdyno.report.host_advice import figure_lines

    figures = figure_lines(host)
    width = max(len(name) for name, _ in figures)
    lines = ["measured on this host", *(hanging(f"  {name:{width}s}  ", value) for name, value in figures)]
    return ["", *lines, "", *_fitness_lines(host), "", *_advice_lines(host)]


def _fitness_lines(host: "HostMeasurement") -> list[str]:
    from dbdyno.report.host_advice import fitness

    judged = fitness(host)
    width = max(len(one.fit) for one in judged)
    texts = [(one.fit, f"{one.study}{f': {one.why}' if one.why else ''}") for one in judged]
    return ["suitability of this host for studies of", *(hanging(f"  {fit:{width}s}  ", text) for fit, text in texts)]


def _advice_lines(host: "HostMeasurement") -> list[str]:
    from dbdyno.report.host_advice import advice

    found = advice(host)
    if not found:
        return ["nothing to change"]
    lines = ["what to change, most important first"]
    for number, one in enumerate(found, 1):
        lines += [hanging(f"  {number}. ", f"{one.what}: {one.why}"), f"       {one.command}"]
    return lines


def doctor(
    quick: bool = typer.Option(False, "--quick", help="List what this host can do; measure nothing."),
    json_: bool = JSON,
) -> None:
    """Show what this host can do, with the remedy for each no; then measure for 10 s which studies it is good for."""
    from dbdyno.stack.capabilities import look_around
    from dbdyno.stack.kinds.booted import machines

    found = [*look_around(), machines(None if quick else _say_try)]
    if not json_:
        print("\n".join(capability_lines(found)), flush=True)
    host = None if quick else _measured()
    if json_:
        able = all(one.ok for one in found if one.needed)
        rows = [{"name": o.name, "ok": o.ok, "needed": o.needed, "detail": o.detail, "remedy": o.remedy} for o in found]
        print_json({"able": able, "capabilities": rows, **({} if host is None else _as_values(host))})
    elif host:
        print("\n".join(host_lines(host)))


def _say_try() -> None:
    typer.echo("testing KVM: booting a virtual machine for 20 s at most", err=True)


def _measured() -> "HostMeasurement":
    from dbdyno.run.measure_host import measure_host

    with ProgressLine() as line:
        return measure_host(lambda what: line.show(f"measuring for about 10 s: {what}"))


def _as_values(host: "HostMeasurement") -> dict[str, Any]:
    """What was measured and what follows, for a script; what is unknown is null."""
    from dataclasses import asdict

    from dbdyno.report.host_advice import advice, fitness

    figures = {name: None if value != value or value == "unknown" else value for name, value in asdict(host).items()}  # noqa: PLR0124 - NaN
    return {
        "measured": figures,
        "studies": [asdict(one) for one in fitness(host)],
        "advice": [asdict(one) for one in advice(host)],
    }
