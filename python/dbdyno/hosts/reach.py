"""The agents of hosts: reached by ssh, or here; put there first where they are to be."""

import json
import platform
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic
from typing import TypeVar

from dbdyno.errors import DbdynoError, HostError
from dbdyno.hosts import installer
from dbdyno.hosts.answers import Begun, Echoed, Installed, Lacking, PutBack
from dbdyno.hosts.bundle import Bundle
from dbdyno.hosts.channel import ANSWER_SECONDS, Channel, EndedError, login_command, ssh_command
from dbdyno.hosts.clock import CLOCKS, ECHOES_MIN, Offset, Stamps, answered, asked, offset_of
from dbdyno.hosts.cluster import Cluster
from dbdyno.hosts.inventory import HostSection, Inventory

INSTALL_SECONDS = 600.0
_ECHO_SECONDS = 30.0
_AT_ONCE = 16  # hosts that are asked at once
_BOOT = "import sys; exec(sys.stdin.buffer.read(int(sys.argv[1])))"

T = TypeVar("T")


class NotInstalledError(HostError):
    """A host is reached, and nothing of dbdyno's is there."""


def reach(inventory: Inventory, name: str, host: HostSection, bundle: Bundle | None) -> Channel:
    """The agent of a host, after the packages of ``bundle`` were put there; without one, as it is there.

    Raises ``HostError``, or ``NotInstalledError``.
    """
    source = Path(installer.__file__).read_bytes()
    assert host.ssh is not None  # noqa: S101  (the inventory's rules: who calls this has a host with ssh)
    command = ssh_command(host.ssh, inventory.ssh_config, [host.python, "-c", _BOOT, str(len(source))])
    channel = Channel(name, command, login=login_command(host.ssh, inventory.ssh_config))
    try:
        channel.send(source)
        _install(channel, inventory.label(name), host, bundle)
    except EndedError as error:
        channel.close()
        wanted = "{}.{}".format(*sys.version_info[:2])
        why = f"; is {host.python} (python in the hosts file) a Python {wanted}?" if not error.said else ""
        raise HostError(f"{error}{why}") from None
    except BaseException:
        channel.close()
        raise
    return channel


def _install(channel: Channel, label: str, host: HostSection, bundle: Bundle | None) -> None:
    """Have the packages taken in, and wait for the agent."""
    packages = [one.asked for one in bundle.packages] if bundle else None
    question = {
        "name": label,
        "folder": host.folder,
        "packages": packages,
        "environment": bundle.environment if bundle else "",
        "python": list(sys.version_info[:2]),
        "machine": platform.machine(),
    }
    if bundle:
        wanted = set(channel.ask(question, Lacking, INSTALL_SECONDS).lacking)
        for package in bundle.packages:
            if package.sha256 in wanted:
                channel.send(package.path.read_bytes(), INSTALL_SECONDS)
        found = channel.answer(Installed, INSTALL_SECONDS)
    else:
        found = channel.ask(question, Installed)
    if not found.installed:
        raise NotInstalledError(f"{channel.name}: dbdyno is not there; dbdyno hosts up puts it there")
    channel.answer(Begun)


def here(cluster: Cluster) -> Channel:
    """The agent of this machine, for its part in a cluster."""
    state = cluster.folder / "state"
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    channel = Channel(
        "this machine",
        [sys.executable, "-m", "dbdyno.hosts.agent"],
        {"DBDYNO_STATE_DIR": str(state), "SSH_CONNECTION": ""},
    )
    channel.answer(Begun)
    return channel


def offsets(channel: Channel, count: int = ECHOES_MIN) -> dict[str, Offset]:
    """How far the clocks at the other end are from ours, by their names; so many echoes each way.

    Raises ``HostError``, also where its echoes are none.
    """
    channel.send(json.dumps({"do": "echoes", "count": count}).encode() + b"\n")
    deadline = monotonic() + _ECHO_SECONDS

    def read() -> bytes:
        return channel.line(deadline)

    try:
        read()  # it is ready
        from_here = asked(read, channel.send, count)
        answered(read, channel.send, count)
        from_there = [Stamps.of(one) for one in channel.answer(Echoed).echoes]
        found = {}
        for clock in CLOCKS:
            echoes = [one.echo(clock, asked_here=True) for one in from_here]
            found[clock] = offset_of(echoes + [one.echo(clock, asked_here=False) for one in from_there])
    except ValueError as error:
        raise HostError(f"{channel.name}: its clocks can't be read: {error}") from None
    if len(from_there) != count:
        raise HostError(f"{channel.name}: {len(from_there)} echoes came instead of {count}")
    return found


def on_each(hosts: Mapping[str, HostSection], do: Callable[[str, HostSection], T]) -> dict[str, T | DbdynoError]:
    """Do something for each host, many at once; what came of it, or why nothing did."""

    def tried(name: str) -> T | DbdynoError:
        try:
            return do(name, hosts[name])
        except DbdynoError as error:
            return error

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip(hosts, pool.map(tried, hosts), strict=True))


def stopped(channel: Channel) -> PutBack:
    """Have a host put back; what was undone, and whether all was."""
    return channel.ask({"do": "stop"}, PutBack, 2 * ANSWER_SECONDS)
