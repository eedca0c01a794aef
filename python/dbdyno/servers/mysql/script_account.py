"""The account that a study's own SQL runs as on an external server: rights on its database, and no others.

The load generator makes it, with a password that leaves that process nowhere, and drops it after each step. Here it is
named, so that it can be dropped after a kill too, and a login is asked whether it could make it.
"""

import re

from pymysql.constants import ER

from dbdyno.errors import HostError
from dbdyno.model.printable import short
from dbdyno.servers.contract import ServerError
from dbdyno.servers.mysql.connection import Cursor, row, rows
from dbdyno.system.state import new_token

_USER_START, _TOKEN_CHARACTERS = "dbdyno_", 9  # MySQL 5.6 takes names of 16
_DENIED = {ER.DBACCESS_DENIED_ERROR, ER.TABLEACCESS_DENIED_ERROR, ER.SPECIFIC_ACCESS_DENIED_ERROR}
_NO_PLUGIN = "no_such_plugin_of_dbdyno"
# What shows the rights that every account has, where the server knows such a thing and the login may look.
_GIVEN_TO_ALL = (
    "SHOW GRANTS FOR PUBLIC",
    "SELECT CONCAT('the mandatory role ', @@GLOBAL.mandatory_roles) FROM DUAL WHERE @@GLOBAL.mandatory_roles <> ''",
    "SELECT CONCAT('rights on the schema ', Db, ' by a row of mysql.db without a user') FROM mysql.db WHERE User = ''",
)


class Accounts:
    """The accounts of a login's server. Each method raises ``ServerError``."""

    cursor: Cursor

    def account(self, token: str) -> tuple[str, str]:
        """User and host of a run's account; the host is the one this host comes from, as the server sees it."""
        self.cursor.execute("SELECT USER()")
        host = str(row(self.cursor)[0]).rpartition("@")[2] or "%"
        if not re.fullmatch(r"[\w.:%-]+", host, re.ASCII):
            raise HostError(f"the server sees this host come from {host!r}, for which no account can be made")
        return _USER_START + token[:_TOKEN_CHARACTERS], host

    def drop_account(self, user: str, host: str) -> bool:
        """Drop an account and end its sessions, as far as the login may; whether it was there. Raises ``ServerError``.

        The sessions of a killed load go on with their statements, which may lock what is to be dropped next.
        """
        sessions = f"SELECT ID FROM information_schema.PROCESSLIST WHERE USER = '{user}'"  # noqa: S608  (letters and digits)
        if not _refusal(self.cursor, sessions):
            for (number,) in rows(self.cursor, 1):
                _refusal(self.cursor, f"KILL {int(number)}")
        try:
            self.cursor.execute(f"DROP USER '{user}'@'{host}'")
        except ServerError as error:
            if error.code == ER.CANNOT_USER:
                return False
            raise
        return True

    def why_no_account(self, database: str) -> tuple[str, str] | None:
        """Why no account confined to the database can be made, and what to do about it. Changes nothing.

        It is asked for what it must refuse, and checks rights first: an account with a plugin that there is not, and
        rights for an account that there is not.
        """
        self.cursor.execute("SELECT CURRENT_USER()")
        user, _, host = str(row(self.cursor)[0]).rpartition("@")
        login = f"'{user}'@'{host}'"
        somebody = f"'{_USER_START}{new_token()[:_TOKEN_CHARACTERS]}'@'localhost'"
        pattern = re.sub(r"([\\_%])", r"\\\1", database).replace("`", "``")
        # Else servers before MySQL 8 may make the account when it is given a right.
        _refusal(self.cursor, "SET SESSION sql_mode = 'NO_AUTO_CREATE_USER'")
        asked = {
            f"CREATE USER {somebody} IDENTIFIED WITH {_NO_PLUGIN}": f"GRANT CREATE USER ON *.* TO {login}",
            f"GRANT ALL PRIVILEGES ON `{pattern}`.* TO {somebody}": f"GRANT ALL PRIVILEGES ON `{pattern}`.* TO {login} "
            "WITH GRANT OPTION",
        }
        for statement, remedy in asked.items():
            error = _refusal(self.cursor, statement)
            if error and error.code in _DENIED:
                return str(error), remedy
            if error and error.code == ER.OPTION_PREVENTS_STATEMENT:
                return str(error), "start it without that option"
        for question in _GIVEN_TO_ALL:
            found = [] if _refusal(self.cursor, question) else [short(str(one)) for (one,) in rows(self.cursor, 1)]
            if given := [one for one in found if not one.startswith("GRANT USAGE ON *.* ")]:
                return f"the server gives every account more than its database: {given[0]}", "take that away"
        return None


def _refusal(cursor: Cursor, statement: str) -> ServerError | None:
    """The server's error, if it is one."""
    try:
        cursor.execute(statement)
    except ServerError as error:
        return error
    return None
