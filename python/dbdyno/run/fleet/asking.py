"""What each host under test answers before anything is touched: whether it can run the study, and what it is."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from math import inf
from signal import SIGKILL
from threading import Timer
from time import monotonic
from typing import TypeVar

from dbdyno.errors import DbdynoError, HostError, UserError
from dbdyno.hosts.contract import Hosts, LieError, Lines
from dbdyno.hosts.inventory import Inventory
from dbdyno.model.similar import did_you_mean
from dbdyno.model.wording import count
from dbdyno.plan.plan import Plan
from dbdyno.run.fleet.message import (
    ALWAYS,
    LINE_BYTES_MAX,
    OF_FACTS,
    Beats,
    FactsAnswer,
    Failed,
    Gone,
    Kinds,
    MemberFacts,
    Message,
    parse,
)
from dbdyno.run.fleet.request import Request
from dbdyno.stack.capabilities import Capability
from dbdyno.study.units import format_bytes

MEMBER = ("python", "-m", "dbdyno.run.fleet.member")
Answers = Mapping[str, MemberFacts]
T = TypeVar("T")
_AT_ONCE = 16  # hosts that are asked at once
ANSWER_SECONDS = 120.0  # for what a host is
_SILENT_SECONDS = 2 * ANSWER_SECONDS  # after which nothing is waited for where a host does not even say that it ended
_LINES_MAX, _BYTES_MAX = 50_000, 64 * 1024**2  # that a program says before it brings something


def check_names(plan: Plan, inventory: Inventory) -> None:
    """Raise ``UserError`` where a host under test is not in the inventory, or is no server there."""
    wrong = []
    for name in plan.host_names():
        if name not in inventory.hosts:
            known = f"it has {', '.join(inventory.hosts)}{did_you_mean(name, inventory.hosts)}"
            wrong.append(f'{plan.study.path}: hosts.under_test: "{name}" is not in {inventory.path}; {known}')
        elif "server" not in inventory.hosts[name].roles:
            wrong.append(
                f'{inventory.path}: host.{name}.roles: lacks "server"; add it: each host under test needs this role'
            )
    if wrong:
        raise UserError("\n".join(wrong))


def messages(  # noqa: PLR0913  (whose, which, and how long)
    hosts: Hosts,
    host: str,
    process: str,
    kinds: Kinds,
    *,
    silent_seconds: float = inf,
    idle_seconds: float = inf,
) -> Iterator[Message]:
    """What a program of ours says, line by line; last that it is ``Gone``.

    Raises ``LieError`` where it says anything else, or more than such a program says between two that bring something;
    where it says nothing for ``silent_seconds``, or for ``idle_seconds`` nothing but that it goes on.
    """
    lines, moved_at = Lines(hosts, host, process, LINE_BYTES_MAX, _LINES_MAX, _BYTES_MAX, silent_seconds), monotonic()
    for line in lines.read():
        message = parse(host, line, kinds)
        moved_at = moved_at if isinstance(message, Beats) else monotonic()
        if monotonic() - moved_at > idle_seconds:
            raise LieError(f"{host}: it has made no progress for {idle_seconds:.0f} s")
        if message.brings:
            lines.renew()
        yield message
    yield Gone(lines.why_ended())


def ask_facts(hosts: Hosts, request: Request, argv: Sequence[str], environment: Mapping[str, str]) -> MemberFacts:
    """What a host is. Raises ``HostError``."""
    host = request.host
    process = hosts.start(host, argv, stdin=request.to_json(), environment=environment)
    with _ended_in_time(hosts, host, process) as is_late:
        for message in messages(hosts, host, process, OF_FACTS, silent_seconds=_SILENT_SECONDS):
            if isinstance(message, FactsAnswer):
                return message.facts
            if isinstance(message, Failed):
                raise HostError(f"{host}: {message.error}")
            if isinstance(message, Gone):
                raise HostError(f"{host}: {f'no answer in {ANSWER_SECONDS:g} s' if is_late() else message.why}")
    raise HostError(f"{host}: it ended without an answer")


def _forget(hosts: Hosts, request: Request, argv: Sequence[str], environment: Mapping[str, str]) -> None:
    """Have a host remove what it keeps of a run. Raises ``HostError``."""
    process = hosts.start(request.host, argv, stdin=request.to_json(), environment=environment)
    with _ended_in_time(hosts, request.host, process):
        for _ in messages(hosts, request.host, process, ALWAYS, silent_seconds=_SILENT_SECONDS):
            pass


@contextmanager
def _ended_in_time(hosts: Hosts, host: str, process: str) -> Iterator[Callable[[], bool]]:
    """Have a program that answers ended where it does not answer in time, or lies; whether it was late."""

    def end() -> None:
        with suppress(DbdynoError):
            hosts.signal(host, process, SIGKILL)

    late = Timer(ANSWER_SECONDS, end)
    late.daemon = True
    late.start()
    try:
        yield lambda: not late.is_alive()
    except LieError:
        end()
        raise
    finally:
        late.cancel()


def ask_all(
    hosts: Hosts,
    requests: Iterable[Request],
    argv: Sequence[str] = MEMBER,
    environment_of: Callable[[str], Mapping[str, str]] = lambda _: {},
) -> dict[str, MemberFacts | DbdynoError]:
    """What each is, all being asked at once, or why it doesn't say so."""
    return _at_once(ask_facts, hosts, requests, argv, environment_of)


def forget_all(
    hosts: Hosts, requests: Iterable[Request], argv: Sequence[str], environment_of: Callable[[str], Mapping[str, str]]
) -> None:
    """Have each remove what it keeps of a run, as far as it can be reached."""
    _at_once(_forget, hosts, requests, argv, environment_of)


def _at_once(
    ask: Callable[[Hosts, Request, Sequence[str], Mapping[str, str]], T],
    hosts: Hosts,
    requests: Iterable[Request],
    argv: Sequence[str],
    environment_of: Callable[[str], Mapping[str, str]],
) -> dict[str, T | DbdynoError]:
    all_requests = list(requests)

    def tried(request: Request) -> T | DbdynoError:
        try:
            return ask(hosts, request, argv, environment_of(request.host))
        except DbdynoError as error:
            return error

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip([request.host for request in all_requests], pool.map(tried, all_requests), strict=True))


def refusals(
    plan: Plan,
    answers: Mapping[str, "MemberFacts | DbdynoError"],
    erase: frozenset[str],
    not_bootable: Sequence[str] = (),
) -> list[str]:
    """What stands in the way, with the host that it is on; nothing where all can run the study."""
    reasons = [str(answer) for answer in answers.values() if isinstance(answer, DbdynoError)]
    good = {name: answer for name, answer in answers.items() if not isinstance(answer, DbdynoError)}
    reasons += [f"{name}: {reason}" for name, answer in good.items() for reason in answer.lacking]
    serials = {serial for answer in good.values() for serial in answer.serials}
    reasons += [
        f"--erase {serial!r}: no disk of this study has that serial, on any host" for serial in sorted(erase - serials)
    ]
    return [*reasons, *not_bootable] or list(_differences(plan, good))


def _differences(plan: Plan, answers: Answers) -> Iterator[str]:
    """What must be the same on all hosts and is not."""
    first = next(iter(answers.values()))
    for name in first.versions:
        is_server = name.startswith("server ")
        versions = {host: str(answer.versions.get(name)) for host, answer in answers.items()}
        if is_server and len(set(versions.values())) > 1:
            versions_text = ", ".join(f"{version} on {host}" for host, version in versions.items())
            yield f"{name}: is {versions_text}; a study needs one version on all hosts: run dbdyno servers add on each"
    if len({tuple(answer.awake) for answer in answers.values()}) > 1:
        yield f'{plan.study.path}: host.awake = "auto" means yes on some hosts and no on others; give true or false'


def decide_plan(
    plan: Plan,
    answers: Mapping[str, "MemberFacts | DbdynoError"],
    erase: frozenset[str],
    not_bootable: Sequence[str] = (),
) -> tuple[Plan, Answers]:
    """The plan with each ``host.awake = "auto"`` as it is on all hosts, and what they answered.

    Raises ``UserError`` where one can't run it.
    """
    if wrong := refusals(plan, answers, erase, not_bootable):
        raise UserError("\n".join(wrong))
    good = {name: answer for name, answer in answers.items() if not isinstance(answer, DbdynoError)}
    awake = set(next(iter(good.values())).awake)
    specs = {
        id_: spec.model_copy(update={"host": spec.host.model_copy(update={"awake": id_ in awake})})
        if spec.host.awake == "auto"
        else spec
        for id_, spec in plan.specs.items()
    }
    return replace(plan, specs=specs), good


def as_needs(
    plan: Plan,
    answers: Mapping[str, "MemberFacts | DbdynoError"],
    erase: frozenset[str],
    not_bootable: Sequence[str] = (),
) -> list[Capability]:
    """The same for a plan that is only looked at: what is wrong, or else what each host is."""
    if wrong := refusals(plan, answers, erase, not_bootable):
        parts = [refusal.partition(": ") for refusal in wrong]
        return [Capability(name, ok=False, detail=detail) for name, _, detail in parts]
    return [
        Capability(name, ok=True, detail=_about(answer))
        for name, answer in answers.items()
        if not isinstance(answer, DbdynoError)
    ]


def _about(answer: MemberFacts) -> str:
    host, free = answer.host, format_bytes(answer.free_bytes)
    erased = [f"ERASED: {device} ({proof})" for device, proof in answer.erases.items()]
    return "; ".join([f"{count(host['cores'], 'core')}, kernel {answer.versions['kernel']}, {free} free", *erased])


def common_versions(answers: Answers) -> dict[str, str]:
    """The versions that all hosts have alike; the others stand with each host."""
    first, *rest = (dict(answer.versions) for answer in answers.values())
    return {name: version for name, version in first.items() if all(versions.get(name) == version for versions in rest)}
