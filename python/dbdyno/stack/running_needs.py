"""What a study needs of a server that runs already. Looks, and changes nothing."""

from collections.abc import Iterator

from dbdyno.errors import DbdynoError
from dbdyno.servers import lent_database
from dbdyno.servers.running import Cursor, global_value, talking_to, why_not_settable
from dbdyno.stack.capabilities import Capability
from dbdyno.stack.lent_data import not_ours
from dbdyno.stack.server import engines_of
from dbdyno.study.schema import TrialSpec
from dbdyno.study.server_url import server_url

OWN_CONNECTIONS = 4  # beside the clients': the lock, the probe, questions, and one for whoever looks


def running_needs(spec: TrialSpec) -> list[Capability]:
    """Each thing that the server has or lacks, with its remedy."""
    url = spec.stack.server
    try:
        with talking_to(url, spec.server.option_file) as cursor:
            found = [
                _database(cursor, server_url(url).database),
                _engine(cursor, spec.stack.engine),
                _connections(cursor, spec.workload.connections),
                *_settings(cursor, spec),
            ]
            return [Capability(f"server {url}", ok=True, detail=str(global_value(cursor, "version"))), *found]
    except DbdynoError as error:
        remedy = "see that the server runs, and that host, port, user and database of stack.server are right"
        return [Capability(f"server {url}", ok=False, detail=str(error), remedy=remedy)]


def _database(cursor: Cursor, database: str) -> Capability:
    name = f"database {database}"
    if not lent_database.exists(cursor, database):
        remedy = f"CREATE DATABASE {database}, and GRANT ALL on it to this user"
        return Capability(name, ok=False, detail="it is not there, or this user may not see it", remedy=remedy)
    found = lent_database.holdings(cursor, database)
    if found.others:
        return Capability(name, ok=False, detail=not_ours(database, found), remedy="dbdyno drops nobody's tables")
    return Capability(name, ok=True, detail="empty, or holds what a killed dbdyno left" if found.token else "empty")


def _engine(cursor: Cursor, engine: str) -> Capability:
    there = engines_of(cursor)
    detail = f"the server has {', '.join(there)}"
    ok = engine.lower() in map(str.lower, there)
    return Capability(f"engine {engine}", ok=ok, detail=detail, remedy="name one that it has in stack.engine")


def _connections(cursor: Cursor, clients: int) -> Capability:
    allowed = int(global_value(cursor, "max_connections") or 0)
    cursor.execute("SHOW GLOBAL STATUS LIKE 'Threads_connected'")
    taken = int((cursor.fetchone() or (0, 0))[1])
    detail = f"workload.clients is {clients}; the server allows {allowed}, {taken} are taken"
    ok = clients + OWN_CONNECTIONS + taken <= allowed
    return Capability("connections", ok=ok, detail=detail, remedy="raise its max_connections, or give fewer clients")


def _settings(cursor: Cursor, spec: TrialSpec) -> Iterator[Capability]:
    for name, value in spec.server.settings.items():
        said = why_not_settable(cursor, name, value)
        remedy = "leave it out, or let dbdyno start a server of its own, which takes any setting"
        yield Capability(f"server.settings.{name}", ok=not said, detail=said, remedy=remedy)
