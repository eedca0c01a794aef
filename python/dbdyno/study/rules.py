"""What can't be combined: rules over one whole treatment that need no look at the host."""

import os
from collections.abc import Iterator
from os.path import normpath
from pathlib import Path

from dbdyno.filesystems import KINDS, OPENZFS, fits
from dbdyno.model.design import BOOTED, IMAGE
from dbdyno.model.disks import DATA_DISK
from dbdyno.model.quantity import is_off
from dbdyno.model.similar import did_you_mean
from dbdyno.mysql.server_url import server_url
from dbdyno.mysql.settings import (
    BINARY_LOG,
    BUFFER_POOL,
    CLUSTER_SETTINGS,
    INNODB,
    NEEDED_BY_CLUSTER,
    OF_DATA,
    is_of_mysql,
    setting_bytes,
    setting_mistake,
)
from dbdyno.study.beside import BesideSection, MariabackupBeside
from dbdyno.study.document import WorkloadSection
from dbdyno.study.drives import HERE, MEMORY, is_emulated
from dbdyno.study.mistakes import Mistake, shown
from dbdyno.study.schema import (
    DISKS,
    MAX_BLOCKS,
    NR_REQUESTS_MAX,
    NR_REQUESTS_MIN,
    NR_REQUESTS_NONE_MAX,
    OLD_SCHEDULERS,
    SCHEDULERS,
    CrashSection,
    DesignSection,
    TrialSpec,
)
from dbdyno.study.stack_rules import broken_command_rules, broken_stack_rules, broken_tool_rules
from dbdyno.study.units import STEADY, format_bytes
from dbdyno.study.workloads import (
    BulkSection,
    CommandSection,
    GeneratedSection,
    IngestSection,
    LoopSection,
    OltpSection,
    ReplayLogSection,
    ScriptSection,
    SlapSection,
    SmackSection,
    TpccSection,
)
from dbdyno.system.files import SCRIPT_LIMIT_BYTES, open_regular, read_text

# What a study may pass on to mkfs and mount: what is known to reach nothing beyond the device that it names.
#
# dbdyno runs these as root. A study is untrusted text: it may say how a filesystem is made and mounted, never which
# other device or file is touched, or how mount itself goes about it.


def mkfs_mistake(name: str, text: str, *, is_booted: bool = False) -> str | None:
    """What is wrong with mkfs options for a filesystem, if anything; a booted kernel has a ZFS of its own."""
    kind = OPENZFS if is_booted and name == OPENZFS.name else KINDS[name]
    with_value, without = kind.flags, kind.flags_alone
    words = iter(text.split())
    for word in words:
        flag, joined, value = word.partition("=") if word.startswith("--") else (word[:2], word[2:], word[2:])
        if not word.startswith("-"):
            return f"holds {word!r}, which belongs to no option; dbdyno names the device"
        if flag in without and not joined:
            continue
        if flag not in with_value:
            return f"holds {flag!r}; for {name} a study may give {' '.join(sorted({*with_value, *without})) or 'none'}"
        value = value if joined else next(words, "")
        if not value or value.startswith("-"):
            return f"gives {flag!r} no value"
        if why := kind.flag_mistake(flag, value):
            return why
    return None


def mount_mistake(kind: str, text: str) -> str | None:
    """What is wrong with mount options for a filesystem, if anything."""
    if not KINDS[kind].mountable and text not in {"", "defaults"}:
        return f"is for other filesystems; {kind} takes its properties in filesystem.mkfs, such as -O atime=off"
    known = sorted(KINDS[kind].mounts_with())
    for option in filter(None, text.split(",")):
        if not fits(option, known):
            near = did_you_mean(option, (option_known.removesuffix("#") for option_known in known))
            return f"holds {option!r}; for {kind} a study may give {', '.join(known)}{near}"
    return None


# What can't be combined in ``[workload]``.


def broken_workload_rules(load: WorkloadSection, folder: Path) -> Iterator[Mistake]:
    """Every rule that a load breaks; ``folder`` is where a relative script is looked for."""
    if isinstance(load, GeneratedSection) and load.io_threads > load.connections:
        text = f"is {load.io_threads}, more than there are clients ({load.connections})"
        yield Mistake(("workload", "io_threads"), text)
    if isinstance(load, LoopSection):
        yield from _amount(load)
        yield from _loop(load)
    match load:
        case SlapSection():
            yield from _slap(load)
        case TpccSection():
            yield from _tpcc(load)
        case IngestSection():
            yield from _ingest(load)
        case BulkSection():
            yield from _bulk(load)
        case ScriptSection():
            yield from _script(load, folder)
        case ReplayLogSection():
            yield from _replay_log(load, folder)


def _amount(load: LoopSection) -> Iterator[Mistake]:
    name = load.AMOUNT
    amount: int | None = getattr(load, name)
    if amount is None and load.duration is None:
        yield Mistake(("workload",), f"has neither {name} nor duration; give one of them")
    if amount is not None and load.duration is not None:
        yield Mistake(("workload", name), "and duration are both given; give one of them")
    if amount is not None and amount < load.clients:
        text = f"is {amount}, fewer than one for each of {load.clients} clients"
        yield Mistake(("workload", name), text)


def _loop(load: LoopSection) -> Iterator[Mistake]:
    if load.rate and load.think_time:
        text = "can't be set with a rate: in an open loop an event starts when it is due, and no client thinks"
        yield Mistake(("workload", "think_time"), text)
    # A field that is given, be it 0, may be a factor's level: then its companion is for the other levels.
    for name, of in (("arrivals", "rate"), ("think_distribution", "think_time"), ("warmup_max", "warmup")):
        if name in load.model_fields_set and of not in load.model_fields_set:
            yield Mistake(("workload", name), f"has no effect without workload.{of}; give it too")


def _slap(load: SlapSection) -> Iterator[Mistake]:
    if load.autoincrement and load.guid_primary:
        yield Mistake(("workload", "guid_primary"), "and autoincrement are two keys for the same table; give one")
    if load.load == "key" and not (load.autoincrement or load.guid_primary):
        text = 'is "key", which reads by primary key: set workload.autoincrement or guid_primary to true'
        yield Mistake(("workload", "load"), text)
    if load.int_cols + load.char_cols == 0:
        yield Mistake(("workload", "int_cols"), "and char_cols are both 0; a table needs a column")


def _tpcc(load: TpccSection) -> Iterator[Mistake]:
    if not load.keying:
        return
    if "clients" in load.model_fields_set:
        text = f"is {load.clients}; with keying there are {load.connections}, 10 for each warehouse: leave it out"
        yield Mistake(("workload", "clients"), text)
    for name in ("rate", "think_time"):
        if getattr(load, name):
            yield Mistake(("workload", name), "can't be set with keying: terminals have times of their own")


def _ingest(load: IngestSection) -> Iterator[Mistake]:
    if load.mode == "procedure" and load.rows_per_commit > load.rows_per_call:
        text = f"is {load.rows_per_commit}, more than rows_per_call ({load.rows_per_call}): a CALL commits at its end"
        yield Mistake(("workload", "rows_per_commit"), text)
    in_transactions = load.mode == "statement" and load.rows_per_commit > load.rows_per_insert
    if in_transactions and load.rows_per_commit % load.rows_per_insert:
        text = f"is {load.rows_per_commit}; give a multiple of rows_per_insert ({load.rows_per_insert})"
        yield Mistake(("workload", "rows_per_commit"), text)


def _bulk(load: BulkSection) -> Iterator[Mistake]:
    if load.clients > load.tables:
        text = f"is {load.clients}, more than there are tables ({load.tables}): each table is filled by one client"
        yield Mistake(("workload", "clients"), text)


def _script(load: ScriptSection, folder: Path) -> Iterator[Mistake]:
    for name, path in load.own_files().items():
        try:
            read_text(folder / path, SCRIPT_LIMIT_BYTES)
        except OSError as error:
            text = f"is {shown(path)}: {normpath(folder / path)} can't be read: {error.strerror}"
            yield Mistake(("workload", name), text)
        except UnicodeDecodeError:
            yield Mistake(("workload", name), f"is {shown(path)}, which is not UTF-8 text")


def _replay_log(load: ReplayLogSection, folder: Path) -> Iterator[Mistake]:
    """What is in them only the load generator reads: they may be long."""
    for name, path in load.secret_files().items():
        try:
            os.close(open_regular(folder / path, os.O_RDONLY, follow=True))
        except OSError as error:
            text = f"is {shown(path)}: {normpath(folder / path)} can't be read: {error.strerror}"
            yield Mistake(("workload", name), text)


# What can't be combined with ``workload.clients_from``: a load that several hosts offer together.


ABLE = ("slap", "smack", "oltp", "tpcc", "ingest")
_FIELD = ("workload", "clients_from")


def broken_clients_from_rules(spec: TrialSpec) -> Iterator[Mistake]:
    """Every rule that a load from other hosts breaks; none where this machine offers it."""
    load = spec.workload
    if not isinstance(load, GeneratedSection) or not load.clients_from:
        return
    yield from _of_hosts(load)
    yield from _of_load(load)
    yield from _of_stack(spec)


def _of_hosts(load: GeneratedSection) -> Iterator[Mistake]:
    hosts = load.clients_from
    for index, host in enumerate(hosts):
        if host in hosts[:index]:
            yield Mistake((*_FIELD, index), f"names {shown(host)} twice")
    share = load.connections // len(hosts)
    if not share:
        yield Mistake(_FIELD, f"has {len(hosts)} hosts, more than there are clients ({load.connections})")
    elif load.io_threads > share:
        text = f"is {load.io_threads}, more than a host of workload.clients_from has clients ({share})"
        yield Mistake(("workload", "io_threads"), text)


def _of_load(load: GeneratedSection) -> Iterator[Mistake]:
    if load.kind not in ABLE:
        yield Mistake(_FIELD, f"can't be given with the load {load.kind}; it is for {', '.join(ABLE)}")
        return
    if isinstance(load, LoopSection) and load.duration is None:
        text = "needs workload.duration: hosts that each do an amount end at different times"
        yield Mistake(_FIELD, text)
    alone = "which one process alone can guarantee; leave workload.clients_from out"
    if isinstance(load, SmackSection) and load.load in {"insert", "delete"}:
        yield Mistake(("workload", "load"), f"is {shown(load.load)}, whose keys are each used once, {alone}")
    if isinstance(load, OltpSection) and load.load == "insert" and not load.auto_inc:
        yield Mistake(("workload", "auto_inc"), f"is false, so that the load makes up ids, {alone}")


def _of_stack(spec: TrialSpec) -> Iterator[Mistake]:
    if spec.stack.is_simulated:
        yield Mistake(_FIELD, "is of no use to a simulated stack, which no host loads; leave it out")
    elif spec.stack.kind == "external" and _by_socket(spec.stack.server):
        text = f"is {shown(spec.stack.server)}, a socket, which other hosts can't reach; name host and port"
        yield Mistake(("stack", "server"), text)
    if spec.stack.client_cpus is not None:
        text = "binds a client on this machine; leave it out, or workload.clients_from"
        yield Mistake(("stack", "client_cpus"), text)
    if spec.crash is not None:
        yield Mistake(_FIELD, "can't be given with [crash]; a cut needs the load and the server on one machine")


def _by_socket(url: str) -> bool:
    try:
        return server_url(url).socket is not None
    except ValueError:
        return False  # which is a mistake of its own


# What can't be combined with ``[[workload.beside]]``: loads beside the judged one.


_OWN_TIMES = ("warmup", "warmup_max", "clients_from")  # of a generated load that is judged
_ROUND = ("slap", "smack", "oltp", "tpcc", "ledger", "ingest", "script")


def broken_beside_rules(spec: TrialSpec, folder: Path) -> Iterator[Mistake]:
    """Every rule that loads beside the judged one break; the place is refused whether or not a level runs one."""
    if not spec.beside:
        return
    if why := _why_none_beside(spec):
        yield Mistake(("beside",), why)
        return
    for name, load in spec.loads_beside.items():
        for mistake in _of_load_beside(spec, load, folder):
            yield Mistake(("beside", name, *mistake.path), mistake.text)


def _why_none_beside(spec: TrialSpec) -> str:
    """Why no load can run beside that of a treatment; empty where one can."""
    load = spec.workload
    reasons = (
        (spec.stack.is_simulated, "on a simulated stack, which has no server to back up; leave out stack.kernel"),
        (spec.stack.is_in_machine, "in a virtual machine, which holds no client programs; leave it out"),
        (spec.stack.kind == "external", "with an external server, whose data are not dbdyno's; let it start its own"),
        (spec.crash is not None, "with [crash]; what a cut leaves is examined with one load alone"),
        (
            load.kind not in _ROUND,
            f"with the load {load.kind}, of which it is not known when measuring begins; it is for {', '.join(_ROUND)}",
        ),
        (
            isinstance(load, GeneratedSection) and bool(load.clients_from),
            "with workload.clients_from, whose hosts begin at a time of their own; leave one of the two out",
        ),
    )
    return next((f"can't be given {why}" for holds, why in reasons if holds), "")


def _of_load_beside(spec: TrialSpec, load: BesideSection, folder: Path) -> Iterator[Mistake]:
    bound = spec.workload.seconds_bound
    if bound is not None and load.start >= bound:
        yield Mistake(("start",), f"is {load.start:g} s, not before measuring ends (workload.duration, {bound:g} s)")
    if isinstance(load, MariabackupBeside) and is_of_mysql(spec.stack.server):
        text = f'is "mariabackup", which backs up MariaDB alone, not {spec.stack.server}; give "dump"'
        yield Mistake(("kind",), text)
    if isinstance(load, CommandSection):
        yield from (_inside(mistake) for mistake in broken_command_rules(load))
    if isinstance(load, LoopSection):
        for name in sorted({*_OWN_TIMES} & load.model_fields_set):
            yield Mistake((name,), "is for the judged load; leave it out")
        # Without an end of its own it ends with the judged load.
        unbounded = load.duration is None and getattr(load, load.AMOUNT) is None
        bounded = load.model_copy(update={"duration": 1.0}) if unbounded else load
        yield from (_inside(mistake) for mistake in broken_workload_rules(bounded, folder))


def _inside(mistake: Mistake) -> Mistake:
    """The mistake of a load beside, where the judged load would have it in ``[workload]``."""
    return Mistake(mistake.path[1:], mistake.text)


# What can't be combined with ``[crash]``: rules over one whole treatment, and over ``[design]``.


LOAD = "ledger"
# The engine that writes pages in place while a load goes on (Aria and MyISAM leave it to the page cache, which writes
# them out long after), and filesystems that give a page a new place each time.
PAGE_ENGINE = INNODB
MOVING_FILESYSTEMS = ("btrfs", "zfs")

_KILL = 'Give mode = "kill", which kills the server alone, or an emulated drive'
# Kind of stack -> why its power can't be cut.
_NO_POWER = {
    HERE: f"the disk of this machine keeps its power while the machine runs. {_KILL}",
    "real": f"dbdyno can't cut the power of a real disk. {_KILL}",
    "file": f"the disk that holds the file keeps its power while the machine runs. {_KILL}",
    MEMORY: f"a power cut leaves nothing in memory. {_KILL}",
}
_OF_SPEED = "is for studies of speed; crash.cuts decides how many blocks there are. Leave it out"


def broken_crash_rules(spec: TrialSpec) -> Iterator[Mistake]:
    """Every rule that a treatment of a crash study breaks; none where the study is of speed alone."""
    if spec.crash is None:
        return
    if why := _NO_CUTS.get(spec.stack.kind):
        yield Mistake(("crash",), why)
        return
    if spec.workload.kind != LOAD:
        text = f'is {shown(spec.workload.kind)}; only kind = "{LOAD}" knows of each commit whether it was acknowledged'
        yield Mistake(("workload", "kind"), text)
        return
    yield from _window(spec)
    yield from _amounts(spec.crash)
    if spec.stack.image and spec.crash.mode != "power":
        text = f"is {shown(spec.crash.mode)}; dbdyno knows no process of the server in stack.image. Leave it out"
        yield Mistake(("crash", "mode"), text)
        return
    if spec.crash.mode == "failover" and not (spec.has_replica or spec.has_cluster):
        text = 'is "failover", and there is no replica to take over; give [server.replica] mode, "async" or "semisync"'
        text += ", or [server.cluster]"
        yield Mistake(("crash", "mode"), text)
    yield from _cut(spec, spec.crash) if spec.crash.mode == "power" else _killed(spec.crash)


def _window(spec: TrialSpec) -> Iterator[Mistake]:
    """Cuts are drawn over the measured time, which so must be known beforehand."""
    if spec.workload.seconds_bound is None:
        text = 'is missing; cuts are drawn over the measured time, so give one, such as "3s", and no amount'
        yield Mistake(("workload", "duration"), text)
    if getattr(spec.workload, "warmup", None) == STEADY:
        text = f'is "{STEADY}", whose length is unknown; cuts need a time, such as "1s"'
        yield Mistake(("workload", "warmup"), text)


_NO_CUTS = {
    "external": "needs a server that dbdyno starts: it can't kill or restart one that runs elsewhere. "
    "Leave [crash] out, or let dbdyno start a server of its own",
    "simulated": "needs a real kernel and a real server, and a simulated stack has none. Leave out stack.kernel",
}


def _amounts(crash: CrashSection) -> Iterator[Mistake]:
    if crash.blocks > MAX_BLOCKS:
        text = f"is {crash.cuts}, which takes {crash.blocks} blocks of {crash.cuts_each}; at most {MAX_BLOCKS} are run"
        yield Mistake(("crash", "cuts"), text)
    if crash.cuts < len(crash.strata):
        text = f"is {crash.cuts}, fewer than the {len(crash.strata)} kinds of cut that when and survivors make"
        yield Mistake(("crash", "cuts"), text)


def _killed(crash: CrashSection) -> Iterator[Mistake]:
    """What a killed server has nothing of: the page cache keeps what was written, and nothing is drawn."""
    mode = f"mode = {shown(crash.mode)}"
    kept = "what was written survives in the page cache" if crash.mode == "kill" else "no state of a disk is examined"
    why = f"has no effect with {mode}: {kept}. Leave it out"
    for name in ("survivors", "hold"):
        if name in crash.model_fields_set:
            yield Mistake(("crash", name), why)
    if crash.when != ["uniform"]:
        yield Mistake(("crash", "when"), f'is {shown(crash.when)}; with {mode} it is ["uniform"]')
    if crash.cuts_each != 1:
        text = f"is {crash.cuts_each}; with {mode} it is 1: a killed server ends the load"
        yield Mistake(("crash", "cuts_per_run"), text)


def _cut(spec: TrialSpec, crash: CrashSection) -> Iterator[Mistake]:
    """What cutting the power needs."""
    if why := _NO_POWER.get(spec.stack.kind):
        yield Mistake(("crash", "mode"), f'is "power", but {why}')
    if spec.stack.devices > 1:
        yield Mistake(("stack", "devices"), f"is {spec.stack.devices}; a power cut is of one disk. Leave it out")
    if spec.by_disk and "keep" in crash.model_fields_set and crash.keep != "none":
        yield Mistake(("crash", "keep"), f"is {shown(crash.keep)}; of several disks no state is kept. Leave it out")
    if crash.hold is not None and "lying" not in crash.survivors:
        yield Mistake(("crash", "hold"), 'is for survivors = ["lying"]; add that, or leave hold out')
    if "recovery" in crash.when and spec.stack.image and not spec.stack.start:
        text = 'is "recovery", which without stack.start is over before dbdyno logs in. Give it, or leave this out'
        yield Mistake(("crash", "when", crash.when.index("recovery")), text)
    if "page-write" in crash.when:
        yield from _page_writes(spec, crash.when.index("page-write"))
    if "ddl" in crash.when and not getattr(spec.workload, "ddl", False):
        text = 'is "ddl", but the load has no DDL statement. Give workload.ddl = true, or leave it out'
        yield Mistake(("crash", "when", crash.when.index("ddl")), text)


def _page_writes(spec: TrialSpec, place: int) -> Iterator[Mistake]:
    path, engine, filesystem = ("crash", "when", place), spec.stack.engine.lower(), spec.stack.filesystem
    if spec.stack.image:
        text = 'is "page-write", but only the system in stack.image knows where a page lies on its drive. Leave it out'
        yield Mistake(path, text)
    elif engine != PAGE_ENGINE:
        text = f'is "page-write", but only {PAGE_ENGINE} writes pages in place while a load goes on, not {engine}.'
        yield Mistake(path, f"{text} Leave it out")
    elif filesystem in MOVING_FILESYSTEMS:
        text = f'is "page-write", but {filesystem} writes a page to a new place each time, which can\'t be foreseen.'
        yield Mistake(path, f"{text} Leave it out")


def broken_crash_design_rules(design: DesignSection) -> Iterator[Mistake]:
    """What ``[design]`` may not say beside ``[crash]``."""
    for name in ("blocks", "until", "max_blocks", "half_width"):
        if name in design.model_fields_set:
            yield Mistake(("design", name), _OF_SPEED)
    if design.settle is not None:
        text = "is for studies of speed; what a cut leaves does not depend on the trial before. Leave it out"
        yield Mistake(("design", "settle"), text)


# Of each scheduler, in the kernel's words (block/mq-deadline.c, kyber-iosched.c, bfq-iosched.c).
TUNABLES = {
    "none": (),
    "mq-deadline": ("read_expire", "write_expire", "writes_starved", "front_merges", "async_depth", "fifo_batch",
                    "prio_aging_expire"),
    "kyber": ("read_lat_nsec", "write_lat_nsec"),
    "bfq": ("fifo_expire_sync", "fifo_expire_async", "back_seek_max", "back_seek_penalty", "slice_idle",
            "slice_idle_us", "max_budget", "timeout_sync", "strict_guarantees", "low_latency"),
}  # fmt: skip


_INT_MAX = 2**31 - 1
_SWITCH = (0, 1)
# What the kernel takes of a tunable; anything else it clamps or refuses. Others: 0 to _INT_MAX.
TUNABLE_RANGES = {
    "writes_starved": (-_INT_MAX - 1, _INT_MAX),
    "async_depth": (1, _INT_MAX),
    "read_lat_nsec": (0, 2**64 - 1),
    "write_lat_nsec": (0, 2**64 - 1),
    "slice_idle_us": (0, 2**32 - 1),
    **dict.fromkeys(("front_merges", "strict_guarantees", "low_latency"), _SWITCH),
    **dict.fromkeys(("fifo_expire_sync", "fifo_expire_async", "back_seek_penalty", "timeout_sync"), (1, _INT_MAX)),
}


def broken_rules(spec: TrialSpec, folder: Path) -> Iterator[Mistake]:
    """Every rule that this treatment breaks; ``folder`` is where relative files are looked for."""
    yield from broken_stack_rules(spec, folder)
    if not spec.stack.is_simulated:
        yield from _simulated_only(spec)
        yield from _queue(spec)
    yield from _passed_on(spec)
    yield from broken_workload_rules(spec.workload, folder)
    yield from broken_clients_from_rules(spec)
    yield from broken_beside_rules(spec, folder)
    yield from broken_tool_rules(spec, folder)
    yield from broken_crash_rules(spec)
    yield from broken_replica_rules(spec)
    yield from broken_cluster_rules(spec)
    yield from _memory(spec)


# What can't be combined with ``[server.replica]`` and ``[server.cluster]``.


# Kind of stack -> why no further server stands beside its own.
_ALONE = {
    "external": "what it has stays as it is, and dbdyno starts none. Leave [{}] out",
    "simulated": "it has no server. Leave [{}] out",
    BOOTED: "a virtual machine runs one server. Leave [{}] out, or stack.kernel",
    IMAGE: "its own system decides about further servers. Leave [{}] out",
}
_REPLICA, _CLUSTER = ("server", "replica"), ("server", "cluster")
_SERVER_ID = "is set by dbdyno: source and replica need two that differ. Leave it out"


def broken_replica_rules(spec: TrialSpec) -> Iterator[Mistake]:
    """Every rule that a treatment with a replica breaks; none where it has none."""
    if not spec.has_replica:
        return
    replica, place = spec.server.replica, (*_REPLICA, "mode")
    if why := _ALONE.get(spec.stack.kind):
        why = why.format(".".join(_REPLICA))
        yield Mistake(place, f"is {shown(replica.mode)}, and there can be no replica here: {why}")
        return
    if spec.crash is not None and spec.crash.mode != "failover":
        text = f'is {shown(replica.mode)}, and [crash] examines the source alone; give crash.mode = "failover"'
        yield Mistake(place, text)
    if is_off(str(spec.server.settings.get(BINARY_LOG, False))):
        text = f"is {shown(replica.mode)}, and a replica follows the binary log; give {BINARY_LOG} = true in "
        yield Mistake(place, f"{text}[server.settings], for all treatments alike")
    for name, value in replica.settings.items():
        if mistake := _SERVER_ID if name == "server_id" else setting_mistake(name, value):
            yield Mistake((*_REPLICA, "settings", name), mistake)
    if "server_id" in spec.server.settings:
        yield Mistake(("server", "settings", "server_id"), _SERVER_ID)
    yield from _whole_data(spec, "a replica")
    yield from _disk_of(spec, replica.own_disk, (*_REPLICA, "disk"), "what is the source's; give the replica")


def _whole_data(spec: TrialSpec, further: str) -> Iterator[Mistake]:
    """What of the server's data lies elsewhere, though a further server begins with a copy of its folder."""
    for purpose in OF_DATA:
        if purpose in spec.places:
            text = f"can't lie on another disk where there is {further}, which begins with a copy of the data's folder"
            yield Mistake(("server", "place", purpose), f"{text}. Leave it out")


def _disk_of(spec: TrialSpec, name: str, place: tuple[str, ...], holds: str) -> Iterator[Mistake]:
    """What is wrong with the disk of a further server."""
    known = [DATA_DISK, *spec.stack.disks]
    if name and name not in known:
        text = f"is {shown(name)}; disks are {', '.join(known)}. A further one is a section [stack.disks.NAME]"
        yield Mistake(place, text + did_you_mean(name, known))
    elif name in spec.places.values():
        text = f"is {shown(name)}, where [server.place] puts {holds} a disk of its own"
        yield Mistake(place, text)


_MAJORITY = 3  # of as many nodes as this or more are enough left to go on when one is lost


def broken_cluster_rules(spec: TrialSpec) -> Iterator[Mistake]:
    """Every rule that a treatment with a cluster breaks, and settings of a node where there is none."""
    if not spec.has_cluster:
        yield from _node_settings(spec)
        return
    cluster, place = spec.server.cluster, (*_CLUSTER, "mode")
    if why := _ALONE.get(spec.stack.kind):
        why = f"and there can be no cluster here: {why.format('.'.join(_CLUSTER))}"
        yield Mistake(place, f"is {shown(cluster.mode)}, {why}")
        return
    for why in _why_no_cluster(spec):
        yield Mistake(place, f"is {shown(cluster.mode)}, {why}")
    if spec.crash is not None and cluster.nodes < _MAJORITY:
        text = f"is {cluster.nodes}, and once the first is lost no majority is left to take over; give {_MAJORITY}"
        yield Mistake((*_CLUSTER, "nodes"), text)
    for name, needed in NEEDED_BY_CLUSTER.items():
        if str(given := spec.server.settings.get(name, needed)).upper() != needed:
            text = f"is {shown(given)}, and a cluster needs {needed}, which dbdyno sets; leave it out"
            yield Mistake(("server", "settings", name), text)
    if cluster.evs_send_window and cluster.evs_send_window < (cluster.evs_user_send_window or 0):
        text = f"is {cluster.evs_user_send_window}, more than evs_send_window ({cluster.evs_send_window})"
        yield Mistake((*_CLUSTER, "evs_user_send_window"), text)
    yield from _whole_data(spec, "a cluster")
    yield from _cluster_disks(spec)


def _node_settings(spec: TrialSpec) -> Iterator[Mistake]:
    """Settings of a node where there is no cluster; of an external server it is not known whether there is one."""
    if spec.stack.kind == "external" or "mode" in spec.server.cluster.model_fields_set:  # others may have one
        return
    for name in spec.server.settings:
        if name in CLUSTER_SETTINGS:
            text = 'has no effect without a cluster; give mode = "galera" in [server.cluster], or leave it out'
            yield Mistake(("server", "settings", name), text)


def _why_no_cluster(spec: TrialSpec) -> Iterator[str]:
    """What else of the treatment has no place in a cluster."""
    if not spec.has_server:
        yield f"and a load of kind {shown(spec.workload.kind)} has no server; leave [server.cluster] out"
    if is_of_mysql(spec.stack.server):
        yield 'which MariaDB alone has here; give stack.server = "mariadb", or leave [server.cluster] out'
    if spec.stack.engine.lower() != INNODB:
        yield f"which replicates {INNODB} alone, not {spec.stack.engine}; give stack.engine = {shown(INNODB)}"
    if spec.has_replica:
        yield f"and there is a replica ([server.replica] mode is {shown(spec.server.replica.mode)}); give one of them"
    if spec.crash is not None and spec.crash.mode != "failover":
        yield 'and [crash] examines the first node alone; give crash.mode = "failover"'


def _cluster_disks(spec: TrialSpec) -> Iterator[Mistake]:
    cluster, place = spec.server.cluster, (*_CLUSTER, "disks")
    if len(cluster.own_disks) < cluster.nodes - 1:
        text = f"is {shown(cluster.disks)}, and {cluster.nodes - 1} nodes need one beside the first"
        yield Mistake(place, f'{text}; give so many, separated by commas, or "{DATA_DISK}" for all')
    for name in dict.fromkeys(cluster.own_disks):
        yield from _disk_of(spec, name, place, "what is the first node's; give each other")


def _simulated_only(spec: TrialSpec) -> Iterator[Mistake]:
    """What only a simulated kernel takes."""
    scheduler, requests = spec.stack.scheduler, spec.queue.nr_requests
    if scheduler in OLD_SCHEDULERS:
        near = did_you_mean(str(scheduler), SCHEDULERS) or "."
        text = f"is {shown(scheduler)}; allowed are {', '.join(SCHEDULERS)}{near}"
        yield Mistake(("stack", "scheduler"), f"{text} Kernels up to 4.20 had it: stack.kernel simulates one")
    if requests is not None and not NR_REQUESTS_MIN <= requests <= NR_REQUESTS_MAX:
        text = f"is {requests}, which no blk-mq kernel allows; give {NR_REQUESTS_MIN} to {NR_REQUESTS_MAX}"
        yield Mistake(("queue", "nr_requests"), f"{text}, or simulate one that does (stack.kernel)")
    if spec.queue.queue_depth is not None:
        text = "is for a simulated stack; leave it out, or give stack.kernel: a real drive has a depth of its own"
        yield Mistake(("queue", "queue_depth"), text)
    if spec.workload.kind == "trace":
        yield Mistake(("workload", "kind"), 'is "trace", which replays on a simulated stack only; give stack.kernel')


def _passed_on(spec: TrialSpec) -> Iterator[Mistake]:
    for place, on in ((("filesystem",), spec), *(((*DISKS, name), disk) for name, disk in spec.by_disk.items())):
        kind, options = on.stack.filesystem, on.filesystem
        if kind and (text := mkfs_mistake(kind, options.mkfs, is_booted=spec.stack.kind == BOOTED)):
            yield Mistake((*place, "mkfs"), text)
        if kind and (text := mount_mistake(kind, options.mount)):
            yield Mistake((*place, "mount"), text)
    if spec.filesystem.arc_max and (spec.stack.filesystem != OPENZFS.name or spec.stack.kind != BOOTED):
        text = 'is for ZFS of a booted kernel: stack.kernel = "debian-6.1" and stack.filesystem = "zfs". Leave it out'
        yield Mistake(("filesystem", "arc_max"), text)
    for name, value in spec.server.settings.items():
        if text := setting_mistake(name, value, may_have_replica=spec.stack.kind == "external"):
            yield Mistake(("server", "settings", name), text)


def _queue(spec: TrialSpec) -> Iterator[Mistake]:
    requests, scheduler = spec.queue.nr_requests, spec.stack.scheduler
    # How deep a real device's own queue is, only the host knows.
    unscheduled = is_emulated(spec.stack.device) and scheduler in {None, "none"}
    if unscheduled and requests is not None and requests > NR_REQUESTS_NONE_MAX:
        text = f"is {requests}; without a scheduler the kernel allows at most the device's own depth, "
        text += f"{NR_REQUESTS_NONE_MAX} for an emulated disk. Give stack.scheduler, or a smaller number"
        yield Mistake(("queue", "nr_requests"), text)
    if scheduler == "bfq" and spec.queue.wbt_lat_usec:
        yield Mistake(("queue", "wbt_lat_usec"), "can't be set under bfq, which throttles writeback itself")
    if spec.queue.iosched and not TUNABLES.get(scheduler or ""):
        tunable = ", ".join(name for name, tunables in TUNABLES.items() if tunables)
        yield Mistake(("queue", "iosched"), f"is for a scheduler with tunables; give stack.scheduler: {tunable}")
        return
    known = TUNABLES.get(scheduler or "", ())
    for name, value in spec.queue.iosched.items():
        least, most = TUNABLE_RANGES.get(name, (0, _INT_MAX))
        if name not in known:
            text = f"is not a tunable of {scheduler}; known are {', '.join(known)}{did_you_mean(name, known)}"
            yield Mistake(("queue", "iosched", name), text)
        elif not least <= value <= most:
            yield Mistake(("queue", "iosched", name), f"is {value}; {scheduler} takes {least} to {most}")
    idle_ms, idle_us = (spec.queue.iosched.get(name) for name in ("slice_idle", "slice_idle_us"))
    if idle_ms is not None and idle_us is not None and idle_us != 1000 * idle_ms:
        text = f"is {idle_us}, and slice_idle is {idle_ms} ms: they are one setting; leave one out"
        yield Mistake(("queue", "iosched", "slice_idle_us"), text)


def _memory(spec: TrialSpec) -> Iterator[Mistake]:
    pool = spec.server.settings.get(BUFFER_POOL)
    if spec.stack.memory is None or pool is None:
        return
    try:
        pool_bytes = setting_bytes(pool)
    except ValueError:
        return  # the server will say what it thinks of it
    if pool_bytes >= spec.stack.memory:
        text = f"is {shown(pool)}, not less than stack.memory ({format_bytes(spec.stack.memory)}): "
        yield Mistake(("server", "settings", BUFFER_POOL), text + "the kernel would kill the server")
