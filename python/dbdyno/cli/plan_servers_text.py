"""What servers that a plan compares do differently in durability and logging, unless the study sets it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from dbdyno.plan.plan import Plan
from dbdyno.servers.products import unasked_settings
from dbdyno.study.schema import TrialSpec

if TYPE_CHECKING:
    from dbdyno.analysis.server_defaults import ServerDefaults


def servers_warnings(plan: Plan) -> Iterator[str]:
    """Yield one for each setting in which servers that are compared with each other differ by default."""
    sides = list(_servers_compared(plan))
    if not sides:
        return
    from dbdyno.analysis.server_defaults import CONCERNS
    from dbdyno.report.sections.server_defaults import defaults_clauses  # with all of the analysis

    differing = _differing(sides)
    for name in CONCERNS:
        for clause in defaults_clauses([_only(one, name) for one in differing]):
            yield f"by default {clause}: set {name} in [server.settings] to compare like with like"


def _servers_compared(plan: Plan) -> Iterator[tuple[TrialSpec, TrialSpec]]:
    """Yield each two treatments that are compared and have different servers, the baseline first."""
    for pair in plan.design.comparisons:
        before, after = plan.specs[pair.baseline], plan.specs[pair.level]
        if before.has_server and after.has_server and before.stack.server != after.stack.server:
            yield before, after


def _differing(sides: list[tuple[TrialSpec, TrialSpec]]) -> "list[ServerDefaults]":
    """Return what each two of them differ in; equal ones once."""
    from dbdyno.analysis.server_defaults import compared_settings

    found: list[ServerDefaults] = []
    for before, after in sides:
        names, asked = (before.stack.server, after.stack.server), {*_given(before), *_given(after)}
        one = compared_settings(*names, _settings(before), _settings(after), asked)
        found += [one] if one and one not in found else []
    return found


def _settings(spec: TrialSpec) -> Mapping[str, str]:
    """Return a treatment's settings, the study's before those of the server itself; empty where these aren't known."""
    known = unasked_settings(spec.stack.server)
    return {**known, **_given(spec)} if known else {}


def _given(spec: TrialSpec) -> dict[str, str]:
    return {name.replace("-", "_"): str(value) for name, value in spec.server.settings.items()}


def _only(found: "ServerDefaults", name: str) -> "ServerDefaults":
    return replace(found, differing=[one for one in found.differing if one.name == name])
