"""A TCP server of a test's own: it logs everybody in, answers as if its database were empty, and then does harm."""

import contextlib
import re
import socket
import struct
import threading
import time

PROTOCOL_41, SSL, SECURE, PLUGIN_AUTH, WITH_DB = 0x200, 0x800, 0x8000, 0x80000, 0x8
OFFERED = 0x1 | WITH_DB | PROTOCOL_41 | 0x2000 | SECURE | PLUGIN_AUTH
NONCE = b"abcdefghijklmnopqrst"
OK = b"\0\0\0\2\0\0\0"
EOF = b"\xfe\0\0\2\0"
VAR_STRING, LONGLONG = 0xFD, 0x08
COM_QUIT, COM_QUERY = 1, 3


def greeting(plugin=b"mysql_native_password", *, offered=OFFERED, protocol=10, version=b"8.0.99-hostile"):
    """The first packet of a server."""
    return b"".join((
        bytes([protocol]), version, b"\0", struct.pack("<I", 7), NONCE[:8], b"\0", struct.pack("<H", offered & 0xFFFF),
        b"\x2d\x02\0", struct.pack("<H", offered >> 16), b"\x15", bytes(10), NONCE[8:], b"\0", plugin, b"\0",
    ))  # fmt: skip


def error(text, code=1105):
    """An error packet."""
    return b"\xff" + struct.pack("<H", code) + b"#HY000" + text


def lenenc(text):
    """A string behind its length."""
    return b"\xfb" if text is None else bytes([len(text)]) + text


class Peer:
    """The server's end of one connection."""

    def __init__(self, stream, number):
        self.stream, self.number, self.sequence, self.heard = stream, number, 0, b""

    def raw(self, data):
        self.stream.sendall(data)

    def say(self, *payloads):
        for payload in payloads:
            self.raw(struct.pack("<I", len(payload))[:3] + bytes([self.sequence]) + payload)
            self.sequence = (self.sequence + 1) % 256

    def hear(self):
        """The client's next payload; nothing where it has left."""
        header = self._exactly(4)
        payload = self._exactly(int.from_bytes(header[:3], "little"))
        self.sequence = (header[3] + 1) % 256
        return payload

    def _exactly(self, count):
        found = b""
        while len(found) < count:
            piece = self.stream.recv(count - len(found))
            if not piece:
                raise ConnectionError
            self.heard += piece
            found += piece
        return found

    def drip(self, data, seconds=0.02):
        """The same bytes, one at a time, for ever."""
        while True:
            for place in range(len(data)):
                self.raw(data[place : place + 1])
                time.sleep(seconds)

    def wait(self):
        """Until the client leaves."""
        with contextlib.suppress(OSError):
            while self.stream.recv(4096):
                pass

    def wait_recorded(self):
        """The same, and what comes is kept."""
        with contextlib.suppress(OSError):
            while True:
                self._exactly(1)

    def let_in(self):
        self.say(greeting())
        self.hear()
        self.say(OK)

    def rows(self, columns, *rows, kind=VAR_STRING):
        self.say(bytes([columns]), *[column(kind)] * columns, EOF, *(b"".join(map(lenenc, row)) for row in rows), EOF)


def column(kind=VAR_STRING, name=b"c"):
    """The definition of a column, of text in utf8mb4."""
    fields = b"".join(map(lenenc, (b"def", b"", b"", b"", name, b"")))
    return fields + b"\x0c\x2d\0" + struct.pack("<IBHB", 255, kind, 0, 0) + b"\0\0"


ANSWERS = (  # what a server of an empty database says to dbdyno
    (r"information_schema.SCHEMATA", 1, [(b"1",)], LONGLONG),
    (r"information_schema.TABLES", 3, [], VAR_STRING),
    (r"SHOW ENGINES", 6, [(b"InnoDB", b"DEFAULT", b"", b"YES", b"YES", b"YES")], VAR_STRING),
    (r"@@GLOBAL.`(max_connections)`", 1, [(b"151",)], LONGLONG),
    (r"Threads_connected", 2, [(b"Threads_connected", b"1")], VAR_STRING),
    (r"@@GLOBAL.`version", 1, [(b"8.0.99-hostile",)], VAR_STRING),
    (r"GET_LOCK", 1, [(b"1",)], LONGLONG),
)


def answer(peer, sql):
    """What a good server says to a statement."""
    for pattern, columns, rows, kind in ANSWERS:
        if re.search(pattern, sql):
            peer.rows(columns, *rows, kind=kind)
            return
    peer.say(OK)


class HostileServer:
    """One that follows ``script(peer)`` with each client, in a thread each, until the context ends."""

    def __init__(self, script):
        self._script, self.peers = script, []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for peer in self.peers:
            with contextlib.suppress(OSError):
                peer.stream.shutdown(socket.SHUT_RDWR)

    @property
    def heard(self):
        """Every byte that any client sent."""
        return b"".join(peer.heard for peer in self.peers)

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                stream, _ = self._listener.accept()
                self.peers.append(Peer(stream, len(self.peers)))
                threading.Thread(target=self._serve, args=(self.peers[-1],), daemon=True).start()

    def _serve(self, peer):
        with contextlib.suppress(OSError), peer.stream:
            self._script(peer)


def good(harm=None, *, connection=0, statement=0):
    """A script: a good server, but for ``harm(peer)`` in place of an answer from so many connections and statements on.

    Statements are counted from 0 without those that begin with SET; a negative one is the login.
    """

    def script(peer):
        hostile = harm is not None and peer.number >= connection
        if hostile and statement < 0:
            harm(peer)
            peer.wait()
            return
        peer.let_in()
        asked = 0
        while True:
            request = peer.hear()
            if request[0] == COM_QUIT:
                return
            sql = request[1:].decode() if request[0] == COM_QUERY else ""
            counts = bool(sql) and not sql.startswith("SET")
            if hostile and counts and asked >= statement:
                harm(peer)
                peer.wait()
                return
            asked += counts
            answer(peer, sql)

    return script


def _endless(peer):
    peer.say(b"\1", column(), EOF)
    while True:
        peer.say(*[lenenc(b"x" * 200)] * 64)


def _endless_columns(peer):
    peer.say(b"\xfe" + b"\xff" * 8)
    while True:
        peer.say(*[column()] * 64)


def _endless_results(peer):
    while True:
        peer.say(*[b"\0\0\0\x0a\0\0\0"] * 64)


def _numbered(peer):
    peer.sequence = (peer.sequence + 3) % 256
    peer.say(OK)


def _switch_for_ever(peer):
    peer.say(greeting())
    while True:
        peer.hear()
        peer.say(b"\xfemysql_native_password\0" + NONCE + b"\0")


def _steps_for_ever(peer):
    peer.say(greeting(b"caching_sha2_password"))
    peer.hear()
    while True:
        peer.say(b"\1\3")


NASTY = "\x1b[2Jred\u202e\u2066\u200f\u200b\u061c\x07\x9b31m"

# What may come in place of any packet.
BYTES = {
    "silence": lambda _: None,
    "a byte at a time": lambda peer: peer.drip(b"\xff\xff\x7f\0" + b"x" * 64),
    "closed at once": lambda peer: peer.stream.shutdown(socket.SHUT_RDWR),
    "closed amid a header": lambda peer: (peer.raw(b"\1\0"), peer.stream.shutdown(socket.SHUT_RDWR)),
    "closed amid a packet": lambda peer: (peer.raw(b"\x40\0\0\0\x0a8.0"), peer.stream.shutdown(socket.SHUT_RDWR)),
    "a huge length": lambda peer: peer.raw(b"\xff\xff\xff\0" + b"x" * 100_000),
    "an empty packet": lambda peer: peer.say(b""),
    "a number out of order": _numbered,
    "HTTP": lambda peer: peer.raw(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"),
    "zeros": lambda peer: peer.raw(bytes(4096)),
    "an error cut short": lambda peer: peer.say(b"\xff\x51"),
    "an error of 2 MB": lambda peer: peer.say(error(b"E" * 2_000_000)),
    "an error to obey": lambda peer: peer.say(error(NASTY.encode() * 3)),
    "an error that is no text": lambda peer: peer.say(error(b"\xff\xfe\x80caf\xe9")),
    "an OK of bad lengths": lambda peer: peer.say(b"\0\xfe\1\2\3\4\5\6\7"),
    "an unknown packet": lambda peer: peer.say(b"\x55\x55\x55"),
}
AS_GREETING = {
    "another protocol": lambda peer: peer.say(greeting(protocol=9)),
    "a server before 4.1": lambda peer: peer.say(greeting(offered=1)),
    "no version": lambda peer: peer.say(greeting(version=b"")),
    "a version to obey": lambda peer: peer.say(greeting(version=NASTY.encode())),
    "a plugin that is no text": lambda peer: (peer.say(greeting(b"\xff\xfe")), peer.hear(), peer.say(OK)),
    "half a greeting": lambda peer: peer.say(greeting()[:17]),
    "an unknown plugin": lambda peer: (
        peer.say(greeting()), peer.hear(), peer.say(b"\xfeauth_" + NASTY.encode() + b"\0" + NONCE + b"\0"),
    ),
    "plugin after plugin": _switch_for_ever,
    "step after step": _steps_for_ever,
    "no TLS though announced": lambda peer: (
        peer.say(greeting(offered=OFFERED | SSL)), peer.hear(), peer.raw(b"x" * 99),
    ),
    "TLS never spoken": lambda peer: (peer.say(greeting(offered=OFFERED | SSL)), peer.hear(), peer.hear()),
    "bytes in front of TLS": lambda peer: peer.say(greeting(offered=OFFERED | SSL), OK, OK),
}  # fmt: skip
AS_REPLY = {
    "2^64 columns": _endless_columns,
    "rows without end": _endless,
    "results without end": _endless_results,
    "a file asked for": lambda peer: peer.say(b"\xfb/etc/passwd"),
    "text that is none": lambda peer: peer.rows(1, (b"\xff\xfe",)),
    "a number that is none": lambda peer: peer.rows(1, (NASTY.encode(),), kind=LONGLONG),
    "a column cut short": lambda peer: peer.say(b"\1", b"\3def\0"),
    "a row cut short": lambda peer: peer.say(b"\1", column(), EOF, b"\x20abc", EOF),
    "columns that nobody asked for": lambda peer: peer.rows(9, [b"1"] * 9),
    "nothing but NULL": lambda peer: peer.rows(1, (None,)),
    "no rows": lambda peer: peer.rows(1),
    "OK without rows": lambda peer: peer.say(OK),
    "bytes behind the reply": lambda peer: (peer.rows(1, (b"1",)), peer.say(OK, OK)),
}
