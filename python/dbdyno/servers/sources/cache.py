"""Servers provisioned on this host: trees in the state folder, each whole or not there at all.

``NAME`` is a finished tree, with ``server.json`` that says what it was made from. ``NAME.part`` is one in the making:
its downloads survive a kill, what was unpacked does not.
"""

import ctypes
import fcntl
import json
import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from dbdyno.errors import HostError, UserError
from dbdyno.servers.sources.catalogue import PRODUCTS, Product
from dbdyno.servers.sources.installation import Installation, NoServerError, find_in_tree, find_server
from dbdyno.servers.sources.source import Progress, folder_bytes
from dbdyno.study.units import DISTRIBUTION, NOT_SERVED, not_served
from dbdyno.system.state import make_traversable, state_folder

RECORD = "server.json"
_MACHINE = "x86_64"  # what all sources have been tried on
_SPARE = 1.1  # a filesystem takes a little more than the sum of its files


def servers_folder() -> Path:
    """Where the trees lie."""
    return state_folder() / "servers"


def tree_of(name: str) -> Path:
    """Where a product's tree lies when it is there."""
    return servers_folder() / name


def is_installed(name: str) -> bool:
    """Whether a product has been provisioned."""
    return (tree_of(name) / RECORD).is_file()


def record_of(name: str) -> dict[str, Any]:
    """What an installed tree was made from."""
    found: dict[str, Any] = json.loads((tree_of(name) / RECORD).read_text(encoding="utf-8"))
    return found


def product_named(name: str) -> Product:
    """A product of the catalogue. Raises ``UserError``."""
    if name in NOT_SERVED:
        raise UserError(not_served(name))
    if name not in PRODUCTS:
        raise UserError(f"{name!r} is no server that dbdyno can get; known are {', '.join(PRODUCTS)}")
    return PRODUCTS[name]


def add(name: str, progress: Progress) -> dict[str, Any]:
    """Provision a product; returns its record. Nothing happens where it is there. Raises ``HostError``."""
    product = product_named(name)
    with _alone(name):
        if is_installed(name):
            return record_of(name)
        if platform.machine() != _MACHINE:
            raise HostError(f"{name}: there are builds for {_MACHINE} only, and this machine is {platform.machine()}")
        part = servers_folder() / f"{name}.part"
        downloads, tree = part / "downloads", part / "tree"
        downloads.mkdir(parents=True, exist_ok=True)
        for folder in (part, downloads):
            folder.chmod(0o711)  # a client that runs as another user passes through
        _see_libraries(product)
        _make_room(product, downloads)
        files = product.source.fetch(downloads, progress)
        progress.step("unpacking")
        shutil.rmtree(tree, ignore_errors=True)
        tree.mkdir()
        product.source.unpack(downloads, files, tree)
        _readable_by_all(tree)
        make_traversable(part)  # the server runs as another user, from where it is now
        record = _proved(product, tree) | {"files": files}
        (tree / RECORD).write_text(json.dumps(record, indent=1), encoding="utf-8")
        os.sync()
        tree.rename(tree_of(name))
        shutil.rmtree(part)
    find_in_tree.cache_clear()
    return record


def remove(name: str) -> bool:
    """Remove a provisioned product and what an unfinished try left; whether there was any. Raises ``HostError``."""
    product_named(name)
    tree, part = tree_of(name), servers_folder() / f"{name}.part"
    if not tree.exists() and not part.exists():
        return False
    with _alone(name):
        users = _running(tree)
        if users:
            raise HostError(f"{name} is running (pid {', '.join(map(str, users))}); end that run first")
        if tree.exists():
            part.mkdir(exist_ok=True)
            tree.rename(part / "removed")  # at once: what is half removed must not be taken for whole
        shutil.rmtree(part)
    find_in_tree.cache_clear()
    return True


def _proved(product: Product, tree: Path) -> dict[str, Any]:
    """See that the tree holds the server that it should; what is known of it."""
    try:
        found = find_in_tree(product.name, tree)
    except UserError as error:
        raise HostError(f"{product.name}: what was unpacked is no such server: {error}") from None
    if not found.version.startswith(product.release):
        raise HostError(f"{product.name}: {product.source.kind} serves version {found.version} by now")
    return {
        "name": product.name,
        "version": found.version,
        "source": product.source.kind,
        "coordinates": product.source.coordinates,
        "bytes": folder_bytes(tree),
    }


def _see_libraries(product: Product) -> None:
    """See that what a vendor's build takes from the host is there, before anything is downloaded."""
    for library, package in product.libraries.items():
        try:
            ctypes.CDLL(library)
        except OSError:
            raise HostError(
                f"{product.name} needs {library} of this host; install it: apt-get install {package}"
            ) from None


def _make_room(product: Product, downloads: Path) -> None:
    needed = int((product.download_mb + product.unpacked_mb) * 1e6 * _SPARE) - folder_bytes(downloads)
    free = shutil.disk_usage(downloads).free
    if free < needed:
        raise HostError(
            f"{product.name} needs {needed / 1e6:.0f} MB in {servers_folder()}, which has {free / 1e6:.0f} MB free; "
            "make room, or set DBDYNO_STATE_DIR"
        )


def _readable_by_all(tree: Path) -> None:
    """Servers run as another user, who may read and run the tree, and change nothing in it."""
    for parent, _, names in os.walk(tree):
        folder = Path(parent)
        folder.chmod(0o755)
        for path in (folder / name for name in names):
            if not path.is_symlink():
                runs = path.stat().st_mode & 0o100 or folder.name in {"bin", "sbin"}
                path.chmod(0o755 if runs else 0o644)


def _running(tree: Path) -> list[int]:
    """Processes that run a program of a tree."""
    return sorted(one.pid for one in psutil.process_iter(["exe"]) if tree in Path(one.info["exe"] or "/").parents)


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """One process at a time changes a product. The lock ends with its holder, however that ends."""
    make_traversable(servers_folder())
    with (servers_folder() / f"{name}.lock").open("w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HostError(f"another dbdyno is adding or removing {name}; wait for it") from None
        yield


# Every server that a study may name, with what is on this host.


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
