"""A server that encrypts gets a key file that its user alone reads; one that can't is refused with the reason."""

from dbdyno.servers.mysql.encryption import KEY_FILE, encryption_mistakes, key_options
from dbdyno.servers.sources.installation import Installation

ON = {"innodb_encrypt_tables": True, "innodb_encrypt_log": False, "innodb_buffer_pool_size": "64M"}


def test_a_key_file_is_made_where_a_setting_encrypts(tmp_path):
    server = Installation("a", tmp_path, tmp_path / "bin/mariadbd", "10.6.21-MariaDB", "mariadb")
    assert "needs the module file_key_management" in encryption_mistakes(server, ON)["innodb_encrypt_tables"]
    assert list(encryption_mistakes(server, ON)) == ["innodb_encrypt_tables"]
    (tmp_path / "lib/plugin").mkdir(parents=True)
    (tmp_path / "lib/plugin/file_key_management.so").touch()
    server = Installation("b", tmp_path, tmp_path / "bin/mariadbd", "10.6.21-MariaDB", "mariadb")
    assert encryption_mistakes(server, ON) == {}
    assert key_options(server, {**ON, "innodb_encrypt_tables": "OFF"}, tmp_path) == []
    assert not (tmp_path / KEY_FILE).exists()
    options = key_options(server, ON, tmp_path)
    assert options == ["--plugin-load-add=file_key_management", f"--file-key-management-filename={tmp_path / KEY_FILE}"]
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o777 == 0o600


def test_mysql_gets_no_keyring(tmp_path):
    server = Installation("c", tmp_path, tmp_path / "bin/mysqld", "8.4.5", "mysql")
    assert (
        "needs a keyring" in encryption_mistakes(server, {"default_table_encryption": True})["default_table_encryption"]
    )
