"""What makes a host one to work on: it is reached, has this very dbdyno, is put back, and runs a node of Ray."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from dbdyno.errors import HostError
from dbdyno.hosts.answers import Facts, Guarding, Watched
from dbdyno.hosts.bundle import our_digest
from dbdyno.hosts.carried import Guarded
from dbdyno.hosts.channel import Channel
from dbdyno.hosts.inventory import HostSection, Inventory
from dbdyno.hosts.reach import reach

T = TypeVar("T")


class Ask(Protocol):
    """Ask one host, as ``Channel.ask`` does."""

    def __call__(self, question: Mapping[str, Any], kind: type[T], /) -> T:
        """Return its answer, of that kind. Raises ``HostError``."""


@dataclass(frozen=True)
class Reached:
    """A host with this very dbdyno on it."""

    channel: Channel
    address: str  # at which ssh arrives there
    machine: str  # see ``facts``


def reached(inventory: Inventory, name: str, host: HostSection) -> Reached:
    """The agent of a host that has ssh. Raises ``HostError``, also where the dbdyno there is not this one."""
    channel = reach(inventory, name, host, None)
    try:
        return _as_it_is(channel, host, inventory.path)
    except BaseException:
        channel.close()
        raise


def _as_it_is(channel: Channel, host: HostSection, inventory: Path) -> Reached:
    facts = channel.ask({"do": "facts", "ray_folder": host.ray_folder}, Facts)
    if facts.digest != our_digest():
        raise HostError(f"{channel.name}: another dbdyno is there; dbdyno hosts up {inventory} puts this one there")
    return Reached(channel, facts.ssh_to, facts.machine)


def held(ask: Ask) -> tuple[Guarded, str]:
    """Have a host watch its Ray, and be put back once its connection ends; what its work is known by, Ray's folder.

    Raises ``HostError``.
    """
    watched, guarding = ask({"do": "watch"}, Watched), ask({"do": "guard"}, Guarding)
    return Guarded(guarding.token, guarding.folder), watched.ray.folder
