"""``hosts.toml``: which hosts there are, how they are reached, which were brought up; every mistake with its line."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, Field, PlainSerializer, StrictStr, ValidationError

from dbdyno.errors import HostError, UserError
from dbdyno.hosts.ssh_config import why_ssh_is_open_to_others
from dbdyno.model.similar import did_you_mean, nearest_word
from dbdyno.store.documents import json_object
from dbdyno.store.parts import write_synced
from dbdyno.study.document import FileSection, HostName, matching, read_document
from dbdyno.study.mistakes import Mistake, explain, line_of, mistakes_of, shown
from dbdyno.study.units import Duration
from dbdyno.system.files import read_regular, why_open_to_others
from dbdyno.system.locks import alone_with
from dbdyno.system.state import make_state_folder

Role = Literal["server", "client"]
VERSION = 1
SECTIONS = ("version", "cluster", "host")
HOSTS_MAX = 100

Address = Annotated[
    StrictStr, matching(r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}", "must be an IPv4 address or the name of a machine")
]
Target = Annotated[
    StrictStr,
    # No part begins with "-", which ssh, or what it runs, would take for an option.
    matching(
        r"([A-Za-z0-9_][A-Za-z0-9_.-]{0,63}@)?[A-Za-z0-9_][A-Za-z0-9_.:-]{0,252}",
        "must be a target of ssh, such as root@db1.lab",
    ),
]
Absolute = Annotated[StrictStr, matching(r"/[^\x00-\x1f]{0,199}", "must be a path from the root, such as /srv/dbdyno")]
Program = Annotated[StrictStr, matching(r"[A-Za-z0-9/][A-Za-z0-9/._+-]*", "must be a program or its path")]
Boot = Annotated[
    StrictStr,
    matching(
        r"grub|kexec|[^\x00-\x1f]*/[^\x00-\x1f]+",
        'must be "grub", "kexec", or the path of a program, with a / in it, such as "./boot-by-ipmi"',
    ),
]
FilePath = Annotated[StrictStr, matching(r"[^\x00-\x1f]{1,200}", "must be the path of a file")]


class InventoryCluster(FileSection):
    """``[cluster]``: what all hosts have in common."""

    name: HostName = "lab"
    """By which this machine keeps what it knows of the cluster."""
    address: Address | None = None
    """The address of this machine, as the hosts reach it; the origin of the ssh connection if not given."""
    ssh_config: FilePath | None = None
    """A configuration of ssh in the place of yours; a path from the folder of the file."""


class InventoryHost(FileSection):
    """``[host.NAME]``: one host."""

    ssh: Target
    """Whom ssh is to reach: a name of its configuration, or user@machine."""
    address: Address | None = None
    """As the other hosts reach it; where ssh arrives if not given."""
    roles: Annotated[list[Role], Field(min_length=1)]
    """What it is for: server, client, or both."""
    python: Program = "python3"
    """Its Python, of the same minor version as the one here."""
    boot: Boot = "grub"
    """How it is restarted with another kernel: `grub` (grub-reboot), `kexec` (systemctl kexec), or a program of
    yours on this machine, by its path from the folder of the file.
    """
    boot_within: Annotated[Duration, Field(gt=0, le=6 * 3600), PlainSerializer(lambda seconds: f"{seconds:g}s")] = 900.0
    """In what time it is back then; else it counts as lost."""
    folder: Absolute | None = None
    """The folder for dbdyno's own things there; in the user's state folder if not given."""


@dataclass(frozen=True)
class Inventory:
    """The hosts of a file, in its order."""

    path: Path
    cluster: InventoryCluster
    hosts: dict[str, InventoryHost]

    def label(self, host: str) -> str:
        """What stands for a host of this very cluster: it may be in two."""
        return f"{self.cluster.name}.{host}"  # neither has a dot

    def boot_program(self, host: InventoryHost) -> Path | None:
        """The program here that restarts a host; none where it is the host itself that does."""
        return self.path.resolve().parent / host.boot if "/" in host.boot else None

    @property
    def ssh_config(self) -> Path | None:
        """The configuration of ssh that the file names."""
        config = self.cluster.ssh_config
        return self.path.resolve().parent / config if config else None


Model = TypeVar("Model", bound=BaseModel)


def read_inventory(path: Path) -> Inventory:
    """Read and check a file of hosts. Raises ``UserError`` that names file, line and field of every mistake."""
    _refuse_open(path)
    _, raw, lines = read_document(path)
    mistakes: list[Mistake] = []
    unknown = [name for name in raw if name not in SECTIONS]
    meant = {nearest_word(name, SECTIONS) for name in unknown} - raw.keys()
    if raw.get("version") != VERSION:
        version_text = f"is {shown(raw['version'])}" if "version" in raw else "is missing"
        mistakes.append(Mistake(("version",), f"{version_text}; this dbdyno reads version = {VERSION}"))
    for name in unknown:
        text = f"is unknown here; known are {', '.join(SECTIONS)}{did_you_mean(name, SECTIONS)}"
        mistakes.append(Mistake((name,), text))
    cluster = _read(InventoryCluster, raw.get("cluster", {}), ("cluster",), mistakes)
    hosts = _hosts(raw.get("host", {}), mistakes)
    mistakes += _no_config(path, cluster.ssh_config) if cluster and cluster.ssh_config else []
    mistakes += _no_boot_programs(Inventory(path, cluster, hosts)) if cluster else []
    mistakes = [mistake for mistake in mistakes if mistake.path[0] not in meant]  # is there, by another name
    if mistakes or cluster is None:
        in_order = sorted(mistakes, key=lambda mistake: line_of(lines, mistake) or 0)
        raise UserError("\n".join(dict.fromkeys(explain(path, lines, mistake) for mistake in in_order)))
    return Inventory(path, cluster, hosts)


def _no_config(path: Path, config_name: str) -> list[Mistake]:
    """What is wrong with the configuration of ssh that is named."""
    config = path.resolve().parent / config_name
    try:
        why = why_ssh_is_open_to_others(config) if config.is_file() else f"there is no file {config}"
    except OSError as error:
        why = f"{config}: {error.strerror}"
    return [Mistake(("cluster", "ssh_config"), f"is {shown(config_name)}; {why}")] if why else []


def _refuse_open(path: Path) -> None:
    """Raise ``UserError`` where another user could change the file: it says what runs here and on every host."""
    try:
        why = why_open_to_others(path)
    except OSError:
        return  # which reading it says better
    if why:
        raise UserError(f"{path}: it decides which programs run here and on every host, but {why}")


def _read(model: type[Model], table: object, where: tuple[str, ...], mistakes: list[Mistake]) -> Model | None:
    """A section, or the mistakes in it."""
    if not isinstance(table, dict):
        mistakes.append(Mistake(where, f"is {shown(table)} but must be a section"))
        return None
    try:
        return model.model_validate(table)
    except ValidationError as error:
        mistakes += mistakes_of(error, model, where)
        return None


def _hosts(table: Any, mistakes: list[Mistake]) -> dict[str, InventoryHost]:  # noqa: ANN401  (what TOML has there)
    if not isinstance(table, dict) or not table:
        mistakes.append(
            Mistake(("host",), 'names no host; give each a section of its own, such as [host.db1] ssh = "db1"')
        )
        return {}
    if len(table) > HOSTS_MAX:
        mistakes.append(Mistake(("host",), f"has {len(table)} hosts; at most {HOSTS_MAX} are read"))
    hosts = {}
    for name, fields in table.items():
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]{0,39}", name):
            mistakes.append(Mistake(("host", name), "must have at most 40 letters, digits and hyphens"))
        section = _read(InventoryHost, fields, ("host", name), mistakes)
        if section is not None:
            hosts[name] = section
            mistakes += _broken(name, section)
    mistakes += _twice(hosts)
    return hosts


def _broken(name: str, host: InventoryHost) -> list[Mistake]:
    """What a host's fields can't be together."""
    twice = len(set(host.roles)) < len(host.roles)
    return [Mistake(("host", name, "roles"), "names a role twice")] if twice else []


def _no_boot_programs(inventory: Inventory) -> Iterator[Mistake]:
    """What is wrong with the programs that restart hosts: they run here, as who types."""
    for name, host in inventory.hosts.items():
        program = inventory.boot_program(host)
        if program is None:
            continue
        try:
            why = why_open_to_others(program) if program.is_file() else f"there is no file {program}"
        except OSError as error:
            why = f"{program}: {error.strerror}"
        why = why or ("" if os.access(program, os.X_OK) else f"{program} can't be run: chmod +x")
        if why:
            yield Mistake(("host", name, "boot"), f"is {shown(host.boot)}; {why}")


def _twice(hosts: dict[str, InventoryHost]) -> list[Mistake]:
    """Hosts that are one and the same."""
    mistakes = []
    for key in ("ssh", "address"):
        first: dict[str, str] = {}
        for name, host in hosts.items():
            value = getattr(host, key)
            if value is not None and first.setdefault(value, name) != name:
                mistakes.append(Mistake(("host", name, key), f"is {shown(value)}, as of {first[value]}"))
    return mistakes


# Hosts of a file that were brought up: enough is kept of them to bring down those that are in it no more.


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
