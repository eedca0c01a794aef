"""What servers do in durability and logging unless they are told otherwise, by product and release.

Known without a server: so a plan can warn of what two of them differ in before either is there. Only what differs
between releases in use; the settings of a server that was run are read back from it. Sources: the manuals' pages of
the binary log's and InnoDB's variables, MySQL 5.5 to 9 and MariaDB 10.5 to 11.8.
"""

import re
from collections.abc import Mapping
from typing import Literal

Product = Literal["mariadb", "mysql"]
Release = tuple[int, ...]

# Setting -> (the first release, the value from there on), in ascending order.
_SINCE: Mapping[Product, Mapping[str, tuple[tuple[Release, str], ...]]] = {
    "mariadb": {
        "log_bin": (((), "OFF"),),
        "sync_binlog": (((), "0"),),
        "innodb_flush_log_at_trx_commit": (((), "1"),),
        "innodb_doublewrite": (((), "ON"),),
        "innodb_flush_method": (((), "fsync"), ((10, 6), "O_DIRECT")),
        "binlog_format": (((), "STATEMENT"), ((10, 2, 4), "MIXED")),
    },
    "mysql": {
        "log_bin": (((), "OFF"), ((8, 0, 3), "ON")),
        "sync_binlog": (((), "0"), ((5, 7, 7), "1")),
        "innodb_flush_log_at_trx_commit": (((), "1"),),
        "innodb_doublewrite": (((), "ON"),),
        "innodb_flush_method": (((), "fsync"), ((8, 4), "O_DIRECT")),
        "binlog_format": (((), "STATEMENT"), ((5, 7, 7), "ROW")),
    },
}
_NAMED = re.compile(r"(mariadb|mysql)-([0-9]+(?:\.[0-9]+)*)")
_LATEST = 999  # of a series whose last number is not given: what came during the series counts as there


def built_in_settings(product: Product, release: Release) -> dict[str, str]:
    """Return the settings of a release, (10, 11, 19), as the server shows them."""
    return {
        name: [value for since, value in values if since <= release][-1] for name, values in _SINCE[product].items()
    }


def product_and_release(name: str) -> tuple[Product, Release] | None:
    """Return what a name such as ``mysql-9`` or ``mariadb-10.11`` stands for; ``None`` where it doesn't say."""
    if not (match := _NAMED.fullmatch(name)):
        return None
    product: Product = "mariadb" if match[1] == "mariadb" else "mysql"
    return product, (*(int(part) for part in match[2].split(".")), _LATEST)
