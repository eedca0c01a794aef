"""Every reason of a verdict has a sentence of its own."""

import pytest

from dbdyno.analysis.verdict.evidence import Resolution
from dbdyno.analysis.verdict.reasons import Code, Dropped, Lack, NextStep, Reason, TooFew, ZeroFigures
from dbdyno.report.reasons import as_sentence, reason_text

COARSE = Resolution(step=1.0, unit="ms", log_width=0.1)


def reason(code=Code.INTERVAL_TOO_WIDE, lack=None, sizes=(10,)):
    return Reason(
        code, "undecided", 0.03, sizes, family=2, p_adjusted=0.2, p_equivalence=0.3, p_best=0.1, agreeing=(7, 10),
        far_off=0, mean=0.01, excludes_zero=False, resolution=COARSE, disturbed=6, needed=40, lack=lack,
    )  # fmt: skip


@pytest.mark.parametrize("sizes", [(10,), (10, 8)], ids=["one run", "two runs"])
def test_no_two_codes_read_alike(sizes):
    texts = {reason_text(reason(code, sizes=sizes)) for code in Code}
    assert len(texts) == len(Code)
    assert all("steps of 1 ms" in text for text in texts)


def test_what_it_takes_to_decide_is_said():
    lacks = (Lack.QUIET_HOST, Lack.LESS_NOISE, Lack.MORE_BLOCKS, Lack.A_WIDER_MARGIN)
    texts = {reason_text(reason(lack=each and NextStep(each, 30))) for each in (None, *lacks)}
    assert len(texts) == 1 + len(lacks)


def test_what_stands_in_the_way_is_named():
    found = [Dropped("ssd"), ZeroFigures("ssd", "iops", 1), ZeroFigures("ssd", "iops", 2, "after"), TooFew(1, 2)]
    assert [as_sentence(one) for one in found] == [
        "Ssd failed again and again and was dropped.",
        "Iops of ssd is 0 in 1 block, and there is no ratio to 0.",
        "Iops of ssd is 0 in 2 blocks after; there is no ratio to 0.",
        "1 usable block, at least 2 are needed.",
    ]
