"""Every server that a study may name, with what is on this host."""

import shutil
from typing import Any

from dbdyno.errors import UserError
from dbdyno.servers.sources.cache import is_installed, tree_of
from dbdyno.servers.sources.catalogue import PRODUCTS, Product
from dbdyno.servers.sources.installation import Installation, NoServerError, find_server
from dbdyno.study.products import DISTRIBUTION, NOT_SERVED, not_served

_NOT_FOR_TABLES = {"memory", "csv", "mrg_myisam", "archive", "blackhole"}  # no load of a study can do with them
_CLIENTS = {"Debian": ("apt-get", "apt"), "npm": ("npm", "npm"), "Maven": ("mvn", "maven")}


def known_servers() -> list[dict[str, Any]]:
    """The distribution's server, the catalogue, then those that no registry has; asks no registry."""
    provisioned = (_provisioned(product) for product in PRODUCTS.values())
    return [_distribution(), *provisioned, *(_not_served(name) for name in NOT_SERVED)]


def _not_served(name: str) -> dict[str, Any]:
    nothing = dict.fromkeys(("version", "source", "coordinates", "download_mb", "unpacked_mb", "folder"))
    shown = {"name": name, "title": name, "installed": False, "engines": [], "available": False}
    return shown | nothing | {"problem": not_served(name)}


def _distribution() -> dict[str, Any]:
    found, problem = _found(DISTRIBUTION)
    return {
        "name": DISTRIBUTION,
        "title": "MariaDB, the distribution's",
        "installed": found is not None,
        "version": found.version if found else None,
        "engines": [engine for engine in found.engines() if engine not in _NOT_FOR_TABLES] if found else [],
        "source": "the distribution",
        "coordinates": "mariadb-server-core",
        "available": True,
        "download_mb": None,
        "unpacked_mb": None,
        "folder": str(found.basedir) if found else None,
        "problem": problem,
    }


def _provisioned(product: Product) -> dict[str, Any]:
    there = is_installed(product.name)
    found, problem = _found(product.name) if there else (None, "")
    program, package = _CLIENTS[product.source.kind]
    available = shutil.which(program) is not None
    if not there and not available:
        problem = f"to get it, {program} is needed; apt-get install {package}"
    return {
        "name": product.name,
        "title": product.title,
        "installed": there,
        "version": found.version if found else None,
        "engines": list(product.engines),
        "source": product.source.kind,
        "coordinates": product.source.coordinates,
        "available": available,
        "download_mb": product.download_mb,
        "unpacked_mb": product.unpacked_mb,
        "folder": str(tree_of(product.name)) if there else None,
        "problem": problem,
    }


def _found(name: str) -> tuple[Installation | None, str]:
    try:
        return find_server(name), ""
    except NoServerError as error:
        return None, f"{error.reason}; {error.remedy}"
    except UserError as error:
        return None, str(error)
