"""What ``dbdyno simulate`` prints: the result, and the kernels there are."""

from typing import TYPE_CHECKING

from dbdyno.cli.output import Format, print_document, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbdyno.report.document import Document
    from dbdyno.simulation.asked import Load
    from dbdyno.simulation.sweep import Simulated


def print_result(load: "Load", found: "Sequence[Simulated]", *, details: bool, json_: bool) -> "Document":
    """Print what came of all points, as text or as JSON; return the report of it."""
    from dbdyno.report.simulation import Row, document

    by_levels: dict[tuple[str, ...], list[Simulated]] = {}
    for one in found:
        by_levels.setdefault(tuple(one.point.levels.values()), []).append(one)
    rows = [Row(same[0].point.levels, tuple(one.outcome for one in same)) for same in by_levels.values()]
    requests = sum(one.outcome[way]["requests"] for one in found for way in ("reads", "writes"))
    cost = f"{requests:,} requests in {sum(one.cpu_s for one in found):,.3g} s of CPU."
    if load.passed_over:
        cost = f"Passed over, as it changes nothing here: {', '.join(load.passed_over)}. {cost}"
    report = document(rows, load.said, load.replay, cost)
    if json_:
        each = [{"levels": dict(one.point.levels), "point": one.point.point, "outcome": one.outcome} for one in found]
        whole = {"simulated": True, "load": load.said, "replay": load.replay or None}
        whole |= {"passed_over": list(load.passed_over), "combinations": report.data["rows"], "points": each}
        print_json(whole)
    else:
        print_document(report, Format.TEXT, brief=not details)
    return report


def print_kernels(*, json_: bool) -> None:
    """Print the kernels that can be simulated, with schedulers and tunables."""
    from dbdyno._native import kernels

    if json_:
        print_json(kernels())
        return
    for kernel in kernels():
        print(kernel["name"])
        for place, (name, tunables) in enumerate(kernel["schedulers"].items()):
            settings = ", ".join(f"{one}={known['default']}{known['unit'] if known['unit'] != '0 or 1' else ''}"
                                 for one, known in tunables.items())  # fmt: skip
            print(f"  {name}{' (default)' if not place else ''}{': ' + settings if settings else ''}")


def given(**words: str) -> dict[str, str]:
    """Return the options of these names that are not left out."""
    return {word: text for word, text in words.items() if text}
