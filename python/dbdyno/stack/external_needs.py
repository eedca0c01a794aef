"""What a study needs of an external server. Looks, and changes nothing."""

from collections.abc import Iterator

from dbdyno.errors import DbdynoError
from dbdyno.model.printable import short
from dbdyno.servers.contract import Session
from dbdyno.servers.products import external_server
from dbdyno.stack.capabilities import Capability
from dbdyno.stack.layers.external_server import not_ours
from dbdyno.study.mistakes import did_you_mean
from dbdyno.study.schema import TrialSpec
from dbdyno.study.server_url import server_url

_DIGITS_MAX = 19
OWN_CONNECTIONS = 5  # beside the clients': the lock, the probe, questions, a script's account, one for whoever looks


def external_needs(spec: TrialSpec) -> list[Capability]:
    """Each thing that the server has or lacks, with its remedy."""
    url = spec.stack.server
    try:
        with external_server(url, spec.server.option_file).session() as session:
            found = [
                _database(session, server_url(url).database),
                _engine(session, spec.stack.engine),
                _connections(session, spec.workload.connections),
                *_settings(session, spec),
                *_account(session, spec),
            ]
            return [Capability(f"server {url}", ok=True, detail=short(str(session.variable("version")))), *found]
    except DbdynoError as error:
        remedy = "see that the server runs, and that host, port, user and database of stack.server are right"
        return [Capability(f"server {url}", ok=False, detail=str(error), remedy=remedy)]


def _database(session: Session, database: str) -> Capability:
    name = f"database {database}"
    there = session.database(database)
    if not there.exists():
        remedy = f"CREATE DATABASE {database}, and GRANT ALL on it to this user"
        return Capability(name, ok=False, detail="it is not there, or this user may not see it", remedy=remedy)
    found = there.holdings()
    if found.others:
        return Capability(name, ok=False, detail=not_ours(database, found), remedy="dbdyno drops no tables of others")
    return Capability(name, ok=True, detail="empty, or holds what a killed dbdyno left" if found.token else "empty")


def _engine(session: Session, engine: str) -> Capability:
    there = session.settings().engines
    detail = f"the server has no engine {engine}; it has {', '.join(there)}{did_you_mean(engine, there)}"
    ok = engine.lower() in map(str.lower, there)
    return Capability(f"engine {engine}", ok=ok, detail=detail, field=("stack", "engine"))


def _connections(session: Session, clients: int) -> Capability:
    allowed, taken = map(_number, session.connections())
    detail = f"workload.clients is {clients}; the server allows {allowed}, {taken} are taken"
    ok = clients + OWN_CONNECTIONS + taken <= allowed
    return Capability("connections", ok=ok, detail=detail, remedy="raise its max_connections, or give fewer clients")


def _number(value: object) -> int:
    """A count that the server gives; 0 for what is none."""
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX else 0


def _settings(session: Session, spec: TrialSpec) -> Iterator[Capability]:
    for name, value in spec.server.settings.items():
        why = session.why_not_settable(name, value)
        remedy = "leave it out, or let dbdyno start a server of its own"
        where = ("server", "settings", name)
        yield Capability(f"server.settings.{name}", ok=not why, detail=why, remedy=remedy, field=where)


def _account(session: Session, spec: TrialSpec) -> Iterator[Capability]:
    """Last, as asking changes the session."""
    if not spec.is_confined:
        return
    found = session.why_no_account(server_url(spec.stack.server).database)
    detail = f"none can be made: {found[0]}" if found else "this login can make it"
    otherwise = "or, if the whole server may be changed, [server] whole_server_may_change = true"
    remedy = f"{found[1]}; {otherwise}" if found else ""
    yield Capability("account of the script", ok=not found, detail=detail, remedy=remedy)
