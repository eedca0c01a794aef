"""Points from the words of the command line."""

from pathlib import Path

import pytest

from dbdyno.errors import UserError
from dbdyno.model.fio import is_job_file
from dbdyno.simulation.asked import Asked, points_of
from dbdyno.simulation.fio_words import jobs_of, on_a_drive, reach_bytes, times_of
from dbdyno.simulation.points import combinations, split


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
    asked = Asked((), "hdd-15k", "6.x", tunables=["wbt_lat_usec=0,2000", "read_expire=9"], fio={"rw": "randread"})
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
    ],
)
def test_values_are_in_fio_s_units(line, field, value):
    (job,), passed_over = jobs_of(Path("x.fio"), f"[a]\n{line}\n")
    assert job[field] == value
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
        ("[a]\nbs=${BS}\n", "line 2: bs=${BS} holds a variable; write its value"),
        ("[a]\nstonewall\n", "line 2: stonewall=1 has jobs follow each other"),
        ("[a]\nioengine=net\n", "line 2: ioengine=net is none of"),
        ("[a]\niodepht=4\n", 'x.fio: line 2: iodepht=4 is no option of a simulated job. Did you mean "iodepth"?'),
        ("rw=read\n", "line 1: rw stands in no section"),
        ("[a]\nrw=read\niodepth=many\n", "line 3: iodepth=many is no whole number"),
        ("[a]\ndirect=2\n", "line 2: direct=2 is neither 0 (through the page cache) nor 1"),
        ("[global]\nrw=read\n", "holds no job"),
    ],
)
def test_what_a_job_file_may_not_say_is_named_with_its_line(text, said):
    with pytest.raises(UserError) as error:
        jobs_of(Path("x.fio"), text)
    assert said in str(error.value)
