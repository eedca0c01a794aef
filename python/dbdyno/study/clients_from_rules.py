"""What can't be combined with ``workload.clients_from``: a load that several hosts offer together."""

from collections.abc import Iterator

from dbdyno.study.mistakes import Mistake, shown
from dbdyno.study.schema import TrialSpec
from dbdyno.study.server_url import server_url
from dbdyno.study.workloads import GeneratedSection, LoopSection, OltpSection, SmackSection

ABLE = ("slap", "smack", "oltp", "tpcc", "ingest")
_FIELD = ("workload", "clients_from")


def broken_clients_from_rules(spec: TrialSpec) -> Iterator[Mistake]:
    """Every rule that a load from other hosts breaks; none where this machine offers it."""
    load = spec.workload
    if not isinstance(load, GeneratedSection) or not load.clients_from:
        return
    yield from _of_hosts(load)
    yield from _of_load(load)
    yield from _of_stack(spec)


def _of_hosts(load: GeneratedSection) -> Iterator[Mistake]:
    hosts = load.clients_from
    for index, host in enumerate(hosts):
        if host in hosts[:index]:
            yield Mistake((*_FIELD, index), f"names {shown(host)} twice")
    each = load.connections // len(hosts)
    if not each:
        yield Mistake(_FIELD, f"has {len(hosts)} hosts, more than there are clients ({load.connections})")
    elif load.io_threads > each:
        text = f"is {load.io_threads}, more than a host of workload.clients_from has clients ({each})"
        yield Mistake(("workload", "io_threads"), text)


def _of_load(load: GeneratedSection) -> Iterator[Mistake]:
    if load.kind not in ABLE:
        yield Mistake(_FIELD, f"can't be given with the load {load.kind}; it is for {', '.join(ABLE)}")
        return
    if isinstance(load, LoopSection) and load.duration is None:
        text = "needs workload.duration: hosts that each do an amount end at different times"
        yield Mistake(_FIELD, text)
    alone = "which one process alone can keep apart; leave workload.clients_from out"
    if isinstance(load, SmackSection) and load.load in {"insert", "delete"}:
        yield Mistake(("workload", "load"), f"is {shown(load.load)}, whose keys are each used once, {alone}")
    if isinstance(load, OltpSection) and load.load == "insert" and not load.auto_inc:
        yield Mistake(("workload", "auto_inc"), f"is false, so that the load makes up ids, {alone}")


def _of_stack(spec: TrialSpec) -> Iterator[Mistake]:
    if spec.stack.is_simulated:
        yield Mistake(_FIELD, "is of no use to a simulated stack, which no host loads; leave it out")
    elif spec.stack.kind == "external" and _by_socket(spec.stack.server):
        text = f"is {shown(spec.stack.server)}, a socket, which other hosts can't reach; name host and port"
        yield Mistake(("stack", "server"), text)
    if spec.stack.client_cpus is not None:
        text = "binds a client on this machine; leave it out, or workload.clients_from"
        yield Mistake(("stack", "client_cpus"), text)
    if spec.crash is not None:
        yield Mistake(_FIELD, "can't be given with [crash]; a cut needs the load and the server on one machine")


def _by_socket(url: str) -> bool:
    try:
        return server_url(url).socket is not None
    except ValueError:
        return False  # which is a mistake of its own
