"""``[crash]``: what it means where nothing is given, and every mistake in it by its line."""

import pytest

from dbdyno.study.schema import CrashSection
from tests.unit.study.conftest import refusal

DESIGN = ('[design]\nbaseline = { device = "hdd-7200" }\nblocks = 6\n', "[crash]\n")
SSD, HERE = ('["hdd-7200", "ssd-sata"]', '"ssd-sata"'), ('["hdd-7200", "ssd-sata"]', '"here"')
ON_HERE = (
    HERE,
    ('size = "1GiB"\nscheduler = "mq-deadline"\nfilesystem = "ext4"\n', ""),
    ("[queue]\nnr_requests = 64\n", ""),
)
TIMED = ('kind = "slap"\nclients = 10\nqueries = 1000', 'kind = "ledger"\nclients = 10\nduration = "3s"')
LEFT_TO_CUTS = "is for studies of speed; crash.cuts decides how many blocks there are. Leave it out"


def crash(text, *changes):
    return (TIMED, *changes, (DESIGN[0], DESIGN[1] + text))


def test_where_nothing_is_given_300_cuts_at_random_times_are_examined_in_30_trials(load):
    found = load(*crash("")).crash
    assert (found.cuts, found.cuts_each, found.blocks, found.mode, found.keep) == (300, 10, 30, "power", "worst")
    assert found.strata == [("uniform", "random-4096")]
    assert (found.hold_seconds, found.recovery_limit) == (0.0, 60.0)


def test_a_study_of_speed_has_no_cuts(load):
    assert load().crash is None


def test_a_cut_more_than_fits_takes_one_more_trial():
    assert [CrashSection(cuts=cuts, cuts_per_run=10).blocks for cuts in (1, 10, 11, 300)] == [1, 1, 2, 30]


def test_a_kill_ends_the_load_so_that_a_trial_has_one(load):
    found = load(*crash('mode = "kill"\n')).crash
    assert (found.cuts_each, found.blocks, found.strata) == (1, 300, [("uniform", None)])


def test_all_kinds_of_cut_come_alike_although_no_trial_has_them_all():
    kinds = CrashSection(when=["uniform", "ack"], survivors=["none", "prefix", "lying"], cuts_per_run=4)
    taken = [kinds.stratum(cut, block) for block in range(1, 4) for cut in range(4)]
    assert taken == kinds.strata * 2
    assert kinds.strata[:3] == [("uniform", "none"), ("uniform", "prefix"), ("uniform", "lying")]
    assert kinds.hold_seconds == 0.1


def test_a_scale_may_have_fewer_cuts(write_study):
    from dbdyno.study.load import load_study

    path = write_study(*crash("cuts = 300\n[scale.small.crash]\ncuts = 60\n"))
    assert [load_study(path, scale).crash.cuts for scale in ("", "small")] == [300, 60]


# The section stands from line 19 on.
MISTAKES = {
    "no cut": (crash("cuts = 0\n"), [":20: crash.cuts: is 0; it must be at least 1"]),
    "half a cut": (crash("cuts = 1.5\n"), [":20: crash.cuts: is 1.5 but must be a whole number"]),
    "more cuts than there is time for": (
        crash("cuts = 20_000\n"),
        [":20: crash.cuts: is 20000, which takes 2000 blocks of 10; at most 1000 are run"],
    ),
    "cuts out of all bounds": (crash("cuts = 100_001\n"), [":20: crash.cuts: is 100001; it must be at most 100000"]),
    "more cuts of a load than that": (
        crash("cuts_per_run = 101\n"),
        [":20: crash.cuts_per_run: is 101; it must be at most 100"],
    ),
    "fewer cuts than kinds": (
        crash('cuts = 3\nwhen = ["uniform", "ack"]\nsurvivors = ["none", "prefix"]\n'),
        [":20: crash.cuts: is 3, fewer than the 4 kinds of cut that when and survivors make"],
    ),
    "when is no list": (
        crash('when = "uniform"\n'),
        [':20: crash.when: is "uniform" but must be a list, such as ["uniform"]'],
    ),
    "never": (crash("when = []\n"), [":20: crash.when: is [], which is an empty list; name at least one"]),
    "some day": (
        crash('when = ["uniform", "flsh"]\n'),
        [
            (':20: crash.when: is "flsh"; allowed are uniform, ack, flush, page-write, ddl, recovery. '
            'Did you mean "flush"?')
        ],
    ),
    "twice the same": (
        crash('survivors = ["none", "none"]\n'),
        [':20: crash.survivors: is ["none", "none"], which names "none" twice'],
    ),
    "a mode that there is not": (
        crash('mode = "reset"\n'),
        [':20: crash.mode: is "reset"; allowed are power, kill'],
    ),
    "a drive that holds back for ever": (
        crash('survivors = ["lying"]\nhold = "11s"\n'),
        [':21: crash.hold: is "11s"; it must be at most 10 s'],
    ),
    "an honest drive that holds back": (
        crash('hold = "50ms"\n'),
        [':20: crash.hold: is for survivors = ["lying"]; add that, or leave hold out'],
    ),
    "a recovery without patience": (
        crash('recovery_limit = "0.5s"\n'),
        [':20: crash.recovery_limit: is "0.5s"; it must be at least 1 s'],
    ),
    "something to keep": (
        crash('keep = "best"\n'),
        [':20: crash.keep: is "best"; allowed are none, worst, all'],
    ),
    "a field that there is not": (
        crash("seed = 1\n"),
        [
            (":20: crash.seed: is unknown here; known are mode, cuts, cuts_per_run, when, survivors, hold, "
            "recovery_limit, keep. It belongs in [design]")
        ],
    ),
    "no section": (
        ((DESIGN[0], ""), ("version = 1\n", "version = 1\ncrash = 300\n")),
        [":2: crash: is 300 but must be a section: [crash]"],
    ),
    "cuts in the design": (
        (("blocks = 6", "cuts = 300"),),
        [":21: design.cuts: is unknown here; known are "],
    ),
    "blocks and until beside cuts": (
        (TIMED, ("blocks = 6", 'blocks = 6\nuntil = "precise"\nhalf_width = "2%"\nsettle = "30s"\n[crash]')),
        [
            f":21: design.blocks: {LEFT_TO_CUTS}",
            f":22: design.until: {LEFT_TO_CUTS}",
            f":23: design.half_width: {LEFT_TO_CUTS}",
            (":24: design.settle: is for studies of speed; what a cut leaves does not depend on the trial before. "
            "Leave it out"),
        ],
    ),
    "a kill with what only a power cut has": (
        crash(
            'mode = "kill"\nwhen = ["ack"]\nsurvivors = ["none"]\nhold = "1s"\ncuts_per_run = 2\n',
        ),
        [
            ':21: crash.when: is ["ack"]; with mode = "kill" it is ["uniform"]',
            (':22: crash.survivors: has no effect with mode = "kill": what was written survives in the page cache. '
            "Leave it out"),
            (':23: crash.hold: has no effect with mode = "kill": what was written survives in the page cache. '
            "Leave it out"),
            ':24: crash.cuts_per_run: is 2; with mode = "kill" it is 1: a killed server ends the load',
        ],
    ),
    "pages of an engine that writes none again": (
        crash('when = ["uniform", "page-write"]\n', ('filesystem = "ext4"', 'filesystem = "ext4"\nengine = "rocksdb"')),
        [
            (':21: crash.when: is "page-write", but only innodb writes pages in place while a load goes on, '
            "not rocksdb. Leave it out")
        ],
    ),
    "after DDL statements that the load has not": (
        crash('when = ["uniform", "ddl"]\n'),
        [
            ':20: crash.when: is "ddl", but the load has no DDL statement. Give workload.ddl = true, or leave it out',
        ],
    ),
    "pages that move": (
        crash('when = ["page-write"]\n', ('"ext4"', '"btrfs"')),
        [
            (':20: crash.when: is "page-write", but btrfs writes a page to a new place each time, which can\'t be '
            "foreseen. Leave it out")
        ],
    ),
    "a load bounded by an amount": (
        crash("", ('duration = "3s"', "events = 10")),
        [
            (":15: workload.duration: is missing; cuts are drawn over the measured time, so give one, such as "
            '"3s", and no amount')
        ],
    ),
    "a warm-up until steady": (
        crash("", ("clients = 10", 'clients = 10\nwarmup = "steady"')),
        [':18: workload.warmup: is "steady", whose length is unknown; cuts need a time, such as "1s"'],
    ),
    "two disks": (
        crash("", ('"ext4"', '"btrfs"\ndevices = 2')),
        [":10: stack.devices: is 2; a power cut is of one disk. Leave it out"],
    ),
    "the power of this machine": (
        crash("", *ON_HERE),
        [
            (':14: crash.mode: is "power", but the disk of this machine keeps its power while the machine runs. '
            'Give mode = "kill", which kills the server alone, or an emulated drive')
        ],
    ),
    "the power of a real disk": (
        crash('mode = "power"\n', ('["hdd-7200", "ssd-sata"]\nsize = "1GiB"', '"/dev/disk/by-id/ata-A_1"')),
        [
            (':19: crash.mode: is "power", but dbdyno can\'t cut the power of a real disk. '
            'Give mode = "kill", which kills the server alone, or an emulated drive')
        ],
    ),
    "the power of a file's disk": (
        crash("", ('["hdd-7200", "ssd-sata"]', '"file:/srv/bench"')),
        [
            (':19: crash.mode: is "power", but the disk that holds the file keeps its power while the machine runs. '
            'Give mode = "kill", which kills the server alone, or an emulated drive')
        ],
    ),
    "the power of memory": (
        crash("", ('"ext4"', '"tmpfs"')),
        [
            (':19: crash.mode: is "power", but a power cut leaves nothing in memory. '
            'Give mode = "kill", which kills the server alone, or an emulated drive')
        ],
    ),
    "an external server": (
        crash('mode = "kill"\n', (('device = ["hdd-7200", "ssd-sata"]\nsize = "1GiB"\nscheduler = "mq-deadline"\n'
              'filesystem = "ext4"\nmemory = "1GiB"\n[queue]\nnr_requests = 64\n'), 'server = "mysql://u@db:3306/test"\n')),
        [
            (":13: crash: needs a server that dbdyno starts: it can't kill or restart one that runs "
            "elsewhere. Leave [crash] out, or let dbdyno start a server of its own")
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "expected"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_said_by_its_line(write_study, changes, expected):
    path = write_study(*changes)
    lines = refusal(path).splitlines()
    assert len(lines) == len(expected), lines
    for line, wanted in zip(lines, expected, strict=True):
        assert line.startswith(f"{path}{wanted}")


def test_a_simulated_stack_has_nothing_to_cut(write_study):
    changes = (
        ('device = ["hdd-7200", "ssd-sata"]', 'device = "hdd-7200"\nkernel = "6.x"'),
        ('filesystem = "ext4"\nmemory = "1GiB"', 'filesystem = "ext4"'),
        ('[server.settings]\ninnodb_buffer_pool_size = "256M"\n', ""),
    )
    assert ": crash: needs a real kernel and a real server, and a simulated stack has none. " in refusal(
        write_study(*crash("", *changes))
    )


def test_only_a_ledger_knows_what_was_acknowledged(write_study):
    wanted = ':16: workload.kind: is "slap"; only kind = "ledger" knows of each commit whether it was acknowledged'
    assert wanted in refusal(write_study(DESIGN))


def test_cuts_after_ddl_statements_of_the_load(load):
    found = load(*crash('when = ["ddl"]\n', ("clients = 10", "clients = 10\nddl = true"))).crash
    assert found.strata == [("ddl", "random-4096")]


def test_cuts_are_no_factor(load):
    several = load(*crash('when = ["uniform", "ack"]\nsurvivors = ["none", "prefix"]\n'))
    assert [factor.name for factor in several.factors] == ["device"]
