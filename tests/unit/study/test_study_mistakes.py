"""Every mistake is found before anything is touched, and names file, line, field, what was given, what is allowed."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dbdyno._native import device_models
from dbdyno.errors import UserError
from dbdyno.model.design import BOOTED_KERNELS
from dbdyno.model.metrics import METRICS
from dbdyno.study.load import load_study
from dbdyno.study.schema import HostSection, QueueSection, StackSection
from dbdyno.study.workloads import KINDS as WORKLOADS
from dbdyno.study.workloads import BulkSection, SlapSection, SmackSection
from tests.unit.study.conftest import fields, refusal

DEVICES = '["hdd-7200", "ssd-sata"]'
POOL = 'innodb_buffer_pool_size = "256M"'
BASELINE = 'baseline = { device = "hdd-7200" }'
SECTIONS = (
    "version, study, suite, hosts, stack, queue, array, cache, encryption, volume, filesystem, server, host, workload, "
    "probes, crash, levels, design, fail_if, scale, reported, cost"
)
STACK = fields(StackSection)
KINDS = ", ".join(WORKLOADS)
SCHEDULER, TWO_SCHEDULERS = 'scheduler = "mq-deadline"', 'scheduler = ["mq-deadline", "none"]'
TWO_ENDINGS = "can't be given with blocks, which fixes their number; leave out one of the two"
KERNELS = (
    f"{', '.join(BOOTED_KERNELS)} and the absolute path of a kernel: its image, or the folder of its unpacked package"
)
MODELS = ", ".join([*(model["name"] for model in device_models()), "here", "memory", "/dev/disk/by-id/..."])
APART = "leave it out, or give it in a level of [levels] with another device"
HERE = f'can\'t be set with device = "here", a folder of the host as it is; {APART}'
ONE_THAT_DOES = ", or simulate one that does (stack.kernel)"
SERVERS = "mariadb, mariadb-10.5, mariadb-10.11, mariadb-11.4, mariadb-11.8, mysql-5.5, mysql-5.6, mysql-5.7, "
SERVERS += "mysql-8.0, mysql-9, mariadb-10.6, mysql-8.4, percona-8.0, percona-8.4, none"
SERVERS += " and the absolute path of an unpacked MariaDB or MySQL"
CODES = 'error codes as one text, such as "1213,1205", or "all" or "none"'
SLAP = fields(SlapSection)

# What is changed in the study; the messages, each after the study's path.
MISTAKES = {
    "unknown key": (
        [('scheduler = "mq-deadline"', 'schedular = "none"')],
        [f':8: stack.schedular: is unknown here; known are {STACK}. Did you mean "scheduler"?'],
    ),
    "unknown key, like no other": (
        [('scheduler = "mq-deadline"', "zzz = 1")],
        [f":8: stack.zzz: is unknown here; known are {STACK}"],
    ),
    "unknown key that looks like a type": (
        [('scheduler = "mq-deadline"', '"int[" = 1')],
        [f":8: stack.int[: is unknown here; known are {STACK}"],
    ),
    "unknown section": (
        [("[queue]", "[queu]")],
        [f':11: queu: is unknown; known are {SECTIONS}. Did you mean "queue"?'],
    ),
    "a section that is needed, misspelt": (
        [("[workload]", "[workloads]")],
        [f':15: workloads: is unknown; known are {SECTIONS}. Did you mean "workload"?'],
    ),
    "a section that other mistakes follow from, misspelt": (
        [("[stack]", "[stak]"), ("clients = 10", 'clients = "x"')],
        [
            f':5: stak: is unknown; known are {SECTIONS}. Did you mean "stack"?',
            ':17: workload.clients: is "x" but must be a whole number',
        ],
    ),
    "the version, misspelt": (
        [("version = 1", "verson = 1")],
        [f':1: verson: is unknown; known are {SECTIONS}. Did you mean "version"?'],
    ),
    "a number for text": ([('title = "A study"', "title = 5")], [":3: study.title: is 5 but must be text in quotes"]),
    "missing field": ([('kind = "slap"\n', "")], [f":15: workload.kind: is missing; allowed are {KINDS}"]),
    "another version": ([("version = 1", "version = 2")], [":1: version: is 2; this dbdyno reads version = 1"]),
    "no version": ([("version = 1\n", "")], [": version: is missing; this dbdyno reads version = 1"]),
    "true for a version": (
        [("version = 1", "version = true")],
        [":1: version: is true; this dbdyno reads version = 1"],
    ),
    "a title of two lines": (
        [('"A study"', '"A\\nstudy"')],
        [':3: study.title: is "A?study", which must be one line of text'],
    ),
    "several at once, by line": (
        [("blocks = 6", "blocks = 0"), ("clients = 10", 'clients = "x"'), ('size = "1GiB"', "foo = 1")],
        [
            f":7: stack.foo: is unknown here; known are {STACK}",
            ':17: workload.clients: is "x" but must be a whole number',
            ":21: design.blocks: is 0; it must be at least 1",
        ],
    ),
}


# In the design.
IN_DESIGN = {
    "a factor compared that is none": (
        [("blocks = 6", 'compare = "one-factor"\ncompare_factors = ["devise"]')],
        [
            (
                ':22: design.compare_factors: "devise" is not a factor of this study; factors are device. '
                'Did you mean "device"?'
            )
        ],
    ),
    "factors to compare where all are": (
        [("blocks = 6", 'compare_factors = ["device"]')],
        [':21: design.compare_factors: is for compare = "one-factor"'],
    ),
    "no such metric": (
        [("blocks = 6", 'metric = "latency_p99"')],
        [
            f':21: design.metric: is "latency_p99"; allowed are {", ".join(METRICS)}. Did you mean "latency_ms_p99"?',
        ],
    ),
    "a list where nothing varies": (
        [("blocks = 6", "blocks = [5, 6]")],
        [":21: design.blocks: is [5, 6] but must be a whole number"],
    ),
    "baseline of no factor": (
        [("{ device", "{ devise")],
        [':20: design.baseline.devise: is not a factor of this study; factors are device. Did you mean "device"?'],
    ),
    "baseline of a fixed field": (
        [(DEVICES, '"ssd-sata"')],
        [":20: design.baseline.device: is not a factor of this study; factors are none: no field is given as a list"],
    ),
    "baseline of no level": (
        [(BASELINE, 'baseline = { device = "hdd-720" }')],
        [
            (
                ':20: design.baseline.device: is "hdd-720", not a level of device; levels are hdd-7200, ssd-sata. '
                'Did you mean "hdd-7200"?'
            )
        ],
    ),
    "an unknown metric to screen": (
        [("blocks = 6", 'secondary_metrics = ["latency_ms_p99", "server_cpu"]')],
        [
            (
                f':21: design.secondary_metrics: "server_cpu" is not a metric; known are {", ".join(METRICS)}. '
                'Did you mean "server_cpu_us_per_query"?'
            )
        ],
    ),
    "a secondary metric twice": (
        [("blocks = 6", 'secondary_metrics = ["errors", "reconnects", "errors"]')],
        [':21: design.secondary_metrics: names "errors" twice'],
    ),
    "a baseline that names no factor": (
        [(BASELINE, 'baseline = "hdd-7200"')],
        [':20: design.baseline: is "hdd-7200" but must be a section, such as { device = "hdd-7200" }'],
    ),
    "no list of what is hard to change": (
        [("blocks = 6", 'hard_to_change = "device"')],
        [':21: design.hard_to_change: is "device" but must be a list, such as ["device"]'],
    ),
    "no factor is hard to change": (
        [(SCHEDULER, TWO_SCHEDULERS), ("blocks = 6", 'hard_to_change = ["devise", "filesystem"]')],
        [
            (
                ':21: design.hard_to_change: "devise" is not a factor of this study; factors are device, scheduler. '
                'Did you mean "device"?'
            ),
            (':21: design.hard_to_change: "filesystem" is not a factor of this study; factors are device, scheduler'),
        ],
    ),
    "all is hard to change": (
        [("blocks = 6", 'hard_to_change = ["device"]')],
        [
            (
                ":21: design.hard_to_change: names device, which leaves no factor to vary inside a whole plot; "
                "leave one out"
            )
        ],
    ),
    "a margin too wide": (
        [("blocks = 6", 'margin = "150%"')],
        [':21: design.margin: is "150%"; it must be less than 100%'],
    ),
    "no block": ([("blocks = 6", "blocks = 0")], [":21: design.blocks: is 0; it must be at least 1"]),
    "fixed blocks, and until": (
        [("blocks = 6", 'blocks = 6\nuntil = "decided"\nmax_blocks = 20')],
        [f":22: design.until: {TWO_ENDINGS}", f":23: design.max_blocks: {TWO_ENDINGS}"],
    ),
    "precise, but how": (
        [("blocks = 6", 'until = "precise"')],
        [':19: design.half_width: is missing; until = "precise" needs it, such as "2%"'],
    ),
    "a half-width for nothing": (
        [("blocks = 6", 'half_width = "2%"')],
        [':21: design.half_width: is for until = "precise"; add that, or leave half_width out'],
    ),
    "too few blocks to decide anything": (
        [("blocks = 6", "max_blocks = 5")],
        [":21: design.max_blocks: is 5; it must be at least 6"],
    ),
    "until something else": (
        [("blocks = 6", 'until = "done"')],
        [':21: design.until: is "done"; allowed are decided, precise'],
    ),
    "a budget of nothing": (
        [("blocks = 6", 'budget = "0s"')],
        [':21: design.budget: is "0s"; it must be more than 0 s'],
    ),
}
# In what the queries stand on: device, queue, filesystem, server.
IN_STACK = {
    "a file's folder that is not a whole path": (
        [(DEVICES, '"file:bench"'), (BASELINE, "")],
        [':6: stack.device: is "file:bench"; name a folder by its absolute path, such as "file:/srv/bench"'],
    ),
    "a kind of stack that there is not": (
        [(DEVICES, '"fiel:/srv/bench"'), (BASELINE, "")],
        [
            (
                ':6: stack.device: is "fiel:/srv/bench"; no kind of stack is called "fiel": real, file, emulated,'
                ' memory, here. Did you mean "file"?'
            )
        ],
    ),
    "a logical volume of the host's": (
        [(DEVICES, '"lvm:/dev/vg0/lv0"'), (BASELINE, "")],
        [
            (
                ':6: stack.device: is "lvm:/dev/vg0/lv0"; no kind of stack is called "lvm": real, file, emulated, '
                "memory, here. A linear or striped volume of LVM is a real disk, which is erased if it is empty: name "
                "it by /dev/disk/by-id/dm-uuid-LVM-...; of any other volume or array mount a filesystem and give a "
                'folder there: device = "file:/srv/bench"'
            )
        ],
    ),
    "a word for true": (
        [("nr_requests = 64", 'rotational = "true"')],
        [':12: queue.rotational: is "true" but must be true or false'],
    ),
    "no such word": (
        [('"mq-deadline"', '"deadline"')],
        [
            (
                ':8: stack.scheduler: is "deadline"; allowed are none, mq-deadline, kyber, bfq. Did you mean'
                ' "mq-deadline"? Kernels up to 4.20 had it: stack.kernel simulates one'
            )
        ],
    ),
    "no such word, as a level": (
        [('"mq-deadline"', '[\n"none",\n"kyberr",\n]')],
        [
            (
                ':10: stack.scheduler: is "kyberr"; allowed are none, mq-deadline, kyber, bfq, noop, deadline,'
                ' anticipatory, cfq. Did you mean "kyber"?'
            )
        ],
    ),
    "a value for a section": (
        [("[queue]\nnr_requests = 64\n", ""), ("version = 1\n", "version = 1\nqueue = 64\n")],
        [":2: queue: is 64 but must be a section: [queue]"],
    ),
    "a level twice": (
        [(DEVICES, '["hdd-7200", "ssd-sata", "hdd-7200"]')],
        [":6: stack.device: gives the level 'hdd-7200' twice"],
    ),
    "two levels that look alike": (
        [(POOL, 'x = ["1", 1]')],
        [":14: server.settings.x: gives the level '1' twice"],
    ),
    "an empty list": (
        [(DEVICES, "[]")],
        [":6: stack.device: is an empty list; give its levels, or one value without brackets"],
    ),
    "a list in a list": (
        [(DEVICES, '[["hdd-7200"], "ssd-sata"]')],
        [":6: stack.device: must be a list of plain values, one per level"],
    ),
    "nr_requests of no kernel": (
        [("nr_requests = 64", "nr_requests = 100000")],
        [f":12: queue.nr_requests: is 100000, which no blk-mq kernel allows; give 4 to 2048{ONE_THAT_DOES}"],
    ),
    "nr_requests of no kernel, as a level": (
        [("nr_requests = 64", "nr_requests = [\n  64,\n  3,\n]")],
        [f":14: queue.nr_requests: is 3, which no blk-mq kernel allows; give 4 to 2048{ONE_THAT_DOES}"],
    ),
    "none with 256": (
        [('"mq-deadline"', '["mq-deadline", "none"]'), ("nr_requests = 64", "nr_requests = [\n64,\n256]")],
        [
            (
                ":14: queue.nr_requests: is 256; without a scheduler the kernel allows at most the device's own depth, "
                "128 for an emulated disk. Give stack.scheduler, or a smaller number"
            )
        ],
    ),
    "writeback throttling under bfq": (
        [('scheduler = "mq-deadline"', 'scheduler = "bfq"'), ("nr_requests = 64", "wbt_lat_usec = 75000")],
        [":12: queue.wbt_lat_usec: can't be set under bfq, which throttles writeback itself"],
    ),
    "a field of a load elsewhere": (
        [('size = "1GiB"', 'size = "1GiB"\nthink_time = "1s"')],
        [f":8: stack.think_time: is unknown here; known are {STACK}. It belongs in [workload]"],
    ),
    "no size": (
        [('size = "1GiB"\n', "")],
        [':5: stack.size: is missing; an emulated disk needs one, such as "4GiB"'],
    ),
    "a size without unit": (
        [('"1GiB"', "4")],
        [':7: stack.size: is 4, which is not a size; write a number with its unit in quotes, such as "4GiB"'],
    ),
    "a size of an unknown unit": (
        [('"1GiB"', '"4 GiP"')],
        [
            (
                ":7: stack.size: is \"4 GiP\", which has the unknown unit 'GiP'; "
                "known are B, K, M, G, T, KiB .. TiB and KB .. TB"
            )
        ],
    ),
    "a size too small": ([('"1GiB"', '"4M"')], [':7: stack.size: is "4M"; it must be at least 64 MiB']),
    "a size of half a block": (
        [('"1GiB"', '"100000001B"')],
        [":7: stack.size: must be a multiple of 4096 bytes"],
    ),
    "tunables of no scheduler": (
        [(SCHEDULER + "\n", ""), ("nr_requests = 64", "iosched.fifo_batch = 4")],
        [":11: queue.iosched: is for a scheduler with tunables; give stack.scheduler: mq-deadline, kyber, bfq"],
    ),
    "a tunable of another scheduler": (
        [
            (SCHEDULER, 'scheduler = ["mq-deadline", "kyber"]'),
            ("nr_requests = 64", "iosched.read_lat_nsec = [1000000, 2]"),
        ],
        [
            (
                ":12: queue.iosched.read_lat_nsec: is not a tunable of mq-deadline; known are read_expire, "
                "write_expire, writes_starved, front_merges, async_depth, fifo_batch, prio_aging_expire"
            )
        ],
    ),
    "read-ahead of a part of a page": (
        [("nr_requests = 64", "read_ahead_kb = 130")],
        [":12: queue.read_ahead_kb: is 130; it must be a multiple of 4"],
    ),
    "a tunable that the kernel clamps": (
        [("nr_requests = 64", "iosched.front_merges = 2")],
        [":12: queue.iosched.front_merges: is 2; mq-deadline takes 0 to 1"],
    ),
    "a tunable that the kernel refuses": (
        [(SCHEDULER, 'scheduler = "kyber"'), ("nr_requests = 64", "iosched.read_lat_nsec = -1")],
        [":12: queue.iosched.read_lat_nsec: is -1; kyber takes 0 to 18446744073709551615"],
    ),
    "one setting of bfq by two names": (
        [(SCHEDULER, 'scheduler = "bfq"'), ("nr_requests = 64", "iosched = { slice_idle = 8, slice_idle_us = 2000 }")],
        [":12: queue.iosched.slice_idle_us: is 2000, and slice_idle is 8 ms: they are one setting; leave one out"],
    ),
    "an I/O class that is none": (
        [("[server.settings]", '[server]\nionice = "best-effort"\n[server.settings]')],
        [
            (
                ':14: server.ionice: is "best-effort", which is none of "none", "idle", '
                '"best-effort:0" to "best-effort:7", "realtime:0" to "realtime:7"'
            )
        ],
    ),
    "processors that are no list": (
        [("[queue]", 'server_cpus = "3-1"\n[queue]')],
        [
            (
                ':11: stack.server_cpus: is "3-1", which holds the range 3-1, which ends before it begins; '
                'give numbers and ranges, such as "0" or "0-3,8"'
            )
        ],
    ),
    "memory is no device": (
        [(DEVICES, '"memory"'), (BASELINE, "")],
        [
            f':8: stack.scheduler: can\'t be set with device = "memory", which is not a device; {APART}',
            ':9: stack.filesystem: is "ext4"; with device = "memory" it is "tmpfs"',
            f':12: queue.nr_requests: can\'t be set with device = "memory", which is not a device; {APART}',
        ],
    ),
    "a real disk is no memory": (
        [(DEVICES, '"/dev/disk/by-id/ata-X_1"'), (BASELINE, ""), ('size = "1GiB"\n', ""), ('"ext4"', '"tmpfs"')],
        [':8: stack.filesystem: is "tmpfs", which stands on no disk; use device = "memory"'],
    ),
    "a disk by a relative path": (
        [(DEVICES, '"../../dev/sdb"'), (BASELINE, ""), ('size = "1GiB"\n', "")],
        [':6: stack.device: is "../../dev/sdb"; name a disk by its absolute path'],
    ),
    "too small for a filesystem": (
        [('"1GiB"', '"100MiB"'), ('"ext4"', '["ext4", "xfs", "btrfs"]')],
        [
            ":7: stack.size: is 100 MiB; xfs needs at least 300 MiB",
            ":7: stack.size: is 100 MiB; btrfs needs at least 256 MiB",
        ],
    ),
    "a device that may change its name": (
        [(DEVICES, '"/dev/sda"'), ('size = "1GiB"\n', ""), (BASELINE, "")],
        [
            (
                ':6: stack.device: is "/dev/sda", a name that may be another disk tomorrow: '
                "name it by /dev/disk/by-id/..., or give its serial in stack.serial"
            )
        ],
    ),
    "a real device with a size": (
        [(DEVICES, '"/dev/disk/by-id/ata-X_1"'), (BASELINE, "")],
        [":7: stack.size: is for emulated disks; a real device is used whole"],
    ),
    "an emulated disk with a serial": (
        [('size = "1GiB"', 'size = "1GiB"\nserial = "S1"')],
        [":8: stack.serial: is for real devices; an emulated disk has none"],
    ),
    "a server that nobody knows": (
        [('scheduler = "mq-deadline"', 'server = ["mariadb", "mysq-9", "mariadb-12"]')],
        [
            f':8: stack.server: is "mysq-9"; known are {SERVERS}. Did you mean "mysql-9"?',
            f':8: stack.server: is "mariadb-12"; known are {SERVERS}. Did you mean "mariadb"?',
        ],
    ),
    "no filesystem": (
        [('filesystem = "ext4"\n', "")],
        [":5: stack.filesystem: is missing; allowed are ext2, ext3, ext4, xfs, btrfs, zfs, tmpfs"],
    ),
    "here, with what stands below it": (
        [(DEVICES, '"here"'), (BASELINE, "")],
        [
            f":7: stack.size: {HERE}",
            f":8: stack.scheduler: {HERE}",
            f":9: stack.filesystem: {HERE}",
            f":12: queue.nr_requests: {HERE}",
        ],
    ),
    "a pool as large as the memory": (
        [('"256M"', '"1G"')],
        [
            (
                ':14: server.settings.innodb_buffer_pool_size: is "1G", not less than stack.memory (1 GiB): '
                "the kernel would kill the server"
            )
        ],
    ),
    "a pool in bytes, larger than the memory": (
        [('"256M"', "2000000000")],
        [
            (
                ":14: server.settings.innodb_buffer_pool_size: is 2000000000, not less than stack.memory (1 GiB): "
                "the kernel would kill the server"
            )
        ],
    ),
    "no server variable": (
        [(POOL, '"Inno-DB" = 1')],
        [
            (
                ':14: server.settings.Inno-DB: is "Inno-DB", which is not a server variable; '
                "names are lower case with underscores, such as innodb_buffer_pool_size"
            )
        ],
    ),
    "an option for a shell": (
        [("[queue]", '[filesystem]\nmkfs = "-O $(reboot)"\n[queue]')],
        [':12: filesystem.mkfs: is "-O $(reboot)", which holds a character that no mkfs or mount option needs'],
    ),
    "an engine for SQL": (
        [('size = "1GiB"', 'size = "1GiB"\nengine = "innodb; DROP"')],
        [':8: stack.engine: is "innodb; DROP", which must be a plain name of letters, digits and underscores'],
    ),
    "a kernel that can't be had": (
        [('size = "1GiB"', 'size = "1GiB"\nkernel = "debian-9"')],
        [
            f':8: stack.kernel: is "debian-9"; known are {KERNELS}. Did you mean "debian-7.2"?',
        ],
    ),
    "a virtual machine on a disk of the host": (
        [('"ssd-sata"', '"/dev/disk/by-id/x"'), ('size = "1GiB"', 'size = "1GiB"\nkernel = "debian-6.1"')],
        [':6: stack.device: is "/dev/disk/by-id/x"; a virtual machine has an emulated drive, such as "ssd-sata"'],
    ),
    "a bus without a virtual machine": (
        [('size = "1GiB"', 'size = "1GiB"\nbus = "nvme"')],
        [":8: stack.bus: is for a virtual machine; leave it out, or give stack.kernel one to boot"],
    ),
    "a limit of the host in two units": (
        [("[queue]", '[host]\ndirty_ratio = 5\ndirty_bytes = "1MiB"\n[queue]')],
        [":13: host.dirty_bytes: and dirty_ratio are one limit in two units; give one of them"],
    ),
    "settings of the host in a section of their own": (
        [("[queue]", "[host.settings]\nswappiness = [1, 60]\n[queue]")],
        [
            (
                f":11: host.settings: is unknown here; known are {fields(HostSection)}. The settings of the host stand"
                " in [host] itself, such as swappiness = [1, 60]"
            )
        ],
    ),
    "a setting of the host by another name": (
        [("[queue]", '[host]\nthp = "never"\n[queue]')],
        [f':12: host.thp: is unknown here; known are {fields(HostSection)}. Did you mean "transparent_hugepage"?'],
    ),
    "a setting of the host in another section": (
        [("nr_requests = 64", "swappiness = 1")],
        [f":12: queue.swappiness: is unknown here; known are {fields(QueueSection)}. It belongs in [host]"],
    ),
    "a memory policy that there is not": (
        [("[queue]", '[server]\nnuma = "bind"\n[queue]')],
        [
            (
                ':12: server.numa: is "bind", which is none of "interleave", "local", "bind:NODE", "prefer:NODE", such'
                ' as "bind:0"'
            )
        ],
    ),
    "an endless value": (
        [('"ssd-sata"', f'"{"s" * 100}"')],
        [f':6: stack.device: is "{"s" * 56}...; known are {MODELS}'],
    ),
    "unknown device": (
        [('"ssd-sata"', '"ssd-stata"')],
        [f':6: stack.device: is "ssd-stata"; known are {MODELS}. Did you mean "ssd-sata"?'],
    ),
}
# In the load.
IN_LOAD = {
    "text for a number": (
        [("clients = 10", 'clients = "ten"')],
        [':17: workload.clients: is "ten" but must be a whole number'],
    ),
    "a part for a whole number": (
        [("clients = 10", "clients = 1.5")],
        [":17: workload.clients: is 1.5 but must be a whole number"],
    ),
    "true for a number": (
        [("clients = 10", "clients = true")],
        [":17: workload.clients: is true but must be a whole number"],
    ),
    "missing section": (
        [('[workload]\nkind = "slap"\nclients = 10\nqueries = 1000\n', "")],
        [": workload: is missing; a study needs [workload]"],
    ),
    "key load without a key": (
        [("clients = 10", 'load = "key"')],
        [
            (
                ':17: workload.load: is "key", which reads by primary key: set workload.autoincrement or guid_primary '
                "to true"
            )
        ],
    ),
    "two keys": (
        [("clients = 10", "autoincrement = true\nguid_primary = true")],
        [":18: workload.guid_primary: and autoincrement are two keys for the same table; give one"],
    ),
    "no column": (
        [("clients = 10", "int_cols = 0\nchar_cols = 0")],
        [":17: workload.int_cols: and char_cols are both 0; a table needs a column"],
    ),
    "a kind that is none": (
        [('kind = "slap"', 'kind = "olpt"')],
        [f':16: workload.kind: is "olpt"; allowed are {KINDS}. Did you mean "oltp"?'],
    ),
    "no kind": ([('kind = "slap"\n', "")], [f":15: workload.kind: is missing; allowed are {KINDS}"]),
    "a number for a kind": ([('"slap"', "5")], [f":16: workload.kind: is 5; allowed are {KINDS}"]),
    "a kind as a factor": (
        [('"slap"', '["slap", "oltp"]')],
        [
            (
                ":16: workload.kind: can't be a factor: it decides which fields the section has; "
                "write a study for each kind, or run one beside the other by [[workload.beside]]"
            )
        ],
    ),
    "a backup as a kind": (
        [('"slap"', '["slap", "dump"]')],
        [
            (
                ":16: workload.kind: can't be a factor: it decides which fields the section has; write a study for "
                'each kind, or run one beside the other: in [workload] give kind = "slap" and the line '
                'beside = [{ name = "backup", kind = ["none", "dump"], start = "2s" }]'
            )
        ],
    ),
    "a field of another kind": (
        [("clients = 10", "clients = 10\ntables = 4")],
        [f":18: workload.tables: is unknown here; known are {SLAP}. It is for kind oltp, bulk, sysbench, dump"],
    ),
    "a field of no kind": (
        [("clients = 10", "client = 10")],
        [f':17: workload.client: is unknown here; known are {SLAP}. Did you mean "clients"?'],
    ),
    "a value of one kind": (
        [('"slap"', '"smack"'), ("queries = 1000", 'load = "selekt"\nevents = 1000')],
        [
            (
                ':18: workload.load: is "selekt"; allowed are insert, select, update, delete, mixed. '
                'Did you mean "select"?'
            )
        ],
    ),
    "queries where events count": (
        [('"slap"', '"smack"')],
        [f":18: workload.queries: is unknown here; known are {fields(SmackSection)}. It is for kind slap, mysqlslap"],
    ),
    "error codes as a list": (
        [("clients = 10", "ignore_errors = [1213, 1205]")],
        [f":17: workload.ignore_errors: is {code}, which must be {CODES}" for code in (1213, 1205)],
    ),
    "an error by name": (
        [("clients = 10", 'ignore_errors = "deadlock"')],
        [f':17: workload.ignore_errors: is "deadlock", which must be {CODES}'],
    ),
    "a code that no server has": (
        [("clients = 10", 'ignore_errors = "99999"')],
        [f':17: workload.ignore_errors: is "99999", which must be {CODES}'],
    ),
    "a rate that is no number": (
        [("clients = 10", "rate = nan")],
        [":17: workload.rate: is nan but must be a number"],
    ),
    "a rate below nothing": ([("clients = 10", "rate = -1")], [":17: workload.rate: is -1; it must be at least 0"]),
    "a rate in words": ([("clients = 10", 'rate = "1k"')], [':17: workload.rate: is "1k" but must be a number']),
    "thinking in an open loop": (
        [("clients = 10", 'rate = 100\nthink_time = "1s"')],
        [
            (
                ":18: workload.think_time: can't be set with a rate: in an open loop an event starts when it is due, "
                "and no client thinks"
            )
        ],
    ),
    "arrivals of a closed loop": (
        [("clients = 10", 'arrivals = "fixed"')],
        [":17: workload.arrivals: has no effect without workload.rate; give it too"],
    ),
    "a distribution of no pause": (
        [("clients = 10", 'think_distribution = "fixed"')],
        [":17: workload.think_distribution: has no effect without workload.think_time; give it too"],
    ),
    "more threads than clients": (
        [("clients = 10", "io_threads = 2")],
        [":17: workload.io_threads: is 2, more than there are clients (1)"],
    ),
    "clients beside terminals": (
        [('"slap"', '"tpcc"'), ("queries = 1000", "events = 1000\nkeying = true")],
        [":17: workload.clients: is 10; with keying there are 10, 10 for each warehouse: leave it out"],
    ),
    "a rate of terminals": (
        [('"slap"', '"tpcc"'), ("clients = 10", "rate = 10"), ("queries = 1000", "events = 1000\nkeying = true")],
        [":17: workload.rate: can't be set with keying: terminals have times of their own"],
    ),
    "a mix that is none": (
        [('"slap"', '"tpcc"'), ("queries = 1000", 'events = 1000\nmix = "new_order:45"')],
        [(':19: workload.mix: is "new_order:45", which must be names with weights, such as "new_order=45,payment=43"')],
    ),
    "a bulk load for a time": (
        [('"slap"', '"bulk"'), ("queries = 1000", 'duration = "5s"')],
        [
            (
                f":18: workload.duration: is unknown here; known are {fields(BulkSection)}. "
                "It is for kind slap, smack, oltp, tpcc, ledger, ingest, script, replay-log, fio, sysbench, trace"
            )
        ],
    ),
    "more clients than tables to fill": (
        [('"slap"', '"bulk"'), ("queries = 1000", "tables = 4")],
        [":17: workload.clients: is 10, more than there are tables (4): each table is filled by one client"],
    ),
    "commits rarer than calls": (
        [('"slap"', '"ingest"'), ("queries = 1000", "rows = 1000\nrows_per_commit = 5000")],
        [":19: workload.rows_per_commit: is 5000, more than rows_per_call (1000): a CALL commits at its end"],
    ),
    "commits in the middle of a statement": (
        [
            ('"slap"', '"ingest"\nmode = "statement"'),
            ("queries = 1000", "rows = 1000\nrows_per_insert = 4\nrows_per_commit = 6"),
        ],
        [":21: workload.rows_per_commit: is 6; give a multiple of rows_per_insert (4)"],
    ),
    "weights that are none": (
        [('"slap"', '"script"\nfile = "x.sql"'), ("queries = 1000", 'events = 1000\nweights = "buy"')],
        [':20: workload.weights: is "buy", which must be names with values, such as "buy=3,look=7"'],
    ),
    "ingest of rows for a time": (
        [('"slap"', '"ingest"'), ("queries = 1000", 'rows = 1000\nduration = "5s"')],
        [":18: workload.rows: and duration are both given; give one of them"],
    ),
    "queries and a duration": (
        [("clients = 10", 'duration = "5s"')],
        [":18: workload.queries: and duration are both given; give one of them"],
    ),
    "neither queries nor a duration": (
        [("queries = 1000\n", "")],
        [":15: workload: has neither queries nor duration; give one of them"],
    ),
    "fewer queries than clients": (
        [("clients = 10", "clients = [10, 1001]")],
        [":18: workload.queries: is 1000, fewer than one for each of 1001 clients"],
    ),
    "a time too short": (
        [("queries = 1000", 'duration = "5ms"')],
        [':18: workload.duration: is "5ms"; it must be at least 0.1 s'],
    ),
}
ALL = {**MISTAKES, **IN_DESIGN, **IN_STACK, **IN_LOAD}


@pytest.mark.parametrize(("changes", "messages"), ALL.values(), ids=ALL.keys())
def test_a_mistake_is_named(write_study, changes, messages):
    path = write_study(*changes)
    assert refusal(path) == "\n".join(f"{path}{message}" for message in messages)


def test_a_drive_file_that_is_not_there_is_looked_for_beside_the_study(write_study, tmp_path):
    path = write_study(('"ssd-sata"', '"mine.toml"'))
    assert refusal(path) == (
        f'{path}:6: stack.device: is "mine.toml": cannot read the drive file {tmp_path / "mine.toml"}: '
        "No such file or directory"
    )


@pytest.mark.parametrize(
    ("device", "said"),
    [
        ("ebs-io1(iops=90000)", "is not possible: iops = 90000 is more than iops_max = 64000"),
        ("ebs-gp3(iosp=90000)", "unknown field `iosp`"),
        ("raid1(hdd-15k)", "is not of the form raid1(MEMBER, COUNT)"),
        ("raid4(hdd-15k, 3)", "is not an array: the arrays are raid0, raid1, raid5, raid6 and raid10"),
        ("raid5(hdd-15k, 2)", "is not possible: members are 2; level 5 needs at least 3"),
        ("raid0(mine.toml, 2)", "cannot read the drive file"),
    ],
)
def test_a_drive_that_cannot_be_is_said_so(write_study, device, said):
    path = write_study(('"ssd-sata"', f'"{device}"'))
    message = refusal(path)
    assert message.startswith(f'{path}:6: stack.device: is "{device}": ')
    assert said in message


def test_a_drive_file_that_is_none_is_said_so(write_study, tmp_path):
    path = write_study(('"ssd-sata"', '"mine.toml"'))
    (tmp_path / "mine.toml").write_text("kind = 'rocket'\n")
    assert refusal(path).startswith(f'{path}:6: stack.device: is "mine.toml": ')


def test_a_script_that_is_not_there_is_looked_for_beside_the_study(write_study, tmp_path):
    path = write_study(('"slap"', '"script"\nfile = "mine.sql"'), ("queries = 1000", "events = 1000"))
    said = f'{path}:17: workload.file: is "mine.sql": {tmp_path / "mine.sql"} can\'t be read: No such file or directory'
    assert refusal(path) == said


def test_a_log_and_its_dump_are_looked_for_beside_the_study(write_study, tmp_path):
    path = write_study(('"slap"', '"replay-log"\nfile = "x.log"\nsetup = "y.sql"'), ("queries = 1000\n", ""))
    said = refusal(path)
    for line, field, name in ((17, "file", "x.log"), (18, "setup", "y.sql")):
        why = f"{tmp_path / name} can't be read: No such file or directory"
        assert f'{path}:{line}: workload.{field}: is "{name}": {why}' in said


def test_a_script_that_is_no_text_is_said_so(write_study, tmp_path):
    path = write_study(('"slap"', '"script"\nfile = "mine.sql"'), ("queries = 1000", "events = 1000"))
    (tmp_path / "mine.sql").write_bytes(b"SELECT '\xe9'")
    assert refusal(path) == f'{path}:17: workload.file: is "mine.sql", which is not UTF-8 text'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("version = = 1\n", ":1: not valid TOML: Invalid value at column 11"),
        ("[study]\n[study]\n", ":2: not valid TOML: Cannot declare ('study',) twice at column 7"),
        ("version = 99999999999999999999\n", ":1: not valid TOML: integer number overflowed at column 11"),
        (f"version = {'[' * 20000}{']' * 20000}\n", ": not valid TOML: it is nested too deep"),
        (
            "[stack]\ndevice = here  # this disk\n",
            ':2: not valid TOML: Invalid value at column 10; text stands in quotes: device = "here"',
        ),
        (
            "version: 1\n",
            (
                ":1: not valid TOML: Expected '=' after a key in a key/value pair at column 8;"
                " a field is written version = ..."
            ),
        ),
        (
            "\n[levels.größer]\n",
            (
                ":2: not valid TOML: Expected ']' at the end of a table declaration at column 11;"
                " a name with other than A-Z, a-z, 0-9, - and _ stands in quotes"
            ),
        ),
        ("a = [1,\n", ": not valid TOML: Invalid value (at end of document)"),
    ],
)
def test_a_file_that_is_not_toml(write_study, text, reason):
    path = write_study(text=text)
    assert refusal(path) == f"{path}{reason}"


def test_of_a_drive_that_is_not_known_nothing_else_is_asked(write_study):
    text = 'version = 1\n[study]\ntitle = "t"\n[stack]\ndevice = "hdd-72000"\n[workload]\nkind = "slap"\n'
    path = write_study(text=text.replace('"slap"', '"slap"\nload = "write"\nduration = "5s"'))
    assert refusal(path).startswith(f'{path}:5: stack.device: is "hdd-72000"; known are ')
    assert "is missing" not in refusal(path)


@pytest.mark.parametrize(
    ("text", "holds"),
    [("", "is empty"), ("# nothing\n", "is empty"), ("version = 1\n", "has no section but its version")],
)
def test_an_empty_file_is_told_in_one_sentence_what_a_study_needs(write_study, text, holds):
    path = write_study(text=text)
    assert refusal(path) == (
        f"{path}: {holds}; a study needs [study], [stack] and [workload]: "
        "write them, or have dbdyno new write a study to start from"
    )


# ESC, DEL, the one-byte CSI, a right-to-left override: each written as a TOML escape.
@pytest.mark.parametrize("escape", ["\\u001b[31m", "\\u007f", "\\u009b31m", "\\u202e"])
@pytest.mark.parametrize(
    "change",
    [
        ('"mq-deadline"', '"@"'),
        ('"ssd-sata"', '"@"'),
        ('"ssd-sata"', '"@.toml"'),
        (DEVICES, '["@", "@"]'),
        ('size = "1GiB"', '"@" = 1'),
        ('"1GiB"', '"4 @"'),
        ("[queue]", '["@"]'),
        (POOL, '"@" = 1'),
        (POOL, 'x = ["a@", "b"]\n[design]\nbaseline = { x = "c" }\n[workload]\n[x]'),
        ('"hdd-7200" }', '"@" }'),
        ("{ device", '{ "@"'),
        ('kind = "slap"', 'kind = "@"'),
    ],
    ids=str,
)
def test_what_a_terminal_would_obey_never_reaches_it(write_study, change, escape):
    path = write_study((change[0], change[1].replace("@", escape)))
    said = refusal(path)
    assert all(char.isprintable() or char == "\n" for char in said)


# Whatever stands where a value is expected, the answer is a study or a refusal that names a line.
VALUES = st.recursive(
    st.one_of(
        st.integers(-(2**63), 2**63 - 1).map(str),
        st.floats(allow_nan=False, allow_infinity=False).map(repr),
        st.sampled_from(["true", "false", "inf", "nan", "1979-05-27", "07:32:00", "{}", "[]", '""', '"here"', '"4G"']),
        st.text("abc 0.%[]{}#=", max_size=9).map('"{}"'.format),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        inner.map("{{ a = {} }}".format),
    ),
    max_leaves=4,
)
FIELDS = [
    'title = "A study"',
    DEVICES,
    'size = "1GiB"',
    "nr_requests = 64",
    POOL,
    'kind = "slap"',
    "clients = 10",
    BASELINE,
    "blocks = 6",
]


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(field=st.sampled_from(FIELDS), value=VALUES)
def test_any_value_is_taken_or_refused_in_words(write_study, field, value):
    new = value if field == DEVICES else f"{field.split(' = ')[0]} = {value}"
    path = write_study((field, new))
    try:
        study = load_study(path)
    except UserError as refused:
        assert all(line.startswith(str(path)) for line in str(refused).splitlines())  # noqa: PT017
    else:
        assert all(spec.stack.device for _, spec in study.combinations())
