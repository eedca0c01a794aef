"""Points from the words of the command line."""

from pathlib import Path

import pytest

from dbdyno.errors import UserError
from dbdyno.simulation.asked import Asked, points_of
from dbdyno.simulation.fio_words import is_job_file, jobs_of, times_of
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
        "; ours\n[global]\nbs=16k\nruntime=1min\n[a]\nrw=randrw\nrwmixread=70\nname=x\n[b]\nrw=write # all\nnumjobs=2\n"
    )
    assert is_job_file(text.encode())
    jobs = jobs_of(Path("x.fio"), text)
    assert times_of(jobs) == (60.0, 0.0)
    assert jobs == [
        {"block_bytes": 16384, "pattern": "random", "read_percent": 70},
        {"block_bytes": 16384, "pattern": "sequential", "read_percent": 0, "processes": 2},
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
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
