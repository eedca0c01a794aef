"""The answer of a simulation over several factors."""

import re
from dataclasses import dataclass

from dbdyno.report.charts.simulation import surface
from dbdyno.report.simulation import answer, largest_change


@dataclass(frozen=True)
class Row:
    levels: dict[str, str]
    rate: float

    def name(self, names):
        return ", ".join(self.levels[name] for name in names)


def rows(*rates):
    levels = [{"device": device, "nr": nr} for device in ("hdd", "ssd") for nr in ("128", "1000")]
    return [Row(level, rate) for level, rate in zip(levels, rates, strict=True)]


def said(*rates, low=False):
    return answer(rows(*rates), ("device", "nr"), lambda row: row.rate, "requests/s", low=low)


def test_a_factor_that_changes_nothing_is_not_in_the_name():
    assert said(100, 100, 4000, 4000) == (
        "ssd: 4,000 requests/s, the most; hdd: 100 (40 times). nr makes no noticeable difference."
    )


def test_each_factor_that_matters_is_named_with_the_most_it_changes():
    assert said(100, 300, 4000, 3000) == (
        "ssd, 128: 4,000 requests/s, the most; hdd, 128: 100 (40 times). Up to 40 times by device and 3 times by nr."
    )


def test_what_comes_as_close_as_makes_no_difference_is_named_beside_the_most():
    """The factor matters on the hard disk alone."""
    assert said(100, 300, 4000, 3990) == (
        "ssd, 128: 4,000 requests/s, the most (no noticeable difference to ssd, 1000); hdd, 128: 100 (40 times)."
        " Up to 40 times by device and 3 times by nr."
    )


def test_nothing_matters():
    assert said(100, 100.4, 100, 100) == "no noticeable difference by device and nr; all reach about 100 requests/s."


def test_the_lowest_where_less_is_better():
    assert said(8, 8, 2, 2, low=True).startswith("ssd: 2 requests/s, the lowest; hdd: 8 (4 times).")


def test_nothing_done_is_no_ratio():
    assert said(0, 0, 5, 5) == "ssd: 5 requests/s, the most; hdd: 0. nr makes no noticeable difference."
    assert largest_change(rows(0, 0, 0, 0), "nr", lambda row: row.rate) == 1


def test_a_surface_has_its_sizes_in_the_order_of_their_bytes():
    rows = [({"load:bs": size, "depth": depth}, 1.0) for size in ("1M", "512", "4k", "16KiB") for depth in ("8", "1")]
    drawn = surface(rows, ("load:bs", "depth"), "requests/s").drawn("wide")
    middle = [text for text in re.findall(r'text-anchor="middle"[^>]*>([^<]+)<', drawn) if text != "1"]
    assert middle == ["512", "4k", "16KiB", "1M"]
