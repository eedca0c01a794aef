"""``hosts.toml``: which hosts there are, how they are reached, what each is for. Every mistake has its line."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, Field, StrictInt, StrictStr, ValidationError

from dbdyno.errors import UserError
from dbdyno.hosts.ssh_files import why_ssh_is_open_to_others
from dbdyno.study.document import read_document
from dbdyno.study.mistakes import Mistake, did_you_mean, explain, line_of, mistakes_of, shown
from dbdyno.study.section import HostName, Section, matching
from dbdyno.study.units import Size
from dbdyno.system.files import why_open_to_others

Role = Literal["server", "client"]
VERSION = 1
SECTIONS = ("version", "cluster", "host")
HOSTS_MAX = 100
PORTS = 200  # that a cluster uses, from its first port on
_RAY_FOLDER_MAX = 18  # characters: Ray's sockets lie below it, and the name of one has 107 at most (unix(7))
_OBJECT_STORE_MIN_BYTES = 80_000_000  # Ray refuses less

Address = Annotated[
    StrictStr, matching(r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}", "must be an IPv4 address or the name of a machine")
]
Target = Annotated[
    StrictStr,
    matching(r"[A-Za-z0-9_][A-Za-z0-9_.@:-]{0,252}", "must be a machine as ssh takes it, such as root@db1.lab"),
]
Absolute = Annotated[StrictStr, matching(r"/[^\x00-\x1f]{0,199}", "must be a path from the root, such as /srv/dbdyno")]
RayFolder = Annotated[
    StrictStr,
    matching(rf"/[^\x00-\x1f]{{1,{_RAY_FOLDER_MAX - 1}}}", f"must be a path of at most {_RAY_FOLDER_MAX} characters"),
]
Program = Annotated[StrictStr, matching(r"[A-Za-z0-9/][A-Za-z0-9/._+-]*", "must be a program or its path")]
FilePath = Annotated[StrictStr, matching(r"[^\x00-\x1f]{1,200}", "must be the path of a file")]


class ClusterSection(Section):
    """``[cluster]``: what all hosts have in common."""

    name: HostName = "lab"
    """By which this machine keeps what it knows of the cluster."""
    address: Address | None = None
    """Of this machine, as the hosts reach it; where ssh comes from if not given."""
    first_port: Annotated[StrictInt, Field(ge=1024, le=65_535 - PORTS)] = 26_380
    """Of the 200 TCP ports that Ray uses."""
    object_store: Annotated[Size, Field(ge=_OBJECT_STORE_MIN_BYTES)] = 128 * 1024**2
    """Memory that Ray may use for objects, on each host."""
    ssh_config: FilePath | None = None
    """A configuration of ssh in the place of yours; a path from the folder of the file."""


class HostSection(Section):
    """``[host.NAME]``: one host."""

    ssh: Target | None = None
    """Whom ssh is to reach: a name of its configuration, or user@machine. May be left out with ``--address``."""
    address: Address | None = None
    """As the other hosts reach it; where ssh arrives if not given."""
    roles: Annotated[list[Role], Field(min_length=1)]
    """What it is for: server, client, or both."""
    python: Program = "python3"
    """Its Python, of the same minor version as the one here."""
    folder: Absolute | None = None
    """Where dbdyno keeps its own things there; of the user's state folder if not given."""
    ray_folder: RayFolder = "/dev/shm"  # noqa: S108  (a folder of its own is made in it, which nobody else may enter)
    """Where Ray's files are to lie: in memory, or on a disk that is not measured."""


@dataclass(frozen=True)
class Inventory:
    """The hosts of a file, in its order."""

    path: Path
    cluster: ClusterSection
    hosts: dict[str, HostSection]

    def label(self, host: str) -> str:
        """What stands for a host of this very cluster: it may be in two."""
        return label_of(self.cluster.name, host)

    @property
    def ssh_config(self) -> Path | None:
        """The configuration of ssh that the file names."""
        given = self.cluster.ssh_config
        return self.path.resolve().parent / given if given else None


Model = TypeVar("Model", bound=BaseModel)


def label_of(cluster: str, host: str) -> str:
    """The same by the names of both; neither has a dot."""
    return f"{cluster}.{host}"


def read_inventory(path: Path) -> Inventory:
    """Read and check a file of hosts. Raises ``UserError`` that names file, line and field of every mistake."""
    _refuse_open(path)
    _, raw, lines = read_document(path)
    found: list[Mistake] = []
    if raw.get("version") != VERSION:
        given = f"is {shown(raw['version'])}" if "version" in raw else "is missing"
        found.append(Mistake(("version",), f"{given}; this dbdyno reads version = {VERSION}"))
    for name in raw.keys() - set(SECTIONS):
        text = f"is unknown here; known are {', '.join(SECTIONS)}{did_you_mean(name, SECTIONS)}"
        found.append(Mistake((name,), text))
    cluster = _read(ClusterSection, raw.get("cluster", {}), ("cluster",), found)
    hosts = _hosts(raw.get("host", {}), found)
    found += _no_config(path, cluster.ssh_config) if cluster and cluster.ssh_config else []
    if found or cluster is None:
        in_order = sorted(found, key=lambda mistake: line_of(lines, mistake) or 0)
        raise UserError("\n".join(dict.fromkeys(explain(path, lines, mistake) for mistake in in_order)))
    return Inventory(path, cluster, hosts)


def _no_config(path: Path, given: str) -> list[Mistake]:
    """What is wrong with the configuration of ssh that is named."""
    config = path.resolve().parent / given
    try:
        why = why_ssh_is_open_to_others(config) if config.is_file() else f"there is no file {config}"
    except OSError as error:
        why = f"{config}: {error.strerror}"
    return [Mistake(("cluster", "ssh_config"), f"is {shown(given)}; {why}")] if why else []


def _refuse_open(path: Path) -> None:
    """Raise ``UserError`` where another user could change the file: it says what runs here and on every host."""
    try:
        why = why_open_to_others(path)
    except OSError:
        return  # which reading it says better
    if why:
        raise UserError(f"{path}: says what runs here and on every host, but {why}")


def _read(model: type[Model], table: object, where: tuple[str, ...], found: list[Mistake]) -> Model | None:
    """A section, or the mistakes in it."""
    if not isinstance(table, dict):
        found.append(Mistake(where, f"is {shown(table)} but must be a section"))
        return None
    try:
        return model.model_validate(table)
    except ValidationError as error:
        found += mistakes_of(error, model, where)
        return None


def _hosts(table: Any, found: list[Mistake]) -> dict[str, HostSection]:  # noqa: ANN401  (what TOML has there)
    if not isinstance(table, dict) or not table:
        found.append(
            Mistake(("host",), 'names no host; give each a section of its own, such as [host.db1] ssh = "db1"')
        )
        return {}
    if len(table) > HOSTS_MAX:
        found.append(Mistake(("host",), f"has {len(table)} hosts; at most {HOSTS_MAX} are read"))
    hosts = {}
    for name, fields in table.items():
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]{0,39}", name):
            found.append(Mistake(("host", name), "must be called by letters, digits and hyphens, at most 40"))
        section = _read(HostSection, fields, ("host", name), found)
        if section is not None:
            hosts[name] = section
            found += _broken(name, section)
    found += _twice(hosts)
    return hosts


def _broken(name: str, host: HostSection) -> list[Mistake]:
    """What a host's fields can't be together."""
    broken = []
    if host.ssh is None and host.address is None:
        text = "is missing; give whom ssh is to reach, or address alone of a node of Ray"
        broken.append(Mistake(("host", name, "ssh"), text))
    if len(set(host.roles)) < len(host.roles):
        broken.append(Mistake(("host", name, "roles"), "names a role twice"))
    return broken


def _twice(hosts: dict[str, HostSection]) -> list[Mistake]:
    """Hosts that are one and the same."""
    found = []
    for field in ("ssh", "address"):
        first: dict[str, str] = {}
        for name, host in hosts.items():
            value = getattr(host, field)
            if value is not None and first.setdefault(value, name) != name:
                found.append(Mistake(("host", name, field), f"is {shown(value)}, as of {first[value]}"))
    return found
