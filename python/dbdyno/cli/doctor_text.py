"""What ``dbdyno doctor`` prints: what this host can do, what was measured, what it is good for, what to change."""

from typing import TYPE_CHECKING

from dbdyno.cli.text_table import hanging

if TYPE_CHECKING:
    from dbdyno.analysis.host_figures import HostFigures
    from dbdyno.stack.capabilities import Capability


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
        said = f"For studies on emulated disks there is no: {', '.join(lacking)}. The remedy stands behind each."
    else:
        said = "All that studies on emulated disks need is there."
    return [hanging("", f"{said} Optional and not there: {', '.join(optional)}." if optional else said)]


def host_lines(host: "HostFigures") -> list[str]:
    """Return what was measured of a host and what follows from it."""
    from dbdyno.report.host_advice import figure_lines

    figures = figure_lines(host)
    width = max(len(name) for name, _ in figures)
    lines = ["measured on this host", *(hanging(f"  {name:{width}s}  ", value) for name, value in figures)]
    return ["", *lines, "", *_fitness_lines(host), "", *_advice_lines(host)]


def _fitness_lines(host: "HostFigures") -> list[str]:
    from dbdyno.report.host_advice import fitness

    judged = fitness(host)
    width = max(len(one.fit) for one in judged)
    texts = [(one.fit, f"{one.study}{f': {one.why}' if one.why else ''}") for one in judged]
    return ["how good this host is for studies of", *(hanging(f"  {fit:{width}s}  ", text) for fit, text in texts)]


def _advice_lines(host: "HostFigures") -> list[str]:
    from dbdyno.report.host_advice import advice

    found = advice(host)
    if not found:
        return ["nothing to change"]
    lines = ["to change, what matters most first"]
    for number, one in enumerate(found, 1):
        lines += [hanging(f"  {number}. ", f"{one.what}: {one.why}"), f"       {one.command}"]
    return lines
