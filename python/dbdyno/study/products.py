"""The servers that a study may name by a word."""

DISTRIBUTION = "mariadb"  # the distribution's own
NO_SERVER = "none"  # what is measured stands on the filesystem alone
PROVISIONED = ("mariadb-10.5", "mariadb-10.11", "mariadb-11.4", "mariadb-11.8", "mysql-5.5", "mysql-5.6", "mysql-9")
