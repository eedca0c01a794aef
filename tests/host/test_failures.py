"""What can go wrong on a host: one clear message, the host put back, the trial marked failed with its cause."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dbdyno.stack.layers.memory import killed_for_memory, memory_hierarchy
from tests.support import dbdyno, start_dbdyno, study_text, under_load, wait_for, what_is_left, with_own_mounts

pytestmark = pytest.mark.host

ONE = {"scheduler": '"none"', "blocks": 1}


def events(run, kind):
    lines = (run / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == kind]


def causes(run):
    return [event["cause"] for event in events(run, "failed")]


def run_study(state, study_file, run, *options, prefix=(), **fields):
    study = study_file(study_text(**fields))
    return dbdyno("run", study, "--into", run, *options, state=state, prefix=prefix)


def assert_one_message(done, *words):
    said = " ".join((done.stdout + done.stderr).split())
    assert "Traceback" not in said
    for word in words:
        assert word in said, said


@pytest.mark.drawn(2, group="trials that fail")
def test_server_dies_in_mid_trial(state, study_file, tmp_path):
    run = tmp_path / "run"
    study = study_file(study_text(amount='duration = "3s"', blocks=1))
    process = start_dbdyno("run", study, "--into", run, state=state)
    os.kill(wait_for(lambda: under_load(state, "mariadbd")), signal.SIGKILL)
    output = process.communicate(timeout=240)[0]
    assert process.returncode == 1, output
    assert len(causes(run)) == 1
    assert "server" in causes(run)[0]
    assert "is repeated whole" in output
    finished = events(run, "finished")
    assert {(e["attempt"], e["treatment"]) for e in finished if e["attempt"] == 2} == {(2, "t1"), (2, "t2")}
    assert events(run, "ended")[-1]["how"] == "done"


@pytest.mark.drawn(2, group="trials that fail")
def test_disk_full(state, study_file, tmp_path):
    run = tmp_path / "run"
    fast = 'innodb_log_file_size = "8M"\ninnodb_flush_log_at_trx_commit = 0'
    amount = 'duration = "60s"\nchar_cols = 40'
    done = run_study(state, study_file, run, size="192MiB", amount=amount, settings=fast, **ONE)
    assert done.returncode == 1
    assert_one_message(done, "full")
    assert all("full" in cause for cause in causes(run)), causes(run)
    assert len(causes(run)) == 2, "it failed again and again, so it was left out after the second time"


def test_mount_refused(state, study_file, tmp_path):
    done = run_study(state, study_file, tmp_path / "run", mount="mb_optimize_scan=7", **ONE)
    assert done.returncode == 2
    assert_one_message(done, "mb_optimize_scan=7", "bad option", "leave it out")
    assert not (tmp_path / "run").exists()


def test_mkfs_missing(state, study_file, tmp_path):
    hide = with_own_mounts('mount --bind /dev/null "$(command -v mkfs.xfs)" && exec "$@"')
    done = run_study(state, study_file, tmp_path / "run", prefix=hide, filesystem='"xfs"', **ONE)
    assert done.returncode == 2
    assert_one_message(done, "no mkfs.xfs", "apt-get install xfsprogs")
    assert not (tmp_path / "run").exists()


def test_port_taken(state, study_file, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = f"port = {taken.getsockname()[1]}"
        done = run_study(state, study_file, tmp_path / "run", settings=settings, **ONE)
    assert done.returncode == 1
    assert_one_message(done, "the TCP port is taken")


def test_without_the_power_of_root(state, study_file, tmp_path):
    weak = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]
    done = run_study(state, study_file, tmp_path / "run", prefix=weak, **ONE)
    assert done.returncode == 2
    assert_one_message(done, "CAP_SYS_ADMIN", "sudo")


def test_setting_that_the_server_changes(state, study_file, tmp_path):
    done = run_study(state, study_file, tmp_path / "run", settings="innodb_io_capacity = 50", **ONE)
    assert done.returncode == 2, "it is known before anything is touched"
    assert_one_message(done, "server.settings.innodb_io_capacity: asked for 50, the server took 100")
    assert not (tmp_path / "run").exists()


def test_engine_that_the_server_lacks(state, study_file, tmp_path):
    done = run_study(state, study_file, tmp_path / "run", engine='"inodb"', **ONE)
    assert done.returncode == 2
    assert_one_message(done, "stack.engine: MariaDB ", "has no engine inodb", 'Did you mean "innodb"?')


@pytest.mark.drawn(2, group="trials that fail")
def test_level_that_fails_again_and_again_is_left_out(state, study_file, tmp_path):
    run = tmp_path / "run"
    queue = "[queue]\nmax_sectors_kb = [128, 64, 1000000]"  # the last is beyond what the device can
    done = run_study(state, study_file, run, stack=queue, scheduler='"none"')
    assert done.returncode == 1
    assert [event["treatment"] for event in events(run, "dropped")] == ["t3"]
    assert {(e["block"], e["treatment"]) for e in events(run, "finished")} >= {(2, "t1"), (2, "t2")}
    report = json.loads(dbdyno("report", run, "--format", "json", state=state).stdout)
    words = {verdict["level_id"]: verdict["verdict"] for verdict in report["verdicts"]}
    assert words["t3"] == "not comparable"
    assert report["treatments"][1]["trials"] == 2


def test_disk_that_is_too_large_for_its_drive(state, study_file, tmp_path):
    done = run_study(state, study_file, tmp_path / "run", size="9TiB", **ONE)
    assert done.returncode in {1, 2}
    assert_one_message(done, "is larger than the drive")


def test_two_runs_begun_at_once_run_one_after_the_other(state, study_file, tmp_path):
    study = study_file(study_text(blocks=1))
    outcomes = {}

    def go(name):
        outcomes[name] = dbdyno("run", study, "--into", tmp_path / name, "--wait", state=state)

    threads = [threading.Thread(target=go, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [done.returncode for done in outcomes.values()] == [0, 0], outcomes


def test_no_password_and_no_host_name_in_a_run_folder(state, study_file, tmp_path, monkeypatch):
    monkeypatch.setenv("MYSQL_PWD", "hunter2-secret")
    run = tmp_path / "run"
    assert run_study(state, study_file, run, **ONE).returncode == 0
    for path in run.rglob("*"):
        if path.is_file():
            assert b"hunter2-secret" not in path.read_bytes()
    name = Path("/etc/hostname").read_text(encoding="ascii").strip()
    assert not re.search(rf"\b{re.escape(name)}\b", (run / "host.json").read_text("ascii"))


@pytest.mark.drawn(2, group="trials that fail")
def test_a_server_killed_for_its_memory_says_so(state, study_file, tmp_path):
    run = tmp_path / "run"
    fields = {"settings": 'innodb_log_file_size = "64M"', "amount": 'duration = "20s"\nchar_cols = 40', **ONE}
    text = study_text(**fields).replace('memory = "1GiB"', 'memory = "64MiB"').replace('"32M"', '"63M"')
    done = dbdyno("run", study_file(text), "--into", run, state=state)
    assert done.returncode == 1
    assert_one_message(done, "the kernel killed the server for going beyond stack.memory")


def killed_by_kernel(pid):
    """Have the kernel's own OOM killer choose a process: the first of a control group that has not enough memory."""
    version, root = memory_hierarchy()
    group = root / f"dbdyno-test-{pid}"
    group.mkdir()
    try:
        (group / ("memory.limit_in_bytes" if version == 1 else "memory.max")).write_text(str(64 << 20))
        Path(f"/proc/{pid}/oom_score_adj").write_text("1000")
        (group / "cgroup.procs").write_text(str(pid))
        hungry = f"open({str(group / 'cgroup.procs')!r}, 'w').write('0'); bytearray(256 << 20)"
        subprocess.run([sys.executable, "-c", hungry], check=False)
        assert killed_for_memory(group)
    finally:
        wait_for(lambda: not (group / "cgroup.procs").read_text().strip())
        group.rmdir()


@pytest.mark.drawn(2, group="trials that fail")
@pytest.mark.parametrize("kill", [lambda pid: os.kill(pid, signal.SIGKILL), killed_by_kernel], ids=["SIGKILL", "OOM"])
def test_a_disk_that_ends_by_itself_costs_a_block_not_the_treatment(state, study_file, tmp_path, kill):
    run = tmp_path / "run"
    study = study_file(study_text(amount='duration = "3s"', blocks=1))
    process = start_dbdyno("run", study, "--into", run, state=state)
    kill(wait_for(lambda: under_load(state, "dbdyno-disk serve")))
    output = process.communicate(timeout=240)[0]
    assert "an emulated disk has ended by itself" in output
    assert process.returncode == 1, output
    assert events(run, "dropped") == []
    assert events(run, "ended")[-1]["how"] == "done"


def test_the_state_folder_may_be_a_link_but_not_everybodys(state, study_file, tmp_path):
    link = state / "link"
    (state / "there").mkdir()
    link.symlink_to(state / "there")
    study = study_file(study_text(**ONE))
    done = dbdyno("run", study, "--into", tmp_path / "a", state=link)
    assert done.returncode == 0, done.stderr
    assert what_is_left(state / "there") == []
    (state / "open").mkdir()
    (state / "open").chmod(0o777)
    done = dbdyno("run", study, "--into", tmp_path / "b", state=state / "open")
    assert done.returncode == 1
    assert_one_message(done, "must be yours and writable by no one else")
    assert (state / "open").stat().st_mode & 0o777 == 0o777, "a folder that was there before keeps its mode"


@pytest.fixture
def small(state):
    """A filesystem without room for anything; ``mount -o remount`` makes room."""
    place = state / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k,mode=755", "none", place], check=True)
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_full_run_folder_is_one_message_and_the_run_goes_on_when_there_is_room(state, study_file, small):
    study, before = study_file(study_text(**ONE)), what_is_left(state)
    done = dbdyno("run", study, "--into", small / "run", state=state)
    assert done.returncode == 1
    said = "No space left on device; make room on its filesystem, then go on with --resume"
    assert_one_message(done, f"dbdyno: {small / 'run'}", said)
    assert what_is_left(state) == before
    subprocess.run(["mount", "-o", "remount,size=64M", small], check=True)
    done = dbdyno("run", study, "--into", small / "run", "--resume", state=state)
    assert done.returncode == 0, done.stderr
    assert causes(small / "run") == []


def test_a_full_state_folder_is_one_message_that_names_it(study_file, small, tmp_path):
    subprocess.run(["mount", "-o", "remount,size=4k", small], check=True)  # of the run's lock, and of nothing more
    before = what_is_left(small)
    done = dbdyno("run", study_file(study_text(**ONE)), "--into", tmp_path / "run", state=small)
    assert done.returncode == 1
    assert_one_message(done, f"dbdyno: {small}", "No space left on device; ")
    assert what_is_left(small) == before


def test_settings_are_tried_on_the_server_before_anything_is_touched(state, study_file, tmp_path):
    text = study_text(settings='innodb_buffer_pol_size = "64M"\ninnodb_flush_method = "O_DIRCT"')
    planned = dbdyno("plan", study_file(text), state=state)
    assert planned.returncode == 2
    assert "server.settings.innodb_buffer_pol_size: is not a MariaDB " in planned.stdout
    assert 'Did you mean "innodb_buffer_pool_size"?' in planned.stdout
    assert 'server.settings.innodb_flush_method: is "O_DIRCT"; allowed are fsync, ' in planned.stdout
    done = dbdyno("run", study_file(text), "--into", tmp_path / "run", state=state)
    assert done.returncode == 2
    assert not (tmp_path / "run").exists()


def test_a_page_replaces_nothing_but_a_page(state, study_file, tmp_path):
    run = tmp_path / "run"
    assert run_study(state, study_file, run, **ONE).returncode == 0
    kept = (run / "run.toml").read_bytes()
    refused = dbdyno("report", run, "--html", run / "run.toml", state=state)
    assert refused.returncode == 2
    assert "is not an HTML page" in refused.stderr
    assert (run / "run.toml").read_bytes() == kept
    for _ in range(2):
        assert dbdyno("report", run, "--html", tmp_path / "page.html", state=state).returncode == 0
    told = dbdyno("report", run, "--details", state=state).stdout
    assert "What was measured: kind slap, load write, clients 4" in told.replace("\n", " ").replace("  ", " ")


@pytest.mark.drawn(2, group="trials that fail")
def test_no_option_file_and_no_variable_of_the_host_reaches_server_or_load(state, study_file, tmp_path, monkeypatch):
    """Neither what MySQL's programs look for in a home, nor where its variables point to, changes what is measured."""
    home, run = tmp_path / "home", tmp_path / "run"
    home.mkdir()
    evil = "max_connections=7\ninnodb_io_capacity=101\nplugin-load-add=evil.so\nplugin-dir=/tmp\nlog-error=/nowhere/x\n"
    of_client = "[client]\nhost=192.0.2.1\nuser=evil\npassword=evil\ninit-command=DROP DATABASE mysql\n"
    (home / ".my.cnf").write_text(
        f"[mysqld]\n{evil}[mariadbd]\n{evil}[mysqld_x]\n{evil}{of_client}!includedir {home}\n"
    )
    (home / "my.cnf").symlink_to(".my.cnf")
    pointing = {
        "HOME": home,
        "MYSQL_HOME": home,
        "MARIADB_HOME": home,
        "MYSQL_GROUP_SUFFIX": "_x",
        "MYSQLD_OPTS": "--x",
    }
    pointing |= {"MYSQL_UNIX_PORT": "/nowhere", "MYSQL_TCP_PORT": "1", "MYSQL_HOST": "192.0.2.1", "MYSQL_PWD": "evil"}
    pointing |= {"MYSQL_TEST_LOGIN_FILE": home / ".my.cnf", "MYSQL_PLUGIN_DIR": home, "MYSQL_DEBUG": "d:t:o,/tmp/evil"}
    for name, value in pointing.items():
        monkeypatch.setenv(name, str(value))
    done = run_study(state, study_file, run, **ONE)
    assert done.returncode == 0, done.stderr
    for path in run.glob("trials/*/trial.json"):
        server = json.loads(path.read_text(encoding="utf-8"))["observed"]["server"]
        assert (server["max_connections"], server["innodb_io_capacity"]) == ("151", "200")
