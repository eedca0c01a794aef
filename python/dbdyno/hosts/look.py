"""``dbdyno hosts status``: what there is to know of each host, asked of it now. Sets no clock, starts nothing."""

import socket
from dataclasses import asdict, dataclass, field
from typing import Any

from dbdyno.errors import HostError
from dbdyno.hosts import cluster as clusters
from dbdyno.hosts.answers import Facts
from dbdyno.hosts.bundle import our_digest
from dbdyno.hosts.clock import Offset
from dbdyno.hosts.cluster import Cluster
from dbdyno.hosts.inventory import HostSection, Inventory
from dbdyno.hosts.reach import offsets, on_each, reach
from dbdyno.hosts.with_ray import RayHosts, needed

_HEAD_SECONDS = 3.0
_NOWHERE = "no folder"


@dataclass(frozen=True)
class Status:
    """One host."""

    name: str
    roles: tuple[str, ...]
    reachable: bool
    problem: str = ""
    same: bool | None = None  # whether the dbdyno there is this very one
    ray: bool = False  # whether it is seen in the cluster
    ray_processes: int = 0
    clocks: dict[str, Offset] = field(default_factory=dict)  # by the clock's name, there less here
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def ready(self) -> bool:
        """Whether work can be given to it."""
        return self.reachable and self.ray and self.same is not False and not self.problem


def look(inventory: Inventory) -> tuple[list[Status], str]:
    """Each host of the file, and what is wrong with the cluster as a whole, or nothing. Raises ``UserError``."""
    needed()
    cluster = clusters.known(inventory.cluster.name)
    asked = {name: host for name, host in inventory.hosts.items() if host.ssh}
    ours = our_digest()

    def do(name: str, host: HostSection) -> Status:
        with reach(inventory, name, host, None) as channel:
            facts = channel.ask({"do": "facts", "ray_folder": host.ray_folder}, Facts)
            clocks = offsets(channel)
        ray = facts.ray
        folders[name] = ray.folder if ray and ray.raylet else _NOWHERE  # though Ray's head may still believe in it
        processes = ray.processes if ray else 0
        same = facts.digest == ours
        its = {field: value for field, value in asdict(facts).items() if field not in {"ray", "tls"}}
        return Status(name, tuple(host.roles), True, "", same, False, processes, clocks, its)  # noqa: FBT003  (by order)

    folders: dict[str, str] = {}
    answers = on_each(asked, do)
    seen, problem = _seen(cluster, inventory, folders)
    found = []
    for name, host in inventory.hosts.items():
        answer = answers.get(name)
        if not isinstance(answer, Status):
            reached = answer is None or type(answer) is not HostError  # what is not installed was reached all the same
            answer = Status(name, tuple(host.roles), reached, str(answer or ""))
        found.append(_with_ray(answer, ray=name in seen))
    return found, problem


def _with_ray(status: Status, *, ray: bool) -> Status:
    return Status(**{**status.__dict__, "ray": ray})


def _seen(cluster: Cluster | None, inventory: Inventory, folders: dict[str, str]) -> tuple[frozenset[str], str]:
    """The hosts that are in the cluster, and why none can be."""
    if cluster is None or not cluster.gcs:
        return frozenset(), "the cluster is not up; dbdyno hosts up brings it up"
    host, _, port = cluster.gcs.rpartition(":")
    try:
        socket.create_connection((host, int(port)), _HEAD_SECONDS).close()
        addresses = {name: host.address or "" for name, host in inventory.hosts.items()}
        with RayHosts(cluster, addresses, folders) as hosts:
            return hosts.alive(), ""
    except OSError as error:
        return frozenset(), f"nothing answers at {cluster.gcs} ({error.strerror or error}); dbdyno hosts down, then up"
    except HostError as error:
        return frozenset(), str(error)
