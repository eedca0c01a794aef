"""An external server: what it was started with and stands on is its own; only what needs no restart varies."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from dbdyno.errors import DbdynoError
from dbdyno.model.printable import short
from dbdyno.model.similar import did_you_mean
from dbdyno.mysql.server_url import server_url
from dbdyno.plan.identity import image_key
from dbdyno.servers.contract import Session
from dbdyno.servers.products import external_server
from dbdyno.stack.capabilities import Capability
from dbdyno.stack.kinds.kind import Raising, Stack, StackKind
from dbdyno.stack.layers.device import NoDevice
from dbdyno.stack.layers.external_server import ExternalData, ExternalDatabase, ExternalServerLayer, not_ours
from dbdyno.stack.undo_log import Journal
from dbdyno.study.schema import TrialSpec
from dbdyno.study.workloads import USERS_SQL

# What a study needs of an external server. Looks, and changes nothing.


_DIGITS_MAX = 19
OWN_CONNECTIONS = 5  # beside the clients': the lock, the probe, questions, a script's account, one for whoever looks


def external_needs(spec: TrialSpec) -> list[Capability]:
    """Each thing that the server has or lacks, with its remedy."""
    url = spec.stack.server
    try:
        with external_server(url, spec.server.option_file).session() as session:
            capabilities = [
                database_need(session, server_url(url).database),
                *needs_of_session(session, spec),
                *_account(session, spec),
            ]
            return [Capability(f"server {url}", ok=True, detail=short(str(session.variable("version")))), *capabilities]
    except DbdynoError as error:
        remedy = "check that the server runs, and that host, port, user and database of stack.server are right"
        return [Capability(f"server {url}", ok=False, detail=str(error), remedy=remedy)]


def needs_of_session(session: Session, spec: TrialSpec) -> Iterator[Capability]:
    """What a server that dbdyno does not restart must have, whoever started it."""
    yield _engine(session, spec.stack.engine)
    yield _connections(session, spec.workload.connections)
    yield from _settings(session, spec)


def database_need(session: Session, database: str) -> Capability:
    """Whether the database is there, and nothing of others is in it."""
    name = f"database {database}"
    session_database = session.database(database)
    if not session_database.exists():
        remedy = f"CREATE DATABASE {database}, and GRANT ALL on it to this user"
        return Capability(name, ok=False, detail="it is not there, or this user may not see it", remedy=remedy)
    holdings = session_database.holdings()
    if holdings.others:
        return Capability(
            name, ok=False, detail=not_ours(database, holdings), remedy="dbdyno drops no tables of others"
        )
    return Capability(name, ok=True, detail="empty, or holds what a killed dbdyno left" if holdings.token else "empty")


def _engine(session: Session, engine: str) -> Capability:
    engines = session.settings().engines
    detail = f"the server has no engine {engine}; it has {', '.join(engines)}{did_you_mean(engine, engines)}"
    ok = engine.lower() in map(str.lower, engines)
    return Capability(f"engine {engine}", ok=ok, detail=detail, field=("stack", "engine"))


def _connections(session: Session, clients: int) -> Capability:
    allowed, open_connections = map(_number, session.connections())
    detail = (
        f"workload.clients is {clients}; the server allows {allowed} connections, of which {open_connections} are taken"
    )
    ok = clients + OWN_CONNECTIONS + open_connections <= allowed
    return Capability("connections", ok=ok, detail=detail, remedy="raise its max_connections, or give fewer clients")


def _number(value: object) -> int:
    """A count that the server gives; 0 for what is none."""
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX else 0


def _settings(session: Session, spec: TrialSpec) -> Iterator[Capability]:
    for name, value in spec.server.settings.items():
        why = session.why_not_settable(name, value)
        remedy = "leave it out, or let dbdyno start a server of its own"
        field = ("server", "settings", name)
        yield Capability(f"server.settings.{name}", ok=not why, detail=why, remedy=remedy, field=field)


def _account(session: Session, spec: TrialSpec) -> Iterator[Capability]:
    """Last, as asking changes the session."""
    if not spec.is_confined:
        return
    obstacle = session.why_no_account(server_url(spec.stack.server).database)
    detail = f"none can be made: {obstacle[0]}" if obstacle else "this login can make it"
    otherwise = "or, if the whole server may be changed, [server] whole_server_may_change = true"
    remedy = f"{obstacle[1]}; {otherwise}" if obstacle else ""
    yield Capability("account of the script", ok=not obstacle, detail=detail, remedy=remedy)


class ExternalStack(StackKind[ExternalDatabase]):
    """The data are loaded into its database, as no image can be put back there."""

    IS_RAISED = False

    def needs_of_server(self, spec: TrialSpec) -> Iterator[Capability]:
        """What the server itself says."""
        yield from external_needs(spec)

    def needs_of_ground(self, spec: TrialSpec, erase: frozenset[str]) -> Iterator[Capability]:
        """Nothing: no disk of this host is touched."""
        return iter(())

    def touches(self, specs: Sequence[TrialSpec], proofs: Mapping[str, str]) -> Iterator[str]:
        """What is changed on each server."""
        for url in dict.fromkeys(spec.stack.server for spec in specs):
            yield from _changes(url, [spec for spec in specs if spec.stack.server == url])

    def server_version(self, spec: TrialSpec) -> str:
        """As it reports it."""
        with external_server(spec.stack.server, spec.server.option_file).session() as session:
            return session.version()

    def image_key(self, spec: TrialSpec) -> str:
        """The server: a run has its database once."""
        return spec.stack.server

    @contextmanager
    def new_image(self, spec: TrialSpec, journal: Journal) -> Iterator[ExternalDatabase]:
        """The database, which this run may use until its end."""
        with ExternalDatabase(spec.stack.server, spec.server.option_file, journal).taken() as database:
            yield database

    def stack(self, spec: TrialSpec, image: ExternalDatabase, raising: Raising) -> Stack:
        """The server as it is, and the data loaded into it."""
        stack, server = spec.stack, spec.server
        key = image_key(spec, stack.server, server.settings)
        data = ExternalData(image, key, raising.prepare, only_read=spec.workload.only_reads, confined=spec.is_confined)
        layer = ExternalServerLayer(stack.server, server.option_file, server.settings, stack.engine)
        return Stack(NoDevice("unknown"), (layer, data))


KIND = ExternalStack()


def _changes(url: str, specs: Sequence[TrialSpec]) -> Iterator[str]:
    parts, place = server_url(url), server_url(url).place
    yield f"created: tables in the database {parts.database} of the server at {place}; dropped afterwards"
    scripts = [spec for spec in specs if spec.workload.kind in USERS_SQL]
    if any(not spec.is_confined for spec in scripts):
        target = f"the whole server at {place}, by the script's SQL as far as {parts.user} may"
        yield f"CHANGED: {target}; none of it is put back"
    if any(spec.is_confined for spec in scripts):
        yield "created: an account there that may change that database alone; dropped afterwards"
    if names := sorted({name for spec in specs for name in spec.server.settings}):
        yield f"changed: {', '.join(names)} of that server, for all its users; put back after each trial"
