"""Which picture a page begins with, and what it says by itself."""

import re
from dataclasses import replace

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.two_runs import compare
from dbdyno.report.charts import changes, drives, svg
from dbdyno.report.document import Chart, Details, inside
from dbdyno.report.sections import headline
from dbdyno.report.sentences import in_order
from dbdyno.report.source import Source
from tests.crash_runs import crash_run
from tests.unit.analysis.test_analysis_quick import target
from tests.unit.report.conftest import build
from tests.unit.report.shared_pages import against_the_first

CLIENTS = {16: 1490.0, 32: 1520.0, 8: 1240.0, 4: 760.0, 2: 405.0}
SERVERS = {"mysql-5.6": 400.0, "mysql-5.5": 390.0, "mysql-9": 520.0, "mariadb-11.8": 640.0}


def pictures(run):
    """The drawings of what a page begins with: the first, and those that are folded below it."""
    found = headline.hero_section(Source(run, analyse(run)))
    folded = {chart for block in inside(found) if isinstance(block, Details) for chart in charts(block)}
    first, *_ = [one for one in charts(found) if one not in folded]
    return str(first.drawn("wide")), [str(one.drawn("wide")) for one in folded]


def charts(block):
    return [one for one in inside(block) if isinstance(one, Chart)]


def texts(svg):
    return re.findall(r"<text[^>]*>(.*?)</text>", svg)


def test_an_amount_is_a_curve_with_its_knee_in_ascending_order_and_the_baseline_as_one_point():
    first, folded = pictures(against_the_first("clients", "workload", CLIENTS))
    said = texts(first)
    assert "polyline" in first
    assert [one for one in said if one in {"2", "4", "8", "16", "32"}] == ["2", "4", "8", "16", "32"]
    assert sum("(baseline)" in one for one in said) == 1
    assert any(one.startswith("knee: 16") for one in said)
    assert "shaded: 95 % interval" in said
    assert "polygon" in first, "the band of intervals"
    assert len(folded) >= 1, "and the comparisons behind it"


def test_a_knee_that_is_not_sure_has_a_band_from_its_first_to_its_last_level():
    levels = {1: 100.0, 2: 190.0, 4: 350.0, 8: 600.0, 16: 640.0, 32: 660.0, 64: 665.0}
    sure = against_the_first("clients", "workload", levels).design
    rates = {one.id: rate for one, rate in zip(sure.treatments, levels.values(), strict=True)}
    pairs = [(one.baseline, one.level) for one in sure.comparisons]
    noisy = build(rates=rates, treatments=sure.treatments, pairs=pairs, void_block=0, noise=0.02, seed=4)
    noisy = replace(noisy, design=replace(noisy.design, factors=sure.factors))
    assert "knee: 16 (95 %: 8 to 32)" in texts(pictures(noisy)[0])


def test_versions_of_a_server_are_bars_the_best_first_with_the_word_of_each_finding():
    run = against_the_first("server", "stack", SERVERS)
    first, _ = pictures(run)
    names = [one for one in texts(first) if one in SERVERS]
    assert names == ["mariadb-11.8", "mysql-9", "mysql-5.6", "mysql-5.5"]
    assert texts(first).count("baseline") == 1
    assert first.count("<rect") == 2 * len(SERVERS)


def test_a_crash_run_is_speed_against_safety_and_says_what_each_lost():
    said = texts(pictures(crash_run())[0])
    assert "1: nothing lost" in said
    assert any(re.fullmatch(r"2: up to [\d.]+ m?s lost", one) for one in said)


def test_anything_else_is_the_chart_of_comparisons_which_names_its_marks(build):
    first, _ = pictures(build())
    said = texts(first)
    assert "margin: within 3 %" in said
    assert any("small dots: one block each" in one for one in said)
    assert any("95 % interval" in one for one in said)


def test_a_baseline_that_all_have_in_common_is_drawn_once():
    first, _ = pictures(against_the_first("scheduler", "stack", {"none": 400.0, "bfq": 420.0, "kyber": 500.0}))
    assert texts(first).count("baseline") == 1
    assert not any(one.startswith("vs ") for one in texts(first))


def test_amounts_are_compared_in_ascending_order():
    run = against_the_first(
        "innodb_buffer_pool_size", "server", {"1G": 500.0, "64M": 300.0, "2G": 510.0, "256M": 400.0}
    )
    assert [one.level.rpartition(" ")[2] for one in in_order(analyse(run))] == ["64M", "256M", "2G"]


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (-0.05, 0.75, ["0 %", "+20 %", "+40 %", "+60 %", "+80 %", "+100 %"]),
        (-0.1, 1.5, ["1x", "2x", "3x", "4x"]),
        (-0.3, 0.3, ["-20 %", "-10 %", "0 %", "+10 %", "+20 %", "+30 %"]),
        (-1, 8, ["1x", "3x", "10x", "30x", "100x", "300x", "1,000x"]),
    ],
)
def test_an_axis_speaks_one_language_in_ticks_that_a_person_would_choose(low, high, labels):
    assert [label for _, label in svg.ratio_ticks(low, high)] == labels


def test_a_disk_stands_among_the_drives_of_the_catalogue_each_by_its_name():
    here = target("/srv/db", fsync=500, randread=9000)
    catalogue = [target("hdd-7200", fsync=118, randread=175), target("nvme", fsync=29000, randread=12000)]
    chart = drives.chart([here], catalogue, "nvme")
    assert {"/srv/db", "hdd-7200", "nvme"} <= set(texts(str(chart.drawn("wide"))))
    assert {"/srv/db", "hdd-7200"} <= set(texts(str(chart.drawn("narrow"))))


def test_a_device_that_was_only_read_stands_among_them_by_its_reads():
    here = target("/dev/sdb", randread=9000)
    said = texts(str(drives.chart([here], [target("nvme", randread=12000)]).drawn("wide")))
    assert any("read of 16 KiB" in one for one in said)


def test_two_runs_are_before_and_after_with_the_control_apart():
    before, after = build(8), build(10, seed=8, rates={"t1": 410.0, "t2": 398.0, "t3": 1890.0, "t4": 1702.0})
    after = replace(after, versions={**after.versions, "mariadb": "11.8.2"})
    said = texts(str(changes.chart(compare(before, after, control="hdd-7200 / none")).drawn("wide")))
    assert "Control, as measured" in said
    assert said.index("ssd-sata / mq-deadline") < said.index("hdd-7200 / none")
    assert "change relative to the control" in said
