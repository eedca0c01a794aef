"""``HostSide`` as an actor of Ray that costs next to nothing while nothing is asked of it, as in a measured window.

Ray has the main thread of an actor call Python 100 times a second, whether any signal has come: .5 to .8 % of a core.
Questions are answered by other threads; the main one only takes them in. So it sleeps, in a handler of such a signal,
the longer the more time has passed since a question. Nothing but Python's own library: it may be sent anywhere.
"""

import functools
import inspect
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

from dbdyno.hosts.host_side import HostSide

SLEEP_MAX_SECONDS = 1.0  # by which an answer comes later at most
_SLEEP_SHARE = 0.1  # of the time since something was asked
_SLEEP_MIN_SECONDS = 0.1
_AWAKE_SECONDS = 0.01  # between two sleeps: what was asked meanwhile is taken in


class RaySide(HostSide):
    """Made in the main thread, as Ray makes actors."""

    def __init__(self) -> None:
        super().__init__()
        self._asked = time.monotonic()
        self._sleep_seconds = 0.0
        signal.signal(signal.SIGUSR2, lambda *_: time.sleep(self._sleep_seconds))
        main = threading.get_ident()
        threading.Thread(target=self._have_sleep, args=(main,), name="sleep", daemon=True).start()

    def _have_sleep(self, thread: int) -> None:
        while True:
            share = _SLEEP_SHARE * (time.monotonic() - self._asked)
            self._sleep_seconds = min(share, SLEEP_MAX_SECONDS)
            if share >= _SLEEP_MIN_SECONDS:
                signal.pthread_kill(thread, signal.SIGUSR2)
            time.sleep(max(self._sleep_seconds, _SLEEP_MIN_SECONDS) + _AWAKE_SECONDS)


def _noticed(method: Callable[..., Any]) -> Callable[..., Any]:
    """Note when a question came, and when it was answered."""

    @functools.wraps(method)
    def done(self: RaySide, *given: Any) -> Any:  # noqa: ANN401  (as the method)
        self._asked = time.monotonic()
        try:
            return method(self, *given)
        finally:
            self._asked = time.monotonic()

    return done


for _name, _method in inspect.getmembers(HostSide, inspect.isfunction):
    if not _name.startswith("_"):
        setattr(RaySide, _name, _noticed(_method))
