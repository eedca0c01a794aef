"""Job files of fio: what a study may say in one, and what is made of it."""

import re
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbdyno.study.fio_job import ALLOWED, job_mistakes, job_notes, written_anew

GOOD = """\
; a comment
[global]
rw = randrw   ; the mix
rwmixread=70
bs=4k
size=64m
[one]
description=reads / writes
iodepth=8
ioengine=libaio
bssplit=4k/60:16k/40,8k/:64k/10
random_distribution=zoned:60/10:30/20:8/30:2/40
[two]
filename=two.dat
time_based
runtime=2s
"""


def test_a_job_file_is_held_to_the_trials_folder():
    assert list(job_mistakes(GOOD)) == []
    made = written_anew(GOOD, {"directory": "/trial/files"})
    assert made.count("directory=/trial/files") == 3
    assert "rw=randrw\n" in made
    assert "comment" not in made
    assert written_anew(made, {"directory": "/trial/files"}) == made


@pytest.mark.parametrize(
    "line",
    [
        "exec_prerun=rm -rf /",
        "exec_postrun=id",
        "ioengine=external:/tmp/evil.so",
        "ioengine=libblkio",
        "ioengine=exec",
        "read_iolog=/etc/shadow",
        "include other.fio",
        "include=other.fio",
        "buffer_pattern='/etc/passwd'",
        "verify_pattern='/etc/passwd'",
        "verify=/etc/passwd",
        "bssplit=/etc/passwd",
        "bssplit=4k/60:/dev/sda",
        "random_distribution=zoned:/etc/passwd",
        "random_distribution=zoned:60/../x",
        "bs=${HOME}",
        "bs=${NO_SUCH_VARIABLE}",
        "size=200%",
        "wait_for=a",
        "fill_fs=1",
        "bs=4k\\x",
        "bs=`id`",
        "fill_device=1",
        "output=/tmp/x",
        "trigger=id",
    ],
)
def test_what_reaches_elsewhere_is_refused(line):
    (said,) = job_mistakes(f"[job]\nrw=read\n{line}\n")
    assert said.startswith("line 3: ")


@pytest.mark.parametrize("text", ["", "rw=read\n", "[global]\nrw=read\n", "[../up]\nrw=read\n", "; [job]\n"])
def test_what_holds_no_plain_job_is_refused(text):
    assert list(job_mistakes(text))


DECIDED = (
    "directory=/home", "filename_format=/tmp/$jobname", "write_bw_log=/tmp/x", "write_iolog=/tmp/x", "lockfile=/tmp/x",
    "mem=mmaphuge:/tmp/x", "verify_state_save=1", "cgroup=x", "gtod_reduce=1", "log_avg_msec=500", "ioscheduler=noop",
)  # fmt: skip


@pytest.mark.parametrize("line", DECIDED)
def test_what_the_trial_decides_is_passed_over_and_named(line):
    text = f"[job]\nrw=read\nsize=1m\n{line}\n"
    assert list(job_mistakes(text)) == []
    assert written_anew(text, {}) == "[job]\nrw=read\nsize=1m\n"
    (note,) = job_notes(text)
    assert note == f"passed over, as the trial decides it: {line.partition('=')[0]}"


@pytest.mark.parametrize(
    ("given_name", "name"),
    [
        ("/dev/sdb", "dev-sdb"),
        ("../up", "up"),
        ("a:/dev/sda", "a:dev-sda"),
        ("/tmp/test file", "tmp-test-file"),
        ("..", "file"),
        (r"\\.\PhysicalDrive1", "PhysicalDrive1"),
        ("data.0", "data.0"),
    ],
)
def test_files_of_the_trial_take_the_place_of_others(given_name, name):
    text = f"[job]\nrw=read\nsize=1m\nfilename={given_name}\n"
    assert list(job_mistakes(text)) == []
    assert f"filename={name}\n" in written_anew(text, {})
    assert bool(list(job_notes(text))) == (given_name != name)


def test_what_a_job_leaves_to_a_device_has_a_size():
    text = (
        "[global]\nfilename=/dev/sda\nioengine=LIBAIO\n[a]\nrw=read\n[b]\nrw=read\nsize=50%\noffset=25%\n[c]\nsize=1m\n"
    )
    made = written_anew(text, {"directory": "/t"})
    assert made.split("\n\n")[1:] == [
        f"[a]\ndirectory=/t\nrw=read\nsize={1 << 30}",
        f"[b]\ndirectory=/t\nrw=read\nsize={1 << 29}\noffset={1 << 28}",
        "[c]\ndirectory=/t\nsize=1m\n",
    ]
    assert [note.partition(" is 1 GiB")[0] for note in job_notes(text)][1:] == [
        "what a job leaves to the size of a device"
    ]


def test_variables_are_of_the_environment_and_never_shown(monkeypatch):
    monkeypatch.setattr("dbdyno.study.fio_job.known_variables", lambda: {"SIZE": "64m", "TOKEN": "/s3cret"})
    assert "size=64m\n" in written_anew("[a]\nrw=read\nsize=${SIZE}\n", {})
    (said,) = job_mistakes("[a]\nrw=read\nbs=${TOKEN}\n")
    assert "s3cret" not in said
    assert "${TOKEN}" in said


def test_jobs_may_follow_each_other_and_include_files(tmp_path):
    (tmp_path / "common.inc").write_text("size=1m\nexec_prerun=id\n")
    text = "[global]\ninclude common.inc\n[a]\nstonewall\nrw=read\nstartdelay=1\n"
    (said,) = job_mistakes(text, tmp_path)
    assert said.startswith("common.inc line 2: exec_prerun runs a command")
    (tmp_path / "common.inc").write_text("size=1m\n")
    assert list(job_mistakes(text, tmp_path)) == []
    assert written_anew(text, {}, tmp_path) == "[global]\nsize=1m\n\n[a]\nstonewall\nrw=read\nstartdelay=1\n"


def test_what_is_written_is_what_fio_takes(tmp_path):
    """fio itself parses a job of many of people's words, held to a folder."""
    fio = shutil.which("fio")
    if fio is None:
        pytest.skip("fio is not installed")
    text = PEOPLES.replace("\n    ", "\n")
    assert list(job_mistakes(text)) == []
    job = tmp_path / "job.fio"
    job.write_text(written_anew(text, {"directory": str(tmp_path)}))
    done = subprocess.run([fio, "--parse-only", str(job)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


PEOPLES = """\
    ; as written by many
    [global]
    ioengine=LIBAIO   # queue
    direct=1
    filename=/dev/nvme0n1:/dev/nvme1n1
    group_reporting
    time_based
    runtime=60
    ramp_time=5s
    norandommap
    randrepeat=0
    write_bw_log=out
    log_avg_msec=1000
    [RW block 8k, depth 16]
    stonewall
    rw=randrw:4
    rwmixread=70
    bssplit=4k/60:16k/,8k/100
    random_distribution=zoned:50/5:30/15:20/
    iodepth=16
    numjobs=$ncpus
    [verify]
    stonewall
    rw=write
    bs=4k,8k
    verify=crc32c-intel
    do_verify=1
    verify_pattern=0xdeadbeef
    size=100%
    rate=1m,500k
    rate_process=poisson
    """


@settings(deadline=None)
@given(st.text(max_size=200))
def test_what_is_accepted_names_nothing_beyond_the_folder(text):
    """Whatever a file holds: if nothing is said against it, only allowed options are left, and no path but ours."""
    if list(job_mistakes(text)):
        return
    for line in written_anew(text, {"directory": "/trial"}).splitlines():
        name, _, value = line.partition("=")
        assert not line or line.startswith("[") or line == "directory=/trial" or name in ALLOWED
        assert "/" not in value or name in {"directory", "description", "bssplit", "random_distribution"}
        assert not re.search(r"/(?![\d.])|\.\.", value) or name in {"directory", "description"}
