"""``dbdyno hosts status``: what there is to know of each host, asked of it now. Sets no clock, starts nothing."""

import os
import platform
import shutil
import socket
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from dbdyno.errors import HostError
from dbdyno.host.processor import clock_source
from dbdyno.host.read import UNKNOWN
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


# What there is to know of this host before a study is spread over it. Reads only; asks no password of anyone.


_PATIENCE_SECONDS = 5.0


def facts(folder: Path, ray_folder: Path) -> dict[str, Any]:
    """Every fact, of plain types; bytes where a name says so, ``"unknown"`` where one can't be known."""
    memory = psutil.virtual_memory()
    return {
        "version": metadata.version("dbdyno"),
        "digest": our_digest(),
        "python": platform.python_version(),
        "machine_name": platform.node(),
        "machine": this_machine(),
        "kernel": platform.release(),
        "cores": os.cpu_count() or UNKNOWN,
        "memory_bytes": memory.total,
        "memory_free_bytes": memory.available,
        "disk_free_bytes": shutil.disk_usage(folder).free,
        "ray_disk_free_bytes": shutil.disk_usage(ray_folder).free if ray_folder.is_dir() else UNKNOWN,
        "root": os.geteuid() == 0,
        "clock_source": clock_source(),
        "ntp": _ntp(),
        "environment": str(Path(sys.executable).parent.parent),
    }


def this_machine() -> str:
    """What no other machine says of itself, from one start to the next; nor does one with a network of its own here."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot} {Path('/proc/self/ns/net').readlink()}"


def _silent(*argv: str) -> str | None:
    """What a program prints; ``None`` where it is not there, fails, or takes too long."""
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE_SECONDS,
            check=True,
            encoding="utf-8",
            errors="replace",
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def _ntp() -> dict[str, str] | str:
    """What chrony says of its own state (``chronyc tracking``), by its own names."""
    said = _silent("chronyc", "-n", "tracking")
    if said is None:
        return UNKNOWN
    pairs = (line.partition(":") for line in said.splitlines())
    return {name.strip(): value.strip() for name, colon, value in pairs if colon}
