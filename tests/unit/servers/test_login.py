"""The login of an external server: where its password may come from, and where it never goes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import UserError
from dbdyno.servers.mysql.external import address_of, read_options

URL = "mysql://me@db1/bench"
SECRET = "s3cret"


@pytest.fixture(autouse=True)
def _no_password(monkeypatch):
    monkeypatch.delenv("DBDYNO_PASSWORD", raising=False)


@pytest.fixture
def option_file(tmp_path):
    def write(text, mode=0o600):
        path = tmp_path / "my.cnf"
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        return str(path)

    return write


def test_the_password_is_the_variables_else_the_files_else_none(option_file, monkeypatch):
    file = option_file("[client]\npassword=of-the-file\n")
    assert address_of(URL, None).password == ""
    assert address_of(URL, file).password == "of-the-file"
    monkeypatch.setenv("DBDYNO_PASSWORD", SECRET)
    assert address_of(URL, file).password == SECRET


def test_the_password_is_in_no_text_and_on_no_command_line(monkeypatch):
    monkeypatch.setenv("DBDYNO_PASSWORD", SECRET)
    address = address_of(URL, None)
    assert SECRET not in f"{address} {address!r} {address.flags()}"
    assert address.environment() == {"MYSQL_PWD": SECRET}


def test_flags_are_those_of_the_load_generator():
    tcp = address_of("mysql://me@db1:3307/bench?ssl-mode=verify_ca&ssl-ca=/ca.pem", None).flags()
    assert tcp == ["--no-defaults", "--host=db1", "--port=3307", "--protocol=tcp", "--user=me",
                   "--ssl-mode=verify_ca", "--ssl-ca=/ca.pem"]  # fmt: skip
    by_socket = address_of("mysql://me@/bench?socket=/x.sock", None).flags()
    assert by_socket == ["--no-defaults", "--socket=/x.sock", "--user=me", "--ssl-mode=disabled"]


@pytest.mark.parametrize("mode", [0o604, 0o602, 0o666])
def test_a_file_that_anybody_may_read_or_write_is_refused(option_file, mode):
    with pytest.raises(UserError, match=r"anybody may read or write .*; chmod 600"):
        address_of(URL, option_file("[client]\npassword=x\n", mode))


@pytest.mark.parametrize("line", ["host=other", "user=other", "port=3307"])
def test_a_file_for_another_server_is_refused(option_file, line):
    with pytest.raises(UserError, match="not for the server of the study"):
        address_of(URL, option_file(f"[client]\npassword=x\n{line}\n"))


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(UserError, match=r"server.option_file: .*/none can't be read: No such file"):
        address_of(URL, str(tmp_path / "none"))


def test_groups_comments_and_quotes_are_read_as_the_load_generator_does():
    text = (
        '[mysqld]\npassword=no\n[client]\n# c\nuser = me # trailing\npassword="a #b"\n[dbdyno]\nuser=other\nssl_ca=/x\n'
    )
    assert read_options(text) == {"user": "other", "password": "a #b", "ssl-ca": "/x"}


@given(st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1))
def test_any_password_in_quotes_is_read_as_it_is(secret):
    written = secret.replace("\\", "\\\\").replace('"', '\\"')
    assert read_options(f'[client]\npassword = "{written}"\n')["password"] == secret


@given(st.text())
def test_any_text_is_read(text):
    assert isinstance(read_options(text), dict)
