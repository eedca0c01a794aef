"""What the stacks have in common that dbdyno raises whole: from a device up to a server of its own."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from dbdyno.filesystems import BY_FUSE
from dbdyno.filesystems import KINDS as FILESYSTEMS
from dbdyno.model.design import BOOTED
from dbdyno.plan.identity import image_key
from dbdyno.servers.contract import ClusterTerms, Membership, ReplicaTerms, Replicating
from dbdyno.servers.products import own_server
from dbdyno.servers.sources.installation import NoServerError, find_server
from dbdyno.stack import capabilities
from dbdyno.stack.between import Between, modules_here
from dbdyno.stack.capabilities import Capability
from dbdyno.stack.kinds.kind import Device, Raising, Stack, StackKind
from dbdyno.stack.layer import KeptImage, Layer
from dbdyno.stack.layers import array, cache, encryption, volume
from dbdyno.stack.layers.cluster import ClusterData, ClusterLayer, node_host, node_of
from dbdyno.stack.layers.data import Files, Tree
from dbdyno.stack.layers.device import seed_of
from dbdyno.stack.layers.filesystem import Filesystem
from dbdyno.stack.layers.memory import Memory, PageCache
from dbdyno.stack.layers.named_disk import NamedDisk
from dbdyno.stack.layers.placement import Placement
from dbdyno.stack.layers.queue import Queue
from dbdyno.stack.layers.replica import ReplicaData, ReplicaLayer, replica_of
from dbdyno.stack.layers.scratch import scratch
from dbdyno.stack.layers.server import ServerLayer
from dbdyno.stack.layers.zfs_pool import OpenZfsPool, ZfsPool
from dbdyno.stack.undo_log import Journal
from dbdyno.study.document import Setting
from dbdyno.study.schema import ClusterSection, ReplicaSection, TrialSpec

KeptT = TypeVar("KeptT", bound=KeptImage)

LOCAL = "127.0.0.1"  # where a source listens for its replica
# From the disks up. Of two volumes the one above is on the other.
BETWEEN: tuple[Between, ...] = (array.BETWEEN, cache.BETWEEN, encryption.BETWEEN, volume.BETWEEN)
FILESYSTEM_MOUNTED = "mounted: the filesystem of each trial, in the state folder; unmounted afterwards"


def touched_between(specs: Sequence[TrialSpec]) -> Iterator[str]:
    """What is raised between disks and filesystem, a line each."""
    yield from dict.fromkeys(part.TOUCHES for spec in specs for part in between_of(spec))


class OwnStack(StackKind[KeptT]):
    """A stack of dbdyno's own; each kind says what the data and the server stand on."""

    @abstractmethod
    def ground(self, spec: TrialSpec, image: KeptT, raising: Raising) -> tuple[Device, list[Layer]]:
        """The device, and what is between it and the data."""

    def stack(self, spec: TrialSpec, image: KeptT, raising: Raising) -> Stack:
        """Device, queue and filesystem, data, limits, server."""
        device, above = self.ground(spec, image, raising)
        disks: dict[str, Device] = {}
        for name, on in spec.by_disk.items():
            seed = seed_of(raising.seed, spec.stack.devices + list(spec.stack.disks).index(name))
            disks[name], layers = self.ground(on, image.part_on_disk(name), replace(raising, seed=seed))
            place = 0 if name == spec.cache_disk else len(above)  # a cache takes the disk that is there before it
            above.insert(place, NamedDisk(name, (disks[name], *layers)))
        above += image.layers(install=raising.install)
        if any(load.FILES for load in spec.loads):
            above.append(Files())
        server = _server(spec, raising) if spec.has_server else None
        replica = spec.server.replica if server and spec.has_replica and not raising.install else None
        if server and replica:
            above.append(ReplicaData(server, replica.own_disk))
        cluster = spec.server.cluster if server and spec.has_cluster and not raising.install else None
        if server and cluster:
            above.append(ClusterData(server, cluster.own_disks))
        if not raising.install:
            above.append(PageCache())
        if spec.stack.memory and not raising.install:
            above.append(Memory(spec.stack.memory))
        if server:
            above.append(server)
        if server and replica:
            above.append(_replica(replica, server))
        if server and cluster:
            above.append(_cluster(cluster, server))
        return Stack(device, tuple(above), disks)

    def needs_of_server(self, spec: TrialSpec) -> Iterator[Capability]:
        """The server's program and its engine; what it takes of the settings is asked once for all treatments."""
        if not spec.has_server:
            return
        server = capabilities.server(spec.stack.server)
        if server.ok:
            yield from (server, _engine(spec.stack.server, spec.stack.engine), *_places(spec))
            yield from (*_replica_needs(spec), *_cluster_needs(spec))
        elif spec.server.settings:
            names = ", ".join(spec.server.settings)
            yield replace(server, detail=f"{server.detail}, so whether it has {names} is not known here")
        else:
            yield server

    def starts_server(self, spec: TrialSpec) -> bool:
        """Where it has one."""
        return spec.has_server

    def server_version(self, spec: TrialSpec) -> str:
        """As its program says it."""
        return find_server(spec.stack.server).version

    def server_build(self, spec: TrialSpec) -> list[int]:
        """By its program's size and time."""
        if not spec.has_server:
            return []
        daemon = Path(find_server(spec.stack.server).daemon).stat()
        return [daemon.st_size, daemon.st_mtime_ns]

    def image_key(self, spec: TrialSpec) -> str:
        """By server, engine, layers, filesystem and data, and those settings that may touch data."""
        if not spec.has_server:
            return _image_key(spec, None, {})
        installation = find_server(spec.stack.server)
        own = own_server(installation, spec.stack.engine, spec.server.settings)
        return _image_key(spec, installation.identity, own.data_settings)

    def planned_key(self, spec: TrialSpec) -> str:
        """Without the server its name stands for it, and each setting counts."""
        try:
            return self.image_key(spec)
        except NoServerError:
            return _image_key(spec, spec.stack.server, spec.server.settings)


def _image_key(spec: TrialSpec, server: str | None, settings: Mapping[str, Setting]) -> str:
    return image_key(spec, server, settings, {part.FIELD: part.on_disk(spec) for part in between_of(spec)})


class CopiedData(OwnStack[Tree]):
    """A stack onto which the prepared data are copied for each trial."""

    @contextmanager
    def new_image(self, spec: TrialSpec, journal: Journal) -> Iterator[Tree]:
        """A folder of its own."""
        with scratch(journal) as ground:
            yield Tree(ground.scratch / "image")


def block_layers(spec: TrialSpec, raising: Raising, *, fresh: bool, key: bytes = b"") -> list[Layer]:
    """The queue of a device, which preparing data leaves alone, and its filesystem, if any: made, or as it is there.

    Between them is what the treatment asks for; ``key`` is that of prepared data that are encrypted.
    """
    queue: list[Layer] = [] if raising.install else [Queue(spec.stack.scheduler, spec.queue)]
    between = [part.layer(spec, fresh=fresh, key=key) for part in between_of(spec)]
    return [*queue, *between, *([_filesystem(spec, fresh=fresh)] if spec.stack.filesystem else [])]


def between_of(spec: TrialSpec) -> list[Between]:
    """What a treatment has between the queue of its disks and its filesystem, from the disks up."""
    return [part for part in BETWEEN if part.is_wanted(spec)]


def _filesystem(spec: TrialSpec, *, fresh: bool) -> Layer:
    assert spec.stack.filesystem is not None  # noqa: S101  (a rule of the study format)
    kind = FILESYSTEMS[spec.stack.filesystem]
    if kind.name == BY_FUSE:
        return (OpenZfsPool if spec.stack.kind == BOOTED else ZfsPool)(spec.filesystem, fresh)
    return Filesystem(kind, spec.filesystem, fresh)


def block_needs(spec: TrialSpec) -> Iterator[Capability]:
    """What a filesystem and a queue on a block device need."""
    yield capabilities.root()
    for part in between_of(spec):
        yield from part.needs(spec, modules_here(), kernel="")
    if spec.stack.filesystem:
        yield capabilities.filesystem(spec.stack.filesystem)
    if spec.stack.scheduler:
        yield capabilities.scheduler(spec.stack.scheduler)


def _server(spec: TrialSpec, raising: Raising) -> ServerLayer:
    install = raising.install
    return ServerLayer(
        find_server(spec.stack.server),
        spec.server.settings,
        spec.stack.engine,
        spec.connections,
        places=spec.places,
        install=install,
        log=raising.log,
        listen="" if install else raising.listen or (LOCAL if spec.has_replica else ""),
        placement=Placement() if install else _placement(spec),
        replicating=Replicating("source", _terms(spec.server.replica)) if spec.has_replica and not install else None,
        membership=_first_node(spec.server.cluster) if spec.has_cluster and not install else None,
    )


def _terms(replica: ReplicaSection) -> ReplicaTerms:
    assert replica.mode != "none"  # noqa: S101  (there is one)
    return ReplicaTerms(replica.mode, replica.wait_point, replica.timeout)


def _replica(replica: ReplicaSection, source: ServerLayer) -> ReplicaLayer:
    server = replica_of(source, _terms(replica), replica.settings)
    placement = replace(source.placement, cpus=replica.cpus)
    return ReplicaLayer(replace(server, placement=placement), replica.own_disk, _terms(replica), replica.round_trip)


def _cluster_terms(cluster: ClusterSection) -> ClusterTerms:
    return ClusterTerms(cluster.nodes, cluster.options)


def _first_node(cluster: ClusterSection) -> Membership:
    return Membership(_cluster_terms(cluster), 1, node_host(1))


def _cluster(cluster: ClusterSection, first: ServerLayer) -> ClusterLayer:
    node = replace(node_of(first), placement=replace(first.placement, cpus=cluster.cpus))
    return ClusterLayer(node, cluster.own_disks, _cluster_terms(cluster), cluster.round_trip)


def _cluster_needs(spec: TrialSpec) -> Iterator[Capability]:
    """Why the server can be no node of a cluster."""
    if not spec.has_cluster:
        return
    own = own_server(find_server(spec.stack.server), spec.stack.engine, {})
    if why := own.cluster_mistake():
        yield Capability("cluster", ok=False, detail=why, field=("server", "cluster", "mode"))


def _replica_needs(spec: TrialSpec) -> Iterator[Capability]:
    """Why the server can have no replica, and what is wrong with the settings of that."""
    if not spec.has_replica or spec.server.replica.mode == "none":
        return
    installation, replica = find_server(spec.stack.server), spec.server.replica
    own = own_server(installation, spec.stack.engine, replica.settings)
    if why := own.replication_mistake(spec.server.replica.mode):
        yield Capability("replica", ok=False, detail=why, field=("server", "replica", "mode"))
    for name, why in own.mistakes().items():
        yield Capability(f"{name} of the replica", ok=False, detail=why, field=("server", "replica", "settings", name))


def _placement(spec: TrialSpec) -> Placement:
    server = spec.server
    return Placement(spec.stack.server_cpus, server.ionice, server.nice, server.allocator, server.numa)


def _places(spec: TrialSpec) -> Iterator[Capability]:
    """What of the server can't lie on a disk of its own."""
    own = own_server(find_server(spec.stack.server), spec.stack.engine, spec.server.settings)
    for purpose, why in own.place_mistakes(spec.places).items():
        yield Capability(f"place of {purpose}", ok=False, detail=why, field=("server", "place", purpose))


def _engine(server: str, engine: str) -> Capability:
    lack = find_server(server).lacks(engine)
    return Capability(f"engine {engine} of {server}", ok=not lack, detail=lack, field=("stack", "engine"))
