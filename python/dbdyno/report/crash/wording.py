"""The words of crash safety: how cuts, outcomes and amounts are called, and treatments in short."""

import math
from collections.abc import Mapping

from dbdyno.analysis.safety.judge import CrashSafety, Stratum, Word
from dbdyno.model.cut import OUTCOME_WORDS, CrashMode, Outcome
from dbdyno.model.wording import UNKNOWN

SHORT: Mapping[Outcome, str] = {
    "filesystem": "filesystem damaged",
    "server": "no server start",
    "table": "table damaged",
    "inconsistent": "data damaged",
    "tail": "commits lost",
    "nothing": "nothing lost",
}
WORD: Mapping[Word, str] = {
    "no loss seen": "no loss seen",
    "loses the newest commits": "loses commits",
    "not crash-safe": "not crash-safe",
    "undecided": "undecided",
}
TONES: Mapping[Word, str] = {  # the verdicts' colours, of which each word has one
    "no loss seen": "faster",
    "loses the newest commits": "slower",
    "not crash-safe": "not comparable",
    "undecided": "undecided",
}
_WHEN = {
    "uniform": "at a random time",
    "ack": "right after a commit was acknowledged",
    "flush": "in a FLUSH in flight",
    "page-write": "in a write of a data page",
    "ddl": "right after a DDL statement",
    "recovery": "during the recovery from another cut",
}
_SURVIVORS = {
    "none": "nothing survives",
    "random-512": "a random part of its 512-byte sectors survives",
    "random-4096": "a random part of its 4 KiB sectors survives",
    "prefix": "all up to a random time survives",
    "requests": "a random part of its requests survives, each whole",
    "versions": "of each sector a random version survives",
    "lying": "what a drive held back that lies about FLUSH is gone",
}
INDEPENDENT_SECTORS = {"random-512", "random-4096", "versions"}
_SECONDS_FROM_MS = 100
_DIGITS = (9.95, 0.95, 0.0095)  # percent, from which on 0, 1 and 2 decimals are enough


def found_text(outcome: Outcome) -> str:
    """Return what was found, as a clause without its explanation."""
    return OUTCOME_WORDS[outcome].partition(" (")[0]


def cuts(mode: CrashMode, number: int) -> str:
    """Return ``"300 power cuts"`` or ``"30 kills of the server"``."""
    one, many = ("power cut", "power cuts") if mode == "power" else ("kill of the server", "kills of the server")
    return f"{number:,} {one if number == 1 else many}"


def many(mode: CrashMode) -> str:
    """Return ``"power cuts"``."""
    return cuts(mode, 2).removeprefix("2 ")


def such(mode: CrashMode) -> str:
    """Return what a share is one of, as ``"such cuts"``."""
    return "such cuts" if mode == "power" else "such kills of the server"


def a_cut(mode: CrashMode) -> str:
    """Return ``"a power cut"``."""
    return "a power cut" if mode == "power" else "a kill of the server"


def share_text(value: float) -> str:
    """Return a share of cuts with two digits: ``"1.0 %"``, ``"0.10 %"``, ``"97 %"``."""
    if not math.isfinite(value):
        return UNKNOWN
    points = 100 * value
    if points >= 99.5:  # noqa: PLR2004 - would round to 100
        return "100 %" if value == 1 else f"{min(points, 99.9):.1f} %"
    if points == 0:
        return "0 %"
    decimals = next((d for d, least in enumerate(_DIGITS) if points >= least), len(_DIGITS))
    return f"{points:.{decimals}f} %"


def amount_text(ms: float) -> str:
    """Return how much was lost in time: ``"1.0 s"``, ``"40 ms"``."""
    return f"{ms / 1000:.1f} s" if ms >= _SECONDS_FROM_MS else f"{max(ms, 1):.0f} ms"


def stratum_text(one: Stratum) -> str:
    """Return ``"uniform / random-4096"``."""
    return " / ".join(filter(None, (one.when, one.survivors)))


def model_text(safety: CrashSafety) -> str:
    """Return how cuts were made, as one sentence."""
    times = "; ".join(_WHEN[one] for one in safety.when)
    if safety.mode == "kill":
        return f"Only the server was killed ({times}); what it had written stayed in memory: no power was cut."
    left = "; ".join(f"{_SURVIVORS[one]} ({one})" for one in safety.survivors)
    return f"The power was cut {times}. Of what no FLUSH had made durable {left}."
