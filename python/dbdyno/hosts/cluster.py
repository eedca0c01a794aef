"""What this machine keeps of hosts that it brought up: enough to bring down those that are in the file no more."""

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from dbdyno.errors import HostError
from dbdyno.hosts.inventory import Inventory, InventoryHost
from dbdyno.store.documents import json_object
from dbdyno.store.parts import write_synced
from dbdyno.system.files import read_regular
from dbdyno.system.locks import alone_with
from dbdyno.system.state import make_state_folder

_RECORD_MAX_BYTES = 1024**2


@dataclass(frozen=True)
class HostCluster:
    """The hosts of one name that were brought up and not brought down; ``is_up`` where a record of them is there."""

    name: str
    hosts: Mapping[str, InventoryHost] = field(default_factory=dict)
    is_up: bool = False

    @property
    def folder(self) -> Path:
        """The folder of what this machine knows of them."""
        return cluster_folder(self.name)

    def sections(self, inventory: Inventory) -> dict[str, InventoryHost]:
        """The hosts of a file, and those that were brought up before and are not in it any more."""
        return {**self.hosts, **inventory.hosts}

    def keep(self, hosts: Mapping[str, InventoryHost]) -> None:
        """Have these on disk, before anything is done to them. Raises ``HostError``."""
        path = self.folder / "cluster.json"
        record = {"name": self.name, "hosts": {name: host.model_dump() for name, host in hosts.items()}}
        try:
            write_synced(path, json.dumps(record).encode())
        except OSError as error:
            raise HostError(f"{path}: {error.strerror}") from None

    def forget(self) -> None:
        """Nothing of it is left to bring down."""
        (self.folder / "cluster.json").unlink(missing_ok=True)

    def alone(self) -> AbstractContextManager[None]:
        """Be the only one that brings these hosts up or down. Raises ``HostError`` where another does."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return alone_with(self.folder / "lock", f"bringing the hosts of {self.name} up or down")


def read_cluster(name: str) -> HostCluster:
    """The hosts of this name that were brought up. Raises ``HostError`` where their file is damaged."""
    path = cluster_folder(name) / "cluster.json"
    try:
        hosts = dict(json_object(read_regular(path, _RECORD_MAX_BYTES))["hosts"])
        return HostCluster(
            name, {host: InventoryHost.model_validate(fields) for host, fields in hosts.items()}, is_up=True
        )
    except FileNotFoundError:
        return HostCluster(name)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise HostError(f"{path} can't be read: {error}; remove it, then run dbdyno hosts up again") from None


def cluster_folder(name: str) -> Path:
    """The folder of what this machine knows of the hosts of one name."""
    return make_state_folder() / "hosts" / "clusters" / name
