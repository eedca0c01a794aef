"""What a study file may say: one class per section. A list in a study is a factor; here every field is one level."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, StrictFloat, StrictInt

from dbdyno.filesystems import IN_MEMORY, KINDS
from dbdyno.model.cut import CrashMode, Keep, Survivors, When
from dbdyno.model.design import (
    BLOCKS_MAX,
    BOOTED,
    BUSES,
    IMAGE,
    MIN_BLOCKS,
    Interference,
    Settle,
    is_booted,
)
from dbdyno.model.disks import DATA_DISK
from dbdyno.model.metrics import METRICS, REPORTED_METRICS
from dbdyno.model.quantity import duration_seconds
from dbdyno.model.similar import did_you_mean
from dbdyno.mysql.server_url import is_url, server_url
from dbdyno.mysql.settings import DISTRIBUTION, GALERA_OPTIONS, INNODB, NO_SERVER
from dbdyno.store.reported import Direction
from dbdyno.study.beside import Beside, BesideSection, running
from dbdyno.study.defaults import DEFAULT_CUTS, DEFAULT_CUTS_PER_RUN, DEFAULT_MARGIN
from dbdyno.study.document import FileSection, HostName, Identifier, Line, Setting, WorkloadSection, matching
from dbdyno.study.drives import HERE, MEMORY, NOT_GIVEN, device_kind, is_real
from dbdyno.study.mistakes import Mistake, shown
from dbdyno.study.units import Duration, Fraction, Size, cpu_numbers, in_file
from dbdyno.study.workloads import USERS_SQL, Workload

# ``[crash]``: a study of what power cuts, or kills of the server, leave of acknowledged commits.


_UNIFORM: list[When] = ["uniform"]
_RANDOM: list[Survivors] = ["random-4096"]

Word = TypeVar("Word", bound=str)


def _some(values: list[Word]) -> list[Word]:
    if not values:
        raise ValueError("is an empty list; name at least one")
    if twice := next((value for place, value in enumerate(values) if value in values[:place]), None):
        raise ValueError(f'names "{twice}" twice')
    return values


class CrashSection(FileSection):
    """``[crash]``: what is cut, and how often; with it, treatments are judged by what they lose.

    No field of it can be a factor.
    """

    mode: CrashMode = "power"
    """`power`: the power of the emulated disk is cut. `kill`: only the server is killed, once a trial, and the page
    cache survives. `failover`: the server is killed for good, once a trial, and its [replica](layers.md#replica), or
    another node of its [cluster](layers.md#cluster), examined.
    """
    cuts: Annotated[StrictInt, Field(ge=1, le=100_000)] = DEFAULT_CUTS
    """Cuts of each treatment, which decide the [number of
    blocks](statistics/crash-safety.md#how-often-it-may-happen).
    """
    cuts_per_run: Annotated[StrictInt, Field(ge=1, le=100)] | None = None
    """Cuts of one trial: 10 of the power if not given, else 1."""
    when: Annotated[list[When], AfterValidator(_some)] = _UNIFORM
    """`uniform`: at a random time of the load. `ack`: right after a commit was acknowledged. `flush`: while a FLUSH is
    in flight. `page-write`: in a write of a data page or of the doublewrite buffer. `ddl`: right after a DDL statement,
    with `workload.ddl`. `recovery`: during the recovery from another cut.
    """
    survivors: Annotated[list[Survivors], AfterValidator(_some)] = _RANDOM
    """What is left of writes that no FLUSH made durable. `none`: nothing. `random-512`, `random-4096`: a random part of
    the sectors of that size. `prefix`: all up to a random time. `requests`: a random part of the requests, each whole.
    `versions`: of each sector a random one of its versions. `lying`: of a drive that lies about FLUSH, all but what it
    held back. Each of `when` is combined with each of these.
    """
    hold: Annotated[Duration, Field(ge=0.001, le=10)] | None = None
    """With `lying`: how long the drive holds it back; 100 ms if not given."""
    recovery_limit: Annotated[Duration, Field(ge=1, le=3600)] = 60.0
    """The limit of each step of recovery."""
    keep: Keep = "worst"
    """Which broken states stay in the run folder: of each treatment one with the worst outcome so far, or all that lost
    anything.
    """

    @property
    def cuts_each(self) -> int:
        """Cuts of one trial."""
        return self.cuts_per_run or (DEFAULT_CUTS_PER_RUN if self.mode == "power" else 1)

    @property
    def blocks(self) -> int:
        """How many trials of each treatment that takes."""
        return -(-self.cuts // self.cuts_each)

    @property
    def hold_seconds(self) -> float:
        """How long a drive that lies holds back; 0 where none does."""
        return (self.hold or 0.1) if "lying" in self.survivors else 0.0

    @property
    def strata(self) -> list[tuple[When, Survivors | None]]:
        """The kinds of cut, in the order in which a trial takes them; nothing is drawn of a killed server."""
        if self.mode != "power":
            return [(when, None) for when in self.when]
        return [(when, survivors) for when in self.when for survivors in self.survivors]

    def stratum(self, cut: int, block: int) -> tuple[When, Survivors | None]:
        """The kind of the cut of that number, from 0, in a trial of that block: rotated, so that all come alike."""
        return self.strata[((block - 1) * self.cuts_each + cut) % len(self.strata)]


MAX_BLOCKS = BLOCKS_MAX

# Of kernels with blk-mq, one of which this is; and of those before, which can be simulated.
SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")
OLD_SCHEDULERS = ("noop", "deadline", "anticipatory", "cfq")
DEVICES_MAX = 16
# Layers between disks and filesystem, from the disks up: fields of [stack], each with a section of its own.
BETWEEN = ("array", "cache", "encryption", "volume")
# Levels of md and kinds of logical volumes -> how many devices they need at least.
ARRAYS = {"raid0": 2, "raid1": 2, "raid5": 3, "raid6": 4, "raid10": 2, "linear": 2}
VOLUMES = {"linear": 1, "striped": 2, "thin": 1}
CACHES = ("writecache", "dm-cache", "bcache")
CACHE_DISK = "cache"  # of [stack.disks], the disk that a cache takes
# nr_requests of a blk-mq kernel: BLKDEV_MIN_RQ .. 16 x 128 (block/blk-mq.c); without a scheduler the hardware's depth.
NR_REQUESTS_MIN, NR_REQUESTS_MAX, NR_REQUESTS_NONE_MAX = 4, 2048, 128


def _cpu_list(text: str) -> str:
    try:
        cpu_numbers(text)
    except ValueError as error:
        raise ValueError(f'{error}; give numbers and ranges, such as "0" or "0-3,8"') from None
    return text


def _settle(value: object) -> Settle:
    if value == "trial":
        return "trial"
    try:
        seconds = in_file(duration_seconds)(value)
    except ValueError as error:
        raise ValueError(f'{error}; or "trial"') from None
    if not seconds:
        raise ValueError('is not a rest; leave it out, or give a time such as "30s", or "trial"')
    return seconds


def _power_of_two(value: int) -> int:
    if value & (value - 1):
        raise ValueError("must be a power of two, such as 64KiB")
    return value


def _awake(value: object) -> object:
    if isinstance(value, bool) or value == "auto":
        return value
    raise ValueError('is none of true, false, "auto"')


def _no_newline(value: Setting) -> Setting:
    if isinstance(value, str) and any(ord(char) < ord(" ") for char in value):
        raise ValueError("must not hold control characters")
    return value


Options = Annotated[
    str,
    matching(r"[\w\-+=,.:/^ ]*", "holds a character that no mkfs or mount option needs"),
    AfterValidator(str.strip),
]
Variable = Annotated[
    str,
    matching(
        r"[a-z][a-z0-9_]*",
        "is not a server variable; names are lower case with underscores, such as innodb_buffer_pool_size",
    ),
]
Tunable = Annotated[
    str, matching(r"[a-z][a-z0-9_]*", "is not a tunable; names are those of /sys/block/DISK/queue/iosched")
]
IoClass = Annotated[
    str,
    matching(
        r"none|idle|(best-effort|realtime):[0-7]",
        'is none of "none", "idle", "best-effort:0" to "best-effort:7", "realtime:0" to "realtime:7"',
    ),
]

NumaPolicy = Annotated[
    str,
    matching(
        r"interleave|local|(bind|prefer):[0-9]{1,4}",
        'is none of "interleave", "local", "bind:NODE", "prefer:NODE", such as "bind:0"',
    ),
]


Login = Annotated[str, matching(r"[A-Za-z_][\w.\-]*", 'is no name of a user, such as "root"')]


class StudySection(FileSection):
    """``[study]``: what is asked."""

    title: Line = ""
    """The heading of every report. If not given, the name of the file."""
    question: str = ""
    """Printed below the title."""
    expect: str = ""
    """What you expect to see, in prose. Not evaluated."""
    result: str = ""
    """What came out, in prose. Not evaluated."""


DiskName = Annotated[
    str,
    matching(r"(?!data$)[a-z][a-z0-9_]{0,19}", 'must be lower-case letters, digits and _, at most 20, and not "data"'),
]


class NamedDiskSection(FileSection):
    """``[stack.disks.NAME]``: a disk beside that of the data, for what ``[server.place]`` puts there, or for a cache.

    Each field can be a factor. A treatment that puts nothing there does without it.
    """

    device: Line
    """As `[stack] device`, and of the same kind: an emulated drive, else a real disk of its own."""
    serial: Line | None = None
    """As `[stack] serial`."""
    size: Annotated[Size, Field(ge=64 * 1024**2)] | None = None
    """As `[stack] size`: required of an emulated disk."""
    scheduler: Literal[SCHEDULERS] | None = None  # type: ignore[valid-type]
    """I/O scheduler of this disk."""
    filesystem: Literal[tuple(KINDS)] | None = None  # type: ignore[valid-type]
    """Required; not `zfs` or `tmpfs`. The disk of a `cache` has none."""
    mkfs: Options = ""
    """As `[filesystem] mkfs`."""
    mount: Options = ""
    """As `[filesystem] mount`."""


class StackSection(FileSection):
    """``[stack]``: what the queries stand on."""

    device: Line = NOT_GIVEN
    """What the data lie on: an emulated [drive](disk.md#names), a whole disk (`"/dev/disk/by-id/..."`),
    `"file:/srv/bench"`, `"here"`, or `"memory"` with `filesystem = "tmpfs"` ([more](layers.md#device)). Required, but
    not with an external server.
    """
    kernel: Line | None = None
    """`"debian-6.1"` or the absolute path of a kernel: the stack is *booted* in a [virtual machine](kernels.md). A
    version such as `"2.6.18"`: it is [*simulated*](layers.md#simulated-stacks), as then are all treatments.
    """
    bus: Literal[BUSES] = "virtio"  # type: ignore[valid-type]
    """The disk controller of a [virtual machine](kernels.md#what-a-machine-is)."""
    guest_memory: Annotated[Size, Field(ge=512 * 1024**2)] = 1024**3
    """Memory of the virtual machine."""
    image: Line | None = None
    """The absolute path of a disk image of a [machine of your own](kernels.md#another-operating-system). `device` is
    its second drive, `server` its server as a program in the machine names it:
    `"mysql://bench@localhost:3306/bench"`.
    """
    login: Login = "root"
    """The user of an `image` that dbdyno logs in as, by ssh."""
    key: Line | None = None
    """The absolute path of the private ssh key of that `login`, without a passphrase. Required with an `image`."""
    setup: Line = ""
    """A shell command that the `login` runs once, on the empty second drive: it makes the filesystem, and the server's
    data with the database and the user of `server`.
    """
    start: Line = ""
    """A shell command that the `login` runs at each boot, to mount the second drive and start the server."""
    serial: Line | None = None
    """The [serial](study-file.md#stack-and-below) of a real disk whose name does not hold it."""
    size: Annotated[Size, Field(ge=64 * 1024**2)] | None = None
    """The size of what dbdyno makes, such as an emulated disk: a multiple of 4096 bytes. Not with real disks and
    `here`.
    """
    devices: Annotated[StrictInt, Field(ge=1, le=DEVICES_MAX)] = 1
    """Emulated disks of that model and size: 2 for [btrfs](layers.md#btrfs), or as many as an `array` or a `volume` is
    made of.
    """
    array: Literal[("none", *ARRAYS)] = "none"  # type: ignore[valid-type]
    """What [md](layers.md#array) makes of the `devices`, with `[array]`."""
    cache: Literal[("none", *CACHES)] = "none"  # type: ignore[valid-type]
    """The [cache](layers.md#cache) that is made of the fast disk `[stack.disks.cache]`, with `[cache]`."""
    encryption: Literal["none", "luks"] = "none"
    """Whether [dm-crypt](layers.md#encryption) encrypts, as `[encryption]` says."""
    volume: Literal[("none", *VOLUMES)] = "none"  # type: ignore[valid-type]
    """The filesystem's logical volume of [LVM](layers.md#volume), with `[volume]`."""
    scheduler: Literal[SCHEDULERS + OLD_SCHEDULERS] | None = None  # type: ignore[valid-type]
    """I/O scheduler. Not with `here` or `memory`; the last four need an old `kernel`."""
    filesystem: Literal[tuple(KINDS)] | None = None  # type: ignore[valid-type]
    """[What each is here](layers.md#filesystem). Required but with `here`."""
    server: Line = DISTRIBUTION
    """A [server](servers.md) by its name, the absolute path of an unpacked MariaDB or MySQL,
    `"mysql://user@host:3306/database"` for an [external server](servers.md#an-external-server), or `"none"`.
    """
    engine: Identifier = INNODB
    """Storage engine of the tables, read back."""
    memory: Annotated[Size, Field(ge=64 * 1024**2)] | None = None
    """Bounds the server and the page cache that it fills, with root; more than `innodb_buffer_pool_size`."""
    server_cpus: Annotated[str, AfterValidator(_cpu_list)] | None = None
    """Processors of the server; all if not given."""
    client_cpus: Annotated[str, AfterValidator(_cpu_list)] | None = None
    """Processors of the load generator; all if not given."""
    disks: dict[DiskName, NamedDiskSection] = Field(default_factory=dict)
    """Further disks, each in a section such as `[stack.disks.log]`; `[stack.disks.cache]` is that of a `cache`."""

    @property
    def filesystem_devices(self) -> int:
        """How many devices the filesystem itself stands on."""
        return self.devices if self.array == self.volume == "none" else 1

    @property
    def model(self) -> str | None:
        """The drive that an emulated disk below it behaves like."""
        return self.device if self.kind in {"emulated", BOOTED, IMAGE} else None

    @property
    def is_simulated(self) -> bool:
        """Whether its kernel and its drive are simulated, and no host takes part."""
        return self.kernel is not None and not is_booted(self.kernel)

    @property
    def is_booted(self) -> bool:
        """Whether a virtual machine boots its kernel for each trial."""
        return self.kernel is not None and is_booted(self.kernel)

    @property
    def is_in_machine(self) -> bool:
        """Whether a virtual machine of this host's is started for each trial, whatever boots in it."""
        return self.is_booted or self.image is not None

    @property
    def external_database(self) -> str | None:
        """The database of an external server that its data go to."""
        return server_url(self.server).database if is_url(self.server) else None

    @property
    def kind(self) -> str:
        """Which kind of stack it is, as ``stack.kinds`` names them; nothing where no device is given."""
        if self.image is not None:
            return IMAGE
        if is_url(self.server):
            return "external"
        if self.is_simulated:
            return "simulated"
        if self.is_booted:
            return BOOTED
        kind = device_kind(self.device)
        # Whatever ``device`` says for the other treatments, a tmpfs stands on none.
        return MEMORY if self.filesystem == IN_MEMORY and kind not in {HERE, NOT_GIVEN} else kind


class QueueSection(FileSection):
    """``[queue]``: the kernel's block queue; ``[queue.iosched]`` is the chosen scheduler's own part of it.

    Names are those of /sys/block/DISK/queue (Documentation/ABI/stable/sysfs-block).
    """

    nr_requests: Annotated[StrictInt, Field(ge=1)] | None = None
    """Requests that the queue holds: 4 to 2048, on an emulated disk without a scheduler at most 128. Simulated old
    kernels have no bound.
    """
    queue_depth: Annotated[StrictInt, Field(ge=1, le=256)] | None = None
    """Commands that the drive of a simulated stack takes at once; 32 if not given."""
    read_ahead_kb: Annotated[StrictInt, Field(ge=0, le=1024 * 1024, multiple_of=4)] | None = None
    """Read-ahead in KiB, whole pages."""
    rotational: StrictBool | None = None
    """What the kernel believes of the drive."""
    wbt_lat_usec: Annotated[StrictInt, Field(ge=0)] | None = None
    """Target of writeback throttling; 0: off. Not with `bfq`. An emulated hard disk has 75000, an SSD 2000."""
    write_cache: Literal["write back", "write through"] | None = None
    """Whether the kernel believes in a volatile cache, and so flushes it."""
    max_sectors_kb: Annotated[StrictInt, Field(ge=1)] | None = None
    """Largest request in KiB; at most the device's own limit."""
    nomerges: Annotated[StrictInt, Field(ge=0, le=2)] | None = None
    """Merging: 0 all, 1 simple merges only, 2 none."""
    rq_affinity: Annotated[StrictInt, Field(ge=0, le=2)] | None = None
    """The processor that completes a request: 1 any of the group that asked, 2 the very one."""
    discard_max_bytes: Annotated[StrictInt, Field(ge=0)] | None = None
    """Largest discard; 0 turns it off."""
    io_timeout: Annotated[StrictInt, Field(ge=1)] | None = None
    """Milliseconds until the kernel gives up a request. Few devices have it."""
    io_poll: StrictBool | None = None
    """Whether the kernel polls for completions."""
    io_poll_delay: Annotated[StrictInt, Field(ge=-1)] | None = None
    """Microseconds of sleep before polling. Few devices and kernels have it."""
    add_random: StrictBool | None = None
    """Whether the disk adds to the kernel's entropy."""
    iostats: StrictBool | None = None
    """Whether the kernel keeps statistics of requests; `written_bytes_per_query` needs them."""
    stable_writes: StrictBool | None = None
    """Whether pages stay as they are while they are written."""
    iosched: dict[Tunable, StrictInt] = Field(default_factory=dict)
    """Tunables of the `scheduler`, which must be given."""


class ArraySection(FileSection):
    """``[array]``: what ``[stack] array`` is made with, in the words of mdadm and of /sys/block/MD/md (md(4))."""

    chunk: Annotated[Size, Field(ge=4096, le=64 * 1024**2), AfterValidator(_power_of_two)] | None = None
    """Bytes of a chunk, a power of two; 512 KiB if not given. Not with `raid1`."""
    bitmap: Literal["internal", "none"] | None = None
    """Write-intent bitmap; mdadm's own choice if not given. Not with `raid0` or `linear`."""
    state: Literal["clean", "degraded", "rebuilding"] = "clean"
    """`degraded`: its last disk is missing. `rebuilding`: that disk has come back empty. Not with `raid0` or
    `linear`.
    """
    sync_speed_min: Annotated[StrictInt, Field(ge=1)] | None = None
    """KiB/s that a rebuild takes of each disk at least."""
    sync_speed_max: Annotated[StrictInt, Field(ge=1)] | None = None
    """The same at most."""
    stripe_cache_size: Annotated[StrictInt, Field(ge=17, le=32768)] | None = None
    """Pages of each disk that `raid5` and `raid6` keep in memory."""


class CacheSection(FileSection):
    """``[cache]``: how ``[stack] cache`` works, in the kernel's words."""

    high_watermark: Annotated[StrictInt, Field(ge=1, le=100)] = 50
    """Percent of a `writecache` at which the kernel begins to write back."""
    low_watermark: Annotated[StrictInt, Field(ge=0, le=100)] = 45
    """Percent at which it stops."""
    max_age: Annotated[StrictInt, Field(ge=1, le=86_400_000)] | None = None
    """Milliseconds after which a `writecache` writes back what waits."""
    cache_mode: Literal["writeback", "writethrough"] = "writeback"
    """When a write to a `dm-cache` or `bcache` is done: once it is on the cache's disk, or once it is on both."""
    sequential_cutoff: Annotated[Size, Field(ge=0)] | None = None
    """From so many bytes in a row on `bcache` leaves a read or write to the disk behind it; `"0B"`: never."""


class EncryptionSection(FileSection):
    """``[encryption]``: how ``[stack] encryption`` encrypts, in the words of cryptsetup."""

    cipher: Annotated[
        str, matching(r"[a-z0-9]+-[a-z0-9]+-[a-z0-9:]+", 'must be CIPHER-MODE-IV, such as "aes-xts-plain64"')
    ] = "aes-xts-plain64"
    """Cipher, mode and IV."""
    key_bits: Literal[128, 192, 256, 512] = 512
    """Bits of the key; of XTS, 512 is AES-256."""
    sector: Literal[512, 1024, 2048, 4096] = 4096
    """Bytes that are encrypted as one."""
    workqueues: StrictBool = True
    """Whether threads of the kernel encrypt, or the process that submits a request."""


class VolumeSection(FileSection):
    """``[volume]``: how ``[stack] volume`` is made, in the words of lvcreate."""

    stripe: Annotated[Size, Field(ge=4096, le=4 * 1024**2), AfterValidator(_power_of_two)] = 64 * 1024
    """Bytes of a stripe of `striped`, a power of two."""
    pool_chunk: Annotated[Size, Field(ge=64 * 1024, le=1024**3), AfterValidator(_power_of_two)] = 64 * 1024
    """Bytes that `thin` takes from its pool at a first write, a power of two."""


class FilesystemSection(FileSection):
    """``[filesystem]``: how it is made and mounted, in the words of mkfs and mount."""

    mkfs: Options = ""
    """Further arguments of mkfs: `"-b 4096 -O ^has_journal"`."""
    mount: Options = ""
    """Mount options: `"noatime,nobarrier"`; `"defaults"` is a level without any. Read back."""
    arc_max: Annotated[Size, Field(ge=64 * 1024**2)] | None = None
    """The most that OpenZFS's cache takes of a virtual machine's memory (`zfs_arc_max`). Read back."""


class PlaceSection(FileSection):
    """``[server.place]``: on which disk of ``[stack.disks]`` what of the server lies.

    Each field can be a factor; `"data"`, which is meant where none is given, is beside the data. The server's variables
    are set accordingly and read back; `plan` refuses what a server has no variable for.
    """

    innodb_log: str = DATA_DISK
    """InnoDB's redo log."""
    binlog: str = DATA_DISK
    """The binary log, which must be on (`log_bin`)."""
    undo: str = DATA_DISK
    """InnoDB's undo tablespaces."""
    doublewrite: str = DATA_DISK
    """InnoDB's doublewrite files; MySQL 8.0.20 and newer have them."""
    tmpdir: str = DATA_DISK
    """Temporary files."""


ReplicaMode = Literal["none", "async", "semisync"]


def _replica_mode(value: object) -> object:
    if isinstance(value, str) and value.lower() == "galera":
        raise ValueError('is a cluster of several nodes; give mode = "galera" in [server.cluster]')
    if isinstance(value, str) and value.lower() == "group":
        raise ValueError(
            "is group replication, which dbdyno does not start; give async or semisync here, or measure a "
            'cluster of your own as an external server (stack.server = "mysql://...")'
        )
    return value


class ReplicaSection(FileSection):
    """``[server.replica]``: a second server beside the measured one, which follows its binary log.

    Each field can be a factor; `["none", "async", "semisync"]` asks what a replica costs. The measured server must
    write the binary log in all treatments (`log_bin = true` in `[server.settings]`).
    """

    mode: Annotated[ReplicaMode, BeforeValidator(_replica_mode)] = "none"
    """With `semisync` a commit waits until the replica has written it to its relay log."""
    disk: str = DATA_DISK
    """A disk of `[stack.disks]` that holds nothing else; `"data"`: on that of the data."""
    wait_point: Literal["after_sync", "after_commit"] = "after_sync"
    """With `semisync`: whether a commit waits before or after the engine's own commit."""
    timeout: Annotated[Duration, Field(ge=0.1, le=3600)] = 10.0
    """With `semisync`: a trial in which a commit waited longer fails."""
    round_trip: Annotated[Duration, Field(ge=0, le=10)] = 0.0
    """The round trip time of a [network between the two](layers.md#replica); what is on the way is lost in a
    failover.
    """
    cpus: Annotated[str, AfterValidator(_cpu_list)] | None = None
    """Processors of the replica; all if not given."""
    settings: dict[Variable, Annotated[Setting, AfterValidator(_no_newline)]] = Field(default_factory=dict)
    """Variables that differ from `[server.settings]`; read back."""

    @property
    def own_disk(self) -> str:
        """The disk of ``[stack.disks]`` that it stands on; empty: that of the data."""
        return "" if self.disk == DATA_DISK else self.disk


def _disk_list(text: str) -> str:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise ValueError('names no disk between two commas; give "data", or a disk for each further node: "b,c"')
    if twice := next((name for place, name in enumerate(names) if name != DATA_DISK and name in names[:place]), None):
        raise ValueError(f'names "{twice}" twice; each node has a disk of its own, or that of the data')
    return ",".join(names)


class ClusterSection(FileSection):
    """``[server.cluster]``: a cluster whose first node is the measured server, which alone has the load.

    Each field can be a factor; `["none", "galera"]` asks what a cluster costs.
    """

    mode: Literal["none", "galera"] = "none"
    """With `galera` a commit waits until [all nodes](layers.md#cluster) have received its write set."""
    nodes: Annotated[StrictInt, Field(ge=1, le=5)] = 3
    """How many, the measured one among them."""
    disks: Annotated[str, AfterValidator(_disk_list)] = DATA_DISK
    """Disks of `[stack.disks]` that hold nothing else, one for each node but the first: `"second,third"`; `"data"`: all
    on that of the data.
    """
    round_trip: Annotated[Duration, Field(ge=0, le=1)] = 0.0
    """The round trip time of a network between any two nodes; what is on the way is lost in a failover."""
    cpus: Annotated[str, AfterValidator(_cpu_list)] | None = None
    """Processors of the other nodes; all if not given."""
    gcs_fc_limit: Annotated[StrictInt, Field(ge=1, le=1_000_000)] | None = None
    """Write sets that may wait on a node before it has all others pause (`gcs.fc_limit` of `wsrep_provider_options`, as
    are the four below).
    """
    gcs_fc_factor: Annotated[float, Field(ge=0, le=1)] | None = None
    """The part of that limit to which they must have fallen before all go on."""
    gcache_size: Annotated[Size, Field(ge=1024**2)] | None = None
    """Bytes of each node's file of recent write sets; 128 MiB if not given."""
    evs_send_window: Annotated[StrictInt, Field(ge=1, le=1024)] | None = None
    """Messages that a node may have underway."""
    evs_user_send_window: Annotated[StrictInt, Field(ge=1, le=1024)] | None = None
    """Messages with write sets among them; not more than `evs_send_window`."""

    @property
    def own_disks(self) -> tuple[str, ...]:
        """The disk of ``[stack.disks]`` of each node but the first; empty: that of the data."""
        names = self.disks.split(",")
        names = names * (self.nodes - 1) if names == [DATA_DISK] else names[: self.nodes - 1]
        return tuple("" if name == DATA_DISK else name for name in names)

    @property
    def options(self) -> dict[str, int | float]:
        """What of Galera the study sets, by its own names."""
        given = {name: getattr(self, name.replace(".", "_", 1)) for name in GALERA_OPTIONS}
        return {name: value for name, value in given.items() if value is not None}


class ServerSection(FileSection):
    """``[server]``: how it is run; ``[server.settings]`` takes any variable of it."""

    option_file: Line | None = None
    """A file with the [password](servers.md#an-external-server) of an external server, relative to the study."""
    whole_server_may_change: StrictBool = False
    """Whether a `script` on an external server runs with the login's rights, instead of an [account of its
    own](servers.md#an-external-server).
    """
    ionice: IoClass | None = None
    """I/O class and level of the server. `realtime` needs root."""
    nice: Annotated[StrictInt, Field(ge=-20, le=19)] | None = None
    """Priority: 19 yields to all others; below dbdyno's own it needs root."""
    allocator: Literal["system", "jemalloc", "tcmalloc"] | None = None
    """The server's memory allocator, preloaded by `LD_PRELOAD`; read back."""
    numa: NumaPolicy | None = None
    """NUMA nodes of the server's memory, by numactl: `interleave`, `local`, `bind:NODE`, `prefer:NODE`. Read back."""
    settings: dict[Variable, Annotated[Setting, AfterValidator(_no_newline)]] = Field(default_factory=dict)
    """Variables of the server by their whole names; read back."""
    place: PlaceSection = Field(default_factory=PlaceSection)
    """What lies on which disk."""
    replica: ReplicaSection = Field(default_factory=ReplicaSection)
    """A replica beside it."""
    cluster: ClusterSection = Field(default_factory=ClusterSection)
    """A cluster whose first node it is."""


class HostSection(FileSection):
    """``[host]``: the machine itself, while a trial runs.

    Settings of its kernel have the kernel's names; each is set before the stack is raised, read back, and put back
    after the trial: [layers.md](layers.md#host_settings).
    """

    awake: Annotated[bool | Literal["auto"], BeforeValidator(_awake)] = False
    """Whether processors are [kept from halting](layers.md#host); `"auto"`: on a virtual machine that allows it."""
    transparent_hugepage: Literal["always", "madvise", "never"] | None = None
    """Whether the kernel gives huge pages unasked (`/sys/kernel/mm/transparent_hugepage/enabled`)."""
    transparent_hugepage_defrag: Literal["always", "defer", "defer+madvise", "madvise", "never"] | None = None
    """Whether a program waits while the kernel frees a huge page for it (`transparent_hugepage/defrag`)."""
    nr_hugepages: Annotated[StrictInt, Field(ge=0)] | None = None
    """Huge pages that are reserved, such as for a server with `large_pages`."""
    swappiness: Annotated[StrictInt, Field(ge=0, le=200)] | None = None
    """How readily the kernel swaps programs out to keep cached files; before Linux 5.8 at most 100."""
    vfs_cache_pressure: Annotated[StrictInt, Field(ge=0, le=10_000)] | None = None
    """How readily the kernel forgets folders and inodes."""
    dirty_ratio: Annotated[StrictInt, Field(ge=1, le=100)] | None = None
    """Percent of free memory at which a program that writes must wait for the disk. **Risk**: a crash of the system
    loses up to this much of what was never synced.
    """
    dirty_bytes: Annotated[Size, Field(ge=8192)] | None = None
    """The same in bytes, such as `"64MiB"`. Not with `dirty_ratio`."""
    dirty_background_ratio: Annotated[StrictInt, Field(ge=0, le=100)] | None = None
    """Percent of free memory above which the kernel writes to the disk by itself."""
    dirty_background_bytes: Annotated[Size, Field(ge=1)] | None = None
    """The same in bytes. Not with `dirty_background_ratio`."""
    dirty_expire_centisecs: Annotated[StrictInt, Field(ge=0)] | None = None
    """Age in hundredths of a second at which the kernel writes out what no program has synced. **Risk**: as with
    `dirty_ratio`.
    """
    dirty_writeback_centisecs: Annotated[StrictInt, Field(ge=0)] | None = None
    """How often the kernel looks for such data; 0: never."""
    zone_reclaim_mode: Annotated[StrictInt, Field(ge=0, le=7)] | None = None
    """Whether a NUMA node frees its own memory before it takes another's: a sum of 1, 2 and 4."""
    numa_balancing: Annotated[StrictInt, Field(ge=0, le=3)] | None = None
    """Whether the kernel moves memory to the NUMA node that uses it: 0 no, 1 yes, 2 between tiers of memory."""
    io_uring_disabled: Annotated[StrictInt, Field(ge=0, le=2)] | None = None
    """Who may use io_uring: 0 everybody, 1 a group, 2 nobody."""
    cpu_governor: Identifier | None = None
    """What sets the frequency of all processors, such as `"performance"` (`cpufreq/scaling_governor`)."""

    @property
    def settings(self) -> dict[str, int | str]:
        """What of the kernel is to be set, by field."""
        values: dict[str, int | str] = self.model_dump(exclude={"awake"}, exclude_none=True)
        return values


class ProbesSection(FileSection):
    """``[probes]``: what is watched beside the usual."""

    trace: StrictBool = False
    """Whether the kernel's [block trace](probes.md#block_trace) is read."""


class DesignSection(FileSection):
    """``[design]``: how the question is put to the host."""

    baseline: dict[str, Setting] = Field(default_factory=dict)
    """What the others are compared with; a factor that is left out has its first level."""
    compare: Literal["baseline", "one-factor", "every-pair"] = "baseline"
    """`baseline`: every treatment against the baseline. `one-factor`: against the one that has one factor at its
    baseline level, the others alike. `every-pair`: every two, which needs more blocks.
    """
    compare_factors: list[Line] = Field(default_factory=list)
    """With `one-factor`: the factors that are compared; all if not given."""
    hard_to_change: list[Line] = Field(default_factory=list)
    """Factors that change between whole plots only; another factor must vary."""
    blocks: Annotated[StrictInt, Field(ge=1, le=MAX_BLOCKS)] | None = None
    """A fixed number of blocks, looked at once. Not with `until` or `max_blocks`."""
    until: Literal["decided", "precise"] | None = None
    """When measuring stops: no comparison is undecided (`decided`, if not given), or no interval wider than wanted."""
    max_blocks: Annotated[StrictInt, Field(ge=MIN_BLOCKS, le=MAX_BLOCKS)] | None = None
    """The most blocks that are run: 40 if not given."""
    half_width: Annotated[Fraction, Field(gt=0, lt=1)] | None = None
    """With `until = "precise"`: how far a 95 % interval may reach to either side."""
    budget: Annotated[Duration, Field(gt=0)] | None = None
    """The time for all blocks: none but the first begins that would end after it."""
    margin: Annotated[Fraction, Field(gt=0, lt=1)] = DEFAULT_MARGIN
    """Differences smaller than this don't matter to you."""
    metric: Literal[tuple(METRICS)] | None = None  # type: ignore[valid-type]
    """What verdicts are about; if not given, what the kind of load is about: `queries_per_second`, or `rows_per_second`
    with `ingest` and `bulk`.
    """
    interference: Interference = "repeat"
    """After a trial that met interference `repeat` repeats its block, at most twice; `note`, the default beside
    `[crash]`, marks it.
    """
    settle: Annotated[Settle, BeforeValidator(_settle)] | None = None
    """A rest when the stack is raised and right before the load, against [carry-over](statistics/design.md#carry-over).
    `trial`: an unmeasured trial of the baseline before each.
    """
    secondary_metrics: list[Line] | None = None
    """Further metrics, looked at as hints (exploratory). If not given: `queries_per_second`, `latency_ms_p99`,
    `client_cpu_us_per_query`, `server_cpu_us_per_query`, `written_bytes_per_query`; for
    [other programs](tools.md) what they report. `[]` for none.
    """
    steadiness: StrictBool = False
    """Verdicts on which of two varies less from second to second, in trials of 10 s or more."""
    seed: Annotated[StrictInt, Field(ge=0, lt=2**63)] | None = None
    """Decides the order of trials, literals and a drive's chances; drawn if not given."""


class FailIfSection(FileSection):
    """``[fail_if]``: what makes `run` and `report` end with exit code 3."""

    slower: Annotated[Fraction, Field(gt=0, lt=1)] | None = None
    """A comparison that is *slower*, by an estimate of [so much or more](ci.md#what-a-study-wants-to-fail); at least
    the `margin`.
    """
    faster: Annotated[Fraction, Field(gt=0, lt=1)] | None = None
    """The same of *faster*."""
    unsafe: StrictBool = False
    """Beside `[crash]`: a treatment that *loses commits* or is *not crash-safe*."""
    undecided: Literal["fail", "pass"] = "fail"
    """What can't be judged: exit code 4 (`fail`), or 0."""


class BootSection(FileSection):
    """``[hosts.boot]``: the kernel that a host under test is started anew with; see [hosts.md](hosts.md#kernels)."""

    kernel: Annotated[
        Line,
        matching(r"[A-Za-z0-9][A-Za-z0-9._+~-]{0,63}", 'must be a version as uname -r says it, as "6.1.0-28-amd64"'),
    ]
    """Versions as `uname -r` says them, installed on each host."""


class OfHostsSection(FileSection):
    """What of ``[hosts]`` a treatment has."""

    boot: BootSection | None = None


class TrialSpec(FileSection):
    """One treatment, whole: every field has one value."""

    stack: StackSection
    queue: QueueSection = Field(default_factory=QueueSection)
    array: ArraySection = Field(default_factory=ArraySection)
    cache: CacheSection = Field(default_factory=CacheSection)
    encryption: EncryptionSection = Field(default_factory=EncryptionSection)
    volume: VolumeSection = Field(default_factory=VolumeSection)
    filesystem: FilesystemSection = Field(default_factory=FilesystemSection)
    server: ServerSection = Field(default_factory=ServerSection)
    host: HostSection = Field(default_factory=HostSection)
    workload: Annotated[Workload, Field(discriminator="kind")]
    probes: ProbesSection = Field(default_factory=ProbesSection)
    crash: CrashSection | None = None
    hosts: OfHostsSection = Field(default_factory=OfHostsSection)
    beside: dict[str, Annotated[Beside, Field(discriminator="kind")]] = Field(default_factory=dict)

    @property
    def loads_beside(self) -> dict[str, BesideSection]:
        """What runs beside the judged load, by name."""
        return running(self.beside)

    @property
    def with_own_tables(self) -> dict[str, BesideSection]:
        """Those of them that have tables of their own, which dbdyno makes.

        A script with the ``setup`` of the judged load works on its tables.
        """
        shared = getattr(self.workload, "setup", None)
        loads = self.loads_beside.items()
        return {
            name: load
            for name, load in loads
            if load.has_data and not (shared and getattr(load, "setup", None) == shared)
        }

    @property
    def loads(self) -> tuple[WorkloadSection, ...]:
        """The judged load, and those beside it."""
        return self.workload, *self.loads_beside.values()

    @property
    def connections(self) -> int:
        """How many all of them may open to the server."""
        return sum(load.connections for load in self.loads)

    @property
    def booted_kernel(self) -> str:
        """The kernel that its host is started anew with; empty where it may be any."""
        return self.hosts.boot.kernel if self.hosts.boot else ""

    @property
    def has_server(self) -> bool:
        """Whether a server is the top of the stack; else the load works on the filesystem."""
        return self.workload.SERVER != "none" and self.stack.server != NO_SERVER and not self.stack.is_simulated

    @property
    def has_replica(self) -> bool:
        """Whether a replica follows the server."""
        return self.server.replica.mode != "none"

    @property
    def has_cluster(self) -> bool:
        """Whether the server is the first node of a cluster."""
        return self.server.cluster.mode != "none"

    @property
    def places(self) -> dict[str, str]:
        """What of the server lies on a disk of its own, and the name of that."""
        return {purpose: disk for purpose, disk in self.server.place if disk != DATA_DISK}

    @property
    def cache_disk(self) -> str:
        """The disk of ``[stack.disks]`` that a cache takes; empty where there is no cache."""
        return "" if self.stack.cache == "none" else CACHE_DISK

    @property
    def by_disk(self) -> "dict[str, TrialSpec]":
        """Each disk beside that of the data that holds anything, as the treatment would be if its data lay there."""
        used = {self.cache_disk, *self.places.values(), *([self.server.replica.own_disk] if self.has_replica else [])}
        used |= set(self.server.cluster.own_disks) if self.has_cluster else set()
        return {name: self._on(disk) for name, disk in self.stack.disks.items() if name in used}

    def _on(self, disk: NamedDiskSection) -> "TrialSpec":
        fields = {name: getattr(disk, name) for name in ("device", "serial", "size", "scheduler", "filesystem")}
        stack = self.stack.model_copy(update={**fields, **_NOTHING_BETWEEN, "devices": 1, "disks": {}})
        filesystem = FilesystemSection(mkfs=disk.mkfs, mount=disk.mount)
        return self.model_copy(update={"stack": stack, "filesystem": filesystem, "queue": QueueSection()})

    @property
    def is_confined(self) -> bool:
        """Whether its SQL is the study's own, and may not change the whole of an external server."""
        return self.workload.kind in USERS_SQL and not self.server.whole_server_may_change


_NOTHING_BETWEEN = dict.fromkeys(BETWEEN, "none")
FACTOR_SECTIONS = (
    "stack", "queue", "queue.iosched", *BETWEEN, "filesystem", "server", "server.settings", "server.place",
    "server.replica", "server.replica.settings", "server.cluster", "host", "workload", "hosts.boot",
)  # fmt: skip
DISKS = ("stack", "disks")


def factor_sections(body: Mapping[str, Any]) -> list[str]:
    """Every section of a study in which a list is a factor, those of its named disks after that of the stack."""
    stack = body.get("stack")
    disks = stack.get("disks") if isinstance(stack, dict) else None
    names = [name for name in disks if re.fullmatch(r"\w+", name)] if isinstance(disks, dict) else []
    of_disks = [".".join((*DISKS, name)) for name in names]
    return [FACTOR_SECTIONS[0], *of_disks, *FACTOR_SECTIONS[1:]]


BOOTED_KERNEL = ("hosts", "boot", "kernel")


# ``[hosts]``: the hosts that a study is run on, and what is fixed to each of them.


HOSTS_MAX = 100


def _disk(device: str) -> str:
    if not (device.startswith("/") and is_real(device)):
        raise ValueError("is not a whole path of a disk, such as /dev/disk/by-id/... or /dev/nvme0n1")
    return device


class DiskSection(FileSection):
    """``[hosts.disk.NAME]``: the real disk of one host under test, all of which is erased."""

    device: Annotated[Line, AfterValidator(_disk)]
    """`"/dev/disk/by-id/..."`, or any path beside the `serial`."""
    serial: Line | None = None
    """As `[stack] serial`, on that host."""


class FleetSection(FileSection):
    """``[hosts]``: the hosts that the study is run on, each with whole blocks of its own; see [hosts.md](hosts.md)."""

    under_test: Annotated[list[HostName], Field(min_length=1, max_length=HOSTS_MAX)]
    """Names from the file of hosts, such as `["db1", "db2"]`. Each has the role `server` there."""
    level: dict[Line, dict[HostName, Line]] = Field(default_factory=dict)
    """What can't be changed on the hosts, such as `drive = { db1 = "hdd", db2 = "ssd" }`."""
    disk: dict[HostName, DiskSection] = Field(default_factory=dict)
    """The real disk of each host, in a section such as `[hosts.disk.db1]`; `[stack]` then has no `device`."""


def fleet_mistakes(
    fleet: FleetSection, factors: Collection[str], body: dict[str, Any], kinds: Collection[str]
) -> Iterator[Mistake]:
    """Every rule that ``[hosts]`` breaks, by itself or beside the rest.

    ``factors`` are what treatments vary, ``kinds`` those of their stacks.
    """
    hosts = fleet.under_test
    for index, host in enumerate(hosts):
        if host in hosts[:index]:
            yield Mistake(("hosts", "under_test", index), f"names {shown(host)} twice")
    for name, of in fleet.level.items():
        if name in factors:
            yield Mistake(("hosts", "level", name), "is a factor of the study too; call it by another name")
        for host in of.keys() - set(hosts):
            text = f"is not under test; those are {', '.join(hosts)}{did_you_mean(host, hosts)}"
            yield Mistake(("hosts", "level", name, host), text)
        if lacking := [host for host in hosts if host not in of]:
            yield Mistake(("hosts", "level", name), f"has no level for {', '.join(lacking)}; every host has one")
    if fleet.level and "crash" in body:
        text = "can't be given with [crash]: it compares speed. What each host lost is in the report without it"
        yield Mistake(("hosts", "level"), text)
    yield from _beside(hosts, body, kinds)


def _beside(hosts: list[str], body: dict[str, Any], kinds: Collection[str]) -> Iterator[Mistake]:
    """What can't be run on several hosts."""
    place = ("hosts", "under_test")
    clients = body.get("workload", {}).get("clients_from", [])
    for index, host in enumerate(hosts):
        if host in clients:
            reason = "which workload.clients_from names too; a host is measured, or it offers the load"
            yield Mistake((*place, index), f"names {shown(host)}, {reason}")
    if "simulated" in kinds:
        yield Mistake(place, "is of no use to simulated stacks, which use no host; leave [hosts] out")
    if "external" in kinds:
        yield Mistake(place, "can't be given with an external server, which is on none of them; leave [hosts] out")
    if IMAGE in kinds:
        yield Mistake(place, "can't be given with stack.image, which lies on this host alone; leave [hosts] out")


# ``[cost]``: what the devices of a study cost, and what is to be served with them; schema only.


Amount = Annotated[StrictInt | StrictFloat, Field(ge=0)]
Above0 = Annotated[StrictInt | StrictFloat, Field(gt=0)]
Count = Annotated[StrictInt, Field(ge=1, le=10_000)]
Replicas = Annotated[StrictInt, Field(ge=0, le=100)]


class DeviceCostSection(FileSection):
    """``[cost."NAME"]``: one device, by the name that the study has for it. Figures are those of one drive."""

    source: Line
    """The source of the figures, and their date."""
    price: Amount | None = None
    """The price of one drive."""
    drives: Count = 1
    """The drives that hold one copy of the data, such as 4 for RAID 10 over four."""
    data_drives: Count | None = None
    """How many of these hold different data: 1 of RAID 1, half of RAID 10, all but one of RAID 5; all if not given."""
    replicas: Replicas | None = None
    """Further copies of the whole; those of [cost] if not given."""
    capacity: Size | None = None
    """The capacity of one drive."""
    endurance: Annotated[Size, Field(gt=0)] | None = None
    """The TBW of one drive."""
    rated_write_amplification: Annotated[StrictInt | StrictFloat, Field(ge=1)] = 1.0
    """What the maker's TBW allows for."""
    power_watts: Amount | None = None
    """The power of one drive at work."""
    power_watts_idle: Amount | None = None
    """The power of an idle drive; as at work if not given."""


class CostSection(FileSection):
    """``[cost]``: what is the same for all devices."""

    currency: Line
    """The currency of all prices."""
    life_years: Annotated[StrictInt | StrictFloat, Field(gt=0, le=100)] = 5.0
    """The years that the devices are to serve."""
    used: Annotated[Fraction, Field(gt=0, le=1)] = 1.0
    """The share of that time under this load."""
    price_per_kwh: Amount | None = None
    """The price of power."""
    replicas: Replicas = 0
    """Further copies of all data."""
    queries_per_second: Above0 | None = None
    """The queries per second that are to be served."""
    data: Size | None = None
    """The size of the data to be held."""


@dataclass(frozen=True)
class StudyCost:
    """All of it."""

    common: CostSection
    devices: dict[str, DeviceCostSection]


# ``[[reported]]``: a published table, to stand beside what is measured; schema only.


Figure = Annotated[StrictInt | StrictFloat, Field(gt=0)]


class RowSection(FileSection):
    """One figure: of which treatment, what its author called it, and its value."""

    levels: dict[str, Setting]
    """Levels of factors, until one treatment is left."""
    as_: Annotated[Line, Field(alias="as")] = ""
    """What the author called it."""
    value: Figure
    """In the metric's unit."""
    min: Figure | None = None
    """The smallest of the author's repetitions."""
    max: Figure | None = None
    """The largest of the author's repetitions."""


class ClaimSection(FileSection):
    """A sentence of the author's; with ``treatment`` and ``baseline`` it is held against what is measured."""

    text: Line
    """The sentence. With this alone it is quoted."""
    treatment: dict[str, Setting] | None = None
    """The treatment that it is about; all pairs that are alike in factors that neither this nor `baseline` names."""
    baseline: dict[str, Setting] | None = None
    """What the treatment is compared with."""
    direction: Direction | None = None
    """What the treatment is said to be."""
    times_min: Figure | None = None
    """How many times as fast it is said to be, at least."""
    times_max: Figure | None = None
    """The same, at most."""


class ReportedSection(FileSection):
    """A published table and what its author concluded."""

    source: Line
    """Who published it."""
    setup: Line = ""
    """What it was measured on."""
    metric: Literal[tuple(REPORTED_METRICS)] | None = None  # type: ignore[valid-type]
    """What the figures are; the study's metric if not given."""
    unit: Line = ""
    """The unit of the figures, as the table has it."""
    rows: list[RowSection] = Field(default_factory=list)
    """The figures of the table."""
    claims: list[ClaimSection] = Field(default_factory=list)
    """What its author concluded; each is held against what is measured."""
    differs_because: Line = ""
    """Why the figures here differ. Printed where something does not agree."""
