"""Job files of fio: what a study may say in one, and what is made of it."""

import json
import re
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbdyno.model.fio import with_values
from dbdyno.study.fio_job import job_sources, read_io_log, render_job, render_log
from dbdyno.study.fio_rules import ALLOWED, SHARES, job_mistakes, job_notes

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
    made = render_job(GOOD, {"directory": "/trial/files"})
    assert made.count("directory=/trial/files") == 3
    assert "rw=randrw\n" in made
    assert "comment" not in made
    assert render_job(made, {"directory": "/trial/files"}) == made


@pytest.mark.parametrize(
    "line",
    [
        "exec_prerun=rm -rf /",
        "exec_postrun=id",
        "ioengine=external:/tmp/evil.so",
        "ioengine=libblkio",
        "ioengine=exec",
        "read_iolog=/etc/shadow",
        "read_iolog=../up.iolog",
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
        "rw=randtrim",
        "trim_percentage=10",
        "zonemode=zbd",
        "max_open_zones=4",
        "ioengine=windowsaio",
        "cmdprio_bssplit=/dev/sda",
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
    assert render_job(text, {}) == "[job]\nrw=read\nsize=1m\n"
    (note,) = job_notes(text)
    assert note == f"ignored, because the trial decides it: {line.partition('=')[0]}"


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
    assert f"filename={name}\n" in render_job(text, {})
    assert bool(list(job_notes(text))) == (given_name != name)


def test_what_a_job_leaves_to_a_device_has_a_size():
    text = (
        "[global]\nfilename=/dev/sda\nioengine=LIBAIO\n[a]\nrw=read\n[b]\nrw=read\nsize=50%\noffset=25%\n[c]\nsize=1m\n"
    )
    made = render_job(text, {"directory": "/t"})
    assert made.split("\n\n")[1:] == [
        f"[a]\ndirectory=/t\nrw=read\nsize={1 << 30}",
        f"[b]\ndirectory=/t\nrw=read\nsize={1 << 29}\noffset={1 << 28}",
        "[c]\ndirectory=/t\nsize=1m\n",
    ]
    assert [note.partition(" is 1 GiB")[0] for note in job_notes(text)][1:] == [
        "what a job leaves to the size of a device"
    ]


def test_variables_are_of_the_environment_and_never_shown(monkeypatch):
    set_variables(monkeypatch, SIZE="64m", WORDS="/s3cret")
    assert "size=64m\n" in render_job("[a]\nrw=read\nsize=${SIZE}\n", {})
    (said,) = job_mistakes("[a]\nrw=read\nbs=${WORDS}\n")
    assert "s3cret" not in said
    assert "${WORDS}" in said


def set_variables(monkeypatch, **variables):
    for place in ("fio_job", "fio_rules"):
        monkeypatch.setattr(f"dbdyno.study.{place}.known_variables", lambda: variables)


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({}, "line 3: filename holds ${NAME}, which is not set; set it, such as NAME=... before the command"),
        ({"NAME": "a\nexec_prerun=id"}, "line 3: filename holds ${NAME}, whose value is not a plain word"),
        ({"NAME": "a ; b"}, "line 3: filename holds ${NAME}, whose value is not a plain word"),
    ],
)
def test_a_variable_that_is_not_one_value_is_refused_by_its_line(monkeypatch, variables, said):
    set_variables(monkeypatch, **variables)
    (mistake,) = job_mistakes("[a]\nrw=read\nfilename=${NAME}\n")
    assert mistake.startswith(said)


def test_a_secret_of_the_environment_is_not_kept_with_a_run(monkeypatch):
    set_variables(monkeypatch, DB_PASSWORD="hunter2", SIZE="1m")
    (said,) = job_mistakes("[a]\nrw=read\nfilename=${DB_PASSWORD}\n")
    assert said.startswith("line 3: filename holds ${DB_PASSWORD}, a secret by its name")
    text = "[a]\nsize=${SIZE}\ndirectory=${DB_PASSWORD}\nrw=read\n"
    assert list(job_mistakes(text)) == []
    assert list(job_notes(text)) == [
        "ignored, because the trial decides it: directory",
        "variables are replaced by their present values, which the run folder keeps: SIZE = 1m",
    ]


def test_what_hosts_get_has_the_values_of_this_one():
    text = "[a]\nsize=${SIZE}\nnumjobs=$ncpus\ndirectory=${ELSE}\n"
    assert with_values(text, {"SIZE": "64m", "ncpus": "2"}) == "[a]\nsize=64m\nnumjobs=$ncpus\ndirectory=${ELSE}\n"


LOG = """\
fio version 2 iolog
/dev/sdb add
/dev/sdb open
/dev/sdb read 0 4096
/dev/sdb wait 1500 0
/dev/sdb write 1048576 8192
/dev/sdb trim 0 65536
/dev/sdb sync 0 0
/dev/sdb close
"""


def test_a_log_is_part_of_the_job_and_written_anew(tmp_path):
    (tmp_path / "a.iolog").write_text(LOG)
    job = tmp_path / "j.fio"
    job.write_text("[replay]\nread_iolog=a.iolog\nreplay_redirect=/dev/sdz\n")
    assert list(job_mistakes(job.read_text(), tmp_path)) == []
    sources = job_sources(job)
    assert sources.logs == {"a.iolog": tmp_path / "a.iolog"}
    assert sources.reach_bytes == {"dev-sdb": 1048576 + 8192}
    assert render_job(job.read_text(), {}, tmp_path, {"a.iolog": "../0"}) == "[replay]\nread_iolog=../0\n"
    assert "".join(render_log(read_io_log(tmp_path / "a.iolog"))) == (
        "fio version 3 iolog\n1 dev-sdb add\n1 dev-sdb open\n1 dev-sdb read 0 4096\n"
        "1501 dev-sdb write 1048576 8192\n1501 dev-sdb sync 0 0\n1501 dev-sdb close\n"
    )
    assert list(job_notes(job.read_text(), tmp_path)) == [
        "ignored, because the trial decides it: replay_redirect",
        "a.iolog is replayed on 1 file of 1.008 MiB in all; its 1 trim left out, because files take none",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fio version 1 iolog\n", "line 1: is not a log of fio's"),
        ("root:x:0:0\n", "line 1: is not a log of fio's"),
        ("\x07tae\0\0\0", "is a trace of blktrace"),
        ("fio version 2 iolog\na add\na open\n", "reads and writes nothing"),
        ("fio version 2 iolog\na read 0 4096\n", "line 2: read of a file before its add"),
        ("fio version 2 iolog\na add\na read 0 4096\n", "line 3: read of a file that is not open"),
        ("fio version 2 iolog\na add\na open\na read 0 -1\n", "line 4: has '-1' in place of a number"),
        ("fio version 2 iolog\na add\na open\na read 0\n", "line 4: is not FILE ACTION"),
        ("fio version 2 iolog\na add\na open\na exec 0 1\n", "line 4: is not FILE ACTION"),
        ("fio version 3 iolog\na add\n", "line 2: has 'a' in place of a number"),
        ("fio version 3 iolog\n1 a add\n1 a open\n1 a write 99999999999999999 1\n", "reaches"),
    ],
)
def test_a_log_that_is_not_as_fio_writes_it_is_refused_by_its_line(tmp_path, text, said):
    (tmp_path / "a.iolog").write_bytes(text.encode("latin-1"))
    (mistake,) = job_mistakes("[a]\nread_iolog=a.iolog\n", tmp_path)
    assert mistake.startswith(f"line 2: read_iolog 'a.iolog' {said}")


def test_what_fio_replays_of_a_log_that_is_written_anew(tmp_path):
    """fio itself does each action on the file that was laid out, and reaches no other."""
    fio = shutil.which("fio")
    if fio is None:
        pytest.skip("fio is not installed")
    (tmp_path / "a.iolog").write_text(LOG)
    files = tmp_path / "files"
    files.mkdir()
    (files / "dev-sdb").write_bytes(b"\0" * (1048576 + 8192))
    (tmp_path / "0").write_text("".join(render_log(read_io_log(tmp_path / "a.iolog"))))
    (tmp_path / "j.fio").write_text(
        render_job("[a]\nread_iolog=a.iolog\nfilename=/dev/sdb\n", {}, tmp_path, {"a.iolog": "../0"})
    )
    argv = [fio, "--output-format=json", "../j.fio"]
    done = subprocess.run(argv, cwd=files, capture_output=True, text=True, check=True, timeout=60)
    (job,) = json.loads(done.stdout)["jobs"]
    assert [job[way]["total_ios"] for way in ("read", "write", "sync")] == [1, 1, 1]
    assert [file.name for file in files.iterdir()] == ["dev-sdb"]


def test_jobs_may_follow_each_other_and_include_files(tmp_path):
    (tmp_path / "common.inc").write_text("size=1m\nexec_prerun=id\n")
    text = "[global]\ninclude common.inc\n[a]\nstonewall\nrw=read\nstartdelay=1\n"
    (said,) = job_mistakes(text, tmp_path)
    assert said.startswith("common.inc line 2: exec_prerun runs a command")
    (tmp_path / "common.inc").write_text("size=1m\n")
    assert list(job_mistakes(text, tmp_path)) == []
    assert render_job(text, {}, tmp_path) == "[global]\nsize=1m\n\n[a]\nstonewall\nrw=read\nstartdelay=1\n"


def test_what_is_written_is_what_fio_takes(tmp_path):
    """fio itself parses a job of many of people's words, held to a folder."""
    fio = shutil.which("fio")
    if fio is None:
        pytest.skip("fio is not installed")
    text = PEOPLES.replace("\n    ", "\n")
    assert list(job_mistakes(text)) == []
    job = tmp_path / "job.fio"
    job.write_text(render_job(text, {"directory": str(tmp_path)}))
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
    for line in render_job(text, {"directory": "/trial"}).splitlines():
        name, _, value = line.partition("=")
        assert not line or line.startswith("[") or line == "directory=/trial" or name in ALLOWED
        assert "/" not in value or name in {"directory", "description", *SHARES}
        assert not re.search(r"/(?![\d.])|\.\.", value) or name in {"directory", "description"}
