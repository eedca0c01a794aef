"""Job files of fio: what a study may say in one, and what is made of it."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbdyno.study.fio_job import ALLOWED, job_mistakes, written_anew

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
    assert made.count("directory=/trial/files") == 2
    assert "rw=randrw\n" in made
    assert "comment" not in made
    assert written_anew(made, {"directory": "/trial/files"}) == made


@pytest.mark.parametrize(
    "line",
    [
        "filename=/dev/sda",
        "filename=../up",
        "filename=a:/dev/sda",
        "filename = /etc/passwd",
        "FILENAME=/dev/sda",
        "directory=/home",
        "filename_format=/tmp/$jobname",
        "exec_prerun=rm -rf /",
        "exec_postrun=id",
        "ioengine=external:/tmp/evil.so",
        "ioengine=libblkio",
        "ioengine=exec",
        "read_iolog=/etc/shadow",
        "write_iolog=/tmp/x",
        "write_bw_log=/tmp/x",
        "include other.fio",
        "include=other.fio",
        "mem=mmaphuge:/tmp/x",
        "lockfile=/tmp/x",
        "buffer_pattern='/etc/passwd'",
        "verify_state_save=1",
        "cgroup=x",
        "bssplit=/etc/passwd",
        "bssplit=4k/60:/dev/sda",
        "random_distribution=zoned:/etc/passwd",
        "random_distribution=zoned:60/../x",
        "bs=${HOME}",
        "bs=`id`",
        "fill_device=1",
        "output=/tmp/x",
        "trigger=id",
        "stonewall",
        "startdelay=5",
    ],
)
def test_what_reaches_elsewhere_is_refused(line):
    (said,) = job_mistakes(f"[job]\nrw=read\n{line}\n")
    assert said.startswith("line 3: ")


@pytest.mark.parametrize("text", ["", "rw=read\n", "[global]\nrw=read\n", "[../up]\nrw=read\n", "; [job]\n"])
def test_what_holds_no_plain_job_is_refused(text):
    assert list(job_mistakes(text))


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
