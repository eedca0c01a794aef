"""What Bonnie++, sysbench, mysqlslap and commands print, as figures: kept outputs, and texts of any shape."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbdyno.errors import TrialError
from dbdyno.study.workloads import SysbenchSection
from dbdyno.workload.bonnie import bonnie_figures, csv_fields, phases_of
from dbdyno.workload.command import figure_in
from dbdyno.workload.mysqlslap import slap_line
from dbdyno.workload.sysbench import histogram, intervals, sysbench_figures, totals_of
from dbdyno.workload.tool_load import ProgramRun

KEPT = Path(__file__).parent / "kept"
# As Bonnie++ 1.97's own manual shows it; 2.00 has two more fields and was run.
OLD = ("1.97,1.97,host,1,1435159700,4G,,623,99,119532,14,79158,7,3071,98,215713,9,283.9,8,16,,,,,19566,37,+++++,+++,"
       "22351,34,21440,40,+++++,+++,23186,35,13442us,3110ms,2012ms,8043us,94010us,1053ms,1113us,446us,483us,340us,27us,"
       "89us")  # fmt: skip


def kept(name):
    return (KEPT / name).read_text(encoding="utf-8")


def test_bonnie_2():
    figures = bonnie_figures(csv_fields(kept("bonnie-2.00a.csv")))
    fields = kept("bonnie-2.00a.csv").split(",")
    assert figures["write_megabytes_per_second"] == pytest.approx(float(fields[11]) * 1.024 / 1000)
    assert figures["rewrite_megabytes_per_second"] == pytest.approx(float(fields[13]) * 1.024 / 1000)
    assert figures["read_megabytes_per_second"] == pytest.approx(float(fields[17]) * 1.024 / 1000)
    assert figures["seeks_per_second"] == float(fields[19])


def test_bonnie_1_97():
    assert bonnie_figures(csv_fields(OLD)) == pytest.approx({
        "write_megabytes_per_second": 119532 * 1024 / 1e6,
        "rewrite_megabytes_per_second": 79158 * 1024 / 1e6,
        "read_megabytes_per_second": 215713 * 1024 / 1e6,
        "seeks_per_second": 283.9,
        "file_creates_per_second": 19566.0,
        "file_deletes_per_second": 22351.0,
    })  # fmt: skip


@pytest.mark.parametrize("text", ["", "1.97,short", "2.50," + "1," * 50, "no"])
def test_what_is_no_line_of_bonnie_fails(text):
    with pytest.raises(TrialError, match=r"bonnie\+\+'s output"):
        csv_fields(text)


def test_the_parts_of_bonnie_follow_each_other():
    said = [(200, b"Writing intelligently..."), (300, b"done\nRewriting...done\n"), (500, b"start 'em...done...done\n")]
    assert phases_of(ProgramRun(100, err=said), 100) == [
        ("writing intelligently", 100, 300),
        ("rewriting", 300, 300),
        ("seek", 300, 500),
    ]


def test_sysbench():
    text = kept("sysbench-1.0.20.txt")
    figures, totals = sysbench_figures(text), totals_of(text)
    assert sum(histogram(text).values()) == totals["events"] == 3570
    assert figures["queries_per_second"] == pytest.approx(35782.42, rel=0.001)
    assert figures["events_per_second"] == pytest.approx(1778.14, rel=0.001)
    assert (figures["errors"], figures["latency_ms_mean"], figures["latency_ms_max"]) == (27, 1.12, 15.39)
    assert figures["latency_ms_p99"] == pytest.approx(5.00, abs=0.01), "what sysbench itself says"
    assert intervals(text.splitlines()) == {
        "t_s": [1, 2],
        "events_per_second": [1744.48, 1822.13],
        "queries_per_second": [35154.41, 36644.55],
        "latency_ms_p99": [5.57, 4.41],
        "errors_per_second": [14.99, 12.0],
        "reconnects_per_second": [0, 0],
    }


def test_a_queue_of_sysbench():
    line = "[ 1s ] thds: 2 tps: 9.0 qps: 9.0 (r/w/o: 9.0/0.0/0.0) lat (ms,99%): 5.57 err/s: 0.00 reconn/s: 0.00"
    assert intervals([line, "[ 1s ] queue length: 7, concurrency: 2"])["backlog"] == [7]
    assert "backlog" not in intervals([line, line])


@settings(deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_no_result_of_sysbench(text):
    with pytest.raises(TrialError, match="sysbench's output"):
        sysbench_figures(text)
    assert len({len(values) for values in intervals(text.splitlines()).values()}) <= 1


def test_sysbench_keeps_whole_seconds():
    with pytest.raises(ValueError, match="whole seconds"):
        SysbenchSection.model_validate({"kind": "sysbench", "duration": "1500ms"})


def test_mysqlslap():
    assert slap_line(kept("mysqlslap-10.11.csv")) == {
        "seconds_mean": 3.388,
        "seconds_min": 3.388,
        "seconds_max": 3.388,
        "clients": 10,
        "queries_per_client": 100,
    }
    told = slap_line("innodb,mixed,0.123,0.120,0.130,4,250\n")
    assert (told["seconds_mean"], told["seconds_min"], told["seconds_max"]) == (0.123, 0.120, 0.130)


@pytest.mark.parametrize("text", ["", "innodb,mixed", "a,b,c,d,e,f,g", "innodb,mixed,0.1,0.1,0.1,4,"])
def test_what_is_no_line_of_mysqlslap_fails(text):
    with pytest.raises(TrialError, match="mysqlslap's output"):
        slap_line(text)


def test_what_mysqlslap_took_no_millisecond_for_is_no_result():
    with pytest.raises(TrialError, match=r"give it more workload\.queries"):
        slap_line("innodb,key,0.000,0.000,0.000,1,10\n")


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False), st.text(alphabet="abc \n", max_size=30))
def test_a_figure_is_found_wherever_it_stands(value, around):
    assert figure_in(f"{around}\nrate={value!r}\n{around}", r"^rate=(\S+)$") == value
    assert figure_in(f'{{"runs": [{{"rate": {value!r}}}]}}', "$.runs[0].rate") == value


def test_the_last_match_counts():
    assert figure_in("rate 1\nrate 2\n", r"rate (\d)") == 2


@pytest.mark.parametrize(
    ("text", "how"),
    [("", "([0-9]+)"), ("rate x", "rate (.)"), ("{}", "$.rate"), ("no", "$.rate"), ("[1]", "$.rate"),
     ('{"rate": true}', "$.rate"), ('{"rate": [1]}', "$.rate[1]"), ('{"rate": null}', "$.rate")],
)  # fmt: skip
def test_no_figure_fails(text, how):
    with pytest.raises(TrialError, match="finds no number"):
        figure_in(text, how)
