"""Encryption at rest of a server of dbdyno's own: which settings need a key, and the key that such a server gets.

MariaDB takes its keys from a module that it is started with, and the module takes them from a file. The file lies in
the trial's scratch folder, readable by the server's user alone, and goes with it; no run folder holds it. All trials
get the same key, as they start from the same prepared data, which is encrypted when it is made. It keeps no secret:
what is encrypted with it was made up, and what is measured is the cost.

MySQL makes its keys itself and keeps them by a component, which a manifest beside the server's program names, and whose
configuration lies among its modules. The program and the modules are shared by all runs, so the trial's scratch folder
gets links to both, with manifest and configuration beside the links: a server looks beside the path it was started by.
The keys themselves lie in a hidden file in the data folder, so that they are prepared, copied and lost with the data.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dbdyno.model.quantity import is_off
from dbdyno.mysql.settings import Setting
from dbdyno.servers.sources.installation import Installation
from dbdyno.servers.user import server_user

MODULE = "file_key_management"
KEY_FILE = "encryption.keys"
COMPONENT = "component_keyring_file"  # of MySQL since 8.0.24
KEYRING = ".keyring"  # in the data folder; a server that makes its system tables overlooks hidden files there
# Settings that need a key where they are on.
NEEDS_KEY: Mapping[str, frozenset[str]] = {
    "mariadb": frozenset({"aria_encrypt_tables", "encrypt_binlog", "encrypt_tmp_disk_tables", "encrypt_tmp_files",
                          "innodb_encrypt_log", "innodb_encrypt_tables", "innodb_encrypt_temporary_tables"}),
    "mysql": frozenset({"binlog_encryption", "default_table_encryption", "innodb_redo_log_encrypt",
                        "innodb_undo_log_encrypt"}),
}  # fmt: skip
_KEY = hashlib.sha256(b"dbdyno: encryption at rest is measured, and nothing is kept secret").hexdigest()


def encrypting(product: str, settings: Mapping[str, Setting]) -> list[str]:
    """Those of the settings that are on and need a key."""
    return [name for name, value in settings.items() if name in NEEDS_KEY[product] and not is_off(str(value))]


def encryption_mistakes(installation: Installation, settings: Mapping[str, Setting]) -> dict[str, str]:
    """Why a server can't have each setting that needs a key, where it can't."""
    names = encrypting(installation.product, settings)
    needed = MODULE if installation.product == "mariadb" else COMPONENT
    if _has(installation, needed):
        return {}
    what, whole = ("module", "modules") if installation.product == "mariadb" else ("component", "components")
    why = (
        f"needs the {what} {needed}, which {installation.title} ({installation.name}) has not; take a server with "
        f"its {whole}, such as a vendor's archive: dbdyno servers add URL|FILE"
    )
    return dict.fromkeys(names, why)


@dataclass(frozen=True)
class Key:
    """How a server is started so that it has a key; as ever where it needs none."""

    options: tuple[str, ...] = ()
    daemon: Path | None = None  # the path that it is started by
    plugins: Path | None = None  # the folder of its modules


def give_key(installation: Installation, settings: Mapping[str, Setting], folder: Path, data: Path) -> Key:
    """Give a server a key, by files in ``folder``, if a setting needs one; its data lie, or will lie, in ``data``."""
    if not encrypting(installation.product, settings):
        return Key()
    if installation.product == "mariadb":
        return _key_file(folder) if _has(installation, MODULE) else Key()
    return _keyring(installation, folder, data) if _has(installation, COMPONENT) else Key()


def _key_file(folder: Path) -> Key:
    file = folder / KEY_FILE
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(handle, 0o600)
        if user := server_user():
            os.fchown(handle, user.pw_uid, user.pw_gid)
        os.write(handle, f"1;{_KEY}\n".encode())
    finally:
        os.close(handle)
    return Key((f"--plugin-load-add={MODULE}", f"--file-key-management-filename={file}"))


def _keyring(installation: Installation, folder: Path, data: Path) -> Key:
    """Links to the program and its modules, with manifest and configuration of the component beside them."""
    assert installation.plugins is not None  # noqa: S101  (the component is among them)
    # A source and its replica share the folder; each has data of its own.
    own = folder / f"keyring-{hashlib.blake2b(os.fsencode(data), digest_size=4).hexdigest()}"
    plugins = own / "plugins"
    for made in (own, plugins):
        made.mkdir(exist_ok=True)
        made.chmod(0o755)
    daemon = own / installation.daemon.name
    links = {daemon: installation.daemon, **{plugins / file.name: file for file in installation.plugins.iterdir()}}
    for link, target in links.items():
        if not link.is_symlink():
            link.symlink_to(target)
    _write_read_only(own / f"{daemon.name}.my", {"components": f"file://{COMPONENT}"})
    _write_read_only(plugins / f"{COMPONENT}.cnf", {"path": str(data / KEYRING), "read_only": False})
    return Key(daemon=daemon, plugins=plugins)


def _write_read_only(file: Path, fields: Mapping[str, object]) -> None:
    """Write a file anew that the server's user reads and cannot change, as it would warn of one that it can."""
    file.unlink(missing_ok=True)
    file.write_text(json.dumps(fields) + "\n", encoding="utf-8")
    file.chmod(0o444)


def _has(installation: Installation, module: str) -> bool:
    return installation.plugins is not None and (installation.plugins / f"{module}.so").is_file()
