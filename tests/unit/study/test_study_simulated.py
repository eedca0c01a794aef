"""Simulated stacks in a study: what makes one, and what its kernel is held to before anything runs."""

import json

import pytest

from dbdyno._native import simulate
from dbdyno.study.load import load_study
from dbdyno.study.simulated_loads import kernels_by_name
from tests.unit.study.conftest import refusal

STUDY = """\
version = 1
[study]
title = "An old kernel"
[stack]
kernel = "2.6.18"
device = "hdd-15k"
size = "1GiB"
scheduler = "deadline"
{stack}
[queue]
nr_requests = [128, 100000]
{queue}
[workload]
kind = "fio"
profile = "RND4K Q32T4"
load = "write"
{more}
"""
NO_HOST = "has no effect on a simulated stack, in which no host takes part; leave it out"


@pytest.fixture
def written(write_study):
    """Return what writes the study with further lines and with other text, and returns its path."""

    def write(*changes, stack="", queue="", more=""):
        return write_study(*changes, text=STUDY.format(stack=stack, queue=queue, more=more))

    return write


def test_a_kernel_makes_a_stack_simulated_and_may_be_a_factor(written):
    study = load_study(written(('"2.6.18"', '["2.6.18", "2.6.32"]')))
    specs = [spec for _, spec in study.combinations()]
    assert [factor.name for factor in study.factors] == ["kernel", "nr_requests"]
    assert {spec.stack.kind for spec in specs} == {"simulated"}
    assert not any(spec.has_server for spec in specs)


@pytest.mark.parametrize("device", ["raid1(hdd-15k, 2)", "ebs-gp3", "hdd-7200(span=whole)"])
def test_drives_and_arrays_are_those_of_emulated_disks(written, device):
    assert load_study(written(('"hdd-15k"', f'"{device}"'))).factors


MISTAKES = {
    "no such kernel": (
        [('"2.6.18"', '["2.6.18",\n"2.6.8"]')],
        (
            ':6: stack.kernel: is "2.6.8", which can\'t be simulated; known are 2.6.9, 2.6.18, 2.6.32, 3.10, 4.4, 6.x.'
            ' Did you mean "2.6.18"?'
        ),
    ),
    "a scheduler that it does not have": (
        [('"deadline"', '"mq-deadline"')],
        (
            ':8: stack.scheduler: is "mq-deadline"; kernel 2.6.18 has cfq, noop, deadline, anticipatory.'
            ' Did you mean "deadline"?'
        ),
    ),
    "no such drive": ([('"hdd-15k"', '"hdd-15kk"')], ':6: stack.device: is "hdd-15kk"; known are '),
    "no drive": (
        [('"hdd-15k"', '"here"')],
        ':6: stack.device: is "here"; a simulated stack needs a drive model, such as hdd-15k: dbdyno disk models lists',
    ),
    "no size": ([('size = "1GiB"\n', "")], ':4: stack.size: is missing; a simulated drive needs one, such as "4GiB"'),
    "too few requests": (
        [("[128, 100000]", "3")],
        ":11: queue.nr_requests: is 3; kernel 2.6.18 with deadline takes 4 to 1000000",
    ),
    "more than blk-mq takes": (
        [('"2.6.18"', '"6.x"'), ('"deadline"', '"mq-deadline"')],
        ":11: queue.nr_requests: is 100000; kernel 6.x with mq-deadline takes 4 to 2048",
    ),
    "more than a drive takes without a scheduler": (
        [('"2.6.18"', '"6.x"'), ('"deadline"', '"none"'), ("[128, 100000]", "64")],
        ":11: queue.nr_requests: is 64; kernel 6.x with none takes 1 to 32",
    ),
    "writeback throttling before there was one": (
        [("[128, 100000]", "128\nwbt_lat_usec = 2000")],
        ":12: queue.wbt_lat_usec: has no effect: kernel 2.6.18 with deadline has no writeback throttling",
    ),
    "a filesystem that the page cache does not know": (
        [("\n[queue]", '\nfilesystem = "xfs"\n[queue]')],
        ':10: stack.filesystem: is "xfs"; a simulated stack has ext3, ext4',
    ),
    "a load that can't be simulated": (
        [('kind = "fio"\nprofile = "RND4K Q32T4"\nload = "write"', 'kind = "tpcc"\nduration = "1s"')],
        ':14: workload.kind: is "tpcc", which can\'t be simulated; these can: ',
    ),
    "the page cache before a profile": (
        [('load = "write"', 'load = "write"\ndirect = false')],
        ":17: workload.direct: is false, but a simulated profile goes past the page cache; leave it out",
    ),
    "a profile larger than its drive": (
        [('load = "write"', 'load = "write"\nsize = "2GiB"')],
        ":17: workload.size: is 2 GiB, more than the 1 GiB of stack.size",
    ),
    "a profile that is larger unless its size is given": (
        [('"1GiB"', '"512MiB"')],
        ":13: workload.size: is 1 GiB unless given, more than the 512 MiB of stack.size",
    ),
}


@pytest.mark.parametrize(("changes", "message"), MISTAKES.values(), ids=MISTAKES)
def test_what_its_kernel_has_not_is_refused(written, changes, message):
    path = written(*changes)
    assert refusal(path).startswith(f"{path}{message}")


FIELDS = {
    "a tunable of another scheduler": (
        {"queue": "iosched.quantum = 4"},
        ":12: queue.iosched.quantum: is not a tunable of deadline of kernel 2.6.18; known are ",
    ),
    "a tunable out of bounds": (
        {"queue": "iosched.fifo_batch = -1"},
        ":12: queue.iosched.fifo_batch: is -1; deadline of kernel 2.6.18 takes 0 to 2147483647",
    ),
    "a time out of bounds, in its unit": (
        {"queue": "iosched.read_expire = -5"},
        ":12: queue.iosched.read_expire: is -5; deadline of kernel 2.6.18 takes 0 to 2147483647 ms",
    ),
    "a queue that no drive has": ({"queue": "queue_depth = 0"}, ":12: queue.queue_depth: is 0; it must be at least 1"),
    "what is not simulated of a queue": (
        {"queue": "nomerges = 2"},
        ":12: queue.nomerges: is not simulated; a simulated queue has iosched, nr_requests, queue_depth, wbt_lat_usec",
    ),
    "a server": ({"stack": 'server = "mariadb"'}, f":9: stack.server: {NO_HOST}"),
    "two devices": (
        {"stack": "devices = 2"},
        ":9: stack.devices: is 2; a simulated stack has one drive, which may be an array: raid1(hdd-15k, 2)",
    ),
    "processors kept awake": ({"more": "[host]\nawake = true"}, f":18: host.awake: {NO_HOST}"),
    "a block trace": ({"more": "[probes]\ntrace = true"}, f":18: probes.trace: {NO_HOST}"),
    "a rest": (
        {"more": '[design]\nsettle = "1s"'},
        ":18: design.settle: has no effect on simulated stacks, which all start anew; leave it out",
    ),
    "how a filesystem is made": ({"more": '[filesystem]\nmkfs = "-b 4096"'}, f":18: filesystem.mkfs: {NO_HOST}"),
    "a way to mount it": (
        {"stack": 'filesystem = "ext3"', "more": '[filesystem]\nmount = "noatime"'},
        ':18: filesystem.mount: is "noatime"; a simulated stack has data=ordered or data=writeback',
    ),
}


@pytest.mark.parametrize(("fields", "message"), FIELDS.values(), ids=FIELDS)
def test_what_is_of_a_host_is_refused(written, fields, message):
    path = written(**fields)
    assert refusal(path).startswith(f"{path}{message}")


SERVERS = {
    "an engine without a source of its load": (
        'engine = "MyISAM"',
        "slap",
        'stack.engine: is "MyISAM"; a simulated slap has innodb',
    ),
    "an engine that none has": (
        'engine = "rocksdb"',
        "ingest",
        'stack.engine: is "rocksdb"; a simulated ingest has innodb or myisam',
    ),
    "a variable of the other engine": (
        'engine = "MyISAM"\n[server.settings]\nsync_binlog = 1',
        "ingest",
        "server.settings.sync_binlog: is not simulated; known are key_buffer_size",
    ),
    "a variable that is near": (
        "[server.settings]\ninnodb_io_capacty = 1",
        "slap",
        'Did you mean "innodb_io_capacity"?',
    ),
    "a variable of no such value": (
        '[server.settings]\ninnodb_flush_method = "littlesync"',
        "slap",
        'server.settings.innodb_flush_method: is "littlesync", which is neither "fsync" nor "O_DIRECT"',
    ),
    "an amount": (
        "[workload]\nqueries = 500",
        "slap",
        "workload.queries: is not simulated, because work after the last answer would count; give duration",
    ),
    "an open loop": ("[workload]\nrate = 5", "slap", "workload.rate: is not simulated; leave it out"),
    "a warm-up of no time": (
        '[workload]\nwarmup = "steady"',
        "ingest",
        'workload.warmup: is "steady"; a simulated load has a time, such as "10s"',
    ),
    "reading of all": (
        '[workload]\nload = "read"',
        "slap",
        'workload.load: is "read"; these can be simulated: write, update, key, mixed',
    ),
}


@pytest.mark.parametrize(("lines", "kind", "message"), SERVERS.values(), ids=SERVERS)
def test_what_a_simulated_server_does_not_know_is_refused(written, lines, kind, message):
    stack, _, load = lines.partition("[workload]\n") if "[workload]" in lines else (lines, "", "")
    fio = ('kind = "fio"\nprofile = "RND4K Q32T4"\nload = "write"', f'kind = "{kind}"\nduration = "1s"\n{load}')
    assert message in refusal(written(fio, stack=stack))


@pytest.mark.parametrize(("kind", "engine"), [("ingest", "MyISAM"), ("ingest", "innodb"), ("slap", "innodb")])
def test_servers_may_be_simulated(written, kind, engine):
    fio = ('kind = "fio"\nprofile = "RND4K Q32T4"\nload = "write"', f'kind = "{kind}"\nduration = "1s"')
    specs = [spec for _, spec in load_study(written(fio, stack=f'engine = "{engine}"')).combinations()]
    assert {spec.workload.kind for spec in specs} == {kind}


def test_some_treatments_can_t_be_simulated_alone(written):
    levels = '[levels.old]\nkernel = "6.x"\nfilesystem = "ext4"\n[levels.now]\nfilesystem = "ext4"\nio_timeout = 9'
    path = written(('kernel = "2.6.18"\n', ""), ('scheduler = "deadline"\n', ""), ("[128, 100000]", "32"), more=levels)
    text = "is simulated in some treatments only; simulate all of them or none, as the others have no virtual time"
    assert refusal(path) == f"{path}:16: levels.old.kernel: {text}"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            [('kernel = "2.6.18"\n', "")],
            ':7: stack.scheduler: is "deadline"; allowed are none, mq-deadline, kyber, bfq.',
        ),
        (
            [('kernel = "2.6.18"\n', ""), ('scheduler = "deadline"\n', ""), ("[128, 100000]", "64\nqueue_depth = 4")],
            ":10: queue.queue_depth: is for a simulated stack; leave it out, or give stack.kernel",
        ),
    ],
)
def test_what_only_a_simulated_kernel_has_is_refused_without(written, changes, message):
    path = written(*changes)
    assert f"{path}{message}" in refusal(path)


def test_a_trace_is_for_simulated_stacks(written):
    changes = [('kernel = "2.6.18"\n', ""), ('scheduler = "deadline"\n', ""), ("[128, 100000]", "64")]
    load = ('kind = "fio"\nprofile = "RND4K Q32T4"\nload = "write"', 'kind = "trace"\nfile = "disk.trace"')
    path = written(*changes, load)
    said = 'workload.kind: is "trace", which replays on a simulated stack only; give stack.kernel'
    assert said in refusal(path)


# What a study takes for a kernel's ``nr_requests`` is what the simulator takes.


DEPTH = 16
EACH = [(name, scheduler) for name, kernel in kernels_by_name().items() for scheduler in kernel.schedulers]


def outcome(kernel, scheduler, nr_requests):
    """Of more random reads at once than any default has requests; of many processes, as the first cfq limits each."""
    job = {"depth": 100, "processes": 100}
    point = {
        "device": "hdd-15k",
        "size_bytes": 1 << 33,
        "kernel": kernel,
        "scheduler": scheduler,
        "nr_requests": nr_requests,
        "queue_depth": DEPTH,
        "duration_s": 0.2,
        "load": {"kind": "jobs", "jobs": [job]},
    }
    return json.loads(simulate(json.dumps(point)))["columns"]


@pytest.mark.parametrize(("name", "scheduler"), EACH)
def test_default_and_bounds_of_nr_requests_are_the_simulators(name, scheduler):
    default, least, most = kernels_by_name()[name].nr_requests(scheduler, DEPTH)
    assert outcome(name, scheduler, None) == outcome(name, scheduler, default) != outcome(name, scheduler, least)
    assert outcome(name, scheduler, most)
    for outside in (least - 1, most + 1):
        with pytest.raises(ValueError, match=f"not between {least} and {most}"):
            outcome(name, scheduler, outside)
