"""What a script makes of a report: conditions, JUnit's XML, annotations."""

import math
from xml.etree import ElementTree as ET

import pytest

from dbdyno.errors import UserError
from dbdyno.model.word import Word
from dbdyno.report.outcome import OutcomeVerdict, annotations, condition_of, failed, junit


def one(word=Word.SLOWER, effect=-0.07, name="ext4 against xfs", of=""):
    return OutcomeVerdict(of, name, Word(word), effect, "all 8 blocks agree")


@pytest.mark.parametrize(
    ("text", "verdict", "holds"),
    [
        ("slower", one(), True),
        ("slower by 5%", one(), True),
        ("slower by 7.5 %", one(), False),
        ("Slower  By 5%", one(), True),
        ("slower", one("faster", 0.07), False),
        ("faster by 5%", one("faster", 0.07), True),
        ("undecided", one("undecided"), True),
        ("not equivalent", one("undecided"), True),
        ("not equivalent", one("equivalent"), False),
        ("not comparable", one("not comparable", math.nan), True),
        ("not comparable", one(), False),
        ("not slower by 10%", one(), True),
    ],
)
def test_a_condition(text, verdict, holds):
    assert bool(failed([verdict], [condition_of(text)])) is holds


@pytest.mark.parametrize("text", ["", "slow", "slower by", "slower by 5", "slower by -5%", "5%", "slower; rm"])
def test_what_is_no_condition(text):
    with pytest.raises(UserError, match="--fail-if"):
        condition_of(text)


def test_only_a_direction_has_a_size():
    with pytest.raises(UserError, match="only faster and slower have a size"):
        condition_of("undecided by 5%")


def test_junit_counts_and_escapes():
    hostile = one(name='<a> & "b" against \x1b[31mc')
    found = [hostile, one("undecided", 0.01, "b"), one("equivalent", 0.0, "c", of="second run")]
    suite = ET.fromstring(junit("x < y", found, failed(found, [condition_of("slower")])))
    assert (suite.get("name"), suite.get("tests"), suite.get("failures"), suite.get("skipped")) == (
        "x < y",
        "3",
        "1",
        "1",
    )
    cases = suite.findall("testcase")
    assert cases[0].get("name") == '<a> & "b" against ?[31mc'
    assert [[child.tag for child in case] for case in cases] == [
        ["failure", "system-out"],
        ["skipped", "system-out"],
        ["system-out"],
    ]
    assert cases[2].get("classname") == "x < y: second run"


def test_an_annotation_can_not_become_another():
    hostile = one(name="a%0A::error::b\n::error title=c::d")
    (line,) = annotations("t:,\n", [hostile], {})
    assert line.startswith("::notice title=t%3A%2C?::a%250A::error::b?::error")
    assert "\n" not in line
    levels = [text.split()[0] for text in annotations("t", [one(), one("undecided")], {one(): condition_of("slower")})]
    assert levels == ["::error", "::warning"]
