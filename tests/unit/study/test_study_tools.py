"""What a study may say of other people's programs: mistakes named, servers where they belong, warnings."""

import pytest

from dbdyno.errors import UserError

HEAD = 'version = 1\n[study]\ntitle = "x"\n[stack]\n'
DISK = 'device = ["hdd-7200", "ssd-sata"]\nsize = "1GiB"\nfilesystem = "ext4"\n'
FIO = '[workload]\nkind = "fio"\n'
RUN = '[workload]\nkind = "command"\n'
SLAP = '[workload]\nkind = "mysqlslap"\n'
PROFILE = 'profile = "SEQ1M Q8T1"\nload = "read"\n'

MISTAKES = {
    "a fio load of nothing": (DISK, FIO, "workload: has neither profile nor job"),
    "a profile that is none": (DISK, f'{FIO}profile = "SEQ1M"\nload = "read"\n', "is not a profile in KDiskMark"),
    "a profile without a load": (DISK, f'{FIO}profile = "SEQ1M Q8T1"\n', "workload.load: is missing"),
    "a profile and a job": (DISK, f'{FIO}{PROFILE}job = "a.fio"\n', "is for a profile; a job file has its own"),
    "a job that is not there": (DISK, f'{FIO}job = "none.fio"\n', "can't be read: No such file"),
    "a job that reaches elsewhere": (DISK, f'{FIO}job = "evil.fio"\n', "line 3: exec_prerun"),
    "a server below fio": (f'{DISK}server = "mariadb"\n', FIO + PROFILE, "stack.server: has no effect with fio"),
    "an engine below fio": (f'{DISK}engine = "myisam"\n', FIO + PROFILE, "stack.engine: has no effect with fio"),
    "no server below slap": (f'{DISK}server = "none"\n', '[workload]\nkind = "slap"\nqueries = 10\n',
                             "a slap load needs one"),
    "a setting without a server": (f'{DISK}server = "none"\n[server.settings]\nx = 1\n',
                                   f'{RUN}command = "true"\n', "settings: has no effect with server"),
    "a file that memory holds": (f'{DISK}memory = "1GiB"\n', '[workload]\nkind = "bonnie"\nsize = "1GiB"\n',
                                 "the page cache would answer for the disk"),
    "sysbench without an end": (DISK, '[workload]\nkind = "sysbench"\n', "has neither events nor duration"),
    "half a second of sysbench": (DISK, '[workload]\nkind = "sysbench"\nduration = "1500ms"\n', "give whole seconds"),
    "more clients than queries": (DISK, f"{SLAP}clients = 8\nqueries = 4\n", "fewer than one for each"),
    "quotes that do not end": (DISK, f"{RUN}command = \"a 'b\"\n", "can't be split into words"),
    "a figure without a group": (DISK, f'{RUN}command = "a"\nfigure = "rate"\n', "has 0 groups"),
    "a figure that is no expression": (DISK, f'{RUN}command = "a"\nfigure = "(("\n', "is not a regular"),
    "a unit of nothing": (DISK, f'{RUN}command = "a"\nunit = "x"\n', "has no effect without"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named(load, tmp_path, name):
    (tmp_path / "evil.fio").write_text("[job]\nrw=write\nexec_prerun=reboot\n")
    stack, workload, said = MISTAKES[name]
    with pytest.raises(UserError) as refused:
        load(text=HEAD + stack + workload)
    assert said in str(refused.value)


def test_a_program_of_the_users_own_is_relative_to_the_study(load, tmp_path):
    text = f'{HEAD}{DISK}[workload]\nkind = "command"\ncommand = ["./a.sh \'b c\'", "dd if=/dev/zero"]\n'
    commands = {spec.workload.command for _, spec in load(text=text).combinations()}
    assert commands == {f"{tmp_path}/a.sh 'b c'", "dd if=/dev/zero"}


def test_a_job_file_is_part_of_the_identity(plan, tmp_path):
    job = tmp_path / "mine.fio"
    job.write_text("[job]\nrw=read\nsize=1m\n")
    made = plan(text=f'{HEAD}{DISK}{FIO}job = "mine.fio"\n')
    assert made.own_files["scripts"] == {str(job): job.read_text()}
    job.write_text("[job]\nrw=write\nsize=1m\n")
    assert plan(text=f'{HEAD}{DISK}{FIO}job = "mine.fio"\n').study_sha256() != made.study_sha256()


@pytest.mark.parametrize(
    ("stack", "workload", "warned"),
    [
        (DISK, f"{FIO}{PROFILE}", False),
        (DISK, f"{FIO}{PROFILE}direct = false\n", True),
        (f'{DISK}memory = "512MiB"\n', f"{FIO}{PROFILE}direct = false\n", False),
        (DISK, '[workload]\nkind = "bonnie"\nsize = "512MiB"\n', True),
        (f'{DISK}memory = "256MiB"\n', '[workload]\nkind = "bonnie"\nsize = "512MiB"\n', False),
    ],
)
def test_the_page_cache_is_warned_of(plan, stack, workload, warned):
    design = "[design]\nblocks = 8\n"
    said = [text for text in plan(text=HEAD + stack + workload + design).warnings() if "page cache" in text]
    assert bool(said) == warned
    assert len(said) <= 1


def test_a_metric_that_a_program_does_not_tell_is_warned_of(plan):
    design = '[design]\nblocks = 8\nmetric = "latency_ms_p99"\n'
    (said,) = plan(text=f'{HEAD}{DISK}[workload]\nkind = "mysqlslap"\nqueries = 10\n{design}').warnings()
    assert "mysqlslap does not report it; judge by queries_per_second" in said
