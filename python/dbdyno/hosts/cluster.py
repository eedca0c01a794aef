"""What this machine keeps of a cluster that it brought up: enough to end it, and to go on where ``up`` was killed."""

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from dbdyno.errors import HostError, UserError
from dbdyno.hosts.inventory import HostSection, Inventory
from dbdyno.store.synced import sync
from dbdyno.system.state import make_state_folder, new_token


@dataclass(frozen=True)
class Cluster:
    """One bringing-up of an inventory. Its token is a secret: the file that it is in is the user's alone."""

    name: str
    identity: str
    gcs: str = ""  # address and port that Ray is joined at; empty until the first host has said how it reaches us
    address: str = ""  # of this machine
    joined: bool = False  # whether it is another's cluster
    token: str = ""  # none in a cluster of another's that has none
    tls: bool = False  # whether it was brought up with Ray's TLS
    hosts: dict[str, dict[str, object]] = field(default_factory=dict)  # all that may have been started

    @property
    def folder(self) -> Path:
        """Where it is kept."""
        return _folder(self.name)

    def host(self, name: str) -> HostSection:
        """A host as it was when it was brought up, though the file may have changed."""
        return HostSection.model_validate(self.hosts[name])

    def with_hosts(self, inventory: Inventory) -> dict[str, dict[str, object]]:
        """The hosts of a file, and those that were brought up before and are not in it any more."""
        return {**self.hosts, **{name: host.model_dump() for name, host in inventory.hosts.items()}}

    def save(self) -> None:
        """Have it on disk, before anything is started by it. Raises ``HostError``."""
        path = self.folder / "cluster.json"
        try:
            handle = os.open(path.with_suffix(".part"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(asdict(self), file)
                file.flush()
                os.fsync(file.fileno())
            path.with_suffix(".part").replace(path)
            sync(self.folder)
        except OSError as error:
            raise HostError(f"{path}: {error.strerror}") from None

    def forget(self) -> None:
        """Nothing of it is left to end."""
        (self.folder / "cluster.json").unlink(missing_ok=True)


def known(name: str) -> Cluster | None:
    """The cluster of this name that was brought up and not ended. Raises ``HostError`` where its file is damaged."""
    path = _folder(name) / "cluster.json"
    try:
        return Cluster(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise HostError(f"{path} can't be read: {error}; end Ray on each host by hand, then remove it") from None


def new(name: str) -> Cluster:
    """A cluster that is to be brought up."""
    return Cluster(name, new_token())


@contextmanager
def only_one(name: str) -> Iterator[None]:
    """Be the only one that brings this cluster up or down. Raises ``UserError`` where another does."""
    folder = _folder(name)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"another dbdyno brings the cluster {name} up or down; wait for it to end") from None
        yield
    finally:
        os.close(handle)


@contextmanager
def kept_wheels(say: Callable[[str], None]) -> Iterator[Path]:
    """Where wheels are kept from one time to the next; nobody else makes or removes any meanwhile.

    All clusters share them. What one call has made another, as of a second installation of dbdyno, would remove.
    """
    folder = make_state_folder() / "hosts" / "wheels"
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle = os.open(folder.parent / "wheels.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another dbdyno that puts its wheels on hosts")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield folder
    finally:
        os.close(handle)


def _folder(name: str) -> Path:
    return make_state_folder() / "hosts" / "clusters" / name
