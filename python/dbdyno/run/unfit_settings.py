"""Which settings of an option file a server of this host would not take."""

from dbdyno.errors import DbdynoError
from dbdyno.host.memory import memory_facts
from dbdyno.model.quantity import size_bytes
from dbdyno.servers.products import own_server
from dbdyno.servers.sources.installation import find_server
from dbdyno.study.section import Setting
from dbdyno.study.units import format_bytes

ENGINE = "innodb"
POOL = "innodb_buffer_pool_size"
POOL_SHARE_MAX = 0.5  # of the host's memory: the filesystem, the client and others need some


def unfit_settings(server: str, settings: dict[str, Setting]) -> dict[str, str]:
    """Return what is wrong with each; of a server that is not on this host only what the host itself can't."""
    found = _too_large(settings)
    fit = {name: value for name, value in settings.items() if name not in found}
    try:
        installation = find_server(server)
        unknown = own_server(installation, ENGINE, fit).mistakes()
        left = {name: value for name, value in fit.items() if name not in unknown}
        refused = own_server(installation, ENGINE, left).refused()
    except DbdynoError:
        return found
    return found | unknown | {name: f"{server} refuses it" for name in refused if name in left}


def version_of(server: str) -> str:
    """Return the version text of a server of this host; empty where it is not on it."""
    try:
        return find_server(server).version
    except DbdynoError:
        return ""


def _too_large(settings: dict[str, Setting]) -> dict[str, str]:
    held, pool = memory_facts()["bytes"], settings.get(POOL)
    try:
        wanted = pool if isinstance(pool, int) else size_bytes(str(pool))
    except ValueError:
        return {}
    if not isinstance(held, int) or wanted <= POOL_SHARE_MAX * held:
        return {}
    return {POOL: f"is more than half of the memory of this host ({format_bytes(held)}); give a smaller one by hand"}
