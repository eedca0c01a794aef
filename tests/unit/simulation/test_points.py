"""Points from the words of the command line."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import UserError
from dbdyno.model.fio import is_job_file
from dbdyno.simulation.options import SweepRequest, jobs_of, on_a_drive, points_of, reach_bytes, times_of
from dbdyno.simulation.sweep import combinations, split


def test_commas_inside_of_parentheses_separate_nothing():
    assert split("raid1(hdd-15k, 2),hdd-15k") == ["raid1(hdd-15k, 2)", "hdd-15k"]


def test_all_combinations_with_their_own_keys():
    common = {"load": {"kind": "jobs", "jobs": [{"depth": 1}]}}
    factors = {
        "scheduler": [("noop", "noop"), ("deadline", "deadline")],
        "set:fifo_batch": [("1", 1), ("16", 16)],
        "wbt_lat_usec": [("0", 0)],
        "fio:iodepth": [("4", {"depth": 4})],
    }
    points = combinations(common, factors, [1, 2, 3])
    assert len({point.key for point in points}) == len(points) == 12
    assert points[3].point == {
        "load": {"kind": "jobs", "jobs": [{"depth": 4}]},
        "scheduler": "noop",
        "tunables": {"fifo_batch": 16},
        "wbt_lat_usec": 0,
        "seed": 1,
    }
    assert [point.key for point in combinations(common, factors, [1, 2, 3])] == [point.key for point in points]
    assert common["load"]["jobs"] == [{"depth": 1}]


def test_writeback_throttling_is_set_like_a_tunable():
    asked = SweepRequest(
        (), "hdd-15k", "6.x", tunables=["wbt_lat_usec=0,2000", "read_expire=9"], fio={"rw": "randread"}
    )
    _, points = points_of(asked, lambda *_: None)
    assert [point.point["wbt_lat_usec"] for point in points] == [0, 2000]
    assert points[0].point["tunables"] == {"read_expire": 9}


def test_a_job_file_in_fio_s_words():
    text = (
        "; ours\n[global]\nbs=16k\nruntime=1m\n[a]\nrw=randrw\nrwmixread=70\nname=x\n[b]\nrw=write # all\nnumjobs=2\n"
    )
    assert is_job_file(text.encode())
    jobs, _ = jobs_of(Path("x.fio"), text)
    assert times_of(jobs) == (60.0, 0.0)
    assert jobs == [
        {"block_bytes": 16384, "pattern": "random", "read_percent": 70},
        {"block_bytes": 16384, "pattern": "sequential", "read_percent": 0, "processes": 2},
    ]


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("bs=4kb", "block_bytes", 4096),
        ("bs=4KB", "block_bytes", 4096),
        ("bs=0x2000", "block_bytes", 8192),
        ("kb_base=1000\nbs=8ki", "block_bytes", 8192),
        ("bs=8ki\nkb_base=1000", "block_bytes", 8192),
        ("size=8GB", "range_bytes", 8 << 30),
        ("size=2gi", "range_bytes", 2_000_000_000),
        ("size=1.5m", "range_bytes", 3 << 19),
        ("runtime=30m", "runtime_s", 1800.0),
        ("runtime=2D", "runtime_s", 172_800.0),
        ("ramp_time=500ms", "ramp_s", 0.5),
        ("thinktime=20", "think_us", 20),
        ("thinktime=3ms", "think_us", 3000),
        ("buffered=0", "direct", True),
        ("buffered=1", "direct", False),
        ("iodepth=16\nioengine=psync", "depth", 1),
        ("iodepth=16\nioengine=libaio", "depth", 16),
        ("bs=16k\nio_size=1m", "ios", 64),
        ("bs=4k#no blank before it", "block_bytes", 4096),
        ("size=1m;y", "range_bytes", 1 << 20),
        ("iodepth=0x10", "depth", 16),
        ("rw=randrw\nrwmixread=70%", "read_percent", 70),
        ("bssplit=4k/60:16k/40", "read_blocks", [[4096, 60], [16384, 40]]),
        ("bssplit=4k/60:16k/40,8k/100", "write_blocks", [[8192, 100]]),
        ("bssplit=4k/:16k/:32k/50", "read_blocks", [[4096, 25], [16384, 25], [32768, 50]]),
        ("bs=4k,8k", "write_blocks", [[8192, 1]]),
        ("bs=,8k", "read_blocks", [[4096, 1]]),
        ("bs=8k,8k", "block_bytes", 8192),
        ("bsrange=4k-16k", "read_blocks", [[4096, 1], [8192, 1], [12288, 1], [16384, 1]]),
        ("bsrange=512:1k", "read_blocks", [[512, 1], [1024, 1]]),
        ("rate=1m,500k", "write_rate_bytes", 500 << 10),
        ("rate_iops=1k", "read_rate_ios", 1024),
        ("rate=,500k", "write_rate_bytes", 500 << 10),
        ("rate_process=poisson", "poisson", True),
        ("startdelay=5", "start_us", 5_000_000),
        ("startdelay=500ms", "start_us", 500_000),
        ("thinktime=5\nthinktime_blocks=4", "think_every", 4),
        ("sync=1", "fsync_every", 1),
        ("rw=randread:8", "run", 8),
        ("rw=read:-8k", "gap_bytes", -8192),
        ("random_distribution=zipf:1.2", "spread", {"zipf": 1.2}),
        ("random_distribution=zoned:50/5:30/15:20/", "spread", {"zones": [[50, 5], [30, 15], [20, 80]]}),
        ("random_distribution=zoned:60/10", "spread", {"zones": [[60, 10], [40, 90]]}),
        ("percentage_random=30", "random_percent", 30),
        ("ioengine=LIBAIO", "engine_is_known", None),
    ],
)
def test_values_are_in_fio_s_units(line, field, value):
    (job,), passed_over = jobs_of(Path("x.fio"), f"[a]\n{line}\n")
    assert job.get(field) == value
    assert not passed_over


def test_percentages_are_those_of_the_drive():
    file = "[a]\nrw=read\nsize=25%\noffset=50%\n[b]\nrw=read\nsize=100%\noffset=20%\n"
    jobs, _ = jobs_of(Path("x.fio"), file)
    assert reach_bytes(jobs) == 0, "how large the drive is the file does not say"
    first, second = (on_a_drive(job, 4_000_000) for job in jobs)
    assert (first["offset_bytes"], first["range_bytes"]) == (1_998_848, 999_424)
    assert second["offset_bytes"] + second["range_bytes"] == 4_000_000


def test_what_changes_nothing_is_passed_over_and_named():
    words = "norandommap\nrandrepeat=0\nrefill_buffers\ngtod_reduce=1\nwrite_lat_log=out\ndirectory=/data/$x"
    (job,), passed_over = jobs_of(Path("x.fio"), f"[global]\n{words}\n[a]\nrw=randread\n")
    assert job == {"pattern": "random", "read_percent": 100}
    assert passed_over == ["randrepeat", "refill_buffers", "gtod_reduce", "write_lat_log", "directory"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[a]\nsize=101%\n", "line 2: size=101% is over 100 %"),
        ("[a]\nbs=4q\n", "line 2: bs=4q is not a size of fio's"),
        ("[a]\nruntime=3y\n", "line 2: runtime=3y is not a time of fio's"),
        ("[a]\nsize=9999p\n", "line 2: size=9999p is too large"),
        ("[a]\nbs=${NO_SUCH}\n", "line 2: bs=${NO_SUCH} holds ${NO_SUCH}, which is not set"),
        ("[a]\nwait_for=b\n", "line 2: wait_for=b has jobs wait for one by its name"),
        ("[a]\nioengine=net\n", "line 2: ioengine=net is of a network; simulated are"),
        ("[a]\nioengine=null\n", "asks no drive for anything"),
        ("[a]\nrw=randtrim\n", "trims, which no drive here is a model of"),
        ("[a]\nbssplit=4k/60:8k/60\n", "has shares of 120 %"),
        ("[a]\nbssplit=4k/x\n", "not a whole percentage"),
        ("[a]\nbsrange=4k\n", "is not a range of sizes"),
        ("[a]\nrandom_distribution=zipf:x\n", "has no number as its shape"),
        ("[a]\nbs=4k,4k,4k,4k\n", "more than three parts"),
        ("[a]\nzonemode=zbd\n", "go by zones"),
        ("include ../x.fio\n[a]\n", "line 1: include '../x.fio' is not in the folder of the job file"),
        ("[a]\niodepht=4\n", 'x.fio: line 2: iodepht=4 is not an option of a simulated job. Did you mean "iodepth"?'),
        ("rw=read\n", "line 1: rw stands in no section"),
        ("[a]\nrw=read\niodepth=many\n", "line 3: iodepth=many is not a whole number"),
        ("[a]\ndirect=2\n", "line 2: direct=2 is neither 0 (through the page cache) nor 1"),
        ("[global]\nrw=read\n", "holds no job"),
        ("[a]\nrw=randrw\nrwmixread=300\n", "line 3: rwmixread=300 is over 100 %"),
        ("fio --name=a --rw=read\nfio --name=b --rw=write\n", "line 2: is a second command; give each a file"),
    ],
)
def test_what_a_job_file_may_not_say_is_named_with_its_line(text, said):
    with pytest.raises(UserError) as error:
        jobs_of(Path("x.fio"), text)
    assert said in str(error.value)


def test_jobs_that_follow_each_other_are_groups():
    text = "[global]\nbs=4k\nsize=1m\n[a]\nrw=read\n[b]\nrw=write\n[c]\nstonewall\nrw=randread\nruntime=3\n"
    jobs, _ = jobs_of(Path("x.fio"), text)
    assert [job.get("group") for job in jobs] == ["1: a+b", "1: a+b", "2: c"]
    alone, _ = jobs_of(Path("x.fio"), "[global]\nstonewall\n[a]\nrw=read\n")
    assert "group" not in alone[0]


def test_each_group_is_a_point_with_its_own_length(tmp_path):
    file = tmp_path / "phases.fio"
    file.write_text(
        "[global]\nsize=64m\nstonewall\n[a]\nrw=read\nruntime=2\n[b]\nrw=randread\nnumber_ios=9\n[c]\nrw=write\n"
    )
    load, points = points_of(SweepRequest((file,), "hdd-15k", "6.x"), lambda *_: None)
    assert [point.levels["jobs"] for point in points] == ["1: a", "2: b", "3: c"]
    assert [point.point.get("duration_s") for point in points] == [2.0, None, 10.0]
    assert [point.point["load"]["jobs"][0]["pattern"] for point in points] == ["sequential", "random", "sequential"]
    assert "one group after the other" in load.said


def test_variables_come_from_the_environment_and_from_fio_s_own(monkeypatch):
    monkeypatch.setattr("dbdyno.simulation.options.known_variables", lambda: {"BS": "16k", "ncpus": "4"})
    (job,), _ = jobs_of(Path("x.fio"), "[a]\nbs=${BS}\nnumjobs=$ncpus\n")
    assert (job["block_bytes"], job["processes"]) == (16384, 4)


def test_a_file_may_include_others_of_its_folder(tmp_path):
    (tmp_path / "common.inc").write_text("bs=16k\niodepth=zwei\n")
    with pytest.raises(UserError, match=r"common.inc line 2: iodepth=zwei is not a whole number"):
        jobs_of(tmp_path / "x.fio", "[global]\ninclude common.inc\n[a]\nrw=read\n")
    (tmp_path / "common.inc").write_text("bs=16k\n")
    (job,), _ = jobs_of(tmp_path / "x.fio", "[global]\ninclude common.inc\n[a]\nrw=read\n")
    assert job["block_bytes"] == 16384
    (tmp_path / "own.fio").write_text("include own.fio\n")
    with pytest.raises(UserError, match="deep at most"):
        jobs_of(tmp_path / "own.fio", "include own.fio\n[a]\n")


def test_a_command_line_of_fio_is_a_job_file():
    first = "# ours\nsudo fio --bs=4k --direct=1 --ioengine=libaio \\\n"
    text = f"{first}  --name=a --rw=randread --iodepth 8 \\\n  --name=b --rw=write --output=x\n"
    assert is_job_file(text.encode())
    jobs, _ = jobs_of(Path("x.fio"), text)
    assert jobs == [
        {"block_bytes": 4096, "direct": True, "pattern": "random", "read_percent": 100, "depth": 8},
        {"block_bytes": 4096, "direct": True, "pattern": "sequential", "read_percent": 0},
    ]
    with pytest.raises(UserError, match=r"x.fio: line 2: iodepth=x is not a whole number"):
        jobs_of(Path("x.fio"), "fio --name=a \\\n --iodepth=x\n")


def test_what_is_not_simulated_is_passed_over_with_the_reason():
    (job,), passed_over = jobs_of(
        Path("x.fio"), "[a]\nrw=write\nverify=crc32c\nverify_fatal=1\nioengine=libaio\nbuffered=1\niodepth=8\nbs=4m\n"
    )
    assert (job["depth"], job["block_bytes"]) == (1, 1 << 20)
    assert passed_over[:2] == [
        "verify (what was written is not read back)",
        "verify_fatal (what was written is not read back)",
    ]
    assert any(word.startswith("iodepth") for word in passed_over)
    assert any(word.startswith("bs over 1m") for word in passed_over)


@pytest.mark.parametrize(
    "text",
    [
        "fio -filename=/dev/sdb -direct=1 -iodepth 4 -thread -rw=randread -bs=16k -numjobs=10 -name=mytest\n",
        "SIZE=1g sudo -E fio --rw=randread --iodepth=4 --bs=16k --numjobs=10 --name=a | tee --append out.txt\n",
        "time /usr/bin/fio --rw=randread --iodepth=4 --bs=16k --numjobs=10 --name=a; sleep 9 --name=b\n",
        "$ fio --rw=randread --iodepth=4 \\\n  --bs=16k --numjobs=10 --name=a > out --name=c\n",
        "\ufefffio --rw=randread --iodepth=4 --bs=16k --numjobs=10 --name=a\r\n",
        "\ufeff[a]\r\nrw=randread\r\niodepth=4\r\nbs=16k\r\nnumjobs=10\r\n",
    ],
)
def test_commands_and_files_as_people_keep_them(text):
    (job,), _ = jobs_of(Path("x.fio"), text)
    assert (job["pattern"], job["depth"], job["block_bytes"], job["processes"]) == ("random", 4, 16384, 10)
    assert is_job_file(text.encode())


@pytest.mark.parametrize(
    ("words", "ios"),
    [
        ("bs=4k\nio_size=1m", 256),
        ("bs=4k\nio_size=1m\nnumber_ios=100", 100),
        ("bs=4k\nnumber_ios=1000\nio_limit=1m", 256),
        ("bssplit=4k/50:60k/50\nio_size=32m", 1024),
        ("rw=randrw\nrwmixread=75\nbs=4k,20k\nio_size=8m", 1024),
    ],
)
def test_an_amount_counts_requests_of_the_mean_size(words, ios):
    (job,), _ = jobs_of(Path("x.fio"), f"[a]\nrw=randread\n{words}\n")
    assert job["ios"] == ios


@pytest.mark.parametrize(
    ("common", "words", "found"),
    [
        ("rw=randread", "rw=randrw", {"read_percent": 50}),
        ("rw=randread", "rw=randrw\nrwmixread=75", {"read_percent": 75}),
        ("rwmixread=70", "rw=randwrite", {"read_percent": 0}),
        ("rwmixread=70\nrw=randrw", "rw=randread", {"read_percent": 100}),
        ("rwmixwrite=70", "rw=rw", {"read_percent": 30}),
        ("rw=randrw\nrwmixread=0", "rwmixread=100", {"read_percent": 100}),
        ("rw=randread:8", "rw=read", {"run": None}),
        ("rw=read:64k", "rw=randread", {"gap_bytes": None}),
    ],
)
def test_what_a_job_says_after_global_is_what_counts(common, words, found):
    (job,), _ = jobs_of(Path("x.fio"), f"[global]\n{common}\n[a]\n{words}\n")
    assert {name: job.get(name) for name in found} == found


def test_processes_that_begin_elsewhere_by_a_percentage():
    jobs, _ = jobs_of(Path("x.fio"), "[a]\nrw=read\nnumjobs=3\nsize=10%\noffset=25%\noffset_increment=20%\n")
    page = 4096
    assert [on_a_drive(job, 100 * page)["offset_bytes"] // page for job in jobs] == [25, 45, 65]
    jobs, _ = jobs_of(Path("x.fio"), f"[a]\nrw=read\nnumjobs=2\nsize=10%\noffset=25%\noffset_increment={page}\n")
    assert [on_a_drive(job, 100 * page)["offset_bytes"] // page for job in jobs] == [25, 26]


def test_processes_that_begin_elsewhere_are_jobs_of_their_own():
    jobs, _ = jobs_of(Path("x.fio"), "[a]\nrw=read\nnumjobs=3\noffset=1m\noffset_increment=8m\nsize=8m\n")
    assert [job["offset_bytes"] >> 20 for job in jobs] == [1, 9, 17]
    assert {job["processes"] for job in jobs} == {1}


def test_a_job_that_replays_a_log_is_a_trace(tmp_path):
    (tmp_path / "log").write_text(
        "fio version 2 iolog\n/dev/sda add\n/dev/sda open\n/dev/sda read 0 4096\n/dev/sda close\n"
    )
    job = tmp_path / "replay.fio"
    job.write_text("[replay]\nread_iolog=log\nreplay_time_scale=200\n")
    load, points = points_of(SweepRequest((job,), "hdd-15k", "6.x"), lambda *_: None)
    assert load.fields["files"] == [str(tmp_path / "log")]
    assert (load.fields["speed"], len(points)) == (2.0, 1)


@given(st.text(max_size=300))
def test_any_text_is_jobs_or_a_mistake(text):
    with suppress(UserError):
        jobs_of(Path("x.fio"), text)


@pytest.mark.parametrize("text", ["[a]\nrw=randrw\nbs=0\nio_size=1m\n", "[a]\nrw=read\nbssplit=0/50:4k/50\n"])
def test_a_request_of_no_bytes_is_refused_by_line(text):
    with pytest.raises(UserError, match=r"x.fio: line 3: .*0 bytes"):
        jobs_of(Path("x.fio"), text)


def test_a_process_that_begins_beyond_the_drive_is_refused():
    jobs, _ = jobs_of(Path("x.fio"), "[a]\nrw=read\nnumjobs=4\nsize=10%\noffset_increment=50%\n")
    with pytest.raises(UserError, match=r"a job begins .* into a drive of .*; give less offset"):
        [on_a_drive(job, 2**34) for job in jobs]
