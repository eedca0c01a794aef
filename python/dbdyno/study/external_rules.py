"""What can't be set for an external server: whatever it was started with or stands on."""

from collections.abc import Iterator

from dbdyno.study.mistakes import Mistake, shown
from dbdyno.study.schema import TrialSpec
from dbdyno.study.server_url import server_url
from dbdyno.study.workloads import KINDS, GeneratedSection

_WHY = "can't be set with an external server: "
# Field of [stack] -> why, and what to do about it.
_STACK = {
    **dict.fromkeys(
        ("device", "serial", "size", "devices", "filesystem", "scheduler"),
        "what its data stand on is its own, and stays as it is. Leave it out, or let dbdyno start a server of its own",
    ),
    "kernel": "only what dbdyno raises can be simulated. Leave one of the two out",
    "memory": "its memory is bounded where it was started. Leave it out, or let dbdyno start a server of its own",
    "server_cpus": "its processors are given to it where it was started. Leave it out, or bind that server yourself",
}
_SECTIONS = {
    "queue": "dbdyno does not touch the disks below it. Leave it out, or let dbdyno start a server of its own",
    "filesystem": "dbdyno does not touch the disks below it. Leave it out, or let dbdyno start a server of its own",
}


def broken_external_rules(spec: TrialSpec) -> Iterator[Mistake]:
    """Every rule that this treatment of an external server breaks."""
    try:
        server_url(spec.stack.server)
    except ValueError as error:
        yield Mistake(("stack", "server"), str(error))
    for name, why in _STACK.items():
        if name in spec.stack.model_fields_set:
            yield Mistake(("stack", name), _WHY + why)
    for section, why in _SECTIONS.items():
        for name in sorted(getattr(spec, section).model_fields_set):
            yield Mistake((section, name), _WHY + why)
    if not isinstance(spec.workload, GeneratedSection):  # other programs would make a schema of their own there
        able = ", ".join(name for name, kind in KINDS.items() if issubclass(kind, GeneratedSection))
        text = f"is {shown(spec.workload.kind)}; an external server takes {able}"
        yield Mistake(("workload", "kind"), text)
    if spec.server.whole_server_may_change and spec.workload.kind != "script":
        text = "is for the load script; other loads change nothing but tables of their own. Leave it out"
        yield Mistake(("server", "whole_server_may_change"), text)
    if spec.server.ionice is not None:
        yield Mistake(("server", "ionice"), _WHY + "its I/O class was given to it where it was started. Leave it out")
