"""Which adapter speaks to which product: the one place outside an adapter's folder that names it."""

from collections.abc import Callable, Mapping

from dbdyno.errors import DbdynoError
from dbdyno.mysql.settings import Setting
from dbdyno.servers.contract import ExternalServer, OwnServer
from dbdyno.servers.mysql.built_in import built_in_settings, product_and_release
from dbdyno.servers.mysql.external import ExternalMysql
from dbdyno.servers.mysql.own import OwnMysql
from dbdyno.servers.sources.installation import Installation, find_server

_OWN: Mapping[str, Callable[[Installation, str, Mapping[str, Setting], int], OwnServer]] = {
    "mariadb": OwnMysql,
    "mysql": OwnMysql,
}
_EXTERNAL: Mapping[str, Callable[[str, str | None], ExternalServer]] = {
    "mariadb": ExternalMysql,
    "mysql": ExternalMysql,
}
DAEMONS = ("mariadbd", "mysqld")  # processes of theirs


def own_server(installation: Installation, engine: str, settings: Mapping[str, Setting], clients: int = 0) -> OwnServer:
    """A server that dbdyno starts; ``clients`` will use it at once."""
    return _OWN[installation.product](installation, engine, settings, clients)


def external_server(url: str, option_file: str | None) -> ExternalServer:
    """A server that runs already, as ``stack.server`` names it."""
    return _EXTERNAL[url.partition("://")[0]](url, option_file)


def unasked_settings(server: str) -> Mapping[str, str]:
    """What a server as ``stack.server`` names it does in durability and logging unless a study says otherwise.

    By its name where that says the version, so that it need not be on this host. Empty where it is not known: of an
    external server, whose settings are its owner's, and of one that is not here.
    """
    if "://" in server:
        return {}
    if known := product_and_release(server):
        return built_in_settings(*known)
    try:
        installation = find_server(server)
    except DbdynoError:  # which the plan says elsewhere
        return {}
    return built_in_settings(installation.product, installation.release)
