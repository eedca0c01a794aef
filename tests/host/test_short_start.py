"""What programs of this host take is asked of these very programs: what ``plan`` says yes to, the trial does."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from dbdyno.errors import HostError
from dbdyno.servers.contract import SettingOutcome
from dbdyno.stack import short_start
from dbdyno.stack.capabilities import filesystem
from dbdyno.stack.layers.server import ServerLayer
from dbdyno.stack.short_start import MkfsOptions, MountOptions, Starting, StartRequest, mkfs_outcome, mount_outcome
from tests.loops import loop_over
from tests.support import dbdyno, journal_lines, processes_of, put_back, start_dbdyno, wait_for, what_is_left

pytestmark = [pytest.mark.host, pytest.mark.timeout(300)]

HUGE_PAGES = Path("/proc/sys/vm/nr_hugepages").read_text().strip() != "0"
STUDY = """\
version = 1
[study]
title = "what a server takes"
[stack]
device = "here"
server = "mariadb"
[server.settings]
{settings}
[workload]
kind = "slap"
load = "write"
clients = 2
queries = 50
warmup = "0s"
[design]
blocks = 2
interference = "note"
"""


def try_settings(asked):
    with Starting() as starting:
        return starting.try_settings(asked)


@pytest.fixture
def planned(shared_state, study_file):
    """What ``plan --json`` says of settings, by their names, and its exit code."""

    def ask(settings):
        done = dbdyno("plan", study_file(STUDY.format(settings=settings)), "--json", state=shared_state)
        return {one["setting"]: one for one in json.loads(done.stdout)["settings"]}, done.returncode, done

    return ask


def test_plan_refuses_what_a_trial_would_with_line_and_what_the_server_took(planned):
    found, code, done = planned(
        'max_allowed_packet = "2G"\ncharacter_set_client_handshake = false\ntmp_table_size = 2000000000\n'
        'character_set_server = "utf8"\noptimizer_switch = "mrr=on,index_merge=off"\nquery_cache_type = 2\n'
        "sync_binlog = 1"
    )
    assert code == 2
    how = {name: one["how"] for name, one in found.items()}
    assert how == {
        "max_allowed_packet": "adjusted",
        "character_set_client_handshake": "unknown",
        "tmp_table_size": "adjusted",
        "character_set_server": "another name",
        "query_cache_type": "another name",
    }
    packet = found["max_allowed_packet"]
    assert (packet["asked"], packet["got"], packet["taken"]) == ("2G", "1073741824", False)
    assert packet["place"].endswith("study.toml:8: server.settings.max_allowed_packet")
    assert "adjusted to 1073741824" in packet["said"]
    lacking = {one["name"].rpartition(".")[2] for one in json.loads(done.stdout)["lacking"]}
    assert lacking == {"max_allowed_packet", "character_set_client_handshake", "tmp_table_size"}
    remedies = {one["name"].rpartition(".")[2]: one["remedy"] for one in json.loads(done.stdout)["lacking"]}
    assert remedies["max_allowed_packet"] == "write what it takes, max_allowed_packet = 1073741824, or leave it out"
    assert remedies["character_set_client_handshake"] == "leave it out"


def test_each_level_is_tried_and_told_by_its_own_line(planned):
    found, code, done = planned('innodb_encrypt_tables = [false,\n  true]\ninnodb_page_size = "16k"')
    assert code == 2
    assert found["innodb_encrypt_tables"]["said"].startswith("needs the module file_key_management, which")
    assert ":9: server.settings.innodb_encrypt_tables" in found["innodb_encrypt_tables"]["place"]
    (lacking,) = json.loads(done.stdout)["lacking"]
    assert lacking["remedy"] == "leave this level out, so that the line reads: innodb_encrypt_tables = false"


@pytest.mark.skipif(HUGE_PAGES, reason="this host can't: its huge pages are reserved")
def test_pages_that_the_host_does_not_have_are_told_by_plan_and_by_the_run(shared_state, study_file, tmp_path):
    study, run = study_file(STUDY.format(settings="large_pages = [false, true]")), tmp_path / "run"
    plan = dbdyno("plan", study, state=shared_state)
    assert plan.returncode == 0
    assert "warning: this host does not grant large_pages = true" in plan.stdout
    done = dbdyno("run", study, "--into", run, state=shared_state)
    assert done.returncode == 0, done.stdout + done.stderr
    servers = [json.loads(file.read_text())["observed"]["server"] for file in run.glob("trials/*/trial.json")]
    assert {one["large_pages"]: "not_granted" in one for one in servers} == {"ON": True, "OFF": False}
    assert "a setting was not granted" in " ".join(dbdyno("report", run, state=shared_state).stdout.split())
    report = dbdyno("report", run, "--details", state=shared_state).stdout
    assert "were both measured without it" in " ".join(report.split())


# Lines of people's option files: each is left out or changed by ``new``, or taken as it stands.
LINES = """\
skip-external-locking
external-locking
skip-name-resolve
skip-character-set-client-handshake
sysdate-is-now
memlock
safe-user-create
old-style-user-limits
temp-pool
innodb_status_file
skip-slave-start
skip-stack-trace
skip-host-cache
max_allowed_packet = 2G
net_buffer_length = 2M
thread_stack = 64K
table_open_cache = 1000000
open_files_limit = 5000000
innodb_open_files = 1000000
max_connections = 200000
query_cache_size = 1000001
query_cache_type = 1
expire_logs_days = 100
max_binlog_size = 2G
binlog_cache_size = 1000000
character-set-server = utf8
collation-server = utf8_general_ci
innodb_buffer_pool_size = 300000000
innodb_log_file_size = 100000000
innodb_additional_mem_pool_size = 20M
innodb_file_format = Barracuda
innodb_io_capacity = 50
innodb_read_io_threads = 128
innodb_purge_threads = 64
innodb_sort_buffer_size = 128M
innodb_encrypt_tables = ON
innodb_flush_log_at_trx_commit = 2
join_buffer_size = 1000000
read_rnd_buffer_size = 3G
tmp_table_size = 2000000000
group_concat_max_len = 18446744073709551615
wait_timeout = 100000000
concurrent_insert = 2
delay_key_write = 1
optimizer_switch = mrr=on
optimizer_switch = index_merge=off
performance_schema_digests_size = -1
max_join_size = -1
sql_mode = ANSI
binlog_format = row
log_bin = /var/log/mysql/bin
myisam-recover-options = BACKUP,FORCE
"""


@pytest.mark.long
def test_no_line_that_new_keeps_is_refused_by_plan_or_by_a_trial(shared_state, tmp_path):
    (tmp_path / "my.cnf").write_text(f"[mysqld]\n{LINES}")
    argv = (
        "new",
        tmp_path / "s.toml",
        "--from",
        tmp_path / "my.cnf",
        "--clients",
        "2",
        "--duration",
        "300ms",
        "--json",
    )
    made = dbdyno(*argv, state=shared_state)
    assert made.returncode == 0, made.stderr
    told = json.loads(made.stdout)
    left, changed = ({one["name"]: one for one in told[name]} for name in ("left_out", "changed"))
    assert "asked for 2G, the server took 1073741824" in changed["max_allowed_packet"]["reason"]
    assert changed["max_allowed_packet"]["place"] == "my.cnf:15"
    assert told["settings"]["max_allowed_packet"] == 1073741824
    assert told["settings"]["optimizer_switch"] == "mrr=on,index_merge=off"
    assert told["settings"]["character_set_server"] == "utf8"
    assert "can't be read back" in left["memlock"]["reason"]
    assert "needs the module file_key_management" in left["innodb_encrypt_tables"]["reason"]
    assert "how many files it may open" in left["open_files_limit"]["reason"]
    text = (tmp_path / "s.toml").read_text()
    assert "#   my.cnf:15 max_allowed_packet: asked for 2G, the server took 1073741824" in text
    plan = dbdyno("plan", tmp_path / "s.toml", state=shared_state)
    assert plan.returncode == 0, plan.stdout
    done = dbdyno("run", tmp_path / "s.toml", "--blocks", "1", "--into", tmp_path / "run", state=shared_state)
    assert done.returncode == 0, done.stdout + done.stderr
    events = [json.loads(line) for line in (tmp_path / "run/journal.jsonl").read_text().splitlines()]
    assert {one["treatment"] for one in events if one["event"] == "finished"} == {"t1", "t2"}
    assert not any(one["event"] == "failed" for one in events)


def test_what_was_told_is_kept_until_the_settings_change(state, monkeypatch):
    asked = StartRequest("mariadb", "innodb", (("innodb_buffer_pool_size", "16M"), ("sync_binlog", 7)))
    first = try_settings(asked)
    assert what_is_left(state) == []
    started = []
    monkeypatch.setattr(short_start._Starts, "_start", lambda *_: started.append(1) or [])
    assert try_settings(asked) == first
    assert not started
    try_settings(StartRequest("mariadb", "innodb", (("innodb_buffer_pool_size", "16M"), ("sync_binlog", 8))))
    assert len(started) == 1
    for file in (state / short_start.FOLDER).iterdir():
        file.write_text('[{"name": 1}]')
    try_settings(asked)
    assert len(started) == 2, "what is damaged is asked anew"


def test_system_tables_are_made_once_for_settings_that_touch_no_data(state, monkeypatch):
    made = []
    install = ServerLayer.try_settings
    monkeypatch.setattr(
        ServerLayer,
        "try_settings",
        lambda layer, below, options: made.append(layer.tables.exists()) or install(layer, below, options),
    )
    with Starting() as starting:
        for value in (1, 2):
            found = starting.try_settings(
                StartRequest("mariadb", "innodb", (("innodb_flush_log_at_trx_commit", value),))
            )
            assert {one.how for one in found} == {"as asked"}
        assert len(list((state / "scratch").iterdir())) == 1
    assert made == [False, True]
    assert what_is_left(state) == []


def test_a_plan_without_settings_starts_no_server(state, study_file, monkeypatch):
    monkeypatch.setenv("PATH", os.environ["PATH"])
    done = dbdyno("plan", study_file(STUDY.format(settings="").replace("clients = 2", "clients = [2, 4]")), state=state)
    assert done.returncode == 0
    assert not (state / "journals").exists()


def test_a_server_that_starts_is_gone_with_its_folder_after_a_kill(state, study_file):
    study = study_file(STUDY.format(settings="innodb_lock_wait_timeout = 4321"))
    process = start_dbdyno("plan", study, state=state)
    wait_for(lambda: process.poll() is not None or (journal_lines(state) >= 3 and processes_of(state)), every=0.003)
    assert process.poll() is None, process.communicate()
    assert {folder.stat().st_mode & 0o777 for folder in (state / "scratch").iterdir()} == {0o710}
    lines = processes_of(state).values()
    assert all("--port" not in line for line in lines)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=180)
    assert what_is_left(state)
    put_back(state)


def test_a_signal_ends_the_server_before_dbdyno_ends(state, study_file):
    study = study_file(STUDY.format(settings="innodb_lock_wait_timeout = 4323"))
    process = start_dbdyno("plan", study, state=state)
    wait_for(lambda: process.poll() is not None or (journal_lines(state) >= 3 and processes_of(state)), every=0.003)
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=180)
    assert (process.returncode, said) == (130, "")
    assert what_is_left(state) == []


def test_a_run_that_measures_is_not_disturbed(state, study_file):
    asked = StartRequest("mariadb", "innodb", (("innodb_lock_wait_timeout", 4322),))
    lock = state / "run.lock"
    held = (
        f"import fcntl, sys; f = open({str(lock)!r}, 'w'); fcntl.flock(f, fcntl.LOCK_EX); print(1, flush=True); input()"
    )
    with subprocess.Popen(["python3", "-c", held], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        with pytest.raises(HostError, match="this would disturb another run"):
            try_settings(asked)
        study = study_file(STUDY.format(settings="innodb_lock_wait_timeout = 4322"))
        done = dbdyno("plan", study, state=state)
        assert done.returncode == 0
        assert "not tried here: this would disturb another run" in done.stdout
        other.stdin.close()
    with lock.open("w") as free:
        fcntl.flock(free, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.usefixtures("state")
def test_what_no_host_has_room_for_is_not_tried():
    found = try_settings(StartRequest("mariadb", "innodb", (("innodb_log_file_size", "900000G"), ("sync_binlog", 1))))
    (untried,) = [one for one in found if one.how == "not tried"]
    assert isinstance(untried, SettingOutcome)
    assert "more than half of the room on the state folder's disk" in untried.text


MKFS = [
    ("ext4", "-O ^has_journal -b 4096", ""),
    ("ext4", "-O no_such_feature", "Invalid filesystem option set: no_such_feature"),
    ("ext4", "-b 1000", "invalid block size - 1000"),
    ("xfs", "-i size=512 -l size=64m", ""),
    ("xfs", "-m crc=0,finobt=1", "finobt not supported without CRC support"),
    # mkfs.btrfs looks at all that is mounted, and fails where a disk below one is dead, as in tests beside it.
    pytest.param("btrfs", "-d single -n 16k", "", marks=pytest.mark.alone),
    pytest.param("btrfs", "-n 3k", "illegal nodesize 3072", marks=pytest.mark.alone),
    ("zfs", "-O compression=gzip-2 -o ashift=12", ""),
    ("zfs", "-O compression=lz4", "cannot create the pool: 'compression' must be one of 'on | off | lzjb"),
    ("zfs", "-O recordsize=1M", "'recordsize' must be power of 2"),
]


@pytest.mark.parametrize(("kind", "options", "said"), MKFS)
def test_options_of_a_filesystem_are_asked_of_what_makes_it(state, kind, options, said):
    if not (found := filesystem(kind)).ok:
        pytest.skip(f"this host can't: {found.name}: {found.detail}")
    answer = mkfs_outcome(MkfsOptions(kind, options, 512 * 1024**2)).said
    assert said in answer if said else not answer
    assert what_is_left(state) == []


@pytest.mark.usefixtures("state")
def test_options_of_btrfs_are_asked_beside_another_that_is_mounted_where_nobody_may_look(tmp_path):
    if not (found := filesystem("btrfs")).ok:
        pytest.skip(f"this host can't: {found.name}: {found.detail}")
    private, place = tmp_path / "private", tmp_path / "place"
    private.mkdir(mode=0o700)
    place.mkdir()
    with (private / "image").open("wb") as image:
        image.truncate(256 * 1024**2)
    with loop_over(private / "image") as loop:
        subprocess.run(["mkfs.btrfs", "--quiet", loop], check=True)
        subprocess.run(["mount", loop, place], check=True)
        try:
            assert mkfs_outcome(MkfsOptions("btrfs", "-d single -n 16k", 512 * 1024**2)).holds
        finally:
            subprocess.run(["umount", place], check=True)


MOUNTS = [
    ("ext4", "noatime,data=writeback,commit=30", "as asked"),
    ("ext4", "data=ordered,nobarrier", "as asked"),
    ("ext4", "inode64", "refused"),
    ("ext4", "stripe=512,data=sideways", "refused"),
    ("xfs", "noatime,logbufs=8,logbsize=256k", "as asked"),
    ("xfs", "logbsize=3k", "refused"),
    pytest.param("btrfs", "compress=zstd:1,noatime", "as asked", marks=pytest.mark.alone),
    pytest.param("btrfs", "compress=brotli", "refused", marks=pytest.mark.alone),
    ("tmpfs", "huge=always,noatime", "as asked"),
]


@pytest.mark.parametrize(("kind", "options", "how"), MOUNTS)
def test_mount_options_are_asked_of_the_kernel_on_a_scratch_image(state, kind, options, how):
    if not (found := filesystem(kind)).ok:
        pytest.skip(f"this host can't: {found.name}: {found.detail}")
    told = mount_outcome(MountOptions(kind, options))
    assert told.how == how, told
    listed = told.got.split(",")
    assert {"nosuid", "nodev"} <= set(listed) if how == "as asked" else told.said and not told.got
    assert "DEVICE" in told.said or how == "as asked" or "did not take" in told.said
    assert what_is_left(state) == []


def test_a_mount_option_that_is_refused_is_told_by_plan_with_its_line_and_what_to_write(state, study_file):
    text = STUDY.format(settings="").replace('device = "here"', 'device = "nvme"\nsize = "512MiB"\nfilesystem = "ext4"')
    text = text.replace("[server.settings]", '[filesystem]\nmount = ["noatime",\n  "data=journal,dioread_nolock"]')
    done = dbdyno("plan", study_file(text), "--json", state=state)
    assert done.returncode == 2
    (lacking,) = json.loads(done.stdout)["lacking"]
    assert lacking["name"].endswith("study.toml:11: filesystem.mount")
    assert lacking["detail"].startswith("data=journal,dioread_nolock: a mount of ext4 says: ")
    assert lacking["remedy"] == 'leave this level out, so that the line reads: mount = "noatime"'
    (outcome,) = json.loads(done.stdout)["settings"]
    assert (outcome["setting"], outcome["how"], outcome["taken"]) == ("mount", "refused", False)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("rwmixread=300", "line 4: fio says: rwmixread: max value out of range: 300 (100 max)"),
        ('bs="4k"', "line 4: fio says: "),
        ("nowait=1", "line 4: fio says: Bad option <nowait=1>"),
    ],
)
def test_a_job_that_fio_does_not_take_is_refused_by_plan_with_its_line(state, study_file, tmp_path, line, said):
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    job = tmp_path / "j.fio"
    job.write_text(f"[a]\nrw=randrw\nsize=1m\n{line}\n")
    text = f"version = 1\n[study]\ntitle = 'j'\n[stack]\ndevice = 'here'\n[workload]\nkind = 'fio'\njob = '{job}'\n"
    done = dbdyno("plan", study_file(text + "[design]\nblocks = 1\n"), "--json", state=state)
    told = json.loads(done.stdout)["lacking"]
    if line == "nowait=1" and not told:
        pytest.skip("this fio knows nowait")
    assert done.returncode == 2
    assert told[0]["name"].endswith("study.toml:8: workload.job")
    assert told[0]["detail"].startswith(f"j.fio: {said}")
    assert what_is_left(state) == []


def test_new_writes_no_level_that_the_server_refuses(shared_state, tmp_path):
    study = tmp_path / "s.toml"
    vary = "--vary", "innodb_page_size=8k,5k,16k", "--vary", "max_allowed_packet=64M,2G,1G"
    done = dbdyno("new", study, *vary, "--load", "write", "--json", state=shared_state)
    assert done.returncode == 0, done.stderr
    left_out = {(one["name"], one["place"]): one["reason"] for one in json.loads(done.stdout)["left_out"]}
    assert left_out.keys() == {
        ("innodb_page_size", "--vary, level 5k of"),
        ("max_allowed_packet", "--vary, level 2G of"),
    }
    assert "Invalid page size" in left_out["innodb_page_size", "--vary, level 5k of"]
    text = study.read_text()
    assert 'innodb_page_size = ["8k", "16k"]' in text
    assert 'max_allowed_packet = ["64M", "1G"]' in text


def test_new_writes_no_study_where_one_level_is_left(shared_state, tmp_path):
    study = tmp_path / "s.toml"
    done = dbdyno("new", study, "--vary", "innodb_encrypt_tables=false,true", "--load", "write", state=shared_state)
    assert done.returncode == 2
    assert "nothing varies" in done.stderr
    assert "level true of innodb_encrypt_tables: needs the module file_key_management" in done.stderr
    assert not study.exists()


def test_a_level_that_mkfs_refuses_is_refused_by_plan_with_its_line(state, study_file):
    text = STUDY.format(settings="").replace('device = "here"', 'device = "nvme"\nsize = "512MiB"\nfilesystem = "ext4"')
    text = text.replace("[server.settings]", '[filesystem]\nmkfs = ["-b 4096",\n  "-b 1000"]')
    done = dbdyno("plan", study_file(text), state=state)
    assert done.returncode == 2
    assert (
        "study.toml:11: filesystem.mkfs: -b 1000: mkfs.ext4 says: mkfs.ext4: invalid block size - 1000;"
        ' leave this level out, so that the line reads: mkfs = "-b 4096"' in done.stdout
    )


def test_each_tables_options_are_tried_with_the_settings_that_they_come_with(shared_state):
    del shared_state
    options = "ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=7"
    strict, lax = (
        try_settings(StartRequest("mariadb", "innodb", (("innodb_strict_mode", value),), table_options=options))[-1]
        for value in (True, False)
    )
    assert (strict.name, strict.how) == ("table_options", "refused")
    assert "invalid KEY_BLOCK_SIZE = 7" in strict.said
    assert (lax.how, lax.holds) == ("in name only", True)
    assert "KEY_BLOCK_SIZE=7 became 8" in lax.said
    whole = "PAGE_COMPRESSED=1 PARTITION BY KEY (id) PARTITIONS 3"
    assert try_settings(StartRequest("mariadb", "innodb", (), table_options=whole))[-1].how == "as asked"
