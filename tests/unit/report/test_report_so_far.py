"""The lines that a look of a sequential design shows while the run goes on."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.statistics import Estimate
from dbdyno.model.printable import PROGRESS_COLUMNS
from dbdyno.report.sentences import LINES_MAX, so_far
from tests.unit.report.test_report_headline import DEMO, ONE_FACTOR

EFFECTS = st.tuples(*[st.floats(-1, 1e6)] * 3).map(sorted).map(lambda ends: Estimate(ends[1], ends[0], ends[2], 6))
WORDS = st.sampled_from(["faster", "slower", "equivalent", "undecided", "not comparable"])
LEVELS = st.lists(st.text("abc -.", min_size=1, max_size=90), min_size=4, max_size=4, unique=True)


@pytest.fixture(scope="module")
def judged(build):
    """The verdicts of the demo's comparisons, and its treatments."""
    run = build(pairs=ONE_FACTOR, rates=DEMO, noise=0.04)
    return analyse(run).verdicts, run.design.treatments


def test_each_comparison_has_a_line_with_its_effect_and_its_word(judged):
    verdicts, treatments = judged
    lines = so_far(verdicts, treatments)
    assert [line.partition(": ")[0] for line in lines] == [
        "  none vs mq-deadline on hdd-7200",
        "  ssd-sata vs h…h mq-deadline",
        "  ssd-sata vs h…cheduler none",
        "  none vs mq-deadline on ssd-sata",
    ]
    assert [line.partition(" %), ")[2] or line.partition("x), ")[2] for line in lines] == ["", "faster", "faster", ""]


def test_of_many_comparisons_the_first_are_shown(judged):
    verdicts, treatments = judged
    lines = so_far(verdicts * 3, treatments)
    assert (len(lines), lines[-1]) == (LINES_MAX + 1, "  and 6 more")


def test_one_of_which_nothing_is_known_shows_its_word_alone(judged):
    verdicts, treatments = judged
    unknown = replace(verdicts[0], effect=Estimate.unknown(), verdict="not comparable")
    assert so_far([unknown], treatments) == ["  none vs mq-deadline on hdd-7200: not comparable"]


@given(EFFECTS, WORDS, LEVELS)
def test_every_line_fits(judged, effect, word, levels):
    verdicts, treatments = judged
    named = [replace(one, levels={"device": level}) for one, level in zip(treatments, levels, strict=True)]
    lines = so_far([replace(verdicts[0], effect=effect, verdict=word)], named)
    assert [len(line) <= PROGRESS_COLUMNS for line in lines] == [True], lines
