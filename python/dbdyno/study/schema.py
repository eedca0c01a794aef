"""What a study file may say: one class per section. A list in a study is a factor; here every field is one level."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictBool, StrictInt

from dbdyno.analysis.min_blocks import MIN_BLOCKS
from dbdyno.filesystems.catalogue import IN_MEMORY, KINDS
from dbdyno.store.records import METRICS, Disturbed
from dbdyno.study.cpus import cpu_numbers
from dbdyno.study.drives import is_emulated, is_real
from dbdyno.study.section import Identifier, Line, Section, Setting
from dbdyno.study.units import Duration, Fraction, Size
from dbdyno.study.workloads import Workload

MAX_BLOCKS = 1000

# nr_requests of a blk-mq kernel: BLKDEV_MIN_RQ .. 16 x 128 (block/blk-mq.c); without a scheduler the hardware's depth.
NR_REQUESTS_MIN, NR_REQUESTS_MAX, NR_REQUESTS_NONE_MAX = 4, 2048, 128


def _setting_name(name: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        msg = "is not a server variable; names are lower case with underscores, such as innodb_buffer_pool_size"
        raise ValueError(msg)
    return name


def _tunable_name(name: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        msg = "is not a tunable; names are those of /sys/block/DISK/queue/iosched"
        raise ValueError(msg)
    return name


def _io_class(text: str) -> str:
    if not re.fullmatch(r"none|idle|(best-effort|realtime):[0-7]", text):
        msg = 'is none of "none", "idle", "best-effort:0" to "best-effort:7", "realtime:0" to "realtime:7"'
        raise ValueError(msg)
    return text


def _cpu_list(text: str) -> str:
    try:
        cpu_numbers(text)
    except ValueError as error:
        msg = f'{error}; give numbers and ranges, such as "0" or "0-3,8"'
        raise ValueError(msg) from None
    return text


def _no_newline(value: Setting) -> Setting:
    if isinstance(value, str) and any(ord(char) < ord(" ") for char in value):
        msg = "must not hold control characters"
        raise ValueError(msg)
    return value


def _blk_mq_depth(number: int) -> int:
    if not NR_REQUESTS_MIN <= number <= NR_REQUESTS_MAX:
        msg = f"no blk-mq kernel allows; give {NR_REQUESTS_MIN} to {NR_REQUESTS_MAX}"
        raise ValueError(msg)
    return number


def _options(text: str) -> str:
    if not re.fullmatch(r"[\w\-+=,.:/^ ]*", text):
        msg = "holds a character that no mkfs or mount option needs"
        raise ValueError(msg)
    return text.strip()


Options = Annotated[str, AfterValidator(_options)]


class StudySection(Section):
    """``[study]``: what is asked."""

    title: Line
    question: str = ""
    expect: str = ""  # what the author expects to observe, in prose
    result: str = ""  # what came out, in prose


class StackSection(Section):
    """``[stack]``: what the queries stand on."""

    device: Line
    serial: Line | None = None  # identifies a real device that has no /dev/disk/by-id name
    size: Annotated[Size, Field(ge=64 * 1024**2)] | None = None  # of an emulated disk, or of a tmpfs
    scheduler: Literal["none", "mq-deadline", "kyber", "bfq"] | None = None
    filesystem: Literal[tuple(KINDS)] | None = None  # type: ignore[valid-type]
    server: Line = "mariadb"
    engine: Identifier = "innodb"
    memory: Annotated[Size, Field(ge=64 * 1024**2)] | None = None  # bounds server + page cache
    server_cpus: Annotated[str, AfterValidator(_cpu_list)] | None = None  # that the server may use
    client_cpus: Annotated[str, AfterValidator(_cpu_list)] | None = None

    @property
    def in_memory(self) -> bool:
        """Whether there is no device below the filesystem, whatever ``device`` says for the other treatments."""
        return self.filesystem == IN_MEMORY

    @property
    def on_emulated_disk(self) -> bool:
        """Whether it stands on an emulated disk."""
        return is_emulated(self.device) and not self.in_memory

    @property
    def on_real_disk(self) -> bool:
        """Whether it stands on a block device of the host's, all of which it erases."""
        return is_real(self.device)


class QueueSection(Section):
    """``[queue]``: the kernel's block queue; ``[queue.iosched]`` is the chosen scheduler's own part of it.

    Names are those of /sys/block/DISK/queue (Documentation/ABI/stable/sysfs-block).
    """

    nr_requests: Annotated[StrictInt, AfterValidator(_blk_mq_depth)] | None = None
    read_ahead_kb: Annotated[StrictInt, Field(ge=0, le=1024 * 1024)] | None = None
    rotational: StrictBool | None = None
    wbt_lat_usec: Annotated[StrictInt, Field(ge=0)] | None = None
    write_cache: Literal["write back", "write through"] | None = None
    max_sectors_kb: Annotated[StrictInt, Field(ge=1)] | None = None
    nomerges: Annotated[StrictInt, Field(ge=0, le=2)] | None = None
    rq_affinity: Annotated[StrictInt, Field(ge=0, le=2)] | None = None
    discard_max_bytes: Annotated[StrictInt, Field(ge=0)] | None = None
    io_timeout: Annotated[StrictInt, Field(ge=1)] | None = None  # milliseconds
    io_poll: StrictBool | None = None
    io_poll_delay: Annotated[StrictInt, Field(ge=-1)] | None = None
    add_random: StrictBool | None = None
    iostats: StrictBool | None = None
    stable_writes: StrictBool | None = None
    iosched: dict[Annotated[str, AfterValidator(_tunable_name)], StrictInt] = Field(default_factory=dict)


class FilesystemSection(Section):
    """``[filesystem]``: how it is made and mounted, in the words of mkfs and mount."""

    mkfs: Options = ""
    mount: Options = ""


class ServerSection(Section):
    """``[server]``: how it is run; ``[server.settings]`` takes any variable of it."""

    ionice: Annotated[str, AfterValidator(_io_class)] | None = None  # class and level of its I/O
    settings: dict[Annotated[str, AfterValidator(_setting_name)], Annotated[Setting, AfterValidator(_no_newline)]] = (
        Field(default_factory=dict)
    )


class DesignSection(Section):
    """``[design]``: how the question is put to the host."""

    baseline: dict[str, Setting] = Field(
        default_factory=dict
    )  # factor -> level; a factor left out means its first level
    compare: Literal["baseline", "one-factor", "every-pair"] = "baseline"
    hard_to_change: list[Line] = Field(default_factory=list)  # factors varied between whole plots only
    blocks: Annotated[StrictInt, Field(ge=1, le=MAX_BLOCKS)] | None = None  # fixed; else the data decide
    until: Literal["decided", "precise"] | None = None
    max_blocks: Annotated[StrictInt, Field(ge=MIN_BLOCKS, le=MAX_BLOCKS)] | None = None
    half_width: Annotated[Fraction, Field(gt=0, lt=1)] | None = None  # of an interval that is precise
    budget: Annotated[Duration, Field(gt=0)] | None = None  # no block is begun that would end after it
    margin: Annotated[Fraction, Field(gt=0, lt=1)] = 0.03
    metric: Literal[tuple(METRICS)] | None = None  # type: ignore[valid-type]  # None: what the kind of load is about
    disturbed: Disturbed = "repeat"  # a trial beside which others used the host too much
    screened: list[Line] | None = None  # further metrics, looked at as hints; None: the usual ones
    seed: Annotated[StrictInt, Field(ge=0, lt=2**63)] = 1


class TrialSpec(Section):
    """One treatment, whole: every field has one value."""

    stack: StackSection
    queue: QueueSection = QueueSection()
    filesystem: FilesystemSection = FilesystemSection()
    server: ServerSection = ServerSection()
    workload: Annotated[Workload, Field(discriminator="kind")]


FACTOR_SECTIONS = ("stack", "queue", "queue.iosched", "filesystem", "server", "server.settings", "workload")
