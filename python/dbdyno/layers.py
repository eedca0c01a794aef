"""Which layers a treatment stands on, from the device up."""

from pathlib import Path

from dbdyno.filesystems.catalogue import BY_FUSE, KINDS
from dbdyno.plan.identity import image_key
from dbdyno.servers.installation import find_server
from dbdyno.stack.data import Image, Keep
from dbdyno.stack.device import Elsewhere, Emulated, Here, NoDevice, Real
from dbdyno.stack.device_pair import EmulatedPair, seed_of
from dbdyno.stack.emulated_disk import is_rotational
from dbdyno.stack.files import Files
from dbdyno.stack.filesystem import Filesystem
from dbdyno.stack.layer import Layer
from dbdyno.stack.lent_data import LentData
from dbdyno.stack.memory import Memory
from dbdyno.stack.memory_filesystem import MemoryFilesystem
from dbdyno.stack.page_cache import PageCache
from dbdyno.stack.placement import Placement
from dbdyno.stack.queue import Queue
from dbdyno.stack.running_server import RunningServer
from dbdyno.stack.server import Server
from dbdyno.stack.zfs_pool import ZfsPool
from dbdyno.study.drives import HERE
from dbdyno.study.schema import TrialSpec
from dbdyno.workload.kinds import workload_of

Device = Emulated | EmulatedPair | Real | Here | NoDevice | Elsewhere


def device_layer(spec: TrialSpec, image: Image, *, seed: int, erase: frozenset[str], blank: bool) -> Device:
    """The lowest layer; ``blank`` asks an emulated disk for no content rather than the prepared one."""
    name = spec.stack.device
    if spec.stack.runs_already:
        return Elsewhere()
    if name == HERE:
        return Here()
    if spec.stack.in_memory:
        return NoDevice()
    if not image.disks:
        return Real(Path(name), spec.stack.serial, erase)
    rotational = is_rotational(name)
    each = [
        Emulated(disk, name, rotational=rotational, seed=seed_of(seed, number), restore=not blank)
        for number, disk in enumerate(image.disks)
    ]
    return each[0] if len(each) == 1 else EmulatedPair(tuple(each))


def layers(spec: TrialSpec, image: Image, device: Device, *, log: Path, install: bool) -> list[Layer]:
    """The whole stack. With ``install`` it is raised to prepare the data: no queue setting, no memory limit."""
    if isinstance(device, Elsewhere):
        return [device, *_on_a_running_server(spec, image)]
    stack: list[Layer] = [device]
    if isinstance(device, NoDevice):
        assert spec.stack.size is not None  # noqa: S101  (a rule of the study format)
        stack.append(MemoryFilesystem(spec.stack.size, spec.filesystem.mount))
    elif not isinstance(device, Here):
        if not install:
            stack.append(Queue(spec.stack.scheduler, spec.queue))
        fresh = install or image.tree is not None
        assert spec.stack.filesystem is not None  # noqa: S101  (a rule of the study format)
        kind = KINDS[spec.stack.filesystem]
        by_fuse = kind.name == BY_FUSE
        made = ZfsPool(spec.filesystem, fresh) if by_fuse else Filesystem(kind, spec.filesystem, fresh)
        stack.append(made)
    if image.tree:
        stack.append(Keep(image.tree) if install else image.tree)
    if spec.workload.FILES:
        stack.append(Files())
    if not install:
        stack.append(PageCache())
    if spec.stack.memory and not install:
        stack.append(Memory(spec.stack.memory))
    if spec.has_server:
        stack.append(_server(spec, log=log, install=install))
    return stack


def _server(spec: TrialSpec, *, log: Path, install: bool) -> Server:
    server = find_server(spec.stack.server)
    settings = spec.server.settings
    placement = Placement() if install else Placement(spec.stack.server_cpus, spec.server.ionice)
    clients = spec.workload.connections
    return Server(server, settings, spec.stack.engine, clients, install=install, log=log, placement=placement)


def _on_a_running_server(spec: TrialSpec, image: Image) -> list[Layer]:
    """The server as it is, and the data loaded into it: no image can be put back there."""
    assert image.lent is not None  # noqa: S101  (what such a treatment's image is)
    stack, server = spec.stack, spec.server
    key, prepare = image_key(spec, stack.server), workload_of(spec).prepare
    return [
        RunningServer(stack.server, server.option_file, server.settings, stack.engine),
        LentData(image.lent, key, prepare, only_read=spec.workload.only_reads),
    ]
