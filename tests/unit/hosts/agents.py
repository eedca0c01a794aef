"""Agents that are children of ours, each with a state folder of its own."""

import os
import signal
import sys
from contextlib import contextmanager, suppress

from dbdyno.hosts.answers import Begun, Guarding
from dbdyno.hosts.carried import Guarded
from dbdyno.hosts.channel import Channel
from dbdyno.hosts.kept import Kept


@contextmanager
def kept(folder, *names):
    """The connections to agents of these names, and the agents' numbers."""
    channels = {}
    for name in names:
        state = {"DBDYNO_STATE_DIR": str(folder / name), "SSH_CONNECTION": ""}
        channels[name] = Channel(name, [sys.executable, "-m", "dbdyno.hosts.agent"], state)
    pids = {name: channel.answer(Begun).agent for name, channel in channels.items()}
    lines = Kept(channels)
    try:
        yield lines, pids
    finally:
        for pid in pids.values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        lines.close()


def guarded(lines, host):
    """How work on a host is known from now on."""
    found = lines.ask(host, {"do": "guard"}, Guarding)
    return Guarded(found.token, found.folder)
