"""The products by name: which servers a study may name by a word, and what a server's version calls itself."""

DISTRIBUTION = "mariadb"  # the distribution's own
NO_SERVER = "none"  # what is measured stands on the filesystem alone
PROVISIONED = ("mariadb-10.5", "mariadb-10.11", "mariadb-11.4", "mariadb-11.8", "mysql-5.5", "mysql-5.6", "mysql-5.7",
               "mysql-8.0", "mysql-9")  # fmt: skip
NOT_SERVED = ("mariadb-10.6", "mysql-8.4", "percona-8.0", "percona-8.4")  # no registry that dbdyno asks has builds


def not_served(*names: str) -> str:
    """What to do about servers that people ask for and no registry has."""
    listed = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    return (
        f"{listed}: no package registry that dbdyno asks has a build; unpack the vendor's archive and name its folder, "
        f'as in server = "/opt/{names[-1]}"'
    )


def product_name(version: str, comment: str) -> str:
    """Return ``"MariaDB 10.11.6"`` of what a server says of itself in ``version`` and ``version_comment``."""
    number = version.partition("-")[0]
    if "mariadb" in version.lower():
        return f"MariaDB {number}"
    return f"Percona Server {number}" if "percona" in comment.lower() else f"MySQL {number}"
