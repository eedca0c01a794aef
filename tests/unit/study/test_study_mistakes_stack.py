"""Mistakes in what the queries stand on: device, queue, filesystem, server."""

import pytest

from dbdyno._native import device_models
from dbdyno.model.design import BOOTED_KERNELS
from dbdyno.study.schema import HostSection, QueueSection, StackSection
from tests.unit.study.conftest import fields, refusal

KERNELS = (
    f"{', '.join(BOOTED_KERNELS)} and the absolute path of a kernel: its image, or the folder of its unpacked package"
)
DEVICES = '["hdd-7200", "ssd-sata"]'
POOL = 'innodb_buffer_pool_size = "256M"'
BASELINE = 'baseline = { device = "hdd-7200" }'
SCHEDULER, TWO_SCHEDULERS = 'scheduler = "mq-deadline"', 'scheduler = ["mq-deadline", "none"]'
MODELS = ", ".join([*(model["name"] for model in device_models()), "here", "memory", "/dev/disk/by-id/..."])
HERE = 'can\'t be set with device = "here", a directory of the host as it is'
STACK = fields(StackSection)
ONE_THAT_DOES = ", or simulate one that does (stack.kernel)"
SERVERS = "mariadb, mariadb-10.5, mariadb-10.11, mariadb-11.4, mariadb-11.8, mysql-5.5, mysql-5.6, mysql-5.7, "
SERVERS += "mysql-8.0, mysql-9, mariadb-10.6, mysql-8.4, percona-8.0, percona-8.4, none"
SERVERS += " and the absolute path of an unpacked MariaDB or MySQL"

# What is changed in the study; the messages, each after the study's path.
MISTAKES = {
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
            ':8: stack.scheduler: can\'t be set with device = "memory", which is not a device',
            ':9: stack.filesystem: is "ext4"; with device = "memory" it is "tmpfs"',
            ':12: queue.nr_requests: can\'t be set with device = "memory", which is not a device',
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


@pytest.mark.parametrize(("changes", "messages"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_named(write_study, changes, messages):
    path = write_study(*changes)
    assert refusal(path) == "\n".join(f"{path}{message}" for message in messages)
