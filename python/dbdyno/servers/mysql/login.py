"""The login of an external server: the study's URL, and a password that is in no study and no run folder."""

import os
from pathlib import Path
from typing import cast

from dbdyno._native import option_lines
from dbdyno.errors import UserError
from dbdyno.servers.address import Address, Mode, Tls
from dbdyno.study.server_url import PASSWORD_VARIABLE, ServerUrl, server_url

GROUPS = ("client", "client-server", "client-mariadb", "dbdyno")
_ALL_MAY = 0o006  # read or write it


def address_of(url: str, option_file: str | None) -> Address:
    """Where and how to log in. Raises ``UserError`` where the option file can't be used.

    The password is the variable's; where that is not set, the option file's; else there is none.
    """
    named = server_url(url)
    from_file = _password_in(Path(option_file), named) if option_file else None
    password = os.environ.get(PASSWORD_VARIABLE, from_file) or ""
    socket = Path(named.socket) if named.socket else None
    mode = named.ssl_mode or ("disabled" if socket else "preferred")
    tls = Tls(cast("Mode", mode), named.ssl_ca, named.ssl_cert, named.ssl_key)
    return Address(named.user, socket, named.host, named.port, tls, password)


def how_to_give_a_password(option_file: str | None) -> str:
    """The remedy where a server does not let us in."""
    place = f"or put it into {option_file}" if option_file else "or name a file that holds it in server.option_file"
    return f"set {PASSWORD_VARIABLE} to its password, {place}"


def _password_in(path: Path, url: ServerUrl) -> str | None:
    try:
        mode, text = path.stat().st_mode, path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UserError(f"server.option_file: {path} can't be read: {said}") from None
    if mode & _ALL_MAY:
        raise UserError(f"server.option_file: anybody may read or write {path}; chmod 600 {path}")
    options = read_options(text)
    reported = {"host": url.host, "port": str(url.port), "user": url.user, "socket": url.socket}
    for name, value in reported.items():
        if name in options and options[name] != value:
            said = f"is for {name} {options[name]!r}, not for the server of the study"
            raise UserError(f"server.option_file: {path} {said}; name another, or leave {name} out of it")
    return options.get("password")


def read_options(text: str) -> dict[str, str]:
    """What MySQL's option files say in the groups that concern us; of an option given twice the last one holds."""
    options = {}
    for _, group, what, name, value in option_lines(text):
        if what == "option" and group in GROUPS:
            options[name.lower().replace("_", "-").removeprefix("loose-")] = value or ""
    return options
