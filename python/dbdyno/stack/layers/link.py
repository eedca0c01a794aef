"""The network to a server beside others: a relay on this host that keeps each byte for half a round trip."""

import select
import socket as socketlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

_PIECE_BYTES = 65536
_PIECES_MAX = 64  # that are passed on at once: a server sends each event by itself
_UNDERWAY_BYTES_MAX = 8 << 20  # of one direction; beyond it the sender has to wait, as on a real path
_SEND_BUFFER_BYTES = 65536  # so that what a slow receiver does not take stays on the way
_CONNECTIONS_MAX = 8


@dataclass
class _Pipe:
    """One direction of a connection."""

    reader: socketlib.socket
    writer: socketlib.socket
    underway: deque[tuple[float, bytes]] = field(default_factory=deque)  # when each piece arrives, ascending
    underway_bytes: int = 0
    is_ended: bool = False  # the sender has said all

    def take(self, now_s: float, delay_s: float) -> None:
        """Take what the sender has sent. Raises ``OSError``."""
        piece = self.reader.recv(_PIECE_BYTES)
        self.is_ended = not piece
        if piece:
            self.underway.append((now_s + delay_s, piece))
            self.underway_bytes += len(piece)

    def deliver(self, now_s: float) -> None:
        """Pass on what is due, as far as the receiver takes it. Raises ``OSError``."""
        due: list[bytes] = []
        while self.underway and self.underway[0][0] <= now_s and len(due) < _PIECES_MAX:
            due.append(self.underway.popleft()[1])
        content = b"".join(due)
        sent = 0
        try:
            sent = self.writer.send(content)
        finally:
            self.underway_bytes -= sent
            if sent < len(content):
                self.underway.appendleft((now_s, content[sent:]))

    @property
    def takes_more(self) -> bool:
        """Whether there is room on the way."""
        return not self.is_ended and self.underway_bytes < _UNDERWAY_BYTES_MAX

    @property
    def is_done(self) -> bool:
        """Whether all that was sent has arrived."""
        return self.is_ended and not self.underway


@dataclass(frozen=True)
class Door:
    """The address at which a link is entered, and the address under which the server sees a client of it."""

    host: str
    port: int
    seen_from: Callable[[str], str]  # the address of a client -> the one that the server sees it come from


class Link:
    """A relay to a server on this host; ``cut`` loses what is on the way. It ends with its process.

    Without a door it is entered at a free port of the server's address. Raises ``OSError`` where it can't be opened.
    """

    def __init__(self, host: str, port: int, round_trip_seconds: float, door: Door | None = None) -> None:
        self._server = (host, port)
        self._delay_s = round_trip_seconds / 2
        self._seen_from = door.seen_from if door else None
        self._door = socketlib.create_server((door.host, door.port) if door else (host, 0))
        self._pipes: list[_Pipe] = []
        self._woken, self._wake = socketlib.socketpair()
        self._is_over = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._relay, name="link", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """Where a client reaches the server through it."""
        return int(self._door.getsockname()[1])

    @property
    def connections(self) -> int:
        """How many are open."""
        with self._lock:
            return len(self._pipes) // 2

    def cut(self) -> None:
        """Lose all that is on the way, and let nothing pass any more."""
        self._is_over = True
        with self._lock:  # the thread is between two pieces
            for pipe in self._pipes:
                pipe.underway.clear()
                with suppress(OSError):
                    pipe.reader.shutdown(socketlib.SHUT_RDWR)
        self._wake.send(b".")

    def close(self) -> None:
        """End it."""
        with suppress(OSError):
            self.cut()
        self._thread.join()
        for end in (self._door, self._woken, self._wake, *(end for pipe in self._pipes for end in _ends(pipe))):
            end.close()

    def _relay(self) -> None:
        while not self._is_over:
            due = [pipe.underway[0][0] for pipe in self._pipes if pipe.underway]
            now_s = time.monotonic()
            readers = [pipe.reader for pipe in self._pipes if pipe.takes_more]
            writers = [pipe.writer for pipe in self._pipes if pipe.underway and pipe.underway[0][0] <= now_s]
            later = [at_s for at_s in due if at_s > now_s]
            ready, free, _ = select.select(
                [self._door, self._woken, *readers], writers, [], min(later) - now_s if later else None
            )
            with self._lock:
                if not self._is_over:
                    self._pass(ready, free)

    def _pass(self, ready: list[socketlib.socket], free: list[socketlib.socket]) -> None:
        """Take and deliver what can be now; a connection that is broken is broken at both ends."""
        if self._door in ready:
            self._open()
        for pipe in list(self._pipes):
            try:
                if pipe.reader in ready:
                    pipe.take(time.monotonic(), self._delay_s)
                if pipe.writer in free and pipe.underway:
                    pipe.deliver(time.monotonic())
                if pipe.is_done:
                    raise ConnectionResetError  # neither end of this protocol goes on when the other has ended
            except BlockingIOError:
                continue
            except OSError:
                self._break(pipe)

    def _open(self) -> None:
        client, address = self._door.accept()
        source = (self._seen_from(address[0]), 0) if self._seen_from else None
        if len(self._pipes) >= 2 * _CONNECTIONS_MAX:
            client.close()
            return
        try:
            server = socketlib.create_connection(self._server, timeout=1.0, source_address=source)
        except OSError:  # the server is gone
            client.close()
            return
        for end in (client, server):
            end.setsockopt(socketlib.IPPROTO_TCP, socketlib.TCP_NODELAY, 1)
            end.setsockopt(socketlib.SOL_SOCKET, socketlib.SO_SNDBUF, _SEND_BUFFER_BYTES)
            end.setblocking(False)  # noqa: FBT003  (the library's)
        self._pipes += [_Pipe(client, server), _Pipe(server, client)]

    def _break(self, broken: _Pipe) -> None:
        ends = set(_ends(broken))
        self._pipes = [pipe for pipe in self._pipes if not ends & set(_ends(pipe))]
        for end in ends:
            end.close()


def _ends(pipe: _Pipe) -> tuple[socketlib.socket, socketlib.socket]:
    return pipe.reader, pipe.writer


@contextmanager
def linked(host: str, port: int, round_trip_seconds: float, door: Door | None = None) -> Iterator[Link | None]:
    """A link to a server on this host; none where there is to be no delay. Raises ``OSError``."""
    if not round_trip_seconds:
        yield None
        return
    link = Link(host, port, round_trip_seconds, door)
    try:
        yield link
    finally:
        link.close()


def no_link() -> None:
    """Cut nothing: without a link, what a program of this host has sent to another is there."""
