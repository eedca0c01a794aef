"""The control connection and servers that mean no good: the password stays here, and all ends in a sentence."""

import re
import socket
import threading
import time

import pytest

from dbdyno.model.printable import SAID_MAX
from dbdyno.servers.contract import Address, ServerError, Tls
from dbdyno.servers.mysql import connection
from dbdyno.servers.mysql.connection import connect, login_of, row, rows
from tests.hostile_server import (
    AS_GREETING,
    AS_REPLY,
    BYTES,
    NASTY,
    NONCE,
    OK,
    HostileServer,
    good,
    greeting,
    lenenc,
)

SECRET = "tell-nobody#7"
SECONDS = 0.5  # bound of a login and of a reply here
PATIENCE_SECONDS = 20.0  # for anything that has a bound, on a busy host

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # pymysql leaves failed connections to the collector


@pytest.fixture(autouse=True)
def _bounds(monkeypatch):
    monkeypatch.setattr(connection, "LOGIN_SECONDS", SECONDS)
    monkeypatch.setattr(connection, "REPLY_SECONDS", SECONDS)


def address(server, **options):
    return Address("me", host="127.0.0.1", port=server.port, password=SECRET, **options)


def ask(server, statement="SELECT @@GLOBAL.`version`", **options):
    with connect(address(server, **options)) as talk, talk.cursor() as cursor:
        cursor.execute(statement)
        return row(cursor)


def refusal(script, **options):
    """What is said of a server; that must come in time."""
    began = time.monotonic()
    with HostileServer(script) as server, pytest.raises(ServerError) as refused:
        ask(server, **options)
    assert time.monotonic() - began < PATIENCE_SECONDS
    said = str(refused.value)
    assert said.isprintable()
    assert 0 < len(said) < 2 * SAID_MAX
    assert all(not isinstance(part, str) or part.isprintable() for part in refused.value.args)
    return said, server


def test_a_good_server_is_talked_to():
    with HostileServer(good()) as server:
        assert ask(server) == ("8.0.99-hostile",)
        assert SECRET.encode() not in server.heard


def asking(plugin, *steps):
    """A script: asks for a plugin by a switch, and then says the steps, whatever the client does."""

    def script(peer):
        peer.say(greeting())
        peer.hear()
        peer.say(b"\xfe" + plugin + b"\0" + NONCE + b"\0")
        for step in steps:
            peer.hear()
            peer.say(step)
        peer.wait_recorded()

    return script


def greeting_with(plugin, *steps):
    """A script: the plugin is that of the greeting."""

    def script(peer):
        peer.say(greeting(plugin))
        peer.hear()
        for step in steps:
            peer.say(step)
            peer.wait_recorded()

    return script


KEY = b"""\1-----BEGIN PUBLIC KEY-----
MFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAMOqmw8TjAiZQSXKjVNS0wS6oDTgsUSh
b0w7RHPOa4y7UM0HnzkxHBVTVBYqQ3cKs7+Ofn/2TJNKAIPmNSwGGKkCAwEAAQ==
-----END PUBLIC KEY-----
"""


@pytest.mark.parametrize(
    ("script", "word"),
    [
        (asking(b"mysql_clear_password"), "clear text"),
        (greeting_with(b"mysql_clear_password", b"\xfemysql_clear_password\0"), "clear text"),
        (greeting_with(b"mysql_clear_password", b"\1"), "clear text"),
        (asking(b"dialog", b"\4Password: "), "not supported"),
        (greeting_with(b"dialog", b"\1\4Password: "), "not supported"),
        (asking(b"mysql_old_password"), "not safe"),
        (greeting_with(b"mysql_native_password", b"\xfe"), "plugin|switch"),
        (asking(b"sha256_password", KEY), "in the clear"),
        (greeting_with(b"sha256_password", KEY), "in the clear"),
        (asking(b"caching_sha2_password", b"\1\4", KEY), "in the clear"),
        (greeting_with(b"caching_sha2_password", b"\1\4", KEY), "in the clear"),
        (asking(b"client_ed25519"), "not supported"),
        (asking(b"authentication_kerberos_client"), "not supported"),
    ],
)
def test_the_password_is_not_given_to_whoever_asks(script, word):
    said, server = refusal(script)
    assert re.search(word, said), said
    assert SECRET.encode() not in server.heard
    assert len(server.heard) < 200, "no key was asked for, and nothing sealed with a stranger's"


def test_over_a_socket_nobody_listens(tmp_path):
    """There the password may go, as the load generator has it."""
    heard = []

    def serve(listener):
        stream, _ = listener.accept()
        with stream:
            for packet in (b"\0" + greeting(), b"\2\xfemysql_clear_password\0"):
                stream.sendall(len(packet[1:]).to_bytes(3, "little") + packet)
                heard.append(stream.recv(4096))

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        with pytest.raises(ServerError):
            connect(Address("me", tmp_path / "s", password=SECRET))
        thread.join()
    assert heard[1][4:] == SECRET.encode() + b"\0"


@pytest.mark.parametrize(
    ("where", "private"),
    [
        (Address("me", host="h"), False),
        (Address("me", host="h", tls=Tls("required")), False),
        (Address("me", host="h", tls=Tls("verify_ca", "/ca")), True),
        (Address("me", host="h", tls=Tls("verify_identity", "/ca")), True),
    ],
)
def test_tls_keeps_others_out_only_with_a_server_that_is_verified(where, private):
    assert where.is_private is private


def test_a_password_beyond_latin_1_is_sent_as_servers_keep_it():
    assert login_of(Address("me", password="p\u0117s"))["password"] == "p\u0117s".encode()


@pytest.mark.parametrize("what", BYTES)
def test_harm_in_place_of_a_greeting(what):
    refusal(good(BYTES[what], statement=-1))


@pytest.mark.parametrize("what", BYTES)
def test_harm_in_place_of_the_answer_to_a_login(what):
    refusal(good(lambda peer: (peer.say(greeting()), peer.hear(), BYTES[what](peer)), statement=-1))


@pytest.mark.parametrize("what", AS_GREETING)
def test_harm_in_a_login(what):
    refusal(good(AS_GREETING[what], statement=-1))


@pytest.mark.parametrize("what", BYTES | AS_REPLY)
def test_harm_in_place_of_a_reply(what):
    harm = (BYTES | AS_REPLY)[what]
    if what in {"nothing but NULL", "bytes behind the reply"}:
        with HostileServer(good(harm)) as server, connect(address(server)) as talk, talk.cursor() as cursor:
            cursor.execute("SELECT 1")
            if what == "bytes behind the reply":
                time.sleep(0.2)
                with pytest.raises(ServerError):
                    cursor.execute("SELECT 1")
        return
    refusal(good(harm))


def test_what_a_server_says_is_cleaned_and_cut():
    said, _ = refusal(good(BYTES["an error of 2 MB"]))
    assert said == f"{'E' * SAID_MAX} ... (1999500 more bytes)"
    said, _ = refusal(good(BYTES["an error to obey"]))
    assert said == "[2Jred 31m [2Jred 31m [2Jred 31m"
    assert not set(NASTY) & set(said) - set("[2Jred31m")


def test_a_file_asked_for_is_not_sent():
    said, server = refusal(good(AS_REPLY["a file asked for"]))
    assert "asks for a local file" in said
    assert b"root:" not in server.heard


def test_slow_bytes_meet_the_bound_of_the_whole_reply():
    def slowly(peer):
        peer.say(b"\1")  # then a definition that never ends
        peer.drip(b"\xff\xff\0\2" + b"x" * 9)

    assert refusal(good(slowly))[0] == f"no whole answer within {SECONDS:g} s"


def test_a_reply_in_pieces_is_one():
    def slowly(peer):
        whole = b"\1\0\0\1\1" + b"\x17\0\0\2" + b"\3def\0\0\0\1c\0\x0c\x2d\0\xff\0\0\0\xfd\0\0\0\0\0"
        for byte in whole + b"\5\0\0\3\xfe\0\0\2\0" + b"\2\0\0\4\1v" + b"\5\0\0\5\xfe\0\0\2\0":
            peer.raw(bytes([byte]))

    with HostileServer(good(slowly)) as server:
        assert ask(server) == ("v",)


def test_a_reply_has_a_bound_in_bytes(monkeypatch):
    monkeypatch.setattr(connection, "REPLY_SECONDS", PATIENCE_SECONDS)
    said, _ = refusal(good(AS_REPLY["rows without end"]))
    assert said == "the server broke the protocol: a reply that is too long"


def test_bounds_are_of_each_reply_not_of_the_connection(monkeypatch):
    monkeypatch.setattr(connection, "REPLY_BYTES_MAX", 1000)
    with HostileServer(good()) as server, connect(address(server)) as talk, talk.cursor() as cursor:
        began = time.monotonic()
        asked = 0
        while time.monotonic() < began + 3 * SECONDS or asked < 20:
            cursor.execute("SELECT @@GLOBAL.`version`")
            assert rows(cursor, 1) == [("8.0.99-hostile",)]
            asked += 1


def test_a_connection_that_was_left_amid_a_reply_is_not_used_again():
    with HostileServer(good(BYTES["silence"])) as server:
        talk = connect(address(server))
        for _ in range(2):
            with pytest.raises(ServerError):
                talk.query("SELECT 1")
        assert not talk.open


def test_a_value_that_sql_has_not_is_refused():
    with HostileServer(good()) as server, connect(address(server)) as talk, talk.cursor() as cursor:
        with pytest.raises(ServerError, match="nan can not be used"):
            cursor.execute("SET GLOBAL long_query_time = %s", (float("nan"),))
        assert talk.open


def test_rows_of_another_shape_are_refused():
    two = good(lambda peer: peer.rows(2, (b"a", b"b")))
    with HostileServer(two) as server, connect(address(server)) as talk, talk.cursor() as cursor:
        cursor.execute("SELECT 1")
        with pytest.raises(ServerError, match="another number of columns"):
            rows(cursor, 1)


def test_a_lenenc_of_the_test_is_the_protocols():
    assert (lenenc(None), lenenc(b"ab"), OK[0]) == (b"\xfb", b"\2ab", 0)
