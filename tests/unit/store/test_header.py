"""The header: one type, written and read."""

from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.errors import UserError
from dbdyno.model.design import Factor, SameTreatment
from dbdyno.store.header import header_in
from dbdyno.store.reported import DevicePrice, Prices, ReportedClaim, ReportedRow, ReportedTable
from dbdyno.store.run_folder import read_header
from tests.unit.store.conftest import DESIGN, HEADER

FULL = replace(
    HEADER,
    design=replace(
        DESIGN,
        factors=[Factor("device", "stack", ["hdd-7200", "x"])],
        aa=SameTreatment("hdd-7200", 3),
        until="precise",
        half_width=0.02,
        settle="trial",
    ),
    reported=[
        ReportedTable(
            source="a book",
            setup="a VM",
            metric="queries_per_second",
            unit="q/s",
            rows=[ReportedRow("hdd-7200", "", "t1", 12.5)],
            claims=[ReportedClaim("it is faster", DESIGN.comparisons, checked=True, direction="faster")],
            differs_because="",
        )
    ],
    cost=Prices("EUR", 5, 0.5, devices=[DevicePrice("hdd-7200", ["t1"], "a shop", price=80)]),
    scripts={"/home/somebody/x.sql": "SELECT 1;\n"},
)


@pytest.mark.parametrize("header", [HEADER, FULL], ids=["plain", "with everything"])
def test_a_header_is_read_as_it_was_written(header):
    assert header_in(Path("run"), header.to_toml()) == header


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"format = 2\n", "{path}: run format 2; this dbdyno reads format 1"),
        (b"", "{path}/run.toml: is damaged: it is empty; put it back from a copy of the folder"),
        (b"x = 1\n", "{path}: run format None; this dbdyno reads format 1"),
        (b"format = 1\n", "{path}/run.toml: is damaged: run is missing"),
        (b"format = 1\nrun = 3\ntreatment = 4\n", "{path}/run.toml: is damaged: run is not a table"),
        (b"format = \n", "{path}/run.toml: is damaged: it is not valid TOML: Invalid value"),
        (b"\xff", "{path}/run.toml: is damaged: it is not UTF-8 text"),
    ],
)
def test_a_header_that_can_not_be_read(tmp_path, content, message):
    (tmp_path / "run.toml").write_bytes(content)
    with pytest.raises(UserError) as refused:
        read_header(tmp_path)
    assert str(refused.value).startswith(message.format(path=tmp_path))


@pytest.mark.parametrize("content", [b"a." * 500_000 + b"a=1\n", b"".join(b"a%d.b.b.b=1\n" % n for n in range(70_000))])
def test_keys_of_many_parts_are_refused_before_they_take_time_or_memory(content):
    with pytest.raises(UserError, match=r"it is nested too deep: a key|its keys may have more than"):
        header_in(Path("run"), content)
