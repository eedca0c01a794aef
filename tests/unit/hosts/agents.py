"""Agents that are children of ours, each with a state folder of its own."""

import os
import signal
import sys
from contextlib import contextmanager, suppress

from dbdyno.hosts.connections import Connections, guard_host
from dbdyno.hosts.ssh import Channel


def agent(folder, name):
    """The connection to an agent that has begun."""
    state = {"DBDYNO_STATE_DIR": str(folder / name), "SSH_CONNECTION": ""}
    return Channel(name, [sys.executable, "-m", "dbdyno.hosts.agent"], state).begin_frames()


@contextmanager
def kept(folder, *names):
    """The connections to agents of these names, and the agents' numbers."""
    channels = {name: agent(folder, name) for name in names}
    pids = {name: channel._process.pid for name, channel in channels.items()}
    lines = Connections(channels)
    try:
        yield lines, pids
    finally:
        for pid in pids.values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        lines.close()


def guarded(lines, host):
    """How work on a host is known from now on."""
    return guard_host(lines.channel(host))
