"""What servers that a plan compares do differently in durability and logging, unless the study sets it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from dbdyno.analysis.server_defaults import CONCERNS, ServerDefaults, compared_settings
from dbdyno.plan.plan import Plan
from dbdyno.report.sections.server_defaults import defaults_clauses
from dbdyno.servers.products import unasked_settings
from dbdyno.study.schema import TrialSpec


def servers_warnings(plan: Plan) -> Iterator[str]:
    """Yield one for each setting in which servers that are compared with each other differ by default."""
    differing = _differing(plan)
    for name in CONCERNS:
        alone = [_only(one, name) for one in differing]
        for clause in defaults_clauses(alone):
            yield f"by default {clause}: set {name} in [server.settings] to compare like with like"


def _differing(plan: Plan) -> list[ServerDefaults]:
    """Return what each two servers of planned comparisons differ in; equal ones once."""
    found: list[ServerDefaults] = []
    for pair in plan.design.comparisons:
        before, after = plan.specs[pair.baseline], plan.specs[pair.level]
        names = before.stack.server, after.stack.server
        if names[0] == names[1] or not (before.has_server and after.has_server):
            continue
        asked = {*_given(before), *_given(after)}
        one = compared_settings(*names, _settings(before), _settings(after), asked)
        found += [one] if one and one not in found else []
    return found


def _settings(spec: TrialSpec) -> Mapping[str, str]:
    """Return a treatment's settings, the study's before those of the server itself; empty where these aren't known."""
    known = unasked_settings(spec.stack.server)
    return {**known, **_given(spec)} if known else {}


def _given(spec: TrialSpec) -> dict[str, str]:
    return {name.replace("-", "_"): str(value) for name, value in spec.server.settings.items()}


def _only(found: ServerDefaults, name: str) -> ServerDefaults:
    return replace(found, differing=[one for one in found.differing if one.name == name])
