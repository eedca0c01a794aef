"""Which of the six outcomes: the worst of what was found, with every cause."""

import pytest

from dbdyno.crash.examine import CAUSE_MAX, defects_of, worst
from dbdyno.crash.rig import Defect
from tests.unit.crash.support import verified

WORST_FIRST = [
    ({"tables": ["Corrupt"]}, "table"),
    ({"complete": False}, "table"),
    ({"holes": 1, "lost": 3}, "inconsistent"),
    ({"torn": 1}, "inconsistent"),
    ({"wrong": 2}, "inconsistent"),
    ({"ghost": 1}, "inconsistent"),
    ({"index_differences": 1}, "inconsistent"),
    ({"balance_off": True}, "inconsistent"),
    ({"lost": 3}, "tail"),
    ({}, "nothing"),
    ({"unknown": 5, "refused": 5}, "nothing"),
]


@pytest.mark.parametrize(("found", "outcome"), WORST_FIRST)
def test_each_thing_that_the_verifier_finds_has_its_outcome(found, outcome):
    finding = worst(defects_of(verified(**found)))
    assert finding.outcome == outcome
    assert bool(finding.cause) == (outcome != "nothing")


def test_the_worst_decides_and_all_causes_are_told_worst_first():
    found = defects_of(verified(tables=["Page 7 is corrupt"], lost=610, torn=1))
    finding = worst([*found, Defect("filesystem", "e2fsck -fn: Inode 12 has a bad extent")])
    assert finding.outcome == "filesystem"
    told = [
        finding.cause.index(words) for words in ("Inode 12", "table ledger needs repair: Page 7", "610 acknowledged")
    ]
    assert told == sorted(told)


def test_a_cause_has_an_end():
    assert len(worst([Defect("server", "x" * 10_000)]).cause) < CAUSE_MAX + 100


def test_what_is_not_a_lost_tail_is_shown_by_an_example():
    finding = worst(defects_of(verified(wrong=1, lost=1, examples=[("lost", "gone"), ("wrong", "amount 3, not 4")])))
    assert "amount 3, not 4" in finding.cause
    assert "(lost: gone" not in finding.cause
