"""How the agent of a host is reached: ssh starts Python there, which takes in what it lacks and becomes the agent."""

import platform
import sys
from dataclasses import dataclass
from pathlib import Path

from dbdyno.errors import HostError
from dbdyno.hosts import installer
from dbdyno.hosts.bundle import Bundle, our_digest
from dbdyno.hosts.contract import NotInstalledError
from dbdyno.hosts.frames import Facts, Installed, Lacking
from dbdyno.hosts.inventory import HostSection, Inventory
from dbdyno.hosts.ssh import Channel, EndedError, login_command, ssh_command

_INSTALL_SECONDS = 600.0
_BOOT = "import sys; exec(sys.stdin.buffer.read(int(sys.argv[1])))"


def reach(inventory: Inventory, name: str, host: HostSection, wheels: Bundle | None) -> Channel:
    """The agent of a host, after these packages were put there; without any, as it is there.

    Raises ``HostError``, or ``NotInstalledError``.
    """
    source = Path(installer.__file__).read_bytes()
    command = ssh_command(host.ssh, inventory.ssh_config, [host.python, "-c", _BOOT, str(len(source))])
    channel = Channel(name, command, login=login_command(host.ssh, inventory.ssh_config))
    try:
        channel.send(source)
        _install(channel, inventory.label(name), host, wheels)
        return channel.begin_frames()
    except EndedError as error:
        channel.close()
        wanted = "{}.{}".format(*sys.version_info[:2])
        why = f"; is {host.python} (python in the hosts file) a Python {wanted}?" if not error.is_explained else ""
        raise HostError(f"{error}{why}") from None
    except BaseException:
        channel.close()
        raise


def _install(channel: Channel, label: str, host: HostSection, wheels: Bundle | None) -> None:
    """Have the packages taken in, and the agent begun."""
    question = {
        "name": label,
        "folder": host.folder,
        "packages": [package.description for package in wheels.packages] if wheels else None,
        "environment": wheels.environment if wheels else "",
        "python": list(sys.version_info[:2]),
        "machine": platform.machine(),
    }
    if wheels:
        wanted = set(channel.ask_in_lines(question, Lacking, _INSTALL_SECONDS).lacking)
        for package in wheels.packages:
            if package.sha256 in wanted:
                channel.send_file(package.path, _INSTALL_SECONDS)
        installation = channel.answer_in_lines(Installed, _INSTALL_SECONDS)
    else:
        installation = channel.ask_in_lines(question, Installed)
    if not installation.installed:
        raise NotInstalledError(f"{channel.name}: dbdyno is not installed there; run dbdyno hosts up")


@dataclass(frozen=True)
class ReadyHost:
    """A host with this very dbdyno on it."""

    channel: Channel
    address: str  # at which ssh arrives there
    machine: str  # see ``facts``


def reach_ready(inventory: Inventory, name: str, host: HostSection) -> ReadyHost:
    """The agent of a host. Raises ``HostError``, also where the dbdyno there is not this one."""
    channel = reach(inventory, name, host, None)
    try:
        facts = channel.ask({"do": "facts"}, Facts)
        if facts.digest != our_digest():
            up = f"dbdyno hosts up {inventory.path}"
            raise HostError(f"{name}: another dbdyno is there; run {up}")  # noqa: TRY301  (closed below)
    except BaseException:
        channel.close()
        raise
    return ReadyHost(channel, facts.ssh_to, facts.machine)
