"""What this machine keeps of hosts that it brought up: enough to bring down those that are in the file no more."""

import fcntl
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from dbdyno.errors import HostError, UserError
from dbdyno.hosts.inventory import HostSection, Inventory
from dbdyno.store.documents import json_object
from dbdyno.store.parts import write_synced
from dbdyno.system.files import read_regular
from dbdyno.system.state import make_state_folder

_RECORD_MAX_BYTES = 1024**2


@dataclass(frozen=True)
class Cluster:
    """The hosts of one name that were brought up and not brought down."""

    name: str
    address: str = ""  # of this machine, as the hosts reach it
    hosts: dict[str, dict[str, object]] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The folder of its record."""
        return cluster_folder(self.name)

    def sections(self, inventory: Inventory) -> dict[str, HostSection]:
        """The hosts of a file, and those that were brought up before and are not in it any more."""
        kept = {name: HostSection.model_validate(fields) for name, fields in self.hosts.items()}
        return {**kept, **inventory.hosts}

    def save(self) -> None:
        """Have it on disk, before anything is done by it. Raises ``HostError``."""
        path = self.folder / "cluster.json"
        try:
            write_synced(path, json.dumps(asdict(self)).encode())
        except OSError as error:
            raise HostError(f"{path}: {error.strerror}") from None

    def forget(self) -> None:
        """Nothing of it is left to bring down."""
        (self.folder / "cluster.json").unlink(missing_ok=True)


def read_cluster(name: str) -> Cluster | None:
    """The hosts of this name that were brought up. Raises ``HostError`` where their file is damaged."""
    path = cluster_folder(name) / "cluster.json"
    try:
        record = json_object(read_regular(path, _RECORD_MAX_BYTES))
        cluster = Cluster(str(record["name"]), str(record["address"]), dict(record["hosts"]))
        for fields in cluster.hosts.values():
            HostSection.model_validate(fields)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise HostError(f"{path} can't be read: {error}; remove it, then run dbdyno hosts up again") from None
    return cluster


@contextmanager
def only_one(name: str) -> Iterator[None]:
    """Be the only one that brings these hosts up or down. Raises ``UserError`` where another does."""

    def refuse() -> None:
        raise UserError(f"another dbdyno is bringing the hosts of {name} up or down; wait until it ends")

    with _locked(cluster_folder(name) / "lock", refuse):
        yield


@contextmanager
def kept_wheels(say: Callable[[str], None]) -> Iterator[Path]:
    """The folder of wheels, kept from one time to the next; nobody else makes or removes any meanwhile.

    All clusters share them. What one call has made another, as of a second installation of dbdyno, would remove.
    """
    folder = make_state_folder() / "hosts" / "wheels"
    waiting = "waiting until another dbdyno has installed itself on its hosts"
    with _locked(folder.with_name("wheels.lock"), lambda: say(waiting)):
        yield folder


@contextmanager
def _locked(path: Path, before_waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock of a file, which ends with this process; ``before_waiting`` is called if another one has it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            before_waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def cluster_folder(name: str) -> Path:
    """The folder of what this machine knows of the hosts of one name."""
    return make_state_folder() / "hosts" / "clusters" / name
