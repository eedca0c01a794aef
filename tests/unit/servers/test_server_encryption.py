"""A server that encrypts gets a key of its own; one that can't is refused with the reason."""

import json

from dbdyno.servers.mysql.encryption import COMPONENT, KEY_FILE, KEYRING, Key, encryption_mistakes, give_key
from dbdyno.servers.sources.installation import Installation

ON = {"innodb_encrypt_tables": True, "innodb_encrypt_log": False, "innodb_buffer_pool_size": "64M"}
MYSQL_ON = {"default_table_encryption": True, "binlog_encryption": "OFF"}


def test_a_key_file_is_made_where_a_setting_encrypts(tmp_path):
    server = Installation("a", tmp_path, tmp_path / "bin/mariadbd", "10.6.21-MariaDB", "mariadb")
    assert "needs the module file_key_management" in encryption_mistakes(server, ON)["innodb_encrypt_tables"]
    assert list(encryption_mistakes(server, ON)) == ["innodb_encrypt_tables"]
    (tmp_path / "lib/plugin").mkdir(parents=True)
    (tmp_path / "lib/plugin/file_key_management.so").touch()
    server = Installation("b", tmp_path, tmp_path / "bin/mariadbd", "10.6.21-MariaDB", "mariadb")
    assert encryption_mistakes(server, ON) == {}
    assert give_key(server, {**ON, "innodb_encrypt_tables": "OFF"}, tmp_path, tmp_path / "data") == Key()
    assert not (tmp_path / KEY_FILE).exists()
    key = give_key(server, ON, tmp_path, tmp_path / "data")
    options = ("--plugin-load-add=file_key_management", f"--file-key-management-filename={tmp_path / KEY_FILE}")
    assert key == Key(options)
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o777 == 0o600


def test_mysql_without_the_component_is_refused(tmp_path):
    server = Installation("c", tmp_path, tmp_path / "bin/mysqld", "8.4.5", "mysql")
    why = encryption_mistakes(server, MYSQL_ON)
    assert list(why) == ["default_table_encryption"]
    assert (
        "needs the component component_keyring_file, which MySQL 8.4.5 (c) has not" in why["default_table_encryption"]
    )
    assert give_key(server, MYSQL_ON, tmp_path, tmp_path / "data") == Key()


def test_mysql_gets_a_keyring_by_links_and_what_is_shared_stays_as_it_is(tmp_path):
    tree, scratch = tmp_path / "tree", tmp_path / "scratch"
    for folder in (tree / "bin", tree / "lib/plugin", scratch):
        folder.mkdir(parents=True)
    for name in (COMPONENT, "component_query_attributes"):
        (tree / f"lib/plugin/{name}.so").touch()
    (tree / "bin/mysqld").touch()
    server = Installation("d", tree, tree / "bin/mysqld", "9.7.4", "mysql")
    before = sorted(tree.rglob("*"))
    assert encryption_mistakes(server, MYSQL_ON) == {}
    key = give_key(server, MYSQL_ON, scratch, scratch / "data")
    assert give_key(server, MYSQL_ON, scratch, scratch / "data") == key, "a server is started more than once"
    assert give_key(server, MYSQL_ON, scratch, scratch / "replica") != key
    assert (key.daemon.resolve(), key.options) == (tree / "bin/mysqld", ())
    assert json.loads((key.daemon.parent / "mysqld.my").read_text()) == {"components": f"file://{COMPONENT}"}
    assert (
        key.plugins / "component_query_attributes.so"
    ).resolve() == tree / "lib/plugin/component_query_attributes.so"
    cnf = json.loads((key.plugins / f"{COMPONENT}.cnf").read_text())
    assert cnf == {"path": str(scratch / "data" / KEYRING), "read_only": False}
    command = server.command("--x", daemon=key.daemon, plugins=key.plugins)
    assert command[0] == str(key.daemon)
    assert [word for word in command if word.startswith("--plugin-dir")] == [f"--plugin-dir={key.plugins}"]
    assert sorted(tree.rglob("*")) == before
